"""Applies a suite to chats that take place elsewhere: a case's methods edit the requests, and its
rules score the replies.

A suite with one case applies to every request. Otherwise a request belongs to the case whose prompt
its system message contains; if several do, to the one with the longest prompt.

    request -> SuiteMiddleware.chat_of -> SuiteChat -> edit -> Edit
                            answer to it -> SuiteChat -> score -> ScoredReply
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NoReturn

from holdfast.chat.messages import Message, dialog_seed
from holdfast.chat.reasoning import split_reasoning
from holdfast.drift.cases import Case, Rule, Suite
from holdfast.drift.prompt_rules import CaseRules, with_rules
from holdfast.errors import HoldfastError, PromptError, UsageError
from holdfast.logs.dialogs import dialog_of
from holdfast.measures.turns import AssistantTurn
from holdfast.methods import METHODS_OUTSIDE_MODELS, Method, compile_methods, spec_of
from holdfast.methods.compiled import CompiledMethods
from holdfast.models.checked_replies import check_retries
from holdfast.plurals import join_with_or
from holdfast.proxy.chat_edits import Edit, EditOutcome
from holdfast.proxy.chat_replies import waits_for_client
from holdfast.proxy.chat_requests import ChatRequest, Unreadable
from holdfast.proxy.json_edits import JsonEdit
from holdfast.proxy.reply_scores import ScoredReply, WhyUnscored, note_failure, score_reply
from holdfast.proxy.suite_rules import SuiteRule, rules_of_case, which_are_scored
from holdfast.transcripts import linear_transcript
from holdfast.transcripts.call_messages import output_messages
from holdfast.transcripts.transcript import Event, EventKind, Malformed

_MAX_CUT_REPLIES = 1000  # that are remembered for each case


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
        self.rules = tuple(chain.from_iterable(map(rules_of_case, suite.cases)))
        self._cases = [CompiledCase.of(case, methods) for case in suite.cases]
        if not any(case.rules for case in self._cases):
            raise UsageError(
                f"No rule of the suite {suite.name!r} can be scored in a conversation:"
                f" {which_are_scored(self.rules)}",
                option="suite",
                value=suite.name,
            )

    @property
    def unscored_rules(self) -> tuple[SuiteRule, ...]:
        """The rules that no turn is scored by."""
        return tuple(rule for rule in self.rules if rule.not_scored is not None)

    def load_lexicons(self) -> None:
        """Loads what the measures need, by scoring a word, so that no chat waits for it."""
        for rule in chain.from_iterable(case.rules for case in self._cases):
            if rule.measure.loads:
                with suppress(HoldfastError):  # it is reported with the first reply
                    rule.measure.judge_turn(AssistantTurn("Hello.", ()))

    def chat_of(self, request: ChatRequest) -> SuiteChat | EditOutcome:
        """Returns a request with the case that applies to it, or why none does."""
        case = self.case_of(request.system)
        if case is None:
            return EditOutcome.NO_CASE
        return EditOutcome.STORED if request.is_stored else SuiteChat(request, case)

    def case_of(self, system: str) -> CompiledCase | None:
        """Returns the case for a request with this system prompt; None if no case applies."""
        if len(self._cases) == 1:
            return self._cases[0]
        matches = [compiled for compiled in self._cases if compiled.prompt in system]
        return max(matches, key=lambda compiled: len(compiled.prompt), default=None)


def _refuse(method: Method) -> NoReturn:
    """Raises an error for a method that acts inside the model."""
    raise UsageError(
        f"{method.name} acts inside the model, and only the messages of a chat can be edited here;"
        f" use {join_with_or(METHODS_OUTSIDE_MODELS)}, or serve the model with `holdfast serve"
        " --default-method`.",
        option="method",
        value=spec_of([method]),
        allowed=list(METHODS_OUTSIDE_MODELS),
    )


@dataclass(frozen=True)
class CompiledCase:
    """A case, with the methods that edit its chats and the rules that score them.

    Attributes:
        methods: the methods, which know the rules of the case.
        rules: the case's rules that need neither a probe nor a judge.
        cut_replies: replies that were cut at the token limit; a later request repeats them, but
            does not say so. The methods check them accordingly.
    """

    case: Case
    methods: CompiledMethods
    rules: tuple[Rule, ...]
    cut_replies: set[str]

    @classmethod
    def of(cls, case: Case, methods: Sequence[Method]) -> CompiledCase:
        """Combines a case with methods, which get to know its rules.

        Raises:
            UsageError: a method selects rules of a kind that the case does not have.
        """
        rules = CaseRules(case, on_failed=partial(note_failure, case.id))
        methods_with_rules = with_rules(rules, methods)
        scored = tuple(rule for rule in case.rules if rule.is_shown_by_turns)
        return cls(case, compile_methods(methods_with_rules), scored, rules.cut_replies)

    def note_cut(self, reply: str) -> None:
        """Remembers that a reply was cut."""
        if len(self.cut_replies) >= _MAX_CUT_REPLIES:
            self.cut_replies.clear()
        self.cut_replies.add(reply)

    @property
    def prompt(self) -> str:
        """The text by which a chat is recognised as one of this case."""
        return self.case.system_prompt.strip()


@dataclass(frozen=True)
class SuiteChat:
    """A request as it came, and the case that applies to it."""

    request: ChatRequest
    compiled: CompiledCase

    def edit(self) -> Edit:
        """Returns the edit that the methods make in the request."""
        try:
            changes = self._changes(self.request.chat)
        except PromptError:
            return Edit(EditOutcome.NO_PROMPT)
        except Unreadable:
            return Edit(EditOutcome.UNREADABLE)
        if not changes:
            return Edit(EditOutcome.UNCHANGED)
        return Edit(EditOutcome.EDITED, changes, self._num_reminders(changes))

    def _num_reminders(self, changes: Sequence[JsonEdit]) -> int:
        """Returns 1 if the changes add text to the last message, and that is the user's."""
        if not self.request.ends_with_user:
            return 0
        last = self.request.messages[-1].item
        return int(any(change.path[: len(last)] == last for change in changes))

    def _changes(self, messages: Sequence[Message]) -> tuple[JsonEdit, ...]:
        """Returns the changes that make the request say what the methods make of `messages`."""
        seed = dialog_seed(self.request.chat)
        return self.request.changes_to(self.compiled.methods.edit(messages, seed))

    # Retries

    @property
    def retries(self) -> int:
        """How many times the reply may be drawn again."""
        retry = self.compiled.methods.retry
        return 0 if retry is None or self.passes_unchecked else retry.retries

    @property
    def passes_unchecked(self) -> bool:
        """Whether a method draws replies again, but cannot check those to this request.

        That is so if several replies were asked for, if the reply is made in the background, or if
        there is no message of the user to put a reminder into.
        """
        if self.compiled.methods.retry is None:
            return False
        request = self.request
        has_no_user = all(message.role != "user" for message in request.messages)
        return request.body.get("n") not in (None, 1) or request.is_in_background or has_no_user

    def broken_rules(self, answer: Mapping[str, Any]) -> Sequence[str] | None:
        """Returns the texts of the rules that an answer breaks and that may have it drawn again.

        None if no method draws replies again, or if the answer cannot be read, has no text, or
        calls a tool.
        """
        retry = self.compiled.methods.retry
        if retry is None:
            return None
        try:
            reply = output_messages(answer)
        except Malformed:
            return None
        written = "\n".join(event.text for event in reply if event.kind is EventKind.MESSAGE)
        text = split_reasoning(written).reply
        if not text.strip() or _awaits_tools(answer, reply):
            return None
        is_cut = any(event.is_cut for event in reply)
        return retry.broken(self.request.chat, text, is_cut=is_cut)

    def edit_again(self, broken: Sequence[str]) -> Edit | None:
        """Returns the edit after a reply that broke these rules; None if it changes nothing."""
        retry = self.compiled.methods.retry
        if retry is None:
            return None
        try:
            changes = self._changes(retry.remind(self.request.chat, broken))
        except Unreadable:
            return None
        return Edit(EditOutcome.EDITED, changes) if changes else None

    # Scores

    def score(self, answer: Mapping[str, Any]) -> ScoredReply | WhyUnscored:
        """Scores the answer to the request.

        A turn is everything that the assistant does between two messages of the user. It is scored
        once, with the reply that ends it.
        """
        try:
            reply = output_messages(answer)
            dialog = dialog_of(linear_transcript("", [*self.request.events, *reply]))
        except Malformed:
            return WhyUnscored.UNREADABLE
        if _awaits_tools(answer, reply):
            return WhyUnscored.UNFINISHED
        if not reply or not dialog.turns:
            return WhyUnscored.EMPTY
        turn = dialog.turns[-1]
        if turn.done.is_cut:
            self.compiled.note_cut(turn.done.text)
        return score_reply(self.compiled.case.id, self.compiled.rules, turn)


def _awaits_tools(answer: Mapping[str, Any], reply: Sequence[Event]) -> bool:
    """Whether the assistant's turn continues after an answer, with the result of a tool."""
    if "output" in answer:  # the Responses API, which runs some tools on the server
        return waits_for_client(answer["output"])
    return any(event.kind is EventKind.TOOL_CALL for event in reply)
