"""Fits conversations into a given time: a run begins with a few, and continues in groups.

The model's speed is only an estimate, and a busy machine may slow down during the run. So a group
is made smaller if it is late after a round, or if a round is overdue, and conversations that have
not ended well after the time is up are given up.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from holdfast.cli.progress import Bar
from holdfast.drift.progress import GROWTH, cost_share
from holdfast.generation.sampling import MAX_NEW_TOKENS_ALLOWED

# conversations that are long and many enough; a model that is too slow has shorter or fewer ones
SUFFICIENT_ROUNDS = 4
SUFFICIENT_CONVERSATIONS = 8
MIN_CONVERSATIONS = 2
# the share of a group's time that does not depend on its size, as rounds wait for each other
_FIXED_SHARE = 0.5
_LATE = 1.2  # a group is made smaller if it seems to need this many times the time that is left
_OVERDUE = 2.5  # a group is halved if a round takes this many times as long as expected
_OVERTIME = 0.5  # conversations are given up if they exceed the time by this share of it


@dataclass(frozen=True)
class RunPlan:
    """The conversations of a run: their length, and how many of them should fit into the time."""

    rounds: int
    max_new_tokens: int
    conversations: int


_WHOLE = MAX_NEW_TOKENS_ALLOWED  # replies as long as the run allows
# The plans to choose from, best first; the first that fits is taken. Replies are shortened before
# there are fewer conversations, as a few conversations say little, but not much at first, as a
# reply that is cut early shows few rules.
_PLANS = (
    RunPlan(8, _WHOLE, SUFFICIENT_CONVERSATIONS),
    RunPlan(6, _WHOLE, SUFFICIENT_CONVERSATIONS),
    RunPlan(4, _WHOLE, SUFFICIENT_CONVERSATIONS),
    RunPlan(4, 200, SUFFICIENT_CONVERSATIONS),
    RunPlan(4, 200, 4),
    RunPlan(4, 200, MIN_CONVERSATIONS),
    RunPlan(3, 200, MIN_CONVERSATIONS),
    RunPlan(2, 200, MIN_CONVERSATIONS),
    RunPlan(2, 200, 1),
    RunPlan(2, 100, 1),
    RunPlan(2, 60, 1),
)


@dataclass(frozen=True)
class Pilot:
    """A few replies that were timed side by side, to estimate how long others take.

    Args:
        replies: how many replies ran side by side.
        start: the seconds until all of them had their first token.
        per_token: the seconds in which all of them got one more token.
        limit: the number of tokens at which they were cut.
        cut: the share of them that were cut.
        per_round: how many replies a round of a conversation has, counting turns and probes.
    """

    replies: int
    start: float
    per_token: float
    limit: int
    cut: float = 0.0
    per_round: float = 2

    @property
    def knows_pace(self) -> bool:
        """Whether more than the first token was timed, which takes far longer than the others."""
        return self.limit > 1

    def tokens_of(self, max_new_tokens: int) -> float:
        """About how many tokens a reply has.

        At least half of the limit, which replies reach once a conversation repeats itself.
        """
        if_ended = min(self.limit, max_new_tokens)
        if_cut = min(max(self.limit, max_new_tokens / 2), max_new_tokens)
        expected = (1 - self.cut) * if_ended + self.cut * if_cut
        return max(expected, max_new_tokens / 2)

    def seconds_of(self, rounds: int, max_new_tokens: int) -> float:
        """About how many seconds one conversation takes, if others run beside it."""
        together = self.start + self.per_token * self.tokens_of(max_new_tokens)
        seconds = max(together, 1e-3) / self.replies  # a coarse clock may have measured none
        return self.per_round * rounds * (1 + GROWTH / 2) * seconds

    def plan(self, seconds: float, max_new_tokens: int, *, may_shorten: bool = True) -> RunPlan:
        """Chooses the best plan whose conversations fit into the time; if none fits, the shortest.

        Args:
            max_new_tokens: the most tokens of a reply.
            may_shorten: whether a plan may allow fewer tokens.
        """
        plans: list[RunPlan] = []
        for plan in _PLANS:
            tokens = min(plan.max_new_tokens, max_new_tokens) if may_shorten else max_new_tokens
            plans.append(replace(plan, max_new_tokens=tokens))
        for plan in plans:
            if plan.conversations * self.seconds_of(plan.rounds, plan.max_new_tokens) <= seconds:
                return plan
        return plans[-1]

    def first_group(self, plan: RunPlan, seconds: float, left: int) -> int:
        """How many of the conversations left to begin with: as many as should fit into the time."""
        fit = int(seconds / self.seconds_of(plan.rounds, plan.max_new_tokens))
        return max(min(MIN_CONVERSATIONS, plan.conversations), min(left, fit))


@dataclass
class Group:
    """Conversations that run side by side, and the progress of their replies.

    Args:
        numbers: the numbers of the conversations, in order.
        rounds: how many rounds each has.
        bar: shows the progress; its total is the replies of all conversations.
        ends: when the conversations should have ended.
        stops: when conversations that have not ended are given up.
        clock: returns the time in seconds, on the same scale as `ends` and `stops`.
    """

    numbers: Sequence[int]
    rounds: int
    bar: Bar
    ends: float
    stops: float
    clock: Callable[[], float] = time.monotonic
    size: int = field(init=False)  # this many conversations continue, from the first on
    _replies: float = field(default=0.0, init=False)  # of these conversations, so far
    _round: int = field(default=0, init=False)  # the last round that all have finished
    _round_ended: float = field(default=0.0, init=False)  # when they had finished it
    _overdue: float = field(default=0.0, init=False)  # when the next round is overdue

    def __post_init__(self) -> None:
        self.size = len(self.numbers)
        self._replies_each = self.bar.total / len(self.numbers)
        self._note_round(0, self.clock())

    def __call__(self, done: int, tokens: int = 0) -> None:
        """Shows that replies are done, and makes the group smaller if it is late after a round."""
        self.bar(done, tokens)
        self._replies += done
        finished = int(self.rounds * self._replies / (self.size * self._replies_each))
        if self._round < finished < self.rounds:
            self._end_round(finished)

    def should_stop(self, number: int) -> bool:
        """Whether a conversation that has not ended is given up; called at least every second."""
        now = self.clock()
        if now > self._overdue and self.size > 1:
            self._keep(self.size // 2)
            self._overdue = now + (now - self._round_ended)
        return number > self.numbers[self.size - 1] or now > self.stops

    def _end_round(self, finished: int) -> None:
        """Makes the group smaller if it will be late, at the pace of the round that has ended."""
        now = self.clock()
        before = self._share(self._round)
        share = self._share(finished)
        needed = (now - self._round_ended) * (1 - share) / (share - before)
        left = max(self.ends - now, 0.0)
        self._note_round(finished, now)
        if needed > _LATE * left:
            self._keep(max(1, int(self.size * left / needed)))

    def _note_round(self, finished: int, now: float) -> None:
        """Notes the last round that all have finished, and when the next round is overdue."""
        self._round = finished
        self._round_ended = now
        before = self._share(finished)
        after = self._share(finished + 1)
        expected = max(self.ends - now, 0.0) * (after - before) / (1 - before)
        self._overdue = now + _OVERDUE * expected

    def _share(self, rounds: int) -> float:
        """The share of the whole time that this many first rounds take."""
        return cost_share(rounds / self.rounds, GROWTH)

    def _keep(self, size: int) -> None:
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
        self._time_is_up = clock() + seconds
        self.ends = clock() + max(seconds, expected)  # when the first group should have ended
        self.stops = self.ends + _OVERTIME * seconds  # when conversations are given up

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
            times = (self._time_is_up - now) / max(now - began, 1e-9)
            if times < 1:
                times = (times - _FIXED_SHARE) / (1 - _FIXED_SHARE)
            size = int(len(numbers) * times)
            if size < 1:
                return
