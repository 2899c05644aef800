"""The client's side of a forwarded request: the body that it sends, and the answer that it gets."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

import httpx2
from starlette.types import Message, Receive, Send

from holdfast.proxy.upstream_answer import UpstreamAnswer
from holdfast.serve.wire import ClientLeft

# headers about a single connection, which a proxy does not forward (RFC 9110, section 7.6.1)
HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer"
    b" transfer-encoding upgrade".split()
)

RawHeaders = list[tuple[bytes, bytes]]

# where OpenAI's clients say for how many seconds they wait: Python and Java; JavaScript
_TIMEOUTS = (b"x-stainless-read-timeout", b"x-stainless-timeout")


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

    @property
    def has_begun(self) -> bool:
        """Whether the client has the status already, so that no other can be sent."""
        return self.status != 0

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

    async def send_whole(self, answer: UpstreamAnswer) -> None:
        """Sends a complete answer."""
        await self.start(answer.status, answer.headers)
        await self.add(answer.body)
        await self.end()

    async def end(self) -> None:
        """Ends the body."""
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})


def client_timeout(headers: RawHeaders) -> float:
    """Returns how many seconds the client waits for its answer; infinity if it does not say so."""
    values = dict(headers)
    for name in _TIMEOUTS:
        with contextlib.suppress(KeyError, ValueError):
            seconds = float(values[name])
            if seconds > 0:
                return seconds
    return math.inf


def accepting(encodings: frozenset[str], headers: RawHeaders) -> RawHeaders:
    """Returns the headers of a request, which accept no other compression of the answer.

    Accept-Encoding: br, gzip;q=0.9  ->  Accept-Encoding: gzip;q=0.9
    """

    def restrict(value: bytes) -> bytes:
        codings = [coding.strip() for coding in value.decode("latin-1").split(",")]
        accepted = [c for c in codings if c.partition(";")[0].strip().lower() in encodings]
        return (", ".join(accepted) or "identity").encode("latin-1")

    return [
        (name, restrict(value) if name == b"accept-encoding" else value) for name, value in headers
    ]


def end_to_end(
    headers: Iterable[tuple[bytes, bytes]], dropped: frozenset[bytes] = HOP_BY_HOP
) -> RawHeaders:
    """Returns the headers that a proxy forwards: not `dropped`, nor those in `Connection`."""
    lowered = [(name.lower(), value) for name, value in headers]
    connection = b",".join(value for name, value in lowered if name == b"connection")
    named = {name.strip().lower() for name in connection.split(b",")}
    return [(name, value) for name, value in lowered if name not in dropped | named]
