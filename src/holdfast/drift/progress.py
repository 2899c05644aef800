"""Progress of long work, which the caller may watch; only the command line prints it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Progress(Protocol):
    """Takes the number of units just done, and the tokens forwarded for them."""

    def __call__(self, done: int, tokens: int = 0, /) -> None: ...


# how much more the last round of a conversation costs than the first, as its chat is longer
GROWTH = 0.95
_COUNTDOWN = 0.8  # seconds that an estimate loses per second without news
_MIN_LEFT = 1 / 3  # of an estimate is left, however long there was no news


def seconds_left(
    events: Sequence[tuple[float, int]],
    total: int,
    now: float,
    *,
    growth: float = 0.0,
    waves: int = 1,
) -> float | None:
    """About how long the rest of some work takes; None as long as nothing is done.

    Conversations that run side by side end their rounds at about the same time, so that units come
    in bursts. The estimate is made from the last one, as the mean pace up to there, and counts down
    until the next.

    Args:
        events: the time of each advance and the units done by then, both from the start of the
            work; units that were done before it are not counted.
        total: units of the work.
        now: the present time, from the start.
        growth: how much more the last unit of a wave costs than its first, as a share.
        waves: how often the cost begins anew, as with every group of conversations.
    """
    if not events or not events[-1][1]:
        return None
    last, done = events[-1]
    share = cost_share(done / total, growth, waves)
    estimate = last * (1 - share) / share
    return max(estimate - _COUNTDOWN * (now - last), _MIN_LEFT * estimate)


def cost_share(units: float, growth: float, waves: int = 1) -> float:
    """The share of the whole cost that a share of the units has, in order."""
    wave = min(int(units * waves), waves - 1)
    in_wave = units * waves - wave
    return (wave + (in_wave + growth * in_wave**2 / 2) / (1 + growth / 2)) / waves


Watch = Callable[[str, int], AbstractContextManager[Progress]]  # takes a step's name and size


def ignored(done: int, tokens: int = 0) -> None:
    """Progress that nobody watches."""


def unwatched(step: str, total: int) -> AbstractContextManager[Progress]:
    """A step that nobody watches."""
    return nullcontext(ignored)
