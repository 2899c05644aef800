"""The one admission loop: rows are submitted, share steps with others, and end independently.

A caller that wants tokens submits a row and steps the scheduler. Which rows join when depends only
on the rows and their replies, so that the same rows are computed by the same arithmetic.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from torch import Tensor

from holdfast.engine.batch import ActiveRow
from holdfast.engine.decoder import Decoder
from holdfast.engine.drawing import LogProbability
from holdfast.engine.memory import halved, ran_out_of_memory
from holdfast.engine.rows import Continuation, Row
from holdfast.engine.runner import Runner
from holdfast.engine.shared import SharedPrefixes, beginning
from holdfast.errors import HoldfastError, ModelError

# waiting rows join once there is more than one per this many running: a prefill costs ~1 step
_RUNNING_PER_JOINING = 4
_STEPS_BETWEEN_CLEARS = 256  # shared prefixes are dropped at most once in this many steps
_MAX_DOUBLINGS = 6  # the wait before a limit regrows doubles at most this many times
_TOKENS_PER_PASS = 128  # tokens that cost about as much as the fixed part of a forward pass
_PREFILL_TOKENS = 16_384  # tokens of one prefill, padding included, unless a single row has more
_PREFILL_COLUMNS = 65_536  # columns read in one prefill, unless at least a quarter is used


@dataclass(eq=False)
class Handle:
    """A submitted row.

    Iterating over it yields its tokens as they are drawn, stepping the scheduler as needed. The
    per-token lists, except `token_ids`, also have an entry for the token that ended the reply.
    """

    row: Row
    scheduler: Scheduler = field(repr=False)
    submitted: int = 0  # steps made before it was submitted
    token_ids: list[int] = field(default_factory=list)
    masses: list[Tensor] = field(default_factory=list)  # on the span, per token, [layer, head]
    uniform_masses: list[Tensor] = field(default_factory=list)  # for even attention, [layer]
    log_probabilities: list[LogProbability] = field(default_factory=list)
    cached: int = 0  # tokens of the first stream's prompt not forwarded; set when it runs
    continuation: Continuation | None = None
    error: Exception | None = None  # why it ended without a continuation
    cancelled: bool = False

    @property
    def done(self) -> bool:
        """Whether the row has ended or was cancelled."""
        return self.cancelled or self.error is not None or self.continuation is not None

    def result(self) -> Continuation:
        """The result of the row; raises its own error, or a `ModelError` if it has not ended."""
        if self.error is not None:
            raise self.error
        if self.continuation is None:
            state = "was cancelled" if self.cancelled else "has not ended"
            raise ModelError(f"The row {self.row.name!r} {state}, so there is no reply of it.")
        return self.continuation

    def __iter__(self) -> Iterator[int]:
        num_yielded = 0
        while not self.done or num_yielded < len(self.token_ids):
            if num_yielded == len(self.token_ids):
                self.scheduler.step()
            new_ids = self.token_ids[num_yielded:]
            num_yielded += len(new_ids)
            yield from new_ids
        if self.error is not None:
            raise self.error


@dataclass(frozen=True)
class Serving:
    """How a long-running server admits rows that arrive at any time."""

    shared: SharedPrefixes  # keys and values of rows, for later rows
    wait: int = 4  # most steps that a row, given room, waits for others to join with
    # steps after which a limit that was halved grows by a quarter; doubled each time it is halved
    # again
    regrow: int = 256


class Scheduler:
    """Runs the rows of one model, as many together as there is room for.

    Args:
        batch_size: the most streams forwarded together.
        serving: how to admit rows that arrive at any time; None: all are known from the start, so
            fewer passes matter more than how long a row waits.

    Attributes:
        limit: the most streams forwarded together, given the memory known to suffice.
        halvings: the limits it was lowered to as memory ran out, in order.
    """

    def __init__(
        self,
        runner: Runner,
        stop_ids: frozenset[int],
        batch_size: int,
        serving: Serving | None = None,
    ):
        self.runner, self.stop_ids, self.batch_size = runner, stop_ids, batch_size
        self.serving, self.shared = serving, serving.shared if serving is not None else None
        self.limit = batch_size if runner.batched else 1
        self.halvings: list[int] = []
        self._steps = self._calm = 0  # in total, and since the limit last changed
        self._clear_from = 0  # from this step on, shared prefixes are dropped first
        self._decoder = Decoder(runner, stop_ids, self.shared)
        self._urgent: deque[Handle] = deque()  # others wait for these
        self._waiting: deque[Handle] = deque()
        self._running: dict[ActiveRow, Handle] = {}  # in order of admission
        self._ended: list[Handle] = []  # ended before they ran

    def __len__(self) -> int:
        """Rows that have not ended."""
        return len(self._urgent) + len(self._waiting) + len(self._running) + len(self._ended)

    @property
    def running(self) -> int:
        """Rows that are being forwarded."""
        return len(self._running)

    def submit(self, row: Row) -> Handle:
        """Queues a row; its reply is limited to the room in the model's context."""
        handle = Handle(row, self, self._steps)
        context, most = self.runner.context, row.sampling.max_new_tokens
        room = context - row.longest if context else most
        if context and room < max(1, min(row.room, context // 4)):
            handle.continuation = Continuation((), "context")
            self._ended.append(handle)
            return handle
        if room < most:
            handle.row = replace(row, sampling=replace(row.sampling, max_new_tokens=room))
        (self._urgent if row.keep else self._waiting).append(handle)
        return handle

    def cancel(self, handle: Handle) -> None:
        """Cancels a row and frees its slot at once; one that has ended stays as it is."""
        if handle.done:
            return
        handle.cancelled = True
        for queue in (self._urgent, self._waiting):
            if handle in queue:
                queue.remove(handle)
        for running, other in list(self._running.items()):
            if other is handle:
                self._decoder.remove(running)
                del self._running[running]

    def step(self) -> list[Handle]:
        """Makes a pass, of joining rows or of all running ones; returns the rows that ended."""
        ended, self._ended = self._ended, []
        self._steps += 1
        joining = self._joining()
        try:
            done = self._pass(joining)
        except Exception as error:
            if not ran_out_of_memory(error):
                raise
            done = None
        if done is None:  # outside the handler, whose error keeps everything computed alive
            return ended + self._make_room()
        self._regrow()
        for running, handle in self._running.items():
            handle.token_ids += running.generated[len(handle.token_ids) :]
            handle.masses += running.masses[len(handle.masses) :]
            handle.uniform_masses += running.uniform_masses[len(handle.uniform_masses) :]
            handle.log_probabilities += running.log_probabilities[len(handle.log_probabilities) :]
        for running in done:
            handle = self._running.pop(running)
            handle.continuation, handle.error = running.continuation, running.error
            if handle.error is not None and handle.row.name:
                name_error(handle.error, handle.row.name)
            ended.append(handle)
        return ended

    def _joining(self) -> list[Handle]:
        """The rows to admit now: first those that others wait for, each kind in order."""
        running, joining, streams = len(self._decoder), list[Handle](), 0
        for handle in chain(self._urgent, self._waiting):
            streams += len(handle.row.streams)
            if running + streams > self.limit and (running or joining):
                break
            joining.append(handle)
        wait = math.inf if self.serving is None else self.serving.wait
        waited = max((self._steps - handle.submitted for handle in joining), default=0)
        if len(joining) <= running // _RUNNING_PER_JOINING and waited <= wait:
            return []
        for _ in joining:
            (self._urgent or self._waiting).popleft()
        later = self._followers(joining)
        self._waiting.extendleft(reversed(later))
        return [handle for handle in joining if handle not in later]

    def _followers(self, joining: Sequence[Handle]) -> list[Handle]:
        """Rows that begin like another one, and gain enough by waiting for what it computes."""
        if self.shared is None:
            return []
        alike: dict[Hashable, list[Handle]] = {}
        for handle in joining:
            if handle.row.shares:
                alike.setdefault(beginning(handle.row.streams[0]), []).append(handle)
        later = list[Handle]()
        for first, *others in alike.values():
            leader = first.row.streams[0]
            gains = [self.shared.gain(other.row.streams[0], leader) for other in others]
            if sum(gains) > _TOKENS_PER_PASS:
                later += [other for other, gain in zip(others, gains, strict=True) if gain]
        return later

    def _pass(self, joining: Sequence[Handle]) -> list[ActiveRow]:
        if not joining:
            return self._decoder.step() if self._running else []
        taken = {self._resumed(handle): handle for handle in joining}
        self._running |= taken
        for running, handle in taken.items():
            if self.shared is not None and handle.row.shares:
                running.known = [self.shared.find(stream) for stream in handle.row.streams]
            handle.cached = running.cached[0]
        ended = []
        for group in prefills(list(taken)):
            ended += self._decoder.admit(group)
        return ended

    def _resumed(self, handle: Handle) -> ActiveRow:
        """A row that begins, or continues after its tokens."""
        return ActiveRow(
            handle.row,
            list(handle.token_ids),
            list(handle.masses),
            list(handle.uniform_masses),
            list(handle.log_probabilities),
        )

    def _make_room(self) -> list[Handle]:
        """Starts over after memory ran out: without shared prefixes, or with half the rows."""
        handles = list(self._running.values())
        self._running.clear()
        self._decoder = Decoder(self.runner, self.stop_ids, self.shared)
        if self.shared is not None and self.shared.size and self._steps >= self._clear_from:
            self.shared.clear()
            self._clear_from = self._steps + _STEPS_BETWEEN_CLEARS
        else:
            try:
                self.limit = halved(len(handles), self.runner.name, self.batch_size)
            except ModelError as error:
                handles[0].error = error
                return handles
            self.halvings.append(self.limit)
            self._calm = 0
        for handle in reversed(handles):
            (self._urgent if handle.row.keep else self._waiting).appendleft(handle)
        return []

    def _regrow(self) -> None:
        """Lets a limit that was halved grow again, once memory has lasted for a while."""
        if self.serving is None or not self.halvings or self.limit >= self.batch_size:
            return
        self._calm += 1
        if self._calm >= self.serving.regrow << min(len(self.halvings) - 1, _MAX_DOUBLINGS):
            self.limit, self._calm = min(self.batch_size, self.limit + self.limit // 4 + 1), 0


def name_error(error: Exception, name: str) -> None:
    """Adds to an error the name of the row it is about."""
    if isinstance(error, HoldfastError):
        error.args = (f"{name}: {error.args[0]}", *error.args[1:])
    else:
        error.add_note(name)


def prefills(rows: Sequence[ActiveRow]) -> list[list[ActiveRow]]:
    """Groups joining rows of similar length into prefills, at the least cost.

    The rows of a group are padded to the longest, and each pass has a fixed cost.
    """
    ordered = sorted(rows, key=lambda running: running.num_new_tokens, reverse=True)
    # for the first n rows: their least cost, and where their last group starts
    least, start_of = [0.0], [0]
    for stop in range(1, len(ordered) + 1):
        costs, count, longest, tokens = [math.inf] * stop, 0, 0, 0
        for start in reversed(range(stop)):
            cached = ordered[start].cached
            count += len(cached)
            longest = max(longest, *cached)
            tokens += sum(cached)
            padded = count * ordered[start].num_new_tokens
            fits = padded <= _PREFILL_TOKENS and count * longest <= max(
                _PREFILL_COLUMNS, 4 * tokens
            )
            if fits or start == stop - 1:
                costs[start] = least[start] + _TOKENS_PER_PASS + padded
        least.append(min(costs))
        start_of.append(costs.index(least[-1]))
    groups, stop = [], len(ordered)
    while stop:
        groups.append(ordered[start_of[stop] : stop])
        stop = start_of[stop]
    return groups
