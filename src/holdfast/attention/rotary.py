"""Rotary factors that depend on the length of the text: longrope and dynamic NTK.

Longrope (Ding et al. 2024, arXiv 2402.13753; in Phi-3) has one set of factors for texts up to the
original context and another for longer ones; dynamic NTK has a set for every longer length.
transformers chooses the factors by the longest position of a forward pass, for all of its rows, and
applies them only to new keys. So two texts may share a pass only if their lengths have the same
factors, and a text may be continued after computed keys only if its length still has their factors.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

EVERY_LENGTH = range(sys.maxsize)


@dataclass(frozen=True)
class RotaryLengths:
    """Which text lengths have the same rotary factors.

    Args:
        switch: the length up to which texts have the factors of short texts; None if all texts have
            the same factors.
        grows: whether every longer length has different factors (dynamic NTK); otherwise all longer
            lengths share one set (longrope).
    """

    switch: int | None = None
    grows: bool = False

    @classmethod
    def of(cls, config: Any) -> RotaryLengths:
        """Reads a model's text configuration."""
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

    def lengths_like(self, length: int) -> range:
        """Returns the text lengths that have the same factors as this length."""
        if self.switch is None:
            return EVERY_LENGTH
        if length <= self.switch:
            return range(self.switch + 1)
        return range(length, length + 1) if self.grows else range(self.switch + 1, sys.maxsize)


SAME_FACTORS = RotaryLengths()  # for most models: the same factors for all lengths


def _sets_of(parameters: object) -> Iterator[Mapping[str, Any]]:
    """Yields a configuration's sets of rotary parameters; there may be one per kind of layer."""
    if not isinstance(parameters, Mapping):
        return
    if "rope_type" in parameters:
        yield parameters
    for value in parameters.values():
        yield from _sets_of(value)


def _differ(parameters: Mapping[str, Any]) -> bool:
    """Whether longrope has different factors or attention scales for short and long texts."""
    names = ("factor", "mscale")
    return any(parameters.get(f"short_{n}") != parameters.get(f"long_{n}") for n in names)
