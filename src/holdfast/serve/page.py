"""The playground: a page of a few files that come with the package, read when the server starts."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import PurePath

from starlette.types import Receive, Scope, Send

from holdfast.serve.wire import send_bytes

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FIRST = "index.html"  # stands at "/", all others below "/page/"


@dataclass(frozen=True)
class PageFile:
    """A route that answers with one file.

    Args:
        body: its bytes.
        media_type: what they are.
    """

    body: bytes
    media_type: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_bytes(send, self.body, self.media_type)


def page_files() -> dict[str, PageFile]:
    """Every file by its path: no path of a request is ever looked up on disk."""
    made = {}
    for entry in (files("holdfast") / "serve" / "page").iterdir():
        if media_type := _TYPES.get(PurePath(entry.name).suffix):
            path = "/" if entry.name == _FIRST else f"/page/{entry.name}"
            made[path] = PageFile(entry.read_bytes(), media_type)
    return made
