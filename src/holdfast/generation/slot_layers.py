"""Slot layers: what each kind of layer keeps of the sequences in a model's slots.

KeyLayer     keys and values of every token
WindowLayer  keys and values of the tokens that a window or a chunk can see
StateLayer   recurrent states
HybridLayer  keys, values and recurrent states

Passes write keys and values in place, since a repeated pass simply overwrites what a failed one
wrote. In windowed layers, a pass of several tokens per row writes into separate tensors, and its
last tokens are copied into the slots when the pass is committed, so a long prompt needs no long
slots. A state cannot undo a token that it has read. So a pass works on a copy, which replaces the
state when the pass is committed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from transformers.cache_utils import (
    CacheLayerMixin,
    DynamicLayer,
    DynamicSlidingWindowLayer,
    LinearAttentionAndFullAttentionLayer,
    LinearAttentionAndSlidingWindowAttentionLayer,
    LinearAttentionCacheLayerMixin,
    LinearAttentionLayer,
)

from holdfast.errors import ModelError
from holdfast.generation.mapped_memory import can_map, discard_pages, map_zeros

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
SPARE_TOKENS = 256  # tokens that a windowed layer may keep beyond its window, at least
# the kinds of states
_CONV = "conv"
_RECURRENT = "recurrent"

CacheLayer = CacheLayerMixin | LinearAttentionCacheLayerMixin | DummyLayer
States = Mapping[tuple[str, int], Tensor]  # by kind and number


@dataclass(frozen=True)
class LayerColumns:
    """The columns that a kind of layer reads and writes in a pass."""

    count: int  # number of columns read
    first: int  # the token in the first column; 0 if slots differ in it
    written: Tensor  # the column of each token written, [token]


class Sources(NamedTuple):
    """The row and query of a pass that each written token comes from, [token] each."""

    rows: Tensor
    queries: Tensor


@dataclass
class SlotPass:
    """Where the current pass reads and writes."""

    slots_read: slice | Tensor  # the slot of each row
    width: int  # queries per row, padding included
    slots_written: Tensor  # the slot of each token written, [token]
    all_columns: LayerColumns  # for layers that keep all tokens
    window_columns: LayerColumns  # for layers that keep a window
    sources: Sources | None  # None if every row writes one token
    continues: bool  # whether the slots already have computed tokens
    has_written: bool = False  # whether a layer has written yet


@dataclass
class Window:
    """The tokens that windowed layers keep in each slot: the tokens from `first_kept` on.

    The layers keep more tokens than the window sees, so that a slot's tokens have to be moved only
    once in many steps, and so that a prompt that diverges from a conversation at its latest
    question can reuse the rest.
    """

    # tokens that a query sees, itself included; without a window, more than any text has
    width: int = sys.maxsize
    spare: int = 0  # the most tokens kept beyond the window
    first_kept: list[int] = field(default_factory=list)  # by slot, the first token kept
    # by slot, how many first tokens may be requested later
    reusable_lens: list[int] = field(default_factory=list)

    def next_first(self, slot: int, end: int) -> int:
        """Returns the first token to keep in a slot whose tokens reach to `end`.

        The window of the last token stays complete, as that token may be forwarded again.
        """
        first = self.first_kept[slot]
        needed_from = min(end, self.reusable_lens[slot]) - self.width
        return needed_from if needed_from - first > self.spare else first

    def cut(self, slot: int, end: int) -> int | None:
        """Returns the first token to copy so that the first `end` tokens can be reused.

        None if the slot no longer has all tokens that this needs.
        """
        first = self.first_kept[slot]
        visible_from = max(0, end + 1 - self.width)
        return None if first > visible_from else max(first, visible_from - self.spare)

    def min_prefix_len(self, cut: int) -> int:
        """Length of the shortest prefix that can be reused from the tokens from `cut` on."""
        return cut + self.width - 1 if cut else 0


@dataclass
class SlotState:
    """State that all layers share: the current pass, the tokens computed, and the windows.

    Layers refer to this and not to the slots, because a reference cycle would delay the release of
    memory until cycles are collected.
    """

    current: SlotPass | None = None  # None between passes
    lengths: list[int] = field(default_factory=list)  # computed tokens, by slot
    # by slot, the end of the tokens that passes may have written, committed or not
    ends: list[int] = field(default_factory=list)
    window: Window = field(default_factory=Window)
    # the number of current and expected slots, and the most columns that one of them may need
    max_slots: int = 0
    max_columns: int = 0

    @property
    def current_pass(self) -> SlotPass:
        """The current pass; may only be used during a pass."""
        assert self.current is not None, "no pass is running"
        return self.current


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
            empty = [s.new_zeros(0, s.shape[-3], 0, s.shape[-1]) for s in like]
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

    def _resize(self, slots: int, columns: int, old: Sequence[Tensor]) -> None:
        """Replaces the store by one of another size, with the tokens of all slots.

        If memory runs out, nothing changes.
        """
        self.keys = self.values = None  # views would keep the old store alive
        resized = []
        for source in old:
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


class StateLayer(LinearAttentionLayer):
    """States of a convolution and of a recurrence, [slot, ...] each, as transformers has them."""

    def __init__(self, like: LinearAttentionCacheLayerMixin, shared: SlotState):
        super().__init__(number_of_states=like.number_of_states)
        self.shared = shared
        self.stored: States = {}

    def fill(self, slot: int, kv: Sequence[Tensor], states: States, start: int = 0) -> None:
        """Opens a slot with these states; they are {} for a sequence without computed tokens."""
        new_states = {name: state[None] for name, state in states.items()}
        for name, like in {**self.stored, **new_states}.items():
            earlier = self.stored.get(name, like.new_zeros(slot, *like.shape[1:]))[:slot]
            new = new_states.get(name, like.new_zeros(1, *like.shape[1:]))
            self.stored = {**self.stored, name: torch.cat([earlier, new])}

    def copy_kv(self, slot: int, length: int, start: int = 0) -> tuple[Tensor, ...]:
        return ()

    def copy_states(self, slot: int) -> States:
        return {name: state[slot].clone() for name, state in self.stored.items()}

    def move(self, last: int, slot: int, length: int) -> None:
        for state in self.stored.values():
            if last < len(state):
                state[slot] = state[last]

    def wipe(self, slot: int) -> None:
        """Zeroes a slot, which may not exist yet if its sequence failed in its first pass."""
        for state in self.stored.values():
            state[slot : slot + 1] = 0

    def discard(self, slot: int) -> None:
        """Does nothing, as `shrink` drops the states of closed slots."""

    def shrink(self, slots: int, columns: int) -> None:
        self.stored = {name: state[:slots].clone() for name, state in self.stored.items()}

    def begin(self) -> None:
        """Gives the current pass copies of its slots' states."""
        current = self.shared.current_pass
        copies: States = {}
        if current.continues:
            copies = {
                name: state[current.slots_read].clone() for name, state in self.stored.items()
            }
        for number in range(self.number_of_states):
            conv = copies.get((_CONV, number))
            recurrent = copies.get((_RECURRENT, number))
            self.conv_states[number] = conv
            self.recurrent_states[number] = recurrent
            self.is_conv_states_initialized[number] = conv is not None
            self.is_recurrent_states_initialized[number] = recurrent is not None
            self.has_previous_state[number] = conv is not None or recurrent is not None
            if conv is not None:
                self.conv_kernel_size[number] = conv.shape[-1]

    def end(self) -> States:
        """Returns the states of the slots after the pass."""
        self.shared.current_pass.has_written = True
        states: dict[tuple[str, int], Tensor] = {}
        for number in range(self.number_of_states):
            conv = self.conv_states[number]
            recurrent = self.recurrent_states[number]
            if conv is not None:
                states[_CONV, number] = conv
            if recurrent is not None:
                states[_RECURRENT, number] = recurrent
            self.conv_states[number] = self.recurrent_states[number] = None
        return states

    def commit(self, results: Sequence[tuple[list[int], States]]) -> None:
        """Replaces the states of slots with the results of passes, given as (slots, states)."""
        num_slots = len(self.shared.lengths)
        for slots, states in results:
            for name, state in states.items():
                if slots == list(range(num_slots)):
                    self.stored = {**self.stored, name: state}
                    continue
                earlier = self.stored.get(name)
                if earlier is None:
                    earlier = state.new_zeros(num_slots, *state.shape[1:])
                new = earlier[:num_slots].clone()
                new[slots] = state
                self.stored = {**self.stored, name: new}


