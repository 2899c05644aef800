"""The page of `holdfast calibrate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from holdfast.files import write_whole
from holdfast.records import read_run
from holdfast.report.calibration import Calibration, Pick, Setting, answer, front
from holdfast.report.document import Document, Part, Table, head_facts, pictures
from holdfast.report.downloads import json_file, table_files
from holdfast.report.findings import plain, signed
from holdfast.report.statistics import estimate
from holdfast.report.summary import NAME, SCHEMA, spelled, spread, write_summary

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
            "What may be lost: questions asked in the middle of the same dialogs, or the perplexity"
            " of a text."
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
    parts = (
        Part(
            "trade-off",
            "What each setting gives, and what it costs",
            (
                (
                    f"A point is a {calibration.unit.removesuffix('s')}."
                    if not about["is_text"]
                    else f"Points are {calibration.unit}."
                ),
            ),
            _TERMS,
            pictures(
                folder,
                (("trade_off", "Stability against points lost; whiskers are 95 % intervals"),),
            ),
            (Table("Every setting, with 95 % intervals", _rows(calibration)),),
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
    count = len(calibration.settings[0].stability)
    files = (
        *table_files(
            "settings", "every setting: the numbers of the figures", _numbers(calibration)
        ),
        json_file(NAME, "what the run found, as in its folder", spelled(summary(calibration))),
    )
    facts = head_facts(
        runs[0][1],
        f"{count} conversations per setting",
        f"{len(calibration.settings)} settings",
        about["capability"],
    )
    headline, _, more = answer(calibration, chosen).partition(". ")
    lines = (more,) if more else ()
    return Document(
        "calibrate", f"{headline.rstrip('.')}.", lines, facts, parts, files, tuple(runs)
    )


def write_summaries(calibration: Calibration, folder: Path) -> None:
    """Writes `summary.json` of the calibration and of its two runs."""
    for name in ("stability", "capability"):
        write_summary(folder / name)
    write_whole(folder / NAME, spelled(summary(calibration)))


def summary(calibration: Calibration) -> dict[str, Any]:
    """What the calibration found, as JSON values."""
    settings = [
        {
            "method": setting.method,
            "front": star,
            "stability": spread(estimate(setting.stability)),
            "gain": spread(calibration.gain(setting)),
            "capability": spread(estimate(setting.capability)),
            "points_lost": spread(calibration.drop(setting)),
            "tokens_forwarded": setting.tokens,
        }
        for setting, star in zip(calibration.settings, front(calibration), strict=True)
    ]
    identity = json.loads(json.dumps(calibration.about))
    records = 2 * sum(len(setting.stability) for setting in calibration.settings)
    return {
        "schema": SCHEMA,
        "command": "calibrate",
        "identity": identity,
        "records": records,
        "results": settings,
    }


def _rows(calibration: Calibration) -> tuple[tuple[str, ...], ...]:
    rows = [("method", "Pareto front", "stability", "against none", "capability", "points lost")]
    for setting, star in zip(calibration.settings, front(calibration), strict=True):
        rows.append(_row(calibration, setting, star))
    return tuple(rows)


def _row(calibration: Calibration, setting: Setting, star: bool) -> tuple[str, ...]:
    differences = ("", "")
    if setting is not calibration.settings[0]:
        differences = (signed(calibration.gain(setting)), signed(calibration.drop(setting)))
    capability = plain(estimate(setting.capability))
    return (
        setting.method,
        "*" if star else "",
        plain(estimate(setting.stability)),
        differences[0],
        capability,
        differences[1],
    )


def _numbers(calibration: Calibration) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = [
        ("method", "quantity", "round", "n", "mean", "low", "high", "sd")
    ]
    for row in summary(calibration)["results"]:
        for quantity in ("stability", "gain", "capability", "points_lost"):
            rows.append((row["method"], quantity, None, *row[quantity].values()))
    for setting in calibration.settings:
        for number, column in enumerate(setting.by_round.T, start=1):
            rows.append((setting.method, "stability", number, *spread(estimate(column)).values()))
    return rows
