"""Fitted heads of methods that edit keys.

A file of theirs has, per layer and key-value head, singular vectors and values of a covariance of
keys, and the mean distance between keys of relevant and irrelevant tokens.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Protocol

from holdfast.methods.fitted import Fitted
from holdfast.methods.heads import HeadSet
from holdfast.methods.kinds import Kind
from holdfast.methods.protocols import EditsKeys

if TYPE_CHECKING:
    import torch
    from torch import Tensor

DISTANCE = "distance"  # tensor [layer, head]


class KeyMethod(EditsKeys, Protocol):
    """A key method that reads no query and leaves values as they are, unless it says otherwise."""

    kind: ClassVar[Kind] = Kind.KEYS

    @property
    def reads_query(self) -> bool:
        """Whether it is given the query of the prompt's last token."""
        return False

    @property
    def edits_values(self) -> bool:
        """Whether `edit_values` does anything."""
        return False

    def edit_values(self, values: Tensor, layer: int) -> Tensor:
        """The values as they are."""
        return values


@lru_cache(maxsize=256)
def layers_of_heads(file: Fitted, threshold: float, heads: HeadSet | None) -> frozenset[int]:
    """The layers that have a chosen head."""
    return frozenset(
        layer for layer in file.layers if chosen_heads(file, threshold, heads, layer, "cpu").any()
    )


def chosen_heads(
    file: Fitted, threshold: float, heads: HeadSet | None, layer: int, device: torch.device | str
) -> Tensor:
    """Bool [head], True on those that are named and whose distance reaches the threshold."""
    import torch

    distance = file.tensor(DISTANCE, device)[file.index_of(layer)]
    named = [heads is None or (layer, head) in heads for head in range(len(distance))]
    return (distance >= threshold) & torch.tensor(named, device=distance.device)


def rank_covering(values: Tensor, coverage: float) -> Tensor:
    """How many first singular values make up `coverage` of their sum, at least one; int [...].

    Args:
        values: [..., size], in descending order.
        coverage: gamma, in (0, 1].
    """
    below = values.cumsum(-1) < coverage * values.sum(-1, keepdim=True)
    return (below.sum(-1) + 1).clamp(max=values.shape[-1])


def projection(vectors: Tensor, values: Tensor, coverage: float, *, behind: bool = False) -> Tensor:
    """The projection U U^T, [..., size, size], on the first columns of U, as many as cover the
    values; with `behind`, on the others.
    """
    import torch

    rank = rank_covering(values, coverage)[..., None]
    kept = torch.arange(vectors.shape[-1], device=rank.device) < rank
    columns = vectors * (~kept if behind else kept)[..., None, :]
    return columns @ columns.transpose(-1, -2)


def moved(states: Tensor, matrices: Tensor) -> Tensor:
    """The states with M x added, in their dtype; computed in float32 or wider.

    Args:
        states: x, [row, token, head, size].
        matrices: M of each head, [head, size, size].
    """
    import torch

    x = states.to(torch.promote_types(states.dtype, torch.float32))
    added = torch.einsum("rthi,hji->rthj", x, matrices.to(x.dtype))
    return (x + added).to(states.dtype)
