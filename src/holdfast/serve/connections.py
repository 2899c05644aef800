"""Closes connections whose requests do not arrive in time.

uvicorn waits indefinitely for the rest of a request, so a client that stops in the middle, or sends
it byte by byte, would keep its connection open for ever.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, cast

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from holdfast.serve.limits import RequestLimits
from holdfast.serve.refusals import Refusal
from holdfast.serve.wire import to_json

# Seconds after the time limit for a body, so that the route can refuse it first, in JSON.
_GRACE = 5.0
_SHUTDOWN = 5.0  # seconds for connections to close after the last answer


def configuration(app: ASGIApp, limits: RequestLimits) -> uvicorn.Config:
    """Builds uvicorn's configuration for a server with these limits."""
    protocol = cast(type[asyncio.Protocol], partial(_TimedProtocol, limits))
    return uvicorn.Config(
        app,
        http=protocol,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=int(_SHUTDOWN),
    )


class _TimedProtocol(H11Protocol):
    """Closes a connection if the headers or the body of a request do not arrive in time.

    The time for headers begins with the connection, or with the first byte of a later request;
    between requests, uvicorn closes an idle connection itself.
    """

    def __init__(self, limits: RequestLimits, *arguments: Any, **named: Any):
        super().__init__(*arguments, **named)
        self._limits = limits
        self._limited_state: object = None  # the state of the client that the timer limits
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self._limit_time_in(h11.IDLE)

    def connection_lost(self, exc: Exception | None) -> None:
        self._limit_time_in(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_client()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch_client()

    def _watch_client(self) -> None:
        """Starts the timer if the client is sending headers or a body; more bytes of the same part
        do not restart it.
        """
        state = self.conn.their_state
        unread, _ = self.conn.trailing_data
        if state is h11.SEND_BODY or (state is h11.IDLE and (unread or self.cycle is None)):
            self._limit_time_in(state)
        else:
            self._limit_time_in(None)

    def _limit_time_in(self, state: object) -> None:
        """Limits the time that the client may stay in a state; None stops the timer."""
        if state is self._limited_state:
            return
        self._limited_state = state
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if state is h11.IDLE:
            self._timer = self.loop.call_later(self._limits.header_seconds, self._refuse)
        elif state is h11.SEND_BODY:
            seconds = self._limits.upload_seconds + _GRACE
            self._timer = self.loop.call_later(seconds, self._close)

    def _refuse(self) -> None:
        """Answers that the headers came too late, if nothing else was answered, and closes."""
        if self.transport.is_closing() or self.conn.our_state is not h11.IDLE:
            return self._close()
        refusal = Refusal(
            f"The headers did not arrive within {self._limits.header_seconds:g} s; send them"
            " without delay.",
            code="timeout",
            status=408,
        )
        body = to_json(refusal.body())
        headers = [
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("connection", "close"),
        ]
        for event in (
            h11.Response(status_code=refusal.status, headers=headers),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self._close()

    def _close(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()
