"""`holdfast.wrap`: a client of OpenAI's package that edits chats and scores their replies.

The copy of the client sends its requests through a transport of ours:

    client.chat.completions.create(...) -> _Transport -> _Exchanges -> the client's connections
                                                         edits, checks and scores
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import httpx2
from anyio import CancelScope, to_thread

from holdfast.drift.cases import Suite
from holdfast.errors import UsageError, type_in_words
from holdfast.methods import Method, read_methods
from holdfast.proxy.chat_edits import Edit, EditOutcome
from holdfast.proxy.chat_requests import api_of, is_other_api
from holdfast.proxy.checked_answers import CheckedAnswers
from holdfast.proxy.relay import ChatRelay, OnReply, RelayedRequest, chat_relay
from holdfast.proxy.retry_attempts import EXTRA_SECONDS, RetryAttempts
from holdfast.proxy.tally import Tally
from holdfast.proxy.upstream_answer import UpstreamAnswer

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

_LENGTH = b"content-length"

Result = TypeVar("Result")
Client = TypeVar("Client", bound="OpenAI | AsyncOpenAI")


def wrap(
    client: Client,
    *,
    suite: Suite | Path | str,
    method: str | Method | Sequence[str | Method] = "none",
    tally: Tally | None = None,
    on_reply: OnReply | None = None,
    log: Path | str | None = None,
) -> Client:
    """Copies a client of OpenAI's package; the copy edits chats and scores the replies to them.

    This does what `holdfast proxy` does, without a process. Everything that the client can do works
    as before, including streams, tools, retries and raw responses. The client itself stays as it
    is. It shares its connections with the copy, so closing one closes the other.

    Args:
        client: an `OpenAI` or `AsyncOpenAI`, or a client that inherits from one of them.
        suite: the suite whose rules score the replies, as `holdfast.drift.load_suite` takes it.
        method: edits the messages, such as "reminder:every=4", or has replies drawn again that
            broke a rule ("check-and-retry:n=2"), which are then returned in one piece. A retry that
            a busy server refuses is sent again, as often as `max_retries` of this client allows.
        tally: counts the requests, and the rules that the replies keep.
        on_reply: called with the `ScoredReply` of each reply, once it is over; with an asynchronous
            client in another thread, perhaps several at a time.
        log: a file to which each scored chat is appended, with its texts.

    Raises:
        UsageError: the client is of another kind, the method acts inside the model, or no rule of
            the suite can be scored in a conversation.
    """
    import openai

    inner: Any = getattr(client, "_client", None)  # its connections; there is no public name

    def relay() -> ChatRelay:
        return chat_relay(suite, read_methods(method), tally=tally, on_reply=on_reply, log=log)

    if isinstance(client, openai.OpenAI) and isinstance(inner, httpx2.Client):
        transport = _Transport(inner, relay(), client.max_retries)
        return client.copy(http_client=httpx2.Client(transport=transport, **_defaults(inner)))
    if isinstance(client, openai.AsyncOpenAI) and isinstance(inner, httpx2.AsyncClient):
        async_transport = _AsyncTransport(inner, relay(), client.max_retries)
        outer = httpx2.AsyncClient(transport=async_transport, **_defaults(inner))
        return client.copy(http_client=outer)
    raise UsageError(
        f"holdfast.wrap takes an OpenAI or AsyncOpenAI client over httpx2, not"
        f" {type_in_words(client)}; make one, as in holdfast.wrap(openai.OpenAI(), ...).",
        option="client",
        value=client,
    )


def _defaults(inner: httpx2.Client | httpx2.AsyncClient) -> dict[str, Any]:
    """Returns what the inner client adds to every request; the outer one adds it instead."""
    return {"headers": inner.headers, "params": inner.params, "cookies": inner.cookies}


# --- Transports, which the copy of the client sends its requests through


class _Transport(httpx2.BaseTransport):
    """Sends requests by another client, through a relay."""

    def __init__(self, client: httpx2.Client, relay: ChatRelay, max_resends: int):
        self._client = client
        self._exchanges = _Exchanges(_BlockingSender(client), relay, max_resends)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return _run_without_waiting(self._exchanges.answer(request))

    def close(self) -> None:
        self._client.close()


class _AsyncTransport(httpx2.AsyncBaseTransport):
    """Sends requests by another, asynchronous client, through a relay."""

    def __init__(self, client: httpx2.AsyncClient, relay: ChatRelay, max_resends: int):
        self._client = client
        self._exchanges = _Exchanges(_AsyncSender(client), relay, max_resends)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self._exchanges.answer(request)

    async def aclose(self) -> None:
        await self._client.aclose()


# --- Senders, which use the connections of the client


class _BlockingSender:
    """A client whose requests block.

    Its methods are coroutines nevertheless, so that `_Exchanges` serves both kinds of clients. They
    block where others would wait, and so need no event loop. `parts` iterates over a body, and
    `run` calls a function that may take long.
    """

    def __init__(self, client: httpx2.Client):
        self._client = client

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        return _unconsumed(self._client.send(request, stream=True))

    def parts(self, response: httpx2.Response) -> Iterator[bytes]:
        return response.iter_raw()

    async def next_part(self, parts: Iterator[bytes]) -> bytes | None:
        return next(parts, None)

    async def close(self, response: httpx2.Response) -> None:
        response.close()

    async def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        return function(*arguments)

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class _AsyncSender:
    """An asynchronous client; it has the methods of `_BlockingSender`."""

    def __init__(self, client: httpx2.AsyncClient):
        self._client = client

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        return _unconsumed(await self._client.send(request, stream=True))

    def parts(self, response: httpx2.Response) -> AsyncIterator[bytes]:
        return response.aiter_raw()

    async def next_part(self, parts: AsyncIterator[bytes]) -> bytes | None:
        return await anext(parts, None)

    async def close(self, response: httpx2.Response) -> None:
        await response.aclose()

    async def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        return await to_thread.run_sync(function, *arguments)

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


def _run_without_waiting(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Runs a coroutine that never waits, and returns its result."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    raise AssertionError("a blocking client was waited for")


# --- Exchanges: edited requests, and their answers


@dataclass(frozen=True)
class _Exchanges:
    """Sends requests that a relay edits, and has the replies scored.

    Attributes:
        max_resends: how often a retry is sent again if the server is busy; the client itself does
            this with first requests.
    """

    sender: _BlockingSender | _AsyncSender
    relay: ChatRelay
    max_resends: int

    async def answer(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request, and returns the response to it."""
        relayed = await self.sender.run(_edit_chat, self.relay, request)
        if relayed is None:
            response = await self.sender.send(request)
            return _with_body(response, response.stream)
        if relayed.retries:
            return await self._answer_with_retries(request, relayed)
        try:
            body = await self._send(request, relayed)
        except BaseException:  # including that the caller stopped waiting
            self.relay.end(relayed, UpstreamAnswer())
            raise
        return _with_body(body.response, body)

    async def _answer_with_retries(
        self, request: httpx2.Request, relayed: RelayedRequest
    ) -> httpx2.Response:
        """Sends a request until its reply keeps the rules, and returns the best answer.

        An answer that is too long to be checked is passed on as it comes.
        """
        checked = CheckedAnswers(self.relay, relayed)
        started = time.monotonic()
        try:
            body = await self._send_and_read(request, relayed, passes_on_long=True)
            if body.answer.is_too_long:
                return _with_body(body.response, body)
            seconds = time.monotonic() - started + EXTRA_SECONDS
            again = await self.sender.run(checked.add, body.answer)
            while again is not None:
                attempts = RetryAttempts(self.max_resends, time.monotonic() + seconds)
                answer = await self._send_again(request, again, attempts)
                again = await self.sender.run(checked.add, answer)
        except BaseException:  # including that the caller stopped waiting
            self.relay.end(relayed, UpstreamAnswer())
            raise
        return await self.sender.run(_best_response, self.relay, checked)

    async def _send_again(
        self, request: httpx2.Request, again: RelayedRequest, attempts: RetryAttempts
    ) -> UpstreamAnswer:
        """Sends a retry, again if the server is busy, and returns the last answer.

        That is an answer without a status if there was none.
        """
        while True:
            try:
                in_time = _as_retry(request, attempts.seconds_left)
                answer = (
                    await self._send_and_read(in_time, again, deadline=attempts.deadline)
                ).answer
            except httpx2.TransportError:
                answer = UpstreamAnswer()
            except httpx2.HTTPStatusError as error:  # from a hook of the client's
                answer = UpstreamAnswer(error.response.status_code, error.response.headers)
            except Exception:  # a hook of the client's failed
                return UpstreamAnswer()
            delay = attempts.delay_after(answer)
            if delay is None:
                return answer
            await self.sender.sleep(delay)

    async def _send_and_read(
        self,
        request: httpx2.Request,
        relayed: RelayedRequest,
        *,
        passes_on_long: bool = False,
        deadline: float = math.inf,
    ) -> _RecordedBody:
        """Sends a request, and reads the answer until it ends or is too long to be checked.

        The response is closed then, unless it is too long and is to be passed on.

        Args:
            passes_on_long: whether an answer that is too long is passed on.
            deadline: on the clock of `time.monotonic`.

        Raises:
            httpx2.ReadTimeout: it has not ended at the deadline.
        """
        body = await self._send(request, relayed, is_held=True)
        answer = body.answer
        try:
            while not answer.is_too_long:
                part = await self.sender.next_part(body.parts)
                if part is None:
                    break
                answer.add(part)
                if time.monotonic() > deadline:
                    raise httpx2.ReadTimeout("the retry took too long", request=request)
        finally:
            if not (answer.is_too_long and passes_on_long):
                await self.sender.close(body.response)
        return body

    async def _send(
        self, request: httpx2.Request, relayed: RelayedRequest, *, is_held: bool = False
    ) -> _RecordedBody:
        """Sends a request; the body of the response is recorded as it is read."""
        response = await self.sender.send(_edited_request(request, relayed))
        answer = UpstreamAnswer(response.status_code, response.headers, is_held=is_held)
        return _RecordedBody(response, self.sender.parts(response), answer, relayed, self.relay)


