"""Slots: keys and values of the rows of a batch, which come and go.

Row i has its tokens in the columns [0, lengths[i]) of slot i: a token's column is its position, so
masks that go by positions (causal, sliding, chunked) need nothing else, and padding is what lies
beyond a row's length. Slots in use are the first ones, so a batch reads them as views.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DummyLayer, DynamicLayer, DynamicSlidingWindowLayer

from holdfast.engine.prefixes import KeysValues

# what slots can stand in for: a window is a mask, and a layer that shares another's keys keeps none
HELD: frozenset[type] = frozenset({DynamicLayer, DynamicSlidingWindowLayer, DummyLayer})
_COLUMNS = 128  # spare columns taken at once when rows outgrow the slots
_SPARE = 1.25  # of what is there, where more is taken


@dataclass
class _Pass:
    """Where the pass under way writes and reads.

    All layers share it; were it the slots themselves, each would hold the other, and memory be
    freed only when cycles are collected.

    Args:
        rows: the slots read, in order.
        columns: how many of their columns are read.
        width: queries of each row, padding included.
        slots, places: slot and column of every token written, [token].
        sources: row and query of every token written; None where each row writes one token.
    """

    rows: slice | Tensor
    columns: int
    width: int
    slots: Tensor
    places: Tensor
    sources: tuple[Tensor, Tensor] | None = None


class _SlotLayer(DynamicLayer):
    """One layer of the slots."""

    def __init__(self, current: list[_Pass], opened: list[int]):
        super().__init__()
        self.current, self.opened = current, opened
        self.store: list[Tensor] = []

    def place(self, slot: int, states: Sequence[Tensor]) -> None:
        """Puts what a row has computed, each [head, token, size], into its slot."""
        if not states:
            return
        self.reserve(slot + 1, states[0].shape[1], states)
        for store, new in zip(self.store, states, strict=True):
            store[slot, :, : new.shape[1]] = new

    def reserve(self, rows: int, columns: int, like: Sequence[Tensor]) -> None:
        """Makes room; `like` has the heads and sizes, [..., head, token, size]."""
        if not self.store:
            empty = [s.new_zeros(0, s.shape[-3], 0, s.shape[-1]) for s in like]
            self._resize(rows, columns + _COLUMNS, empty)
            self.dtype, self.device = like[0].dtype, like[0].device
            self.is_initialized = True
            return
        had_rows, _, had_columns, _ = self.store[0].shape
        if rows <= had_rows and columns <= had_columns:
            return
        rows = had_rows if rows <= had_rows else max(rows, 2 * had_rows)
        if columns > had_columns:
            columns = max(columns + _COLUMNS, int(_SPARE * had_columns))
        self._resize(rows, max(columns, had_columns), self.store)

    def shrink(self, rows: int, columns: int) -> None:
        """Gives memory back where less than half of the store is in use."""
        if not self.store:
            return
        had_rows, _, had_columns, _ = self.store[0].shape
        if 2 * rows * (columns + _COLUMNS) < had_rows * had_columns:
            self._resize(rows, columns + _COLUMNS, self.store)

    def _resize(self, rows: int, columns: int, old: Sequence[Tensor]) -> None:
        """Moves what fits into a store of another size; without memory for it, nothing changes."""
        self.keys = self.values = None  # views, which would keep the old store
        moved = []
        for part in old:
            fresh = part.new_zeros(rows, part.shape[1], columns, part.shape[3])
            both = min(rows, part.shape[0]), min(columns, part.shape[2])
            fresh[: both[0], :, : both[1]] = part[: both[0], :, : both[1]]
            moved.append(fresh)
        self.keys, self.values = self.store = moved

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Writes the tokens of the pass, [row, head, query, size]; returns what its rows read."""
        current = self.current[0]
        self.reserve(self.opened[0], current.columns, (key_states, value_states))
        for store, new in zip(self.store, (key_states, value_states), strict=True):
            if current.sources is None:
                store[current.slots, :, current.places] = new[:, :, 0]
            else:
                rows, queries = current.sources
                store[current.slots, :, current.places] = new[rows, :, queries]
        self.keys, self.values = (store[current.rows, :, : current.columns] for store in self.store)
        return self.keys, self.values

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """How many columns a mask has, and which is the first."""
        return self.current[0].columns, 0

    def get_seq_length(self) -> int:
        """Columns in front of the pass, where its rows are of one length."""
        return self.current[0].columns - self.current[0].width


