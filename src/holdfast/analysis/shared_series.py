"""The conversations and rules that the series of two runs share.

For example:

    rules greet and sign before, greet and price now  -> SharedSeries(rules=(greet,), ...)
    conversations 0 to 7 before, 0 to 11 now, of the same seed -> 8 pairs
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from holdfast.analysis.series import Series
from holdfast.analysis.statistics import (
    ByProbe,
    MatrixEntry,
    matrix_of,
    means_over_probes,
    shared_means,
)
from holdfast.records import Conversation, Probe
from holdfast.records.comparison_summary import RuleGrouping


@dataclass(frozen=True, order=True)
class RuleKey:
    """A rule; two runs share it if all fields are the same. `rule` is its id, or "" if it is the
    only rule of its prompt.
    """

    prompt: str
    rule: str
    kind: str = ""
    polarity: str = ""
    judge: str = ""

    @property
    def id(self) -> tuple[str, str]:
        """Its prompt and its id, which identify it even if its kind, polarity or judge changed."""
        return self.prompt, self.rule

    @property
    def name(self) -> str:
        """'baker, signs'; only the prompt if it has one rule."""
        return f"{self.prompt}, {self.rule}" if self.rule else self.prompt


class _Opening(NamedTuple):
    """The beginning of a conversation, which the two of a pair have in common."""

    conversation: int
    agent: str
    starter: str | None  # the user's first words


@dataclass(frozen=True, eq=False)
class ComparedRules:
    """The scores of a group of rules in both series, [conversation, round]; NaN where nothing was
    scored. The means of a pair are over the rules that were judged in this round of both.
    """

    grouping: RuleGrouping
    name: str
    before: np.ndarray
    now: np.ndarray

    @property
    def conversations(self) -> int:
        """How many conversations with a score the comparison rests on: pairs, or the conversations
        of the sample that has fewer of them.
        """
        has_before = ~np.isnan(self.before).all(axis=1)
        has_now = ~np.isnan(self.now).all(axis=1)
        return min(int(has_before.sum()), int(has_now.sum()))

    @property
    def scored_rounds(self) -> np.ndarray:
        """The rounds, from 0, that were scored in both runs, [k]."""
        scored_before = ~np.isnan(self.before).all(axis=0)
        scored_now = ~np.isnan(self.now).all(axis=0)
        return np.flatnonzero(scored_before & scored_now)


@dataclass(frozen=True, eq=False)
class SharedSeries:
    """The conversations and rules of two series that are compared.

    Attributes:
        before, now: the conversations, in the first run and in this one; row i of both is a pair,
            unless `pairs` is 0.
        pairs: how many pairs there are; 0 if the series are two independent samples.
        rules: the rules that have scores in both series.
    """

    before: Series
    now: Series
    pairs: int
    rules: tuple[RuleKey, ...]

    @classmethod
    def of(cls, before: Series, now: Series, *, same_seed: bool) -> SharedSeries:
        """Finds the rules that both series have, and the conversations of the prompts in both.

        The conversations are paired if the runs have the same seed, and at least half of those in
        the smaller series have a partner that began alike.
        """
        prompts = set(prompts_of(before)) & set(prompts_of(now))
        rows_before = _rows_by_start(before, prompts)
        rows_now = _rows_by_start(now, prompts)
        shared_starts = [start for start in rows_before if start in rows_now]
        are_pairs = same_seed and 2 * len(shared_starts) >= min(len(rows_before), len(rows_now))
        if are_pairs:
            rows_before = {start: rows_before[start] for start in shared_starts}
            rows_now = {start: rows_now[start] for start in shared_starts}
        has_score = rules_of(now)
        return cls(
            before.rows(np.array(list(rows_before.values()), dtype=int)),
            now.rows(np.array(list(rows_now.values()), dtype=int)),
            pairs=len(shared_starts) if are_pairs else 0,
            rules=tuple(rule for rule in rules_of(before) if rule in has_score),
        )

    @property
    def rounds(self) -> int:
        """How many rounds both series have."""
        return min(self.before.rounds, self.now.rounds)

    def drawn(self) -> tuple[Series, Series]:
        """Returns both series with only the scores that are compared, for a figure."""
        rounds = self.all_rules.scored_rounds
        return (
            _with_scores(self.before, self.all_rules.before, rounds),
            _with_scores(self.now, self.all_rules.now, rounds),
        )

    @cached_property
    def all_rules(self) -> ComparedRules:
        """All shared rules as one group."""
        return group_rules(self, "all", "", self.rules)

    @cached_property
    def scores_before(self) -> Mapping[RuleKey, ByProbe]:
        """The scores of each rule in the first run, by question, [conversation, round] each."""
        return _scores_by_rule(self.before, self.rules, self.rounds)

    @cached_property
    def scores_now(self) -> Mapping[RuleKey, ByProbe]:
        """Likewise in this run."""
        return _scores_by_rule(self.now, self.rules, self.rounds)


def rules_of(series: Series) -> dict[RuleKey, set[str]]:
    """Returns the rules that have a score, each with the questions that were asked."""
    rules: dict[RuleKey, set[str]] = {}
    for record in series.records:
        for probe in record.stability_probes:
            rules.setdefault(_rule_key(record, probe), set()).add(probe.question)
    return rules


def prompts_of(series: Series) -> list[str]:
    """Returns the ids of the agents' prompts."""
    return list(dict.fromkeys(record.agent.id for record in series.records))


