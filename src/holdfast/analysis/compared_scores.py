"""The scores of a group of rules in two runs, and how they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.analysis import statistics
from holdfast.analysis.statistics import NOTHING, Estimate
from holdfast.analysis.verdicts import judged
from holdfast.records.comparison_summary import ComparedRow, RuleGrouping


@dataclass(frozen=True, eq=False)
class GroupScores:
    """The scores of a group of rules in two runs, in the rounds that both have.

    Attributes:
        grouping, group: as in `ComparedRow`.
        before, now: mean scores, [conversation, round], NaN where nothing was scored.
        paired: whether row i of both is a pair.
    """

    grouping: RuleGrouping
    group: str
    before: np.ndarray
    now: np.ndarray
    paired: bool

    @property
    def conversations(self) -> int:
        """How many conversations the comparison rests on: the pairs that have a score in the same
        round of both runs; if the runs are two samples, those with any score in the smaller one.
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
    group: GroupScores, error: float, shared_by: int = 1, prompts: Sequence[str] | None = None
) -> ComparedRow:
    """The difference of the two runs over the rounds scored in both, and in the last of them.

    Args:
        error: the probability that any verdict of the comparison is wrong.
        shared_by: how many verdicts there are; each gets an equal share of `error`.
        prompts: the agent's prompt of each pair, for an interval that also covers other prompts.
    """

    def difference(before: np.ndarray, now: np.ndarray) -> Estimate:
        """The mean difference, given each conversation's score, [conversation]; NaN if missing."""
        if group.paired:
            return statistics.paired_difference(
                now, before, prompts=prompts, error=error / shared_by
            )
        before = before[~np.isnan(before)]
        now = now[~np.isnan(now)]
        if not len(before) or not len(now):
            return NOTHING
        return statistics.unpaired_difference(now, before, error=error / shared_by)

    rounds = group.scored_rounds
    if not len(rounds):
        return ComparedRow(
            grouping=group.grouping,
            group=group.group,
            before=NOTHING,
            now=NOTHING,
            over_rounds=judged(NOTHING),
            last_round=judged(NOTHING),
        )
    before = group.before[:, rounds]
    now = group.now[:, rounds]
    if group.paired:
        missing = np.isnan(before) | np.isnan(now)
        before = np.where(missing, np.nan, before)
        now = np.where(missing, np.nan, now)
    mean_before = statistics.row_means(before)
    mean_now = statistics.row_means(now)
    return ComparedRow(
        grouping=group.grouping,
        group=group.group,
        before=statistics.estimate(mean_before, statistics.SCORES),
        now=statistics.estimate(mean_now, statistics.SCORES),
        over_rounds=judged(difference(mean_before, mean_now), shared_by),
        last_round=judged(difference(before[:, -1], now[:, -1]), shared_by),
    )
