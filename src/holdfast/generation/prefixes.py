"""Keys and values that outlive the pass that computed them, so that no token is forwarded twice.

They depend on the token ids and on the steering under which they were computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from holdfast.attention import EVERY_LENGTH
from holdfast.methods.compiled import CompiledMethods


class KeysValues(Protocol):
    """Keys and values of a row's first tokens, which only slots of the same kind can read."""

    @property
    def tokens(self) -> int:
        """How many first tokens of the row it covers."""

    @property
    def start(self) -> int:
        """The first token included; those before are in another piece."""

    @property
    def least(self) -> int:
        """Length of the shortest prefix that it can serve."""

    @property
    def rotary_lengths(self) -> range:
        """The lengths of text that are read with the rotary factors of these keys."""

    @property
    def size(self) -> int:
        """In bytes."""

    def first(self, count: int) -> KeysValues:
        """Those of the first `count` tokens."""

    def copied(self) -> KeysValues:
        """A copy in its own memory."""


@dataclass(frozen=True)
class LayerKeysValues:
    """Keys, values and states of the first tokens of one row, by layer."""

    tokens: int  # number of tokens
    # per layer, keys and values, [head, token, size]; () for a layer that keeps none
    layers: tuple[tuple[Tensor, ...], ...]
    # per layer, the states after these tokens; {} for a layer that is not recurrent
    states: tuple[Mapping[tuple[str, int], Tensor], ...]
    cut: int = 0  # the first token that windowed layers have kept
    # length of the shortest prefix they can serve: all tokens if there are states, and with windows
    # enough tokens that the window is kept
    least: int = 0
    start: int = 0  # the first token included, in layers that keep all tokens
    # the lengths of text that are read with the rotary factors of these keys
    rotary_lengths: range = EVERY_LENGTH

    @property
    def size(self) -> int:
        """In bytes."""
        tensors = sum(tensor.nbytes for layer in self.layers for tensor in layer)
        return tensors + sum(tensor.nbytes for states in self.states for tensor in states.values())

    def first(self, count: int) -> LayerKeysValues:
        """The keys and values of the first `count` tokens, as views."""
        behind = self.tokens - count  # a windowed layer has fewer tokens, and the same last one
        views = tuple(
            tuple(tensor[:, : tensor.shape[1] - behind] for tensor in layer)
            for layer in self.layers
        )
        return replace(self, tokens=count, layers=views)

    def copied(self) -> LayerKeysValues:
        """A copy in its own memory; views would keep the original tensors alive."""
        layers = tuple(tuple(tensor.clone() for tensor in layer) for layer in self.layers)
        return replace(self, layers=layers)


@dataclass(eq=False)
class Prefix:
    """The first tokens of a dialog, with the keys and values computed for them."""

    token_ids: tuple[int, ...]
    span: tuple[bool, ...]
    compiled: CompiledMethods  # the methods under which the keys and values were made
    # of the first tokens, perhaps not of all; None if they are not computed, or were evicted
    keys_values: KeysValues | None

    def shared_with(
        self, token_ids: tuple[int, ...], span: tuple[bool, ...], compiled: CompiledMethods
    ) -> int:
        """How many first tokens of another prompt, without its last, can use these keys and values.

        Under other methods, only those before the span: from there on, what a token has read was
        steered. States serve only prompts that begin with all their tokens; windows serve prompts
        that diverge near the end. Keys serve only prompts with the same rotary factors.
        """
        if self.keys_values is None or len(token_ids) not in self.keys_values.rotary_lengths:
            return 0
        shared = min(common_length(self.token_ids, token_ids), common_length(self.span, span))
        shared = min(shared, len(token_ids) - 1)
        other = compiled != self.compiled
        if other and (compiled.affects_pre_span or self.compiled.affects_pre_span):
            return 0
        if other and True in span[:shared]:
            shared = span.index(True)
        shared = min(shared, self.keys_values.tokens)
        return shared if shared >= self.keys_values.least else 0

    @property
    def size(self) -> int:
        """Bytes of the keys and values."""
        return 0 if self.keys_values is None else self.keys_values.size


@dataclass(eq=False)
class Reuse:
    """The first tokens of a prompt that a prefix has computed.

    Dropped once they are copied to where the prompt runs, so that rows that run do not keep an
    earlier state of a dialog in memory.
    """

    prefix: Prefix | None
    count: int  # of the prompt's tokens; at least one is left

    @property
    def keys_values(self) -> KeysValues | None:
        """Those of the prefix; None if they were evicted or dropped, or are of no use."""
        return self.prefix.keys_values if self.prefix is not None and self.count else None

    def drop(self) -> None:
        """Lets go of the prefix."""
        self.prefix = None


def common_length(first: ArrayLike, second: ArrayLike) -> int:
    """The length of the common prefix."""
    left = np.asarray(first)
    right = np.asarray(second)
    shortest = min(len(left), len(right))
    differ = left[:shortest] != right[:shortest]
    return int(differ.argmax()) if differ.any() else shortest