class Slots(Cache):
    """Keys and values of rows that come and go.

    Args:
        layers: how many layers of the model have keys and values.
        device: where they live.
    """

    def __init__(self, layers: int, device: torch.device):
        self._current: list[_Pass] = []
        self._opened = [0]
        made = [_SlotLayer(self._current, self._opened) for _ in range(layers)]
        super().__init__(layers=made)
        self._slot_layers = made
        self.device = device
        self.lengths: list[int] = []  # tokens computed, by slot

    def open(self, computed: KeysValues | None) -> None:
        """Takes the next slot for a row that has computed these tokens, or none."""
        if computed is not None:
            for layer, states in zip(self._slot_layers, computed, strict=True):
                layer.place(len(self.lengths), states)
        self.lengths.append(0 if computed is None else computed[0][0].shape[1])
        self._opened[0] = len(self.lengths)

    @contextmanager
    def writing(
        self, slots: Sequence[int], starts: Sequence[int], ends: Sequence[int]
    ) -> Iterator[None]:
        """Inside, a pass forwards tokens of some rows, padded on the left.

        Args:
            slots: of the rows of the pass.
            starts, ends: first and last (exclusive) of the tokens that each of them forwards.
        """
        fresh = [end - start for start, end in zip(starts, ends, strict=True)]
        first, last = slots[0], slots[-1] + 1
        together = isinstance(slots, range)
        rows = slice(first, last) if together else torch.tensor(slots, device=self.device)
        places = self._places(slots, starts, fresh)
        self._current[:] = [_Pass(rows, max(ends), max(fresh), *places)]
        try:
            yield
        finally:
            self._current.clear()

    def commit(self, slots: Sequence[int], ends: Sequence[int]) -> None:
        """Counts the tokens in front of `ends` as computed, after the pass that wrote them."""
        for slot, end in zip(slots, ends, strict=True):
            self.lengths[slot] = end

    def _places(
        self, slots: Sequence[int], lengths: Sequence[int], fresh: Sequence[int]
    ) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor] | None]:
        """Where each token is written, and, of several tokens per row, from where it comes."""
        if max(fresh) == 1:
            both = torch.tensor([slots, lengths]).to(self.device)
            return both[0], both[1], None
        counts, widest = torch.tensor(fresh), max(fresh)
        rows = torch.arange(len(slots)).repeat_interleave(counts)
        behind = torch.arange(len(rows)) - (counts.cumsum(0) - counts)[rows]
        queries = behind + (widest - counts)[rows]
        placed = torch.stack(
            [torch.tensor(slots)[rows], torch.tensor(lengths)[rows] + behind, rows, queries]
        ).to(self.device)
        return placed[0], placed[1], (placed[2], placed[3])

    def computed(self, slot: int, count: int | None = None) -> KeysValues:
        """What a row has computed of its first `count` tokens (None: of all), copied."""
        length = self.lengths[slot] if count is None else count
        return tuple(
            tuple(store[slot, :, :length].clone() for store in layer.store)
            for layer in self._slot_layers
        )

    def close(self, slot: int, *, wipe: bool = False) -> None:
        """Closes a row; the last one moves into its slot.

        With `wipe`, what the row leaves behind is 0: what is no number would reach the next row
        through columns that are masked.
        """
        last = len(self.lengths) - 1
        if wipe:
            for layer in self._slot_layers:
                for store in layer.store:
                    store[slot] = 0
        if slot != last:
            length = self.lengths[last]
            for layer in self._slot_layers:
                for store in layer.store:
                    store[slot, :, :length] = store[last, :, :length]
        self.lengths[slot] = self.lengths[last]
        self.lengths.pop()
        self._opened[0] = last

    def shrink(self) -> None:
        """Gives back the memory of rows that are closed, and of columns that only they had."""
        for layer in self._slot_layers:
            layer.shrink(len(self.lengths), max(self.lengths, default=0))
