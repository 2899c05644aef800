"""Two runs under one method: which conversations and rules are compared, and how scores differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from holdfast.analysis import statistics
from holdfast.analysis.series import Series
from holdfast.analysis.statistics import NOTHING, Estimate, cell_means
from holdfast.analysis.verdicts import MIN_SAMPLES, Verdict, verdict_on
from holdfast.records import Conversation, Probe

Grouping = Literal["all", "kind", "rule", "adoption"]
Cell = tuple[int, int, float]  # a probe's conversation and round, both from 0, and its score


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


# --- What is compared


@dataclass(frozen=True, eq=False)
class SharedSeries:
    """The conversations and rules of two series that are compared.

    Attributes:
        before, now: the conversations, in the first run and in this one; row i of both is a pair,
            unless `pairs` is 0.
        pairs: how many pairs there are; 0 if the series are two independent samples.
        rules: those that have scores in both series.
    """

    before: Series
    now: Series
    pairs: int
    rules: tuple[RuleKey, ...]

    @classmethod
    def of(cls, before: Series, now: Series, same_seed: bool) -> SharedSeries:
        """The conversations of the prompts that both series have, and the rules of both.

        They are pairs if the runs have the same seed, and half of those of the smaller series have
        a partner that began alike.
        """
        prompts = {r.agent.id for r in before.records} & {r.agent.id for r in now.records}
        old, new = _rows_by_start(before, prompts), _rows_by_start(now, prompts)
        both = [start for start in old if start in new]
        are_pairs = same_seed and 2 * len(both) >= min(len(old), len(new))
        old_rows, new_rows = list(old.values()), list(new.values())
        if are_pairs:
            old_rows, new_rows = ([rows[start] for start in both] for rows in (old, new))
        has_score = rules_of(now)
        return cls(
            before.rows(np.array(old_rows, dtype=int)),
            now.rows(np.array(new_rows, dtype=int)),
            pairs=len(both) if are_pairs else 0,
            rules=tuple(rule for rule in rules_of(before) if rule in has_score),
        )

    @property
    def error(self) -> float:
        """The probability with which a verdict on the comparison may be wrong."""
        return min(self.before.error, self.now.error)

    @property
    def prompts(self) -> Sequence[str] | None:
        """The agent's prompt of each pair, for an interval that holds for others; None without."""
        return self.now.prompts if self.pairs else None

    def scores_of(self, grouping: Grouping, group: str, rules: Sequence[RuleKey]) -> GroupScores:
        """The scores of some of the rules, as one group."""
        before, now = (
            cell_means(
                [cell for rule in rules for cell in cells[rule]],
                (len(series.records), self._rounds),
            )
            for series, cells in zip((self.before, self.now), self._cells, strict=True)
        )
        return GroupScores(grouping, group, before, now, bool(self.pairs))

    @property
    def adoption(self) -> GroupScores | None:
        """The scores of the user's rules; None if one of the series has none."""
        if not (self.before.measured("adoption") and self.now.measured("adoption")):
            return None
        before, now = (item.adoption[:, : self._rounds] for item in (self.before, self.now))
        return GroupScores("adoption", "", before, now, bool(self.pairs))

    @property
    def _rounds(self) -> int:
        return min(self.before.rounds, self.now.rounds)

    @cached_property
    def _cells(self) -> list[dict[RuleKey, list[Cell]]]:
        """By series, the probes of the rounds of both, by rule."""
        return [_cells_by_rule(series, self._rounds) for series in (self.before, self.now)]


def _cells_by_rule(series: Series, rounds: int) -> dict[RuleKey, list[Cell]]:
    cells: dict[RuleKey, list[Cell]] = defaultdict(list)
    for row, record in enumerate(series.records):
        for probe in record.stability_probes:
            if probe.round <= rounds:
                cells[_key(record, probe)].append((row, probe.round - 1, probe.score))
    return cells


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


# --- How scores differ


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


def compare_rows(shared: SharedSeries) -> list[RowComparison]:
    """All rules together, then kinds, rules and adoption, in this order.

    The verdicts on kinds and rules share the error of one (Bonferroni).
    """
    groups = [
        shared.scores_of("kind", kind, [rule for rule in shared.rules if rule.kind == kind])
        for kind in sorted({rule.kind for rule in shared.rules if rule.kind})
    ]
    if len(shared.rules) > 1:
        groups += [shared.scores_of("rule", rule.name, [rule]) for rule in shared.rules]
    # of rows with fewer conversations there is no verdict to be wrong about
    verdicts = 2 * sum(group.conversations >= MIN_SAMPLES for group in groups)
    rows = [shared.scores_of("all", "", shared.rules).compare(shared.error, prompts=shared.prompts)]
    rows += [group.compare(shared.error, max(1, verdicts)) for group in groups]
    if (adoption := shared.adoption) is not None:
        rows.append(adoption.compare(shared.error, prompts=shared.prompts))
    return rows
