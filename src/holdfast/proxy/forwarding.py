"""The proxy as an ASGI application, which forwards requests and answers and edits only chats.

Bytes are sent on as they come, unless a reply is checked first and perhaps drawn again. Once its
last byte is sent, a reply is scored in another thread. If the client leaves, the request upstream
is cancelled. If the server upstream breaks off an answer, so does the proxy, and the client sees
what it would see without one. A fault or a slow measure here costs the edit, the check or the
score, but not the request.

    request -> _edit -> _answer_as_it_comes -> the client; scored
                     -> _answer_checked -> the best of several answers -> the client; scored
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing, asynccontextmanager
from functools import partial

import httpx2
from starlette.types import Receive, Scope, Send

from holdfast.proxy.chat_edits import Edit, EditOutcome
from holdfast.proxy.chat_requests import Api, api_of, is_other_api
from holdfast.proxy.checked_answers import CheckedAnswers
from holdfast.proxy.client_streams import (
    HOP_BY_HOP,
    Download,
    RawHeaders,
    Upload,
    accepting,
    client_timeout,
    end_to_end,
)
from holdfast.proxy.measure_threads import MeasureThreads, ScoringQueue
from holdfast.proxy.proxy_metrics import ProxyMetrics
from holdfast.proxy.relay import ChatRelay, RelayedRequest
from holdfast.proxy.retry_attempts import EXTRA_SECONDS, MAX_RESENDS, RetryAttempts
from holdfast.proxy.upstream import Upstream
from holdfast.proxy.upstream_answer import UpstreamAnswer
from holdfast.serve.access import log_failure
from holdfast.serve.refusals import Refusal
from holdfast.serve.wire import CLIENT_CLOSED, CancellableResponse, ClientLeft, send_json

_LOG = logging.getLogger("holdfast.proxy")
_MAX_CHAT_BYTES = 64 * 2**20  # a longer request is forwarded unread
_MAX_SECONDS = 10.0  # to edit a request, or to check a reply; then it is sent on as it came
_MAX_THREADS = 8  # that edit and check
# the part of the time that a client waits for its answer after which no retry is attempted
_USABLE_PATIENCE = 0.9
_PER_REQUEST = "idempotency-key"  # servers answer a second request with the same key by the first
_NOT_FORWARDED = HOP_BY_HOP | {b"host", b"expect"}  # uvicorn answers `Expect` itself
_TOO_SLOW = "A measure took more than %g s; the %s is sent on as it is"
_FAILED = Refusal(
    "The proxy failed on this request; its log says where.", code="internal_error", status=500
)
_SHUTTING_DOWN = Refusal(
    "This proxy is shutting down and takes no new requests; try again later.",
    code="shutting_down",
    status=503,
    headers={"Retry-After": "5"},
)


class Forwarding:
    """Forwards requests to a server; chats go through a `ChatRelay`.

    Attributes:
        open: how many requests have not ended.
        scoring: the replies that wait to be scored.
    """

    def __init__(self, upstream: Upstream, relay: ChatRelay, metrics: ProxyMetrics):
        self._upstream = upstream
        self._relay = relay
        self._metrics = metrics
        self._threads = MeasureThreads(_MAX_THREADS)
        self.scoring = ScoringQueue(relay)
        self.open = 0
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
        """Waits until the last replies are scored, but not for long."""
        self.scoring.finish()

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
            if download.has_begun:
                raise  # the answer breaks off
            await send_json(download.send, _FAILED.body(), _FAILED.status)
        finally:
            self.open -= 1
            if not self.open:
                self._idle.set()
            self._metrics.note_answer(name, download.status)

    # The request

    async def _forward(
        self, api: Api | None, scope: Scope, receive: Receive, download: Download
    ) -> None:
        """Forwards a request and its answer; a chat is read whole and edited first."""
        _check_protocol(scope["headers"])
        headers = end_to_end(scope["headers"], _NOT_FORWARDED)
        upload = Upload(receive, scope["headers"])
        relayed: RelayedRequest | None = None
        content: bytes | AsyncIterator[bytes] | None
        if api is None:
            content = upload.parts() if upload.has_body else None
            if is_other_api(scope["method"], scope["path"]):
                self._relay.tally.note_edit(Edit(EditOutcome.OTHER_API))
        else:
            body = await upload.read(_MAX_CHAT_BYTES)
            if upload.is_over:
                relayed = await self._edit(api, body, headers)
                content = relayed.content
                headers = [(name, value) for name, value in headers if name != b"content-length"]
                if relayed.chat is not None:
                    headers = accepting(self._upstream.readable_encodings, headers)
            else:  # too long to be edited
                self._relay.tally.note_edit(Edit(EditOutcome.UNREADABLE))
                content = upload.parts(body)
        build_request = partial(self._upstream.request, scope, headers)

        async def answer(send: Send) -> None:
            if relayed is not None and relayed.retries:
                patience = client_timeout(headers)
                await self._answer_checked(build_request, relayed, download, patience)
            else:
                await self._answer_as_it_comes(build_request(content), relayed, download)

        await CancellableResponse(answer)(scope, upload.receive_next, download.send)

    async def _edit(self, api: Api, body: bytes, headers: RawHeaders) -> RelayedRequest:
        """Edits the body of a chat, in another thread."""
        started = time.monotonic()
        encoding = dict(headers).get(b"content-encoding", b"").decode("latin-1")
        try:
            async with asyncio.timeout(_MAX_SECONDS):
                relayed = await self._threads.submit(self._relay.edit, api, body, encoding)
        except TimeoutError:  # the thread goes on until the measure returns
            _LOG.error(_TOO_SLOW, _MAX_SECONDS, "request")
            relayed = RelayedRequest(api, body, Edit(EditOutcome.FAILED))
        self._relay.count(relayed)
        self._metrics.edit_seconds.observe(time.monotonic() - started)
        return relayed

    # The answer

    async def _answer_as_it_comes(
        self, request: httpx2.Request, relayed: RelayedRequest | None, download: Download
    ) -> None:
        """Sends a request up and its answer down, and has the reply scored, however it ends."""
        answer = UpstreamAnswer()
        try:
            async with self._response(request, answer) as parts:
                _log_status(request, answer)
                await download.start(answer.status, answer.headers)
                async for part in parts:
                    await download.add(part)
                    if relayed is not None and relayed.chat is not None:
                        answer.add(part)
                await download.end()
        except httpx2.TransportError as error:
            await self._refuse(request, error, download)
        finally:
            self.scoring.add(relayed, answer)

    async def _answer_checked(
        self,
        build_request: Callable[[bytes], httpx2.Request],
        relayed: RelayedRequest,
        download: Download,
        patience: float,
    ) -> None:
        """Sends a request up until the reply keeps the rules, and the best answer down.

        Args:
            patience: how many seconds the client waits for its answer.
        """
        checked = CheckedAnswers(self._relay, relayed)
        delivered = UpstreamAnswer()  # stays empty if the client leaves first
        started = time.monotonic()
        try:
            answer = UpstreamAnswer(is_held=True)
            await self._receive_first(build_request(relayed.content), answer, download)
            if not answer.is_held:
                delivered = answer
                return
            seconds = time.monotonic() - started + EXTRA_SECONDS
            again = await self._check(checked, answer)
            while again is not None:
                limit = min(time.monotonic() + seconds, started + _USABLE_PATIENCE * patience)
                attempts = RetryAttempts(MAX_RESENDS, limit)
                later = await self._receive_again(build_request, again, attempts)
                again = await self._check(checked, later)
            best = checked.best or answer
            await download.send_whole(best)
            delivered = best
        finally:
            self.scoring.add(checked.request, delivered)

    async def _check(
        self, checked: CheckedAnswers, answer: UpstreamAnswer
    ) -> RelayedRequest | None:
        """Checks an answer in another thread; returns the next request, None if there is none."""
        try:
            async with asyncio.timeout(_MAX_SECONDS):
                return await self._threads.submit(checked.add, answer)
        except TimeoutError:
            _LOG.error(_TOO_SLOW, _MAX_SECONDS, "reply")
            if checked.best is None:
                self._relay.tally.note_unchecked()
            else:
                self._relay.tally.note_failed_retry()
            return None

    async def _receive_first(
        self, request: httpx2.Request, answer: UpstreamAnswer, download: Download
    ) -> None:
        """Sends a request up and holds its answer back until it is whole.

        An answer that breaks off, or that grows too long to be checked, is sent down as it is, and
        held no longer.
        """
        try:
            async with self._response(request, answer) as parts:
                _log_status(request, answer)
                async for part in parts:
                    if not answer.is_held:
                        await download.add(part)
                        continue
                    answer.add(part)
                    if answer.is_too_long:
                        await download.start(answer.status, answer.headers)
                        await download.add(answer.release())
            if not answer.is_held:
                await download.end()
        except httpx2.TransportError as error:
            body = answer.release()
            if answer.status and not download.has_begun:
                await download.start(answer.status, answer.headers)
                await download.add(body)
            await self._refuse(request, error, download)

    async def _receive_again(
        self,
        build_request: Callable[[bytes], httpx2.Request],
        again: RelayedRequest,
        attempts: RetryAttempts,
    ) -> UpstreamAnswer:
        """Sends a retry up, again if the server is busy, and returns the last answer.

        That is an answer without a status if the server gave none.
        """
        while True:
            request = build_request(again.content)
            request.headers.pop(_PER_REQUEST, None)
            answer = await self._attempt(request, attempts.seconds_left)
            delay = attempts.delay_after(answer)
            if answer.failure:
                _log_failed_retry(request, answer.failure, delay)
            if delay is None:
                return answer
            await asyncio.sleep(delay)

    async def _attempt(self, request: httpx2.Request, seconds: float) -> UpstreamAnswer:
        """Sends a retry up once, and returns its answer, which may say why it is no reply."""
        answer = UpstreamAnswer(is_held=True)
        try:
            async with asyncio.timeout(seconds), self._response(request, answer) as parts:
                async for part in parts:
                    answer.add(part)
                    if answer.is_too_long:
                        answer.failure = "gave a reply that is too long to be checked"
                        return answer
        except TimeoutError:
            return UpstreamAnswer(failure="took too long for a retry")
        except httpx2.TransportError as error:
            failure = self._upstream.failure_of(error)
            self._metrics.upstream_errors.labels(failure.code).inc()
            return UpstreamAnswer(failure=failure.log_text)
        except Exception as error:  # a fault here must not cost the earlier reply
            log_failure(_LOG, error)
            return UpstreamAnswer(failure="could not be asked again")
        if answer.status >= 400:
            answer.failure = f"answered with status {answer.status}"
        return answer

    @asynccontextmanager
    async def _response(
        self, request: httpx2.Request, answer: UpstreamAnswer
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Sends a request up; yields the parts of the answer, whose head is in `answer` by then."""
        started = time.monotonic()
        response = await self._upstream.send(request)
        async with aclosing(response):
            answer.status = response.status_code
            answer.headers = response.headers
            yield self._parts(response, started)

    async def _parts(self, response: httpx2.Response, started: float) -> AsyncIterator[bytes]:
        """Yields the body as it comes; measures how long after `started` its first byte came."""
        is_first = True
        async for part in response.aiter_raw():
            if is_first:
                self._metrics.first_byte_seconds.observe(time.monotonic() - started)
                is_first = False
            yield part

    # Failures of the server

    async def _refuse(
        self, request: httpx2.Request, error: httpx2.TransportError, download: Download
    ) -> None:
        """Answers with a refusal; an answer that has begun is broken off, as it was upstream."""
        failure = self._upstream.failure_of(error)
        if download.has_begun:
            self._metrics.upstream_errors.labels("broke_off").inc()
            _log_upstream_failure(request, f"{failure.log_text} in the middle of its answer")
        else:
            self._metrics.upstream_errors.labels(failure.code).inc()
            _log_upstream_failure(request, failure.log_text)
            refusal = failure.refusal
            await send_json(download.send, refusal.body(), refusal.status, refusal.headers)


def _log_status(request: httpx2.Request, answer: UpstreamAnswer) -> None:
    """Logs that an answer is an error."""
    if answer.status >= 400:
        _log_upstream_failure(request, f"answered with status {answer.status}")


def _log_failed_retry(request: httpx2.Request, failure: str, delay: float | None) -> None:
    """Logs why a retry gave no reply, and what follows: another attempt, or none."""
    next_step = "an earlier reply is sent" if delay is None else f"sent again in {delay:.1f} s"
    _log_upstream_failure(request, f"{failure}; {next_step}")


def _log_upstream_failure(request: httpx2.Request, text: str) -> None:
    """Logs a failure of the upstream; no bodies or headers, and no query, which may have a key."""
    url = request.url.copy_with(userinfo=b"", query=None)
    _LOG.warning("%s %s: %s", request.method, url, text)


def _check_protocol(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuses WebSockets, which would be forwarded as a plain request."""
    if any(name == b"upgrade" and value.lower() == b"websocket" for name, value in headers):
        raise Refusal(
            "The proxy does not forward WebSockets (OpenAI's Realtime API); connect to the server"
            " itself.",
            code="websocket",
            status=501,
        )