class HybridLayer(StateLayer, KeyLayer):  # type: ignore[misc, override]  # as theirs
    """Attention and a recurrence in one layer."""

    def __init__(self, like: LinearAttentionCacheLayerMixin, shared: SlotState):
        KeyLayer.__init__(self, like, shared)
        StateLayer.__init__(self, like, shared)

    def fill(self, slot: int, kv: Sequence[Tensor], states: States, start: int = 0) -> None:
        KeyLayer.fill(self, slot, kv, states, start)
        StateLayer.fill(self, slot, kv, states)

    copy_kv = KeyLayer.copy_kv

    def move(self, last: int, slot: int, length: int) -> None:
        KeyLayer.move(self, last, slot, length)
        StateLayer.move(self, last, slot, length)

    def wipe(self, slot: int) -> None:
        KeyLayer.wipe(self, slot)
        StateLayer.wipe(self, slot)

    discard = KeyLayer.discard

    def shrink(self, slots: int, columns: int) -> None:
        KeyLayer.shrink(self, slots, columns)
        StateLayer.shrink(self, slots, columns)


SlotLayer = KeyLayer | StateLayer
# by the class of a layer in transformers' caches, the slot layer that replaces it
SLOT_LAYERS: dict[type, type[KeyLayer] | type[StateLayer]] = {
    DynamicLayer: KeyLayer,
    DynamicSlidingWindowLayer: WindowLayer,
    DummyLayer: KeyLayer,
    LinearAttentionLayer: StateLayer,
    LinearAttentionAndFullAttentionLayer: HybridLayer,
    LinearAttentionAndSlidingWindowAttentionLayer: HybridLayer,
}
RECURRENT = frozenset(kind for kind, layer in SLOT_LAYERS.items() if issubclass(layer, StateLayer))
ATTENDING = frozenset(SLOT_LAYERS) - {LinearAttentionLayer, DummyLayer}


def layers_like(layers: Sequence[CacheLayer], shared: SlotState) -> list[SlotLayer]:
    """Makes the slot layers that replace the layers of a cache of transformers.

    If windowed layers have a recurrence, all layers keep every token, since transformers makes one
    mask per kind of layer, for one number of keys.

    Raises:
        ModelError: a layer is of a kind that has no replacement.
    """
    if unknown := sorted({type(like).__name__ for like in layers if type(like) not in SLOT_LAYERS}):
        raise ModelError(
            f"The cache has layers of the kind {' and '.join(unknown)}, which cannot be kept in"
            " slots; forward each sequence alone, with the cache that the model makes."
        )
    kinds: dict[type, Callable[[Any, SlotState], SlotLayer]] = {**SLOT_LAYERS}
    if LinearAttentionAndSlidingWindowAttentionLayer in map(type, layers):
        kinds[DynamicSlidingWindowLayer] = KeyLayer
    elif widths := [
        layer.sliding_window for layer in layers if type(layer) is DynamicSlidingWindowLayer
    ]:
        shared.window = Window(max(widths), max(max(widths) // 4, SPARE_TOKENS))
    return [kinds[type(like)](like, shared) for like in layers]
