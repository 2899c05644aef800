"""Applies a suite to a chat that goes on elsewhere: methods edit its messages, rules score it.

A suite of one case applies to every request. With several, a request is of the case whose prompt
its system message is or contains; the longest, if there are several.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NoReturn

from holdfast.chat.messages import Message, dialog_seed
from holdfast.chat.reasoning import split_reasoning
from holdfast.drift.cases import Case, Rule, Suite
from holdfast.drift.prompt_rules import CaseRules, with_rules
from holdfast.drift.suites import FOLLOWED
from holdfast.errors import HoldfastError, PromptError, UsageError
from holdfast.logs.dialogs import LoggedTurn, dialog_of, estimated_tokens
from holdfast.measures import Score
from holdfast.methods import METHODS_OUTSIDE_MODELS, Method, compile_methods, spec_of
from holdfast.methods.compiled import CompiledMethods
from holdfast.models.checked_replies import check_retries
from holdfast.proxy.chat_requests import ChatRequest, Unreadable
from holdfast.proxy.json_edits import Change, Insertion, Removal
from holdfast.transcripts import linear
from holdfast.transcripts.reader import output_messages
from holdfast.transcripts.transcript import Kind, Malformed

_LOG = logging.getLogger("holdfast.proxy")


class Outcome(Enum):
    """The outcome of editing a request."""

    EDITED = "edited"  # text was added, or messages were left out
    UNCHANGED = "unchanged"  # the methods had nothing to do
    NO_CASE = "no_case"  # its system message is that of no case
    NO_PROMPT = "no_prompt"  # a method needs its system message, and it has none
    STORED = "stored"  # the dialog so far is on the server, so its turns are not known
    UNREADABLE = "unreadable"  # it is no request of the API as we know it, or a measure failed


class Unscored(Enum):
    """Why a reply has no scores."""

    FAILED = "failed"  # the request was refused, or the reply broke off
    UNREADABLE = "unreadable"  # it is no reply of the API as we know it
    MEASURE_FAILED = "measure_failed"  # the log names the rule
    UNFINISHED = "unfinished"  # it calls a tool, so the assistant's turn goes on
    EMPTY = "empty"  # no rule applies to it, or it has no text
    BUSY = "busy"  # too many replies were waiting to be scored
    TOO_LONG = "too_long"
    NOT_SUPPORTED = "not_supported"  # compressed in a way that is not known here


@dataclass(frozen=True)
class SuiteChat:
    """A request of a case of the suite, as it was before it was edited."""

    request: ChatRequest
    case: Case


@dataclass(frozen=True)
class Edit:
    """The changes to make in a request.

    Attributes:
        chat: the request, if its reply can be scored.
        reminds: whether text is added to its last message, if that is the user's. A reminder
            further up was counted when its message was the last.
    """

    outcome: Outcome
    chat: SuiteChat | None = None
    changes: tuple[Change, ...] = ()
    reminds: bool = False

    @property
    def added(self) -> list[str]:
        """The texts that are added."""
        return [change.text for change in self.changes if isinstance(change, Insertion)]

    @property
    def added_tokens(self) -> int:
        """Their length, estimated from their bytes, as there is no tokenizer."""
        return estimated_tokens(self.added)

    @property
    def left_out(self) -> int:
        """How many messages are left out."""
        return sum(isinstance(change, Removal) for change in self.changes)


@dataclass(frozen=True)
class RuleScore:
    """The score of a reply by one rule."""

    rule: str  # its id; "" for the only rule of a case
    value: float
    reason: str

    @property
    def kept(self) -> bool:
        """Whether the reply follows the rule."""
        return self.value >= FOLLOWED


@dataclass(frozen=True)
class ScoredReply:
    """The scores of an assistant's turn."""

    case: str
    turn: int  # of the dialog, from 1
    scores: tuple[RuleScore, ...]


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
        self._cases = {case.id: _prepared(case, methods) for case in suite.cases}
        if not any(case.rules for case in self._cases.values()):
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
            f"{case.id}/{rule.id}" if rule.id else case.id
            for case in self.suite.cases
            for rule in case.all_rules
            if rule not in self._cases[case.id].rules
        )

    def case_of(self, system: str) -> Case | None:
        """The case that a request with this system prompt is of."""
        if len(self.suite.cases) == 1:
            return self.suite.cases[0]
        prompts = [case for case in self.suite.cases if case.system_prompt.strip() in system]
        return max(prompts, key=lambda case: len(case.system_prompt.strip()), default=None)

    def edit(self, request: ChatRequest) -> Edit:
        """The changes that the methods of its case make in a request."""
        case = self.case_of(request.system)
        if case is None:
            return Edit(Outcome.NO_CASE)
        if request.is_stored:
            return Edit(Outcome.STORED)
        chat = SuiteChat(request, case)
        try:
            changes = self._changes(chat, request.chat)
        except PromptError:
            return Edit(Outcome.NO_PROMPT, chat)
        except (Unreadable, UsageError):  # the latter from a measure that the user wrote
            return Edit(Outcome.UNREADABLE, chat)
        last = request.messages[-1].item if request.ends_with_user else None
        reminds = any(change.path[: len(last)] == last for change in changes) if last else False
        return Edit(Outcome.EDITED if changes else Outcome.UNCHANGED, chat, changes, reminds)

    def _changes(self, chat: SuiteChat, messages: Sequence[Message]) -> tuple[Change, ...]:
        """The changes after which a request has these messages, as the methods edit them."""
        methods, seed = self._cases[chat.case.id].methods, dialog_seed(chat.request.chat)
        return chat.request.changes_to(methods.edit(messages, seed))

    def retries(self, chat: SuiteChat) -> int:
        """How often a reply is drawn again at most."""
        return sum(method.retries for method in self._cases[chat.case.id].methods.retries)

    def broken_rules(self, chat: SuiteChat, answer: Mapping[str, Any]) -> Sequence[str] | None:
        """The texts of the rules that an answer breaks, for which it may be drawn again.

        None if it has no text, calls a tool or cannot be read.
        """
        (retry,) = self._cases[chat.case.id].methods.retries
        try:
            reply = output_messages(answer)
        except Malformed:
            return None
        written = "\n".join(event.text for event in reply if event.kind is Kind.MESSAGE)
        text = split_reasoning(written).reply
        if not text.strip() or any(event.kind is Kind.TOOL_CALL for event in reply):
            return None
        is_cut = any(event.is_cut for event in reply)
        return retry.broken(chat.request.chat, text, is_cut=is_cut)

    def edit_again(self, chat: SuiteChat, broken: Sequence[str]) -> Edit | None:
        """The changes in a request after a reply that broke these rules; None if there are none."""
        (retry,) = self._cases[chat.case.id].methods.retries
        try:
            changes = self._changes(chat, retry.reminded(chat.request.chat, broken))
        except Unreadable:
            return None
        return Edit(Outcome.EDITED, chat, changes) if changes else None

    def score(self, chat: SuiteChat, answer: Mapping[str, Any]) -> ScoredReply | Unscored:
        """The scores of the answer to a request.

        A turn is everything that the assistant does between two messages of the user, so it is
        scored once, with the reply that ends it.
        """
        try:
            reply = output_messages(answer)
            dialog = dialog_of(linear("", [*chat.request.events, *reply]))
        except Malformed:
            return Unscored.UNREADABLE
        if any(event.kind is Kind.TOOL_CALL for event in reply):
            return Unscored.UNFINISHED
        if not reply or not dialog.turns:
            return Unscored.EMPTY
        turn = dialog.turns[-1]
        scores, failed = [], False
        for rule in self._cases[chat.case.id].rules:
            try:
                score = _score(rule, turn)
            except HoldfastError as error:  # of a measure that the user wrote, or a slow pattern
                failed = True
                # its message may quote the reply, so it is not logged
                where = f"{chat.case.id}/{rule.id or ''}"
                _LOG.error("The rule %s could not be scored: %s", where, type(error).__name__)
                continue
            if score is not None:
                scores.append(RuleScore(rule.id or "", score.value, score.reason))
        if scores:
            return ScoredReply(chat.case.id, turn.number, tuple(scores))
        return Unscored.MEASURE_FAILED if failed else Unscored.EMPTY


def _score(rule: Rule, turn: LoggedTurn) -> Score | None:
    """The score of a turn by a rule; None if the rule does not apply to it."""
    if not rule.when.applies(turn.done, turn.user, turn.role):
        return None
    return rule.measure.score_turn(turn.done)


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


@dataclass(frozen=True)
class _Case:
    methods: CompiledMethods
    rules: tuple[Rule, ...]  # that can be scored without a probe and without a judge


def _prepared(case: Case, methods: Sequence[Method]) -> _Case:
    knowing = with_rules(CaseRules(case), methods)
    scored = tuple(rule for rule in case.all_rules if rule.is_shown_by_turns)
    return _Case(compile_methods(knowing), scored)
