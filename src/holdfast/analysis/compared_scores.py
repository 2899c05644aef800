"""Two runs under one method: which conversations and rules are compared, and how scores differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Literal

import numpy as np

from holdfast.analysis import statistics
from holdfast.analysis.series import Series
from holdfast.analysis.statistics import NOTHING, Estimate
from holdfast.analysis.verdicts import MIN_SAMPLES, Verdict, verdict_on
from holdfast.records import Conversation, Probe

Grouping = Literal["all", "kind", "rule", "adoption"]
Cell = tuple[int, int, float]  # a probe's conversation and round, both from 0, and its score


# --- Conversations


@dataclass(frozen=True, eq=False)
class ComparedConversations:
    """The conversations of two series that are compared: pairs in the same order, or all of both.

    Attributes:
        before, now: row numbers in each series, [n] and [m]; n = m, and row i of both is a pair,
            unless `pairs` is 0.
        pairs: how many pairs there are; 0 if the series are two independent samples.
    """

    before: np.ndarray
    now: np.ndarray
    pairs: int

    @classmethod
    def of(cls, before: Series, now: Series, same_seed: bool) -> ComparedConversations:
        """The conversations of the prompts that both series have.

        They are pairs if the runs have the same seed, and half of those of the smaller series have
        a partner that began alike.
        """
        prompts = {r.agent.id for r in before.records} & {r.agent.id for r in now.records}
        old, new = _rows_by_start(before, prompts), _rows_by_start(now, prompts)
        both = [start for start in old if start in new]
        if same_seed and 2 * len(both) >= min(len(old), len(new)):
            return cls(
                np.array([old[start] for start in both], dtype=int),
                np.array([new[start] for start in both], dtype=int),
                pairs=len(both),
            )
        return cls(
            np.array([*old.values()], dtype=int), np.array([*new.values()], dtype=int), pairs=0
        )


# the number of a conversation, the agent and the user's first words, which a pair shares
_Start = tuple[int, str, str | None]


def _rows_by_start(series: Series, prompts: Set[str]) -> dict[_Start, int]:
    """The rows of the conversations of some prompts, by how they began."""
    return {
        _start(record): row
        for row, record in enumerate(series.records)
        if record.agent.id in prompts
    }


def _start(record: Conversation) -> _Start:
    starter = record.turns[0].text if record.turns else None
    return record.conversation, record.agent.id, starter


# --- Rules


@dataclass(frozen=True, order=True)
class RuleKey:
    """A rule, the same in both runs; its id is "" if it is the only one of its prompt."""

    prompt: str
    rule: str
    kind: str = ""
    polarity: str = ""
    judge: str = ""

    @property
    def name(self) -> str:
        return f"{self.prompt}, {self.rule}" if self.rule else self.prompt


def rules_of(series: Series) -> dict[RuleKey, set[str]]:
    """The rules that have a score, each with the questions that were asked."""
    keys: dict[RuleKey, set[str]] = {}
    for record in series.records:
        for probe in record.stability_probes:
            keys.setdefault(_key(record, probe), set()).add(probe.question)
    return keys


def _key(record: Conversation, probe: Probe) -> RuleKey:
    return RuleKey(
        record.agent.id,
        probe.rule or "",
        probe.rule_kind or "",
        probe.polarity or "",
        probe.judge or "",
    )


# --- Scores


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
        verdict = verdict_on(difference)
        beyond = difference.excludes_zero and difference.n >= MIN_SAMPLES
        if verdict.sign or self.shared_by == 1 or not beyond or difference.deciding is None:
            return verdict
        low, high = difference.deciding
        return Verdict(
            0,
            f"one of {self.shared_by} comparisons needs a wider interval, [{low:+.3f},"
            f" {high:+.3f}], and that includes 0",
        )


def scores_by_rule(series: Series, rounds: int) -> dict[RuleKey, list[Cell]]:
    """The probes of the first rounds, by the rule that they ask about."""
    cells: dict[RuleKey, list[Cell]] = defaultdict(list)
    for row, record in enumerate(series.records):
        for probe in record.stability_probes:
            if probe.round <= rounds:
                cells[_key(record, probe)].append((row, probe.round - 1, probe.score))
    return cells


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
