"""Slot layers that keep the recurrent states of rows.

A state cannot undo a token that it has read. So a pass works on a copy, which replaces the state
when the pass is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import (
    DynamicLayer,
    DynamicSlidingWindowLayer,
    LinearAttentionAndFullAttentionLayer,
    LinearAttentionAndSlidingWindowAttentionLayer,
    LinearAttentionCacheLayerMixin,
    LinearAttentionLayer,
)

from holdfast.errors import ModelError
from holdfast.generation import slot_layers
from holdfast.generation.slot_layers import (
    CacheLayer,
    DummyLayer,
    KeyLayer,
    SlotState,
    States,
    Window,
    WindowLayer,
)

_CONV = "conv"
_RECURRENT = "recurrent"


class StateLayer(LinearAttentionLayer):
    """States of a convolution and of a recurrence, [slot, ...] each, as transformers has them."""

    def __init__(self, like: LinearAttentionCacheLayerMixin, shared: SlotState):
        super().__init__(number_of_states=like.number_of_states)
        self.shared = shared
        self.stored: States = {}

    def open(self, slot: int, tensors: Sequence[Tensor], states: States, start: int = 0) -> None:
        """Opens a slot for a row with these states; they are {} for a row without tokens."""
        new_states = {name: state[None] for name, state in states.items()}
        for name, like in {**self.stored, **new_states}.items():
            earlier = self.stored.get(name, like.new_zeros(slot, *like.shape[1:]))[:slot]
            new = new_states.get(name, like.new_zeros(1, *like.shape[1:]))
            self.stored = {**self.stored, name: torch.cat([earlier, new])}

    def tensors(self, slot: int, length: int, start: int = 0) -> tuple[Tensor, ...]:
        return ()

    def states(self, slot: int) -> States:
        return {name: state[slot].clone() for name, state in self.stored.items()}

    def move(self, last: int, slot: int, length: int) -> None:
        for state in self.stored.values():
            if last < len(state):
                state[slot] = state[last]

    def wipe(self, slot: int) -> None:
        """Zeroes a slot, which may not exist yet if its row failed in its first pass."""
        for state in self.stored.values():
            state[slot : slot + 1] = 0

    def shrink(self, rows: int, columns: int) -> None:
        self.stored = {name: state[:rows].clone() for name, state in self.stored.items()}

    def begin(self) -> None:
        """Gives the current pass copies of its rows' states."""
        current = self.shared.current_pass
        copies: States = {}
        if current.continues:
            copies = {name: state[current.rows].clone() for name, state in self.stored.items()}
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
        """Returns the rows' states after the pass."""
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

    def open(self, slot: int, tensors: Sequence[Tensor], states: States, start: int = 0) -> None:
        KeyLayer.open(self, slot, tensors, states, start)
        StateLayer.open(self, slot, tensors, states)

    tensors = KeyLayer.tensors

    def move(self, last: int, slot: int, length: int) -> None:
        KeyLayer.move(self, last, slot, length)
        StateLayer.move(self, last, slot, length)

    def wipe(self, slot: int) -> None:
        KeyLayer.wipe(self, slot)
        StateLayer.wipe(self, slot)

    def shrink(self, rows: int, columns: int) -> None:
        KeyLayer.shrink(self, rows, columns)
        StateLayer.shrink(self, rows, columns)


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
            " slots; forward each row alone, with the cache that the model makes."
        )
    kinds: dict[type, Callable[[Any, SlotState], SlotLayer]] = {**SLOT_LAYERS}
    if LinearAttentionAndSlidingWindowAttentionLayer in map(type, layers):
        kinds[DynamicSlidingWindowLayer] = KeyLayer
    elif widths := [
        layer.sliding_window for layer in layers if type(layer) is DynamicSlidingWindowLayer
    ]:
        shared.window = Window(max(widths), max(max(widths) // 4, slot_layers.SPARE_TOKENS))
    return [kinds[type(like)](like, shared) for like in layers]
