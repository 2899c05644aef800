"""llama.cpp as a model of Holdfast's engine: slots for sequences that join and leave, and passes.

A slot is what llama.cpp calls a stream: a part of a context with the keys and values of one
sequence. On the CPU, all sequences are in contexts that materialise attention weights, where they
share passes and can continue from each other's keys and values. On a GPU, those that are neither
steered nor traced are in a second kind of context, with flash attention. A context is created when
a sequence needs one, and replaced by a longer one when a sequence outgrows it.

LlamaRunner        forwards the slots of a batch
LlamaSlots         the slots, each with its stream from its first pass on
ContextPool        the contexts of a model, which hands out streams
_ContextStreams    one context, and its streams in use
_NativeStream      one stream
SavedStream        a copy of a stream's keys and values, outside any context
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from holdfast.attention import EVERY_LENGTH, SAME_FACTORS
from holdfast.generation.batch import SequenceGroup
from holdfast.generation.model_runner import Output
from holdfast.generation.token_requests import TokenSequence
from holdfast_llama.native import CHUNK, NativeContext, NativeModel
from holdfast_llama.steered_rows import SteeredRow

_MIN_COLUMNS = 512  # columns of a context, unless sequences cannot be that long
_PADDING_PER_PASS = 16  # tokens that cost about as much as the fixed part of a pass


@dataclass(frozen=True, eq=False)
class SavedStream:
    """Keys and values of a sequence's first tokens.

    Args:
        tokens: how many of the saved tokens are used.
        state: keys and values of all saved tokens, as serialised by llama.cpp.
        steers: whether they are for a context that materialises attention weights.
        saved: how many tokens were saved.
        min_prefix_len: how many tokens have to be used at least: any number can be.
        start: the first saved token.
        rotary_lengths: the lengths of a text for which the keys are right: all, since llama.cpp
            chooses the rotary factors by the length of the context.
    """

    tokens: int
    state: np.ndarray
    steers: bool
    saved: int
    min_prefix_len: int = 0
    start: int = 0
    rotary_lengths: range = EVERY_LENGTH

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.state.nbytes

    def first(self, count: int) -> SavedStream:
        """Returns the keys and values of the first `count` tokens."""
        return replace(self, tokens=count)

    def copy(self) -> SavedStream:
        """Returns itself, as it shares no memory with a context."""
        return self


@dataclass(eq=False)
class _NativeStream:
    """A stream of a context."""

    streams: _ContextStreams
    stream: int  # its number in the context
    tokens: int = 0  # how many tokens it has

    @property
    def context(self) -> NativeContext:
        """The context that the stream is in at present."""
        return self.streams.context


@dataclass(eq=False)
class _ContextStreams:
    """A context, and its streams in use.

    Those are always the first ones, as llama.cpp forwards rows in one pass only if their streams
    are consecutive.
    """

    context: NativeContext
    used: list[_NativeStream] = field(default_factory=list)  # in order

    def add(self) -> _NativeStream:
        """Takes the next stream into use."""
        self.used.append(_NativeStream(self, len(self.used)))
        return self.used[-1]

    def drop(self, native: _NativeStream) -> None:
        """Frees a stream; the last one takes its number."""
        last = self.used.pop()
        if last is not native:
            self.context.restore(native.stream, self.context.save(last.stream))
            self.used[native.stream] = last
            last.stream, native.stream = native.stream, last.stream
        self.context.crop(native.stream, 0)

    def move_to(self, context: NativeContext) -> None:
        """Replaces the context by one with longer streams."""
        for native in self.used:
            context.restore(native.stream, self.context.save(native.stream))
        self.context = context


@dataclass(eq=False)
class ContextPool:
    """Contexts of one model.

    Args:
        model: the weights.
        max_sequences: sequences in a context, each in a stream of its own; a saved stream fits only
            into contexts with the same number.
        columns: maximum tokens per sequence. A context begins with the room that its sequences
            need.
        threads: threads per pass.
        cache: the type of keys and values.
    """

    model: NativeModel
    max_sequences: int
    columns: int
    threads: int
    cache: str
    # by whether a context materialises attention weights
    _contexts: dict[bool, list[_ContextStreams]] = field(
        default_factory=lambda: {True: [], False: []}
    )
    _returned: deque[_NativeStream] = field(default_factory=deque)

    def take(self, *, steers: bool, columns: int) -> _NativeStream:
        """Takes a free stream with room for `columns` tokens.

        Args:
            steers: whether its context has to materialise attention weights.

        Raises:
            ModelError: there is not enough memory for another context.
        """
        # on the CPU flash attention is no faster, and it would read a float32 cache as float16
        steers = steers or not self.model.gpu_layers or self.cache == "f32"
        contexts = self._contexts[steers]
        free = next((entry for entry in contexts if len(entry.used) < self.max_sequences), None)
        if free is not None and not free.used and free.context.columns < columns:
            contexts.remove(free)
            free = None  # its memory is freed before the longer context is created
        if free is None:
            free = _ContextStreams(self._new_context(steers, columns))
            contexts.append(free)
        self.widen(free, columns)
        return free.add()

    def widen(self, streams: _ContextStreams, columns: int) -> None:
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
        """Creates a context for sequences of at least `columns` tokens.

        The number is rounded up to a power of two, because every growth copies the context.
        """
        columns = min(max(_MIN_COLUMNS, 1 << (columns - 1).bit_length()), self.columns)
        return NativeContext(
            self.model, self.max_sequences, columns, self.threads, steers=steers, cache=self.cache
        )


class LlamaSlots:
    """Slots of sequences that join and leave; when one is closed, the last one takes its number.

    Attributes:
        lengths: the number of computed tokens, by slot.
    """

    def __init__(self, pool: ContextPool):
        self._pool = pool
        self.lengths: list[int] = []
        self._saved: list[SavedStream | None] = []  # None after the first pass
        self._natives: list[_NativeStream | None] = []  # None before the first pass
        # not at process exit, when contexts may already be gone
        weakref.finalize(self, pool.give_back, self._natives).atexit = False

    def expect(self, slots: int, tokens: int) -> None:
        """Does nothing, as a context grows when a sequence needs it."""

    def open(self, kv: SavedStream | None, reusable_len: int | None = None) -> None:
        """Opens the next slot for a sequence, with its saved keys and values if there are any."""
        self._saved.append(kv)
        self._natives.append(None)
        self.lengths.append(0 if kv is None else kv.tokens)

    def add(self, kv: SavedStream) -> None:
        """Not supported, as a saved stream always begins with the sequence's first token."""
        raise NotImplementedError

    def native(self, slot: int, *, steers: bool, columns: int) -> _NativeStream:
        """Returns the stream of a slot, with room for `columns` tokens.

        It is chosen at the first pass of its sequence. One that is steered or traced cannot
        continue from keys and values of a context with flash attention, so it forwards all of its
        tokens.
        """
        native = self._natives[slot]
        saved = self._saved[slot]
        if native is not None:
            self._pool.widen(native.streams, columns)
        else:
            steers = steers or (saved is not None and saved.steers)
            if saved is not None:
                columns = max(columns, saved.saved)
            native = self._pool.take(steers=steers, columns=columns)
            self._natives[slot] = native
            self._saved[slot] = None
            self.lengths[slot] = 0
            if saved is not None and saved.steers == native.context.steers:
                native.context.restore(native.stream, saved.state)
                native.context.crop(native.stream, saved.tokens)
                native.tokens = self.lengths[slot] = saved.tokens
        return native

    def copy_kv(self, slot: int, count: int | None = None, start: int = 0) -> SavedStream | None:
        """Copies the keys and values of a slot's first `count` tokens (None: all of them)."""
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
        """Closes a slot and moves the last sequence into it."""
        self._pool.give_back([self._natives[slot]])
        lists: list[list[Any]] = [self.lengths, self._saved, self._natives]
        for values in lists:
            values[slot] = values[-1]
            values.pop()

    def shrink(self) -> None:
        """Does nothing, as contexts keep their memory."""


