"""The rules of a prompt, as the methods that remind of them need them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from holdfast.drift.cases import Case, Rule
from holdfast.drift.suites import FOLLOWED
from holdfast.measures.turns import AssistantTurn
from holdfast.methods import Method
from holdfast.methods.protocols import NeedsRules


@dataclass(frozen=True)
class CaseRules:
    """The rules of a case that have a `text`; `holdfast.methods.protocols.PromptRules`."""

    case: Case

    @property
    def texts(self) -> tuple[str, ...]:
        """Each rule in one sentence."""
        return tuple(rule.text for rule in self.case.all_rules if rule.text)

    def broken(self, user: str, reply: str) -> tuple[str, ...]:
        """The texts of the rules that a reply to a message of the user breaks.

        Rules that a judge scores, or that read tool calls, are never found broken, nor are those
        that are made for the answers to probes.
        """
        turn = AssistantTurn(reply)
        return tuple(
            rule.text
            for rule in self._scored
            if rule.when.applies(turn, user, "user") and rule.measure.score(reply).value < FOLLOWED
        )

    @cached_property
    def _scored(self) -> list[Rule]:
        return [
            rule
            for rule in self.case.all_rules
            if rule.text
            and not rule.measure.judged
            and not rule.measure.of_turn
            and not rule.is_only_for_probes
        ]


def with_rules_of(case: Case, methods: Iterable[Method]) -> tuple[Method, ...]:
    """The methods, of which those that need the rules of the prompt know them."""
    rules = CaseRules(case)
    return tuple(
        method.with_rules(rules) if isinstance(method, NeedsRules) else method for method in methods
    )
