"""The table of a calibration's settings, and the lines below it, as the terminal shows them.

Each setting is a row: its method, a star if no other setting is both more stable and cheaper, its
stability, the difference from no method, its capability and the points of it that are lost.
"""

from typing import NamedTuple

import numpy as np

from holdfast.analysis.calibration_results import MAX_ADDED_BROKEN, Calibration
from holdfast.analysis.choosing import calibrated_settings
from holdfast.analysis.estimate_rows import rule_rows
from holdfast.analysis.prompt_effect import NEVER_FOLLOWED, UNINFORMATIVE, baseline_beside
from holdfast.analysis.series import read_series
from holdfast.records import Run
from holdfast.records.mean_estimate import Judged
from holdfast.records.run_summary import CalibratedSetting
from holdfast.report.baseline_sentences import baseline_hint, baseline_lines
from holdfast.report.calibration_sentences import signed_to
from holdfast.report.wording import (
    ONLY_SHARED,
    aligned,
    mean_text,
    needs_note,
    percent,
    with_interval,
)


class SettingRow(NamedTuple):
    """A setting in the table, as text."""

    method: str
    front: str  # a star if it is on the Pareto front
    stability: str
    against: str  # the difference from no method; "" for no method itself, as the next two
    verdict: str
    capability: str
    points_lost: str
    broken: str
    perplexity: str


def setting_rows(calibration: Calibration, *, full: bool = True) -> list[SettingRow]:
    """The table of every setting, the header first.

    Args:
        full: whether stability and capability have their intervals and verdicts their reasons,
            for which a terminal has no room.
    """
    chance = "" if calibration.chance is None else f" (chance {calibration.chance:.1f})"
    header = SettingRow(
        method="method",
        front="Pareto front",
        stability="stability",
        against="against none",
        verdict="verdict",
        capability=f"capability{chance}",
        points_lost="points lost",
        broken="broken",
        perplexity="perplexity",
    )
    none, *others = calibrated_settings(calibration)
    return [
        header,
        _setting_row(none, full=full),
        *(
            _setting_row(setting, full=full)._replace(
                against=signed_to(setting.gain, 3),
                verdict=_verdict(setting.gain, full=full),
                points_lost=signed_to(setting.points_lost, 1),
            )
            for setting in others
        ),
    ]


def _verdict(gain: Judged, *, full: bool) -> str:
    return f"{gain.verdict}: {gain.why}" if gain.why and full else gain.verdict


def _setting_row(setting: CalibratedSetting, *, full: bool) -> SettingRow:
    """The row of a setting, without the columns that compare it with the model as it is."""
    broken_share = None if setting.broken is None else setting.broken.mean
    write = with_interval if full else mean_text
    return SettingRow(
        method=setting.method,
        front="*" if setting.front else "",
        stability=write(setting.stability, "{:.3f}".format),
        against="",
        verdict="",
        capability=write(setting.capability, "{:.1f}".format),
        points_lost="",
        broken="" if broken_share is None else percent(broken_share),
        perplexity="" if setting.perplexity is None else f"{setting.perplexity:.1f}",
    )


def table(calibration: Calibration) -> str:
    """The table for the terminal: every setting, with a star if it is on the Pareto front."""
    header, *rows = setting_rows(calibration, full=False)
    header = header._replace(front="", verdict="")
    lines = aligned([_star_first(row) for row in (header, *rows)])
    count = len(calibration.none.stability)
    if calibration.about.plan.conversations is None:
        sizes = f"{count} conversations per setting, 95% intervals for these prompts only."
    else:
        sizes = f"{count} conversations per setting, 95% intervals."
    legend = (
        f"{sizes} * no setting is both more stable and cheaper. Points are {calibration.unit} on"
        f" {calibration.about.capability}."
    )
    return "\n".join([*lines, legend, *shared_lines(calibration), *health_lines(calibration)])


def shared_lines(calibration: Calibration) -> list[str]:
    """Says what differences count, if some are not those of the means in the table; or []."""
    without = float(np.nanmean(calibration.none.stability))
    if any(
        needs_note(
            calibration.gain(candidate), float(np.nanmean(candidate.stability)), without, 0.0005
        )
        for candidate in calibration.candidates[1:]
    ):
        return [ONLY_SHARED]
    return []


def _star_first(row: SettingRow) -> tuple[str, ...]:
    """The cells of a row with the star in the first column."""
    method, star, *others = row
    return star, method, *others


def health_lines(calibration: Calibration) -> list[str]:
    """Explains the columns on broken replies and perplexity, and lists the settings they rule out.

    Returns [] if these were not measured.
    """
    if calibration.none.broken is None:
        return []
    lines = [
        "Broken: replies that are empty, loop, or are gibberish. Perplexity: of the replies, under"
        " the model without a method."
    ]
    breaking = [
        f"{candidate.method} ({signed_to(calibration.added_broken(candidate), 0)} points)"
        for candidate in calibration.candidates[1:]
        if calibration.breaks_replies(candidate)
    ]
    if breaking:
        lines.append(
            "Not recommended, even if they raise stability, because they clearly break over"
            f" {MAX_ADDED_BROKEN} points more replies than no method: {', '.join(breaking)}."
        )
    return lines


def detail_lines(calibration: Calibration) -> list[str]:
    """The tokens spent on capability; how it is averaged, if dialogs differ in questions."""
    tokens = sum(candidate.tokens for candidate in calibration.candidates)
    lines = [f"{tokens:,} tokens forwarded for {calibration.about.capability}."]
    questions = calibration.questions
    count = len(calibration.none.stability)
    quotient = questions // count
    if quotient and questions % count:
        lines.append(
            f"Each setting was asked {questions} questions, {quotient} or {quotient + 1} in each of"
            f" its {count} conversations; capability is the mean over conversations."
        )
    return lines


def unprompted_lines(run: Run) -> list[str]:
    """Names the prompts or rules that score as well without the system prompt.

    If that was not measured, suggests how to measure it; [] for a suite without rules.
    """
    first = read_series(run)[0]
    baseline = baseline_beside(run, first)
    if baseline is None:
        rules = rule_rows([first])
        return [baseline_hint(rules)] if rules else []
    lines = baseline_lines(baseline, by_case=True)
    if any(row.verdict in (NEVER_FOLLOWED, UNINFORMATIVE) for row in baseline.cases):
        lines.append(
            "They still count in every stability here; leave them out of the suite, or give them"
            " other probes or measures, and calibrate with another --out."
        )
    return lines
