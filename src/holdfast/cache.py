"""Keys and values: kept compact for each view of a dialog, stacked into one growing cache for a batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicLayer

KeysValues = tuple[tuple[Tensor, Tensor], ...]  # per layer, [head, token, size]: one row without padding


class _GrowingLayer(DynamicLayer):
    """A layer that writes into spare room instead of copying everything at each token."""

    def __init__(self, keys: Tensor | None = None, values: Tensor | None = None, room: int = 0):
        super().__init__()
        self.room, self.length = room, 0
        if keys is not None:
            self.lazy_initialization(keys, values)
            self._write(keys, values)

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self.dtype, self.device = key_states.dtype, key_states.device
        self.store = [
            states.new_zeros(*states.shape[:2], states.shape[2] + self.room, states.shape[3])
            for states in (key_states, value_states)
        ]
        self.is_initialized = True

    def _write(self, *states: Tensor) -> None:
        first, last = self.length, self.length + states[0].shape[2]
        for index, new in enumerate(states):
            if last > self.store[index].shape[2]:
                spare = new.new_zeros(*new.shape[:2], max(last // 2, 64), new.shape[3])
                self.store[index] = torch.cat([self.store[index][:, :, :first], new, spare], 2)
            else:
                self.store[index][:, :, first:last] = new
        self.length = last
        self.keys, self.values = (store[:, :, :last] for store in self.store)

    def update(self, key_states: Tensor, value_states: Tensor, *args, **kwargs) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self._write(key_states, value_states)
        return self.keys, self.values

    def select(self, rows: Tensor) -> None:
        """Keeps only these rows of the batch."""
        self.store = [store[rows] for store in self.store]
        self.keys, self.values = (store[:, :, : self.length] for store in self.store)


class BatchCache(Cache):
    """The keys and values of a batch, for full attention; rows are padded on the left.

    Args:
        rows: what each row has computed already, or None; all rows come from one model.
        width: tokens of the longest of them.
        layers: number of layers of the model.
        room: tokens to come, for which memory is taken at once.
    """

    def __init__(self, rows: Sequence[KeysValues | None], width: int, layers: int, room: int):
        if not width:
            super().__init__(layers=[_GrowingLayer(room=room) for _ in range(layers)])
            return
        like = next(row for row in rows if row is not None)
        stacked = []
        for layer in range(layers):
            pair = []
            for part in range(2):
                model = like[layer][part]
                block = model.new_zeros(len(rows), model.shape[0], width, model.shape[2])
                for index, row in enumerate(rows):
                    if row is not None:
                        block[index, :, width - row[layer][part].shape[1] :] = row[layer][part]
                pair.append(block)
            stacked.append(_GrowingLayer(*pair, room=room))
        super().__init__(layers=stacked)

    def select(self, rows: Tensor) -> None:
        """Keeps only these rows of the batch."""
        for layer in self.layers:
            layer.select(rows)

    def row(self, index: int, columns: Tensor) -> KeysValues:
        """The keys and values of one row at `columns`, copied."""
        return tuple((layer.keys[index][:, columns], layer.values[index][:, columns]) for layer in self.layers)


def first_tokens(computed: KeysValues, count: int) -> KeysValues:
    """The first `count` tokens of a row, as views."""
    return tuple((keys[:, :count], values[:, :count]) for keys, values in computed)
