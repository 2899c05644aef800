"""The server's answer to one request, while it arrives and once it is whole."""

from __future__ import annotations

from dataclasses import dataclass, field

import httpx2

MAX_SCORED_REPLY_BYTES = 8 * 2**20  # a longer reply is not scored


@dataclass
class UpstreamAnswer:
    """The response to a request, as far as it has arrived.

    Of a body that is too long to be scored, nothing is kept, as the client has it already. If the
    answer is held back instead, all of it is kept until `release`.

    Attributes:
        status: the HTTP status; 0 if there was no response.
        is_held: whether the client does not have the body yet, so that all of it is kept.
        failure: of a retry, why it gave no reply, for the log; "" if it did, or if that is unknown.
    """

    status: int = 0
    headers: httpx2.Headers = field(default_factory=httpx2.Headers)
    is_held: bool = False
    failure: str = ""
    _parts: list[bytes] = field(init=False, default_factory=list)
    _size: int = field(init=False, default=0)

    def add(self, part: bytes) -> None:
        """Takes the next bytes of the body."""
        self._size += len(part)
        self._parts.append(part)
        if self.is_too_long and not self.is_held:
            self._parts.clear()

    def release(self) -> bytes:
        """Returns the body so far, for the client, which gets the rest as it comes."""
        body = self.body
        self.is_held = False
        if self.is_too_long:
            self._parts.clear()
        return body

    @property
    def is_too_long(self) -> bool:
        """Whether the body has more than `MAX_SCORED_REPLY_BYTES` bytes."""
        return self._size > MAX_SCORED_REPLY_BYTES

    @property
    def body(self) -> bytes:
        """The body as it was sent, perhaps compressed."""
        return b"".join(self._parts)

    @property
    def text(self) -> str | None:
        """The body as text; None if its compression is not supported here."""
        body = self.body
        encoding = self.headers.get("content-encoding", "").strip().lower()
        try:
            content = httpx2.Response(200, headers=self.headers, content=body).content
        except httpx2.DecodingError:
            return None
        is_known = encoding in ("", "identity") or content != body or not body
        return content.decode("utf-8", "replace") if is_known else None
