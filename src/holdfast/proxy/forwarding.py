"""The proxy as an ASGI application, which forwards requests and answers and edits only chats.

Bytes are sent on as they come, unless a reply is checked first and perhaps drawn again. Once its
last byte is sent, a reply is scored in another thread. If the client leaves, the request upstream
is cancelled. If the server upstream breaks off an answer, so does the proxy, and the client sees
what it would see without one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from functools import partial

import httpx2
from starlette.types import Message, Receive, Scope, Send

from holdfast.proxy.chat_requests import Api, api_of
from holdfast.proxy.proxy_metrics import ProxyMetrics
from holdfast.proxy.relay import Answer, ChatRelay, CheckedAnswers, RelayedRequest
from holdfast.proxy.reply_scores import WhyUnscored
from holdfast.proxy.suite_middleware import Edit, EditOutcome
from holdfast.proxy.upstream import Upstream, UpstreamFailure
from holdfast.serve.access import log_failure
from holdfast.serve.refusals import Refusal
from holdfast.serve.wire import CLIENT_CLOSED, CancellableResponse, ClientLeft, send_json

_LOG = logging.getLogger("holdfast.proxy")
_MAX_CHAT_BYTES = 64 * 2**20  # a longer request is forwarded unread
_MAX_WAITING_BYTES = 64 * 2**20  # replies beyond this are not scored
# headers about a single connection, which a proxy does not forward (RFC 9110, section 7.6.1)
HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer"
    b" transfer-encoding upgrade".split()
)
_NOT_FORWARDED = HOP_BY_HOP | {b"host", b"expect"}  # uvicorn answers `Expect` itself
_FAILED = Refusal(
    "The proxy failed on this request; its log says where.", code="internal_error", status=500
)
_SHUTTING_DOWN = Refusal(
    "This proxy is shutting down and takes no new requests; try again later.",
    code="shutting_down",
    status=503,
    headers={"Retry-After": "5"},
)

RawHeaders = list[tuple[bytes, bytes]]


class Forwarding:
    """Forwards requests to a server; chats go through a `ChatRelay`."""

    def __init__(self, upstream: Upstream, relay: ChatRelay, metrics: ProxyMetrics):
        self._upstream = upstream
        self._relay = relay
        self._metrics = metrics
        self._scorer = ThreadPoolExecutor(1, "holdfast-scorer")
        self.open = 0  # requests that have not ended
        self.waiting = 0  # replies that wait to be scored
        self._waiting_bytes = 0  # the length of these replies and of their requests
        self._is_draining = False
        self._idle = asyncio.Event()

    async def drain(self) -> None:
        """Refuses new requests from now on; returns when all open ones have ended."""
        self._is_draining = True
        if self.open:
            await self._idle.wait()

    async def close_upstream(self) -> None:
        """Closes the connections to the server."""
        await self._upstream.aclose()

    def close(self) -> None:
        """Waits until all replies are scored."""
        self._scorer.shutdown()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        api = api_of(scope["method"], scope["path"])
        name = api.value if api is not None else "other"
        if self._is_draining:
            await send_json(send, _SHUTTING_DOWN.body(), 503, _SHUTTING_DOWN.headers)
            return self._metrics.note_answer(name, 503)
        self.open += 1
        self._idle.clear()
        download = Download(send)
        try:
            await self._forward(api, scope, receive, download)
        except ClientLeft:
            download.status = CLIENT_CLOSED
        except Refusal as refusal:
            await send_json(download.send, refusal.body(), refusal.status, refusal.headers)
        except Exception as error:
            log_failure(_LOG, error)
            if download.status:
                raise  # the answer breaks off
            await send_json(download.send, _FAILED.body(), _FAILED.status)
        finally:
            self.open -= 1
            if not self.open:
                self._idle.set()
            self._metrics.note_answer(name, download.status)

    async def _forward(
        self, api: Api | None, scope: Scope, receive: Receive, download: Download
    ) -> None:
        """Forwards a request; a chat is read whole and edited first, unless it is too long."""
        _check_protocol(scope["headers"])
        upload = Upload(receive, scope["headers"])
        relayed: RelayedRequest | None = None
        headers = end_to_end(scope["headers"], _NOT_FORWARDED)
        content: bytes | AsyncIterator[bytes] | None = None
        body = None if api is None else await upload.read(_MAX_CHAT_BYTES)
        if api is not None and body is not None and upload.is_over:
            started = time.monotonic()
            encoding = dict(headers).get(b"content-encoding", b"").decode("latin-1")
            relayed = await asyncio.to_thread(self._relay.begin, api, body, encoding)
            self._metrics.edit_seconds.observe(time.monotonic() - started)
            content = relayed.content
            headers = [(k, v) for k, v in headers if k != b"content-length"]
        elif body is not None:
            content = upload.parts(body)
            self._relay.tally.note_edit(Edit(EditOutcome.UNREADABLE))
        elif upload.has_body:
            content = upload.parts()

        async def write(send: Send) -> None:
            if relayed is not None and relayed.retries:
                build_request = partial(self._upstream.request, scope, headers)
                await self._relay_checked(build_request, relayed, download)
            else:
                request = self._upstream.request(scope, headers, content)
                await self._relay_as_it_comes(request, relayed, download)

        await CancellableResponse(write)(scope, upload.receive_next, download.send)

    async def _relay_as_it_comes(
        self, request: httpx2.Request, relayed: RelayedRequest | None, download: Download
    ) -> None:
        """Sends a request up and its answer down, and has the reply scored, however it ends."""
        started = time.monotonic()
        answer = Answer()
        try:
            response = await self._upstream.send(request)
            async with aclosing(response):
                answer.status = response.status_code
                answer.headers = response.headers
                _log_error_status(request, response.status_code)
                await download.start(response.status_code, response.headers)
                async for part in self._parts(response, started):
                    await download.add(part)
                    if relayed is not None and relayed.chat is not None:
                        answer.add(part)
                await download.end()
        except httpx2.TransportError as error:
            await self._refuse(request, error, download)
        finally:
            self._end(relayed, answer)

    async def _relay_checked(
        self,
        build_request: Callable[[bytes], httpx2.Request],
        relayed: RelayedRequest,
        download: Download,
    ) -> None:
        """Sends a request up until the reply keeps the rules, and the best answer down."""
        checked = CheckedAnswers(self._relay, relayed)
        again: RelayedRequest | None = relayed
        delivered = Answer()  # stays empty if the client leaves first
        try:
            while again is not None:
                request = build_request(again.content)
                answer = Answer(is_held=True)
                is_first = checked.best is None
                try:
                    await self._receive(request, answer, download if is_first else None)
                except httpx2.TransportError as error:
                    if is_first:
                        delivered = answer
                        return await self._break_off(request, error, answer, download)
                    failure = self._upstream.failure_of(error)
                    self._note_failure(request, failure, ending="; an earlier reply is sent")
                    break
                if answer.is_too_long:
                    if is_first:
                        delivered = answer
                        return await download.end()
                    break  # an earlier reply is sent
                again = await asyncio.to_thread(checked.add, answer)
            assert checked.best is not None
            await download.send_whole(checked.best)
            delivered = checked.best
        finally:
            self._end(checked.request, delivered)

    async def _break_off(
        self,
        request: httpx2.Request,
        error: httpx2.TransportError,
        answer: Answer,
        download: Download,
    ) -> None:
        """Sends down an answer that broke off, as far as it came."""
        if answer.status and answer.is_held:
            await download.start(answer.status, answer.headers)
            await download.add(answer.body)
        await self._refuse(request, error, download)

    async def _receive(
        self, request: httpx2.Request, answer: Answer, download: Download | None
    ) -> None:
        """Sends a request up and keeps its answer.

        An answer that grows too long to be checked is sent down as it comes; without a `download`,
        the rest of it is not read.
        """
        started = time.monotonic()
        response = await self._upstream.send(request)
        async with aclosing(response):
            answer.status = response.status_code
            answer.headers = response.headers
            _log_error_status(request, response.status_code)
            async for part in self._parts(response, started):
                if not answer.is_held and download is not None:
                    await download.add(part)
                    continue
                answer.add(part)
                if answer.is_too_long and download is None:
                    return
                if answer.is_too_long and download is not None:
                    await download.start(answer.status, answer.headers)
                    await download.add(answer.release())

    async def _parts(self, response: httpx2.Response, started: float) -> AsyncIterator[bytes]:
        """Yields the body as it comes; measures how long after `started` its first byte came."""
        is_first = True
        async for part in response.aiter_raw():
            if is_first:
                self._metrics.first_byte_seconds.observe(time.monotonic() - started)
                is_first = False
            yield part

    async def _refuse(
        self, request: httpx2.Request, error: httpx2.TransportError, download: Download
    ) -> None:
        """Answers with a refusal; an answer that has begun is broken off, as it was upstream."""
        failure = self._upstream.failure_of(error)
        if download.status:
            self._metrics.upstream_errors.labels("broke_off").inc()
            _log_upstream_failure(request, f"{failure.log_text} in the middle of its answer")
        else:
            self._note_failure(request, failure)
            refusal = failure.refusal
            await send_json(download.send, refusal.body(), refusal.status, refusal.headers)

    def _note_failure(
        self, request: httpx2.Request, failure: UpstreamFailure, *, ending: str = ""
    ) -> None:
        """Counts and logs a failure; `ending` is added to the line of the log."""
        self._metrics.upstream_errors.labels(failure.code).inc()
        _log_upstream_failure(request, failure.log_text + ending)

    def _end(self, relayed: RelayedRequest | None, answer: Answer) -> None:
        """Has a reply scored in the other thread, unless too many are waiting."""
        if relayed is None or relayed.chat is None:
            return
        size = len(answer.body) + len(relayed.content)
        if self._waiting_bytes and self._waiting_bytes + size > _MAX_WAITING_BYTES:
            return self._relay.tally.note_reply(WhyUnscored.BUSY)
        self.waiting += 1
        self._waiting_bytes += size
        scoring = asyncio.get_running_loop().run_in_executor(
            self._scorer, self._relay.end, relayed, answer
        )
        scoring.add_done_callback(partial(self._note_scored, size))

    def _note_scored(self, size: int, scoring: asyncio.Future[None]) -> None:
        """Takes note that a reply has been scored, or could not be."""
        self.waiting -= 1
        self._waiting_bytes -= size
        if not scoring.cancelled() and (error := scoring.exception()):
            self._relay.tally.note_reply(WhyUnscored.UNREADABLE)
            # its message may quote a chat, so it is not logged
            _LOG.error("A reply could not be scored: %s", type(error).__name__)


def _log_upstream_failure(request: httpx2.Request, text: str) -> None:
    """Logs a failure of the upstream; no bodies or headers, and no query, which may have a key."""
    url = request.url.copy_with(userinfo=b"", query=None)
    _LOG.warning("%s %s: %s", request.method, url, text)


def _log_error_status(request: httpx2.Request, status: int) -> None:
    """Logs an answer that is an error."""
    if status >= 400:
        _log_upstream_failure(request, f"answered with status {status}")


def _check_protocol(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuses WebSockets, which would be forwarded as a plain request."""
    if any(name == b"upgrade" and value.lower() == b"websocket" for name, value in headers):
        raise Refusal(
            "The proxy does not forward WebSockets (OpenAI's Realtime API); connect to the server"
            " itself.",
            code="websocket",
            status=501,
        )


