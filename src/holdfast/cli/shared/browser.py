"""Opens a page in the user's browser, where there is a display."""

import contextlib
import os
import sys
import webbrowser
from pathlib import Path


def has_display() -> bool:
    """Whether a browser with a window can open here."""
    if sys.platform in ("win32", "darwin"):
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_in_browser(page: Path) -> None:
    """Opens a file in the browser; says nothing if that fails, as the path is printed anyway."""
    with contextlib.suppress(OSError, webbrowser.Error):
        webbrowser.open(page.as_uri())