@dataclass(eq=False)
class _RecordedBody(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """The body of a response, which is recorded as it is read; once closed, its reply is scored.

    The bytes that `answer` holds come first, then the others as they arrive.

    Args:
        parts: the rest of the body, as an iterator; asynchronous if the client is.
    """

    response: httpx2.Response
    parts: Any
    answer: UpstreamAnswer
    relayed: RelayedRequest
    relay: ChatRelay

    def __iter__(self) -> Iterator[bytes]:
        if self.answer.is_held:
            yield self.answer.release()
        for part in self.parts:
            self.answer.add(part)
            yield part

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self.answer.is_held:
            yield self.answer.release()
        async for part in self.parts:
            self.answer.add(part)
            yield part

    def close(self) -> None:
        try:
            self.response.close()
        finally:
            self.relay.end(self.relayed, self.answer)

    async def aclose(self) -> None:
        try:
            await self.response.aclose()
        finally:
            with CancelScope(shield=True):  # cancelling must not lose the scores
                await to_thread.run_sync(self.relay.end, self.relayed, self.answer)


def _edit_chat(relay: ChatRelay, request: httpx2.Request) -> RelayedRequest | None:
    """Has a chat edited by the relay; returns None for other requests."""
    api = api_of(request.method, request.url.path)
    if api is None:
        if is_other_api(request.method, request.url.path):
            relay.tally.note_edit(Edit(EditOutcome.OTHER_API))
        return None
    try:
        content = request.content
    except httpx2.RequestNotRead:  # it is sent part by part
        relay.tally.note_edit(Edit(EditOutcome.UNREADABLE))
        return None
    return relay.begin(api, content, request.headers.get("content-encoding", ""))


# --- Copies of requests and responses, which cannot be changed


def _edited_request(request: httpx2.Request, relayed: RelayedRequest) -> httpx2.Request:
    """Returns a request with the body that the relay made."""
    return httpx2.Request(
        request.method,
        request.url,
        headers=_without(request.headers, _LENGTH),
        content=relayed.content,
        extensions=request.extensions,
    )


def _as_retry(request: httpx2.Request, seconds: float) -> httpx2.Request:
    """Returns a request that is given up after some seconds, and that no server takes for an
    earlier one.
    """
    timeout = request.extensions.get("timeout") or {}
    limited = {
        name: seconds if timeout.get(name) is None else min(timeout[name], seconds)
        for name in ("connect", "read", "write", "pool")
    }
    headers = httpx2.Headers(request.headers)
    headers.pop("idempotency-key", None)
    return httpx2.Request(
        request.method,
        request.url,
        headers=headers,
        content=request.content,
        extensions={**request.extensions, "timeout": limited},
    )


def _unconsumed(response: httpx2.Response) -> httpx2.Response:
    """Returns a response that can be read, even if a hook of the client has read it already."""
    if not response.is_stream_consumed:
        return response
    return httpx2.Response(
        response.status_code,
        headers=_without(response.headers, b"content-encoding", _LENGTH),
        stream=httpx2.ByteStream(response.content),
        extensions=response.extensions,
    )


def _without(headers: httpx2.Headers, *names: bytes) -> httpx2.Headers:
    """Returns the headers without those of these names."""
    return httpx2.Headers([(k, v) for k, v in headers.raw if k.lower() not in names])


def _best_response(relay: ChatRelay, checked: CheckedAnswers) -> httpx2.Response:
    """Returns the best answer as a response, and scores its reply."""
    best = checked.best
    assert best is not None
    relay.end(checked.request, best)
    stream = httpx2.ByteStream(best.body)
    return httpx2.Response(best.status, headers=best.headers, stream=stream)


def _with_body(
    response: httpx2.Response, body: httpx2.SyncByteStream | httpx2.AsyncByteStream
) -> httpx2.Response:
    """Returns a response whose body has not been read."""
    return httpx2.Response(
        response.status_code,
        headers=response.headers,
        stream=body,
        extensions=response.extensions,
    )
