"""Middleware around every route: API key, host check, OpenAI's error format, security headers."""

import hmac
import logging
import time
import traceback
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.errors import Busy, Draining, HoldfastError
from holdfast.serve.metrics import Metrics
from holdfast.serve.refusals import Refusal, refusal_of
from holdfast.serve.wire import CLIENT_CLOSED, ClientLeft, end_events, send_event, send_json

_LOG = logging.getLogger("holdfast.serve")
SECURITY_HEADERS = {
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
_ENCODED_HEADERS = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]


@dataclass(frozen=True)
class AccessRules:
    """The rules that decide which requests are allowed.

    Args:
        key: the API key, required in every request; "" if none is needed.
        open_paths: the paths that need no key.
        hosts: the host names that the server answers to; () allows any. A server without a key
            needs them, so that no page of another site can reach it by DNS rebinding.
        to_open: how to allow other host names, for the error message.
    """

    key: str = ""
    open_paths: frozenset[str] = frozenset({"/health", "/ready"})
    hosts: tuple[str, ...] = ()
    to_open: str = "start it with --api-key-env"

    def check(self, scope: Scope) -> None:
        """Raises a `Refusal` if a request is not allowed."""
        headers = Headers(scope=scope)
        if self.hosts and _host(headers.get("host", "")) not in self.hosts:
            raise Refusal(
                "This server answers only under its own address, as it has no API key;"
                f" {self.to_open} to use it under other names.",
                code="unknown_host",
                status=421,
            )
        if not self.key or scope["path"] in self.open_paths:
            return
        authorization = headers.get("authorization", "").encode("latin-1")
        if not hmac.compare_digest(authorization, b"Bearer " + self.key.encode()):
            raise Refusal(
                "The API key is missing or wrong; send it as Authorization: Bearer KEY.",
                code="invalid_api_key",
                status=401,
                headers={"WWW-Authenticate": "Bearer"},
            )


class AccessControl:
    """The middleware around all routes; metrics count paths not in `paths` as "other"."""

    def __init__(self, app: ASGIApp, rules: AccessRules, metrics: Metrics, paths: frozenset[str]):
        self.app = app
        self.rules = rules
        self.metrics = metrics
        self.paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        arrived = time.monotonic()
        sender = _Sender(send)
        try:
            self.rules.check(scope)
            await self.app(scope, receive, sender.send)
        except ClientLeft:
            sender.status = CLIENT_CLOSED
        except Exception as error:
            await sender.refuse(_refusal(error), scope["path"])
        path = scope["path"] if scope["path"] in self.paths else "other"
        self.metrics.requests.labels(path, str(sender.status)).inc()
        self.metrics.seconds.observe(time.monotonic() - arrived)


class _Sender:
    """Sends an answer to a client, and tracks how much of it has been sent.

    Attributes:
        status: the status that was sent; 0 if nothing has been sent.
    """

    def __init__(self, send: Send):
        self.status = 0
        self._send = send
        self._is_open = True

    async def send(self, message: Message) -> None:
        """Sends a message of ASGI, with the security headers that it lacks."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message["headers"])
            names = {name for name, _ in headers}
            headers += [header for header in _ENCODED_HEADERS if header[0] not in names]
            message["headers"] = headers
        else:
            self._is_open = message.get("more_body", False)
        await self._send(message)

    async def refuse(self, refusal: Refusal, path: str) -> None:
        """Sends an error as the answer, or as the last event if a stream has already started."""
        body = refusal.body(path)
        if not self.status:
            await send_json(self.send, body, refusal.status, refusal.headers)
        elif self._is_open:
            self.status = refusal.status
            await send_event(self.send, body)
            await end_events(self.send, b"")


def _refusal(error: Exception) -> Refusal:
    """Turns any error of a request into a refusal; logs those that are defects of the server."""
    match error:
        case Refusal():
            return error
        case Busy():
            headers = {"Retry-After": "1"}
            return Refusal(str(error), code="queue_full", status=429, headers=headers)
        case Draining():
            return Refusal(
                "This server is shutting down and takes no new requests; try another server, or"
                " try again later.",
                code="shutting_down",
                status=503,
                headers={"Retry-After": "5"},
            )
        case HoldfastError():
            return refusal_of(error)
        case HTTPException(status_code=404):
            return Refusal("This path does not exist; see /openapi.json.", status=404)
        case HTTPException(status_code=405):
            allowed = (error.headers or {}).get("Allow", "")
            message = f"This path only takes {allowed} requests."
            return Refusal(message, status=405, headers={"Allow": allowed})
        case HTTPException():
            return Refusal(error.detail, status=error.status_code)
    log_failure(_LOG, error)
    return Refusal(
        "The server failed on this request; its log says where.", code="internal_error", status=500
    )


def log_failure(log: logging.Logger, error: Exception) -> None:
    """Logs where a request failed, without the error's message, which may quote a chat."""
    where = "".join(traceback.format_tb(error.__traceback__))
    log.error("A request failed with %s:\n%s", type(error).__name__, where)


def _host(header: str) -> str:
    """The host in a `Host` header, without its port."""
    name = header.lower()
    return name[1:].split("]")[0] if name.startswith("[") else name.split(":")[0]
