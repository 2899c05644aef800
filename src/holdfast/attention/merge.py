# mypy: disable-error-code="no-untyped-call"
"""Steered attention of several queries per row by kernels that return log-sum-exps.

The queries attend to all keys as usual and, on the heads that are moved, to the span once more.
Their output is moved towards that of the span: with pi the mass on the span, pi' the moved mass,

    out' = out + c * (out_span - out),    c = (pi' - pi) / (1 - pi),

so the call over all keys uses the model's masks unchanged, and c = 0 changes no bit. Since methods
raise the mass, c is in [0, 1]. If the rows of a whole prompt share one span, the queries attend to
span and rest separately instead, so that no score is computed twice. No score matrix is stored, and
nothing here reads back from the device. `decode_step.py` does the same for one query per row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import torch
from torch import Tensor
from torch.nn.functional import softplus

from holdfast.attention.fused_kernels import Attended, LayerInputs, attend
from holdfast.attention.key_groups import (
    KeyGroup,
    KeyRange,
    make_key_group,
    slice_mask,
    to_additive,
)
from holdfast.attention.layer_shifts import LayerShift
from holdfast.attention.passes import PassState

# queries per block when outputs are merged, so that a block stays in the processor's caches
_MAX_BLOCK_QUERIES = 1024
# elements of an additive mask that is kept for a whole pass; larger ones are made per block and
# layer
MAX_MASK_ELEMENTS = 2**24
_MAX_BLOCK_ELEMENTS = 2**22  # elements of the mask of one block
# logarithm of the largest mass that is distinguished from 1; beyond it, out_span equals out
_MAX_LOG_MASS = -1e-7


@dataclass(frozen=True)
class Block:
    """Queries [first, last), and the keys of the span that they see."""

    first: int
    last: int
    span: KeyGroup
    causal: bool = False


def move_queries(state: PassState, layer: int, inputs: LayerInputs) -> Tensor | None:
    """Computes steered attention, [B, H, Q, D], of several queries; None if nothing is moved."""
    queries = inputs.query.shape[2]
    groups = state.columns.groups(inputs.key.shape[2])
    # on a GPU, separate calls for chosen heads take longer than moving all (the others by 0)
    heads = state.steering.heads(layer) if inputs.query.device.type == "cpu" else None
    span = groups.span
    if span is None or groups.rest is None:
        return None
    shift = state.steering.layer_shift(layer, inputs.query)
    whole_prompt = inputs.mask is None and inputs.causal and span.stop < queries
    if whole_prompt and span.pure and heads is None:
        return _attend_to_both(shift, inputs, span)
    output, lse = _attend_all(state, inputs)
    return _move(shift, inputs, output, lse, _get_blocks(state, inputs, span), heads)


def _attend_all(state: PassState, inputs: LayerInputs) -> Attended:
    """Computes unsteered attention to all keys; a large mask is converted in pieces."""
    query = inputs.query
    mask = inputs.mask
    dtype = inputs.query.dtype
    if mask is None:
        return attend(query, inputs.key, inputs.value, None, inputs.scaling, causal=inputs.causal)
    if mask.numel() <= MAX_MASK_ELEMENTS:
        bias = whole_mask(state, inputs, dtype)
        return attend(query, inputs.key, inputs.value, bias, inputs.scaling)
    size = max(1, MAX_MASK_ELEMENTS // (mask.shape[0] * mask.shape[3]))
    pieces = [
        attend(queries, inputs.key, inputs.value, to_additive(rows, dtype), inputs.scaling)
        for queries, rows in zip(query.split(size, 2), mask.split(size, 2), strict=True)
    ]
    output = torch.cat([piece.output for piece in pieces], 2)
    return Attended(output, torch.cat([piece.lse for piece in pieces], 2))


def _move(
    shift: LayerShift,
    inputs: LayerInputs,
    output: Tensor,
    lse: Tensor,
    blocks: Sequence[Block],
    heads: Sequence[int] | None,
) -> Tensor:
    """Moves the output, [B, H, Q, D], in place, one block of queries after another.

    Args:
        shift: the shift of the log-odds.
        inputs: of the layer.
        output: of attention to all keys.
        lse: the log-sum-exp over all keys, [B, H, Q].
        blocks: the queries to move.
        heads: the heads to move; None: all.
    """
    for moved_heads, key_heads in _group_by_key_head(heads, inputs):
        group_shift = shift.for_heads(moved_heads)
        key = inputs.key[:, key_heads]
        value = inputs.value[:, key_heads]
        head_index = slice(None) if moved_heads is None else moved_heads
        query = inputs.query[:, head_index]
        heads_lse = lse[:, head_index]
        for block in blocks:
            queries = slice(block.first, block.last)
            span_output, span_lse = attend(
                query[:, :, queries],
                block.span.of(key),
                block.span.of(value),
                block.span.mask,
                inputs.scaling,
                causal=block.causal,
            )
            if block.span.fully_masked is not None:
                span_lse = span_lse.masked_fill(block.span.fully_masked, -torch.inf)
            weight = _lerp_weight(group_shift, span_lse - heads_lse[:, :, queries])
            if moved_heads is None:
                lerp(output[:, :, queries], span_output, weight)
            else:
                moved = lerp(output[:, moved_heads, queries], span_output, weight)
                output[:, moved_heads, queries] = moved
    return output


def _group_by_key_head(
    heads: Sequence[int] | None, inputs: LayerInputs
) -> list[tuple[list[int] | None, slice]]:
    """Groups the heads to move by the key head that they share, so that keys are read as views."""
    if heads is None:
        return [(None, slice(None))]
    repeats = inputs.query.shape[1] // inputs.key.shape[1]
    return [
        (list(members), slice(key_head, key_head + 1))
        for key_head, members in groupby(heads, lambda head: head // repeats)
    ]


def _lerp_weight(shift: LayerShift, log_mass: Tensor) -> Tensor:
    """Computes c of the module's formula from the logarithm of the mass on the span."""
    log_mass = log_mass.clamp_(max=_MAX_LOG_MASS)
    log_odds = log_mass - (-log_mass.expm1()).log_()
    return softplus(log_odds).add_(shift.log_rest(log_odds)).expm1_().neg_()


