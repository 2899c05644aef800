"""The rules of a prompt, in the form that methods need which remind the model of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Self

from holdfast.drift.cases import Case, Rule
from holdfast.drift.rule_sentences import text_of_rule
from holdfast.drift.settings import Settings
from holdfast.errors import HoldfastError, UsageError
from holdfast.measures.patterns import limit_search_time, matches
from holdfast.measures.rule_kinds import KINDS
from holdfast.measures.turns import AssistantTurn
from holdfast.methods import Method, compile_methods
from holdfast.methods.protocols import NeedsRules, PromptRules
from holdfast.models.checked_replies import check_retries

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
        return any(rule.text and _is_checked_in_replies(rule) for rule in self.case.rules)

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
        return [rule for rule in self._rules if _is_checked_in_replies(rule)]


def _is_checked_in_replies(rule: Rule) -> bool:
    """Whether any reply can show that the rule is broken."""
    return rule.is_shown_by_turns and not rule.measure.of_turn


def with_rules(rules: PromptRules, methods: Iterable[Method]) -> tuple[Method, ...]:
    """Gives the rules of the prompt to the methods that need them."""
    return tuple(
        method.with_rules(rules) if isinstance(method, NeedsRules) else method for method in methods
    )


def check_in_dialogs(
    check: Callable[[Sequence[Method]], None],
    methods: Sequence[Method],
    cases: Sequence[Case],
    settings: Settings,
) -> None:
    """Refuses methods that cannot be applied in dialogs under these prompts.

    Args:
        check: refuses methods that the agent's model cannot apply, as `ChatModel.check` does.

    Raises:
        ModelError: the model cannot apply a method.
        UsageError: a method does not suit the prompts or the settings (`check_with_rules`).
    """
    check_with_rules(methods, cases, settings)
    check(compile_methods(methods).without_retries.methods)


def check_with_rules(methods: Sequence[Method], cases: Sequence[Case], settings: Settings) -> None:
    """Refuses methods that do not suit these prompts or settings, whatever the model is.

    Raises:
        UsageError: a method checks replies, but no rule can be checked in a reply, or a probe does
            not match its rule's `when`; a method chooses rules of a kind that no rule has; or the
            settings leave out the messages that a method works on.
    """
    check_retries(compile_methods(methods))
    for method in methods:
        if isinstance(method, NeedsRules):
            method.check_context(settings.window, settings.context == "summarise")
    for case in cases:
        with_rules(CaseRules(case), methods)
    if not any(CaseRules(case).are_checkable for case in cases):
        _refuse_checks_of_replies(methods)
    for case in cases:
        _refuse_unchecked_probes(methods, case)


def _refuse_unchecked_probes(methods: Iterable[Method], case: Case) -> None:
    """Refuses methods that check replies if a rule's `when` does not match its own probe.

    The rule would then be measured in replies that the method never checks.
    """
    checking = [
        method.name for method in methods if isinstance(method, NeedsRules) and method.reads_replies
    ]
    if not checking:
        return
    for rule in filter(_is_checked_in_replies, case.rules):
        for probe in rule.probes:
            if rule.when.user and not matches(rule.when.user, probe, "i"):
                raise UsageError(
                    f"The rule {rule.id!r} of {case.id!r} has the probe {probe!r}, but"
                    f" {checking[0]} would not check the reply, as the rule's 'when' does not match"
                    f" this message: {rule.when.user!r}; extend 'when', or change the probe.",
                    option="method",
                    value=probe,
                )


def _refuse_checks_of_replies(methods: Iterable[Method]) -> None:
    """Refuses methods that check replies, as no rule of the suite can be checked in them."""
    for method in methods:
        if isinstance(method, NeedsRules) and method.reads_replies:
            raise UsageError(
                f"{method.name} acts when a reply breaks a rule, but no rule of this suite can be"
                " checked in every reply: each needs a judge, tool calls or the reply to a probe;"
                " use repetition, or a reminder without when=broken.",
                option="method",
                value=method.name,
            )
