"""Edits a request on its way up, and scores the reply once it is complete; both are bytes."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

from holdfast.drift.cases import Suite
from holdfast.drift.suites import as_suite
from holdfast.errors import UsageError, reason_of
from holdfast.methods import Method
from holdfast.proxy.chat_replies import read_answers
from holdfast.proxy.chat_requests import Api, ChatRequest, Unreadable, read_request
from holdfast.proxy.json_edits import edit_document
from holdfast.proxy.reply_scores import ScoredReply, WhyUnscored
from holdfast.proxy.suite_middleware import (
    Edit,
    EditOutcome,
    SuiteChat,
    SuiteMiddleware,
    which_are_scored,
)
from holdfast.proxy.tally import Tally

MAX_SCORED_REPLY_BYTES = 8 * 2**20  # a longer reply is not scored
_MAX_WAITING_BYTES = 64 * 2**20  # replies that would wait beyond this are not scored
_MAX_SECONDS = 60.0  # to score a reply; while one takes longer, others are not scored
_LOG = logging.getLogger("holdfast.proxy")

OnReply = Callable[[ScoredReply], None]


@dataclass
class UpstreamAnswer:
    """The response to a request, as far as it has arrived.

    Of a body that is too long to be scored, nothing is kept, as the client has it already. If the
    answer is held back instead, all of it is kept until `release`.

    Attributes:
        status: the HTTP status; 0 if there was no response.
        is_held: whether the client does not have the body yet, so that all of it is kept.
        failure: of a retry, why it gave no reply, for the log; "" if it did, or if that is unknown.
    """

    status: int = 0
    headers: httpx2.Headers = field(default_factory=httpx2.Headers)
    is_held: bool = False
    failure: str = ""
    _parts: list[bytes] = field(init=False, default_factory=list)
    _size: int = field(init=False, default=0)

    def add(self, part: bytes) -> None:
        """Takes the next bytes of the body."""
        self._size += len(part)
        self._parts.append(part)
        if self.is_too_long and not self.is_held:
            self._parts.clear()

    def release(self) -> bytes:
        """Returns the body so far, and keeps it no longer."""
        body = self.body
        self.is_held = False
        self._parts.clear()
        return body

    @property
    def is_too_long(self) -> bool:
        """Whether the body has more than `MAX_SCORED_REPLY_BYTES` bytes."""
        return self._size > MAX_SCORED_REPLY_BYTES

    @property
    def body(self) -> bytes:
        """The body as it was sent, perhaps compressed."""
        return b"".join(self._parts)

    @property
    def text(self) -> str | None:
        """The body as text; None if its compression is not supported here."""
        body = self.body
        encoding = self.headers.get("content-encoding", "").strip().lower()
        try:
            content = httpx2.Response(200, headers=self.headers, content=body).content
        except httpx2.DecodingError:
            return None
        is_known = encoding in ("", "identity") or content != body or not body
        return content.decode("utf-8", "replace") if is_known else None


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
                return self.tally.note_reply(choices)
            replies = [relayed.chat.score(choice) for choice in choices]
        except Exception as error:
            _log_fault("A reply could not be scored", error)
            return self.tally.note_reply(WhyUnscored.UNREADABLE)
        for choice, reply in zip(choices, replies, strict=True):
            self.tally.note_reply(reply)
            if self._log is not None:
                self._log.write(relayed.chat.request, choice, relayed.edit.added)
            if self._on_reply is not None and isinstance(reply, ScoredReply):
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


class CheckedAnswers:
    """The answers to one request, which is sent again while the reply breaks a rule.

        checked = CheckedAnswers(relay, relayed)
        again = relayed
        while again is not None:
            again = checked.add(answer to `again`)
        checked.best

    A reply that has no text or calls a tool is the last, as it cannot be checked. If such an
    answer, an error or no answer at all comes after a reply that breaks a rule, the retry has
    failed, which is counted.

    Attributes:
        best: the answer that breaks the fewest rules; the earliest of several. None before `add`.
        request: the request that `best` answers.
    """

    def __init__(self, relay: ChatRelay, relayed: RelayedRequest):
        self._relay = relay
        self._last_sent = relayed
        self._retries_left = relayed.retries
        self._min_broken: float = math.inf  # how many rules `best` breaks
        self.request = relayed
        self.best: UpstreamAnswer | None = None

    def add(self, answer: UpstreamAnswer) -> RelayedRequest | None:
        """Takes the answer to the last request; returns the next to send, None if there is none."""
        broken = self._relay.broken_rules(self._last_sent, answer)
        if self.best is None or (broken is not None and len(broken) < self._min_broken):
            self.request = self._last_sent
            self.best = answer
        if broken is None:
            if self.best is not answer:
                self._relay.tally.note_failed_retry()
            return None
        self._min_broken = min(self._min_broken, len(broken))
        if not broken or not self._retries_left:
            return None
        self._retries_left -= 1
        again = self._relay.retry(self._last_sent, broken)
        if again is None:
            self._relay.tally.note_failed_retry()
        self._last_sent = again or self._last_sent
        return again


class ScoringQueue:
    """Scores replies one after another, in a thread of its own.

    Attributes:
        waiting: how many replies wait to be scored.
    """

    def __init__(self, relay: ChatRelay):
        self._relay = relay
        self._thread = ThreadPoolExecutor(1, "holdfast-scorer")
        self.waiting = 0
        self._waiting_bytes = 0  # the length of these replies and of their requests
        self._last_begun = 0.0  # the time at which the reply that is being scored was begun

    def add(self, relayed: RelayedRequest | None, answer: UpstreamAnswer) -> None:
        """Has a reply scored if it is that to a chat, unless too many are waiting."""
        if relayed is None or relayed.chat is None:
            return
        size = len(answer.body) + len(relayed.content)
        is_full = self._waiting_bytes and self._waiting_bytes + size > _MAX_WAITING_BYTES
        is_stuck = self.waiting and time.monotonic() - self._last_begun > _MAX_SECONDS
        if is_full or is_stuck:
            return self._relay.tally.note_reply(WhyUnscored.BUSY)
        if not self.waiting:
            self._last_begun = time.monotonic()
        self.waiting += 1
        self._waiting_bytes += size
        loop = asyncio.get_running_loop()
        scored = loop.run_in_executor(self._thread, self._score, relayed, answer)
        scored.add_done_callback(partial(self._note_scored, size))

    def close(self) -> None:
        """Waits until all replies are scored."""
        self._thread.shutdown()

    def _score(self, relayed: RelayedRequest, answer: UpstreamAnswer) -> None:
        self._last_begun = time.monotonic()
        self._relay.end(relayed, answer)

    def _note_scored(self, size: int, scored: asyncio.Future[None]) -> None:
        """Takes note that a reply has been scored."""
        self.waiting -= 1
        self._waiting_bytes -= size


class ChatLog:
    """A file with a chat per line, to which any thread may write.

    Raises:
        UsageError: the file cannot be written.
    """

    def __init__(self, path: Path):
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a", encoding="utf-8")
            if _is_torn(path):  # a process was killed while it wrote; that spoils no other line
                self._file.write("\n")
        except OSError as error:
            raise UsageError(
                f"{path} cannot be written ({reason_of(error)}); name another file.",
                option="log",
                value=str(path),
            ) from None

    def write(self, request: ChatRequest, answer: Mapping[str, Any], added: Sequence[str]) -> None:
        """Writes a request as it came, the answer to it, and the texts that were added."""
        if request.api is Api.CHAT:
            chat = {"messages": request.body["messages"], **answer}
        else:
            chat = {
                **_select_fields(request.body, ("instructions", "input")),
                # `incomplete_details` says whether the reply was cut
                **_select_fields(answer, ("output", "incomplete_details")),
            }
        try:
            with self._lock:
                self._file.write(json.dumps({**chat, "added": list(added)}) + "\n")
                self._file.flush()
        except OSError as error:  # the reply itself is delivered
            _LOG.error("A chat could not be logged: %s", reason_of(error))


def _is_torn(path: Path) -> bool:
    """Whether the last line of a file lacks its line break."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - 1, 0))
        return file.read(1) not in (b"", b"\n")


def _select_fields(fields: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Returns those of the named fields that are present."""
    return {name: fields[name] for name in names if name in fields}
