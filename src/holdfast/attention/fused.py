"""Steered attention by fused kernels: no score is ever held in memory.

A pass of one query attends to each group by itself and merges the outputs by the moved masses; so
does a pass over a whole prompt whose rows share one span. Any other pass attends to all keys as
ever, attends to the span again, for the heads that are moved, and moves the
output towards that of the span: with pi the mass on the span and pi' the moved one,

    out' = out + c * (out_span - out),    c = (pi' - pi) / (1 - pi),

so the masks of the model stay in its own call, and c = 0 leaves every bit as it was. As methods
raise the mass, c is in [0, 1]."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import softplus

from holdfast.attention.kernels import attend
from holdfast.attention.plan import Part, StepPlan, additive, bounds, masked_part, plan_step
from holdfast.attention.steering import Steering
from holdfast.methods.heads import mask_of

# taken at a time where outputs are merged, so that what is moved stays near the processor
_QUERIES = 1024
_MASK = (
    2**24
    # numbers in an additive mask held for the whole pass; larger ones are made again for each block
    # and
    # layer
)
GROUPS = ("span", "reply", "rest")
_SURE = -1e-7  # log of the largest mass of the span told from 1: beyond it out_span equals out


def by_bias(steering: Steering) -> bool:
    """Whether everything asked for can be had by adding to scores."""
    return steering.adds and not steering.trace


def step(
    steering: Steering,
    layer: int,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scaling: float,
) -> Tensor | None:
    """Attention of one query per row, [B, H, 1, D], moved; None if no row has anything to move."""
    if by_bias(steering):
        return _step_by_bias(steering, layer, query, key, value, mask, scaling)
    plan = _step_plan(steering, query, key, mask)
    if plan.reply is None and (plan.span is None or plan.rest is None):
        if steering.trace:
            mass = float(plan.span is not None)
            steering.note(torch.full(query.shape[:2], mass, device=query.device))
        return None
    packed = query.reshape(
        query.shape[0], key.shape[1], -1, query.shape[3]
    )  # the queries of a group of heads read their keys once
    if plan.reply is not None:
        parts = {name: part for name in GROUPS if (part := getattr(plan, name)) is not None}
        found = {
            name: _attend_part(packed, key, value, part, scaling) for name, part in parts.items()
        }
        return _merge_three(steering, layer, found).reshape(query.shape)
    other, other_lse = _attend_part(packed, key, value, plan.rest, scaling)
    held, held_lse = _attend_part(packed, key, value, plan.span, scaling)
    log_odds = held_lse - other_lse
    if plan.span.fully_masked is not None and plan.rest.fully_masked is not None:
        log_odds = log_odds.nan_to_num(-torch.inf, torch.inf, -torch.inf)  # padding may see neither
    mass = steering.mass(log_odds, layer)
    if steering.trace:
        steering.note(mass[..., 0].float())
    return _towards(other, held, mass.reshape(held.shape[:3])).reshape(query.shape)


def _step_by_bias(
    steering: Steering,
    layer: int,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scaling: float,
) -> Tensor:
    """One attention call: methods that add a constant to the log-odds of a set add it to the scores
    of its keys, after one another too.
    """
    groups, keys = key.shape[1], key.shape[2]
    name = ("bias", keys, id(mask), steering.branch(layer))
    if name not in steering.plans:
        steering.plans[name] = _bias(steering, layer, query, keys, mask), mask
    bias = steering.plans[name][0]
    packed = query.reshape(query.shape[0], groups, -1, query.shape[3])
    return attend(packed, key, value, bias.unflatten(1, (groups, -1)), False, scaling)[0].reshape(
        query.shape
    )


def _many_by_bias(
    steering: Steering,
    layer: int,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    causal: bool,
    scaling: float,
) -> Tensor:
    """`_step_by_bias` for several queries per row, some at a time: rows with methods of their own,
    or with generated keys.
    """
    keys, queries = key.shape[2], query.shape[2]
    bias = _bias(steering, layer, query, keys, None)[:, :, None]
    size = max(1, _MASK // (query.shape[0] * query.shape[1] * keys))
    output = []
    for first in range(0, queries, size):
        last = min(queries, first + size)
        added = bias.expand(-1, -1, last - first, -1)
        if mask is not None:
            added = added + additive(mask[:, :, first:last], bias.dtype)
        elif causal:
            added = added + additive(
                (
                    torch.arange(keys, device=query.device)
                    <= torch.arange(first, last, device=query.device)[:, None]
                )[None, None],
                bias.dtype,
            )
        output.append(attend(query[:, :, first:last], key, value, added, False, scaling)[0])
    return torch.cat(output, 2)


def _bias(steering: Steering, layer: int, query: Tensor, keys: int, mask: Tensor | None) -> Tensor:
    """What is added to the scores of a pass of one query, float32 or wider, [B, H, K]."""
    name = ("members", keys)
    if name not in steering.plans:
        span, reply = steering.columns(query.shape[0], keys)
        held = span if reply is None else span | reply
        wide = torch.promote_types(query.dtype, torch.float32)
        steering.plans[name] = tuple(members.to(wide)[:, None] for members in (span, held))
    members = steering.plans[name]
    bias = members[0].new_zeros(query.shape[0], query.shape[1], keys)
    for methods, rows in steering.lanes(query):
        where = slice(None) if rows is None else rows
        for method in methods:
            chosen = (
                None
                if method.heads is None
                else mask_of(method.heads, layer, query.shape[1], query.device)
            )
            if method.heads is None or chosen is not None:
                added = members[method.span_includes_generated][where] * method.table_entry.bias
                bias[where] += added if chosen is None else added * chosen
    return bias if mask is None else bias + additive(mask, bias.dtype)[:, :, 0]


def _merge_three(steering: Steering, layer: int, found: dict[str, tuple[Tensor, Tensor]]) -> Tensor:
    """Span, reply and rest, some methods moving the first against both others and some the first
    two against the last.
    """
    output, lse = next(iter(found.values()))
    nothing = output.new_zeros(()), lse.new_full(lse.shape, -torch.inf)
    outputs, (span, reply, rest) = zip(*(found.get(name, nothing) for name in GROUPS), strict=True)
    span, reply = steering.shift_groups(span, reply, rest, layer)
    weights = torch.stack([span, reply, rest]).softmax(0).nan_to_num(0.0)  # padding may see nothing
    if steering.trace:
        steering.note(weights[0, ..., 0].float())
    weights = weights.reshape(3, *output.shape[:3], 1)
    return (outputs[0] * weights[0] + outputs[1] * weights[1] + outputs[2] * weights[2]).to(
        output.dtype
    )


def _towards(output: Tensor, goal: Tensor, weight: Tensor) -> Tensor:
    """Moves `output` [..., D] in place by the share `weight` [...] of its way to `goal`; half
    precision rounds once, at the end.
    """
    if output.dtype == weight.dtype:
        return output.lerp_(goal, weight.unsqueeze(-1))
    return output.add_(goal.to(weight.dtype).sub_(output).mul_(weight.unsqueeze(-1)))


def _attend_part(
    packed: Tensor, key: Tensor, value: Tensor, part: Part, scaling: float
) -> tuple[Tensor, Tensor]:
    """Output [B, G, H/G, D] and log-sum-exp [B, H, 1] of one group."""
    keys, values = key[:, :, part.start : part.stop], value[:, :, part.start : part.stop]
    output, lse = attend(packed, keys, values, part.mask, False, scaling)
    lse = lse.reshape(packed.shape[0], -1, 1)
    return output, lse if part.fully_masked is None else lse.masked_fill(
        part.fully_masked, -torch.inf
    )


def _lse(packed: Tensor, key: Tensor, part: Part, scaling: float) -> Tensor:
    """Log-sum-exp [B, H, 1] of one group, without an output; the scores of a single query are
    few.
    """
    scores = (packed @ key[:, :, part.start : part.stop].mT).mul_(scaling)
    scores = scores if part.mask is None else scores.add_(part.mask)
    return scores.logsumexp(-1).reshape(packed.shape[0], -1, 1)


def _step_plan(steering: Steering, query: Tensor, key: Tensor, mask: Tensor | None) -> StepPlan:
    name = ("step", key.shape[2], id(mask))
    if name not in steering.plans:  # the mask is kept, so that its id stays its own
        steering.plans[name] = (
            plan_step(steering, query.shape[0], key.shape[2], mask, query.dtype),
            mask,
        )
    return steering.plans[name][0]


def read_step(
    steering: Steering,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scaling: float,
) -> Tensor:
    """Attention of one query per row as it is, [B, H, 1, D]; notes the mass on the span."""
    plan = _step_plan(steering, query, key, mask)
    if mask is None:
        output, lse = attend(query, key, value, None, False, scaling)
    else:
        packed = query.reshape(query.shape[0], key.shape[1], -1, query.shape[3])
        output, lse = attend(
            packed, key, value, _whole_mask(steering, mask, query.dtype), False, scaling
        )
        output, lse = output.reshape(query.shape), lse.reshape(query.shape[0], -1, 1)
    if plan.span is None:
        steering.note(torch.zeros(query.shape[:2], device=query.device))
    else:
        packed = query.reshape(query.shape[0], key.shape[1], -1, query.shape[3])
        held = (
            _lse(packed, key, plan.span, scaling)
            if query.dtype == torch.float32
            else _attend_part(packed, key, value, plan.span, scaling)[1]
        )
        steering.note((held - lse)[..., 0].clamp_(max=0).exp_().float())
    return output


def _whole_mask(steering: Steering, mask: Tensor, dtype: torch.dtype) -> Tensor:
    name = ("whole", id(mask))
    if name not in steering.plans:
        steering.plans[name] = additive(mask, dtype), mask
    return steering.plans[name][0]


@dataclass(frozen=True)
class _Block:
    """Queries [first, last) and the part of the span they see."""

    first: int
    last: int
    part: Part
    causal: bool = False


@dataclass
class _PassPlan:
    """What a pass of several queries needs to know once."""

    held: tuple[int, int] | None
    span: Tensor
    uniform: bool
    blocks: dict = field(default_factory=dict)


def many(
    steering: Steering,
    layer: int,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    causal: bool,
    scaling: float,
) -> Tensor:
    """Attention of several queries per row, [B, H, Q, D], moved where a method touches this layer;
    notes the mass if asked to.

    `causal` stands for a mask that lets query i see keys 0 to i.
    """
    if (
        by_bias(steering)
        and steering.touches(layer)
        and (steering.has_reply(key.shape[2]) or len(steering.lanes(query)) > 1)
    ):
        return _many_by_bias(steering, layer, query, key, value, mask, causal, scaling)
    plan, heads = _pass_plan(steering, query, key), steering.heads(layer)
    if (
        plan.held is not None
        and plan.uniform
        and mask is None
        and causal
        and heads is None
        and plan.held[1] < query.shape[2]
    ):
        return _split(steering, layer, query, key, value, plan, scaling)
    output, lse = _attend_all(steering, query, key, value, mask, causal, scaling)
    mass = torch.zeros(query.shape[:2], device=query.device)
    if plan.held is not None:
        if steering.trace:
            mass = _look(plan, query, key, value, lse, mask, causal, scaling)
        if heads != []:
            _move(
                steering,
                layer,
                query,
                key,
                value,
                output,
                lse,
                plan,
                mask,
                causal,
                scaling,
                heads,
                mass,
            )
    if steering.trace:
        steering.note(mass.float())
    return output


def _look(
    plan: _PassPlan,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    lse: Tensor,
    mask: Tensor | None,
    causal: bool,
    scaling: float,
) -> Tensor:
    """The mass on the span at the last query as it is, [B, H]."""
    start, stop = plan.held
    (block,) = _blocks(plan, query, mask, causal, only_last=True)
    held_lse = attend(
        query[:, :, -1:],
        key[:, :, start:stop],
        value[:, :, start:stop],
        block.part.mask,
        False,
        scaling,
    )[1]
    if block.part.fully_masked is not None:
        held_lse = held_lse.masked_fill(block.part.fully_masked, -torch.inf)
    return (held_lse - lse[:, :, -1:])[..., 0].clamp_(max=0).exp_()


def _move(
    steering: Steering,
    layer: int,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    output: Tensor,
    lse: Tensor,
    plan: _PassPlan,
    mask: Tensor | None,
    causal: bool,
    scaling: float,
    heads: list[int] | None,
    mass: Tensor,
) -> None:
    """Moves the output of `heads` (None: all) in place, and notes their mass at the last query in
    `mass`.
    """
    start, stop = plan.held
    keys, values = key[:, :, start:stop], value[:, :, start:stop]
    if heads is not None:
        groups = [head * key.shape[1] // query.shape[1] for head in heads]
        keys, values, query, lse = (
            keys[:, groups],
            values[:, groups],
            query[:, heads],
            lse[:, heads],
        )
    for block in _blocks(plan, query, mask, causal, only_last=False):
        held, held_lse = attend(
            query[:, :, block.first : block.last],
            keys,
            values,
            block.part.mask,
            block.causal,
            scaling,
        )
        if block.part.fully_masked is not None:
            held_lse = held_lse.masked_fill(block.part.fully_masked, -torch.inf)
        log_mass = (held_lse - lse[:, :, block.first : block.last]).clamp_(max=_SURE)
        log_odds = log_mass - (-log_mass.expm1()).log_()
        shifted = _shift_heads(steering, layer, log_odds, heads, output.shape[1])
        weight = softplus(log_odds).sub_(softplus(shifted)).expm1_().neg_()
        if heads is None:
            _towards(output[:, :, block.first : block.last], held, weight)
        else:
            for index, head in enumerate(heads):
                _towards(
                    output[:, head, block.first : block.last], held[:, index], weight[:, index]
                )
        if block.last == query.shape[2]:
            mass[:, slice(None) if heads is None else heads] = (
                shifted[..., -1].sigmoid().to(mass.dtype)
            )


def _shift_heads(
    steering: Steering, layer: int, log_odds: Tensor, heads: list[int] | None, count: int
) -> Tensor:
    """`steering.shift` for log-odds [B, len(heads), Q] of some of a layer's `count` heads."""
    if heads is None:
        return steering.shift(log_odds, layer)
    every = log_odds.new_zeros(log_odds.shape[0], count, log_odds.shape[2])
    every[:, heads] = log_odds
    return steering.shift(every, layer)[:, heads]


