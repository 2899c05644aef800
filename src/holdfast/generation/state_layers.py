"""Slot layers with recurrent states.

A state cannot undo a token that it has read. So a pass works on a copy, which replaces the state
when the pass is committed.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers.cache_utils import LinearAttentionCacheLayerMixin, LinearAttentionLayer

from holdfast.generation.key_layers import KeyLayer
from holdfast.generation.slot_state import SlotState, States

# the kinds of states
_CONV = "conv"
_RECURRENT = "recurrent"


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
        """Replaces the states of slots by those after some passes, (slots, states) of each."""
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
