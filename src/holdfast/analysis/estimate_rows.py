"""The tables of a drift run, the source for the terminal, page, figures and summary.json: a row for
each method and measure, category, rule or system prompt. `row_differences` compares rows.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from holdfast.analysis import statistics
from holdfast.analysis.series import ProbeId, Series, category_of
from holdfast.analysis.verdicts import MIN_SAMPLES, SUPPORTED, verdict_on, within
from holdfast.measures.scores import MIN_KEPT_SCORE
from holdfast.records import Conversation

LOW = 0.2  # a rule that certainly scores less counts as never followed
MIN_UNITS = 5  # with fewer conversations, a group has no intervals, and a prompt no rank
# With more prompts than this, rules with the same id share a row, whatever their prompts.
MAX_PROMPTS_APART = 6


@dataclass(frozen=True, eq=False)
class EstimateRow:
    """One measure under one method, over all conversations or those of a category or rule.

    Args:
        series: the conversations of the method.
        measure: one of `MEASURED`.
        values: [conversation, round], NaN where not measured.
        members: [conversation] bool, whether it belongs to the group.
        group: the name of the category or rule; "" for all conversations.
        case: the rule's prompt; None for any prompt, and in rows of other groups.
        rule: the rule's id; "" in rows of other groups.
        by_probe: the scores of each probe, in matrices like `values`; empty for a single one.
    """

    series: Series
    measure: str
    values: np.ndarray
    members: np.ndarray
    group: str = ""
    case: str | None = None
    rule: str = ""
    by_probe: statistics.ByProbe = field(default_factory=dict)

    @property
    def n(self) -> int:
        """How many conversations the group has."""
        return int(self.members.sum())

    @property
    def prompts(self) -> list[str] | None:
        """The prompts that the interval for other prompts resamples.

        None in rows of rules, which have no such interval.
        """
        return None if self.rule else self.series.prompts

    @functools.cached_property
    def points(self) -> list[statistics.Estimate]:
        """The estimate of each round."""
        return statistics.estimate_columns(
            self.values[self.members], statistics.SCORES, self.series.error
        )

    @property
    def drawn(self) -> list[statistics.Estimate]:
        """The estimate of each round as charts show it: without an interval if the group has fewer
        than `MIN_UNITS` conversations.
        """
        if self.n >= MIN_UNITS:
            return self.points
        return [replace(point, low=None, high=None, decisive=None) for point in self.points]

    @functools.cached_property
    def mean(self) -> statistics.Estimate:
        """The mean over all rounds (the overall stability of Li et al. 2024, section 6.3)."""
        means = statistics.row_means(self.values[self.members])
        return statistics.estimate(means, statistics.SCORES, error=self.series.error)

    @functools.cached_property
    def change(self) -> statistics.Estimate:
        """The change from the first round to the last, on what was judged in both."""
        first, last = self.shared(0, -1)
        return statistics.paired_difference(
            last, first, prompts=self.prompts, error=self.series.error
        )

    @functools.cached_property
    def compared(self) -> tuple[float, float]:
        """The means in the first and the last round of what was judged in both, so that their
        difference is that of `change`; NaN if nothing was.
        """
        return statistics.compared_means(*self.shared(0, -1))

    @property
    def scores(self) -> statistics.ByProbe:
        """The scores of each probe, [conversation, round] each."""
        return self.by_probe or {ProbeId(None, 0): self.values}

    def shared(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the scores in two rounds, [member] each, on what was judged in both.

        Args:
            first, last: the indices of the rounds, from 0; -1 for the last.
        """
        scores = {probe: matrix[self.members] for probe, matrix in self.scores.items()}
        return statistics.shared_means(
            {probe: matrix[:, first] for probe, matrix in scores.items()},
            {probe: matrix[:, last] for probe, matrix in scores.items()},
        )

    @functools.cached_property
    def lower_in_rounds(self) -> tuple[int, ...]:
        """The rounds that are clearly below round 1."""
        changes = enumerate(self._changes_since_round_1, start=1)
        return tuple(number for number, change in changes if verdict_on(change).sign < 0)

    @property
    def lower_from_round(self) -> int | None:
        """The first of `lower_in_rounds` after which all means stay below that of round 1.

        None if the last round is not clearly lower.
        """
        if len(self._changes_since_round_1) not in self.lower_in_rounds:
            return None
        last_return = 0  # the last round whose mean is not below that of round 1
        for number, change in enumerate(self._changes_since_round_1, start=1):
            if change.mean is not None and change.mean >= 0:
                last_return = number
        return min(number for number in self.lower_in_rounds if number > last_return)

    @functools.cached_property
    def _changes_since_round_1(self) -> list[statistics.Estimate]:
        pairs = [self.shared(0, later) for later in range(self.series.rounds)]
        return [
            statistics.paired_difference(scores, first, error=self.series.error)
            for first, scores in pairs
        ]

    @functools.cached_property
    def first_broken_by_round(self) -> list[int]:
        """How many conversations first scored below `MIN_KEPT_SCORE` in each round."""
        first = first_broken(self.values[self.members])
        return [first.count(number) for number in range(1, self.series.rounds + 1)]

    @property
    def kept_throughout(self) -> int:
        """How many conversations never scored below `MIN_KEPT_SCORE`."""
        return self.n - sum(self.first_broken_by_round)

    @property
    def kept_in_any_round(self) -> int:
        """How many conversations scored `MIN_KEPT_SCORE` or more in any round."""
        is_followed = self.values[self.members] >= MIN_KEPT_SCORE  # NaN compares as False
        return int(is_followed.any(axis=1).sum())

    @property
    def never_followed(self) -> bool:
        """Whether the rule is never followed, as `is_never_followed` defines it."""
        return is_never_followed(self.values[self.members], self.series.error)

    @property
    def judge(self) -> str:
        """The model that judges these replies; "" if scores are computed from the text."""
        for record, is_member in zip(self.series.records, self.members, strict=True):
            if not is_member:
                continue
            for probe in record.stability_probes:
                if probe.judge and self.rule in ("", probe.rule):
                    return probe.judge
        return ""


