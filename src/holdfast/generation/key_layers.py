"""Slot layers of attention: the keys and values of every token, or of those that a window can see.

Passes write keys and values in place, since a repeated pass simply overwrites what a failed one
wrote. In windowed layers, a pass of several tokens per row writes into separate tensors, and its
last tokens are copied into the slots when the pass is committed, so a long prompt needs no long
slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from transformers.cache_utils import CacheLayerMixin, DynamicLayer, LinearAttentionCacheLayerMixin

from holdfast.generation.mapped_memory import can_map, discard_pages, map_zeros
from holdfast.generation.slot_state import LayerColumns, SlotState, States

if TYPE_CHECKING:
    from transformers.cache_utils import DummyLayer as DummyLayer
else:
    try:
        from transformers.cache_utils import DummyLayer  # since 5.23
    except ImportError:

        class DummyLayer:
            """An empty cache layer, which older versions of transformers lack."""


SPARE_COLUMNS = 128  # spare columns allocated when sequences outgrow the slots
_GROWTH = 1.25  # minimum factor by which a store grows
_MAPPED_GROWTH = 4  # the same, for the columns of a store that takes no memory in advance
CacheLayer = CacheLayerMixin | LinearAttentionCacheLayerMixin | DummyLayer


class KeyLayer(DynamicLayer):
    """Keys and values of all tokens; a layer that uses another layer's keys keeps none."""

    def __init__(self, like: CacheLayer, shared: SlotState):
        DynamicLayer.__init__(self)
        self.shared = shared
        self.store: list[Tensor] = []  # keys and values, [slot, head, column, size]

    def fill(self, slot: int, kv: Sequence[Tensor], states: States, start: int = 0) -> None:
        """Copies keys and values, [head, token, size] each, into a slot, from token `start` on."""
        if not kv:
            return
        end = start + kv[0].shape[1]
        self.reserve(slot + 1, end, kv)
        for store, new in zip(self.store, kv, strict=True):
            store[slot, :, start:end] = new

    @property
    def columns(self) -> LayerColumns:
        """The columns that this kind of layer reads in the current pass."""
        return self.shared.current_pass.all_columns

    def copy_kv(self, slot: int, length: int, start: int = 0) -> tuple[Tensor, ...]:
        """Copies the keys and values of a slot's tokens `start` to `length`."""
        return tuple(store[slot, :, start:length].clone() for store in self.store)

    def copy_states(self, slot: int) -> States:
        """Returns {}, as this layer is not recurrent."""
        return {}

    def move(self, last: int, slot: int, length: int) -> None:
        """Moves the first `length` tokens of the last slot into another, if it was written."""
        for store in self.store:
            if last < len(store):
                store[slot, :, :length] = store[last, :, :length]

    def wipe(self, slot: int) -> None:
        """Zeroes a slot, which may not exist yet if its sequence failed in its first pass."""
        for store in self.store:
            store[slot : slot + 1] = 0

    def discard(self, slot: int) -> None:
        """Gives the memory of an empty slot back to the system, if the store is mapped."""
        if self.is_mapped:
            for store in self.store:
                discard_pages(store[slot : slot + 1])

    @property
    def is_mapped(self) -> bool:
        """Whether the store takes memory only where something was written."""
        return can_map(self.device) if self.store else False

    def num_columns(self) -> list[int]:
        """The number of columns in which each slot may have tokens."""
        return self.shared.ends

    def reserve(self, slots: int, columns: int, like: Sequence[Tensor]) -> None:
        """Makes room; `like` shows the numbers of heads and sizes, [..., head, token, size]."""
        if not self.store:
            self.dtype = like[0].dtype
            self.device = like[0].device
            self.is_initialized = True
            empty = [states.new_zeros(0, states.shape[-3], 0, states.shape[-1]) for states in like]
            slots = max(slots, self.shared.max_slots)
            self._resize(slots, self._with_spare(columns, 0), empty)
            return
        old_slots, _, old_columns, _ = self.store[0].shape
        if slots <= old_slots and columns <= old_columns:
            return
        if slots > old_slots:
            slots = max(slots, self.shared.max_slots, int(_GROWTH * old_slots))
        if columns > old_columns:
            columns = self._with_spare(columns, old_columns)
        self._resize(max(slots, old_slots), max(columns, old_columns), self.store)

    def _with_spare(self, columns: int, old_columns: int) -> int:
        """Returns more columns than are needed now: many if they take no memory until they are
        written, otherwise no more than any sequence may need.
        """
        if can_map(self.device):
            return _MAPPED_GROWTH * (columns + SPARE_COLUMNS)
        spare = max(columns + SPARE_COLUMNS, int(_GROWTH * old_columns))
        return max(columns, min(spare, self.shared.max_columns or spare))

    def shrink(self, slots: int, columns: int) -> None:
        """Releases memory if less than a quarter of the store is in use.

        Closed slots of a mapped store have released theirs.
        """
        if not self.store or self.is_mapped:
            return
        old_slots, _, old_columns, _ = self.store[0].shape
        if 4 * slots * (columns + SPARE_COLUMNS) < old_slots * old_columns:
            self._resize(2 * slots, columns + SPARE_COLUMNS, self.store)

    def _resize(self, slots: int, columns: int, sources: Sequence[Tensor]) -> None:
        """Replaces the store by one of another size, with the tokens of `sources`.

        If memory runs out, nothing changes.
        """
        self.keys = self.values = None  # views would keep the old store alive
        resized = []
        for source in sources:
            target = map_zeros(source, (slots, source.shape[1], columns, source.shape[3]))
            kept_slots = min(slots, source.shape[0])
            kept_columns = min(columns, source.shape[2])
            if can_map(self.device):  # copying unwritten columns would take memory for them
                for slot, count in enumerate(self.num_columns()[:kept_slots]):
                    count = min(count, kept_columns)
                    target[slot, :, :count] = source[slot, :, :count]
            else:
                target[:kept_slots, :, :kept_columns] = source[:kept_slots, :, :kept_columns]
            resized.append(target)
        self.keys, self.values = self.store = resized

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Writes the keys and values of a pass's tokens, [row, head, query, size] each.

        Returns those that the rows of the pass read, [row, head, column, size].
        """
        current = self.shared.current_pass
        columns = self.columns
        current.has_written = True
        self.reserve(len(self.shared.lengths), columns.count, (key_states, value_states))
        for store, new in zip(self.store, (key_states, value_states), strict=True):
            if current.sources is None:
                store[current.slots_written, :, columns.written] = new[:, :, 0]
            else:
                rows, queries = current.sources
                store[current.slots_written, :, columns.written] = new[rows, :, queries]
        self.keys, self.values = (
            store[current.slots_read, :, : columns.count] for store in self.store
        )
        return self.keys, self.values

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Returns the number of keys that the layer reads, and the column of the first one."""
        return self.columns.count, self.columns.first

    def get_seq_length(self) -> int:
        """Returns the number of tokens before the pass; correct only if all rows have as many."""
        current = self.shared.current_pass
        return current.all_columns.count - current.width


