"""What the layers of the slots keep of each row: keys and values of every token.

They are written in place, since what a pass wrote can be written again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor
from transformers.cache_utils import (
    CacheLayerMixin,
    DummyLayer,
    DynamicLayer,
    LinearAttentionCacheLayerMixin,
)

_COLUMNS = 128  # spare columns taken at once when rows outgrow the slots
_SPARE = 1.25  # of what is there, where more is taken

CacheLayer = CacheLayerMixin | LinearAttentionCacheLayerMixin | DummyLayer
States = Mapping[tuple[str, int], Tensor]  # by kind and number


@dataclass
class Pass:
    """Where the pass under way writes and reads.

    Args:
        rows: the slots read, in order.
        columns: how many of their columns are read.
        width: queries of each row, padding included.
        slots, places: slot and column of every token written, [token].
        sources: row and query of every token written; None where each row writes one token.
        begun: whether the rows have read tokens before.
        again: whether their last tokens are read a second time.
        written: whether a layer has written.
    """

    rows: slice | Tensor
    columns: int
    width: int
    slots: Tensor
    places: Tensor
    sources: tuple[Tensor, Tensor] | None
    begun: bool
    again: bool
    written: bool = False


@dataclass
class Shared:
    """What all layers know.

    Were it the slots themselves, each would hold the other, and memory be freed only when cycles
    are collected.

    Args:
        current: the pass under way.
        opened: rows that have a slot.
    """

    current: Pass | None = None
    opened: int = 0

    @property
    def under_way(self) -> Pass:
        """The pass under way, of which there is one."""
        assert self.current is not None
        return self.current


class KeyLayer(DynamicLayer):
    """Keys and values of all tokens; a window is a mask, and a layer that shares another's keys
    keeps none.
    """

    def __init__(self, like: CacheLayer, shared: Shared):
        DynamicLayer.__init__(self)
        self.shared = shared
        self.store: list[Tensor] = []

    def open(self, slot: int, tensors: Sequence[Tensor], states: States) -> None:
        """Puts what a row has computed, each [head, token, size], into its slot."""
        if not tensors:
            return
        self.reserve(slot + 1, tensors[0].shape[1], tensors)
        for store, new in zip(self.store, tensors, strict=True):
            store[slot, :, : new.shape[1]] = new

    def tensors(self, slot: int, length: int) -> tuple[Tensor, ...]:
        """Those of a row's first tokens, copied."""
        return tuple(store[slot, :, :length].clone() for store in self.store)

    def states(self, slot: int) -> States:
        """What a row's tokens became: of attention, nothing."""
        return {}

    def move(self, last: int, slot: int, length: int) -> None:
        """Moves the last row into a slot, if it has written anything."""
        for store in self.store:
            if last < len(store):
                store[slot, :, :length] = store[last, :, :length]

    def wipe(self, slot: int) -> None:
        """Leaves nothing of a row; one that failed in its first pass may have no room yet."""
        for store in self.store:
            store[slot : slot + 1] = 0

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
        current = self.shared.under_way
        current.written = True
        self.reserve(self.shared.opened, current.columns, (key_states, value_states))
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
        return self.shared.under_way.columns, 0

    def get_seq_length(self) -> int:
        """Columns in front of the pass, where its rows are of one length."""
        return self.shared.under_way.columns - self.shared.under_way.width
