"""llama.cpp as a model of Holdfast's engine: slots for rows that come and go, and passes.

A slot is a stream of a context. Steered or traced rows live in contexts that materialise attention
weights; all others live in contexts with flash attention. Both kinds share the model's weights, and
are created when the first row needs one.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast.attention import EVERY_LENGTH, SAME_FACTORS
from holdfast.engine.rows import StreamState
from holdfast.engine.runner import Output
from holdfast_llama.native import NativeContext, NativeModel
from holdfast_llama.weights import SteeredRow


@dataclass(frozen=True, eq=False)
class SavedStream:
    """Keys and values of a row's first tokens, as the engine's `KeysValues`.

    Args:
        tokens: how many of the saved tokens are used.
        state: of all saved tokens, as llama.cpp serialises them.
        steers: the kind of context that they are for.
    """

    tokens: int
    state: np.ndarray
    steers: bool
    least: int = 0
    start: int = 0
    # llama.cpp chooses the rotary factors by the length of the context, not of the text
    rotary_lengths: range = EVERY_LENGTH

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.state.nbytes

    def first(self, count: int) -> SavedStream:
        """Keys and values of the first `count` tokens."""
        return replace(self, tokens=count)

    def copied(self) -> SavedStream:
        """Returns itself: it shares no memory with a context."""
        return self


@dataclass(eq=False)
class _NativeStream:
    """A stream of a context, and how many tokens it has."""

    context: NativeContext
    stream: int
    tokens: int = 0


@dataclass(eq=False)
class Pool:
    """Contexts of one model.

    Args:
        model: the weights.
        rows: streams per context.
        columns: maximum tokens per row.
        threads: number per pass.
        cache: the type of keys and values.
    """

    model: NativeModel
    rows: int
    columns: int
    threads: int
    cache: str
    _free: dict[bool, list[_NativeStream]] = field(default_factory=lambda: {True: [], False: []})

    def take(self, steers: bool) -> _NativeStream:
        """Takes the free stream with the lowest number, so that rows can share passes.

        Raises:
            ModelError: there is not enough memory for another context.
        """
        steers = steers or self.cache == "f32"  # flash attention would read it as float16
        free = self._free[steers]
        if not free:
            free += self._new_context(steers)
        native = min(free, key=lambda native: native.stream)
        free.remove(native)
        return native

    def give_back(self, natives: Sequence[_NativeStream | None]) -> None:
        """Empties streams and marks them as free."""
        for native in natives:
            if native is not None:
                native.context.crop(native.stream, 0)
                native.tokens = 0
                self._free[native.context.steers].append(native)

    def _new_context(self, steers: bool) -> list[_NativeStream]:
        context = NativeContext(
            self.model, self.rows, self.columns, self.threads, steers=steers, cache=self.cache
        )
        return [_NativeStream(context, stream) for stream in range(self.rows)]


class Slots:
    """Rows that come and go; when one is closed, the last one takes its number.

    Attributes:
        lengths: tokens that count as computed, per slot.
    """

    def __init__(self, pool: Pool):
        self._pool = pool
        self.lengths: list[int] = []
        self._saved: list[SavedStream | None] = []  # until the row's first pass
        self._natives: list[_NativeStream | None] = []  # None before it
        # not at process exit, when contexts may already be gone
        weakref.finalize(self, pool.give_back, self._natives).atexit = False

    def expect(self, rows: int, columns: int) -> None:
        """Does nothing: llama.cpp allocates its cells up front."""

    def open(self, computed: SavedStream | None, reusable_len: int | None = None) -> None:
        """Takes the next slot for a row, with its computed tokens if there are any."""
        self._saved.append(computed)
        self._natives.append(None)
        self.lengths.append(0 if computed is None else computed.tokens)

    def native(self, slot: int, *, steers: bool) -> _NativeStream:
        """The stream of a row, chosen at the row's first pass. A steered or traced row cannot
        continue from keys and values of a context with flash attention, so it forwards all of its
        tokens.
        """
        native, saved = self._natives[slot], self._saved[slot]
        if native is None:
            native = self._pool.take(steers or (saved is not None and saved.steers))
            self._natives[slot], self._saved[slot] = native, None
            self.lengths[slot] = 0
            if saved is not None and saved.steers == native.context.steers:
                native.context.restore(native.stream, saved.state)
                native.context.crop(native.stream, saved.tokens)
                native.tokens = self.lengths[slot] = saved.tokens
        return native

    def computed(self, slot: int, count: int | None = None, start: int = 0) -> SavedStream | None:
        """A copy of the keys and values of a row's first `count` tokens (None: all)."""
        native = self._natives[slot]
        if native is None:
            return self._saved[slot]
        length = self.lengths[slot] if count is None else min(count, self.lengths[slot])
        return SavedStream(length, native.context.save(native.stream), native.context.steers)

    def commit(self, slots: Sequence[int], ends: Sequence[int]) -> None:
        """Counts the tokens before `ends` as computed."""
        for slot, end in zip(slots, ends, strict=True):
            self.lengths[slot] = end

    def close(self, slot: int, *, wipe: bool = False) -> None:
        """Closes a row; the last one moves into its slot."""
        self._pool.give_back([self._natives[slot]])
        lists: list[list[Any]] = [self.lengths, self._saved, self._natives]
        for of_slots in lists:
            of_slots[slot] = of_slots[-1]
            of_slots.pop()

    def shrink(self) -> None:
        """Does nothing: contexts keep their memory."""

    @contextmanager
    def restored(self, slots: Sequence[int]) -> Iterator[None]:
        """Lets passes inside the block read the last token of the given rows again; afterwards
        these tokens count as not computed.
        """
        yield
        for slot in slots:
            self.lengths[slot] -= 1


