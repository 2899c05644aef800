"""Layers of the slots that keep what a window, or a chunk, can see of a row.

A token's keys and values are written in place, as everywhere. Those of several tokens are written
beside the slots, which take over the last ones when the pass counts: a long prompt needs no long
slots.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from holdfast.engine.slot_layers import Columns, KeyLayer


class WindowLayer(KeyLayer):
    """Keys and values of the tokens that a window, or a chunk, can still see."""

    is_sliding = True

    @property
    def columns(self) -> Columns:
        """The columns that the pass under way reads."""
        return self.shared.under_way.kept

    def tensors(self, slot: int, length: int, start: int = 0) -> tuple[Tensor, ...]:
        """Those of a row's first tokens that are of use behind them, copied."""
        first, cut = self.shared.window.firsts[slot], self.shared.window.cut(slot, length)
        assert cut is not None
        return tuple(store[slot, :, cut - first : length - first].clone() for store in self.store)

    def move(self, last: int, slot: int, length: int) -> None:
        """Moves the last row into a slot."""
        super().move(last, slot, length - self.shared.window.firsts[last])

    def shrink(self, rows: int, columns: int) -> None:
        """Gives memory back where less than half of the store is in use."""
        every = zip(self.shared.lengths, self.shared.window.firsts, strict=True)
        super().shrink(rows, max((length - first for length, first in every), default=0))

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """As of any layer; several tokens of a row are written beside the slots."""
        current, both = self.shared.under_way, (key_states, value_states)
        if current.sources is None:
            return super().update(*both)
        current.written = True
        self.reserve(self.shared.opened, 1, both)
        rows, queries = current.sources
        read = []
        for store, new in zip(self.store, both, strict=True):
            known = store[current.rows, :, : self.columns.count]
            wide = new.new_zeros(*new.shape[:2], self.columns.count, new.shape[3])
            wide[:, :, : known.shape[2]] = known
            wide[rows, :, self.columns.places] = new[rows, :, queries]
            read.append(wide)
        self.keys, self.values = read
        return self.keys, self.values

    def begin(self) -> None:
        """Forgets what the pass before read."""
        self.keys = self.values = None

    def end(self) -> tuple[Tensor, ...]:
        """Keys and values that a pass of several tokens per row wrote beside the slots."""
        beside = () if self.keys is None or self.values is None else (self.keys, self.values)
        self.keys = self.values = None
        return beside

    def keep(self, beside: Sequence[Tensor], slots: Tensor, columns: Tensor) -> None:
        """Moves columns to the front of their slots.

        Args:
            beside: where they are, per slot; () for the slots themselves.
            slots: int64 [n].
            columns: int64 [n, column].
        """
        given = beside or self.store
        if not given:
            return
        rows = torch.arange(len(slots), device=slots.device) if beside else slots
        columns = columns.clamp(max=given[0].shape[2] - 1)
        moved = [states[rows[:, None], :, columns] for states in given]
        self.reserve(self.shared.opened, columns.shape[1], given)
        front = torch.arange(columns.shape[1], device=slots.device)
        for store, states in zip(self.store, moved, strict=True):
            store[slots[:, None], :, front] = states
