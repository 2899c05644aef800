"""How many conversations fit into a time: a run that begins with a few, and goes on in groups."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from holdfast.common.progress import GROWTH

ROUNDS = (8, 6, 4, 3, 2)  # the lengths of conversations to choose from, best first
LONG = 4  # rounds; shorter conversations are for models that are too slow for these
FEWEST = 2  # conversations of the first group, however slow the model is
ENOUGH = 8  # conversations that should fit, or they become shorter
_SHARE = 0.5  # of a group's time, which a smaller one takes too, as its rounds take turns


@dataclass(frozen=True)
class Pilot:
    """A few replies that were timed, and about how long whole ones take together.

    Args:
        replies: how many were timed.
        seconds: how long they take.
        per_round: how many replies a round of a conversation has, turns and probes.
    """

    replies: int
    seconds: float
    per_round: float = 2

    def seconds_of(self, rounds: int) -> float:
        """About how long one conversation takes."""
        seconds = max(self.seconds, 1e-3)  # a coarse clock may have measured none
        return self.per_round * rounds * (1 + GROWTH / 2) * seconds / max(self.replies, 1)

    def rounds_within(self, seconds: float) -> int:
        """The longest conversations of which enough fit into a time; else the shortest.

        Below `LONG` rounds, the fewest conversations are enough.
        """
        for rounds in ROUNDS:
            count = ENOUGH if rounds > LONG else FEWEST
            if count * self.seconds_of(rounds) <= seconds:
                return rounds
        return ROUNDS[-1]

    def first_group(self, rounds: int, seconds: float, most: int) -> int:
        """How many conversations to begin with."""
        return max(FEWEST, min(most, int(seconds / self.seconds_of(rounds))))


@dataclass
class TimeBox:
    """Gives out the missing conversations of a run in groups, until the time is up.

    Args:
        seconds: the time.
        first: how many conversations to begin with; later groups follow from how long this took.
        clock: the seconds since some moment.
    """

    seconds: float
    first: int
    clock: Callable[[], float] = time.monotonic
    given: int = field(default=0, init=False)  # conversations that were given out

    def groups(self, missing: Sequence[int]) -> Iterator[Sequence[int]]:
        """The numbers of each group; the next is requested once the previous one is recorded."""
        began = self.clock()
        size = self.first
        while group := missing[self.given : self.given + size]:
            group_began = self.clock()
            self.given += len(group)
            yield group
            now = self.clock()
            took, left = now - group_began, self.seconds - (now - began)
            ratio = left / max(took, 1e-9)
            if ratio < 1:
                ratio = (ratio - _SHARE) / (1 - _SHARE)
            size = int(len(group) * ratio)
            if size < 1:
                return
