"""Compares one method in two runs: how much its scores differ, in all rules and in groups of them.

For example:

    two series that share 8 pairs of conversations and the rules greet and sign
    -> rows for all rules, for each kind, for greet and for sign: a difference, and a verdict on it
"""

from __future__ import annotations

import numpy as np

from holdfast.analysis import statistics
from holdfast.analysis.shared_series import (
    ComparedRules,
    SharedSeries,
    average_group,
    group_rules,
    prompts_of,
)
from holdfast.analysis.statistics import NOTHING, Estimate, paired_difference
from holdfast.analysis.verdicts import MIN_SAMPLES, verdict_on
from holdfast.records.comparison_summary import MethodComparison, RuleGroupComparison


def compare_series(shared: SharedSeries) -> MethodComparison:
    """Compares all rules together, then kinds, rules and adoption, in this order.

    The verdicts on kinds and rules share the error of one verdict (Bonferroni). A kind with a
    single rule, or with all of them, has no row, as it would repeat another one.
    """
    before = shared.before
    now = shared.now
    groups = []
    for kind in sorted({rule.kind for rule in shared.rules if rule.kind}):
        rules = [rule for rule in shared.rules if rule.kind == kind]
        if 1 < len(rules) < len(shared.rules):
            groups.append(group_rules(shared, "kind", kind, rules))
    if len(shared.rules) > 1:
        groups += [group_rules(shared, "rule", rule.name, [rule]) for rule in shared.rules]
    # rows with fewer conversations get no verdict, so they need no share of the error
    verdicts = 2 * sum(group.conversations >= MIN_SAMPLES for group in groups)
    rows = [_compare_group(shared, shared.all_rules, over_prompts=True)]
    rows += [_compare_group(shared, group, max(1, verdicts)) for group in groups]
    if before.measured("adoption") and now.measured("adoption"):
        adoption = average_group(
            shared,
            "adoption",
            "",
            before.until(shared.rounds).scores("adoption"),
            now.until(shared.rounds).scores("adoption"),
        )
        rows.append(_compare_group(shared, adoption, over_prompts=True))
    return MethodComparison(
        run=now.run,
        against=before.run,
        method=now.method,
        against_method=before.method,
        pairs=shared.pairs,
        prompts=len(prompts_of(now)),
        rounds=tuple(int(number) + 1 for number in shared.all_rules.scored_rounds),
        rows=tuple(rows),
        conversations=len(now.records),
        conversations_before=len(before.records),
    )


def _compare_group(
    shared: SharedSeries, group: ComparedRules, shared_by: int = 1, *, over_prompts: bool = False
) -> RuleGroupComparison:
    """Estimates the difference of the two runs over the rounds scored in both, and in the last of
    these rounds.

    Args:
        shared_by: how many verdicts share the error of one verdict on the comparison.
        over_prompts: whether the difference of pairs also gets an interval that covers other
            prompts. Unpaired conversations have none.
    """
    rounds = group.scored_rounds
    if not len(rounds):
        return RuleGroupComparison(
            grouping=group.grouping,
            group=group.name,
            before=NOTHING,
            now=NOTHING,
            over_rounds=verdict_on(NOTHING),
            last_round=verdict_on(NOTHING),
        )
    before = group.before[:, rounds]
    now = group.now[:, rounds]
    mean_before = statistics.row_means(before)
    mean_now = statistics.row_means(now)
    error = statistics.ERROR  # too few conversations get no verdict, and need no wider interval
    if group.conversations >= MIN_SAMPLES:
        error = min(shared.before.error, shared.now.error) / shared_by
    prompts = shared.now.prompts if over_prompts else None

    def difference(now: np.ndarray, before: np.ndarray) -> Estimate:
        if shared.pairs:
            return paired_difference(now, before, prompts=prompts, error=error)
        return _unpaired_difference(now, before, error)

    return RuleGroupComparison(
        grouping=group.grouping,
        group=group.name,
        before=statistics.estimate(mean_before, statistics.SCORES),
        now=statistics.estimate(mean_now, statistics.SCORES),
        over_rounds=verdict_on(difference(mean_now, mean_before), shared_by),
        last_round=verdict_on(difference(now[:, -1], before[:, -1]), shared_by),
    )


def _unpaired_difference(now: np.ndarray, before: np.ndarray, error: float) -> Estimate:
    """Estimates the difference of two samples, each [conversation] with NaN for a missing score."""
    now = now[~np.isnan(now)]
    before = before[~np.isnan(before)]
    if not len(before) or not len(now):
        return NOTHING
    return statistics.unpaired_difference(now, before, error=error)
