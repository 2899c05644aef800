"""The admission loop: rows are submitted, share steps with other rows, and end independently.

A caller submits a row and steps the scheduler until the row is done. When a row joins depends only
on the rows and their replies, so that the same rows are always computed by the same arithmetic.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from holdfast.errors import ModelError
from holdfast.generation.decoder import Decoder
from holdfast.generation.memory import halve_batch, ran_out_of_memory
from holdfast.generation.prefix_cache import PrefixCache, beginning_key
from holdfast.generation.row_errors import name_error
from holdfast.generation.row_runner import RowRunner
from holdfast.generation.rows import Continuation, Row, RowState

# waiting rows join once there is more than one for this many running rows: a prefill costs about as
# much as a step
_RUNNING_PER_JOINING = 4
_STEPS_BETWEEN_CLEARS = 256  # shared prefixes are dropped at most once in this many steps
_MAX_DOUBLINGS = 6  # the wait before a limit regrows doubles at most this many times
_TOKENS_PER_PASS = 128  # tokens that cost about as much as the fixed part of a forward pass
# tokens of one prefill, padding included; a single row may have more. On a CPU, the activations of
# more tokens would take a good part of a run's memory.
_MAX_PREFILL_TOKENS = 16_384
_MAX_PREFILL_TOKENS_ON_CPU = 1_024
# columns of computed keys that one prefill reads, padding included; more if at least a quarter of
# them is used
_MAX_PREFILL_COLUMNS = 65_536


@dataclass(frozen=True)
class Serving:
    """How a long-running server admits rows that arrive at any time."""

    prefix_cache: PrefixCache  # keeps the keys and values of rows for later rows
    # the most steps that a row waits for others to join together, although there is room for it
    max_wait: int = 4
    # steps until a halved limit grows by a quarter; the number doubles each time it is halved again
    regrow_steps: int = 256


class Scheduler:
    """Runs the rows of one model, as many at a time as there is room for.

    Args:
        runner: the model.
        stop_ids: the tokens that end a reply.
        batch_size: the most streams forwarded together.
        serving: how to admit rows that arrive at any time; None if all rows are known from the
            start, so that fewer passes matter more than short waits.

    Attributes:
        limit: the most streams forwarded together at present; lowered when memory runs out.
        halvings: the limits that it was lowered to, in order.
    """

    def __init__(
        self,
        runner: RowRunner,
        stop_ids: frozenset[int],
        batch_size: int,
        serving: Serving | None = None,
    ):
        self.runner = runner
        self.stop_ids = stop_ids
        self.batch_size = batch_size
        self.serving = serving
        self.prefix_cache = None if serving is None else serving.prefix_cache
        self.limit = batch_size if runner.batched else 1
        self.halvings: list[int] = []
        self._steps = self._steps_since_resize = 0  # in total, and since the limit last changed
        self._clear_from = 0  # from this step on, shared prefixes are dropped first
        self._decoder = Decoder(runner, stop_ids, self.prefix_cache)
        self._urgent: deque[RowState] = deque()  # rows whose results other rows need
        self._waiting: deque[RowState] = deque()
        self._running: list[RowState] = []  # in order of admission
        self._ended: list[RowState] = []  # ended without running; the next step returns them

    def __len__(self) -> int:
        """The number of rows that no step has returned yet."""
        return len(self._urgent) + len(self._waiting) + len(self._running) + len(self._ended)

    @property
    def running(self) -> int:
        """The number of rows that are being forwarded."""
        return len(self._running)

    def submit(self, row: Row) -> RowState:
        """Queues a row; its reply is limited to the room in the model's context.

        A row that the context leaves too little room for ends at once, with the reason "context".
        """
        context = self.runner.context
        max_new_tokens = row.sampling.max_new_tokens
        room = context - row.longest if context else max_new_tokens
        if context and room < max(1, min(row.room, context // 4)):
            ended = RowState(row, continuation=Continuation((), "context"))
            self._ended.append(ended)
            return ended
        if room < max_new_tokens:
            row = replace(row, sampling=replace(row.sampling, max_new_tokens=room))
        state = RowState(row, self._steps)
        (self._urgent if row.keep else self._waiting).append(state)
        return state

    def cancel(self, state: RowState) -> None:
        """Cancels a row and frees its slots at once; does nothing if the row has ended."""
        if state.done:
            return
        state.cancelled = True
        for queue in (self._urgent, self._waiting):
            if state in queue:
                queue.remove(state)
        if state in self._running:
            self._decoder.remove(state)
            self._running.remove(state)

    def step(self) -> list[RowState]:
        """Makes a pass, of joining rows or of all running rows; returns the rows that ended."""
        ended_before = self._ended
        self._ended = []
        self._steps += 1
        joining = self._choose_joining()
        try:
            ended = self._pass(joining)
        except Exception as error:
            if not ran_out_of_memory(error):
                raise
            ended = None
        if ended is None:  # not in the handler: its error would keep the computed tensors alive
            return ended_before + self._make_room()
        self._regrow()
        for state in self._running:
            state.settle()
        for state in ended:
            self._running.remove(state)
            if state.error is not None and state.row.name:
                name_error(state.error, state.row.name)
        return ended_before + ended

    def _choose_joining(self) -> list[RowState]:
        """Takes the rows to admit now from the queues: urgent rows first, then waiting ones."""
        running = len(self._decoder)
        joining = list[RowState]()
        streams = 0
        for state in chain(self._urgent, self._waiting):
            streams += len(state.row.streams)
            if running + streams > self.limit and (running or joining):
                break
            joining.append(state)
        max_wait = math.inf if self.serving is None else self.serving.max_wait
        waited = max((self._steps - state.submitted for state in joining), default=0)
        if len(joining) <= running // _RUNNING_PER_JOINING and waited <= max_wait:
            return []
        for _ in joining:
            (self._urgent or self._waiting).popleft()
        followers = self._find_followers(joining)
        self._waiting.extendleft(reversed(followers))
        return [state for state in joining if state not in followers]

    def _find_followers(self, joining: Sequence[RowState]) -> list[RowState]:
        """Finds rows that should wait for another joining row, to reuse its keys and values.

        Rows with the same beginning follow the first of them if together they save more tokens than
        a separate pass costs.
        """
        if self.prefix_cache is None:
            return []
        by_beginning: dict[Hashable, list[RowState]] = {}
        for state in joining:
            if state.row.shares:
                by_beginning.setdefault(beginning_key(state.row.streams[0]), []).append(state)
        followers = list[RowState]()
        for first, *others in by_beginning.values():
            leader = first.row.streams[0]
            gains = [self.prefix_cache.gain(other.row.streams[0], leader) for other in others]
            if sum(gains) > _TOKENS_PER_PASS:
                followers += [other for other, gain in zip(others, gains, strict=True) if gain]
        return followers

    def _pass(self, joining: Sequence[RowState]) -> list[RowState]:
        """Prefills joining rows, or forwards a step if there are none; returns the ended rows."""
        if not joining:
            return self._decoder.step() if self._running else []
        self._running += joining
        for state in joining:
            if self.prefix_cache is not None and state.row.shares:
                state.start([self.prefix_cache.find(stream) for stream in state.row.streams])
            else:
                cached = [stream.cached_kv for stream in state.row.streams]
                state.start([() if piece is None else (piece,) for piece in cached])
        ended = []
        on_cpu = self.runner.device.type == "cpu"
        max_tokens = _MAX_PREFILL_TOKENS_ON_CPU if on_cpu else _MAX_PREFILL_TOKENS
        for group in group_into_prefills(joining, max_tokens):
            ended += self._decoder.admit(group)
        return ended

    def _make_room(self) -> list[RowState]:
        """Starts all rows again after memory ran out, without shared prefixes or with half as many.

        Returns the rows that ended: all of them if memory ran out with a single row.
        """
        rows = self._running
        self._running = []
        for state in rows:
            state.rewind()
        self._decoder = Decoder(self.runner, self.stop_ids, self.prefix_cache)
        if (
            self.prefix_cache is not None
            and self.prefix_cache.size
            and self._steps >= self._clear_from
        ):
            self.prefix_cache.clear()
            self._clear_from = self._steps + _STEPS_BETWEEN_CLEARS
        else:
            try:
                self.limit = halve_batch(len(rows), self.runner.name, self.batch_size)
            except ModelError as error:
                rows[0].error = error
                return rows
            self.halvings.append(self.limit)
            self._steps_since_resize = 0
        for state in reversed(rows):
            (self._urgent if state.row.keep else self._waiting).appendleft(state)
        return []

    def _regrow(self) -> None:
        """Raises a halved limit again after enough steps without running out of memory."""
        if self.serving is None or not self.halvings or self.limit >= self.batch_size:
            return
        self._steps_since_resize += 1
        doublings = min(len(self.halvings) - 1, _MAX_DOUBLINGS)
        if self._steps_since_resize >= self.serving.regrow_steps << doublings:
            self.limit = min(self.batch_size, self.limit + self.limit // 4 + 1)
            self._steps_since_resize = 0


def group_into_prefills(
    rows: Sequence[RowState], max_tokens: int = _MAX_PREFILL_TOKENS
) -> list[list[RowState]]:
    """Groups joining rows of similar lengths into prefills, at the lowest total cost.

    The rows of a group are padded to the longest, and each pass has a fixed cost. With rows sorted
    by length, groups are consecutive, so dynamic programming finds the best split.

    Args:
        max_tokens: of one prefill, padding included; a single row may have more.
    """
    ordered = sorted(rows, key=lambda state: state.num_new_tokens, reverse=True)
    # for the first n rows: their lowest cost, and where their last group starts
    lowest_costs = [0.0]
    start_of = [0]
    for stop in range(1, len(ordered) + 1):
        costs = [math.inf] * stop
        count = 0
        longest = 0
        tokens = 0
        for start in reversed(range(stop)):
            reused_lengths = ordered[start].reused_lengths
            count += len(reused_lengths)
            longest = max(longest, *reused_lengths)
            tokens += sum(reused_lengths)
            padded = count * ordered[start].num_new_tokens
            max_columns = max(_MAX_PREFILL_COLUMNS, 4 * tokens)
            fits = padded <= max_tokens and count * longest <= max_columns
            if fits or start == stop - 1:
                costs[start] = lowest_costs[start] + _TOKENS_PER_PASS + padded
        lowest_costs.append(min(costs))
        start_of.append(costs.index(lowest_costs[-1]))
    groups = []
    stop = len(ordered)
    while stop:
        groups.append(ordered[start_of[stop] : stop])
        stop = start_of[stop]
    return groups
