"""Contiguous copies of decoding rows' keys and values, so that a step need not read pages.

A key never changes once written, so what one step has gathered serves all later ones, each of which
adds its own. Rows occupy slots without gaps, so a step takes the first ones as they are; when a row
leaves, one from the end takes its slot. Memory is bounded: if there is none left, a step reads the
pages again.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from holdfast_vllm.pages import in_order
from holdfast_vllm.wire import Admitted

_SHARE = 0.5  # of the bytes of vLLM's own cache


@dataclass
class Copies:
    """The copies of one layer, float32 [slot, group, token, size of a head].

    Args:
        keys, values: of the rows in their slots.
        filled: how many tokens each slot has.
    """

    keys: Tensor
    values: Tensor
    filled: list[int]

    @property
    def nbytes(self) -> int:
        """Bytes of keys and values."""
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
        tokens: capacity of a slot.
        rows: in the order of their slots.
        layers: the copies, by layer.
    """

    tokens: int
    rows: list[Admitted] = field(default_factory=list)
    layers: dict[int, Copies] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of all layers."""
        return sum(copies.nbytes for copies in self.layers.values())

    def assign(self, rows: Sequence[Admitted]) -> list[int]:
        """Gives the rows of a pass the first slots; returns the row number in each slot."""
        if rows == self.rows:
            return list(range(len(rows)))
        numbers = {row: number for number, row in enumerate(rows)}
        placed: list[Admitted | None] = [row if row in numbers else None for row in self.rows]
        placed += [None] * (len(rows) - len(placed))
        behind = [slot for slot in range(len(rows), len(placed)) if placed[slot] is not None]
        known = {row for row in placed if row is not None}
        new = iter([row for row in rows if row not in known])
        for slot in range(len(rows)):
            if placed[slot] is not None:
                continue
            source = behind.pop() if behind else None
            placed[slot] = next(new) if source is None else placed[source]
            for copies in self.layers.values():
                if slot < len(copies.filled):
                    copies.move(source, slot)
        self.rows = [row for row in placed[: len(rows)] if row is not None]
        return [numbers[row] for row in self.rows]

    def copies(self, layer: int, cache: Tensor, room: float) -> Copies | None:
        """The copies of a layer, with a slot for every row; None if there is no room.

        Args:
            layer: counted from 0.
            cache: vLLM's, of the layer.
            room: bytes that may be allocated.
        """
        old = self.layers.get(layer)
        if old is not None and len(old.filled) >= len(self.rows):
            return old
        slots, (_, groups, _, both) = 1 << (len(self.rows) - 1).bit_length(), cache.shape
        shape = slots, groups, self.tokens, both // 2
        if slots * groups * self.tokens * both * 4 > room:
            return None
        # Zeros, since masked tokens have weight 0, and 0 times NaN is NaN.
        new = Copies(torch.zeros(shape), torch.zeros(shape), [0] * slots)
        if old is not None:
            count = len(old.filled)
            new.keys[:count], new.values[:count] = old.keys, old.values
            new.filled[:count] = old.filled
        self.layers[layer] = new
        return new


@dataclass
class RowCopies:
    """The copies that an engine keeps for its decoding rows, by batch key."""

    pools: dict[Hashable, SlotPool] = field(default_factory=dict)

    def pool(self, name: Hashable, tokens: int) -> SlotPool:
        """The slots of rows that are batched, of at most `tokens` tokens each."""
        return self.pools.setdefault(name, SlotPool(tokens))

    def retain(self, names: Sequence[Hashable]) -> None:
        """Drops the pools that this pass does not use."""
        for name in [name for name in self.pools if name not in names]:
            del self.pools[name]

    def room(self, cache: Tensor) -> float:
        """Bytes that may still be allocated for one layer."""
        return _SHARE * cache.nbytes - sum(
            pool.nbytes / max(1, len(pool.layers)) for pool in self.pools.values()
        )


def refill(
    copies: Copies, slots: Sequence[int], cache: Tensor, pages: Tensor, lengths: Sequence[int]
) -> None:
    """Reads the tokens of the given slots from their pages.

    Args:
        copies: of a layer.
        slots: to be filled.
        cache: of the layer.
        pages: int64 [slot, page], of all slots.
        lengths: number of tokens of each slot.
    """
    size = cache.shape[2]
    for slot in slots:
        length = lengths[slot]
        slot_pages = pages[slot : slot + 1, : -(-length // size)]
        for kept, read in zip(
            (copies.keys, copies.values), in_order(cache, slot_pages), strict=True
        ):
            kept[slot, :, :length] = read[0, :, :length]
        copies.filled[slot] = length
