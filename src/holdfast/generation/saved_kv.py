"""Keys and values that outlive the pass that computed them, so that no token is forwarded twice.

SavedKV       keys and values of a sequence's first tokens, outside the slots; those of a
              `TransformersRunner` are a `SavedLayerKV`
CachedPrefix  the first tokens of a prompt, with the keys and values that can be reused for them

They can be reused only for the same token ids under the same steering.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from holdfast.attention import EVERY_LENGTH
from holdfast.chat.emphasis import Span
from holdfast.methods.compiled import CompiledMethods


class SavedKV(Protocol):
    """Keys and values of a sequence's first tokens, for slots of the same implementation.

    Long prefixes may be split into pieces, each with the tokens `start` to `tokens`.
    """

    @property
    def tokens(self) -> int:
        """Number of the sequence's tokens up to the end of this piece."""

    @property
    def start(self) -> int:
        """Index of the first token in this piece."""

    @property
    def min_prefix_len(self) -> int:
        """Length of the shortest prefix for which these keys and values can be used."""

    @property
    def rotary_lengths(self) -> range:
        """The text lengths whose rotary factors equal those of these keys."""

    @property
    def size(self) -> int:
        """Size in bytes."""

    def first(self, count: int) -> SavedKV:
        """Returns the keys and values of the sequence's first `count` tokens."""

    def copy(self) -> SavedKV:
        """Returns a copy in newly allocated memory."""


@dataclass(frozen=True)
class SavedLayerKV:
    """Keys, values and states of the first tokens of a sequence, by layer."""

    tokens: int  # number of the sequence's tokens up to the end of this piece
    # per layer, keys and values, [head, token, size]; () for a layer that keeps none
    layers: tuple[tuple[Tensor, ...], ...]
    # per layer, the states after these tokens; {} for a layer that is not recurrent
    states: tuple[Mapping[tuple[str, int], Tensor], ...]
    cut: int = 0  # the first token that windowed layers still have
    # length of the shortest prefix for which these can be used: with states, all tokens; with
    # windows, so many that the whole window is still there
    min_prefix_len: int = 0
    start: int = 0  # index of the first token in this piece, in layers that keep all tokens
    # the text lengths whose rotary factors equal those of these keys
    rotary_lengths: range = EVERY_LENGTH

    @property
    def size(self) -> int:
        """Size in bytes."""
        tensors = sum(tensor.nbytes for layer in self.layers for tensor in layer)
        return tensors + sum(tensor.nbytes for states in self.states for tensor in states.values())

    def first(self, count: int) -> SavedLayerKV:
        """Returns the keys and values of the sequence's first `count` tokens, as views."""
        # counted from the end: a windowed layer has fewer tokens, but the same last one
        dropped = self.tokens - count
        views = tuple(
            tuple(tensor[:, : tensor.shape[1] - dropped] for tensor in layer)
            for layer in self.layers
        )
        return replace(self, tokens=count, layers=views)

    def copy(self) -> SavedLayerKV:
        """Returns a copy in newly allocated memory; views would keep the original tensors alive."""
        layers = tuple(tuple(tensor.clone() for tensor in layer) for layer in self.layers)
        return replace(self, layers=layers)


@dataclass(eq=False)
class CachedPrefix:
    """The first tokens of a prompt, with the keys and values computed for them."""

    token_ids: tuple[int, ...]
    span: tuple[bool, ...]
    pass_methods: CompiledMethods  # under which the keys and values were computed
    # may cover only some of the first tokens; None if not computed, or evicted
    kv: SavedKV | None
    # the text of these tokens and its emphasised parts, by which a rendered chat is found to
    # continue them; the engine does not read it
    text: str = ""
    text_spans: tuple[Span, ...] = ()

    def shared_with(
        self, token_ids: tuple[int, ...], span: tuple[bool, ...], pass_methods: CompiledMethods
    ) -> int:
        """Returns how many first tokens of another prompt can use these keys and values.

        The last token of the prompt is never counted, since it has to be forwarded. If the methods
        differ, only the tokens before the span count: later tokens have read a steered span. Keys
        can be used only with the same rotary factors; recurrent states, only by prompts that begin
        with all of these tokens; windows, only by prompts that diverge near the end.
        """
        if self.kv is None or len(token_ids) not in self.kv.rotary_lengths:
            return 0
        shared = min(
            shared_prefix_len(self.token_ids, token_ids), shared_prefix_len(self.span, span)
        )
        shared = min(shared, len(token_ids) - 1)
        if pass_methods != self.pass_methods:
            if pass_methods.affects_pre_span or self.pass_methods.affects_pre_span:
                return 0
            if True in span[:shared]:
                shared = span.index(True)
        shared = min(shared, self.kv.tokens)
        return shared if shared >= self.kv.min_prefix_len else 0

    def is_continued_by(self, longer: CachedPrefix) -> bool:
        """Whether `longer` begins with a copy of the same keys and values."""
        kv = self.kv
        longer_kv = longer.kv
        if kv is None or longer_kv is None:
            return False
        return (
            longer_kv.tokens >= kv.tokens
            and not longer_kv.min_prefix_len
            and longer_kv.rotary_lengths == kv.rotary_lengths
            and longer.pass_methods == self.pass_methods
            and longer.token_ids[: len(self.token_ids)] == self.token_ids
            and longer.span[: len(self.span)] == self.span
        )

    def become(self, longer: CachedPrefix) -> None:
        """Takes over all fields of a prefix that continues this one."""
        self.token_ids = longer.token_ids
        self.span = longer.span
        self.kv = longer.kv
        self.text = longer.text
        self.text_spans = longer.text_spans

    @property
    def size(self) -> int:
        """Size of the keys and values in bytes."""
        return 0 if self.kv is None else self.kv.size


def shared_prefix_len(first: ArrayLike, second: ArrayLike) -> int:
    """The number of first tokens in which two prompts agree, or first flags of two spans."""
    left = np.asarray(first)
    right = np.asarray(second)
    shortest = min(len(left), len(right))
    differ = left[:shortest] != right[:shortest]
    return int(differ.argmax()) if differ.any() else shortest
