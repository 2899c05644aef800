# mypy: disable-error-code="no-untyped-call"
"""Steered attention of several queries per row, by fused kernels: no score is held in memory.

A pass attends to all keys as ever, attends to the span again, for the heads that are moved, and
moves the output towards that of the span: with pi the mass on the span and pi' the moved one,

    out' = out + c * (out_span - out),    c = (pi' - pi) / (1 - pi),

so the masks of the model stay in its own call, and c = 0 leaves every bit as it was. As methods
raise the mass, c is in [0, 1]. A whole prompt whose rows share one span attends to span and rest
apart instead, and no score is computed twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import torch
from torch import Tensor
from torch.nn.functional import softplus

from holdfast.attention.decode import towards, whole_mask
from holdfast.attention.extent import Range
from holdfast.attention.kernels import States, attend
from holdfast.attention.plan import Part, additive, masked_part, over
from holdfast.attention.rules import Rule
from holdfast.attention.steering import Steering

# Taken at a time where outputs are merged, so that what is moved stays near the processor.
_QUERIES = 1024
# Numbers of an additive mask held for a whole pass; larger ones are made for each block and layer.
_MASK = 2**24
_BLOCK = 2**22  # numbers of a mask of one block
_SURE = -1e-7  # log of the largest mass of the span told from 1: beyond it out_span equals out


@dataclass(frozen=True)
class Block:
    """Queries [first, last) and the part of the span they see."""

    first: int
    last: int
    part: Part
    causal: bool = False


def prefill(steering: Steering, layer: int, states: States) -> Tensor | None:
    """Attention of several queries per row, [B, H, Q, D], moved; None where nothing is to move."""
    rows, count, queries, _ = states.query.shape
    heads, groups = steering.heads(layer), steering.groups(states.key.shape[2])
    span = groups.span
    if span is None or groups.rest is None:
        return None
    rule = steering.rule(rows, layer, count, states.query.dtype)
    whole_prompt = states.mask is None and states.causal and span.stop < queries
    if whole_prompt and span.uniform and heads is None:
        return _apart(rule, states, span)
    output, lse = _attend_all(steering, states)
    _move(rule, states, output, lse, _blocks(steering, states, span), heads)
    return output


def _attend_all(steering: Steering, states: States) -> tuple[Tensor, Tensor]:
    """Output and log-sum-exp of attention as it is; a large mask is made in pieces."""
    query, mask, dtype = states.query, states.mask, states.query.dtype
    if mask is None:
        return attend(query, states.key, states.value, None, states.causal, states.scaling)
    if mask.numel() <= _MASK:
        bias = whole_mask(steering, states, dtype)
        return attend(query, states.key, states.value, bias, False, states.scaling)
    size = max(1, _MASK // (mask.shape[0] * mask.shape[3]))
    pieces = [
        attend(queries, states.key, states.value, additive(piece, dtype), False, states.scaling)
        for queries, piece in zip(query.split(size, 2), mask.split(size, 2), strict=True)
    ]
    return torch.cat([output for output, _ in pieces], 2), torch.cat([lse for _, lse in pieces], 2)


def _move(
    rule: Rule,
    states: States,
    output: Tensor,
    lse: Tensor,
    blocks: Sequence[Block],
    heads: Sequence[int] | None,
) -> None:
    """Moves the output of `heads` (None: all) in place, by what those queries see of the span."""
    for some, group in _by_key_heads(heads, states):
        own, key, value = rule.on(some), states.key[:, group], states.value[:, group]
        chosen = slice(None) if some is None else some
        query, part_lse = states.query[:, chosen], lse[:, chosen]
        for block in blocks:
            between = slice(block.first, block.last)
            held, held_lse = attend(
                query[:, :, between],
                block.part.of(key),
                block.part.of(value),
                block.part.mask,
                block.causal,
                states.scaling,
            )
            if block.part.fully_masked is not None:
                held_lse = held_lse.masked_fill(block.part.fully_masked, -torch.inf)
            weight = _weight(own, held_lse - part_lse[:, :, between])
            if some is None:
                towards(output[:, :, between], held, weight)
            else:
                output[:, some, between] = towards(output[:, some, between], held, weight)


def _by_key_heads(
    heads: Sequence[int] | None, states: States
) -> list[tuple[list[int] | None, slice]]:
    """The heads to move with the key heads that they share, which are views and never copied."""
    if heads is None:
        return [(None, slice(None))]
    repeats = states.query.shape[1] // states.key.shape[1]
    return [
        (list(some), slice(group, group + 1))
        for group, some in groupby(heads, lambda head: head // repeats)
    ]


def _weight(rule: Rule, log_mass: Tensor) -> Tensor:
    """c of the module's formula, of the logarithm of the mass on the span."""
    log_mass = log_mass.clamp_(max=_SURE)
    log_odds = log_mass - (-log_mass.expm1()).log_()
    return softplus(log_odds).add_(rule.log_rest(log_odds)).expm1_().neg_()