class WindowLayer(KeyLayer):
    """Keys and values of the tokens that a window or a chunk can still see."""

    is_sliding = True

    @property
    def columns(self) -> LayerColumns:
        """The columns of the kept tokens in the current pass."""
        return self.shared.current_pass.window_columns

    def copy_kv(self, slot: int, length: int, start: int = 0) -> tuple[Tensor, ...]:
        """Copies the keys and values, among a slot's first tokens, that later tokens may need."""
        first = self.shared.window.first_kept[slot]
        cut = self.shared.window.cut(slot, length)
        assert cut is not None
        return tuple(store[slot, :, cut - first : length - first].clone() for store in self.store)

    def move(self, last: int, slot: int, length: int) -> None:
        """Moves the kept tokens of the last slot into another."""
        super().move(last, slot, length - self.shared.window.first_kept[last])

    def num_columns(self) -> list[int]:
        """The number of columns in which each slot may have tokens, of those it keeps."""
        window = self.shared.window
        return [end - first for end, first in zip(self.shared.ends, window.first_kept, strict=True)]

    def shrink(self, slots: int, columns: int) -> None:
        """Releases memory if the kept tokens use less than a quarter of the store."""
        ranges = zip(self.shared.window.first_kept, self.shared.lengths, strict=True)
        super().shrink(slots, max((end - first for first, end in ranges), default=0))

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """As in `KeyLayer`, but several tokens per row are written into separate tensors."""
        current = self.shared.current_pass
        if current.sources is None:
            return super().update(key_states, value_states)
        current.has_written = True
        self.reserve(len(self.shared.lengths), 1, (key_states, value_states))
        rows, queries = current.sources
        separate = []
        for store, new in zip(self.store, (key_states, value_states), strict=True):
            computed = store[current.slots_read, :, : self.columns.count]
            wide = new.new_zeros(*new.shape[:2], self.columns.count, new.shape[3])
            wide[:, :, : computed.shape[2]] = computed
            wide[rows, :, self.columns.written] = new[rows, :, queries]
            separate.append(wide)
        self.keys, self.values = separate
        return self.keys, self.values

    def begin(self) -> None:
        """Drops the keys and values that the previous pass read."""
        self.keys = self.values = None

    def end(self) -> tuple[Tensor, ...]:
        """Returns the tensors that a pass of several tokens per row wrote; () if there are none."""
        separate = () if self.keys is None or self.values is None else (self.keys, self.values)
        self.keys = self.values = None
        return separate

    def move_to_front(self, separate: Sequence[Tensor], slots: Tensor, columns: Tensor) -> None:
        """Moves columns [n, column] to the front of `slots` [n].

        They come from the `separate` tensors of a pass, or from the slots themselves if it is ().
        """
        sources = separate or self.store
        if not sources:
            return
        rows = torch.arange(len(slots), device=slots.device) if separate else slots
        columns = columns.clamp(max=sources[0].shape[2] - 1)
        copies = [states[rows[:, None], :, columns] for states in sources]
        self.reserve(len(self.shared.lengths), columns.shape[1], sources)
        front = torch.arange(columns.shape[1], device=slots.device)
        for store, states in zip(self.store, copies, strict=True):
            store[slots[:, None], :, front] = states