def _split(
    steering: Steering,
    layer: int,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    plan: _PassPlan,
    scaling: float,
) -> Tensor:
    """Causal attention of a whole prompt whose rows share one span, with all heads moved: no score
    is computed twice.

    Queries behind the span attend to the span and, apart from it, to the rest. With the span cut
    out, query i of those behind it still sees the keys up to its own if as many queries as there
    are keys before the span are taken along; what those see is not used."""
    start, stop = plan.held
    head = _PassPlan(plan.held, plan.span[:, :stop], uniform=True)
    first = query[:, :, :stop]
    output, lse = attend(first, key[:, :, :stop], value[:, :, :stop], None, True, scaling)
    unused = lse.new_empty(lse.shape[:2])
    _move(
        steering,
        layer,
        first,
        key[:, :, :stop],
        value[:, :, :stop],
        output,
        lse,
        head,
        None,
        True,
        scaling,
        None,
        unused,
    )
    keys, values = (
        torch.cat([states[:, :, :start], states[:, :, stop:]], 2) if start else states[:, :, stop:]
        for states in (key, value)
    )
    rest, rest_lse = attend(query[:, :, stop - start :], keys, values, None, True, scaling)
    on_span, span_lse = attend(
        query[:, :, stop:], key[:, :, start:stop], value[:, :, start:stop], None, False, scaling
    )
    mass = steering.mass(span_lse - rest_lse[:, :, start:], layer)
    if steering.trace:
        steering.note(mass[..., -1].float())
    return torch.cat([output, _towards(rest[:, :, start:], on_span, mass)], 2)


