"""Keys and values: compact for each view of a dialog, stacked for a prefill, and in slots for rows
that come and go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicLayer

KeysValues = tuple[
    tuple[Tensor, Tensor], ...
]  # per layer, [head, token, size]: one row without padding

_COLUMNS = 128  # spare columns taken at once when rows outgrow the slots


def stack(rows: Sequence[KeysValues | None], width: int, layers: int) -> Cache:
    """The cache of a batch whose rows have computed `rows` (or nothing), padded on the left to
    `width` columns.
    """
    if not width:
        return Cache(layers=[DynamicLayer() for _ in range(layers)])
    like = next(row for row in rows if row is not None)
    stacked = []
    for layer in range(layers):
        blocks = []
        for part in range(2):
            model = like[layer][part]
            block = model.new_zeros(len(rows), model.shape[0], width, model.shape[2])
            for index, row in enumerate(rows):
                if row is not None:
                    block[index, :, width - row[layer][part].shape[1] :] = row[layer][part]
            blocks.append(block)
        made = DynamicLayer()
        made.update(*blocks)
        stacked.append(made)
    return Cache(layers=stacked)


def row_of(cache: Cache, index: int, columns: Tensor) -> KeysValues:
    """The keys and values of one row of a batch at `columns`, copied."""
    return tuple(
        (layer.keys[index][:, columns], layer.values[index][:, columns]) for layer in cache.layers
    )


def first_tokens(computed: KeysValues, count: int) -> KeysValues:
    """The first `count` tokens of a row, as views."""
    return tuple((keys[:, :count], values[:, :count]) for keys, values in computed)


@dataclass
class _Rows:
    """What all layers of the slots share; were it the slots themselves, each would hold the other,
    and memory be freed only when cycles are collected.

    Args:
        lengths: of the rows, by slot.
        places: slot and column that each row of the pass writes.
        picked: the slots that the pass is of; None: all.
    """

    lengths: list[int]
    places: tuple[Tensor, Tensor]
    picked: list[int] | None = None


class _SlotLayer(DynamicLayer):
    """One layer of the slots; each forward pass appends one token to every row in use."""

    def __init__(self, rows: _Rows):
        super().__init__()
        self.rows = rows
        self.store: list[Tensor] = []

    def place(self, slot: int, *states: Tensor) -> None:
        """Puts what a row has computed, [head, token, size], into its slot."""
        self._make_room(slot + 1, states[0].shape[1], states)
        for store, new in zip(self.store, states, strict=True):
            store[slot, :, : new.shape[1]] = new

    def _make_room(self, rows: int, columns: int, like: Sequence[Tensor]) -> None:
        if self.store and rows <= self.store[0].shape[0] and columns <= self.store[0].shape[2]:
            return
        if self.store:
            old, had = self.store, self.store[0]
            rows = max(rows, 2 * had.shape[0]) if rows > had.shape[0] else had.shape[0]
            columns = max(columns + _COLUMNS, had.shape[2])
        else:
            old = [state.new_zeros(0, state.shape[0], 0, state.shape[2]) for state in like]
            columns += _COLUMNS
        self._resize(rows, columns, old)
        self.dtype, self.device, self.is_initialized = old[0].dtype, old[0].device, True

    def shrink(self, rows: int, columns: int) -> None:
        """Gives memory back where less than half of the store is in use."""
        if not self.store:
            return
        had = self.store[0]
        if 2 * rows * (columns + _COLUMNS) < had.shape[0] * had.shape[2]:
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
        self.store = moved

    def update(
        self, key_states: Tensor, value_states: Tensor, *args, **kwargs
    ) -> tuple[Tensor, Tensor]:
        rows, columns = len(self.rows.lengths), max(self.rows.lengths)
        self._make_room(rows, columns, ())
        places, picked = self.rows.places, self.rows.picked
        for store, new in zip(self.store, (key_states, value_states), strict=True):
            store[places[0], :, places[1]] = new[:, :, 0]
        self.keys, self.values = (
            store[:rows, :, :columns] if picked is None else store[picked, :, :columns]
            for store in self.store
        )
        return self.keys, self.values

    def get_seq_length(self) -> int:
        return max(self.rows.lengths) - 1


class Slots(Cache):
    """Keys and values of the rows that generate: row i has its tokens in the columns [0,
    lengths[i]).

    Args:
        layers: number of layers of the model.
        device: where they live.
    """

    def __init__(self, layers: int, device: torch.device):
        self.rows = _Rows([], (torch.empty(0), torch.empty(0)))
        super().__init__(layers=[_SlotLayer(self.rows) for _ in range(layers)])
        self.device = device

    @property
    def lengths(self) -> list[int]:
        """Of the rows, by slot."""
        return self.rows.lengths

    @property
    def columns(self) -> int:
        """Columns that the pass about to come, or just made, looks at."""
        return max(self.lengths)

    def add(self, computed: KeysValues) -> None:
        """Opens a row that has computed these tokens."""
        for layer, states in zip(self.layers, computed, strict=True):
            layer.place(len(self.lengths), *states)
        self.lengths.append(computed[0][0].shape[1])

    def grow(self) -> None:
        """Makes room for one token in every row: the forward pass that writes it must follow."""
        self.rows.places = (
            torch.arange(len(self.lengths), device=self.device),
            torch.tensor(self.lengths, device=self.device),
        )
        self.rows.lengths = [length + 1 for length in self.lengths]

    @contextmanager
    def only(self, slots: list[int] | None) -> Iterator[None]:
        """Inside, passes have the rows in these slots alone, and write their last token again;
        None: all rows.
        """
        places = self.rows.places
        if slots is not None:
            self.rows.picked, self.rows.places = slots, (places[0][slots], places[1][slots])
        try:
            yield
        finally:
            self.rows.picked, self.rows.places = None, places

    def computed(self, slot: int, count: int | None = None) -> KeysValues:
        """What a row has computed of its first `count` tokens (None: of all), copied."""
        length = self.lengths[slot] if count is None else count
        return tuple(
            tuple(store[slot, :, :length].clone() for store in layer.store) for layer in self.layers
        )

    def remove(self, slot: int) -> None:
        """Closes a row; the last one moves into its slot."""
        last = len(self.lengths) - 1
        if slot != last:
            length = self.lengths[last]
            for layer in self.layers:
                for store in layer.store:
                    store[slot, :, :length] = store[last, :, :length]
        self.lengths[slot] = self.lengths[last]
        self.lengths.pop()

    def shrink(self) -> None:
        """Gives back the memory of rows that are closed, and of columns that only they had."""
        for layer in self.layers:
            layer.shrink(len(self.lengths), max(self.lengths, default=0))
