"""The attention mass on the span, for requests that ask for it, kept until it is read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

_REQUESTS = 256  # how many to keep; the oldest is dropped first
_TOKENS = 8192  # at most, per request


@dataclass
class Masses:
    """The mass per request name, drawn token and layer, float32 [head].

    Args:
        at_most: how many requests to keep.
        by_name: the masses of each request.
        fetch: called before reading, to fetch what a graph left on its device.
    """

    at_most: int = _REQUESTS
    by_name: OrderedDict[str, list[dict[int, np.ndarray]]] = field(default_factory=OrderedDict)
    fetch: Callable[[], None] = lambda: None

    def note(self, name: str, layer: int, mass: Tensor) -> None:
        """Adds a layer's mass [head]; a layer already noted for this token begins the next one."""
        tokens = self.by_name.setdefault(name, [])
        if not tokens or layer in tokens[-1]:
            if len(tokens) >= _TOKENS:
                return
            tokens.append({})
        tokens[-1][layer] = mass.float().cpu().numpy().copy()  # not the batch's whole tensor
        while len(self.by_name) > self.at_most:
            self.by_name.popitem(last=False)

    def read(self, name: str) -> dict[str, Any] | None:
        """The masses of a request; None if there are none.

        Returns:
            "mass", the mean over layers and heads per drawn token; "layers", the mean over tokens
            and heads per layer.
        """
        self.fetch()
        tokens = self.by_name.get(name)
        if not tokens:
            return None
        mass = _stacked(tokens)
        return {"mass": mass.mean((0, 1)).tolist(), "layers": mass.mean((1, 2)).tolist()}

    def take(self, name: str) -> list[Any]:
        """Removes and returns the mass of every head, [layer][head][token]; [] for an unknown
        request.
        """
        self.fetch()
        tokens = self.by_name.pop(name, None)
        return _stacked(tokens).tolist() if tokens else []


def _stacked(tokens: list[dict[int, np.ndarray]]) -> np.ndarray:
    """The masses, float32 [layer, head, token]; 0 where a layer noted nothing."""
    layers = sorted(tokens[0])
    nothing = np.zeros_like(tokens[0][layers[0]])
    return np.stack(
        [np.stack([token.get(layer, nothing) for token in tokens], -1) for layer in layers]
    )
