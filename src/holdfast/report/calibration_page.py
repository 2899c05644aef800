"""The page of a calibration."""

from pathlib import Path

from holdfast.analysis.calibration_reading import FOLDERS
from holdfast.analysis.calibration_results import Calibration
from holdfast.analysis.choosing import Pick
from holdfast.analysis.prompt_effect import baseline_beside
from holdfast.analysis.series import read_series
from holdfast.plurals import count_of
from holdfast.records import Run, read_run
from holdfast.report.calibration_sentences import answer_sentences, chance_line
from holdfast.report.calibration_table import (
    detail_lines,
    health_lines,
    setting_rows,
    shared_lines,
    unprompted_lines,
)
from holdfast.report.page import Table, pictures, render_study
from holdfast.report.wording import plain, signed


def calibration_page(calibration: Calibration, choice: Pick, folder: Path, step: str) -> str:
    """The HTML of the page of a calibration.

    Args:
        choice: the setting that is recommended, or why none is.
        folder: has the runs of the calibration and its figures.
        step: the next step; each command in it has a line of its own.
    """
    stability, capability = (read_run(folder / name) for name in FOLDERS)
    headline, *lines = answer_sentences(calibration, choice)
    chance = chance_line(calibration)
    content = {
        "calibration": calibration,
        "chosen": choice,
        "notes": [
            *detail_lines(calibration),
            *shared_lines(calibration),
            *health_lines(calibration),
        ],
        "settings": Table("Every setting, with 95% intervals", setting_rows(calibration)),
        "trade_off": pictures(
            folder, {"trade_off": "Stability against points lost; whiskers are 95% intervals"}
        ),
        "by_round": pictures(
            folder, {"by_round": "Stability by round; whiskers are 95% intervals"}
        ),
        "unprompted": _unprompted_table(stability),
        "unprompted_lines": unprompted_lines(stability),
    }
    return render_study(
        "calibrate",
        headline,
        content,
        runs=dict(zip(FOLDERS, (stability, capability), strict=True)),
        facts=(
            f"{count_of(len(calibration.none.stability), 'conversation')} per setting",
            f"{len(calibration.candidates)} settings",
            calibration.about.capability,
        ),
        lines=(" ".join(lines), f"{chance}." if chance else "", f"Next: {step}"),
    )


def _unprompted_table(run: Run) -> Table | None:
    """The scores of round 1 with and without the system prompt; None if not measured."""
    baseline = baseline_beside(run, read_series(run)[0])
    if baseline is None:
        return None
    unit = "rule" if baseline.by_rule else "prompt"
    rows = [(unit, "n", "with it", "without", "difference", "verdict")]
    for row in baseline.cases:
        scores = (plain(row.prompted), plain(row.unprompted), signed(row.difference))
        rows.append((row.name, str(row.n), *scores, row.verdict))
    return Table("Round 1 with the system prompt and without, with 95% intervals", rows)
