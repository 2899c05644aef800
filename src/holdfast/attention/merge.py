# mypy: disable-error-code="no-untyped-call"
"""Steered attention by fused kernels that return log-sum-exps: no score matrix is stored.

A single query per row attends to each group of keys separately, and the outputs are merged by the
moved mass. If methods only add to the log-odds, the bias is added to the scores in one call. On a
GPU, one kernel does all of it (`gpu_step.py`).

Several queries attend to all keys as usual and, on the heads that are moved, to the span again.
Their output is moved to that of the span: with pi the mass on the span and pi' the moved mass,

    out' = out + c * (out_span - out),    c = (pi' - pi) / (1 - pi),

so the masks of the model stay in its own call, and c = 0 leaves every bit as it was. Since methods
raise the mass, c is in [0, 1]. A whole prompt whose rows share one span attends to span and rest
separately instead, and no score is computed twice. Nothing here reads back from the device.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import softplus

from holdfast.attention.extent import (
    KeyGroup,
    KeyRange,
    SpanColumns,
    additive,
    masked_part,
    over,
)
from holdfast.attention.fused_kernels import LayerInputs, attend
from holdfast.attention.passes import PassState
from holdfast.attention.rules import LogOddsRule
from holdfast.errors import cut
from holdfast.methods.table import LayerTable

# Queries per block when outputs are merged, so that a block stays in the processor's caches.
_BLOCK_QUERIES = 1024
# Elements of an additive mask kept for a whole pass; larger ones are made per block and layer.
LARGEST_MASK = 2**24
_BLOCK_ELEMENTS = 2**22  # elements of the mask of one block
# Log of the largest mass distinguished from 1; beyond it, out_span equals out.
_MAX_LOG_MASS = -1e-7


def attend_merged(state: PassState, layer: int, inputs: LayerInputs) -> Tensor | None:
    """The steered output, [B, H, Q, D]; None if the unsteered one will do."""
    touches = state.steering.touches(layer)
    if inputs.query.shape[2] > 1:
        return move_several(state, layer, inputs) if touches else None
    if (kernel := step_kernel(inputs.query)) is not None:
        rule = _rule(state, layer, inputs) if touches else None
        if rule is None or isinstance(rule, LayerTable):
            return _step_in_one(kernel, state, rule, inputs)
    return _move_one(state, layer, inputs) if touches else _read_one(state, inputs)


# One query per row


class StepKernel(Protocol):
    """`attend_step` of `holdfast.attention.gpu_step`."""

    def __call__(
        self,
        inputs: LayerInputs,
        columns: SpanColumns | None,
        table: LayerTable | None,
        traced: bool,
        /,
    ) -> tuple[Tensor, Tensor | None]:
        """The output [B, H, 1, D], and the mass on the span, float32 [B, H]."""


def step_kernel(query: Tensor) -> StepKernel | None:
    """The kernel that attends with one query per row on a GPU, if it takes these queries."""
    return _step_kernel(query.device) if query.device.type == "cuda" else None


@lru_cache
def _step_kernel(device: torch.device) -> StepKernel | None:
    try:
        from holdfast.attention.gpu_step import attend_step, runs_on

        return attend_step if runs_on(device) else None
    except Exception as error:  # no Triton, or no compiler that it can use
        reason = cut(f"{type(error).__name__}: {error}", 200)
        warnings.warn(
            f"Triton cannot be used ({reason}), so decode steps on {device} are slower.",
            stacklevel=2,
        )
        return None


def _rule(state: PassState, layer: int, inputs: LayerInputs) -> LogOddsRule:
    """How the methods move log-odds in this layer."""
    rows, heads = inputs.query.shape[:2]
    return state.steering.rule(rows, layer, heads, inputs.query.dtype)


def _step_in_one(
    kernel: StepKernel, state: PassState, table: LayerTable | None, inputs: LayerInputs
) -> Tensor:
    """Attention of one query per row on a GPU, in one kernel; without a table, only traced."""
    rows, keys = inputs.query.shape[0], inputs.key.shape[2]
    columns = state.plans.get(
        "columns", inputs.size, None, lambda: state.columns.for_kernel(rows, keys)
    )
    output, mass = kernel(inputs, columns, table, state.steering.trace)
    if mass is not None:
        state.note(mass)
    return output


def attend_one(inputs: LayerInputs, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """Unsteered attention of one query per row, [B, H, 1, D], and its log-sum-exp, [B, H, 1];
    heads that share keys read them once. `bias` is the additive mask.
    """
    output, lse = attend(inputs.packed, inputs.key, inputs.value, bias, False, inputs.scaling)
    return output.reshape(inputs.query.shape), lse.reshape(inputs.query.shape[0], -1, 1)


@dataclass(frozen=True)
class StepPlan:
    """The two groups of a pass of one query; None if a group is empty in every row."""

    span: KeyGroup | None
    rest: KeyGroup | None
    proper: KeyGroup | None  # the span without generated tokens
    # [B or 1, 1, 1], added to the log-odds of rows that do not see both: -inf where the span is not
    # visible, else inf; None if every row sees both
    unseen: Tensor | None


def _move_one(state: PassState, layer: int, inputs: LayerInputs) -> Tensor | None:
    """Steered attention of one query per row, [B, H, 1, D]; None if there is nothing to move."""
    rule = _rule(state, layer, inputs)
    if isinstance(rule, LayerTable) and rule.only_adds and not state.steering.trace:
        return _step_by_bias(state, rule, inputs)
    plan = _plan(state, inputs)
    if plan.span is None or plan.rest is None:
        if state.steering.trace:
            _note_all_or_nothing(state, plan, inputs)
        return None
    rest, rest_lse = _attend_part(inputs, plan.rest)
    attended, span_lse = _attend_part(inputs, plan.span)
    log_odds = span_lse - rest_lse
    if plan.unseen is not None:
        log_odds = log_odds.add_(plan.unseen)
    mass = rule.mass(log_odds)
    if state.steering.trace:
        on_span = mass
        if plan.proper is not plan.span:
            on_span = mass * _share(inputs, plan.proper, span_lse)
        state.note(on_span[..., 0].float())
    return lerp(rest, attended, mass.reshape(attended.shape[:3])).reshape(inputs.query.shape)


def _plan(state: PassState, inputs: LayerInputs) -> StepPlan:
    """The groups of keys, which layers of the same kind share."""
    return state.plans.get("step", inputs.size, inputs.mask, lambda: _make_plan(state, inputs))


def _make_plan(state: PassState, inputs: LayerInputs) -> StepPlan:
    rows, keys, dtype = inputs.query.shape[0], inputs.key.shape[2], inputs.query.dtype
    groups, mask = state.columns.groups(keys), inputs.mask
    ranges = groups.span, groups.rest, groups.proper
    plain = all(part is None or part.uniform for part in ranges)
    members = None if plain else state.columns.members(rows, keys)
    others = None if members is None else ~members
    span, rest = (
        None if part is None else masked_part(part, over(mask, part), members_of_part, dtype)
        for part, members_of_part in ((groups.span, members), (groups.rest, others))
    )
    proper = span
    if groups.proper is not None and groups.proper is not groups.span:
        in_span = state.columns.span(rows, keys)
        proper = masked_part(groups.proper, over(mask, groups.proper), in_span, dtype)
    elif groups.proper is None:
        proper = None
    if span is None or rest is None or (mask is None and groups.certain):
        return StepPlan(span, rest, proper, None)
    return StepPlan(span, rest, proper, _unseen(span, rest))


def _unseen(span: KeyGroup, rest: KeyGroup) -> Tensor | None:
    """Added to log-odds where a group is not visible; if neither is, the span counts as hidden."""
    unseen = None
    if rest.fully_masked is not None:
        unseen = torch.zeros(rest.fully_masked.shape, device=rest.fully_masked.device)
        unseen = unseen.masked_fill_(rest.fully_masked, torch.inf)
    if span.fully_masked is not None:
        before = torch.zeros((), device=span.fully_masked.device) if unseen is None else unseen
        unseen = torch.where(span.fully_masked, -torch.inf, before)
    return unseen


def _step_by_bias(state: PassState, table: LayerTable, inputs: LayerInputs) -> Tensor:
    """One attention call, with the methods' bias added to the scores of the group's keys."""
    rows, keys = inputs.query.shape[0], inputs.key.shape[2]
    wide = table.numbers.dtype
    members = state.plans.get(
        "members", inputs.size, None, lambda: state.columns.members(rows, keys).to(wide)[:, None]
    )
    bias = table.numbers[0].unsqueeze(-1) * members
    if inputs.mask is not None:
        bias = bias + whole_mask(state, inputs, wide)[:, :, 0]
    groups = inputs.key.shape[1]
    bias = bias.expand(-1, inputs.query.shape[1], -1).unflatten(1, (groups, -1))
    packed = inputs.packed
    return attend(packed, inputs.key, inputs.value, bias, False, inputs.scaling)[0].reshape(
        inputs.query.shape
    )


def whole_mask(state: PassState, inputs: LayerInputs, dtype: torch.dtype) -> Tensor:
    """The additive mask over all keys, made once per pass."""
    mask = inputs.mask
    assert mask is not None
    return state.plans.get("whole", inputs.size, mask, lambda: additive(mask, dtype))


def _read_one(state: PassState, inputs: LayerInputs) -> Tensor:
    """Unsteered attention of one query per row, [B, H, 1, D]; records the mass on the span."""
    mask = None if inputs.mask is None else whole_mask(state, inputs, inputs.query.dtype)
    output, lse = attend_one(inputs, mask)
    state.note(_share(inputs, _plan(state, inputs).proper, lse)[..., 0].float())
    return output


def _note_all_or_nothing(state: PassState, plan: StepPlan, inputs: LayerInputs) -> None:
    """Records the mass if there is one group: 1 or 0, except for generated tokens in the group."""
    if plan.proper is None or plan.rest is not None:
        state.note(torch.zeros(inputs.query.shape[:2], device=inputs.query.device))
        return
    assert plan.span is not None
    state.note(_share(inputs, plan.proper, _lse(inputs, plan.span))[..., 0].float())


def _share(inputs: LayerInputs, proper: KeyGroup | None, lse: Tensor) -> Tensor:
    """The mass on the span itself, [B, H, 1], in a group of keys with this log-sum-exp."""
    if proper is None:
        return torch.zeros_like(lse)
    return (_lse(inputs, proper) - lse).clamp_(max=0).exp_().nan_to_num_(0.0)


def _attend_part(inputs: LayerInputs, part: KeyGroup) -> tuple[Tensor, Tensor]:
    """Output [B, G, H/G, D] and log-sum-exp [B, H, 1] of one group."""
    key, value = part.of(inputs.key), part.of(inputs.value)
    output, lse = attend(inputs.packed, key, value, part.mask, False, inputs.scaling)
    return output, lse.reshape(inputs.query.shape[0], -1, 1)


def _lse(inputs: LayerInputs, part: KeyGroup) -> Tensor:
    """Log-sum-exp [B, H, 1] of one group, -inf if none is seen; one query has few scores."""
    if inputs.query.dtype not in (torch.float32, torch.float64):
        lse = _attend_part(inputs, part)[1]
        return lse if part.fully_masked is None else lse.masked_fill(part.fully_masked, -torch.inf)
    scores = (inputs.packed @ part.of(inputs.key).mT).mul_(inputs.scaling)
    scores = scores if part.mask is None else scores.add_(part.mask)
    return scores.logsumexp(-1).reshape(inputs.query.shape[0], -1, 1)


# Several queries per row


@dataclass(frozen=True)
class Block:
    """Queries [first, last) and the part of the span they see."""

    first: int
    last: int
    part: KeyGroup
    causal: bool = False


def move_several(state: PassState, layer: int, inputs: LayerInputs) -> Tensor | None:
    """Steered attention of several queries per row, [B, H, Q, D]; None if nothing is to move."""
    queries = inputs.query.shape[2]
    groups = state.columns.groups(inputs.key.shape[2])
    # on a GPU, the calls for each group of heads take longer than moving those that stay by nothing
    heads = state.steering.heads(layer) if inputs.query.device.type == "cpu" else None
    span = groups.span
    if span is None or groups.rest is None:
        return None
    rule = _rule(state, layer, inputs)
    whole_prompt = inputs.mask is None and inputs.causal and span.stop < queries
    if whole_prompt and span.uniform and heads is None:
        return _apart(rule, inputs, span)
    output, lse = _attend_all(state, inputs)
    return _move(rule, inputs, output, lse, _blocks(state, inputs, span), heads)


def _attend_all(state: PassState, inputs: LayerInputs) -> tuple[Tensor, Tensor]:
    """Output and log-sum-exp of unsteered attention; a large mask is made in pieces."""
    query, mask, dtype = inputs.query, inputs.mask, inputs.query.dtype
    if mask is None:
        return attend(query, inputs.key, inputs.value, None, inputs.causal, inputs.scaling)
    if mask.numel() <= LARGEST_MASK:
        bias = whole_mask(state, inputs, dtype)
        return attend(query, inputs.key, inputs.value, bias, False, inputs.scaling)
    size = max(1, LARGEST_MASK // (mask.shape[0] * mask.shape[3]))
    pieces = [
        attend(queries, inputs.key, inputs.value, additive(piece, dtype), False, inputs.scaling)
        for queries, piece in zip(query.split(size, 2), mask.split(size, 2), strict=True)
    ]
    return torch.cat([output for output, _ in pieces], 2), torch.cat([lse for _, lse in pieces], 2)


def _move(
    rule: LogOddsRule,
    inputs: LayerInputs,
    output: Tensor,
    lse: Tensor,
    blocks: Sequence[Block],
    heads: Sequence[int] | None,
) -> Tensor:
    """The output, [B, H, Q, D], moved in place on `heads` (None: all), one block of queries after
    another; `lse` [B, H, Q] is that of all keys.
    """
    for some, group in _by_key_heads(heads, inputs):
        group_rule, key, value = rule.on(some), inputs.key[:, group], inputs.value[:, group]
        chosen = slice(None) if some is None else some
        query, part_lse = inputs.query[:, chosen], lse[:, chosen]
        for block in blocks:
            between = slice(block.first, block.last)
            attended, span_lse = attend(
                query[:, :, between],
                block.part.of(key),
                block.part.of(value),
                block.part.mask,
                block.causal,
                inputs.scaling,
            )
            if block.part.fully_masked is not None:
                span_lse = span_lse.masked_fill(block.part.fully_masked, -torch.inf)
            weight = _weight(group_rule, span_lse - part_lse[:, :, between])
            if some is None:
                lerp(output[:, :, between], attended, weight)
            else:
                output[:, some, between] = lerp(output[:, some, between], attended, weight)
    return output


def _by_key_heads(
    heads: Sequence[int] | None, inputs: LayerInputs
) -> list[tuple[list[int] | None, slice]]:
    """The heads to move by the key head that they share, as views so that no key is copied."""
    if heads is None:
        return [(None, slice(None))]
    repeats = inputs.query.shape[1] // inputs.key.shape[1]
    return [
        (list(some), slice(group, group + 1))
        for group, some in groupby(heads, lambda head: head // repeats)
    ]


def _weight(rule: LogOddsRule, log_mass: Tensor) -> Tensor:
    """c of the module's formula, from the logarithm of the mass on the span."""
    log_mass = log_mass.clamp_(max=_MAX_LOG_MASS)
    log_odds = log_mass - (-log_mass.expm1()).log_()
    return softplus(log_odds).add_(rule.log_rest(log_odds)).expm1_().neg_()


