"""`holdfast.wrap`: a client of OpenAI's package that edits chats and scores their replies."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import httpx2
from anyio import CancelScope, to_thread

from holdfast.drift.cases import Suite
from holdfast.errors import UsageError, type_in_words
from holdfast.methods import Method, read_methods
from holdfast.proxy.answers import Answer
from holdfast.proxy.chat_requests import api_of
from holdfast.proxy.checked_answers import CheckedAnswers
from holdfast.proxy.relay import ChatRelay, OnReply, RelayedRequest, chat_relay
from holdfast.proxy.tally import Tally

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

_LENGTH = b"content-length"

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
    """A copy of a client of OpenAI's package, whose chats are edited and whose replies are scored.

    It does what `holdfast proxy` does, without a process: everything that the client can do works
    as before, streams, tools, retries and raw responses included. The client itself stays as it is;
    both share its connections, so closing one closes the other.

    Args:
        client: an `OpenAI` or `AsyncOpenAI`, or a client that inherits from them.
        suite: whose rules score the replies, as `holdfast.drift.load_suite` takes it.
        method: edits the messages, such as "reminder:every=4", or has replies drawn again that
            broke a rule ("check-and-retry:n=2"), which are then returned whole.
        tally: counts the requests and the rules that their replies keep.
        on_reply: is called with the `ScoredReply` of each reply, once it is over; with an
            asynchronous client in another thread, perhaps several at a time.
        log: the file to which each scored chat is appended, with its texts.

    Raises:
        UsageError: it is no such client, the method acts inside the model, or no rule of the
            suite can be scored in a conversation.
    """
    import openai

    inner: Any = getattr(client, "_client", None)  # its connections; there is no public name

    def relay() -> ChatRelay:
        return chat_relay(suite, read_methods(method), tally=tally, on_reply=on_reply, log=log)

    if isinstance(client, openai.OpenAI) and isinstance(inner, httpx2.Client):
        transport = _Transport(inner, relay())
        return client.copy(http_client=httpx2.Client(transport=transport, **_defaults(inner)))
    if isinstance(client, openai.AsyncOpenAI) and isinstance(inner, httpx2.AsyncClient):
        async_transport = _AsyncTransport(inner, relay())
        outer = httpx2.AsyncClient(transport=async_transport, **_defaults(inner))
        return client.copy(http_client=outer)
    raise UsageError(
        f"holdfast.wrap takes an OpenAI or AsyncOpenAI client over httpx2, not"
        f" {type_in_words(client)}; make one, as in holdfast.wrap(openai.OpenAI(), ...).",
        option="client",
        value=client,
    )


def _defaults(inner: httpx2.Client | httpx2.AsyncClient) -> dict[str, Any]:
    """The defaults of requests, which the outer client makes; the inner one only sends them."""
    return {"headers": inner.headers, "params": inner.params, "cookies": inner.cookies}


class _Transport(httpx2.BaseTransport):
    """Sends requests by another client, through a relay."""

    def __init__(self, client: httpx2.Client, relay: ChatRelay):
        self._client, self._relay = client, relay

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        relayed = _begin(self._relay, request)
        if relayed is None:
            return _unread(_to_read(self._client.send(request, stream=True)))
        if relayed.retries:
            return self._checked(request, relayed)
        try:
            response = _to_read(self._client.send(_edited(request, relayed), stream=True))
        except BaseException:
            self._relay.end(relayed, Answer())
            raise
        answer = Answer(response.status_code, response.headers)
        stream = _Recording(response, response.iter_raw(), answer, relayed, self._relay)
        return _unread(response, stream)

    def _checked(self, request: httpx2.Request, relayed: RelayedRequest) -> httpx2.Response:
        """The best answer to a request that is sent until its reply keeps the rules.

        An answer that is too long to be checked is passed on as it comes.
        """
        checked = CheckedAnswers(self._relay, relayed)
        again: RelayedRequest | None = relayed
        while again is not None:
            is_first = checked.best is None
            try:
                held = self._hold(request, again, passes_on_long=is_first)
            except BaseException as error:  # of the transport, or of a hook of the client's own
                if is_first or not isinstance(error, Exception):
                    self._relay.end(relayed, Answer())
                    raise
                break  # a retry failed
            if not held.answer.is_too_long:
                again = checked.add(held.answer)
            elif is_first:
                return _unread(held.response, held)
            else:
                break
        return _whole(self._relay, checked)

    def _hold(
        self, request: httpx2.Request, relayed: RelayedRequest, *, passes_on_long: bool
    ) -> _Recording:
        """The answer to a request, read until it ends or is too long to be checked.

        It is closed then, except for a long one that is to be passed on.
        """
        response = _to_read(self._client.send(_edited(request, relayed), stream=True))
        answer = Answer(response.status_code, response.headers, is_held=True)
        parts = response.iter_raw()
        try:
            while not answer.is_too_long and (part := next(parts, None)) is not None:
                answer.add(part)
        finally:
            if not (answer.is_too_long and passes_on_long):
                response.close()
        return _Recording(response, parts, answer, relayed, self._relay)

    def close(self) -> None:
        self._client.close()


class _AsyncTransport(httpx2.AsyncBaseTransport):
    """The same for an asynchronous client."""

    def __init__(self, client: httpx2.AsyncClient, relay: ChatRelay):
        self._client, self._relay = client, relay

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        relayed = await to_thread.run_sync(_begin, self._relay, request)
        if relayed is None:
            return _unread(_to_read(await self._client.send(request, stream=True)))
        if relayed.retries:
            return await self._checked(request, relayed)
        try:
            response = _to_read(await self._client.send(_edited(request, relayed), stream=True))
        except BaseException:  # such as that the caller does not wait any longer
            self._relay.end(relayed, Answer())
            raise
        answer = Answer(response.status_code, response.headers)
        stream = _AsyncRecording(response, response.aiter_raw(), answer, relayed, self._relay)
        return _unread(response, stream)

    async def _checked(self, request: httpx2.Request, relayed: RelayedRequest) -> httpx2.Response:
        checked = CheckedAnswers(self._relay, relayed)
        again: RelayedRequest | None = relayed
        while again is not None:
            is_first = checked.best is None
            try:
                held = await self._hold(request, again, passes_on_long=is_first)
            except BaseException as error:
                if is_first or not isinstance(error, Exception):
                    self._relay.end(relayed, Answer())
                    raise
                break
            if not held.answer.is_too_long:
                again = await to_thread.run_sync(checked.add, held.answer)
            elif is_first:
                return _unread(held.response, held)
            else:
                break
        return await to_thread.run_sync(_whole, self._relay, checked)

    async def _hold(
        self, request: httpx2.Request, relayed: RelayedRequest, *, passes_on_long: bool
    ) -> _AsyncRecording:
        response = _to_read(await self._client.send(_edited(request, relayed), stream=True))
        answer = Answer(response.status_code, response.headers, is_held=True)
        parts = response.aiter_raw()
        try:
            while not answer.is_too_long and (part := await anext(parts, None)) is not None:
                answer.add(part)
        finally:
            if not (answer.is_too_long and passes_on_long):
                await response.aclose()
        return _AsyncRecording(response, parts, answer, relayed, self._relay)

    async def aclose(self) -> None:
        await self._client.aclose()


def _begin(relay: ChatRelay, request: httpx2.Request) -> RelayedRequest | None:
    """The request, edited; None if it is no chat."""
    api = api_of(request.method, request.url.path)
    if api is None:
        return None
    return relay.begin(api, request.content, request.headers.get("content-encoding", ""))


def _edited(request: httpx2.Request, relayed: RelayedRequest) -> httpx2.Request:
    headers = httpx2.Headers([(k, v) for k, v in request.headers.raw if k.lower() != _LENGTH])
    return httpx2.Request(
        request.method,
        request.url,
        headers=headers,
        content=relayed.content,
        extensions=request.extensions,
    )


def _to_read(response: httpx2.Response) -> httpx2.Response:
    """The response; a copy of it if it was read already, as a hook of the client may do."""
    if not response.is_stream_consumed:
        return response
    decoded = (b"content-encoding", b"content-length")
    headers = [(name, value) for name, value in response.headers.raw if name.lower() not in decoded]
    return httpx2.Response(
        response.status_code,
        headers=headers,
        stream=httpx2.ByteStream(response.content),
        extensions=response.extensions,
    )


def _whole(relay: ChatRelay, checked: CheckedAnswers) -> httpx2.Response:
    """The best answer, whose reply is scored."""
    best = checked.best
    assert best is not None
    relay.end(checked.request, best)
    stream = httpx2.ByteStream(best.body)
    return httpx2.Response(best.status, headers=best.headers, stream=stream)


def _unread(response: httpx2.Response, stream: Any = None) -> httpx2.Response:
    """A response whose body has not been read, with another stream of its bytes."""
    return httpx2.Response(
        response.status_code,
        headers=response.headers,
        stream=response.stream if stream is None else stream,
        extensions=response.extensions,
    )


class _Recording(httpx2.SyncByteStream):
    """The bytes of a response, those that its answer holds first, and then as they come; once it
    is closed, its reply is scored.
    """

    def __init__(
        self,
        response: httpx2.Response,
        parts: Iterator[bytes],
        answer: Answer,
        relayed: RelayedRequest,
        relay: ChatRelay,
    ):
        self.response, self.answer = response, answer
        self._parts, self._relayed, self._relay = parts, relayed, relay

    def __iter__(self) -> Iterator[bytes]:
        if self.answer.is_held:
            yield self.answer.release()
        for part in self._parts:
            self.answer.add(part)
            yield part

    def close(self) -> None:
        try:
            self.response.close()
        finally:
            self._relay.end(self._relayed, self.answer)


class _AsyncRecording(httpx2.AsyncByteStream):
    """The same for an asynchronous client."""

    def __init__(
        self,
        response: httpx2.Response,
        parts: AsyncIterator[bytes],
        answer: Answer,
        relayed: RelayedRequest,
        relay: ChatRelay,
    ):
        self.response, self.answer = response, answer
        self._parts, self._relayed, self._relay = parts, relayed, relay

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self.answer.is_held:
            yield self.answer.release()
        async for part in self._parts:
            self.answer.add(part)
            yield part

    async def aclose(self) -> None:
        try:
            await self.response.aclose()
        finally:
            with CancelScope(shield=True):  # the scores of what came are kept
                await to_thread.run_sync(self._relay.end, self._relayed, self.answer)
