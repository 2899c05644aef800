"""The rows of the loss map: two scores of a group of rules, compared.

    1.00 in round 1, 0.71 in the last quarter of the rounds
    -> LossRow(grouping="kind", group="closing", change=-0.29, verdict="falls", ...)

The unit is the conversation, which counts with the mean over its probes in the group that were
judged on both sides of the comparison.
"""

import math
from collections.abc import Callable
from enum import StrEnum
from typing import Literal

import numpy as np

from holdfast.analysis.estimate_rows import is_never_followed
from holdfast.analysis.outcome import MATTERS
from holdfast.analysis.series import Series, scores_by_probe
from holdfast.analysis.statistics import (
    SCORES,
    ByProbe,
    Estimate,
    estimate,
    paired_difference,
    row_means,
    shared_means,
)
from holdfast.analysis.verdicts import SUPPORTED, verdict_on, within
from holdfast.records import Probe
from holdfast.records.model import Optional, RecordModel

_LATE_SHARE = 0.25  # the share of the rounds that counts as the end of a conversation
LossVerdict = Literal["falls", "rises", "holds", "never followed", "cannot tell"]


class Grouping(StrEnum):
    """How probes are grouped."""

    ALL = "all rules"
    KIND = "kind"
    POLARITY = "polarity"
    SIZE = "rules in the prompt"
    ROUNDS = "rounds"
    LENGTH = "tokens before, about"
    PRESSURE = "last message"
    ADOPTION = "adoption"


class LossRow(RecordModel):
    """How a group of rules fares under one method.

    What `first` and `last` compare depends on the grouping. Rounds and lengths: round 1, and the
    probes of the group. Pressures: probes after an ordinary message, and after a message with this
    pressure. All others, among them adoption, which is about the rules of the user's prompt: round
    1, and the last quarter of the rounds.

    Attributes:
        grouping, group: such as "kind" and "closing".
        rules: how many different rules of prompts are in it.
        first, last: the two mean scores that are compared, over the rules that each conversation
            has on both sides.
        change: last minus first, paired by conversation.
        verdict: on the change; "holds" if it is certainly within 10 points, and "never followed"
            if the rules are so on both sides (`is_never_followed`).
        falls_from: only for a kind that falls: the first round that is certainly below round 1, or
            else the first of the last quarter.
    """

    method: str
    grouping: Grouping
    group: str
    rules: int
    first: Estimate
    last: Estimate
    change: Estimate
    verdict: LossVerdict
    falls_from: Optional[int] = None


def late_row(
    series: Series, grouping: Grouping, group: str, is_counted: Callable[[Probe], bool]
) -> LossRow:
    """Compares the probes that count in the last quarter of the rounds with those in round 1."""
    scores = scores_by_probe(series.records, series.rounds, is_counted)
    rules = {
        (record.agent.id, probe.rule)
        for record in series.records
        for probe in filter(is_counted, record.probes)
    }
    rounds = np.arange(series.rounds)
    last = means_in(scores, rounds >= series.rounds - _late_rounds(series))
    return compare_scores(series, grouping, group, len(rules), scores_in_round_1(scores), last)


def _late_rounds(series: Series) -> int:
    """Returns how many rounds the last quarter has."""
    return max(1, math.ceil(_LATE_SHARE * series.rounds))


def kind_row(series: Series, kind: str) -> LossRow:
    """Returns the row of a kind of rule; if it falls, with the round from which it does."""
    row = late_row(series, Grouping.KIND, kind, select_rules(kind))
    if row.verdict != "falls":
        return row
    return row.model_copy(update={"falls_from": _falls_from(series, kind)})


def _falls_from(series: Series, kind: str) -> int:
    """Returns the first round whose scores are certainly below those of round 1, or else the first
    round of the last quarter. The tests of all rounds share the error of one verdict.
    """
    scores = scores_by_probe(series.records, series.rounds, select_rules(kind))
    pairs = {
        number: shared_means(
            scores_in_round_1(scores),
            {probe: matrix[:, number - 1] for probe, matrix in scores.items()},
        )
        for number in range(2, series.rounds + 1)
    }
    measured_pairs = {number: pair for number, pair in pairs.items() if not np.isnan(pair[0]).all()}
    for number, (first, later) in measured_pairs.items():
        change = paired_difference(later, first, error=series.error / len(measured_pairs))
        if verdict_on(change).sign < 0:
            return number
    return series.rounds - _late_rounds(series) + 1


def compare_scores(
    series: Series,
    grouping: Grouping,
    group: str,
    rules: int,
    first: ByProbe,
    last: ByProbe,
) -> LossRow:
    """Compares two scores of each probe, [conversation] each; NaN where a score is missing."""
    before, after = shared_means(first, last)
    change = paired_difference(after, before, error=series.error)
    return LossRow(
        method=series.method,
        grouping=grouping,
        group=group,
        rules=rules,
        first=estimate(before, SCORES, error=series.error),
        last=estimate(after, SCORES, error=series.error),
        change=change,
        verdict=_verdict(before, after, change, series.error),
    )


def _verdict(before: np.ndarray, after: np.ndarray, change: Estimate, error: float) -> LossVerdict:
    is_within = within(change, -MATTERS, MATTERS) == SUPPORTED
    sign = verdict_on(change).sign
    if sign == 0 or is_within:
        if is_never_followed(np.stack([before, after], axis=1), error):
            return "never followed"
        return "holds" if is_within else "cannot tell"
    return "rises" if sign > 0 else "falls"


def select_rules(kind: str = "", polarity: str = "") -> Callable[[Probe], bool]:
    """Returns a filter for probes on rules of the agent's prompt that have this kind and polarity.

    "" stands for any.
    """

    def is_selected(probe: Probe) -> bool:
        is_of_kind = kind in ("", probe.rule_kind) and polarity in ("", probe.polarity)
        return probe.kind == "stability" and is_of_kind

    return is_selected


def scores_in_round_1(scores: ByProbe) -> ByProbe:
    """Returns the scores of each probe in round 1, [conversation] each."""
    return {probe: matrix[:, 0] for probe, matrix in scores.items()}


def means_in(scores: ByProbe, in_rounds: np.ndarray) -> ByProbe:
    """Returns the mean score of each probe over some rounds, [conversation] each.

    NaN where it has none.

    Args:
        in_rounds: which rounds count, [round] or [conversation, round] bool.
    """
    return {
        probe: row_means(np.where(in_rounds, matrix, np.nan)) for probe, matrix in scores.items()
    }
