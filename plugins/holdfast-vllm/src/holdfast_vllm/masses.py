"""The attention mass on the span of requests that ask for it, kept until it is read."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

_REQUESTS = 256  # kept; the oldest is forgotten first
_TOKENS = 8192  # of a request


@dataclass
class Masses:
    """By the name of the request, per drawn token the mass of each layer, the mean of its heads."""

    by_name: OrderedDict[str, list[dict[int, float]]] = field(default_factory=OrderedDict)

    def note(self, name: str, layer: int, mass: Tensor) -> None:
        """Keeps the mass [head] of a layer; a layer that was there begins the next token."""
        tokens = self.by_name.setdefault(name, [])
        if not tokens or layer in tokens[-1]:
            if len(tokens) >= _TOKENS:
                return
            tokens.append({})
        tokens[-1][layer] = float(mass.mean())
        while len(self.by_name) > _REQUESTS:
            self.by_name.popitem(last=False)

    def read(self, name: str) -> dict[str, Any] | None:
        """What is known of a request; None where nothing is.

        Returns:
            "mass", per drawn token the mean over layers and heads; "layers", per layer the mean
            over tokens and heads.
        """
        tokens = self.by_name.get(name)
        if not tokens:
            return None
        layers = sorted(tokens[0])
        return {
            "mass": [sum(token.values()) / len(token) for token in tokens],
            "layers": [
                sum(token.get(layer, 0.0) for token in tokens) / len(tokens) for layer in layers
            ],
        }
