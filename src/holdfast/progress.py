"""How long work tells of itself: whoever starts it may watch, and nothing is printed below the
command line.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

Progress = Callable[
    [int, int], None
]  # takes how many units were just done, and the tokens forwarded for them
Watch = Callable[[str, int], AbstractContextManager[Progress]]  # takes a step's name and its units


def ignored(done: int, tokens: int = 0) -> None:
    """Watches nothing."""


def unwatched(step: str, total: int) -> AbstractContextManager[Progress]:
    """A step that nobody watches."""
    return nullcontext(ignored)
