"""SEKA: spectral editing of keys (Li et al. 2026, arXiv 2603.01281)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from holdfast.methods.fitted import Fitted
from holdfast.methods.heads import HeadSet
from holdfast.methods.key_heads import (
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
class Seka:
    """Amplifies the keys of the span along directions in which relevant keys lie.

    Published: k' = k + (g+ P+ k + g- P- k) / 2 for the keys of the span, on heads whose mean
    distance between relevant and irrelevant keys is at least delta_min. With Omega+ = H^T H+ / n of
    the keys of the same tokens in a neutral and in a relevant prompt, P+ projects on as many first
    left singular vectors of Omega+ as make up `coverage` (gamma) of its singular values; P-, of the
    irrelevant prompt, on those behind as many. Ours: the data that `holdfast fit seka` makes.

    Args:
        file: what `holdfast fit seka` wrote.
        gain: g+, at least 0; with both gains 0 nothing changes.
        rest_gain: g-, at least 0.
        coverage: gamma, above 0 to 1.
        threshold: delta_min, in the model's own units of keys; 0 takes every head.
        heads: (layer, key-value head) pairs; None for all. A key-value head serves all query heads
            that read it: with grouped queries, head h those from h * n to h * n + n - 1.

    Raises:
        ParameterOutOfRange: a parameter outside its range.
        UsageError: the file is none, or was fitted for another method.
    """

    name: ClassVar[str] = "seka"
    kind: ClassVar[Kind] = Kind.KEYS
    source: ClassVar[str] = "Li et al. 2026, arXiv 2603.01281"
    reads_query: ClassVar[bool] = False
    edits_values: ClassVar[bool] = False

    file: Fitted = field(metadata=fitted_file("seka"))
    gain: float = field(
        default=1.0,
        metadata=parameter("g+, along relevant directions; 0 changes nothing", Number(0), "1"),
    )
    rest_gain: float = field(
        default=0.0, metadata=parameter("g-, along directions of irrelevant keys", Number(0))
    )
    coverage: float = field(
        default=0.9,
        metadata=parameter(
            "gamma, the share of the singular values that the directions make up",
            Number(0, 1, above_low=True),
        ),
    )
    threshold: float = field(
        default=0.0,
        metadata=parameter(
            "the least distance of relevant from irrelevant keys in a head", Number(0)
        ),
    )
    heads: HeadSet | None = field(default=None, metadata=KEY_HEADS)

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def touched_layers(self) -> frozenset[int]:
        """Those that have a chosen head."""
        return layers_of_heads(self.file, self.threshold, self.heads)

    def edit_keys(self, keys: Tensor, layer: int, query: Tensor | None = None) -> Tensor:
        """The amplified keys, [row, token, key-value head, size]."""
        if self.gain == 0 and self.rest_gain == 0:
            return keys
        return moved(keys, _matrices(self, layer, keys.device))

    def edit_values(self, values: Tensor, layer: int) -> Tensor:
        """The values as they are."""
        return values


@lru_cache(maxsize=1024)
def _matrices(method: Seka, layer: int, device: torch.device) -> Tensor:
    """(g+ P+ + g- P-) / 2 of each head, [head, size, size]; 0 on those that are not chosen."""
    import torch

    file, index = method.file, method.file.index_of(layer)

    def part(sign: str, *, behind: bool) -> Tensor:
        vectors = file.tensor(f"{sign}.vectors", device)[index]
        rank = rank_covering(file.tensor(f"{sign}.values", device)[index], method.coverage)
        kept = first(rank, vectors.shape[-1])
        return projection(vectors, ~kept if behind else kept)

    with torch.inference_mode(False):  # it is kept for passes with gradients too
        both = method.gain * part("positive", behind=False)
        if method.rest_gain:
            both = both + method.rest_gain * part("negative", behind=True)
        chosen = chosen_heads(file, method.threshold, method.heads, layer, device)
        return both * chosen[:, None, None] / 2
