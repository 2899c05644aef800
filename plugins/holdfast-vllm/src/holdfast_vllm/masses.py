"""The attention mass on the span of requests that ask for it, kept until it is read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

_REQUESTS = 256  # kept; the oldest is forgotten first
_TOKENS = 8192  # of a request


@dataclass
class Masses:
    """By the name of the request, per drawn token the mass of each layer, float32 [head].

    Args:
        at_most: requests that are kept.
        by_name: what is known of each.
        fetch: brings what a graph has left on its device, before anything is read.
    """

    at_most: int = _REQUESTS
    by_name: OrderedDict[str, list[dict[int, np.ndarray]]] = field(default_factory=OrderedDict)
    fetch: Callable[[], None] = lambda: None

    def note(self, name: str, layer: int, mass: Tensor) -> None:
        """Keeps the mass [head] of a layer; a layer that was there begins the next token."""
        tokens = self.by_name.setdefault(name, [])
        if not tokens or layer in tokens[-1]:
            if len(tokens) >= _TOKENS:
                return
            tokens.append({})
        tokens[-1][layer] = mass.float().cpu().numpy().copy()  # not the batch's whole tensor
        while len(self.by_name) > self.at_most:
            self.by_name.popitem(last=False)

    def read(self, name: str) -> dict[str, Any] | None:
        """The masses of a request; None where there are none.

        Returns:
            "mass", per drawn token the mean over layers and heads; "layers", per layer the mean
            over tokens and heads.
        """
        self.fetch()
        tokens = self.by_name.get(name)
        if not tokens:
            return None
        mass = _stacked(tokens)
        return {"mass": mass.mean((0, 1)).tolist(), "layers": mass.mean((1, 2)).tolist()}

    def take(self, name: str) -> list[Any]:
        """The mass of every head, [layer][head][token], which is then forgotten; [] where nothing
        is known.
        """
        self.fetch()
        tokens = self.by_name.pop(name, None)
        return _stacked(tokens).tolist() if tokens else []


def _stacked(tokens: list[dict[int, np.ndarray]]) -> np.ndarray:
    """Float32 [layer, head, token]; 0 where a layer noted nothing."""
    layers = sorted(tokens[0])
    nothing = np.zeros_like(tokens[0][layers[0]])
    return np.stack(
        [np.stack([token.get(layer, nothing) for token in tokens], -1) for layer in layers]
    )