def _apart(rule: LogOddsRule, inputs: LayerInputs, span: KeyRange) -> Tensor:
    """Causal attention of a whole prompt whose rows share one span, with all heads moved.

    Queries after the span attend to span and rest separately. The call without the span includes as
    many extra queries as there are keys before the span, and ignores them, so that causality holds.
    """
    start, stop = span.start, span.stop
    part = KeyGroup(start, stop)
    first = replace(
        inputs,
        query=inputs.query[:, :, :stop],
        key=inputs.key[:, :, :stop],
        value=inputs.value[:, :, :stop],
    )
    scaling = inputs.scaling
    output, lse = attend(first.query, first.key, first.value, None, True, scaling)
    output = _move(rule, first, output, lse, [Block(start, stop, part, causal=True)], None)
    key, value = (_without(part, states) for states in (inputs.key, inputs.value))
    rest, rest_lse = attend(inputs.query[:, :, stop - start :], key, value, None, True, scaling)
    behind = inputs.query[:, :, stop:]
    attended, span_lse = attend(
        behind, part.of(inputs.key), part.of(inputs.value), None, False, scaling
    )
    mass = rule.mass(span_lse - rest_lse[:, :, start:])
    return torch.cat([output, lerp(rest[:, :, start:], attended, mass)], 2)


