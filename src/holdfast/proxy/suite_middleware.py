"""Applies a suite to chats that go on elsewhere: each is of one case, which edits and scores it.

A suite of one case applies to every request. With several, a request is of the case whose prompt
its system message is or contains; the longest, if there are several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from holdfast.drift.cases import Suite
from holdfast.errors import UsageError
from holdfast.methods import METHODS_OUTSIDE_MODELS, Method, compile_methods, spec_of
from holdfast.models.checked_replies import check_retries
from holdfast.proxy.chat_requests import ChatRequest
from holdfast.proxy.request_edits import Outcome
from holdfast.proxy.suite_chat import EditingCase, SuiteChat


class SuiteMiddleware:
    """The cases of a suite, with the methods and the rules of each.

    Raises:
        UsageError: a method acts inside the model, or needs the texts of rules that a case does
            not have; or no rule of the suite can be scored in a conversation.
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
                f"No rule of the suite {suite.name!r} can be scored in a conversation, as they need"
                " a judge or the answer to a probe; give a rule `when`, with the turns that it is"
                " for, or another measure.",
                option="suite",
                value=suite.name,
            )

    @property
    def unscored_rules(self) -> tuple[str, ...]:
        """The rules, as CASE/RULE, that need a judge or the answer to a probe."""
        return tuple(
            f"{editing.case.id}/{rule.id}" if rule.id else editing.case.id
            for editing in self._cases
            for rule in editing.case.all_rules
            if rule not in editing.rules
        )

    def chat_of(self, request: ChatRequest) -> SuiteChat | Outcome:
        """A request with the case that applies to it, or why none does."""
        case = self.case_of(request.system)
        if case is None:
            return Outcome.NO_CASE
        return Outcome.STORED if request.is_stored else SuiteChat(request, case)

    def case_of(self, system: str) -> EditingCase | None:
        """The case of a request with this system prompt; None if no case applies to it."""
        if len(self._cases) == 1:
            return self._cases[0]
        fitting = [case for case in self._cases if case.case.system_prompt.strip() in system]
        return max(fitting, key=lambda case: len(case.case.system_prompt.strip()), default=None)


def _refuse(method: Method) -> NoReturn:
    *others, last = METHODS_OUTSIDE_MODELS
    raise UsageError(
        f"{method.name} acts inside the model, and only the messages of a chat can be edited here;"
        f" use {', '.join(others)} or {last}, or serve the model with `holdfast serve"
        " --default-method`.",
        option="method",
        value=spec_of([method]),
        allowed=list(METHODS_OUTSIDE_MODELS),
    )
