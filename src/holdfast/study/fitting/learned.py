"""What was learned for a method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class Learned:
    """What was learned for a method on a model.

    Args:
        tensors: float32, the first dimension that of `layers`.
        layers: of the model, in order.
        chosen: those that are steered unless others are named.
        of_keys: whether heads of keys are in it.
        told: what else there is to say of it.
    """

    tensors: Mapping[str, Tensor]
    layers: tuple[int, ...]
    chosen: tuple[int, ...]
    of_keys: bool = False
    told: Mapping[str, Any] = field(default_factory=dict)
