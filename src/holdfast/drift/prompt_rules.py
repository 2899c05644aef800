"""The rules of a prompt, as the methods that remind of them need them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from holdfast.drift.cases import Case, Rule
from holdfast.drift.rule_kinds import KINDS
from holdfast.drift.suites import FOLLOWED
from holdfast.errors import UsageError
from holdfast.measures.turns import AssistantTurn
from holdfast.methods import Method
from holdfast.methods.protocols import NeedsRules


@dataclass(frozen=True)
class CaseRules:
    """The rules of a case that have a `text`; `holdfast.methods.protocols.PromptRules`."""

    case: Case
    kinds: frozenset[str] | None = None  # None: rules of every kind, and those without one

    @property
    def texts(self) -> tuple[str, ...]:
        """Each rule in one sentence."""
        return tuple(rule.text for rule in self._rules)

    def of_kinds(self, kinds: Sequence[str]) -> Self:
        """Those of some kinds.

        Raises:
            UsageError: a name that is no kind, or rules without kinds.
        """
        if not any(rule.kind for rule in self.case.all_rules):
            raise UsageError(
                f"The rules of {self.case.id!r} have no kinds to choose by; give them a `kind`, or"
                " leave out kinds=.",
                option="kinds",
                value=self.case.id,
            )
        for name in kinds:
            if name not in KINDS:
                raise UsageError(
                    f"There is no kind of rule called {name!r}; use {', '.join(KINDS)}.",
                    option="kinds",
                    value=name,
                    allowed=tuple(KINDS),
                )
        return replace(self, kinds=frozenset(kinds))

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
    def _rules(self) -> list[Rule]:
        return [
            rule
            for rule in self.case.all_rules
            if rule.text and (self.kinds is None or rule.kind in self.kinds)
        ]

    @cached_property
    def _scored(self) -> list[Rule]:
        return [
            rule
            for rule in self._rules
            if not rule.measure.judged and not rule.measure.of_turn and not rule.is_only_for_probes
        ]


def with_rules_of(case: Case, methods: Iterable[Method]) -> tuple[Method, ...]:
    """The methods, of which those that need the rules of the prompt know them."""
    rules = CaseRules(case)
    return tuple(
        method.with_rules(rules) if isinstance(method, NeedsRules) else method for method in methods
    )
