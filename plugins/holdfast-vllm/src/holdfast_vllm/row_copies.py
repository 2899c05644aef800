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
        """Assigns the first slots to the rows of a pass; returns the row number in each slot.

        Rows that have a slot keep it, unless it lies beyond the first ones.
        """
        if rows == self.rows:
            return list(range(len(rows)))
        numbers = {row: number for number, row in enumerate(rows)}
        by_slot: list[Admitted | None] = [row if row in numbers else None for row in self.rows]
        by_slot += [None] * (len(rows) - len(by_slot))
        beyond = [slot for slot in range(len(rows), len(by_slot)) if by_slot[slot] is not None]
        old = {row for row in by_slot if row is not None}
        new = iter([row for row in rows if row not in old])
        for slot in range(len(rows)):
            if by_slot[slot] is not None:
                continue
            source = beyond.pop() if beyond else None
            by_slot[slot] = next(new) if source is None else by_slot[source]
            for copies in self.layers.values():
                if slot < len(copies.filled):
                    copies.move(source, slot)
        self.rows = [row for row in by_slot[: len(rows)] if row is not None]
        return [numbers[row] for row in self.rows]

    def copies(self, layer: int, cache: Tensor, room: float) -> Copies | None:
        """Returns the copies of a layer, with a slot for every row; None if there is no room.

        Args:
            layer: counted from 0.
            cache: vLLM's cache of the layer.
            room: bytes that may be allocated.
        """
        old = self.layers.get(layer)
        if old is not None and len(old.filled) >= len(self.rows):
            return old
        _, groups, _, both = cache.shape
        slots = 1 << (len(self.rows) - 1).bit_length()
        shape = slots, groups, self.tokens, both // 2
        if slots * groups * self.tokens * both * 4 > room:
            return None
        # not left uninitialised: masked tokens have weight 0, and 0 times NaN would be NaN
        new = Copies(torch.zeros(shape), torch.zeros(shape), [0] * slots)
        if old is not None:
            count = len(old.filled)
            new.keys[:count] = old.keys
            new.values[:count] = old.values
            new.filled[:count] = old.filled
        self.layers[layer] = new
        return new


@dataclass
class RowCopies:
    """The copies that an engine keeps for its decoding rows, by batch key."""

    pools: dict[Hashable, SlotPool] = field(default_factory=dict)

    def pool(self, name: Hashable, tokens: int) -> SlotPool:
        """Returns the slots for rows of a batch key, with room for `tokens` tokens each."""
        return self.pools.setdefault(name, SlotPool(tokens))

    def retain(self, names: Sequence[Hashable]) -> None:
        """Drops the pools that this pass does not use."""
        for name in [name for name in self.pools if name not in names]:
            del self.pools[name]

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