def _attend_to_both(shift: LayerShift, inputs: LayerInputs, span: KeyRange) -> Tensor:
    """Computes causal attention of a whole prompt whose rows share one span, with all heads moved.

    Queries after the span attend to span and rest separately. The call without the span has one
    extra query for each key before the span, so that causality holds; their outputs are dropped.
    """
    start = span.start
    stop = span.stop
    span_keys = KeyGroup(start, stop)
    up_to_span = replace(
        inputs,
        query=inputs.query[:, :, :stop],
        key=inputs.key[:, :, :stop],
        value=inputs.value[:, :, :stop],
    )
    scaling = inputs.scaling
    output, lse = attend(
        up_to_span.query, up_to_span.key, up_to_span.value, None, scaling, causal=True
    )
    output = _move(
        shift, up_to_span, output, lse, [Block(start, stop, span_keys, causal=True)], None
    )
    key, value = (_without(span_keys, states) for states in (inputs.key, inputs.value))
    rest_queries = inputs.query[:, :, stop - start :]
    rest_output, rest_lse = attend(rest_queries, key, value, None, scaling, causal=True)
    after_span = inputs.query[:, :, stop:]
    span_output, span_lse = attend(
        after_span, span_keys.of(inputs.key), span_keys.of(inputs.value), None, scaling
    )
    mass = shift.mass(span_lse - rest_lse[:, :, start:])
    return torch.cat([output, lerp(rest_output[:, :, start:], span_output, mass)], 2)


def _without(group: KeyGroup, states: Tensor) -> Tensor:
    """Keys or values without those of a group; a view if the group comes first."""
    after = states[:, :, group.stop :]
    return torch.cat([states[:, :, : group.start], after], 2) if group.start else after


def _get_blocks(state: PassState, inputs: LayerInputs, span: KeyRange) -> Sequence[Block]:
    """Returns blocks of queries that may see the span; later layers reuse those of small masks."""
    shared_blocks = state.shared("blocks", inputs.size, inputs.mask, list[Block])
    if shared_blocks:
        return shared_blocks
    blocks = list(_make_blocks(state, inputs, span))
    masks = [block.span.mask for block in blocks]
    if sum(mask.numel() for mask in masks if mask is not None) <= MAX_MASK_ELEMENTS:
        shared_blocks.extend(blocks)
    return blocks


def _make_blocks(state: PassState, inputs: LayerInputs, span: KeyRange) -> list[Block]:
    """Splits the queries that may see the span into blocks whose masks stay small.

    If attention is causal and all rows share the span, the span's queries are a separate block.
    """
    rows = inputs.query.shape[0]
    queries = inputs.query.shape[2]
    keys = inputs.key.shape[2]
    members = None if span.pure else state.columns.members(rows, keys)
    causal = inputs.causal and inputs.mask is None
    blocks = list[Block]()
    first = span.start if causal else 0
    if causal and span.pure:
        first = min(queries, span.stop)
        blocks.append(Block(span.start, first, KeyGroup(span.start, first), causal=True))
    size = _MAX_BLOCK_QUERIES
    if inputs.mask is not None or not span.pure:
        size = max(1, min(size, _MAX_BLOCK_ELEMENTS // (rows * (span.stop - span.start))))
    for start in range(first, queries, size):
        stop = min(queries, start + size)
        mask = slice_mask(None if inputs.mask is None else inputs.mask[:, :, start:stop], span)
        if causal and not span.pure:
            mask = _causal_mask(start, stop, span, inputs.key.device)
        blocks.append(Block(start, stop, make_key_group(span, mask, members, inputs.query.dtype)))
    return blocks


def _causal_mask(first: int, last: int, span: KeyRange, device: torch.device) -> Tensor:
    """Makes the mask of queries `first` to `last` over the span, if query i sees keys 0 to i."""
    queries = torch.arange(first, last, device=device)[:, None]
    return (torch.arange(span.start, span.stop, device=device) <= queries)[None, None]


# Shared with decode_step.py


def whole_mask(state: PassState, inputs: LayerInputs, dtype: torch.dtype) -> Tensor:
    """Returns the additive mask over all keys, which is made once per pass."""
    mask = inputs.mask
    assert mask is not None
    return state.shared("whole", inputs.size, mask, lambda: to_additive(mask, dtype))


def lerp(output: Tensor, goal: Tensor, weight: Tensor) -> Tensor:
    """Moves `output` [..., D] in place towards `goal` by the share `weight` [...]."""
    if output.dtype == weight.dtype:
        return output.lerp_(goal, weight.unsqueeze(-1))
    return output.add_(goal.to(weight.dtype).sub_(output).mul_(weight.unsqueeze(-1)))
