"""The response to a request, as far as it has come, as bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

import httpx2

MAX_SCORED_REPLY_BYTES = 8 * 2**20  # bytes of a reply that are kept until it is scored


@dataclass
class Answer:
    """The response to a request, as far as it has come.

    A body that is too long to be scored is not kept, unless it is held: then it is the client's,
    and `release` gives it up.

    Attributes:
        status: 0 if there was none.
        is_held: whether all of it is kept, as the client does not have it yet.
    """

    status: int = 0
    headers: httpx2.Headers = field(default_factory=httpx2.Headers)
    is_held: bool = False
    _parts: list[bytes] = field(init=False, default_factory=list)
    _size: int = field(init=False, default=0)

    def add(self, part: bytes) -> None:
        """Keeps the next bytes of its body."""
        self._size += len(part)
        self._parts.append(part)
        if self.is_too_long and not self.is_held:
            self._parts.clear()

    def release(self) -> bytes:
        """The body so far, which is kept no longer."""
        body = self.body
        self.is_held = False
        self._parts.clear()
        return body

    @property
    def is_too_long(self) -> bool:
        """Whether the body has more than `MAX_SCORED_REPLY_BYTES` bytes."""
        return self._size > MAX_SCORED_REPLY_BYTES

    @property
    def body(self) -> bytes:
        """The body as it came."""
        return b"".join(self._parts)

    @property
    def text(self) -> str | None:
        """The body as text; None if it cannot be decompressed here."""
        body = self.body
        encoding = self.headers.get("content-encoding", "").strip().lower()
        try:
            content = httpx2.Response(200, headers=self.headers, content=body).content
        except httpx2.DecodingError:
            return None
        is_known = encoding in ("", "identity") or content != body or not body
        return content.decode("utf-8", "replace") if is_known else None
