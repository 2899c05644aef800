"""Computes moved attention weights from scores, on any device.

The methods move the log-odds x = lse(scores on the span) - lse(scores on the rest) to x', and leave
the ratios inside each group unchanged. So the weights are sigmoid(x') times the softmax over the
span plus sigmoid(-x') times the softmax over the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from holdfast.attention.layer_shifts import LayerShift, MethodSequence, method_groups
from holdfast.methods import HeadSet, ShiftsAttention, compile_methods
from holdfast.methods.compiled import head_tables
from holdfast.methods.heads import with_heads
from holdfast.methods.table import LayerTable, layer_table
from holdfast_vllm.moves import VisibleKeys

_MAX_CACHED = 1024  # shifts and lists of methods, reused by later passes
Methods = tuple[ShiftsAttention, ...]


def move_weights(
    scores: Tensor, visible_keys: VisibleKeys, shift: LayerShift, records_mass: bool
) -> tuple[Tensor, Tensor | None]:
    """Computes the moved weights, and the mass on the span.

    Args:
        scores: float32 [row, head, query, key], scaled; any finite value for invisible keys.
        visible_keys: two groups, or three with a `MethodSequence`.
        shift: the shift of the rows in this layer.
        records_mass: whether the mass is requested.

    Returns:
        Weights like `scores`, and the mass, float32 [row, head, query]; None if it is not requested
        and did not have to be computed.
    """
    if isinstance(shift, LayerTable) and shift.only_adds and not records_mass:
        bias = shift.numbers[0, :, :, None, None]
        masked = scores + visible_keys.mask
        return torch.addcmul(masked, bias, visible_keys.first_group).softmax(-1), None
    grouped = scores + visible_keys.bias
    weights = grouped.softmax(-1)
    # the highest score's weight is exp(score - lse), which is at least 1 / the number of keys
    lse = grouped.amax(-1) - weights.amax(-1).log_()
    sees_none = visible_keys.sees_none
    if len(grouped) == 3:
        lse = lse if sees_none is None else lse.masked_fill_(sees_none, -torch.inf)
        return _move_three(weights, lse, shift)
    log_odds = lse[0] - lse[1]
    if sees_none is not None:
        log_odds.masked_fill_(sees_none[1], torch.inf).masked_fill_(sees_none[0], -torch.inf)
    mass = shift.mass(log_odds)
    return torch.lerp(weights[1], weights[0], mass.unsqueeze(-1)), mass


def _move_three(weights: Tensor, lse: Tensor, shift: LayerShift) -> tuple[Tensor, Tensor]:
    """Moves weights of three groups: span, generated tokens and rest."""
    assert isinstance(shift, MethodSequence)
    span, generated = shift.shift_log_masses(*lse)
    shares = torch.stack([span, generated, lse[2]]).softmax(0)
    return (weights * shares.unsqueeze(-1)).sum(0), shares[0]


@lru_cache(_MAX_CACHED)
def shift_of(rows: tuple[Methods, ...], layer: int, heads: int, three: bool) -> LayerShift:
    """Returns the shift of the rows' log-odds in a layer of `heads` heads.

    If three numbers cannot express the methods, or if keys are in three groups, the methods are
    applied one after another.
    """
    compiled = [compile_methods(methods) for methods in rows]
    tables = head_tables(compiled)
    if tables is not None and not three:
        return layer_table(tables, layer, heads, torch.float32)
    return MethodSequence(method_groups(compiled, "cpu"), layer, heads)


def touches(rows: Sequence[Methods], layer: int) -> bool:
    """Whether a method of any row moves a head of this layer."""
    return any(
        method.heads is None or any(named == layer for named, _ in method.heads)
        for methods in rows
        for method in methods
    )


class RankHeads(NamedTuple):
    """The heads of each layer that a tensor-parallel rank has."""

    first: int  # the model's number of the first one
    num_heads: int


@lru_cache(_MAX_CACHED)
def on_rank(methods: Methods, heads: RankHeads) -> Methods:
    """Restricts the methods of a row to a rank's heads, which are numbered from 0 in the rank."""
    rank_methods: list[ShiftsAttention] = []
    for method in methods:
        if method.heads is None:
            rank_methods.append(method)
            continue
        rank_heads = HeadSet(
            (layer, head - heads.first)
            for layer, head in method.heads
            if heads.first <= head < heads.first + heads.num_heads
        )
        if rank_heads:
            rank_methods.append(with_heads(method, rank_heads))
    return tuple(rank_methods)
