"""Phrases that the sentences on a drift run share. None begins or ends with a space."""

import re

from holdfast.analysis.estimates import EstimateRow, row_of
from holdfast.analysis.series import NO_FIX, Series
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.verdicts import INCLUDES_ZERO, verdict_on
from holdfast.report.wording import percent, points


def join_phrases(*phrases: str) -> str:
    """Joins phrases with spaces and leaves out empty ones: 'the agent drifts on this prompt'."""
    return " ".join(phrase for phrase in phrases if phrase)


def with_fix(series: Series) -> str:
    """'with boost:factor=4'; "" without a fix."""
    return "" if series.method == NO_FIX else f"with {series.method}"


def scope_of(series: Series) -> str:
    """'on this prompt' or 'on these 5 prompts'; "" if the change holds for other prompts too."""
    count = len(set(series.prompts))
    if count == 1:
        return "on this prompt"
    change = row_of(series, "stability").change
    others = change.other_prompts
    holds_for_others = others and (others.excludes_zero or not change.excludes_zero)
    has_rules = any(probe.rule for record in series.records for probe in record.probes)
    return "" if holds_for_others and not has_rules else f"on these {count} prompts"


def capitalise(text: str) -> str:
    """The text with a capital first letter; the other letters stay as they are, and so does a path
    or an identifier at its start.
    """
    first_word = text.partition(" ")[0]
    return text if re.search(r"[\w.][/_.]\w|\(", first_word) else text[:1].upper() + text[1:]


def scores_text(row: EstimateRow, *, on_probes: bool = False) -> str:
    """'75% in round 8, down from 95% in round 1', for a row with a mean in both rounds.

    Args:
        on_probes: whether to say that these are scores on probes: '75% on probes in round 8, ...'.
    """
    first = row.points[0].mean
    last = row.points[-1].mean
    assert first is not None and last is not None
    sign = verdict_on(row.change).sign
    before = percent(first)
    now = percent(last)
    if sign and before == now:  # a difference that whole points would hide
        before = f"{100 * first:.1f}%"
        now = f"{100 * last:.1f}%"
    direction = {1: "up from ", -1: "down from ", 0: ""}[sign]
    score = f"{now} on probes" if on_probes else now
    return f"{score} in round {row.series.rounds}, {direction}{before} in round 1"


def could_be_chance(change: Estimate) -> str:
    """'-10 points (95% interval -28 to +8) could be chance', for a change that is no finding."""
    why = verdict_on(change).why
    if change.excludes_zero:
        return f"{points(change)} rests on too little data: {why}"
    if why == INCLUDES_ZERO:  # the reader sees that the interval includes 0
        return f"{points(change)} could be chance"
    return f"{points(change)} could be chance: {why}"
