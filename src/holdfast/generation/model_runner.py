"""The interface of a model for the scheduler: a `TransformersRunner`, or a runner of a plug-in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from holdfast.attention import RotaryLengths
from holdfast.generation.batch import SequenceGroup
from holdfast.generation.saved_kv import SavedKV


@dataclass(frozen=True)
class Output:
    """The outputs of a forward pass, with one row per sequence."""

    logits: Tensor  # of the last tokens, [row, token, vocabulary]
    # mass on the span at the last token, float32 [row, layer, head]; None unless traced
    mass: Tensor | None
    # the keys and values after the pass; None if they are in slots
    cache: Cache | None
    # the mass under uniform attention, float32 [row, layer]; None unless traced
    uniform: Tensor | None = None


class Slots(Protocol):
    """The KV cache of running sequences: each has a slot, from `open` to `close`."""

    @property
    def lengths(self) -> list[int]:
        """Number of computed tokens, by slot."""

    def expect(self, slots: int, tokens: int) -> None:
        """Makes room for `slots` slots in all, of which new ones have up to `tokens` tokens."""

    def open(self, kv: Any, reusable_len: int | None = None) -> None:
        """Opens the next slot for a sequence.

        Args:
            kv: keys and values of the sequence's first tokens, from `copy_kv`; None for none.
            reusable_len: how many first tokens may be requested later; None: all.
        """

    def add(self, kv: Any) -> None:
        """Appends further keys and values to the last slot."""

    def copy_kv(self, slot: int, count: int | None = None, start: int = 0) -> SavedKV | None:
        """Copies the keys and values of the tokens from `start` up to `count` (None: to the
        end) in a slot. Returns None if they are not available.
        """

    def commit(self, slots: Sequence[int], ends: Sequence[int]) -> None:
        """Counts the tokens before `ends` as computed, after the passes that wrote them."""

    def close(self, slot: int, *, wipe: bool = False) -> None:
        """Closes a slot and moves the last sequence into it; `wipe` zeroes the slot first."""

    def shrink(self) -> None:
        """Releases the memory of closed slots."""


class ModelRunner(Protocol):
    """A model that forwards sequences in shared passes."""

    @property
    def name(self) -> str:
        """The model's name, for messages."""

    @property
    def context(self) -> int | None:
        """The length of the model's context in tokens; None if unknown."""

    @property
    def device(self) -> torch.device:
        """The device that the model runs on."""

    @property
    def rotary(self) -> RotaryLengths:
        """Which text lengths have the same rotary factors."""

    @property
    def batched(self) -> bool:
        """Whether sequences of different lengths can share a pass."""

    @property
    def small(self) -> bool:
        """Whether a step is too short to be split among several threads."""

    @property
    def sees_all(self) -> bool:
        """Whether every layer attends to all previous tokens, and keys and values that were saved
        in pieces can be put together.
        """

    @property
    def splits_prompts(self) -> bool:
        """Whether the last token of a prompt that may be repeated is forwarded in a separate
        pass.
        """

    @property
    def supports_chunked_prefill(self) -> bool:
        """Whether several tokens can be forwarded at once after computed ones."""

    def slots(self) -> Slots:
        """Returns a new KV cache without slots in use."""

    def forward_slots(
        self, slots: Any, which: Sequence[int], group: SequenceGroup, num_logits: int = 1
    ) -> Output:
        """Forwards the pending tokens of some slots, which `slots.commit` then counts as computed.

        Args:
            slots: the slots, from `slots()`.
            which: the numbers of the slots to forward.
            group: the sequences in these slots.
            num_logits: how many last tokens of each sequence get logits.
        """
