"""Runs conversations in groups, so that they fit into a given time.

How long they take is only an estimate, and a busy machine may slow down during the run. So a group
is made smaller if it is late after a round, or if a round is overdue, and conversations that have
not ended when the time is up are given up, unless none has ended at all.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from holdfast.cli.shared.progress_bar import Bar
from holdfast.drift.progress import GROWTH, cost_share
from holdfast.plurals import duration

OVERTIME = 0.15  # conversations are given up if they exceed the time by this share of it
_GRACE = 0.5  # the share by which they may exceed it further while none has ended
# the share of a group's time that does not depend on its size, as rounds wait for each other
_FIXED_SHARE = 0.5
_LATE = 1.2  # a group is made smaller if it seems to need this many times the time that is left
_OVERDUE = 2.5  # a group is halved if a round takes this many times as long as expected


@dataclass(frozen=True)
class Deadlines:
    """The times of a group of conversations, on the scale of its clock.

    Attributes:
        end: when the conversations should have ended.
        give_up: when those that have not ended are given up.
        give_up_all: when they are given up although no conversation of the run has ended.
    """

    end: float
    give_up: float
    give_up_all: float


@dataclass
class ConversationGroup:
    """Conversations that run side by side, and the progress of their replies.

    Args:
        numbers: the numbers of the conversations, in order.
        rounds: how many rounds each has.
        bar: shows the progress; its total is the replies of all conversations.
        deadlines: when they should end, and when they are given up.
        has_results: whether a conversation of the run has ended.
        clock: returns the time in seconds.
    """

    numbers: Sequence[int]
    rounds: int
    bar: Bar
    deadlines: Deadlines
    has_results: Callable[[], bool] = lambda: True
    clock: Callable[[], float] = time.monotonic
    size: int = field(init=False)  # this many conversations continue, from the first on
    _replies_each: float = field(init=False)  # of a conversation, in all
    _replies: float = field(default=0.0, init=False)  # of the conversations that continue, so far
    _finished_rounds: int = field(default=0, init=False)  # by all of them
    _round_ended: float = field(default=0.0, init=False)  # when they had finished these
    _overdue_at: float = field(default=0.0, init=False)  # when the next round is overdue
    _waits_for_first: bool = field(default=False, init=False)  # result, after the time is up

    def __post_init__(self) -> None:
        self.size = len(self.numbers)
        self._replies_each = self.bar.total / len(self.numbers)
        self._note_round(0, self.clock())

    def __call__(self, done: int, tokens: int = 0) -> None:
        """Shows that replies are done, and makes the group smaller if it is late after a round."""
        self.bar(done, tokens)
        self._replies += done
        finished = int(self.rounds * self._replies / (self.size * self._replies_each))
        if self._finished_rounds < finished < self.rounds:
            self._end_round(finished)

    def should_stop(self, number: int) -> bool:
        """Whether a conversation that has not ended is given up; called at least every second."""
        now = self.clock()
        if now > self._overdue_at and self.size > 1:
            self._shrink_to(self.size // 2)
            self._overdue_at = now + (now - self._round_ended)
        return number > self.numbers[self.size - 1] or self._is_over(now)

    def _is_over(self, now: float) -> bool:
        """Whether the time is up, and there is a result or it is too late to wait for one."""
        if now <= self.deadlines.give_up:
            return False
        if now > self.deadlines.give_up_all or self.has_results():
            return True
        if not self._waits_for_first:
            self._waits_for_first = True
            self.bar.note(
                "the time is up, but no conversation has ended: waiting for the first one, for at"
                f" most {duration(self.deadlines.give_up_all - now)}."
            )
        return False

    def _end_round(self, finished: int) -> None:
        """Makes the group smaller if it will be late, at the pace of the round that has ended."""
        now = self.clock()
        before = self._share_of_time(self._finished_rounds)
        share = self._share_of_time(finished)
        needed = (now - self._round_ended) * (1 - share) / (share - before)
        left = max(self.deadlines.end - now, 0.0)
        self._note_round(finished, now)
        if needed > _LATE * left:
            self._shrink_to(max(1, int(self.size * left / needed)))

    def _note_round(self, finished: int, now: float) -> None:
        """Notes the last round that all have finished, and when the next round is overdue."""
        self._finished_rounds = finished
        self._round_ended = now
        before = self._share_of_time(finished)
        after = self._share_of_time(finished + 1)
        expected = max(self.deadlines.end - now, 0.0) * (after - before) / (1 - before)
        self._overdue_at = now + _OVERDUE * expected

    def _share_of_time(self, rounds: int) -> float:
        """The share of the whole time that this many first rounds take."""
        return cost_share(rounds / self.rounds, GROWTH)

    def _shrink_to(self, size: int) -> None:
        """Gives up all conversations but the first `size`."""
        if size == self.size:
            return
        self.bar.note(
            f"the model has become slower: continuing with {size} of {self.size} conversations, to"
            " finish in time."
        )
        replies = self._replies * size / self.size
        undone = (self.size - size) * self._replies_each - (self._replies - replies)
        self.bar.leave_out(round(undone))
        self.size = size
        self._replies = replies


class TimeBox:
    """Divides the missing conversations of a run into groups, until the time is up.

    Args:
        seconds: the time, from now on.
        first: the size of the first group; how long it takes determines the size of the next.
        expected: how long the first group should take, which may be longer than `seconds`; no
            group follows it then.
        clock: returns the time in seconds.
    """

    def __init__(
        self,
        seconds: float,
        first: int,
        expected: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.first = first
        self.clock = clock
        self._end = clock() + seconds
        first_end = clock() + max(seconds, expected)
        give_up = first_end + OVERTIME * seconds
        self.deadlines = Deadlines(first_end, give_up, give_up + _GRACE * seconds)

    def groups(self, missing: Sequence[int]) -> Iterator[Sequence[int]]:
        """Yields the numbers of each group; request the next once the previous one is recorded."""
        start = 0
        size = self.first
        while numbers := missing[start : start + size]:
            began = self.clock()
            start += len(numbers)
            yield numbers
            now = self.clock()
            # how many times the last group would fit into the time that is left
            times = (self._end - now) / max(now - began, 1e-9)
            if times < 1:
                times = (times - _FIXED_SHARE) / (1 - _FIXED_SHARE)
            size = int(len(numbers) * times)
            if size < 1:
                return
