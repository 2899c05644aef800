"""Edits a request on its way up, and scores the reply once it is complete; both are bytes."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.drift.cases import Suite
from holdfast.drift.suites import as_suite
from holdfast.methods import Method
from holdfast.proxy.chat_edits import Edit, EditOutcome
from holdfast.proxy.chat_log import ChatLog
from holdfast.proxy.chat_replies import read_answers
from holdfast.proxy.chat_requests import Api, Unreadable, read_request
from holdfast.proxy.json_edits import edit_document
from holdfast.proxy.reply_scores import ScoredReply, WhyUnscored
from holdfast.proxy.suite_middleware import SuiteChat, SuiteMiddleware
from holdfast.proxy.suite_rules import which_are_scored
from holdfast.proxy.tally import Tally
from holdfast.proxy.upstream_answer import UpstreamAnswer

_LOG = logging.getLogger("holdfast.proxy")

OnReply = Callable[[ScoredReply], None]


@dataclass(frozen=True)
class RelayedRequest:
    """A request on its way to the server.

    Attributes:
        content: the body to send; exactly the bytes that came, if nothing is changed.
        chat: the request as it came, with the rules that its reply is scored by; None if its reply
            is not scored.
        retries: how many times it may be sent again if the reply breaks a rule.
    """

    api: Api
    content: bytes
    edit: Edit
    chat: SuiteChat | None = None
    retries: int = 0


class ChatRelay:
    """Edits requests and scores replies with a middleware, and counts both.

    Args:
        log: the file to which the chat of each complete reply is appended, with the texts that were
            added, as `holdfast logs` reads it; None writes no text anywhere.
        on_reply: called with the scores of each reply.

    Raises:
        UsageError: the log cannot be written.
    """

    def __init__(
        self,
        middleware: SuiteMiddleware,
        tally: Tally,
        log: Path | None = None,
        on_reply: OnReply | None = None,
    ):
        self._middleware = middleware
        self.tally = tally
        self._log = None if log is None else ChatLog(log)
        self._on_reply = on_reply

    def begin(self, api: Api, content: bytes, encoding: str = "") -> RelayedRequest:
        """Edits the body of a request, as `edit` does, and counts it."""
        relayed = self.edit(api, content, encoding)
        self.count(relayed)
        return relayed

    def count(self, relayed: RelayedRequest) -> None:
        """Counts a request."""
        self.tally.note_edit(relayed.edit)
        if relayed.chat is not None and relayed.chat.passes_unchecked:
            self.tally.note_unchecked()

    def edit(self, api: Api, content: bytes, encoding: str = "") -> RelayedRequest:
        """Edits the body of a request; one that cannot be read or edited stays as it is.

        Args:
            encoding: the compression that its Content-Encoding names; "" for none.
        """
        try:
            return self._try_to_edit(api, content, encoding)
        except Exception as error:  # a fault here must not cost the request
            _log_fault("A request could not be edited, and is passed on as it came", error)
            return RelayedRequest(api, content, Edit(EditOutcome.FAILED))

    def _try_to_edit(self, api: Api, content: bytes, encoding: str) -> RelayedRequest:
        unreadable = RelayedRequest(api, content, Edit(EditOutcome.UNREADABLE))
        if encoding.strip().lower() not in ("", "identity"):
            return unreadable
        try:
            document = content.decode()
            request = read_request(api, document)
        except (UnicodeDecodeError, Unreadable):
            return unreadable
        chat = self._middleware.chat_of(request)
        if isinstance(chat, EditOutcome):
            return RelayedRequest(api, content, Edit(chat))
        edit = chat.edit()
        if edit.changes:
            content = edit_document(document, edit.changes).encode()
        is_edited = edit.outcome in (EditOutcome.EDITED, EditOutcome.UNCHANGED)
        return RelayedRequest(api, content, edit, chat, chat.retries if is_edited else 0)

    def broken_rules(self, relayed: RelayedRequest, answer: UpstreamAnswer) -> Sequence[str] | None:
        """Returns the texts of the rules that an answer breaks; None if it cannot be checked."""
        try:
            choices = _choices(relayed, answer)
            if relayed.chat is None or isinstance(choices, WhyUnscored) or len(choices) != 1:
                return None
            return relayed.chat.broken_rules(choices[0])
        except Exception as error:  # a fault here must not cost the reply
            _log_fault("A reply could not be checked", error)
            return None

    def retry(self, relayed: RelayedRequest, broken: Sequence[str]) -> RelayedRequest | None:
        """Returns the request to send after a reply broke rules; None if it would be the same."""
        chat = relayed.chat
        try:
            edit = None if chat is None else chat.edit_again(broken)
            if chat is None or edit is None:
                return None
            content = edit_document(chat.request.document, edit.changes).encode()
        except Exception as error:  # a fault here must not cost the reply
            _log_fault("A retry could not be made", error)
            return None
        self.tally.note_retry(edit.added_tokens + chat.request.tokens)
        return replace(relayed, content=content, edit=edit)

    def end(self, relayed: RelayedRequest, answer: UpstreamAnswer) -> None:
        """Scores the reply to a request, or counts the reason why it has no scores.

        It raises no error, as the reply itself has been delivered.
        """
        if relayed.chat is None:
            return
        try:
            choices = _choices(relayed, answer)
            if isinstance(choices, WhyUnscored):
                _log_other_content(answer)
                return self.tally.note_reply(choices)
            replies = [relayed.chat.score(choice) for choice in choices]
        except Exception as error:
            _log_fault("A reply could not be scored", error)
            return self.tally.note_reply(WhyUnscored.UNREADABLE)
        for choice, reply in zip(choices, replies, strict=True):
            self.tally.note_reply(reply)
            if self._log is not None:
                self._log.write(relayed.chat.request, choice, relayed.edit.added)
            if isinstance(reply, ScoredReply):
                self._report(reply)

    def _report(self, reply: ScoredReply) -> None:
        """Calls the user's function with the scores of a reply."""
        if self._on_reply is None:
            return
        try:
            self._on_reply(reply)
        except Exception as error:
            _log_fault("on_reply failed", error)


