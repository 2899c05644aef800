"""Applies a suite to chats that take place elsewhere: a case's methods edit the requests, and its
rules score the replies.

A suite with one case applies to every request. Otherwise a request belongs to the case whose prompt
its system message contains; if several do, to the one with the longest prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, NoReturn

from holdfast.chat.messages import Message, dialog_seed
from holdfast.chat.reasoning import split_reasoning
from holdfast.drift.cases import Case, Rule, Suite
from holdfast.drift.prompt_rules import CaseRules, with_rules
from holdfast.errors import PromptError, UsageError
from holdfast.logs.dialogs import dialog_of, estimated_tokens
from holdfast.methods import METHODS_OUTSIDE_MODELS, Method, compile_methods, spec_of
from holdfast.methods.compiled import CompiledMethods
from holdfast.models.checked_replies import check_retries
from holdfast.plurals import count_of, join_with_or
from holdfast.proxy.chat_replies import waits_for_client
from holdfast.proxy.chat_requests import ChatRequest, Unreadable
from holdfast.proxy.json_edits import Insertion, JsonEdit, Removal
from holdfast.proxy.reply_scores import ScoredReply, WhyUnscored, note_failure, score_reply
from holdfast.transcripts import linear_transcript
from holdfast.transcripts.call_messages import output_messages
from holdfast.transcripts.transcript import Event, EventKind, Malformed

_MAX_CUT_REPLIES = 1000  # that are remembered for each case


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
    raise UsageError(
        f"{method.name} acts inside the model, and only the messages of a chat can be edited here;"
        f" use {join_with_or(METHODS_OUTSIDE_MODELS)}, or serve the model with `holdfast serve"
        " --default-method`.",
        option="method",
        value=spec_of([method]),
        allowed=list(METHODS_OUTSIDE_MODELS),
    )


@dataclass(frozen=True)
class EditingCase:
    """A case, with the methods that edit its chats and the rules that score them.

    Attributes:
        rules: the case's rules that need neither a probe nor a judge.
        cut_replies: replies that were cut at the token limit; a later request repeats them, but
            does not say so. The methods check them accordingly.
    """

    case: Case
    methods: CompiledMethods
    rules: tuple[Rule, ...]
    cut_replies: set[str]

    @classmethod
    def of(cls, case: Case, methods: Sequence[Method]) -> EditingCase:
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
    editing: EditingCase

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
        return Edit(EditOutcome.EDITED, changes, self._reminds(changes))

    def _reminds(self, changes: Sequence[JsonEdit]) -> bool:
        """Whether the changes add text to the last message, and that is the user's."""
        if not self.request.ends_with_user:
            return False
        last = self.request.messages[-1].item
        return any(change.path[: len(last)] == last for change in changes)

    def _changes(self, messages: Sequence[Message]) -> tuple[JsonEdit, ...]:
        """Returns the changes that make the request say what the methods make of `messages`."""
        seed = dialog_seed(self.request.chat)
        return self.request.changes_to(self.editing.methods.edit(messages, seed))

    @property
    def retries(self) -> int:
        """How many times the reply may be drawn again."""
        retry = self.editing.methods.retry
        return 0 if retry is None or self.passes_unchecked else retry.retries

    @property
    def passes_unchecked(self) -> bool:
        """Whether a method draws replies again, but cannot check those to this request.

        That is so if several replies were asked for, if the reply is made in the background, or if
        there is no message of the user to put a reminder into.
        """
        if self.editing.methods.retry is None:
            return False
        request = self.request
        has_no_user = all(message.role != "user" for message in request.messages)
        return request.body.get("n") not in (None, 1) or request.is_in_background or has_no_user

    def broken_rules(self, answer: Mapping[str, Any]) -> Sequence[str] | None:
        """Returns the texts of the rules that an answer breaks and that may have it drawn again.

        None if no method draws replies again, or if the answer cannot be read, has no text, or
        calls a tool.
        """
        retry = self.editing.methods.retry
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
        retry = self.editing.methods.retry
        if retry is None:
            return None
        try:
            changes = self._changes(retry.remind(self.request.chat, broken))
        except Unreadable:
            return None
        return Edit(EditOutcome.EDITED, changes) if changes else None

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
            self.editing.note_cut(turn.done.text)
        return score_reply(self.editing.case.id, self.editing.rules, turn)


def _awaits_tools(answer: Mapping[str, Any], reply: Sequence[Event]) -> bool:
    """Whether the assistant's turn continues after an answer, with the result of a tool."""
    if "output" in answer:  # the Responses API, which runs some tools on the server
        return waits_for_client(answer["output"])
    return any(event.kind is EventKind.TOOL_CALL for event in reply)


class EditOutcome(Enum):
    """The outcome of trying to edit a request."""

    EDITED = "edited"  # text was added, or messages were left out
    UNCHANGED = "unchanged"  # the methods had nothing to do
    NO_CASE = "no_case"  # its system prompt belongs to no case
    NO_PROMPT = "no_prompt"  # it has no system prompt, and a method needs one
    STORED = "stored"  # the server keeps the dialog so far, so its turns are not known
    OTHER_API = "other_api"  # it is for an API whose chats are not edited
    UNREADABLE = "unreadable"  # it is not in the API's format as we know it
    FAILED = "failed"  # a fault while it was edited, which the log describes, or no time was left


@dataclass(frozen=True)
class Edit:
    """The changes to make in a request.

    Attributes:
        reminds: whether text is added to the last message, and that is the user's. Reminders in
            earlier messages were counted when these were the last.
    """

    outcome: EditOutcome
    changes: tuple[JsonEdit, ...] = ()
    reminds: bool = False

    @property
    def added(self) -> list[str]:
        """The texts that are added to messages."""
        return [change.text for change in self.changes if isinstance(change, Insertion)]

    @property
    def added_tokens(self) -> int:
        """The length of these texts, estimated from their bytes, as there is no tokenizer."""
        return estimated_tokens(self.added)

    @property
    def left_out(self) -> int:
        """The number of messages that are left out."""
        return sum(isinstance(change, Removal) for change in self.changes)
