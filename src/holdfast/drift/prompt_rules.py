"""The rules of a prompt, as the methods that remind of them need them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Protocol, Self

from holdfast.drift.cases import Case, Rule
from holdfast.drift.rule_texts import text_of
from holdfast.drift.settings import Settings
from holdfast.errors import HoldfastError, UsageError
from holdfast.measures.patterns import limit_search_time
from holdfast.measures.rule_kinds import KINDS
from holdfast.measures.scores import FOLLOWED
from holdfast.measures.turns import AssistantTurn
from holdfast.methods import Method, compile_methods
from holdfast.methods.protocols import NeedsRules, PromptRules
from holdfast.models.checked_replies import check_retries

_REMEMBERED = 10_000  # replies
# of computing that the patterns of a rule may take for a reply, where a failure costs only its rule
_SECONDS = 0.25

OnFailed = Callable[[Rule, HoldfastError], object]


@dataclass(frozen=True)
class CaseRules:
    """The rules of a case; `holdfast.methods.protocols.PromptRules`.

    A rule whose suite gives it no `text` has that of its sentence of the prompt, or of the whole
    prompt.
    """

    case: Case
    kinds: frozenset[str] | None = None  # None: rules of every kind, and those without one
    # replies that were cut at the token limit, noted as they come
    cut_replies: set[str] = field(default_factory=set, compare=False, repr=False)
    # told of a measure that fails, or searches for too long; its rule is then not found broken.
    # None: the failure is raised, as a run should end with it
    on_failed: OnFailed | None = field(default=None, compare=False, repr=False)

    @property
    def texts(self) -> tuple[str, ...]:
        """Each rule in one sentence."""
        return tuple(rule.text for rule in self._rules)

    @property
    def are_checkable(self) -> bool:
        """Whether some of them can be found broken."""
        return bool(self._scored)

    @property
    def has_checked_texts(self) -> bool:
        """Whether some rule that can be found broken has a text from its suite."""
        return any(rule.text and _is_checked_in_replies(rule) for rule in self.case.rules)

    def of_kinds(self, kinds: Sequence[str]) -> Self:
        """Those of some kinds.

        Raises:
            UsageError: a name that is no kind, or rules without kinds.
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
        """The texts of the rules that a reply to a message of the user breaks.

        Rules that a judge scores, or that read tool calls, are never found broken, nor are those
        that are made for the answers to probes, nor those that need the end of a reply that was
        cut.
        """
        return self._remembered(user, reply, is_cut or reply in self.cut_replies)

    def __reduce__(self) -> tuple[object, ...]:
        return CaseRules, (self.case, self.kinds, self.cut_replies)  # without what is remembered

    @cached_property
    def _remembered(self) -> Callable[[str, str, bool], tuple[str, ...]]:
        """`_broken`, which remembers: every request brings the whole dialog again."""
        return lru_cache(_REMEMBERED)(self._broken)

    def _broken(self, user: str, reply: str, is_cut: bool) -> tuple[str, ...]:
        turn = AssistantTurn(reply, is_cut=is_cut)
        broken: list[str] = []
        for rule in self._scored:
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
        limit = nullcontext() if self.on_failed is None else limit_search_time(_SECONDS)
        with limit:
            if not rule.when.applies(turn, user, "user"):
                return False
            score = rule.measure.score_turn(turn)
        return score is not None and score.value < FOLLOWED

    @cached_property
    def _rules(self) -> list[Rule]:
        rules = (rule for rule in self.case.rules if self.kinds is None or rule.kind in self.kinds)
        return [replace(rule, text=text_of(self.case, rule)) for rule in rules]

    @cached_property
    def _scored(self) -> list[Rule]:
        return [rule for rule in self._rules if _is_checked_in_replies(rule)]


def _is_checked_in_replies(rule: Rule) -> bool:
    return rule.is_shown_by_turns and not rule.measure.of_turn


def with_rules(rules: PromptRules, methods: Iterable[Method]) -> tuple[Method, ...]:
    """The methods, of which those that need the rules of the prompt know them."""
    return tuple(
        method.with_rules(rules) if isinstance(method, NeedsRules) else method for method in methods
    )


class ChecksMethods(Protocol):
    """A model, or whatever else the agent is."""

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that it cannot apply."""


def check_in_dialogs(
    model: ChecksMethods, methods: Sequence[Method], cases: Sequence[Case], settings: Settings
) -> None:
    """Refuses methods that cannot be applied in dialogs under these prompts.

    Raises:
        ModelError: the model cannot apply one.
        UsageError: a method checks replies, and no rule can be checked in one; it chooses rules of
            a kind that there is not; or the protocol does not show what it works on.
    """
    check_with_rules(methods, cases, settings)
    model.check(compile_methods(methods).without_retries.methods)


def check_with_rules(methods: Sequence[Method], cases: Sequence[Case], settings: Settings) -> None:
    """The part of `check_in_dialogs` that needs no model.

    Raises:
        UsageError: as there.
    """
    check_retries(compile_methods(methods))
    for method in methods:
        if isinstance(method, NeedsRules):
            method.check_context(settings.window, settings.context == "summarise")
    for case in cases:
        with_rules(CaseRules(case), methods)
    if not any(CaseRules(case).are_checkable for case in cases):
        _refuse_checks_of_replies(methods)


def _refuse_checks_of_replies(methods: Iterable[Method]) -> None:
    for method in methods:
        if isinstance(method, NeedsRules) and method.reads_replies:
            raise UsageError(
                f"{method.name} acts when a reply breaks a rule, and no rule of this suite can be"
                " checked in every reply: they are for a judge, for tool calls or for the answers"
                " to probes; use repetition, or a reminder without when=broken.",
                option="method",
                value=method.name,
            )
