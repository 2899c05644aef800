"""The sentences on the best fix: what it gains, and which rules it does not save."""

from collections.abc import Sequence

from holdfast.analysis.estimates import EstimateRow, rule_rows
from holdfast.analysis.method_differences import RowDifference, fixes
from holdfast.analysis.outcome import is_lost, is_uninformative
from holdfast.analysis.prompt_effect import Baseline
from holdfast.analysis.series import Series
from holdfast.analysis.verdicts import MIN_SAMPLES, verdict_on
from holdfast.plurals import listing
from holdfast.report.score_phrases import could_be_chance
from holdfast.report.wording import percent, points_apart


def fix(series: Sequence[Series]) -> str | None:
    """Compares the best fix with the first series; None if there is no fix to compare."""
    best = best_fix(series)
    if best is None or best.last.mean is None:
        return None
    last = best.row.points[-1].mean
    assert last is not None  # as it has a difference
    gain = best.last
    methods = len(fixes(series))
    name = best.row.series.method
    if methods > 1:
        name = f"{name}, the highest of {methods} methods over all rounds,"
    scores = f"{percent(last)} in round {best.row.series.rounds}"
    sign = verdict_on(gain).sign
    if sign > 0:
        return f"With {name} it still scores {scores}, {points_apart(gain)}."
    if sign < 0:
        return f"With {name} it only scores {scores}, {points_apart(gain)}."
    if gain.n < MIN_SAMPLES:
        return f"With {name} it scores {scores}; too few conversations to compare."
    if verdict_on(best.mean).sign:
        return (
            f"With {name} it scores {scores}; the difference of {could_be_chance(gain)}, but over"
            f" all rounds it is {points_apart(best.mean)}."
        )
    return f"With {name} it scores {scores}; the difference of {could_be_chance(gain)}."


def best_fix(series: Sequence[Series]) -> RowDifference | None:
    """The most stable method over all rounds in the first run, other than its first method."""
    return max(fixes(series), key=lambda pair: pair.mean.mean or 0.0, default=None)


def still_lost(series: Sequence[Series], baseline: Baseline | None) -> str | None:
    """'Still lost with it: “signs” (20%).'; None if the best fix saves every lost rule.

    Names the rules that are lost without the best fix and, with it, are lost too or score no higher
    in the last round.
    """
    best = best_fix(series)
    if best is None or best.last.mean is None:
        return None
    scores_without = {
        (row.case, row.rule): row.points[-1].mean or 0.0
        for row in rule_rows([series[0]])
        if _is_not_kept(row) and not is_uninformative(row, baseline)
    }
    names = []
    for row in rule_rows([best.row.series]):
        without = scores_without.get((row.case, row.rule))
        last = row.points[-1].mean
        if without is None or last is None:
            continue
        if last < without:
            names.append(f"“{row.group}” ({percent(last)}, {percent(without)} without)")
        elif _is_not_kept(row) or last == without:
            names.append(f"“{row.group}” ({percent(last)})")
    return f"Still lost with it: {listing(names)}." if names else None


def _is_not_kept(row: EstimateRow) -> bool:
    return row.never_followed or is_lost(row)
