"""One request and its reply as bytes: edited on the way up, and scored once the reply is over."""

from __future__ import annotations

import json
import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2

from holdfast.drift.cases import Suite
from holdfast.drift.suites import load_suite
from holdfast.errors import HoldfastError, UsageError, reason_of
from holdfast.methods import Method
from holdfast.proxy.chat_replies import read_answers
from holdfast.proxy.chat_requests import Api, ChatRequest, Unreadable, read_request
from holdfast.proxy.json_edits import edit_document
from holdfast.proxy.suite_middleware import (
    Edit,
    Outcome,
    ScoredReply,
    SuiteMiddleware,
    Unscored,
)
from holdfast.proxy.tally import Tally

_LOG = logging.getLogger("holdfast.proxy")
LONGEST_REPLY = 8 * 2**20  # bytes of a reply that are kept until it is scored

OnReply = Callable[[ScoredReply], None]


@dataclass(frozen=True)
class RelayedRequest:
    """A request on its way.

    Attributes:
        content: the body to send; the very bytes that came, if there is nothing to change.
        request: as it came, before it was edited; None if it could not be read.
    """

    api: Api
    content: bytes
    edit: Edit
    request: ChatRequest | None = None

    retries: int = 0  # how often it may be sent again, if the reply breaks a rule

    @property
    def is_scored(self) -> bool:
        """Whether its reply has to be kept until it is over."""
        return self.request is not None and self.edit.case is not None


@dataclass
class Answer:
    """The response to a request, as far as it has come.

    A body that is too long to be scored is not kept, unless it is held.

    Attributes:
        status: 0 if there was none.
        is_held: whether all of it is kept, as the client does not have it yet.
    """

    status: int = 0
    headers: httpx2.Headers = field(default_factory=httpx2.Headers)
    is_held: bool = False
    _parts: list[bytes] = field(init=False, default_factory=list)
    _size: int = field(init=False, default=0)

    def add(self, part: bytes) -> None:
        """Keeps the next bytes of its body."""
        self._size += len(part)
        self._parts.append(part)
        if self.is_too_long and not self.is_held:
            self._parts.clear()

    @property
    def is_too_long(self) -> bool:
        """Whether the body has more than `LONGEST_REPLY` bytes."""
        return self._size > LONGEST_REPLY

    @property
    def body(self) -> bytes:
        """The body as it came."""
        return b"".join(self._parts)


class ChatRelay:
    """Edits requests and scores replies by a middleware, and counts both.

    Args:
        log: the file that gets a line for each reply that came whole, with the chat and the added
            texts, as `holdfast logs` reads it; None: no text is written anywhere.
        on_reply: called with the scores of each reply.
    """

    def __init__(
        self,
        middleware: SuiteMiddleware,
        tally: Tally,
        log: Path | None = None,
        on_reply: OnReply | None = None,
    ):
        self._middleware, self.tally = middleware, tally
        self._log = None if log is None else _ChatLog(log)
        self._on_reply = on_reply

    def begin(self, api: Api, content: bytes, encoding: str = "") -> RelayedRequest:
        """Edits the body of a request; `encoding` is how it is compressed."""
        relayed = self._begun(api, content, encoding)
        self.tally.note_edit(relayed.edit)
        return relayed

    def _begun(self, api: Api, content: bytes, encoding: str) -> RelayedRequest:
        unreadable = RelayedRequest(api, content, Edit(Outcome.UNREADABLE))
        if encoding not in ("", "identity"):
            return unreadable
        try:
            document = content.decode()
            request = read_request(api, document)
        except (UnicodeDecodeError, Unreadable):
            return unreadable
        edit = self._middleware.edit(request)
        if edit.changes:
            content = edit_document(document, edit.changes).encode()
        is_edited = edit.outcome in (Outcome.EDITED, Outcome.UNCHANGED)
        retries = self._middleware.retries(edit.case) if edit.case and is_edited else 0
        return RelayedRequest(api, content, edit, request, retries)

    def broken_rules(self, relayed: RelayedRequest, answer: Answer) -> Sequence[str] | None:
        """The texts of the rules that a whole answer breaks; None if that cannot be told."""
        request, case = relayed.request, relayed.edit.case
        choices = self._choices(relayed, answer)
        if request is None or case is None or isinstance(choices, Unscored) or len(choices) != 1:
            return None
        try:
            return self._middleware.broken_rules(request, case, choices[0])
        except HoldfastError:  # of a measure that the user wrote
            return None

    def again(self, relayed: RelayedRequest, broken: Sequence[str]) -> RelayedRequest | None:
        """The request to send after a reply that broke these rules; None if it is the same."""
        request, case = relayed.request, relayed.edit.case
        assert request is not None and case is not None
        edit = self._middleware.edit_again(request, case, broken)
        if edit is None:
            return None
        content = edit_document(request.document, edit.changes)
        self.tally.note_retry(edit.added_tokens + request.tokens)
        return replace(relayed, content=content.encode())

    def end(self, relayed: RelayedRequest, answer: Answer) -> None:
        """Scores the reply to a request, or counts why it has no scores."""
        request, case = relayed.request, relayed.edit.case
        if request is None or case is None:
            return
        choices = self._choices(relayed, answer)
        if isinstance(choices, Unscored):
            return self.tally.note_reply(choices)
        for choice in choices:
            try:
                scored = self._middleware.score(request, case, choice)
            except HoldfastError:  # of a measure that the user wrote
                scored = Unscored.UNREADABLE
            self.tally.note_reply(scored)
            if isinstance(scored, ScoredReply) and self._on_reply is not None:
                self._on_reply(scored)
            if self._log is not None:
                self._log.write(relayed, choice)

    def _choices(
        self, relayed: RelayedRequest, answer: Answer
    ) -> list[Mapping[str, Any]] | Unscored:
        """The choices of an answer, or why there are none."""
        if answer.status != 200:
            return Unscored.FAILED
        if answer.is_too_long:
            return Unscored.TOO_LONG
        text = _decompressed(answer)
        if text is None:
            return Unscored.NOT_SUPPORTED
        content_type = answer.headers.get("content-type", "")
        return read_answers(relayed.api, content_type, text) or Unscored.FAILED


