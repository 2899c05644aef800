"""Whether a model can still state the rules that it breaks.

A run with `--recall` asks the agent for its rules in forks of the first and the last round. The
unit is the conversation, which counts with the mean over its rules.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.analysis.series import Series, read_pooled_series
from holdfast.analysis.statistics import SCORES, Estimate, estimate
from holdfast.measures.scores import MIN_KEPT_SCORE
from holdfast.records import Run
from holdfast.records.model import RecordModel


class RecallRow(RecordModel):
    """How often the rules of one kind are stated under one method.

    Attributes:
        kind: of the rules; "" for all.
        stated_first: the share of rules that are stated in round 1.
        stated_last: the share of rules that are stated in the last round.
        broken: how many rules were broken in the last round, over all conversations.
        stated_of_broken: the share of these that are stated in that round.
        stated_of_kept: the share of the rules kept in the last round that are stated in it.
    """

    method: str
    kind: str
    stated_first: Estimate
    stated_last: Estimate
    broken: int
    stated_of_broken: Estimate
    stated_of_kept: Estimate


@dataclass(frozen=True)
class _RecalledRule:
    """A rule that the agent was asked to state, in the first or the last round."""

    conversation: int  # the row of the series
    round: int
    kind: str | None
    stated: float  # the score of the reply to "what are your rules?"
    kept: float | None  # the mean score of the rule's own probes; None if none has a score


def recall_rows(*runs: Run) -> list[RecallRow]:
    """Returns the rows of one drift run, or of several pooled, by method.

    Those of all rules come first. [] for runs without `--recall`.
    """
    rows: list[RecallRow] = []
    for series in read_pooled_series(runs):
        rules = _recalled_rules(series)
        if not rules:
            continue
        rows.append(_recall_row(series, "", rules))
        for kind in sorted({rule.kind for rule in rules if rule.kind}):
            rows.append(_recall_row(series, kind, [rule for rule in rules if rule.kind == kind]))
    return rows


def _recalled_rules(series: Series) -> list[_RecalledRule]:
    """Returns every rule that the agent was asked to state, once per conversation and round."""
    rules: list[_RecalledRule] = []
    for row, record in enumerate(series.records):
        for recall in record.probes:
            if recall.kind != "recall":
                continue
            scores = [
                probe.score
                for probe in record.stability_probes
                if (probe.round, probe.rule) == (recall.round, recall.rule)
            ]
            rules.append(
                _RecalledRule(
                    conversation=row,
                    round=recall.round,
                    kind=recall.rule_kind,
                    stated=recall.score,
                    kept=float(np.mean(scores)) if scores else None,
                )
            )
    return rules


def _recall_row(series: Series, kind: str, rules: Sequence[_RecalledRule]) -> RecallRow:
    """Estimates how many rules of a kind are stated: of all, and of those last kept or broken."""
    last_round = max(rule.round for rule in rules)

    def share_stated(is_counted: Callable[[_RecalledRule], bool]) -> Estimate:
        """Estimates which share of the rules that count is stated, over the conversations that
        have such rules.
        """
        stated_by_conversation: dict[int, list[float]] = {}
        for rule in filter(is_counted, rules):
            stated_by_conversation.setdefault(rule.conversation, []).append(rule.stated)
        means = np.array([float(np.mean(scores)) for scores in stated_by_conversation.values()])
        return estimate(means, SCORES, error=series.error)

    def is_broken(rule: _RecalledRule) -> bool:
        return rule.round == last_round and rule.kept is not None and rule.kept < MIN_KEPT_SCORE

    def is_kept(rule: _RecalledRule) -> bool:
        return rule.round == last_round and rule.kept is not None and rule.kept >= MIN_KEPT_SCORE

    return RecallRow(
        method=series.method,
        kind=kind,
        stated_first=share_stated(lambda rule: rule.round == 1),
        stated_last=share_stated(lambda rule: rule.round == last_round),
        broken=sum(map(is_broken, rules)),
        stated_of_broken=share_stated(is_broken),
        stated_of_kept=share_stated(is_kept),
    )
