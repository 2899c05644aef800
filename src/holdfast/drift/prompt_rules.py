"""The rules of a prompt, in the form that methods need which remind the model of them.

For the prompt "Be brief. Sign every message with Tony.", `texts` are ("Be brief.", "Sign every
message with Tony."), and `broken("Hi!", "Hello.")` is ("Sign every message with Tony.",).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Self

from holdfast.drift.cases import Case, Rule
from holdfast.drift.rule_texts import text_of_rule
from holdfast.errors import HoldfastError, UsageError
from holdfast.measures.patterns import limit_search_time
from holdfast.measures.rule_kinds import KINDS
from holdfast.measures.turns import AssistantTurn
from holdfast.methods import Method
from holdfast.methods.protocols import NeedsRules, PromptRules

_CACHE_SIZE = 10_000  # replies whose broken rules are remembered
_MAX_SECONDS = 0.25  # of computing for the patterns of one rule and reply, if there is `on_failed`

OnFailed = Callable[[Rule, HoldfastError], object]


@dataclass(frozen=True)
class CaseRules:
    """The rules of a case; implements `holdfast.methods.protocols.PromptRules`.

    If the suite gives a rule no `text`, its text is the sentence of the prompt that states it, or
    else the whole prompt.

    Attributes:
        case: the case.
        kinds: the kinds of rules to take; None takes all rules, also those without a kind.
        cut_replies: replies that were cut at the token limit; added as they come.
        on_failed: called if the measure of a rule fails, or searches for too long, and the rule
            then counts as kept. None raises the failure, which ends a run.
    """

    case: Case
    kinds: frozenset[str] | None = None
    cut_replies: set[str] = field(default_factory=set, compare=False, repr=False)
    on_failed: OnFailed | None = field(default=None, compare=False, repr=False)

    @property
    def texts(self) -> tuple[str, ...]:
        """The rules, each in one sentence."""
        return tuple(rule.text for rule in self._rules)

    @property
    def are_checkable(self) -> bool:
        """Whether at least one rule can be found broken."""
        return bool(self._checked_rules)

    @property
    def has_checked_texts(self) -> bool:
        """Whether at least one rule that can be found broken has a text in the suite."""
        return any(rule.text and rule.is_shown_by_replies for rule in self.case.rules)

    def of_kinds(self, kinds: Sequence[str]) -> Self:
        """The rules of these kinds only.

        Raises:
            UsageError: a name is not a kind of rule, or the rules have no kinds.
        """
        if not any(rule.kind for rule in self._rules):
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

    def broken(self, user: str, reply: str, *, is_cut: bool = False) -> tuple[str, ...]:
        """The texts of the rules that a reply breaks.

        A rule is never found broken if a judge scores it, if it reads tool calls, if it is only for
        the replies to probes, or if it needs the end of a reply and this one was cut.

        Args:
            user: the message that the reply answers.
        """
        return self._find_broken_cached(user, reply, is_cut or reply in self.cut_replies)

    def __reduce__(self) -> tuple[object, ...]:
        return CaseRules, (self.case, self.kinds, self.cut_replies)  # without the cache

    @cached_property
    def _find_broken_cached(self) -> Callable[[str, str, bool], tuple[str, ...]]:
        """`_find_broken` with a cache, as every request contains the whole dialog again."""
        return lru_cache(_CACHE_SIZE)(self._find_broken)

    def _find_broken(self, user: str, reply: str, is_cut: bool) -> tuple[str, ...]:
        turn = AssistantTurn(reply, is_cut=is_cut)
        broken: list[str] = []
        for rule in self._checked_rules:
            try:
                is_broken = self._is_broken(rule, turn, user)
            except HoldfastError as error:
                if self.on_failed is None:
                    raise
                self.on_failed(rule, error)
                continue
            if is_broken:
                broken.append(rule.text)
        return tuple(broken)

    def _is_broken(self, rule: Rule, turn: AssistantTurn, user: str) -> bool:
        limit = nullcontext() if self.on_failed is None else limit_search_time(_MAX_SECONDS)
        with limit:
            if not rule.when.applies(turn, user, "user"):
                return False
            score = rule.measure.score_turn(turn)
        return score is not None and not score.keeps_rule

    @cached_property
    def _rules(self) -> list[Rule]:
        rules = (rule for rule in self.case.rules if self.kinds is None or rule.kind in self.kinds)
        return [replace(rule, text=text_of_rule(self.case, rule)) for rule in rules]

    @cached_property
    def _checked_rules(self) -> list[Rule]:
        return [rule for rule in self._rules if rule.is_shown_by_replies]


def with_rules(rules: PromptRules, methods: Iterable[Method]) -> tuple[Method, ...]:
    """Gives the rules of the prompt to the methods that need them."""
    return tuple(
        method.with_rules(rules) if isinstance(method, NeedsRules) else method for method in methods
    )
