"""The page of `holdfast calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.analysis.baseline import baseline_beside
from holdfast.analysis.calibration import Calibration, Candidate
from holdfast.analysis.choice import Pick, front
from holdfast.analysis.series import read_series
from holdfast.analysis.statistics import estimate
from holdfast.analysis.study_summary import calibration_summary
from holdfast.analysis.summary import NAME, spelled, spread
from holdfast.analysis.verdicts import tell
from holdfast.records import RunData, read_run
from holdfast.report.calibration import (
    HEALTH,
    answer,
    capability_head,
    chance_line,
    detail_lines,
    health_cells,
    health_lines,
    rejected_line,
    signed_to,
    unprompted_lines,
)
from holdfast.report.document import Document, Part, Table, head_facts, pictures
from holdfast.report.downloads import json_file, table_files
from holdfast.report.wording import plain, signed, with_interval

_TERMS = (
    (
        "Stability",
        (
            "The score, from 0 to 1, of the agent’s replies to the probes of its own system prompt,"
            " averaged over rounds."
        ),
    ),
    (
        "Capability",
        (
            "The ability that may be lost: questions asked in the middle of the same dialogs, or"
            " the perplexity of a text. Chance is the score of guessing."
        ),
    ),
    (
        "Points lost",
        (
            "Capability without a method minus capability with it, on the same questions of the"
            " same conversations."
        ),
    ),
    (
        "Pareto front",
        (
            "The settings that no other beats: none is as stable at as low a cost, and better in"
            " one of the two."
        ),
    ),
)


def calibration_document(calibration: Calibration, chosen: Pick, folder: Path) -> Document:
    """The page of a calibration whose figures lie in `folder`."""
    runs = [(name, read_run(folder / name)) for name in ("stability", "capability")]
    about = calibration.about
    parts: tuple[Part, ...] = (
        Part(
            "trade-off",
            "The gain and the cost of each setting",
            (
                (
                    f"A point is a {calibration.unit.removesuffix('s')}."
                    if not about["is_text"]
                    else f"Points are {calibration.unit}."
                ),
                *detail_lines(calibration),
                *health_lines(calibration),
            ),
            _TERMS,
            pictures(
                folder,
                (("trade_off", "Stability against points lost; whiskers are 95 % intervals"),),
            ),
            (Table("Every setting, with 95 % intervals", setting_rows(calibration)),),
        ),
        Part(
            "rounds",
            "Round by round at equal cost",
            (f"Each method at its setting closest to {chosen.budget:g} points lost.",),
            pictures=pictures(
                folder, (("by_round", "Stability by round; whiskers are 95 % intervals"),)
            ),
        ),
    )
    if tables := _unprompted_tables(runs[0][1]):
        text = tuple(unprompted_lines(runs[0][1]))
        parts += (Part("baseline", "Without the system prompt", text, tables=tables),)
    count = len(calibration.none.stability)
    files = (
        *table_files(
            "settings", "every setting: the numbers of the figures", _numbers(calibration)
        ),
        json_file(
            NAME, "what the run found, as in its folder", spelled(calibration_summary(calibration))
        ),
    )
    facts = head_facts(
        runs[0][1],
        f"{count} conversations per setting",
        f"{len(calibration.candidates)} settings",
        about["capability"],
    )
    headline, _, more = answer(calibration, chosen).partition(". ")
    chance = chance_line(calibration)
    lines = (more, rejected_line(calibration, chosen), chance and f"{chance}.")
    return Document(
        "calibrate",
        f"{headline.rstrip('.')}.",
        tuple(filter(None, lines)),
        facts,
        parts,
        files,
        tuple(runs),
    )


def _unprompted_tables(run: RunData) -> tuple[Table, ...]:
    """What each prompt or rule scores at round 1 with the system prompt and without; nothing where
    it was not asked.
    """
    baseline = baseline_beside(run, read_series(run)[0])
    if baseline is None:
        return ()
    what = "rule" if baseline.by_rule else "prompt"
    rows = [(what, "n", "with it", "without", "difference", "verdict")]
    rows += [
        (
            row.name,
            str(row.n),
            plain(row.prompted),
            plain(row.unprompted),
            signed(row.difference),
            row.verdict,
        )
        for row in baseline.cases
    ]
    return (Table("Round 1 with the system prompt and without, with 95 % intervals", tuple(rows)),)


def setting_rows(calibration: Calibration) -> tuple[tuple[str, ...], ...]:
    """The table of every setting, its head first, with the digits that the terminal has."""
    rows: list[tuple[str, ...]] = [
        (
            "method",
            "Pareto front",
            "stability",
            "against none",
            "verdict",
            capability_head(calibration),
            "points lost",
            *HEALTH,
        )
    ]
    for candidate, star in zip(calibration.candidates, front(calibration), strict=True):
        rows.append(_row(calibration, candidate, star))
    return tuple(rows)


def _row(calibration: Calibration, candidate: Candidate, star: bool) -> tuple[str, ...]:
    against, verdict, lost = "", "", ""
    if candidate is not calibration.none:
        gain = calibration.gain(candidate)
        against, lost = signed_to(gain, 3), signed_to(calibration.drop(candidate), 1)
        told = tell(gain)
        verdict = told.word("higher", "lower") + (f": {told.why}" if told.why else "")
    return (
        candidate.method,
        "*" if star else "",
        with_interval(estimate(candidate.stability), lambda number: f"{number:.3f}"),
        against,
        verdict,
        with_interval(estimate(candidate.capability), lambda number: f"{number:.1f}"),
        lost,
        *health_cells(candidate),
    )


def _numbers(calibration: Calibration) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = [
        ("method", "quantity", "round", "n", "mean", "low", "high", "sd")
    ]
    for candidate in calibration.candidates:
        quantities = {
            "stability": estimate(candidate.stability),
            "gain": calibration.gain(candidate),
            "capability": estimate(candidate.capability),
            "points_lost": calibration.drop(candidate),
        }
        for name, value in quantities.items():
            rows.append((candidate.method, name, None, *spread(value).values()))
    for candidate in calibration.candidates:
        for number, column in enumerate(candidate.by_round.T, start=1):
            rows.append((candidate.method, "stability", number, *spread(estimate(column)).values()))
    return rows
