"""The sentences on the best fix: what it gains, and which rules it does not save."""

import functools
from collections.abc import Sequence

import numpy as np

from holdfast.analysis.estimate_rows import EstimateRow, rule_rows
from holdfast.analysis.outcome import is_lost, is_uninformative
from holdfast.analysis.row_differences import RowDifference, compare_rows, fixes
from holdfast.analysis.series import Series
from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.plurals import count_of, listing
from holdfast.records.drift_summary import Baseline
from holdfast.report.score_phrases import could_be_chance
from holdfast.report.wording import needs_note, percent, points, points_apart


def fix_sentence(all_series: Sequence[Series]) -> str | None:
    """Compares the best fix with the first series; None if there is no fix to compare."""
    best = best_fix(all_series)
    if best is None or best.last_round.mean is None:
        return None
    gain = best.last_round
    methods = len(fixes(all_series))
    name = best.row.series.method
    if methods > 1:
        name = (
            f"{name}, the highest of {methods} methods over all rounds{_sample_phrase(all_series)},"
        )
    last_score = best.row.points[-1].mean
    assert last_score is not None  # as it has a difference
    round_name = f"round {best.row.series.rounds}"
    if needs_note(gain, last_score, best.against.points[-1].mean):
        return _shared_fix_sentence(best, name, round_name)
    scores = f"{percent(last_score)} in {round_name}"
    sign = gain.sign
    if sign > 0:
        return f"With {name} it still scores {scores}, {points_apart(gain)}."
    if sign < 0:
        return f"With {name} it only scores {scores}, {points_apart(gain)}."
    if gain.n < MIN_SAMPLES:
        return f"With {name} it scores {scores}; too few conversations to compare."
    if best.over_all_rounds.sign:
        return (
            f"With {name} it scores {scores}; the difference of {could_be_chance(gain)}, but over"
            f" all rounds it is {points_apart(best.over_all_rounds)}."
        )
    return f"With {name} it scores {scores}; the difference of {could_be_chance(gain)}."


def _shared_fix_sentence(best: RowDifference, name: str, round_name: str) -> str:
    """The sentence on a fix whose score would mislead, as not all that was judged under one method
    was judged under the other: only the difference.
    """
    gain = best.last_round
    condition = "counting only what was judged under both"
    if gain.sign:
        text = f"With {name} it scores {points_apart(gain)} in {round_name}, {condition}"
    elif gain.n < MIN_SAMPLES:
        text = (
            f"With {name} its score in {round_name} differs by {points(gain)}, {condition}; too few"
            " conversations to compare"
        )
    else:
        text = (
            f"With {name} the difference in {round_name}, {condition}, of {could_be_chance(gain)}"
        )
        if best.over_all_rounds.sign:
            text += f", but over all rounds it is {points_apart(best.over_all_rounds)}"
    return f"{text}."


def best_fix(all_series: Sequence[Series]) -> RowDifference | None:
    """The most stable method in the first run, other than its first method: the one that gains most
    over all rounds of the conversations that all of them have.
    """
    pairs = fixes(all_series)
    # all pairs count if the methods have no conversation in common
    on_shared = fixes(_shared_conversations(all_series)) or pairs
    gains = {pair.row.series.method: pair.over_all_rounds.mean or 0.0 for pair in on_shared}
    return max(pairs, key=lambda pair: gains.get(pair.row.series.method, -1.0), default=None)


def _shared_conversations(all_series: Sequence[Series]) -> list[Series]:
    """The methods of the first run, in the conversations that all of them have."""
    series_of_run = [series for series in all_series if series.run == all_series[0].run]
    numbers = functools.reduce(np.intersect1d, [series.conversations for series in series_of_run])
    return [series.rows(np.isin(series.conversations, numbers)) for series in series_of_run]


def _sample_phrase(all_series: Sequence[Series]) -> str:
    """' of the 12 conversations that all have'.

    "" if no method has others, or if none are shared.
    """
    count = len(_shared_conversations(all_series)[0].records)
    has_others = any(
        len(series.records) > count for series in all_series if series.run == all_series[0].run
    )
    if not count or not has_others:
        return ""
    return f" of the {count_of(count, 'conversation')} that all have"


def still_lost_sentence(all_series: Sequence[Series], baseline: Baseline | None) -> str | None:
    """'Still lost with it: “signs” (20%).'; None if the best fix saves every lost rule.

    Names the rules that are lost without the best fix and, with it, are lost too or score no higher
    in the last round.
    """
    best = best_fix(all_series)
    if best is None or best.last_round.mean is None:
        return None
    rows_without = {
        (row.case, row.rule): row
        for row in rule_rows([all_series[0]])
        if _is_not_kept(row) and not is_uninformative(row, baseline)
    }
    names = []
    for row in rule_rows([best.row.series]):
        row_without = rows_without.get((row.case, row.rule))
        pair = compare_rows(row, row_without) if row_without else None
        if pair is None or pair.last_round.mean is None:
            continue
        score, score_without = pair.compared
        if score < score_without:
            names.append(f"“{row.group}” ({percent(score)}, {percent(score_without)} without)")
        elif _is_not_kept(row) or score == score_without:
            names.append(f"“{row.group}” ({percent(score)})")
    return f"Still lost with it: {listing(names)}." if names else None


def _is_not_kept(row: EstimateRow) -> bool:
    return row.never_followed or is_lost(row)
