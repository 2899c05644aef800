"""Progress of long work: the caller may watch it; only the command line prints."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

Progress = Callable[[int, int], None]  # takes how many units were just done, and their tokens
Watch = Callable[[str, int], AbstractContextManager[Progress]]  # takes a step's name and size


def ignored(done: int, tokens: int) -> None:
    """Progress that nobody watches."""


def unwatched(step: str, total: int) -> AbstractContextManager[Progress]:
    """A step that nobody watches."""
    return nullcontext(ignored)
