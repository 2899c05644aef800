"""JSON in and out, server-sent events, and what happens when a client goes away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Mapping
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from holdfast.serve.limits import Limits
from holdfast.serve.refusals import Refusal

GONE = 499  # nginx's number for a client that closed its connection
_JSON = b"application/json"


class ClientGone(Exception):
    """Nobody is there any more to be answered."""


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """The headers of a request; of several with one name the last."""
    return dict(scope["headers"])


async def read_json(scope: Scope, receive: Receive, limits: Limits) -> Any:
    """The body of a request.

    Raises:
        Refusal: it is no JSON, too large, or too slow in coming.
        ClientGone: it never came to its end.
    """
    headers = headers_of(scope)
    if headers.get(b"content-type", b"").split(b";")[0].strip().lower() != _JSON:
        raise Refusal(
            "The body is JSON; send the header Content-Type: application/json.",
            code="unsupported_media_type",
            status=415,
        )
    try:
        async with asyncio.timeout(limits.upload_seconds):
            raw = await _read_body(headers, receive, limits.body_bytes)
    except TimeoutError:
        raise Refusal(
            f"The body did not arrive within {limits.upload_seconds:g} s; send it at once.",
            code="timeout",
            status=408,
        ) from None
    return parse_json(raw)


async def _read_body(headers: Mapping[bytes, bytes], receive: Receive, most: int) -> bytes:
    declared = headers.get(b"content-length", b"0")
    if declared.isdigit() and int(declared[:20]) > most:
        raise _too_large(most)
    parts, size, more = list[bytes](), 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise _too_large(most)
        more = message.get("more_body", False)
    return b"".join(parts)


def _too_large(most: int) -> Refusal:
    return Refusal(
        f"The body is larger than the {most} bytes that this server takes; send a shorter chat.",
        code="body_too_large",
        status=413,
        headers={"Connection": "close"},
    )


def parse_json(raw: bytes) -> Any:
    """JSON as its standard has it: no NaN, no name twice in one object.

    Raises:
        Refusal: something else.
    """
    try:
        return json.loads(raw.decode(), parse_constant=_no_number, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        told = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Refusal(f"The body is not JSON: {told}.", code="invalid_json") from None


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made:
            raise ValueError(f"an object has {name[:60]!r} twice")
        made[name] = value
    return made


def to_json(value: Any) -> bytes:
    """Compact JSON, in ASCII, so that any text can be written."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


async def send_json(
    send: Send, value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> None:
    """A whole answer."""
    await send_bytes(send, to_json(value), "application/json", status, headers)


async def send_bytes(
    send: Send,
    body: bytes,
    media_type: str,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> None:
    """A whole answer of another kind."""
    raw = [(b"content-type", media_type.encode()), (b"content-length", str(len(body)).encode())]
    raw += [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


async def start_events(send: Send) -> None:
    """Begins a stream of server-sent events, which no proxy should hold back."""
    raw = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]
    await send({"type": "http.response.start", "status": 200, "headers": raw})


async def send_event(send: Send, value: Any) -> None:
    """One event."""
    await send_data(send, b"data: " + to_json(value) + b"\n\n")


async def send_data(send: Send, body: bytes, more: bool = True) -> None:
    """A part of a stream."""
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def while_client_stays(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Does the work of an answer, and gives it up as soon as its client goes away.

    Args:
        receive: of the request, whose body has been read.
        work: what to do; it is cancelled, and cleans up in its `finally`.

    Raises:
        ClientGone: it was given up.
        Exception: the work's own.
    """
    working, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone
        working.result()
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)


async def _gone(receive: Receive) -> None:
    message: Message = {"type": ""}
    while message["type"] != "http.disconnect":
        message = await receive()
