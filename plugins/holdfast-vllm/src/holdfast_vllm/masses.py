"""The attention mass on the span of requests with a trace, kept until it is read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

_MAX_REQUESTS = 256  # the oldest is dropped first
_MAX_TOKENS = 8192  # per request


@dataclass
class Masses:
    """The mass per request name, drawn token and layer, float32 [head].

    Args:
        max_requests: how many requests to keep.
        by_name: the masses of each request.
        fetch: called before reading, to fetch masses that a CUDA graph left on its device.
    """

    max_requests: int = _MAX_REQUESTS
    by_name: OrderedDict[str, list[dict[int, np.ndarray]]] = field(default_factory=OrderedDict)
    fetch: Callable[[], None] = lambda: None

    def record(self, name: str, layer: int, mass: Tensor) -> None:
        """Adds a layer's mass [head].

        If the layer already has a mass for the latest token, this begins the next token.
        """
        tokens = self.by_name.setdefault(name, [])
        if not tokens or layer in tokens[-1]:
            if len(tokens) >= _MAX_TOKENS:
                return
            tokens.append({})
        # copied, as a view would keep the batch's whole tensor alive
        tokens[-1][layer] = mass.float().cpu().numpy().copy()
        while len(self.by_name) > self.max_requests:
            self.by_name.popitem(last=False)

    def read(self, name: str) -> dict[str, Any] | None:
        """Averages the masses of a request; None if there are none.

        Returns:
            "mass", per drawn token the mean over layers and heads; "layers", per layer the mean
            over tokens and heads.
        """
        self.fetch()
        tokens = self.by_name.get(name)
        if not tokens:
            return None
        mass = _stack(tokens)
        return {"mass": mass.mean((0, 1)).tolist(), "layers": mass.mean((1, 2)).tolist()}

    def take(self, name: str) -> list[Any]:
        """Removes and returns a request's mass on every head, [layer][head][token].

        Returns [] for an unknown request.
        """
        self.fetch()
        tokens = self.by_name.pop(name, None)
        return _stack(tokens).tolist() if tokens else []


def _stack(tokens: list[dict[int, np.ndarray]]) -> np.ndarray:
    """Stacks masses, float32 [layer, head, token]; 0 where a layer has recorded nothing."""
    layers = sorted(tokens[0])
    nothing = np.zeros_like(tokens[0][layers[0]])
    return np.stack(
        [np.stack([token.get(layer, nothing) for token in tokens], -1) for layer in layers]
    )
