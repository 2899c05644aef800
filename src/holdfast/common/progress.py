"""Progress of long work, which the caller may watch; only the command line prints it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Progress(Protocol):
    """Takes the number of units just done, and the tokens forwarded for them."""

    def __call__(self, done: int, tokens: int = 0, /) -> None: ...


Watch = Callable[[str, int], AbstractContextManager[Progress]]  # takes a step's name and size


def ignored(done: int, tokens: int = 0) -> None:
    """Progress that nobody watches."""


def unwatched(step: str, total: int) -> AbstractContextManager[Progress]:
    """A step that nobody watches."""
    return nullcontext(ignored)
