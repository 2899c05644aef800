"""Contiguous copies of decoding rows' keys and values, so that a step need not read pages.

A key never changes once it is written, so the copies of one step serve all later steps, each of
which adds its own keys. Rows occupy slots without gaps, so a step uses the first slots as views;
when a row leaves, a row from the end takes its slot. Memory is bounded: if none is left, a step
reads the pages again.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from holdfast_vllm.pages import read_pages
from holdfast_vllm.wire import Admitted

_MAX_SHARE = 0.5  # of the bytes of vLLM's own cache
_FLOAT32_BYTES = 4


@dataclass
class Copies:
    """The copies of one layer.

    Args:
        keys, values: float32 [slot, group, token, size of a head].
        filled: how many tokens each slot has.
    """

    keys: Tensor
    values: Tensor
    filled: list[int]

    @property
    def nbytes(self) -> int:
        """Size of keys and values in bytes."""
        return self.keys.nbytes + self.values.nbytes

    def move(self, source: int | None, target: int) -> None:
        """Copies a slot's tokens to another, or empties the target if there is no source."""
        if source is None or source >= len(self.filled):
            self.filled[target] = 0
            return
        count = self.filled[source]
        for part in (self.keys, self.values):
            part[target, :, :count] = part[source, :, :count]
        self.filled[target] = count


@dataclass
class SlotPool:
    """The slots of rows that are batched.

    Args:
        tokens: the capacity of a slot.
        rows: the rows, in the order of their slots.
        layers: the copies, by layer.
    """

    tokens: int
    rows: list[Admitted] = field(default_factory=list)
    layers: dict[int, Copies] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Size of all layers in bytes."""
        return sum(copies.nbytes for copies in self.layers.values())

    def assign(self, rows: Sequence[Admitted]) -> list[int]:
        """Assigns the first slots to the rows of a pass; returns the index of the row in each slot.

        Rows keep their slots, except those beyond the first ones: after rows A, B, C, D, the rows
        B, C, D have slots 1, 2 and 0.
        """
        if rows == self.rows:
            return list(range(len(rows)))
        indices = {row: index for index, row in enumerate(rows)}
        by_slot: list[Admitted | None] = [row if row in indices else None for row in self.rows]
        by_slot += [None] * (len(rows) - len(by_slot))
        slots_to_vacate = [
            slot for slot in range(len(rows), len(by_slot)) if by_slot[slot] is not None
        ]
        rows_with_slots = {row for row in by_slot if row is not None}
        rows_without = iter([row for row in rows if row not in rows_with_slots])
        for slot in range(len(rows)):
            if by_slot[slot] is not None:
                continue
            source = slots_to_vacate.pop() if slots_to_vacate else None
            by_slot[slot] = next(rows_without) if source is None else by_slot[source]
            for copies in self.layers.values():
                if slot < len(copies.filled):
                    copies.move(source, slot)
        self.rows = [row for row in by_slot[: len(rows)] if row is not None]
        return [indices[row] for row in self.rows]

    def copies(self, layer: int, cache: Tensor, room: float) -> Copies | None:
        """Returns the copies of a layer, with a slot for every row; None if there is no room.

        Args:
            layer: counted from 0.
            cache: vLLM's cache of the layer.
            room: bytes that may be allocated.
        """
        existing = self.layers.get(layer)
        if existing is not None and len(existing.filled) >= len(self.rows):
            return existing
        _, groups, _, double_size = cache.shape  # keys and values are side by side
        slots = 1 << (len(self.rows) - 1).bit_length()
        shape = slots, groups, self.tokens, double_size // 2
        if slots * groups * self.tokens * double_size * _FLOAT32_BYTES > room:
            return None
        # not left uninitialised: masked tokens have weight 0, and 0 times NaN would be NaN
        copies = Copies(torch.zeros(shape), torch.zeros(shape), [0] * slots)
        if existing is not None:
            count = len(existing.filled)
            copies.keys[:count] = existing.keys
            copies.values[:count] = existing.values
            copies.filled[:count] = existing.filled
        self.layers[layer] = copies
        return copies


@dataclass
class RowCopies:
    """The copies that an engine keeps for its decoding rows, by batch key."""

    pools: dict[Hashable, SlotPool] = field(default_factory=dict)

    def pool(self, batch_key: Hashable, tokens: int) -> SlotPool:
        """Returns the slots for rows of a batch key, with room for `tokens` tokens each."""
        return self.pools.setdefault(batch_key, SlotPool(tokens))

    def retain(self, batch_keys: Sequence[Hashable]) -> None:
        """Drops the pools of other batch keys, which this pass does not use."""
        for key in self.pools.keys() - set(batch_keys):
            del self.pools[key]

    def room(self, cache: Tensor) -> float:
        """Returns how many bytes may still be allocated for one layer."""
        return _MAX_SHARE * cache.nbytes - sum(
            pool.nbytes / max(1, len(pool.layers)) for pool in self.pools.values()
        )


def refill(
    copies: Copies, slots: Sequence[int], cache: Tensor, pages: Tensor, lengths: Sequence[int]
) -> None:
    """Fills slots by reading their tokens from the pages.

    Args:
        copies: the copies of a layer.
        slots: the slots to fill.
        cache: vLLM's cache of the layer.
        pages: int64 [slot, page], of all slots.
        lengths: the number of tokens in each slot.
    """
    size = cache.shape[2]
    for slot in slots:
        length = lengths[slot]
        slot_pages = pages[slot : slot + 1, : -(-length // size)]
        keys, values = read_pages(cache, slot_pages)
        copies.keys[slot, :, :length] = keys[0, :, :length]
        copies.values[slot, :, :length] = values[0, :, :length]
        copies.filled[slot] = length