def _apart(rule: Rule, states: States, span: Range) -> Tensor:
    """Causal attention of a whole prompt whose rows share one span, with all heads moved.

    Queries behind the span attend to the span and, apart from it, to the rest. With the span cut
    out, query i of those behind it still sees the keys up to its own if as many queries as there
    are keys before the span are taken along; what those see is not used.
    """
    start, stop = span.start, span.stop
    part = Part(start, stop)
    first = replace(
        states,
        query=states.query[:, :, :stop],
        key=states.key[:, :, :stop],
        value=states.value[:, :, :stop],
    )
    scaling = states.scaling
    output, lse = attend(first.query, first.key, first.value, None, True, scaling)
    _move(rule, first, output, lse, [Block(start, stop, part, causal=True)], None)
    key, value = (_without(part, own) for own in (states.key, states.value))
    rest, rest_lse = attend(states.query[:, :, stop - start :], key, value, None, True, scaling)
    behind = states.query[:, :, stop:]
    held, held_lse = attend(
        behind, part.of(states.key), part.of(states.value), None, False, scaling
    )
    mass = rule.mass(held_lse - rest_lse[:, :, start:])
    return torch.cat([output, towards(rest[:, :, start:], held, mass)], 2)


def _without(part: Part, states: Tensor) -> Tensor:
    """Keys or values without those of a part; a view where it stands at their beginning."""
    behind = states[:, :, part.stop :]
    return torch.cat([states[:, :, : part.start], behind], 2) if part.start else behind


def _blocks(steering: Steering, states: States, span: Range) -> Sequence[Block]:
    """The queries that may see the span; kept for the layers to come if their masks are small."""
    held = steering.plans.get("blocks", states.size, states.mask, list[Block])
    if held:
        return held
    blocks = list(_made_blocks(steering, states, span))
    masks = [block.part.mask for block in blocks]
    if sum(mask.numel() for mask in masks if mask is not None) <= _MASK:
        held.extend(blocks)
    return blocks


def _made_blocks(steering: Steering, states: States, span: Range) -> list[Block]:
    rows, queries, keys = states.query.shape[0], states.query.shape[2], states.key.shape[2]
    members = None if span.uniform else steering.members(rows, keys)
    causal = states.causal and states.mask is None
    blocks, first = [], span.start if causal else 0
    if causal and span.uniform:  # the queries of the span itself
        first = min(queries, span.stop)
        blocks.append(Block(span.start, first, Part(span.start, first), causal=True))
    size = _QUERIES
    if states.mask is not None or not span.uniform:
        size = max(1, min(size, _BLOCK // (rows * (span.stop - span.start))))
    for start in range(first, queries, size):
        stop = min(queries, start + size)
        seen = over(None if states.mask is None else states.mask[:, :, start:stop], span)
        if causal and not span.uniform:
            seen = _causal(start, stop, span, states.key.device)
        blocks.append(Block(start, stop, masked_part(span, seen, members, states.query.dtype)))
    return blocks


def _causal(first: int, last: int, span: Range, device: torch.device) -> Tensor:
    """What the queries `first` to `last` see of the span where query i sees keys 0 to i."""
    queries = torch.arange(first, last, device=device)[:, None]
    return (torch.arange(span.start, span.stop, device=device) <= queries)[None, None]
