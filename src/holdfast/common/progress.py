"""How long work tells of itself: whoever starts it may watch, and nothing is printed below the
command line.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Progress(Protocol):
    """Takes how many units were just done, and the tokens forwarded for them."""

    def __call__(self, done: int, tokens: int = 0, /) -> None: ...


Watch = Callable[[str, int], AbstractContextManager[Progress]]  # takes a step's name and its units


def ignored(done: int, tokens: int = 0) -> None:
    """Watches nothing."""


def unwatched(step: str, total: int) -> AbstractContextManager[Progress]:
    """A step that nobody watches."""
    return nullcontext(ignored)
