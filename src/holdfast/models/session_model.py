"""The model of a `LocalSession`: a `LocalModel`, or a plug-in's model with its own runner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from transformers import PreTrainedTokenizerFast

from holdfast.generation.row_runner import RowRunner
from holdfast.generation.scheduler import Scheduler, Serving
from holdfast.methods import Method


class SessionModel(Protocol):
    """The part of a `LocalModel` that its sessions use."""

    @property
    def name(self) -> str:
        """The model's name, for messages."""

    @property
    def fingerprint(self) -> str:
        """A digest that changes with its weights, its configuration and its template."""

    @property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        """Its fast tokenizer, which has a chat template."""

    @property
    def stop_ids(self) -> frozenset[int]:
        """The tokens that end a reply."""

    @property
    def steerable(self) -> bool:
        """Whether the attention mass on the prompt can be read and moved."""

    @property
    def context(self) -> int | None:
        """The number of tokens that the model can see; None if unknown."""

    @property
    def batch_size(self) -> int:
        """The most rows forwarded together."""

    @property
    def prefix_bytes(self) -> int:
        """Bytes of keys and values that a session keeps of its dialogs."""

    @property
    def runner(self) -> RowRunner:
        """The model as the engine sees it."""

    def scheduler(self, serving: Serving | None = None) -> Scheduler:
        """Makes a scheduler without rows."""

    def check(self, methods: Sequence[Method]) -> None:
        """Raises a `ModelError` or a `UsageError` for methods that the model cannot apply."""