def _attend_all(
    steering: Steering,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    causal: bool,
    scaling: float,
):
    if mask is None:
        return attend(query, key, value, None, causal, scaling)
    if mask.numel() <= _MASK:
        return attend(query, key, value, _whole_mask(steering, mask, query.dtype), False, scaling)
    size = max(1, _MASK // (mask.shape[0] * mask.shape[3]))
    output, lse = [], []
    for first in range(0, query.shape[2], size):
        one = attend(
            query[:, :, first : first + size],
            key,
            value,
            additive(mask[:, :, first : first + size], query.dtype),
            False,
            scaling,
        )
        output.append(one[0])
        lse.append(one[1])
    return torch.cat(output, 2), torch.cat(lse, 2)


def _pass_plan(steering: Steering, query: Tensor, key: Tensor) -> _PassPlan:
    name = ("pass", key.shape[2])
    if name not in steering.plans:
        span = steering.columns(query.shape[0], key.shape[2])[0]
        held = bounds(span)
        steering.plans[name] = _PassPlan(
            held, span, held is not None and bool(span[:, held[0] : held[1]].all())
        )
    return steering.plans[name]


def _blocks(
    plan: _PassPlan, query: Tensor, mask: Tensor | None, causal: bool, only_last: bool
) -> list[_Block]:
    """The queries that may see the span, block by block; kept for the layers to come if their masks
    are small.
    """
    name = (id(mask), query.shape[2], only_last)
    if name in plan.blocks:
        return plan.blocks[name][0]
    start, stop = plan.held
    queries = query.shape[2]
    first = queries - 1 if only_last else start if causal else 0
    blocks = []
    while first < queries:
        last = min(queries, first + _QUERIES)
        if causal and plan.uniform and first == start:
            last = stop  # the queries of the span itself
            blocks.append(_Block(first, last, Part(start, stop), causal=True))
        elif mask is None and (plan.uniform or not causal):
            blocks.append(
                _Block(
                    first,
                    last,
                    masked_part(
                        start,
                        stop,
                        None,
                        None if plan.uniform else plan.span[:, start:stop],
                        query.dtype,
                    ),
                )
            )
        elif mask is None:
            blocks.append(_Block(first, last, _causal_part(plan, first, last, query.dtype)))
        else:
            seen = mask[:, :, first:last, start:stop]
            blocks.append(
                _Block(
                    first,
                    last,
                    masked_part(
                        start,
                        stop,
                        seen,
                        None if plan.uniform else plan.span[:, start:stop],
                        query.dtype,
                    ),
                )
            )
        first = last
    if sum(block.part.mask.numel() for block in blocks if block.part.mask is not None) <= _MASK:
        plan.blocks[name] = blocks, mask
    return blocks


def _causal_part(plan: _PassPlan, first: int, last: int, dtype: torch.dtype) -> Part:
    """The span as queries `first` to `last` see it when query i sees keys 0 to i."""
    start, stop = plan.held
    device = plan.span.device
    seen = (
        torch.arange(start, stop, device=device)
        <= torch.arange(first, last, device=device)[:, None]
    )
    return masked_part(start, stop, seen[None, None], plan.span[:, start:stop], dtype)
