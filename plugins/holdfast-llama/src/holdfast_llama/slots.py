"""llama.cpp as a model of Holdfast's engine: slots for rows that come and go, and passes.

A slot is a stream of a context. On the CPU all rows live in a context that materialises attention
weights, where they share passes and continue from each other's keys and values. On a GPU rows that
are neither steered nor traced live in a second context, with flash attention. A context is made
when a row needs one, and replaced by a longer one when a row outgrows it.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from holdfast.attention import EVERY_LENGTH, SAME_FACTORS
from holdfast.generation.batch import StreamGroup
from holdfast.generation.rows import StreamState
from holdfast.generation.runner import Output
from holdfast_llama.native import CHUNK, NativeContext, NativeModel
from holdfast_llama.weights import SteeredRow

_MIN_COLUMNS = 512  # of a context, unless rows cannot be as long
_PADDING_PER_PASS = 16  # tokens that cost about as much as the fixed part of a pass


@dataclass(frozen=True, eq=False)
class SavedStream:
    """Keys and values of a row's first tokens.

    Args:
        tokens: how many of the saved tokens are used.
        state: of all saved tokens, as llama.cpp serialises them.
        steers: the kind of context that they are for.
        most: how many tokens were saved.
    """

    tokens: int
    state: np.ndarray
    steers: bool
    most: int
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

    streams: _Streams
    stream: int
    tokens: int = 0

    @property
    def context(self) -> NativeContext:
        """The context that has the stream at present."""
        return self.streams.context


@dataclass(eq=False)
class _Streams:
    """A context, and its streams in use, which are the first ones: llama.cpp forwards rows in one
    pass only if their streams are consecutive.
    """

    context: NativeContext
    used: list[_NativeStream] = field(default_factory=list)  # in order

    def add(self) -> _NativeStream:
        """The stream after those in use."""
        self.used.append(_NativeStream(self, len(self.used)))
        return self.used[-1]

    def drop(self, native: _NativeStream) -> None:
        """Frees a stream; the last one takes its number."""
        last = self.used.pop()
        if last is not native:
            self.context.restore(native.stream, self.context.save(last.stream))
            self.used[native.stream], last.stream, native.stream = last, native.stream, last.stream
        self.context.crop(native.stream, 0)

    def move_to(self, context: NativeContext) -> None:
        """Replaces the context by one with longer streams."""
        for native in self.used:
            context.restore(native.stream, self.context.save(native.stream))
        self.context = context


@dataclass(eq=False)
class Pool:
    """Contexts of one model.

    Args:
        model: the weights.
        rows: streams per context; saved ones fit only into contexts with as many.
        columns: maximum tokens per row. A context begins with the room that its rows need.
        threads: number per pass.
        cache: the type of keys and values.
    """

    model: NativeModel
    rows: int
    columns: int
    threads: int
    cache: str
    _contexts: dict[bool, list[_Streams]] = field(default_factory=lambda: {True: [], False: []})
    _returned: deque[_NativeStream] = field(default_factory=deque)

    def take(self, steers: bool, columns: int) -> _NativeStream:
        """Takes a free stream with room for `columns` tokens.

        Raises:
            ModelError: there is not enough memory for another context.
        """
        # on the CPU flash attention is no faster; of a float32 cache it would read float16
        steers = steers or not self.model.gpu_layers or self.cache == "f32"
        contexts = self._contexts[steers]
        streams = next((entry for entry in contexts if len(entry.used) < self.rows), None)
        if streams is not None and not streams.used and streams.context.columns < columns:
            contexts.remove(streams)
            streams = None  # frees its memory before the longer one is made
        if streams is None:
            streams = _Streams(self._new_context(steers, columns))
            contexts.append(streams)
        self.widen(streams, columns)
        return streams.add()

    def widen(self, streams: _Streams, columns: int) -> None:
        """Gives streams room for `columns` tokens."""
        if streams.context.columns < columns:
            streams.move_to(self._new_context(streams.context.steers, columns))

    def give_back(self, natives: Sequence[_NativeStream | None]) -> None:
        """Marks streams as free; may be called from any thread."""
        self._returned.extend(native for native in natives if native is not None)

    def settle(self) -> None:
        """Empties the streams that were given back."""
        while self._returned:
            native = self._returned.popleft()
            native.streams.drop(native)

    def _new_context(self, steers: bool, columns: int) -> NativeContext:
        """A context for rows of at least so many tokens: a power of two, as each growth copies."""
        columns = min(max(_MIN_COLUMNS, 1 << (columns - 1).bit_length()), self.columns)
        return NativeContext(
            self.model, self.rows, columns, self.threads, steers=steers, cache=self.cache
        )


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
        """Does nothing: a context grows when a row needs it."""

    def open(self, computed: SavedStream | None, reusable_len: int | None = None) -> None:
        """Takes the next slot for a row, with its computed tokens if there are any."""
        self._saved.append(computed)
        self._natives.append(None)
        self.lengths.append(0 if computed is None else computed.tokens)

    def add(self, computed: SavedStream) -> None:
        """Refused: a saved stream begins with the row's first token, so none continues another."""
        raise NotImplementedError

    def native(self, slot: int, *, steers: bool, columns: int) -> _NativeStream:
        """The stream of a row, with room for `columns` tokens; chosen at the row's first pass. A
        steered or traced row cannot continue from keys and values of a context with flash
        attention, so it forwards all of its tokens.
        """
        native = self._natives[slot]
        saved = self._saved[slot]
        if native is not None:
            self._pool.widen(native.streams, columns)
        else:
            steers = steers or (saved is not None and saved.steers)
            native = self._pool.take(steers, max(columns, saved.most if saved is not None else 0))
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
        state = native.context.save(native.stream)
        return SavedStream(length, state, native.context.steers, native.tokens)

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
    """A model in llama.cpp, as a `RowRunner` of `holdfast.generation`.

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
        self.pool = pool
        self.name = name
        self.layers = pool.model.layers
        self.heads = pool.model.heads
        self.context = pool.columns
        self._lock = threading.Lock()  # a context runs one pass at a time

    def slots(self) -> Slots:
        """A new, empty set of slots."""
        return Slots(self.pool)

    def forward_slots(
        self,
        slots: Slots,
        which: Sequence[int],
        group: StreamGroup,
        logits: int = 1,
    ) -> Output:
        """Forwards the uncomputed tokens of the given rows, at least the last token of each.

        Rows of similar length share a pass if their streams are consecutive.

        Args:
            slots: where the rows live.
            which: the slots to forward, in order.
            group: the streams in these slots.
            logits: how many last tokens to return logits for; before a row's first they are 0.
        """
        states = group.streams
        traced = any(state.trace for state in states)
        shape = len(which), logits, self.pool.model.vocabulary
        last_logits = np.zeros(shape, np.float32)
        mass = np.zeros((len(which), self.layers, self.heads), np.float32)
        uniform = np.zeros((len(which), self.layers), np.float32)
        with self._lock:
            self.pool.settle()
            for slot, state in zip(which, states, strict=True):
                slots.native(slot, steers=_steers(state), columns=len(state))
            rows = [self._row(slots, *pair) for pair in zip(which, states, strict=True)]
            for numbers in _groups(rows):
                tokens = [rows[number].tokens for number in numbers]
                steered = [rows[number].steered for number in numbers]
                passed = rows[numbers[0]].native.context.decode(steered, tokens, logits)
                last_logits[numbers] = passed.logits
                if passed.mass.size:
                    mass[numbers], uniform[numbers] = passed.mass, passed.uniform
                for number in numbers:
                    rows[number].native.tokens = rows[number].end
        return Output(
            torch.from_numpy(last_logits),
            torch.from_numpy(mass) if traced else None,
            None,
            torch.from_numpy(uniform) if traced else None,
        )

    def _row(self, slots: Slots, slot: int, state: StreamState) -> _Row:
        stream = state.stream
        native = slots.native(slot, steers=_steers(state), columns=len(state))
        start = min(slots.lengths[slot], len(state) - 1)
        if native.tokens > start:
            native.context.crop(native.stream, start)
            native.tokens = start
        steered = SteeredRow(
            native.stream, start, stream.span, stream.compiled.attention, _is_traced(state)
        )
        return _Row(native, steered, state.tokens_from(start))


@dataclass(frozen=True, eq=False)
class _Row:
    """A row of a pass, and the tokens that it forwards."""

    native: _NativeStream
    steered: SteeredRow
    tokens: Sequence[int]

    @property
    def end(self) -> int:
        """How many tokens the stream has after the pass."""
        return self.steered.start + len(self.tokens)


def _is_traced(state: StreamState) -> bool:
    return state.trace and any(state.stream.span)


def _steers(state: StreamState) -> bool:
    """Whether a row needs a context that materialises attention weights."""
    return bool(state.stream.compiled.attention) or _is_traced(state)


def _groups(rows: Sequence[_Row]) -> list[list[int]]:
    """The numbers of the rows that share a pass."""
    by_context: dict[NativeContext, list[int]] = {}
    for number, row in enumerate(rows):
        by_context.setdefault(row.native.context, []).append(number)
    groups: list[list[int]] = []
    for numbers in by_context.values():
        group: list[int] = []
        for number in sorted(numbers, key=lambda number: rows[number].steered.stream):
            if not group or not _share_a_pass([rows[index] for index in [*group, number]]):
                group = []
                groups.append(group)
            group.append(number)
    return groups


def _share_a_pass(rows: Sequence[_Row]) -> bool:
    """Whether one padded pass over rows, in the order of their streams, is possible and cheaper."""
    lengths = [len(row.tokens) for row in rows]
    context = rows[0].native.context
    longest = max(lengths)
    padding = longest * len(rows) - sum(lengths)
    return (
        rows[-2].steered.stream + 1 == rows[-1].steered.stream
        and longest * len(rows) <= max(CHUNK, context.rows)
        and padding <= _PADDING_PER_PASS * (len(rows) - 1)
        and max(row.steered.start for row in rows) + longest <= context.columns
    )
