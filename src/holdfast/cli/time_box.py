"""How many conversations fit into a time: a run that begins with a few, and goes on in groups.

The model's speed is an estimate, and a busy machine becomes slower while the run goes on. So a
group is made smaller if it is late after a round, or if a round is overdue, and what has not ended
well after the time is given up.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from holdfast.cli.progress import Bar
from holdfast.drift.progress import GROWTH, cost_share
from holdfast.generation.sampling import MAX_NEW_TOKENS_ALLOWED

# A model that is too slow for these gets shorter conversations, or fewer.
SUFFICIENT_ROUNDS = 4
SUFFICIENT_CONVERSATIONS = 8
MIN_CONVERSATIONS = 2
_SHARE = 0.5  # the part of a group's time that half the group takes too, as its rounds take turns
_LATE = 1.2  # a group is halved if it seems to need this many times the time that is left,
_OVERDUE = 2.5  # or if one of its rounds takes this many times as long as expected
_OVERTIME = 0.5  # conversations may run over by this share of the time, then they are given up


@dataclass(frozen=True)
class Plan:
    """The conversations of a run: how long they are, and how many should fit into the time."""

    rounds: int
    max_new_tokens: int
    conversations: int


# What to choose from, best first: the first that fits is taken. Two conversations say little, so
# replies are shortened before conversations become few; but one that is cut early shows few rules.
_WHOLE = MAX_NEW_TOKENS_ALLOWED  # as long as the run allows
_PLANS = (
    Plan(8, _WHOLE, SUFFICIENT_CONVERSATIONS),
    Plan(6, _WHOLE, SUFFICIENT_CONVERSATIONS),
    Plan(4, _WHOLE, SUFFICIENT_CONVERSATIONS),
    Plan(4, 200, SUFFICIENT_CONVERSATIONS),
    Plan(4, 200, 4),
    Plan(4, 200, MIN_CONVERSATIONS),
    Plan(3, 200, MIN_CONVERSATIONS),
    Plan(2, 200, MIN_CONVERSATIONS),
    Plan(2, 200, 1),
    Plan(2, 100, 1),
    Plan(2, 60, 1),
)


@dataclass(frozen=True)
class Pilot:
    """A few replies that were timed side by side, and about how long others take.

    Args:
        replies: how many ran side by side.
        start: the seconds until the first token of all of them.
        per_token: the seconds for each further token of all of them.
        limit: the tokens at which they were cut.
        cut: the share of them that were cut.
        per_round: how many replies a round of a conversation has, turns and probes.
    """

    replies: int
    start: float
    per_token: float
    limit: int
    cut: float = 0.0
    per_round: float = 2

    @property
    def knows_pace(self) -> bool:
        """Whether more was timed than the first token, most of whose time is that of the start."""
        return self.limit > 1

    def tokens_of(self, max_new_tokens: int) -> float:
        """About how long a reply is: at least half of the longest possible, as a conversation that
        repeats itself writes to the limit.
        """
        if_ended = min(self.limit, max_new_tokens)
        if_cut = min(max(self.limit, max_new_tokens / 2), max_new_tokens)
        expected = (1 - self.cut) * if_ended + self.cut * if_cut
        return max(expected, max_new_tokens / 2)

    def seconds_of(self, rounds: int, max_new_tokens: int) -> float:
        """About how long one conversation takes, beside others."""
        together = self.start + self.per_token * self.tokens_of(max_new_tokens)
        seconds = max(together, 1e-3) / self.replies  # a coarse clock may have measured none
        return self.per_round * rounds * (1 + GROWTH / 2) * seconds

    def plan(self, seconds: float, max_new_tokens: int, *, may_shorten: bool = True) -> Plan:
        """The longest conversations of which enough fit into a time; else the shortest.

        Args:
            max_new_tokens: of a reply at full length.
            may_shorten: whether a reply may be shorter than that.
        """
        plans = []
        for plan in _PLANS:
            tokens = min(plan.max_new_tokens, max_new_tokens) if may_shorten else max_new_tokens
            plans.append(replace(plan, max_new_tokens=tokens))
        for plan in plans:
            if plan.conversations * self.seconds_of(plan.rounds, plan.max_new_tokens) <= seconds:
                return plan
        return plans[-1]

    def first_group(self, plan: Plan, seconds: float, most: int) -> int:
        """How many conversations to begin with: as many as should fit."""
        fit = int(seconds / self.seconds_of(plan.rounds, plan.max_new_tokens))
        return max(min(MIN_CONVERSATIONS, plan.conversations), min(most, fit))


@dataclass
class Group:
    """Conversations that run side by side, and the progress of their replies.

    Args:
        numbers: of the conversations, in order.
        rounds: of each.
        bar: shows the progress; its total is the replies of all.
        ends: when they should have ended.
        stops: when those that have not are given up.
        clock: the seconds since some moment.
    """

    numbers: Sequence[int]
    rounds: int
    bar: Bar
    ends: float
    stops: float
    clock: Callable[[], float] = time.monotonic
    size: int = field(init=False)  # as many go on, the first ones
    _replies: float = field(default=0.0, init=False)  # of these
    _round: int = field(default=0, init=False)  # the last that all of them have finished
    _round_ended: float = field(default=0.0, init=False)
    _overdue: float = field(default=0.0, init=False)  # when the next round should have ended

    def __post_init__(self) -> None:
        self.size = len(self.numbers)
        self._replies_each = self.bar.total / len(self.numbers)
        self._note_round(0, self.clock())

    def __call__(self, done: int, tokens: int = 0) -> None:
        """Shows replies, and makes the group smaller if it is late after a round."""
        self.bar(done, tokens)
        self._replies += done
        finished = int(self.rounds * self._replies / (self.size * self._replies_each))
        if self._round < finished < self.rounds:
            self._begin_round_after(finished)

    def should_stop(self, number: int) -> bool:
        """Whether a conversation that has not ended is given up; asked at least every second."""
        if (now := self.clock()) > self._overdue and self.size > 1:
            self._keep(self.size // 2)
            self._overdue = now + (now - self._round_ended)
        return number > self.numbers[self.size - 1] or self.clock() > self.stops

    def _begin_round_after(self, finished: int) -> None:
        now = self.clock()
        before = self._share(self._round)
        share = self._share(finished)
        rest = (now - self._round_ended) * (1 - share) / (share - before)
        left = max(self.ends - now, 0.0)
        self._note_round(finished, now)
        if rest > _LATE * left:
            self._keep(max(1, int(self.size * left / rest)))

    def _note_round(self, finished: int, now: float) -> None:
        """Notes the last round that all have finished, and when the next one is overdue."""
        self._round = finished
        self._round_ended = now
        before = self._share(finished)
        after = self._share(finished + 1)
        expected = max(self.ends - now, 0.0) * (after - before) / (1 - before)
        self._overdue = now + _OVERDUE * expected

    def _share(self, rounds: int) -> float:
        """The share of the time that the first rounds take."""
        return cost_share(rounds / self.rounds, GROWTH)

    def _keep(self, size: int) -> None:
        """Gives up all conversations but the first ones."""
        if size == self.size:
            return
        self.bar.note(
            f"the model is slower than it was at first: continuing with {size} of {self.size}"
            " conversations, to finish in time."
        )
        replies = self._replies * size / self.size
        undone = (self.size - size) * self._replies_each - (self._replies - replies)
        self.bar.leave_out(round(undone))
        self.size = size
        self._replies = replies


class TimeBox:
    """Gives out the missing conversations of a run in groups, until the time is up.

    Args:
        seconds: the time, from now on.
        first: how many conversations to begin with; later groups follow from how long this took.
        expected: how long these should take, which may be longer.
        clock: the seconds since some moment.
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
        self.ends = clock() + max(seconds, expected)
        self.stops = self.ends + _OVERTIME * seconds  # when conversations are given up

    def groups(self, missing: Sequence[int]) -> Iterator[Sequence[int]]:
        """The numbers of each group; the next is requested once the previous one is recorded."""
        start = 0
        size = self.first
        while numbers := missing[start : start + size]:
            began = self.clock()
            start += len(numbers)
            yield numbers
            now = self.clock()
            times = (self.ends - now) / max(now - began, 1e-9)  # that the group would fit again
            if times < 1:
                times = (times - _SHARE) / (1 - _SHARE)
            size = int(len(numbers) * times)
            if size < 1:
                return
