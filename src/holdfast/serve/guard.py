"""What stands in front of every route: who may ask, how errors are told, what browsers may do."""

from __future__ import annotations

import hmac
import logging
import time
import traceback
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.errors import Busy, Draining, HoldfastError
from holdfast.serve.metrics import Metrics
from holdfast.serve.refusals import Refusal, broken, busy, draining, refusal_of
from holdfast.serve.wire import GONE, ClientGone, headers_of, send_data, send_event, send_json

_LOG = logging.getLogger("holdfast.serve")
_OPEN = ("/health", "/ready")
_SECURITY = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        " img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
_HEADERS = [(name.encode(), value.encode()) for name, value in _SECURITY.items()]


@dataclass(frozen=True)
class Gate:
    """Who may ask.

    Args:
        key: that every request bears; "" where none is needed.
        open_paths: that need none.
        hosts: names under which a server without a key may be asked, so that no page of another
            site reaches it under a name of its own (DNS rebinding); () for any.
    """

    key: str = ""
    open_paths: frozenset[str] = frozenset(_OPEN)
    hosts: tuple[str, ...] = ()

    def check(self, scope: Scope) -> None:
        """Lets a request pass.

        Raises:
            Refusal: it bears another key, or asks for another host.
        """
        headers = headers_of(scope)
        if self.hosts and _host(headers.get(b"host", b"")) not in self.hosts:
            raise Refusal(
                "This server answers under its own address alone, as it has no API key; start it"
                " with --api-key-env to use it under other names.",
                code="unknown_host",
                status=421,
            )
        if not self.key or scope["path"] in self.open_paths:
            return
        given = headers.get(b"authorization", b"")
        if not hmac.compare_digest(given, b"Bearer " + self.key.encode()):
            raise Refusal(
                "The API key is missing or wrong; send it as Authorization: Bearer KEY.",
                code="invalid_api_key",
                status=401,
                headers={"WWW-Authenticate": "Bearer"},
            )


def guarded(app: ASGIApp, gate: Gate, metrics: Metrics, paths: frozenset[str]) -> ASGIApp:
    """The application behind its gate; all its errors are told in OpenAI's shape.

    Args:
        app: the routes.
        gate: who may ask.
        metrics: where requests are counted.
        paths: that are counted by name; all others are "other".
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await app(scope, receive, send)
            return
        arrived, out = time.monotonic(), _Out(send)
        scope["app"] = app  # routes then raise what they refuse, and leave the telling to us
        try:
            gate.check(scope)
            await app(scope, receive, out.send)
        except ClientGone:
            out.status = GONE
        except Exception as error:
            await out.tell(_refusal(error))
        path = scope["path"] if scope["path"] in paths else "other"
        metrics.requests.labels(path, str(out.status)).inc()
        metrics.seconds.observe(time.monotonic() - arrived)

    return answer


class _Out:
    """The way out to a client, which knows how far an answer has come."""

    def __init__(self, send: Send):
        self._send = send
        self.status = 0  # 0: nothing was sent
        self._more = True

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            given = {name for name, _ in message["headers"]}
            message["headers"] = [
                *message["headers"],
                *(header for header in _HEADERS if header[0] not in given),
            ]
        else:
            self._more = message.get("more_body", False)
        await self._send(message)

    async def tell(self, refusal: Refusal) -> None:
        """An error: as the answer, or as the last event of a stream that has begun."""
        if not self.status:
            await send_json(self.send, refusal.body(), refusal.status, refusal.headers)
        elif self._more:
            self.status = refusal.status
            await send_event(self.send, refusal.body())
            await send_data(self.send, b"", more=False)


def _refusal(error: Exception) -> Refusal:
    """What is told of an error."""
    match error:
        case Refusal():
            return error
        case Busy():
            return busy(str(error))
        case Draining():
            return draining()
        case HoldfastError():
            return refusal_of(error)
        case HTTPException(status_code=404):
            return Refusal("There is nothing at this path; see /openapi.json.", status=404)
        case HTTPException(status_code=405):
            allowed = (error.headers or {}).get("Allow", "")
            told = f"This path takes {allowed} alone."
            return Refusal(told, status=405, headers={"Allow": allowed})
        case HTTPException():
            return Refusal(error.detail, status=error.status_code)
    # its own words may quote a chat, so they stay out of the log
    where = "".join(traceback.format_tb(error.__traceback__))
    _LOG.error("A request failed with %s:\n%s", type(error).__name__, where)
    return broken()


def _host(header: bytes) -> str:
    """The name in a Host header, without its port."""
    name = header.decode("latin-1").lower()
    return name[1:].split("]")[0] if name.startswith("[") else name.split(":")[0]
