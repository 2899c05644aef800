"""How well each rule is kept over the turns of logged dialogs, and until when (Kaplan and Meier
1958). The unit is the dialog.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.analysis import sequential, statistics
from holdfast.analysis.first_breaks import estimate_first_break
from holdfast.analysis.rule_scores import RuleScores, read_scores, unjudged_rules
from holdfast.analysis.sequential import FAIL, PASS, UNDECIDED, CheckVerdict
from holdfast.analysis.statistics import SamplePair
from holdfast.analysis.verdicts import too_few, verdict_on
from holdfast.measures.scores import MIN_KEPT_SCORE
from holdfast.records import Run
from holdfast.records.logs_summary import AgainstEarlierLogs, BrokenTurn, LoggedRule
from holdfast.records.mean_estimate import EstimateFrom

TURN_BINS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 33, 65, 129, 257, 513)
TOKEN_BINS = (0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000)


@dataclass(frozen=True)
class _Comparison:
    """The comparison of a rule with earlier logs; the default if there are none."""

    against: AgainstEarlierLogs | None = None
    why_not: str = ""  # why it could not be compared; "" if it was


def adherence(
    run: Run,
    min_adherence: float | None = None,
    error: float = 0.05,
    before: Run | None = None,
    *,
    by_category: bool = False,
) -> list[LoggedRule]:
    """Measures how well each rule is kept.

    Args:
        min_adherence: the mean that a rule must reach; None sets no bar.
        error: upper bound on the probability that any rule gets a false alarm, or passes a bar that
            it does not reach. A fall since `before` may still go unnoticed.
        before: earlier logs to compare with.
        by_category: measure each category of prompts instead of each rule.

    Returns:
        One row per rule that was judged on a turn. With a bar or earlier logs there is also one for
        each rule that could not be judged, because the turns it applies to were cut off: leaving it
        out would look like a pass.
    """
    all_scores = read_scores(run, by_category=by_category)
    # with both a bar and earlier logs, each rule takes two tests
    tests = 1 if min_adherence is None or before is None else 2
    for_probes = set() if by_category else set(run.manifest.probe_rules)
    share = error / max(1, sum(scores.rule not in for_probes for scores in all_scores)) / tests
    if min_adherence is not None or before is not None:
        judged_rules = {scores.rule for scores in all_scores}
        all_scores += unjudged_rules(run, judged_rules, by_category=by_category)
    order = {name: number for number, name in enumerate(run.manifest.rules)}
    all_scores.sort(key=lambda scores: order.get(scores.rule, 0))
    comparisons: dict[str, _Comparison] = {}
    if before is not None:
        comparisons = _compare_with_earlier(all_scores, run, before, share, by_category=by_category)
    rows = []
    for scores in all_scores:
        comparison = comparisons.get(scores.rule, _Comparison())
        row = _measure(scores, share, comparison, for_probes=scores.rule in for_probes)
        rows.append(row.model_copy(update={"verdict": _verdict(row, min_adherence)}))
    return rows


def _compare_with_earlier(
    all_scores: Sequence[RuleScores], run: Run, before: Run, error: float, *, by_category: bool
) -> dict[str, _Comparison]:
    """Compares each rule with earlier logs; returns the comparisons by rule."""
    earlier = {scores.rule: scores for scores in read_scores(before, by_category=by_category)}
    why_not = {scores.rule: _why_uncompared(scores, earlier, run, before) for scores in all_scores}
    comparisons = {rule: _Comparison(why_not=reason) for rule, reason in why_not.items()}
    compared = [scores for scores in all_scores if not why_not[scores.rule]]
    samples = [SamplePair(scores.by_dialog, earlier[scores.rule].by_dialog) for scores in compared]
    results = _against_earlier_logs(samples, error)
    for scores, against in zip(compared, results, strict=True):
        comparisons[scores.rule] = _Comparison(against)
    return comparisons


def _verdict(row: LoggedRule, bar: float | None) -> CheckVerdict | None:
    """Returns pass, fail or undecided; None if there are neither a bar nor earlier logs."""
    if bar is None and row.against is None and not row.uncompared:
        return None
    if row.for_probes:
        return UNDECIDED
    if row.against is not None and row.against.certain < 0:
        return FAIL
    if bar is not None:
        return sequential.verdict_at(bar, *row.bounds)
    # a rule that could not be compared must not be reported as a pass
    return UNDECIDED if row.against is None or too_few(row.against.difference) else PASS


def _why_uncompared(
    scores: RuleScores, earlier: Mapping[str, RuleScores], now: Run, before: Run
) -> str:
    """Says why a rule cannot be compared with earlier logs; "" if it can."""
    if not len(scores.scores):
        return "it was judged on no turn of these logs"
    if scores.rule not in earlier:
        return "the earlier logs have no scores of it"
    measure = now.manifest.rules.get(scores.rule)  # None in folders of version 0.2
    if before.manifest.rules.get(scores.rule, measure) != measure:
        return "it had another measure or `when` in the earlier logs"
    return ""


def _measure(
    scores: RuleScores,
    error: float,
    comparison: _Comparison,
    *,
    for_probes: bool,
) -> LoggedRule:
    """Measures how well a rule is kept; `error` is the probability that its bounds are wrong."""
    means = scores.by_dialog
    # the bets require an order of dialogs that is unrelated to their scores
    bounds = sequential.bounds(np.random.default_rng(0).permutation(means), error)
    order = np.argsort(scores.scores, kind="stable")
    broken_turns = [
        BrokenTurn(int(scores.dialogs[n]), int(scores.positions[n]), float(scores.scores[n]))
        for n in order
        if scores.scores[n] < MIN_KEPT_SCORE
    ]
    return LoggedRule(
        rule=scores.rule,
        applied=len(scores.scores),
        turns=scores.turns,
        adherence=statistics.estimate(means, statistics.SCORES),
        bounds=bounds,
        change=_change(scores),
        by_turn=estimates_from(TURN_BINS, scores.cells(TURN_BINS, scores.positions)),
        by_tokens=estimates_from(TOKEN_BINS, scores.cells(TOKEN_BINS, scores.tokens)),
        first_broken=estimate_first_break(scores),
        broken_turns=len(broken_turns),
        verdict=None,
        for_probes=for_probes,
        against=comparison.against,
        broken=tuple(broken_turns),
        uncompared=comparison.why_not,
    )


def estimates_from(bins: Sequence[int], cells: np.ndarray) -> tuple[EstimateFrom, ...]:
    """Estimates the mean of each bin from the dialogs' mean scores, [dialog, bin].

    Bins without a score are left out.
    """
    estimates = statistics.estimate_columns(cells, statistics.SCORES)
    return tuple(
        EstimateFrom(**vars(item), start=start)
        for start, item in zip(bins, estimates, strict=True)
        if item.n
    )


def _change(scores: RuleScores) -> statistics.Estimate:
    """Estimates the change from a dialog's first score of a rule to its last."""
    num_rules = scores.rules.max(initial=0) + 1
    pairs = scores.dialogs.astype(int) * num_rules + scores.rules
    order = np.argsort(pairs, kind="stable")
    pairs, first, counts = np.unique(pairs[order], return_index=True, return_counts=True)
    several = counts > 1
    last = first + counts - 1  # the scores of a rule in a dialog are now consecutive
    ordered_scores = scores.scores[order]
    changes = ordered_scores[last[several]] - ordered_scores[first[several]]
    _, dialogs = np.unique(pairs[several] // num_rules, return_inverse=True)
    shape = int(dialogs.max(initial=-1)) + 1, 1
    means = statistics.matrix_of_arrays(dialogs, np.zeros(len(dialogs)), changes, shape)
    return statistics.estimate(means[:, 0], statistics.DIFFERENCES)


def _against_earlier_logs(samples: Sequence[SamplePair], error: float) -> list[AgainstEarlierLogs]:
    """Compares, for each rule, the mean scores of its dialogs with those of earlier ones; `error`
    is the probability that `certain` of a rule is wrong.
    """
    error = min(error, statistics.ERROR)
    differences = statistics.unpaired_differences(samples, error=error)
    return [
        AgainstEarlierLogs(
            before=statistics.estimate(baseline, statistics.SCORES),
            difference=difference,
            certain=verdict_on(difference).sign,
        )
        for (_, baseline), difference in zip(samples, differences, strict=True)
    ]