class LlamaRunner:
    """A model in llama.cpp, as `holdfast.engine` uses a `Runner`.

    Args:
        pool: the model's contexts.
        name: of the model, for error messages.
    """

    batched = supports_chunked_prefill = True
    splits_prompts = False
    recurrent = sees_all = small = False  # saved streams are whole, so they are not combined
    rotary = SAME_FACTORS  # llama.cpp chooses its factors by the size of the context
    scored_layers: tuple[int, ...] = ()
    device = torch.device("cpu")

    def __init__(self, pool: Pool, name: str):
        self.pool, self.name = pool, name
        self.layers, self.heads = pool.model.layers, pool.model.heads
        self.context = pool.columns
        self._lock = threading.Lock()  # a context runs one pass at a time

    def batch_key(self, start: int, end: int, computed: int) -> Hashable:
        """Equal for rows that may share a pass: all may."""
        return None

    def slots(self) -> Slots:
        """A new, empty set of slots."""
        return Slots(self.pool)

    def forward_slots(
        self,
        slots: Slots,
        which: Sequence[int],
        states: Sequence[StreamState],
        span: Tensor,
        logits: int = 1,
    ) -> Output:
        """Forwards the uncomputed tokens of the given rows, at least the last token of each.

        A row with several tokens gets separate passes; rows with one token each share a pass if
        their streams are consecutive.

        Args:
            slots: where the rows live.
            which: the slots to forward, in order.
            states: the streams in these slots.
            span: unused, as each state has its own.
            logits: how many last tokens to return logits for; before a row's first they are 0.
        """
        traced = any(state.trace for state in states)
        shape = len(which), logits, self.pool.model.vocabulary
        wanted = np.zeros(shape, np.float32)
        mass = np.zeros((len(which), self.layers, self.heads), np.float32)
        uniform = np.zeros((len(which), self.layers), np.float32)
        with self._lock:
            rows = [self._row(slots, *pair) for pair in zip(which, states, strict=True)]
            for group in _groups(rows):
                tokens = [rows[number].tokens for number in group]
                steered = [rows[number].steered for number in group]
                passed = rows[group[0]].native.context.decode(steered, tokens, logits)
                wanted[group] = passed.logits
                if passed.mass.size:
                    mass[group], uniform[group] = passed.mass, passed.uniform
                for number in group:
                    rows[number].native.tokens = rows[number].steered.start + len(tokens[0])
        return Output(
            torch.from_numpy(wanted),
            torch.from_numpy(mass) if traced else None,
            None,
            torch.from_numpy(uniform) if traced else None,
        )

    def _row(self, slots: Slots, slot: int, state: StreamState) -> _Row:
        stream = state.stream
        traced = state.trace and any(stream.span)
        native = slots.native(slot, steers=bool(stream.compiled.attention) or traced)
        start = min(slots.lengths[slot], len(state) - 1)
        if native.tokens > start:
            native.context.crop(native.stream, start)
            native.tokens = start
        steered = SteeredRow(native.stream, start, stream.span, stream.compiled.attention, traced)
        return _Row(native, steered, state.tokens_from(start))


@dataclass(frozen=True, eq=False)
class _Row:
    """A row of a pass, and the tokens that it forwards."""

    native: _NativeStream
    steered: SteeredRow
    tokens: Sequence[int]


def _groups(rows: Sequence[_Row]) -> list[list[int]]:
    """The numbers of the rows that share a pass."""
    by_context: dict[NativeContext, list[int]] = {}
    for number, row in enumerate(rows):
        by_context.setdefault(row.native.context, []).append(number)
    groups: list[list[int]] = []
    for numbers in by_context.values():
        last: _Row | None = None
        for number in sorted(numbers, key=lambda number: rows[number].steered.stream):
            row = rows[number]
            if (
                last is not None
                and last.steered.stream + 1 == row.steered.stream
                and len(last.tokens) == len(row.tokens) == 1
            ):
                groups[-1].append(number)
            else:
                groups.append([number])
            last = row
    return groups
