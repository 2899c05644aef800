"""Prepares the precedent experiment: its settings, and the questions of each conversation.

For example, with `seen=(0, 1, 3)` a history has 3 replies, so a scenario of the rule "Sign as Tony"
has 4 questions: "What is on the menu?", "Are you open?", "Do you deliver?", and the last one,
"Where are you?", which is asked with 0, 1 and 3 of the replies in view.
"""

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

    @property
    def history_length(self) -> int:
        """How many replies a history has: the most that the model is shown."""
        return self.seen[-1]


@dataclass(frozen=True)
class Scenario:
    """A system prompt, some of its rules, and the questions of a conversation."""

    case: Case  # of the system prompt
    rules: tuple[Rule, ...]  # rules with the same probes
    questions: tuple[str, ...]  # those of the histories, oldest first, then the last one

    def score(self, reply: Reply) -> ReplyScores:
        """Scores a reply by each rule; None where the reply shows nothing about the rule."""
        return {rule.id or self.case.id: _score(rule, reply) for rule in self.rules}


def _score(rule: Rule, reply: Reply) -> float | None:
    """Scores a reply by one rule; None if it is empty, or the end that was cut off may matter."""
    if not reply.text.strip():
        return None
    if reply.stop_reason == "length":
        score = rule.measure.score_cut(reply.text)
    else:
        score = rule.measure.score(reply.text)
    return None if score is None else score.value


def draw_scenarios(suite: Suite, settings: PrecedentSettings) -> list[Scenario]:
    """Draws the scenario of each conversation.

    The rules of a prompt that have the same probes form a group, and the groups of all prompts take
    turns. The last question is a probe of the group. Those before it are further probes, so that
    every reply of a history can keep or break the rules; if there are too few probes, starters of
    the suite come first.

    Raises:
        UsageError: the suite has judges, rules without probes, or too few questions.
    """
    groups = [(case, rules) for case in suite.cases for rules in case.rules_asked_together]
    for case, rules in groups:
        _refuse_unusable(suite, case, rules)
    scenarios: list[Scenario] = []
    for number in range(settings.conversations):
        case, rules = groups[number % len(groups)]
        rng = random.Random(seed_of("precedent", settings.seed, number))
        questions = _draw_questions(suite, case, rules[0].probes, settings.history_length, rng)
        scenarios.append(Scenario(case, rules, questions))
    return scenarios


def _refuse_unusable(suite: Suite, case: Case, rules: Sequence[Rule]) -> None:
    """Refuses rules with the same probes if they have none, or if a judge scores one of them."""
    for rule in rules:
        if rule.measure.judged:
            raise UsageError(
                f"The rule {rule.id or case.id!r} of {suite.name} is scored by a judge, and"
                " precedent takes rules that are scored without a model."
            )
    if not rules[0].probes:
        raise UsageError(
            f"The case {case.id!r} has a rule without probes, and a study of precedent"
            " asks for replies; give it a probe."
        )


def _draw_questions(
    suite: Suite, case: Case, probes: Sequence[str], history_length: int, rng: random.Random
) -> tuple[str, ...]:
    """Draws the questions of a history, followed by the last question."""
    shuffled = rng.sample(probes, len(probes))
    starters = rng.sample(suite.starters, len(suite.starters))
    *history, last = shuffled[: history_length + 1]
    if len(history) + len(starters) < history_length:
        raise UsageError(
            f"{case.id!r} has {len(probes)} probes and {suite.name} {len(starters)} starters,"
            f" too few for a history of {history_length} replies; add probes, or show fewer"
            " replies."
        )
    return (*starters[: history_length - len(history)], *history, last)


def count_replies(settings: PrecedentSettings, methods: Methods = ()) -> int:
    """Returns how many replies a conversation takes: those to the last question, and without a
    method also those of its histories.
    """
    next_replies = 2 * len(settings.seen)
    if read_methods(methods):
        return next_replies
    return 2 * settings.history_length * settings.draws + 2 * next_replies
