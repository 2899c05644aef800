"""A model as rows are generated with it: a `Runner` of transformers, or a plug-in's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch

from holdfast.attention import RotaryLengths
from holdfast.generation.batch import StreamGroup
from holdfast.generation.prefixes import KeysValues
from holdfast.generation.runner import Output


class RowSlots(Protocol):
    """Slots for rows that join and leave, each with what is computed of its row."""

    @property
    def lengths(self) -> list[int]:
        """Tokens that count as computed, by slot."""

    def expect(self, rows: int, columns: int) -> None:
        """Makes room for this many slots, whose joining rows may have this many tokens."""

    def open(self, computed: Any, reusable_len: int | None = None) -> None:
        """Opens the next slot for a row, after keys and values that `computed` returned (None:
        without any); `reusable_len` first tokens may be requested later.
        """

    def add(self, computed: Any) -> None:
        """Appends further keys and values to the last slot."""

    def computed(self, slot: int, count: int | None = None, start: int = 0) -> KeysValues | None:
        """Copies what is computed of a row's first `count` tokens (None: all) from `start` on; None
        if it is not available.
        """

    def commit(self, slots: Sequence[int], ends: Sequence[int]) -> None:
        """Counts the tokens before `ends` as computed, after the passes that wrote them."""

    def close(self, slot: int, *, wipe: bool = False) -> None:
        """Closes a row; the last one moves into its slot. `wipe` zeroes the slot first."""

    def shrink(self) -> None:
        """Releases the memory of closed rows."""


class RowRunner(Protocol):
    """The part of a `Runner` with which the scheduler generates rows in shared passes."""

    @property
    def name(self) -> str:
        """The model's name, for messages."""

    @property
    def context(self) -> int | None:
        """Tokens that it can see; None if unknown."""

    @property
    def device(self) -> torch.device:
        """The device that it runs on."""

    @property
    def rotary(self) -> RotaryLengths:
        """Which lengths of text have the same rotary factors."""

    @property
    def batched(self) -> bool:
        """Whether rows of different length fit into one pass."""

    @property
    def small(self) -> bool:
        """Whether a step is too short to be split among several threads."""

    @property
    def sees_all(self) -> bool:
        """Whether keys and values of successive tokens, saved apart, can be put together."""

    @property
    def splits_prompts(self) -> bool:
        """Whether the last token of a prompt that may be asked again gets a pass of its own."""

    @property
    def supports_chunked_prefill(self) -> bool:
        """Whether several tokens can be forwarded at once after computed ones."""

    def slots(self) -> RowSlots:
        """Empty slots for rows."""

    def forward_slots(
        self, slots: Any, which: Sequence[int], group: StreamGroup, logits: int = 1
    ) -> Output:
        """Forwards the pending tokens of some slots, which `slots.commit` then counts as computed.

        Args:
            slots: as `slots()` returned them.
            which: the slots to forward.
            group: of each of these, its stream.
            logits: of how many last tokens they are wanted.
        """
