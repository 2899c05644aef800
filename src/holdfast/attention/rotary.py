"""Rotary factors that depend on the length of the text: longrope and dynamic NTK.

Longrope (Ding et al. 2024, arXiv 2402.13753; in Phi-3) has one set of factors for texts up to the
original context and another for longer ones; dynamic NTK has a set for every longer length.
transformers takes them from the longest position of a forward pass, for all of its rows and for new
keys only. So two texts may share a pass, and a text may be read after computed keys, only if their
lengths have the same factors.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

EVERY_LENGTH = range(sys.maxsize)


@dataclass(frozen=True)
class RotaryLengths:
    """The lengths of text that have the same rotary factors.

    Args:
        switch: the longest text that is read with the factors of short texts; None if all texts
            have the same.
        grows: whether every longer text has factors of its own (dynamic NTK); otherwise all of
            them have the same (longrope).
    """

    switch: int | None = None
    grows: bool = False

    @classmethod
    def of(cls, config: Any) -> RotaryLengths:
        """Those of a model, from its text configuration."""
        context = getattr(config, "max_position_embeddings", None)
        for parameters in _sets_of(getattr(config, "rope_parameters", None)):
            kind = parameters.get("rope_type", "default")
            if kind == "longrope" and _differ(parameters):
                return cls(parameters.get("original_max_position_embeddings", context))
            if "dynamic" in str(kind):
                return cls(context, grows=True)
        return cls()

    @property
    def name(self) -> str:
        """The kind of rotary factors, for messages."""
        return "dynamic NTK" if self.grows else "longrope"

    def like(self, length: int) -> range:
        """The lengths of text with the factors of a text of this length."""
        if self.switch is None:
            return EVERY_LENGTH
        if length <= self.switch:
            return range(self.switch + 1)
        return range(length, length + 1) if self.grows else range(self.switch + 1, sys.maxsize)


SAME_FACTORS = RotaryLengths()  # of most models


def _sets_of(parameters: object) -> Iterator[Mapping[str, Any]]:
    """The sets of rotary parameters of a configuration, which may have one per kind of layer."""
    if not isinstance(parameters, Mapping):
        return
    if "rope_type" in parameters:
        yield parameters
    for value in parameters.values():
        yield from _sets_of(value)


def _differ(parameters: Mapping[str, Any]) -> bool:
    """Whether longrope has other factors, or another scale of attention, for long texts."""
    names = ("factor", "mscale")
    return any(parameters.get(f"short_{n}") != parameters.get(f"long_{n}") for n in names)
