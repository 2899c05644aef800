"""Applies a suite to chats that take place elsewhere: each belongs to a case of the suite.

A suite with one case applies to every request. Otherwise a request belongs to the case whose prompt
its system message contains; if several do, to the one with the longest prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

from holdfast.drift.cases import Rule, Suite
from holdfast.errors import UsageError
from holdfast.methods import METHODS_OUTSIDE_MODELS, Method, compile_methods, spec_of
from holdfast.models.checked_replies import check_retries
from holdfast.plurals import count_of
from holdfast.proxy.chat_requests import ChatRequest
from holdfast.proxy.request_edits import EditOutcome
from holdfast.proxy.suite_chat import EditingCase, SuiteChat


class NotScored(Enum):
    """Why the proxy scores no turn by a rule; the values are used in its metrics."""

    JUDGE = "needs_judge"
    NO_WHEN = "no_when"  # the rule is made for the answers to its probes

    @classmethod
    def of(cls, rule: Rule) -> NotScored:
        """Returns the reason for a rule that turns do not show."""
        return cls.JUDGE if rule.measure.judged else cls.NO_WHEN


_EXPLANATIONS = {
    NotScored.JUDGE: "Rules that need a judge are not scored",
    NotScored.NO_WHEN: (
        "Rules without `when:` are not scored (with `when: {user: '.'}`, a rule is scored in every"
        " turn)"
    ),
}


@dataclass(frozen=True)
class SuiteRule:
    """A rule of a suite.

    Attributes:
        rule: its id; "" for the only rule of a case.
        not_scored: why no turn is scored by it; None if turns are.
    """

    case: str
    rule: str
    text: str
    not_scored: NotScored | None

    @property
    def name(self) -> str:
        """`CASE/RULE`, or only the case for its only rule."""
        return f"{self.case}/{self.rule}" if self.rule else self.case


def which_are_scored(rules: Sequence[SuiteRule]) -> str:
    """Says in sentences how many rules are scored, which are not, and why."""
    count = sum(rule.not_scored is None for rule in rules)
    verb = "is" if count == 1 else "are"
    sentences = [f"{count} of {count_of(len(rules), 'rule')} {verb} scored."]
    for reason in NotScored:
        if names := [rule.name for rule in rules if rule.not_scored is reason]:
            sentences.append(f"{_EXPLANATIONS[reason]}: {', '.join(names)}.")
    return " ".join(sentences)


class SuiteMiddleware:
    """The cases of a suite, with the methods that edit their chats and the rules that score them.

    Raises:
        UsageError: a method acts inside the model, or selects rules of a kind that a case does not
            have; or no rule of the suite can be scored in a conversation.
    """

    def __init__(self, suite: Suite, methods: Sequence[Method] = ()):
        compiled = compile_methods(methods)
        for method in methods:
            if method not in (*compiled.messages, *compiled.retries):
                _refuse(method)
        check_retries(compiled)
        self.suite = suite
        self._cases = [EditingCase.of(case, methods) for case in suite.cases]
        if not any(case.rules for case in self._cases):
            raise UsageError(
                f"No rule of the suite {suite.name!r} can be scored in a conversation:"
                f" {which_are_scored(self.rules)}",
                option="suite",
                value=suite.name,
            )

    @property
    def rules(self) -> tuple[SuiteRule, ...]:
        """The rules of all cases."""
        return tuple(
            SuiteRule(
                editing.case.id,
                rule.id or "",
                rule.text,
                None if rule.is_shown_by_turns else NotScored.of(rule),
            )
            for editing in self._cases
            for rule in editing.case.rules
        )

    @property
    def unscored_rules(self) -> tuple[SuiteRule, ...]:
        """The rules that no turn is scored by."""
        return tuple(rule for rule in self.rules if rule.not_scored is not None)

    def chat_of(self, request: ChatRequest) -> SuiteChat | EditOutcome:
        """Returns a request with the case that applies to it, or why none does."""
        case = self.case_of(request.system)
        if case is None:
            return EditOutcome.NO_CASE
        return EditOutcome.STORED if request.is_stored else SuiteChat(request, case)

    def case_of(self, system: str) -> EditingCase | None:
        """Returns the case for a request with this system prompt; None if no case applies."""
        if len(self._cases) == 1:
            return self._cases[0]
        matches = [editing for editing in self._cases if editing.prompt in system]
        return max(matches, key=lambda editing: len(editing.prompt), default=None)


def _refuse(method: Method) -> NoReturn:
    """Raises an error for a method that acts inside the model."""
    *others, last = METHODS_OUTSIDE_MODELS
    raise UsageError(
        f"{method.name} acts inside the model, and only the messages of a chat can be edited here;"
        f" use {', '.join(others)} or {last}, or serve the model with `holdfast serve"
        " --default-method`.",
        option="method",
        value=spec_of([method]),
        allowed=list(METHODS_OUTSIDE_MODELS),
    )
