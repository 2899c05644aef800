"""Slot layers: what each kind of layer keeps of the sequences in a model's slots.

KeyLayer     keys and values of every token
WindowLayer  keys and values of the tokens that a window or a chunk can see
StateLayer   recurrent states
HybridLayer  keys, values and recurrent states
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from transformers.cache_utils import (
    DynamicLayer,
    DynamicSlidingWindowLayer,
    LinearAttentionAndFullAttentionLayer,
    LinearAttentionAndSlidingWindowAttentionLayer,
    LinearAttentionLayer,
)

from holdfast.errors import ModelError
from holdfast.generation.key_layers import CacheLayer, DummyLayer, KeyLayer, WindowLayer
from holdfast.generation.slot_state import SlotState, Window
from holdfast.generation.state_layers import HybridLayer, StateLayer

SPARE_TOKENS = 256  # tokens that a windowed layer may keep beyond its window, at least
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
