"""PRISM-Delta: differential directions of keys and values (Ge et al. 2026, arXiv 2603.10705)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from holdfast.methods.fitted import Fitted
from holdfast.methods.heads import HeadSet
from holdfast.methods.key_heads import (
    DISTANCE,
    KeyMethod,
    chosen_heads,
    layers_of_heads,
    moved,
    projection,
)
from holdfast.methods.parameters import KEY_HEADS, fitted_file, method, number, parameter

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@method
class Prism(KeyMethod):
    """Amplifies keys, and on request values, of the span where relevant ones differ from others.

    Published: k' = k + g w P k with P the projection on as many first left singular vectors of
    Omega+ - Omega- = H^T (H+ - H-) / n as make up `coverage` of its singular values, and w =
    softplus(d - delta) of each head, d the mean distance between its relevant and irrelevant keys;
    the same for values. As in the paper no head is switched off (the authors' program leaves out
    those with d below delta), and d is the mean of distances, as SEKA has it. Ours: the data that
    `holdfast fit prism` makes.
    """

    name: ClassVar[str] = "prism"
    source: ClassVar[str] = "Ge et al. 2026, arXiv 2603.10705"

    file: Fitted = parameter(*fitted_file("prism"))
    gain: float = parameter("of keys; 0 leaves them as they are", number(0), "0.4", default=0.4)
    value_gain: float = parameter("of values; 0 leaves them as they are", number(0), default=0.0)
    coverage: float = parameter(
        "gamma, the share of the singular values that the directions make up",
        number(0, 1, above_low=True),
        default=0.9,
    )
    offset: float = parameter(
        "delta, taken from the distance in each head", number(0), default=0.08
    )
    heads: HeadSet | None = parameter(*KEY_HEADS, default=None)

    @property
    def touched_layers(self) -> frozenset[int]:
        """Those that have a chosen head."""
        return layers_of_heads(self.file, 0.0, self.heads)

    @property
    def edits_values(self) -> bool:
        """Whether values are amplified too."""
        return self.value_gain != 0

    def edit_keys(self, keys: Tensor, layer: int, query: Tensor | None = None) -> Tensor:
        """The amplified keys, [row, token, key-value head, size]."""
        return moved(keys, _matrices(self, "keys", layer, keys.device)) if self.gain else keys

    def edit_values(self, values: Tensor, layer: int) -> Tensor:
        """The amplified values, [row, token, key-value head, size]."""
        if not self.edits_values:
            return values
        return moved(values, _matrices(self, "values", layer, values.device))


@lru_cache(maxsize=1024)
def _matrices(method: Prism, part: str, layer: int, device: torch.device) -> Tensor:
    """g w P of each head, [head, size, size]; 0 on those that are not chosen."""
    import torch

    file, index = method.file, method.file.index_of(layer)
    gain, distances = (
        (method.gain, DISTANCE) if part == "keys" else (method.value_gain, "values.distance")
    )
    with torch.inference_mode(False):  # it is kept for passes with gradients too
        vectors, values = (file.tensor(f"{part}.{x}", device)[index] for x in ("vectors", "values"))
        distance = file.tensor(distances, device)[index]
        weight = gain * torch.nn.functional.softplus(distance - method.offset)
        weight = weight * chosen_heads(file, 0.0, method.heads, layer, device)
        return weight[:, None, None] * projection(vectors, values, method.coverage)