def end_to_end(
    headers: Iterable[tuple[bytes, bytes]], dropped: frozenset[bytes] = HOP_BY_HOP
) -> RawHeaders:
    """Returns the headers that a proxy forwards: not `dropped`, nor those in `Connection`."""
    lowered = [(name.lower(), value) for name, value in headers]
    connection = b",".join(value for name, value in lowered if name == b"connection")
    named = {name.strip().lower() for name in connection.split(b",")}
    return [(name, value) for name, value in lowered if name not in dropped | named]


class Upload:
    """The body of a request while it arrives from the client."""

    def __init__(self, receive: Receive, headers: Iterable[tuple[bytes, bytes]]):
        names = dict(headers)
        self.has_body = b"transfer-encoding" in names or names.get(b"content-length", b"0") != b"0"
        self._receive = receive
        self._over = asyncio.Event()
        if not self.has_body:
            self._over.set()

    async def parts(self, beginning: bytes = b"") -> AsyncGenerator[bytes, None]:
        """Yields the body part by part, after a beginning that was read before.

        Raises:
            ClientLeft: the client left before the end of the body.
        """
        if beginning:
            yield beginning
        while not self._over.is_set():
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientLeft
            if not message.get("more_body", False):
                self._over.set()
            yield message.get("body", b"")

    @property
    def is_over(self) -> bool:
        """Whether the whole body was read."""
        return self._over.is_set()

    async def read(self, max_bytes: int) -> bytes:
        """Reads the body; only the beginning of one that has more than `max_bytes`."""
        body = bytearray()
        async with aclosing(self.parts()) as parts:
            async for part in parts:
                body += part
                if len(body) > max_bytes:
                    break
        return bytes(body)

    async def receive_next(self) -> Message:
        """Returns the client's next message after the body, such as that it has left."""
        await self._over.wait()
        return await self._receive()


class Download:
    """The answer on its way to the client.

    Attributes:
        status: the status that was sent; 0 until then.
    """

    def __init__(self, send: Send):
        self._send = send
        self.status = 0

    async def send(self, message: Message) -> None:
        """Sends a message of ASGI."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)

    async def start(self, status: int, headers: httpx2.Headers) -> None:
        """Sends the status, and the upstream's headers that a proxy forwards."""
        forwarded = end_to_end(headers.raw)
        await self.send({"type": "http.response.start", "status": status, "headers": forwarded})

    async def add(self, part: bytes) -> None:
        """Sends the next part of the body."""
        await self.send({"type": "http.response.body", "body": part, "more_body": True})

    async def send_whole(self, answer: Answer) -> None:
        """Sends a complete answer."""
        await self.start(answer.status, answer.headers)
        await self.add(answer.body)
        await self.end()

    async def end(self) -> None:
        """Ends the body."""
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})
