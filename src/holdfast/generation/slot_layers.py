"""Slot layers that keep keys and values: of every token of a row, or only of those that a window or
a chunk can see.

Passes write in place, since what they wrote can be overwritten. In windowed layers, a pass of
several tokens per row writes beside the slots, which take over the last tokens when the pass is
committed, so a long prompt needs no long slots.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from transformers.cache_utils import CacheLayerMixin, DynamicLayer, LinearAttentionCacheLayerMixin

if TYPE_CHECKING:
    from transformers.cache_utils import DummyLayer as DummyLayer
else:
    try:
        from transformers.cache_utils import DummyLayer  # since 5.23
    except ImportError:

        class DummyLayer:
            """An empty cache layer, which older versions of transformers lack."""


SPARE_COLUMNS = 128  # spare columns taken at once when rows outgrow the slots
_SPARE = 1.25  # growth factor of a store that must grow
SPARE_TOKENS = 256  # minimum spare of a windowed layer, beyond its window

CacheLayer = CacheLayerMixin | LinearAttentionCacheLayerMixin | DummyLayer
States = Mapping[tuple[str, int], Tensor]  # by kind and number


@dataclass(frozen=True)
class LayerColumns:
    """The columns that a kind of layer reads and writes in a pass."""

    count: int  # number of columns read
    first: int  # the token in the first one; 0 if rows differ in it
    written: Tensor  # the column of each token written, [token]


class Sources(NamedTuple):
    """Where in a pass of several queries per row the tokens come from that it writes, [token]."""

    rows: Tensor
    queries: Tensor


@dataclass
class SlotPass:
    """Where the pass under way reads and writes."""

    rows: slice | Tensor  # the slots read, in order
    width: int  # queries per row, padding included
    slots: Tensor  # the slot of each token written, [token]
    all_columns: LayerColumns  # of layers that keep all tokens
    window_columns: LayerColumns  # of layers that keep a window
    sources: Sources | None  # None if every row writes one token
    continues: bool  # whether the rows already have computed tokens
    has_written: bool = False  # whether a layer has written


@dataclass
class Window:
    """The tokens that windowed layers keep of each slot: those from `firsts` on.

    They keep more tokens than the window sees, so that a row is moved only once in many steps, and
    a prompt that diverges from a dialog at its latest question can continue from it.
    """

    # tokens that a query sees, itself included; without a window, more than there ever are
    width: int = sys.maxsize
    spare: int = 0  # the most tokens kept beyond the window
    firsts: list[int] = field(default_factory=list)  # by slot, the first token kept
    # by slot, how many first tokens may be requested later
    reusable_lens: list[int] = field(default_factory=list)

    def next_first(self, slot: int, end: int) -> int:
        """The first token to keep of a slot with `end`; its last one may be forwarded again."""
        first = self.firsts[slot]
        needed_from = min(end, self.reusable_lens[slot]) - self.width
        return needed_from if needed_from - first > self.spare else first

    def cut(self, slot: int, end: int) -> int | None:
        """The first token to copy for reusing the first `end` ones; None if too few are left."""
        first = self.firsts[slot]
        visible_from = max(0, end + 1 - self.width)
        return None if first > visible_from else max(first, visible_from - self.spare)

    def least(self, cut: int) -> int:
        """The length of the shortest prefix that tokens kept from `cut` on can serve."""
        return cut + self.width - 1 if cut else 0


@dataclass
class SlotState:
    """State that all layers share: the pass under way, the tokens computed, and the windows.

    Layers refer to this and not to the slots, as a reference cycle would delay the release of
    memory until cycles are collected.
    """

    current: SlotPass | None = None
    lengths: list[int] = field(default_factory=list)
    window: Window = field(default_factory=Window)
    # slots of the current and joining rows, and the most columns that these may need
    most_rows: int = 0
    most_columns: int = 0
    replaced: bool = False  # whether a store was replaced by one of another size

    @property
    def under_way(self) -> SlotPass:
        """The pass under way; there must be one."""
        assert self.current is not None, "a pass is under way"
        return self.current


class KeyLayer(DynamicLayer):
    """Keys and values of all tokens; a layer that uses another layer's keys keeps none."""

    def __init__(self, like: CacheLayer, shared: SlotState):
        DynamicLayer.__init__(self)
        self.shared = shared
        self.store: list[Tensor] = []

    def open(self, slot: int, tensors: Sequence[Tensor], states: States, start: int = 0) -> None:
        """Copies a row's keys and values, [head, token, size] each, into its slot at `start`."""
        if not tensors:
            return
        end = start + tensors[0].shape[1]
        self.reserve(slot + 1, end, tensors)
        for store, new in zip(self.store, tensors, strict=True):
            store[slot, :, start:end] = new

    @property
    def columns(self) -> LayerColumns:
        """The columns that this kind of layer reads."""
        return self.shared.under_way.all_columns

    def tensors(self, slot: int, length: int, start: int = 0) -> tuple[Tensor, ...]:
        """Copies of the keys and values of a row's tokens `start` to `length`."""
        return tuple(store[slot, :, start:length].clone() for store in self.store)

    def states(self, slot: int) -> States:
        """None, as such a layer is not recurrent."""
        return {}

    def move(self, last: int, slot: int, length: int) -> None:
        """Moves the last row into a slot, if it has written anything."""
        for store in self.store:
            if last < len(store):
                store[slot, :, :length] = store[last, :, :length]

    def wipe(self, slot: int) -> None:
        """Zeroes a slot, which may not exist yet if its row failed in its first pass."""
        for store in self.store:
            store[slot : slot + 1] = 0

    def reserve(self, rows: int, columns: int, like: Sequence[Tensor]) -> None:
        """Makes room; `like` gives the heads and sizes, [..., head, token, size]."""
        if not self.store:
            empty = [s.new_zeros(0, s.shape[-3], 0, s.shape[-1]) for s in like]
            rows = max(rows, self.shared.most_rows)
            self._resize(rows, self._with_spare(columns, 0), empty)
            self.dtype = like[0].dtype
            self.device = like[0].device
            self.is_initialized = True
            return
        had_rows, _, had_columns, _ = self.store[0].shape
        if rows <= had_rows and columns <= had_columns:
            return
        if rows > had_rows:
            rows = max(rows, self.shared.most_rows, int(_SPARE * had_rows))
        if columns > had_columns:
            columns = self._with_spare(columns, had_columns)
        self._resize(max(rows, had_rows), max(columns, had_columns), self.store)

    def _with_spare(self, columns: int, had: int) -> int:
        """More columns than are needed now, but no more than any row may need."""
        spare = max(columns + SPARE_COLUMNS, int(_SPARE * had))
        return max(columns, min(spare, self.shared.most_columns or spare))

    def shrink(self, rows: int, columns: int) -> None:
        """Releases memory if less than a quarter of the store is in use."""
        if not self.store:
            return
        had_rows, _, had_columns, _ = self.store[0].shape
        if 4 * rows * (columns + SPARE_COLUMNS) < had_rows * had_columns:
            self._resize(2 * rows, columns + SPARE_COLUMNS, self.store)

    def _resize(self, rows: int, columns: int, old: Sequence[Tensor]) -> None:
        """Copies what fits into a store of another size; if memory runs out, nothing changes."""
        self.keys = self.values = None  # views would keep the old store alive
        resized = []
        for part in old:
            other = part.new_zeros(rows, part.shape[1], columns, part.shape[3])
            copied_rows = min(rows, part.shape[0])
            copied_columns = min(columns, part.shape[2])
            other[:copied_rows, :, :copied_columns] = part[:copied_rows, :, :copied_columns]
            resized.append(other)
            self.shared.replaced |= part.numel() > 0
        self.keys, self.values = self.store = resized

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Writes the tokens of the pass, [row, head, query, size]; returns what its rows read."""
        current = self.shared.under_way
        columns = self.columns
        current.has_written = True
        self.reserve(len(self.shared.lengths), columns.count, (key_states, value_states))
        for store, new in zip(self.store, (key_states, value_states), strict=True):
            if current.sources is None:
                store[current.slots, :, columns.written] = new[:, :, 0]
            else:
                rows, queries = current.sources
                store[current.slots, :, columns.written] = new[rows, :, queries]
        self.keys, self.values = (store[current.rows, :, : columns.count] for store in self.store)
        return self.keys, self.values

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """The number of keys that the layer reads, and the column of the first."""
        return self.columns.count, self.columns.first

    def get_seq_length(self) -> int:
        """Tokens before the pass, if its rows are of equal length."""
        return self.shared.under_way.all_columns.count - self.shared.under_way.width


class WindowLayer(KeyLayer):
    """Keys and values of the tokens that a window, or a chunk, can still see."""

    is_sliding = True

    @property
    def columns(self) -> LayerColumns:
        """The columns of the tokens that are kept."""
        return self.shared.under_way.window_columns

    def tensors(self, slot: int, length: int, start: int = 0) -> tuple[Tensor, ...]:
        """Copies of those keys and values of a row's first tokens that later tokens may need."""
        first = self.shared.window.firsts[slot]
        cut = self.shared.window.cut(slot, length)
        assert cut is not None
        return tuple(store[slot, :, cut - first : length - first].clone() for store in self.store)

    def move(self, last: int, slot: int, length: int) -> None:
        """Moves the last row's tokens that are kept into a slot."""
        super().move(last, slot, length - self.shared.window.firsts[last])

    def shrink(self, rows: int, columns: int) -> None:
        """Releases memory if the tokens kept use less than a quarter of the store."""
        ranges = zip(self.shared.window.firsts, self.shared.lengths, strict=True)
        super().shrink(rows, max((end - first for first, end in ranges), default=0))

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """As in any layer, except that several tokens of a row are written beside the slots."""
        current = self.shared.under_way
        if current.sources is None:
            return super().update(key_states, value_states)
        current.has_written = True
        self.reserve(len(self.shared.lengths), 1, (key_states, value_states))
        rows, queries = current.sources
        beside = []
        for store, new in zip(self.store, (key_states, value_states), strict=True):
            computed = store[current.rows, :, : self.columns.count]
            wide = new.new_zeros(*new.shape[:2], self.columns.count, new.shape[3])
            wide[:, :, : computed.shape[2]] = computed
            wide[rows, :, self.columns.written] = new[rows, :, queries]
            beside.append(wide)
        self.keys, self.values = beside
        return self.keys, self.values

    def begin(self) -> None:
        """Drops what the previous pass read."""
        self.keys = self.values = None

    def end(self) -> tuple[Tensor, ...]:
        """Returns what a pass of several tokens per row wrote beside the slots."""
        beside = () if self.keys is None or self.values is None else (self.keys, self.values)
        self.keys = self.values = None
        return beside

    def keep(self, beside: Sequence[Tensor], slots: Tensor, columns: Tensor) -> None:
        """Moves columns [n, column] to the front of `slots` [n], from `beside` if given."""
        sources = beside or self.store
        if not sources:
            return
        rows = torch.arange(len(slots), device=slots.device) if beside else slots
        columns = columns.clamp(max=sources[0].shape[2] - 1)
        copies = [states[rows[:, None], :, columns] for states in sources]
        self.reserve(len(self.shared.lengths), columns.shape[1], sources)
        front = torch.arange(columns.shape[1], device=slots.device)
        for store, states in zip(self.store, copies, strict=True):
            store[slots[:, None], :, front] = states
