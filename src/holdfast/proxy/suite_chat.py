"""A chat to which a case of a suite applies: the case's methods edit it, and its rules score it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.chat.messages import Message, dialog_seed
from holdfast.chat.reasoning import split_reasoning
from holdfast.drift.cases import Case, Rule
from holdfast.drift.prompt_rules import CaseRules, with_rules
from holdfast.errors import PromptError
from holdfast.logs.dialogs import dialog_of
from holdfast.methods import Method, compile_methods
from holdfast.methods.compiled import CompiledMethods
from holdfast.proxy.chat_replies import waits_for_client
from holdfast.proxy.chat_requests import ChatRequest, Unreadable
from holdfast.proxy.json_edits import Change
from holdfast.proxy.reply_scores import ScoredReply, WhyUnscored, note_failure, score_reply
from holdfast.proxy.request_edits import Edit, EditOutcome
from holdfast.transcripts import linear_transcript
from holdfast.transcripts.call_messages import output_messages
from holdfast.transcripts.transcript import Event, Kind, Malformed


@dataclass(frozen=True)
class EditingCase:
    """A case, with the methods that edit its chats and the rules that score them.

    Attributes:
        rules: the case's rules that need neither a probe nor a judge.
    """

    case: Case
    methods: CompiledMethods
    rules: tuple[Rule, ...]

    @classmethod
    def of(cls, case: Case, methods: Sequence[Method]) -> EditingCase:
        """Combines a case with methods, which get to know its rules.

        Raises:
            UsageError: a method selects rules of a kind that the case does not have.
        """
        rules = CaseRules(case, on_failed=partial(note_failure, case.id))
        methods_with_rules = with_rules(rules, methods)
        scored = tuple(rule for rule in case.rules if rule.is_shown_by_turns)
        return cls(case, compile_methods(methods_with_rules), scored)

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

    def _reminds(self, changes: Sequence[Change]) -> bool:
        """Whether the changes add text to the last message, and that is the user's."""
        if not self.request.ends_with_user:
            return False
        last = self.request.messages[-1].item
        return any(change.path[: len(last)] == last for change in changes)

    def _changes(self, messages: Sequence[Message]) -> tuple[Change, ...]:
        """Returns the changes that make the request say what the methods make of `messages`."""
        seed = dialog_seed(self.request.chat)
        return self.request.changes_to(self.editing.methods.edit(messages, seed))

    @property
    def retries(self) -> int:
        """How many times the reply may be drawn again.

        0 if several replies were asked for, or if the reply is made in the background.
        """
        has_several_replies = self.request.body.get("n") not in (None, 1)
        if has_several_replies or self.request.body.get("background"):
            return 0
        retry = self.editing.methods.retry
        return 0 if retry is None else retry.retries

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
        written = "\n".join(event.text for event in reply if event.kind is Kind.MESSAGE)
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
        return score_reply(self.editing.case.id, self.editing.rules, dialog.turns[-1])


def _awaits_tools(answer: Mapping[str, Any], reply: Sequence[Event]) -> bool:
    """Whether the assistant's turn continues after an answer, with the result of a tool."""
    if "output" in answer:  # the Responses API, which runs some tools on the server
        return waits_for_client(answer["output"])
    return any(event.kind is Kind.TOOL_CALL for event in reply)
