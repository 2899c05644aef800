"""The scores of logged dialogs as columns, which are small where the records are large."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.records.conversation import LogDialog, Probe, Unscored


class ScoredRule(NamedTuple):
    """A rule of a prompt, as the records name it."""

    prompt: str  # its id
    category: str | None
    rule: str | None  # its id; None if it is the prompt's only one


@dataclass
class LogScores:
    """The scores of dialogs in the order of their records; the columns have an entry per score.

    Args:
        rules: in the order in which they first scored a turn.
        rule: the position of the score's rule in `rules`.
        dialog: the position of its dialog among the records.
        turn: the number of its turn.
        tokens: before the turn.
        score: the score itself.
        turns: how many turns the dialogs of each prompt have, by the prompt's id and category.
        unscored: how often each rule was not scored.
        unanswered: how often a judge did not answer.
        cut: how many of those not scored were cut at the token limit.
    """

    rules: dict[ScoredRule, int] = field(default_factory=dict)
    rule: array[int] = field(default_factory=lambda: array("I"))
    dialog: array[int] = field(default_factory=lambda: array("I"))
    turn: array[int] = field(default_factory=lambda: array("I"))
    tokens: array[int] = field(default_factory=lambda: array("q"))
    score: array[float] = field(default_factory=lambda: array("d"))
    turns: Counter[tuple[str, str | None]] = field(default_factory=Counter)
    unscored: Counter[ScoredRule] = field(default_factory=Counter)
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
        for unscored in record.unscored:
            self.unscored[rule_of(record, unscored)] += 1
            self.cut += unscored.why == "cut" and bool(unscored.reply.strip())
        self.unanswered.update(unanswered.why for unanswered in record.unanswered)
        self.dialogs += 1


def rule_of(record: LogDialog, score: Probe | Unscored) -> ScoredRule:
    """The rule of a score."""
    return ScoredRule(record.agent.id, record.agent.category, score.rule)


def log_scores(records: Iterable[LogDialog]) -> LogScores:
    """The scores of records."""
    scores = LogScores()
    for record in records:
        scores.add(record)
    return scores
