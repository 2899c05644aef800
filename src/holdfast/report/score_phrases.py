"""Phrases that the sentences on a drift run share."""

from holdfast.analysis.estimates import EstimateRow, row_of
from holdfast.analysis.series import NO_FIX, Series
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.verdicts import INCLUDES_ZERO, verdict_on
from holdfast.report.wording import percent, points


def with_fix(item: Series) -> str:
    """' with boost:factor=4'; "" without a fix."""
    return "" if item.method == NO_FIX else f" with {item.method}"


def scope_of(item: Series) -> str:
    """' on this prompt', ' on these 5 prompts'; "" if the change holds for others as well."""
    count = len(set(item.prompts))
    if count == 1:
        return " on this prompt"
    change = row_of(item, "stability").change
    others = change.other_prompts
    holds = others and (others.excludes_zero or not change.excludes_zero)
    by_rule = any(probe.rule for record in item.records for probe in record.probes)
    return "" if holds and not by_rule else f" on these {count} prompts"


def capitalised(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def shares_text(row: EstimateRow, noun: str = "") -> str:
    """'75% on probes in round 8, down from 95% in round 1'."""
    first = row.points[0].mean
    last = row.points[-1].mean
    sign = verdict_on(row.change).sign
    assert first is not None and last is not None
    before = percent(first)
    now = percent(last)
    if sign and before == now:  # a difference that whole points would hide
        before = f"{100 * first:.1f}%"
        now = f"{100 * last:.1f}%"
    if sign > 0:
        return f"{now}{noun} in round {row.series.rounds}, up from {before} in round 1"
    if sign < 0:
        return f"{now}{noun} in round {row.series.rounds}, down from {before} in round 1"
    return f"{now}{noun} in round {row.series.rounds}, {before} in round 1"


def could_be_chance(change: Estimate) -> str:
    """'-10 points (95% interval -28 to +8) could be chance'."""
    why = verdict_on(change).why
    if change.excludes_zero:
        return f"{points(change)} rests on too little: {why}"
    if why == INCLUDES_ZERO:  # the reader sees that the interval includes 0
        return f"{points(change)} could be chance"
    return f"{points(change)} could be chance: {why}"