def _without(part: KeyGroup, states: Tensor) -> Tensor:
    """Keys or values without those of a part; a view if the part comes first."""
    behind = states[:, :, part.stop :]
    return torch.cat([states[:, :, : part.start], behind], 2) if part.start else behind


def _blocks(state: PassState, inputs: LayerInputs, span: KeyRange) -> Sequence[Block]:
    """Blocks of queries that may see the span; kept for later layers if their masks are small."""
    kept = state.plans.get("blocks", inputs.size, inputs.mask, list[Block])
    if kept:
        return kept
    blocks = list(_make_blocks(state, inputs, span))
    masks = [block.part.mask for block in blocks]
    if sum(mask.numel() for mask in masks if mask is not None) <= LARGEST_MASK:
        kept.extend(blocks)
    return blocks


def _make_blocks(state: PassState, inputs: LayerInputs, span: KeyRange) -> list[Block]:
    """The queries of the span itself, if they are causal and share it, and blocks of the others
    whose masks stay small.
    """
    rows, queries, keys = inputs.query.shape[0], inputs.query.shape[2], inputs.key.shape[2]
    members = None if span.uniform else state.columns.members(rows, keys)
    causal = inputs.causal and inputs.mask is None
    blocks, first = [], span.start if causal else 0
    if causal and span.uniform:  # the queries of the span itself
        first = min(queries, span.stop)
        blocks.append(Block(span.start, first, KeyGroup(span.start, first), causal=True))
    size = _BLOCK_QUERIES
    if inputs.mask is not None or not span.uniform:
        size = max(1, min(size, _BLOCK_ELEMENTS // (rows * (span.stop - span.start))))
    for start in range(first, queries, size):
        stop = min(queries, start + size)
        seen = over(None if inputs.mask is None else inputs.mask[:, :, start:stop], span)
        if causal and not span.uniform:
            seen = _causal(start, stop, span, inputs.key.device)
        blocks.append(Block(start, stop, masked_part(span, seen, members, inputs.query.dtype)))
    return blocks


def _causal(first: int, last: int, span: KeyRange, device: torch.device) -> Tensor:
    """The causal mask of the queries `first` to `last` over the span: query i sees keys 0 to i."""
    queries = torch.arange(first, last, device=device)[:, None]
    return (torch.arange(span.start, span.stop, device=device) <= queries)[None, None]


def lerp(output: Tensor, goal: Tensor, weight: Tensor) -> Tensor:
    """Moves `output` [..., D] in place towards `goal` by the share `weight` [...]."""
    if output.dtype == weight.dtype:
        return output.lerp_(goal, weight.unsqueeze(-1))
    return output.add_(goal.to(weight.dtype).sub_(output).mul_(weight.unsqueeze(-1)))
