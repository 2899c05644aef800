"""Reads and writes JSON and server-sent events, and cancels work when the client leaves."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from holdfast.serve.limits import RequestLimits
from holdfast.serve.refusals import Refusal

CLIENT_CLOSED = 499  # nginx's status for a client that closed its connection
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


class ClientLeft(Exception):
    """The client has disconnected."""


class AsciiJsonResponse(JSONResponse):
    """A JSON response in ASCII, which can encode any text."""

    def render(self, content: Any) -> bytes:
        return to_json(content)


class CancellableResponse(Response):
    """An answer that is sent while it is computed, and cancelled if its client leaves."""

    def __init__(self, write: Callable[[Send], Coroutine[Any, Any, None]]):
        self._write = write
        super().__init__()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        writing = asyncio.ensure_future(self._write(send))
        leaving = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            await asyncio.wait({writing, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not writing.done():
                raise ClientLeft
            writing.result()
        finally:
            for task in (writing, leaving):
                task.cancel()
            await asyncio.gather(writing, leaving, return_exceptions=True)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def read_json(request: Request, limits: RequestLimits) -> Any:
    """Reads the JSON body of a request; raises a `Refusal` if it is invalid or exceeds a limit."""
    kind = request.headers.get("content-type", "")
    if kind.split(";")[0].strip().lower() != "application/json":
        raise Refusal(
            "The body must be JSON; send the header Content-Type: application/json.",
            code="unsupported_media_type",
            status=415,
        )
    try:
        async with asyncio.timeout(limits.upload_seconds):
            raw = await _read_bytes(request, max_bytes=limits.body_bytes)
    except TimeoutError:
        raise Refusal(
            f"The body did not arrive within {limits.upload_seconds:g} s; send it without delay.",
            code="timeout",
            status=408,
        ) from None
    return _parse_json(raw)


async def _read_bytes(request: Request, max_bytes: int) -> bytes:
    """Reads a body up to a limit; refuses a larger one without keeping it."""
    length = request.headers.get("content-length", "0")
    size = int(length[:20]) if length.isdecimal() else 0
    parts = list[bytes]()
    is_whole = False
    while not is_whole and size <= max_bytes:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        parts.append(message.get("body", b""))
        size = max(size, sum(map(len, parts)))
        is_whole = not message.get("more_body", False)
    if size <= max_bytes:
        return b"".join(parts)
    raise Refusal(
        f"The body is larger than the {max_bytes} bytes that this server takes; send a shorter"
        " chat.",
        code="body_too_large",
        status=413,
        headers={"Connection": "close"},
    )


def _parse_json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Refusal(f"The body is not JSON: {why}.", code="invalid_json") from None


def to_json(value: Any) -> bytes:
    """Encodes a value as compact JSON."""
    return _ENCODER.encode(value).encode()


async def send_json(
    send: Send, value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> None:
    """Sends a whole answer."""
    response = AsciiJsonResponse(value, status, headers)
    start = {"type": "http.response.start", "status": status, "headers": response.raw_headers}
    await send(start)
    await send({"type": "http.response.body", "body": response.body})


async def start_events(send: Send) -> None:
    """Begins a stream of server-sent events, and asks proxies not to buffer it."""
    raw = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]
    await send({"type": "http.response.start", "status": 200, "headers": raw})


async def send_event(send: Send, value: Any, name: str = "") -> None:
    """Sends one event; its `name` may be ""."""
    head = f"event: {name}\n".encode() if name else b""
    body = head + b"data: " + to_json(value) + b"\n\n"
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def end_events(send: Send, mark: bytes = b"data: [DONE]\n\n") -> None:
    """Ends a stream of events."""
    await send({"type": "http.response.body", "body": mark, "more_body": False})