def row_of(series: Series, measure: str) -> EstimateRow:
    """Returns the row of a measure over all conversations."""
    members = np.ones(len(series.records), dtype=bool)
    scores = series.scores(measure)
    return EstimateRow(series, measure, series.values(measure), members, by_probe=scores)


def category_rows(series: Series, kind: str) -> list[EstimateRow]:
    """Returns a row per category of prompts, in alphabetical order: the agent's prompt for
    stability, the user's for adoption.
    """
    names = [category_of(record, kind) for record in series.records]
    row = row_of(series, kind)
    rows = [
        replace(row, members=np.array([category == name for category in names]), group=name)
        for name in sorted({name for name in names if name is not None})
    ]
    return [row for row in rows if not np.isnan(row.values[row.members]).all()]


class _CaseRule(NamedTuple):
    """A rule by its id and that of its prompt."""

    case: str | None  # None for any prompt
    rule: str


def rule_rows(all_series: Sequence[Series]) -> list[EstimateRow]:
    """Returns a row per rule and series, in the order of asking; [] if prompts have no rules.

    A row's group is the rule's id, preceded by its prompt's id if two to `MAX_PROMPTS_APART`
    prompts have rules.
    """
    rules_by_series = {
        series: [_probed_rules(record) for record in series.records] for series in all_series
    }
    rules: list[_CaseRule] = [
        rule
        for rules_by_conversation in rules_by_series.values()
        for conversation in rules_by_conversation
        for rule in conversation
    ]
    prompts = {case for case, _ in rules}
    if len(prompts) > MAX_PROMPTS_APART:
        rules = [_CaseRule(None, rule) for _, rule in rules]
    rows = []
    for case, rule in dict.fromkeys(rules):
        name = f"{case}, {rule}" if case is not None and len(prompts) > 1 else rule
        for series in all_series:
            members = [
                any(rule_id == rule and case in (None, agent) for agent, rule_id in conversation)
                for conversation in rules_by_series[series]
            ]
            scores = _rule_scores(series, case, rule)
            if not scores:
                continue
            values = statistics.means_over_probes(scores)
            if not np.isnan(values).all():
                rows.append(
                    EstimateRow(
                        series, "stability", values, np.array(members), name, case, rule, scores
                    )
                )
    return rows


def _probed_rules(record: Conversation) -> list[_CaseRule]:
    """Returns the rules that were probed, each once."""
    rules = (probe.rule for probe in record.stability_probes if probe.rule)
    return list(dict.fromkeys(_CaseRule(record.agent.id, rule) for rule in rules))


def _rule_scores(series: Series, case: str | None, rule: str) -> dict[ProbeId, np.ndarray]:
    """Returns the scores of a rule's probes, [conversation, round] each; {} if it has none."""
    has_other_prompt = np.array([case not in (None, record.agent.id) for record in series.records])
    return {
        probe: np.where(has_other_prompt[:, None], np.nan, matrix)
        for probe, matrix in series.scores("stability").items()
        if probe.rule == rule
    }


def first_broken(values: np.ndarray) -> list[int]:
    """Returns the first round of each conversation, from 1, that scores below `MIN_KEPT_SCORE`.

    0 if no round does.

    Args:
        values: [conversation, round].
    """
    with np.errstate(invalid="ignore"):
        below = values < MIN_KEPT_SCORE
    return [int(row.argmax()) + 1 if row.any() else 0 for row in below]


def is_never_followed(values: np.ndarray, error: float) -> bool:
    """Whether no conversation ever kept a rule, or its mean is certainly low in every round.

    False for fewer than `MIN_SAMPLES` conversations with a score.

    Args:
        values: the scores of the rule, [conversation, round], NaN where not measured.
    """
    has_score = ~np.isnan(values).all(axis=1)
    if has_score.sum() < MIN_SAMPLES:
        return False
    if not (values >= MIN_KEPT_SCORE).any():  # NaN compares as False
        return True
    return all(map(is_low, statistics.estimate_columns(values, statistics.SCORES, error)))


def is_low(score: statistics.Estimate) -> bool:
    """Whether the whole interval is below `LOW`."""
    return within(score, -math.inf, LOW) == SUPPORTED
