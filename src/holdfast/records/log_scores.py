"""Collects the scores of logged dialogs in columns, which take less memory than the records."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.records.cause_records import CAUSES, RECALL_CAUSES, CompactedRule
from holdfast.records.conversation import LogDialog, LogProbe, Probe, Unscored

ALL_CAUSES = (*CAUSES, *RECALL_CAUSES)
NONE = -1  # in a column, for a score that has no such value


class ScoredRule(NamedTuple):
    """A rule of a prompt, as the records name it."""

    prompt: str  # the prompt's id
    category: str | None
    rule: str | None  # the rule's id; None if it is the prompt's only one


class KeptRule(NamedTuple):
    """The effects of compactions on a rule.

    Args:
        compactions: how many compactions there were with the rule in the context before.
        in_summary: how many of them left a text that states the rule.
        in_context: after how many of them the rule was still in the context.
    """

    compactions: int = 0
    in_summary: int = 0
    in_context: int = 0


@dataclass
class LogScores:
    """The scores of dialogs in the order of their records; the columns have an entry per score.

    Args:
        rules: in the order in which they first scored a turn.
        rule: the position of the score's rule in `rules`.
        dialog: the position of its dialog among the records.
        turn: the number of its turn.
        tokens: how many tokens the dialog had before the turn.
        score: the score itself.
        tokens_since: how many tokens ago the context last stated the rule; NONE if it did not, or
            if that was not examined.
        calls, compactions: how many the dialog had so far; NONE if the context was not examined.
        kind, polarity: the position in `names` of the rule's kind or polarity; NONE without one.
        cause: the position in `ALL_CAUSES` of why the turn broke the rule; NONE if it kept the
            rule, or if the cause was not examined.
        names: the positions of kinds and polarities.
        compacted: the number of compactions of the dialogs that have any, by their positions.
        kept: the effects of compactions on each rule.
        turns: how many turns the dialogs of each prompt have, by the prompt's id and category.
        unscored: how often each rule was not scored, by the rule and the reason.
        unanswered: how often a judge did not answer, by the reason.
        cut: how many of the unscored turns were cut at the token limit.
        dialogs: how many records were added.
    """

    rules: dict[ScoredRule, int] = field(default_factory=dict)
    rule: array[int] = field(default_factory=lambda: array("I"))
    dialog: array[int] = field(default_factory=lambda: array("I"))
    turn: array[int] = field(default_factory=lambda: array("I"))
    tokens: array[int] = field(default_factory=lambda: array("q"))
    score: array[float] = field(default_factory=lambda: array("d"))
    tokens_since: array[int] = field(default_factory=lambda: array("q"))
    calls: array[int] = field(default_factory=lambda: array("q"))
    compactions: array[int] = field(default_factory=lambda: array("q"))
    kind: array[int] = field(default_factory=lambda: array("h"))
    polarity: array[int] = field(default_factory=lambda: array("h"))
    cause: array[int] = field(default_factory=lambda: array("b"))
    names: dict[str, int] = field(default_factory=dict)
    compacted: dict[int, int] = field(default_factory=dict)
    kept: dict[ScoredRule, KeptRule] = field(default_factory=dict)
    turns: Counter[tuple[str, str | None]] = field(default_factory=Counter)
    unscored: Counter[tuple[ScoredRule, str]] = field(default_factory=Counter)
    unanswered: Counter[str] = field(default_factory=Counter)
    cut: int = 0
    dialogs: int = 0

    def add(self, record: LogDialog) -> None:
        """Adds the scores of the next record."""
        tokens = {turn.round: turn.tokens for turn in record.turns}
        self.turns[record.agent.id, record.agent.category] += len(tokens)
        for probe in record.probes:
            rule = rule_of(record, probe)
            self.rule.append(self.rules.setdefault(rule, len(self.rules)))
            self.dialog.append(self.dialogs)
            self.turn.append(probe.round)
            self.tokens.append(tokens[probe.round])
            self.score.append(probe.score)
            self._add_context(probe)
        for unscored in record.unscored:
            self.unscored[rule_of(record, unscored), unscored.why] += 1
            self.cut += unscored.why == "cut" and bool(unscored.reply.strip())
        self.unanswered.update(unanswered.why for unanswered in record.unanswered)
        self._add_compactions(record)
        self.dialogs += 1

    def _add_context(self, probe: LogProbe) -> None:
        context = probe.context
        cause = probe.cause
        tokens = NONE if context is None or context.tokens is None else context.tokens
        self.tokens_since.append(tokens)
        self.calls.append(NONE if context is None else int(context.calls))
        self.compactions.append(NONE if context is None else int(context.compactions))
        self.kind.append(self._number(probe.rule_kind))
        self.polarity.append(self._number(probe.polarity))
        self.cause.append(NONE if cause is None else ALL_CAUSES.index(cause.cause))

    def _number(self, name: str | None) -> int:
        return self.names.setdefault(name, len(self.names)) if name else NONE

    def _add_compactions(self, record: LogDialog) -> None:
        if record.compactions:
            self.compacted[self.dialogs] = len(record.compactions)
        for compaction in record.compactions:
            for item in compaction.rules:
                rule = rule_of(record, item)
                before = self.kept.get(rule, KeptRule())
                self.kept[rule] = KeptRule(
                    before.compactions + 1,
                    before.in_summary + item.in_summary,
                    before.in_context + item.in_context,
                )


def rule_of(record: LogDialog, score: Probe | Unscored | CompactedRule) -> ScoredRule:
    """Returns the rule that a score is on."""
    return ScoredRule(record.agent.id, record.agent.category, score.rule)


def collect_log_scores(records: Iterable[LogDialog]) -> LogScores:
    """Collects the scores of records."""
    scores = LogScores()
    for record in records:
        scores.add(record)
    return scores
