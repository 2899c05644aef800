"""The progress of long work, which callers may follow; only the command line prints it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

# the last round of a conversation costs this share more than the first, as its chat is longer
GROWTH = 0.95
_COUNTDOWN = 0.8  # seconds that an estimate loses in every second without news
_MIN_LEFT = 1 / 3  # the share of an estimate that always remains


class Progress(Protocol):
    """Receives the number of units just done, and the tokens forwarded for them."""

    def __call__(self, done: int, tokens: int = 0, /) -> None: ...


Watch = Callable[[str, int], AbstractContextManager[Progress]]  # receives a step's name and size


def ignore_progress(done: int, tokens: int = 0) -> None:
    """The `Progress` of work that nobody follows."""


def ignore_steps(step: str, total: int) -> AbstractContextManager[Progress]:
    """The `Watch` of work that nobody follows."""
    return nullcontext(ignore_progress)


@dataclass
class ReplyProgress:
    """Reports each reply of a dialog, with the tokens forwarded since the previous reply."""

    replies_left: int
    report: Progress
    tokens_reported: int = 0

    def answered(self, forwarded: int) -> None:
        """Reports one more reply.

        Args:
            forwarded: the tokens forwarded for the whole dialog so far.
        """
        self.replies_left -= 1
        tokens = forwarded - self.tokens_reported
        self.tokens_reported = forwarded
        self.report(1, tokens)

    def ended(self) -> None:
        """Reports the replies that are not needed any more, as the dialog is over."""
        if self.replies_left:
            self.report(self.replies_left, 0)
        self.replies_left = 0


def seconds_left(
    events: Sequence[tuple[float, int]],
    total: int,
    now: float,
    *,
    growth: float = 0.0,
    waves: int = 1,
) -> float | None:
    """Estimates how many seconds the rest of some work takes; None until the first unit is done.

    Conversations that run side by side end their rounds at about the same time, so that units come
    in bursts. The estimate is made at the last unit, from the mean pace up to there, and counts
    down until the next.

    Args:
        events: the times at which units were done, each with the number of units done by then. Both
            are counted from the start of the work.
        total: the number of units.
        now: the time since the start of the work.
        growth: how much more the last unit of a wave costs than its first, as a share.
        waves: how many times the cost of a unit starts again from its lowest, as it does with each
            group of conversations.
    """
    if not events or not events[-1][1]:
        return None
    last, done = events[-1]
    share = cost_share(done / total, growth, waves)
    estimate = last * (1 - share) / share
    return max(estimate - _COUNTDOWN * (now - last), _MIN_LEFT * estimate)


def cost_share(units: float, growth: float, waves: int = 1) -> float:
    """The share of the whole cost that the first units have, given their share of all units."""
    full_waves = min(int(units * waves), waves - 1)
    in_wave = units * waves - full_waves
    return (full_waves + (in_wave + growth * in_wave**2 / 2) / (1 + growth / 2)) / waves