def _rule_key(record: Conversation, probe: Probe) -> RuleKey:
    return RuleKey(
        prompt=record.agent.id,
        rule=probe.rule or "",
        kind=probe.rule_kind or "",
        polarity=probe.polarity or "",
        judge=probe.judge or "",
    )


def _scores_by_rule(
    series: Series, rules: Sequence[RuleKey], rounds: int
) -> dict[RuleKey, dict[int, np.ndarray]]:
    """Returns the scores of each rule, by question, [conversation, round] each."""
    entries: dict[tuple[RuleKey, int], list[MatrixEntry]] = defaultdict(list)
    entries |= {(rule, 0): [] for rule in rules}  # some have scores in other rounds only
    for row, record in enumerate(series.records):
        for probe in record.stability_probes:
            if probe.round <= rounds:
                entry = MatrixEntry(row, probe.round - 1, probe.score)
                entries[_rule_key(record, probe), probe.probe].append(entry)
    scores_by_rule: dict[RuleKey, dict[int, np.ndarray]] = defaultdict(dict)
    for (rule, index), scores in entries.items():
        scores_by_rule[rule][index] = matrix_of(scores, (len(series.records), rounds))
    return scores_by_rule


def _rows_by_start(series: Series, prompts: Set[str]) -> dict[_Opening, int]:
    """Returns the rows of the conversations of some prompts, by how they began."""
    return {
        _opening_of(record): row
        for row, record in enumerate(series.records)
        if record.agent.id in prompts
    }


def _opening_of(record: Conversation) -> _Opening:
    starter = record.turns[0].text if record.turns else None
    return _Opening(record.conversation, record.agent.id, starter)


def group_rules(
    shared: SharedSeries, grouping: RuleGrouping, name: str, rules: Sequence[RuleKey]
) -> ComparedRules:
    """Returns the scores of some of the rules as one group."""
    before, now = (
        {(rule, index): matrix for rule in rules for index, matrix in scores[rule].items()}
        for scores in (shared.scores_before, shared.scores_now)
    )
    return average_group(shared, grouping, name, before, now)


def average_group(
    shared: SharedSeries, grouping: RuleGrouping, name: str, before: ByProbe, now: ByProbe
) -> ComparedRules:
    """Averages the scores of probes; of pairs, only the probes that were judged in both."""
    if shared.pairs:
        means_before, means_now = shared_means(before, now)
    else:
        means_before, means_now = means_over_probes(before), means_over_probes(now)
    return ComparedRules(grouping, name, means_before, means_now)


def _with_scores(series: Series, scores: np.ndarray, rounds: np.ndarray) -> Series:
    """Returns the series with only the scores that are compared, in these rounds."""
    no_scores = np.full_like(scores, np.nan)
    stability = no_scores.copy()
    stability[:, rounds] = scores[:, rounds]
    matrices = {"stability": stability, "adoption": no_scores, "mass": no_scores}
    return replace(series, matrices=matrices, by_probe={})
