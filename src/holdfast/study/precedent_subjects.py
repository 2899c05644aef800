"""Prepares a study of precedent: its settings, and the questions of each conversation."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from holdfast.drift.cases import Case, Rule, Suite
from holdfast.errors import ParameterOutOfRange, UsageError
from holdfast.generation.sampling import Sampling
from holdfast.methods import Methods, read_methods
from holdfast.models.requests import Reply
from holdfast.records.precedent_records import History, ReplyScores
from holdfast.seeds import seed_of
from holdfast.validation import ranges

HistoryKind = Literal["kept", "broken"]
Histories = dict[HistoryKind, History]
KEPT: HistoryKind = "kept"
BROKEN: HistoryKind = "broken"


@dataclass(frozen=True)
class PrecedentSettings:
    """How precedent is measured.

    Args:
        conversations: how many pairs of histories; the prompts of the suite take turns.
        seed: of the questions and of every draw.
        sampling: how all replies are sampled.
        seen: how many of its earlier replies the model is shown, in ascending order.
        draws: how many replies are drawn for each one of a history; the one that keeps, or breaks,
            the rules most is chosen.
        batch: how many conversations run side by side.
    """

    conversations: int = 96
    seed: int = 0
    sampling: Sampling = Sampling(temperature=0.7, top_p=0.9, max_new_tokens=60)
    seen: tuple[int, ...] = (0, 1, 3, 6)
    draws: int = 3
    batch: int = 16

    def __post_init__(self) -> None:
        for name in ("conversations", "draws", "batch"):
            ranges.whole_number("precedent", name, getattr(self, name), 1)
        if list(self.seen) != sorted(set(self.seen)) or not self.seen or self.seen[0] < 0:
            raise ParameterOutOfRange(
                f"precedent takes the numbers of replies in view in ascending order, not"
                f" {self.seen}.",
                option="seen",
                value=self.seen,
            )


@dataclass(frozen=True)
class Subject:
    """A system prompt, some of its rules, and the questions to ask."""

    case: Case
    rules: tuple[Rule, ...]  # rules that are asked about with the same probes
    questions: tuple[str, ...]  # those of the history, oldest first, then the last one

    def score(self, reply: Reply) -> ReplyScores:
        """Scores a reply by rule; None where the reply is no evidence."""
        return {rule.id or self.case.id: _score(rule, reply) for rule in self.rules}


def _score(rule: Rule, reply: Reply) -> float | None:
    if not reply.text.strip():
        return None
    if reply.stop_reason == "length":
        score = rule.measure.score_cut(reply.text)
    else:
        score = rule.measure.score(reply.text)
    return None if score is None else score.value


def subjects_of(suite: Suite, settings: PrecedentSettings) -> list[Subject]:
    """Draws the subject of each conversation of a study.

    The last question is a probe of the rules. Those before it are further probes, so that every
    reply of a history can keep or break the rules; if there are too few probes, starters come
    first.

    Raises:
        UsageError: the suite has judges, rules without probes, or too few questions.
    """
    groups: list[tuple[Case, tuple[Rule, ...]]] = []
    for case in suite.cases:
        for rules in case.rules_asked_together:
            _refuse_judges(suite, case, rules)
            if not rules[0].probes:
                raise UsageError(
                    f"The case {case.id!r} has a rule without probes, and a study of precedent"
                    " asks for replies; give it a probe."
                )
            groups.append((case, rules))
    history_length = settings.seen[-1]
    subjects: list[Subject] = []
    for number in range(settings.conversations):
        case, rules = groups[number % len(groups)]
        rng = random.Random(seed_of("precedent", settings.seed, number))
        probes = rng.sample(rules[0].probes, len(rules[0].probes))
        starters = rng.sample(suite.starters, len(suite.starters))
        *history, last = probes[: history_length + 1]
        if len(history) + len(starters) < history_length:
            raise UsageError(
                f"{case.id!r} has {len(probes)} probes and {suite.name} {len(starters)} starters,"
                f" too few for a history of {history_length} replies; add probes, or show fewer"
                " replies."
            )
        questions = (*starters[: history_length - len(history)], *history, last)
        subjects.append(Subject(case, rules, questions))
    return subjects


def _refuse_judges(suite: Suite, case: Case, rules: Sequence[Rule]) -> None:
    for rule in rules:
        if rule.measure.judged:
            raise UsageError(
                f"The rule {rule.id or case.id!r} of {suite.name} is scored by a judge, and"
                " precedent takes rules that are scored without a model."
            )


def count_replies(settings: PrecedentSettings, methods: Methods = ()) -> int:
    """Returns how many replies a conversation takes: the next replies, and without a method also
    those of its histories.
    """
    next_replies = 2 * len(settings.seen)
    if read_methods(methods):
        return next_replies
    return 2 * settings.seen[-1] * settings.draws + 2 * next_replies
