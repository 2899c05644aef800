"""PRISM-Delta: differential directions of keys and values (Ge et al. 2026, arXiv 2603.10705)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from holdfast.methods.fitted import Fitted
from holdfast.methods.heads import HeadSet
from holdfast.methods.key_heads import (
    DISTANCE,
    chosen_heads,
    first,
    layers_of_heads,
    moved,
    projection,
    rank_covering,
)
from holdfast.methods.kinds import Kind
from holdfast.methods.parameters import KEY_HEADS, Number, check_parameters, fitted_file, parameter

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True)
class Prism:
    """Amplifies keys, and on request values, of the span where relevant ones differ from others.

    Published: k' = k + g w P k with P the projection on as many first left singular vectors of
    Omega+ - Omega- = H^T (H+ - H-) / n as make up `coverage` of its singular values, and w =
    softplus(d - delta) of each head, d the mean distance between its relevant and irrelevant keys;
    the same for values. As in the paper no head is switched off (the authors' program leaves out
    those with d below delta), and d is the mean of distances, as SEKA has it. Ours: the data that
    `holdfast fit prism` makes.

    Args:
        file: what `holdfast fit prism` wrote.
        gain: of keys, at least 0.
        value_gain: of values, at least 0; with both gains 0 nothing changes.
        coverage: gamma, above 0 to 1.
        offset: delta, at least 0, in the model's own units.
        heads: (layer, key-value head) pairs, as of `Seka`; None for all.

    Raises:
        ParameterOutOfRange: a parameter outside its range.
        UsageError: the file is none, or was fitted for another method.
    """

    name: ClassVar[str] = "prism"
    kind: ClassVar[Kind] = Kind.KEYS
    source: ClassVar[str] = "Ge et al. 2026, arXiv 2603.10705"
    reads_query: ClassVar[bool] = False

    file: Fitted = field(metadata=fitted_file("prism"))
    gain: float = field(
        default=0.4, metadata=parameter("of keys; 0 leaves them as they are", Number(0), "0.4")
    )
    value_gain: float = field(
        default=0.0, metadata=parameter("of values; 0 leaves them as they are", Number(0))
    )
    coverage: float = field(
        default=0.9,
        metadata=parameter(
            "gamma, the share of the singular values that the directions make up",
            Number(0, 1, above_low=True),
        ),
    )
    offset: float = field(
        default=0.08, metadata=parameter("delta, taken from the distance in each head", Number(0))
    )
    heads: HeadSet | None = field(default=None, metadata=KEY_HEADS)

    def __post_init__(self) -> None:
        check_parameters(self)

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
        if self.gain == 0:
            return keys
        return moved(keys, _matrices(self, "keys", layer, keys.device))

    def edit_values(self, values: Tensor, layer: int) -> Tensor:
        """The amplified values, [row, token, key-value head, size]."""
        if self.value_gain == 0:
            return values
        return moved(values, _matrices(self, "values", layer, values.device))


@lru_cache(maxsize=1024)
def _matrices(method: Prism, part: str, layer: int, device: torch.device) -> Tensor:
    """g w P of each head, [head, size, size]; 0 on those that are not chosen."""
    import torch

    file, index = method.file, method.file.index_of(layer)
    of_keys = part == "keys"
    with torch.inference_mode(False):  # it is kept for passes with gradients too
        vectors = file.tensor(f"{part}.vectors", device)[index]
        rank = rank_covering(file.tensor(f"{part}.values", device)[index], method.coverage)
        distance = file.tensor(DISTANCE if of_keys else "values.distance", device)[index]
        weight = torch.nn.functional.softplus(distance - method.offset)
        weight = weight * (method.gain if of_keys else method.value_gain)
        weight = weight * chosen_heads(file, 0.0, method.heads, layer, device)
        return weight[:, None, None] * projection(vectors, first(rank, vectors.shape[-1]))
