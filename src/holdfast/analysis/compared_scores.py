"""The scores of a group of rules in two runs, and how they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.analysis import statistics
from holdfast.analysis.statistics import NOTHING, Estimate, paired_difference
from holdfast.analysis.verdicts import with_verdict
from holdfast.records.comparison_summary import RuleGroupComparison, RuleGrouping


@dataclass(frozen=True, eq=False)
class GroupScores:
    """The scores of a group of rules in two runs, in the rounds that both have.

    Attributes:
        grouping, name: such as "kind" and "closing"; the name of the group of all rules is "".
        before, now: mean scores, [conversation, round], NaN where nothing was scored.
        prompts: the agent's prompt of each conversation if row i of both is a pair; None if the
            runs are two samples.
    """

    grouping: RuleGrouping
    name: str
    before: np.ndarray
    now: np.ndarray
    prompts: Sequence[str] | None

    @property
    def paired(self) -> bool:
        return self.prompts is not None

    @property
    def conversations(self) -> int:
        """How many conversations the comparison rests on.

        Of pairs, those with a score in the same round of both runs count. Of two samples, the
        conversations with any score count, in the sample that has fewer of them.
        """
        has_before = ~np.isnan(self.before)
        has_now = ~np.isnan(self.now)
        if self.paired:
            return int((has_before & has_now).any(axis=1).sum())
        return min(int(has_before.any(axis=1).sum()), int(has_now.any(axis=1).sum()))

    @property
    def scored_rounds(self) -> np.ndarray:
        """The rounds, from 0, that were scored in both runs, [k]."""
        in_before = ~np.isnan(self.before).all(axis=0)
        in_now = ~np.isnan(self.now).all(axis=0)
        return np.flatnonzero(in_before & in_now)


def compare_group(
    group: GroupScores, alpha: float, shared_by: int = 1, *, over_prompts: bool = False
) -> RuleGroupComparison:
    """Estimates the difference of the two runs over the rounds scored in both, and in the last of
    these rounds.

    Args:
        alpha: the probability that any verdict of the comparison is wrong.
        shared_by: how many verdicts there are; each gets an equal share of `alpha`.
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
            over_rounds=with_verdict(NOTHING),
            last_round=with_verdict(NOTHING),
        )
    before, now = _compared_scores(group, rounds)
    mean_before = statistics.row_means(before)
    mean_now = statistics.row_means(now)
    error = alpha / shared_by
    prompts = group.prompts if over_prompts else None
    if group.paired:
        over_rounds = paired_difference(mean_now, mean_before, prompts=prompts, error=error)
        last_round = paired_difference(now[:, -1], before[:, -1], prompts=prompts, error=error)
    else:
        over_rounds = _unpaired_difference(mean_now, mean_before, error)
        last_round = _unpaired_difference(now[:, -1], before[:, -1], error)
    return RuleGroupComparison(
        grouping=group.grouping,
        group=group.name,
        before=statistics.estimate(mean_before, statistics.SCORES),
        now=statistics.estimate(mean_now, statistics.SCORES),
        over_rounds=with_verdict(over_rounds, shared_by),
        last_round=with_verdict(last_round, shared_by),
    )


def _compared_scores(group: GroupScores, rounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The scores before and now in some rounds; of pairs, only those that both runs have."""
    before = group.before[:, rounds]
    now = group.now[:, rounds]
    if not group.paired:
        return before, now
    missing = np.isnan(before) | np.isnan(now)
    return np.where(missing, np.nan, before), np.where(missing, np.nan, now)


def _unpaired_difference(now: np.ndarray, before: np.ndarray, error: float) -> Estimate:
    """Estimates the difference of two samples, each [conversation] with NaN for a missing score."""
    now = now[~np.isnan(now)]
    before = before[~np.isnan(before)]
    if not len(before) or not len(now):
        return NOTHING
    return statistics.unpaired_difference(now, before, error=error)
