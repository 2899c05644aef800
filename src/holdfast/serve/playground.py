"""The files of the playground, a page on which to try the server."""

from importlib.resources import files
from pathlib import PurePath

from starlette.responses import Response

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_INDEX = "index.html"  # served at "/", all other files under "/page/"


def page_files() -> dict[str, Response]:
    """Returns the playground's files as responses, by their URL paths.

    They are all read at the start, so that no path of a request is looked up on disk.
    """
    page = {}
    for entry in (files("holdfast") / "serve" / "page").iterdir():
        if media_type := MEDIA_TYPES.get(PurePath(entry.name).suffix):
            path = "/" if entry.name == _INDEX else f"/page/{entry.name}"
            page[path] = Response(entry.read_bytes(), media_type=media_type)
    return page