def chat_relay(
    suite: Suite | Path | str,
    methods: Sequence[Method],
    *,
    tally: Tally | None,
    on_reply: OnReply | None,
    log: Path | str | None,
) -> ChatRelay:
    """The relay of a client that runs in the user's own process."""
    if not isinstance(suite, Suite):
        suite = load_suite(str(suite), probed=False)
    middleware = SuiteMiddleware(suite, methods)
    return ChatRelay(middleware, tally or Tally(), None if log is None else Path(log), on_reply)


class CheckedAnswers:
    """The answers to one request, which is sent again while the reply breaks a rule.

        checked = CheckedAnswers(relay, relayed)
        again = relayed
        while again is not None:
            again = checked.add(answer to `again`)
        checked.best

    Attributes:
        best: the answer that breaks the fewest rules, and the earliest of those.
    """

    def __init__(self, relay: ChatRelay, relayed: RelayedRequest):
        self._relay, self._relayed = relay, relayed
        self._retries_left = relayed.retries
        self._fewest: float = math.inf
        self.best: Answer | None = None

    def add(self, answer: Answer) -> RelayedRequest | None:
        """Takes the next answer; returns the request to send then, or None if there is none."""
        broken = self._relay.broken_rules(self._relayed, answer)
        if self.best is None:
            self.best = answer
        if broken is None:
            return None
        if len(broken) < self._fewest:
            self.best, self._fewest = answer, len(broken)
        if not broken or not self._retries_left:
            return None
        self._retries_left -= 1
        return self._relay.again(self._relayed, broken)


def _decompressed(answer: Answer) -> str | None:
    """The text of a response; None if it cannot be decompressed here."""
    body, encoding = answer.body, answer.headers.get("content-encoding", "identity")
    try:
        content = httpx2.Response(200, headers=answer.headers, content=body).content
    except httpx2.DecodingError:
        return None
    is_known = encoding == "identity" or content != body or not body
    return content.decode("utf-8", "replace") if is_known else None


class _ChatLog:
    """A file of chats, one in a line."""

    def __init__(self, path: Path):
        self._lock = threading.Lock()
        try:
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"{path} cannot be written ({reason_of(error)}); name another file.",
                option="log",
                value=str(path),
            ) from None

    def write(self, relayed: RelayedRequest, answer: Mapping[str, Any]) -> None:
        request = relayed.request
        assert request is not None
        if relayed.api is Api.CHAT:
            chat = {"messages": request.body["messages"], **answer}
        else:
            fields = ("instructions", "input")
            chat = {name: request.body[name] for name in fields if name in request.body}
            chat["output"] = answer.get("output")
        try:
            with self._lock:
                self._file.write(json.dumps({**chat, "added": relayed.edit.added}) + "\n")
                self._file.flush()
        except OSError as error:  # the reply itself goes on
            _LOG.error("A chat could not be logged: %s", reason_of(error))