def chat_relay(
    suite: Suite | Path | str,
    methods: Sequence[Method],
    *,
    tally: Tally | None,
    on_reply: OnReply | None,
    log: Path | str | None,
) -> ChatRelay:
    """Makes the relay of a client that runs in the user's process."""
    middleware = SuiteMiddleware(as_suite(suite, probed=False), methods)
    if middleware.unscored_rules:
        _LOG.warning("holdfast: %s", which_are_scored(middleware.rules))
    return ChatRelay(middleware, tally or Tally(), None if log is None else Path(log), on_reply)


def _log_fault(what_happened: str, error: Exception) -> None:
    """Logs where an error was raised, without its message, which may quote a chat."""
    where = "".join(traceback.format_tb(error.__traceback__))
    _LOG.error("%s (%s):\n%s", what_happened, type(error).__name__, where)


def _log_other_content(answer: UpstreamAnswer) -> None:
    """Logs that an answer without an error is something else than JSON or a stream of events."""
    content_type = answer.headers.get("content-type", "")
    if answer.status == 200 and not re.search("json|event-stream", content_type, re.I):
        _LOG.warning(
            "The server answered a chat with status 200 and the content type %r; the client got"
            " the answer as it came.",
            content_type[:80],
        )


def _choices(
    relayed: RelayedRequest, answer: UpstreamAnswer
) -> list[Mapping[str, Any]] | WhyUnscored:
    """Returns the choices of an answer, or why there are none."""
    if answer.status != 200:
        return WhyUnscored.FAILED
    if answer.is_too_long:
        return WhyUnscored.TOO_LONG
    text = answer.text
    if text is None:
        return WhyUnscored.NOT_SUPPORTED
    if choices := read_answers(relayed.api, text):
        return choices
    is_later = relayed.chat is not None and relayed.chat.request.is_in_background
    return WhyUnscored.BACKGROUND if is_later else WhyUnscored.FAILED
