"""The scores of a group of rules in two runs, and how they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from holdfast.analysis import statistics
from holdfast.analysis.statistics import NOTHING, Estimate
from holdfast.analysis.verdicts import Verdict, verdict_on

Grouping = Literal["all", "kind", "rule", "adoption"]


@dataclass(frozen=True, eq=False)
class GroupScores:
    """The scores of a group of rules in two runs, in the rounds that both have.

    Attributes:
        grouping, group: as in `RowComparison`.
        before, now: mean scores, [conversation, round], NaN where nothing was scored.
        paired: whether row i of both is a pair.
    """

    grouping: Grouping
    group: str
    before: np.ndarray
    now: np.ndarray
    paired: bool

    @property
    def conversations(self) -> int:
        """How many conversations the comparison rests on."""
        before, now = ~np.isnan(self.before), ~np.isnan(self.now)
        if self.paired:
            return int((before & now).any(axis=1).sum())
        return min(int(side.any(axis=1).sum()) for side in (before, now))

    @property
    def columns(self) -> np.ndarray:
        """The rounds, from 0, that were scored in both runs, [k]."""
        before, now = (~np.isnan(side).all(axis=0) for side in (self.before, self.now))
        return np.flatnonzero(before & now)

    def compare(
        self, error: float, shared_by: int = 1, prompts: Sequence[str] | None = None
    ) -> RowComparison:
        """The difference of the two runs over these rounds, and in the last of them.

        Args:
            error: the probability with which a verdict on all rows together may be wrong.
            shared_by: how many verdicts share it.
            prompts: of each pair, the agent's prompt, for an interval that holds for others.
        """
        before, now = self.before[:, self.columns], self.now[:, self.columns]
        if not len(self.columns):
            nothing = (NOTHING,) * 4
            return RowComparison(self.grouping, self.group, *nothing, shared_by)
        if self.paired:
            missing = np.isnan(before) | np.isnan(now)
            before, now = (np.where(missing, np.nan, side) for side in (before, now))
        means = [statistics.row_means(side) for side in (before, now)]

        def difference(old: np.ndarray, new: np.ndarray) -> Estimate:
            if self.paired:
                return statistics.paired_difference(
                    new, old, prompts=prompts, error=error / shared_by
                )
            old, new = old[~np.isnan(old)], new[~np.isnan(new)]
            if not len(old) or not len(new):
                return NOTHING
            return statistics.unpaired_difference(new, old, error=error / shared_by)

        return RowComparison(
            self.grouping,
            self.group,
            before=statistics.estimate(means[0], statistics.SCORES),
            now=statistics.estimate(means[1], statistics.SCORES),
            over_rounds=difference(*means),
            last_round=difference(before[:, -1], now[:, -1]),
            shared_by=shared_by,
        )


@dataclass(frozen=True, eq=False)
class RowComparison:
    """A group of rules in one run and in the first.

    Attributes:
        grouping, group: such as "kind" and "closing"; the group of all rules is "".
        before, now: the means over the rounds that both have, in the first run and in this one.
        over_rounds: this run minus the first, over these rounds.
        last_round: the same in the last of them.
        shared_by: how many verdicts share the error of this one.
    """

    grouping: Grouping
    group: str
    before: Estimate
    now: Estimate
    over_rounds: Estimate
    last_round: Estimate
    shared_by: int = 1

    def verdict(self, difference: Estimate) -> Verdict:
        """The verdict on one of the two differences."""
        return verdict_on(difference, self.shared_by)