class LlamaRunner:
    """A model in llama.cpp, as a `ModelRunner` of `holdfast.generation`.

    Args:
        pool: the model's contexts.
        name: the model's name, for error messages.
    """

    batched = supports_chunked_prefill = True
    splits_prompts = False
    sees_all = False  # a saved stream is whole, so streams cannot be put together
    small = False
    rotary = SAME_FACTORS  # llama.cpp chooses its factors by the size of the context
    device = torch.device("cpu")

    def __init__(self, pool: ContextPool, name: str):
        self.pool = pool
        self.name = name
        self.layers = pool.model.layers
        self.heads = pool.model.heads
        self.context = pool.columns
        self._lock = threading.Lock()  # a context runs one pass at a time

    def slots(self) -> LlamaSlots:
        """Returns new, empty slots."""
        return LlamaSlots(self.pool)

    def forward_slots(
        self,
        slots: LlamaSlots,
        which: Sequence[int],
        group: SequenceGroup,
        num_logits: int = 1,
    ) -> Output:
        """Forwards the pending tokens of some slots, and at least the last token of each.

        Sequences of similar length share a pass if their streams are consecutive.

        Args:
            slots: the slots of all sequences.
            which: the numbers of the slots to forward.
            group: the sequences in these slots.
            num_logits: how many last tokens of each sequence get logits; they are 0 before its
                first token.
        """
        sequences = group.sequences
        traced = any(sequence.trace for sequence in sequences)
        logits = np.zeros((len(which), num_logits, self.pool.model.vocabulary), np.float32)
        mass = np.zeros((len(which), self.layers, self.heads), np.float32)
        uniform = np.zeros((len(which), self.layers), np.float32)
        with self._lock:
            self.pool.settle()
            # every context has grown before a stream is cropped in it
            for slot, sequence in zip(which, sequences, strict=True):
                slots.native(slot, steers=_steers(sequence), columns=len(sequence))
            rows = [
                self._row(slots, slot, sequence)
                for slot, sequence in zip(which, sequences, strict=True)
            ]
            for numbers in _group_by_pass(rows):
                context = rows[numbers[0]].native.context
                steered = [rows[number].steered for number in numbers]
                tokens = [rows[number].tokens for number in numbers]
                output = context.decode(steered, tokens, num_logits)
                logits[numbers] = output.logits
                if output.mass.size:
                    mass[numbers] = output.mass
                    uniform[numbers] = output.uniform
                for number in numbers:
                    rows[number].native.tokens = rows[number].end
        return Output(
            logits=torch.from_numpy(logits),
            mass=torch.from_numpy(mass) if traced else None,
            cache=None,
            uniform=torch.from_numpy(uniform) if traced else None,
        )

    def _row(self, slots: LlamaSlots, slot: int, sequence: TokenSequence) -> _Row:
        """Prepares a slot for a pass, which forwards at least its last token."""
        prompt = sequence.prompt
        native = slots.native(slot, steers=_steers(sequence), columns=len(sequence))
        start = min(slots.lengths[slot], len(sequence) - 1)
        if native.tokens > start:
            native.context.crop(native.stream, start)
            native.tokens = start
        steered = SteeredRow(
            native.stream, start, prompt.span, prompt.pass_methods.attention, _is_traced(sequence)
        )
        return _Row(native, steered, sequence.tokens_from(start))


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


def _is_traced(sequence: TokenSequence) -> bool:
    return sequence.trace and any(sequence.prompt.span)


def _steers(sequence: TokenSequence) -> bool:
    """Whether a sequence needs a context that materialises attention weights."""
    return bool(sequence.prompt.pass_methods.attention) or _is_traced(sequence)


def _group_by_pass(rows: Sequence[_Row]) -> list[list[int]]:
    """Groups the numbers of rows by pass: the rows of a group share a pass."""
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
        and longest * len(rows) <= max(CHUNK, context.max_sequences)
        and padding <= _PADDING_PER_PASS * (len(rows) - 1)
        and max(row.steered.start for row in rows) + longest <= context.columns
    )
