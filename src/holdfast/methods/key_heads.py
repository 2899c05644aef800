"""Fitted heads of methods that edit keys, chosen by how well they tell relevance.

A file of theirs has, per layer and key-value head, singular vectors and values of a covariance of
keys, and the mean distance between keys of relevant and irrelevant tokens.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from holdfast.methods.fitted import Fitted
from holdfast.methods.heads import HeadSet

if TYPE_CHECKING:
    import torch
    from torch import Tensor

DISTANCE = "distance"  # tensor [layer, head]


@lru_cache(maxsize=256)
def layers_of_heads(file: Fitted, threshold: float, heads: HeadSet | None) -> frozenset[int]:
    """The layers that have a chosen head."""
    return frozenset(
        layer
        for layer in file.layers
        if bool(chosen_heads(file, threshold, heads, layer, "cpu").any())
    )


def chosen_heads(
    file: Fitted,
    threshold: float,
    heads: HeadSet | None,
    layer: int,
    device: torch.device | str,
) -> Tensor:
    """Bool [head], True on those that are named and whose distance reaches the threshold."""
    distance = file.tensor(DISTANCE, device)[file.index_of(layer)]
    chosen = distance >= threshold
    if heads is not None:
        for head in range(len(chosen)):
            if (layer, head) not in heads:
                chosen[head] = False
    return chosen


def rank_covering(values: Tensor, coverage: float) -> Tensor:
    """How many first singular values make up `coverage` of their sum, at least one; int [...].

    Args:
        values: [..., size], in descending order.
        coverage: gamma, in (0, 1].
    """
    below = values.cumsum(-1) < coverage * values.sum(-1, keepdim=True)
    return (below.sum(-1) + 1).clamp(max=values.shape[-1])


def projection(vectors: Tensor, kept: Tensor) -> Tensor:
    """The projection U U^T, [..., size, size], on those columns of U that are kept, bool [...,
    size].
    """
    columns = vectors * kept[..., None, :]
    return columns @ columns.transpose(-1, -2)


def first(rank: Tensor, size: int) -> Tensor:
    """Bool [..., size], True on the first `rank` [...]."""
    import torch

    return torch.arange(size, device=rank.device) < rank[..., None]


def moved(states: Tensor, matrices: Tensor) -> Tensor:
    """The states with M x added, in their dtype; computed in float32 or wider.

    Args:
        states: x, [row, token, head, size].
        matrices: M of each head, [head, size, size].
    """
    import torch

    wide = torch.promote_types(states.dtype, torch.float32)
    x = states.to(wide)
    added = torch.einsum("rthi,hji->rthj", x, matrices.to(wide))
    return (x + added).to(states.dtype)
