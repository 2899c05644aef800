# mypy: disable-error-code="no-untyped-call"
"""Steered attention by explicit scores, a block of queries at a time, where fused kernels fail.

They cannot handle soft caps, attention sinks, per-head biases and masks, values narrower than keys,
gradients, or rows whose methods disagree on what the span is. A sink is one more score in the
denominator: it belongs to the rest, and its value is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.attention.extent import additive, visible
from holdfast.attention.fused_kernels import LayerInputs
from holdfast.attention.passes import PassState

_SCORES = 2**21  # in memory at a time; more queries are processed in blocks, which changes no bit


@dataclass(frozen=True)
class ScoreFormula:
    """How scores are computed from queries and keys."""

    scaling: float  # factor on the dot products
    softcap: float | None = None  # c of c * tanh(score / c), or None
    bias: Tensor | None = None  # added to the scores, [B or 1, H or 1, Q, K], or None
    sinks: Tensor | None = None  # one more score in the rest, [B or 1, H, Q or 1], or None
    causal: bool = False  # query i sees keys 0 to i


def attend_explicitly(
    state: PassState | None, layer: int, inputs: LayerInputs, scoring: ScoreFormula
) -> Tensor:
    """Steered attention of all queries, [B, H, Q, D of the values]; notes the last query's mass."""
    query, key, value, mask = inputs.query, inputs.key, inputs.value, inputs.mask
    grouped = query.unflatten(1, (key.shape[1], -1))
    block = max(1, _SCORES // (query.shape[0] * query.shape[1] * key.shape[2]))
    groups = None if state is None else _Groups.of(state, query, key)
    outputs = []
    for start in range(0, query.shape[2], block):
        scores = _scores(grouped[..., start : start + block, :], key, mask, scoring, start)
        sink = scoring.sinks
        if sink is not None and sink.shape[2] > 1:
            sink = sink[..., start : start + block]
        if state is not None and groups is not None and state.steering.touches(layer):
            scores = scores + _change(state, layer, scores, groups, sink)
        weights = _softmax(scores, sink)
        mixed = weights.to(value.dtype).unflatten(1, (key.shape[1], -1)).flatten(2, 3) @ value
        outputs.append(mixed.unflatten(2, (-1, scores.shape[2])).flatten(1, 2))
    if state is not None and groups is not None and state.steering.trace:
        state.note((weights[:, :, -1] * groups.span[:, :, 0]).sum(-1).float())
    return torch.cat(outputs, 2)


def _scores(
    grouped: Tensor, key: Tensor, mask: Tensor | None, scoring: ScoreFormula, start: int
) -> Tensor:
    """Masked scores, float32 or wider, [B, H, q, K], of queries [B, G, H/G, q, D] from `start`."""
    count = grouped.shape[3]
    wide = torch.promote_types(key.dtype, torch.float32)
    scores: Tensor = (grouped.flatten(2, 3).to(wide) @ key.transpose(-1, -2).to(wide)).mul_(
        scoring.scaling
    )
    scores = scores.unflatten(2, (-1, count)).flatten(1, 2)
    if scoring.softcap is not None:
        scores = (scores / scoring.softcap).tanh() * scoring.softcap
    if scoring.bias is not None:
        scores = scores + scoring.bias[:, :, start : start + count]
    if mask is not None:
        mask = mask if mask.shape[2] == 1 else mask[:, :, start : start + count]
        return scores + additive(mask, wide)
    if scoring.causal:
        places = torch.arange(start, start + count, device=key.device)
        scores = scores.masked_fill(
            torch.arange(key.shape[2], device=key.device) > places[:, None], -torch.inf
        )
    return scores


@dataclass(frozen=True)
class _Groups:
    """Which keys are in the span, and which were generated, bool [B, 1, 1, K]."""

    span: Tensor
    generated: Tensor

    @classmethod
    def of(cls, state: PassState, query: Tensor, key: Tensor) -> _Groups:
        """The groups of a layer's keys."""
        rows, keys = query.shape[0], key.shape[2]
        span, generated = state.columns.span(rows, keys), state.columns.generated(rows, keys)
        generated = torch.zeros_like(span) if generated is None else generated
        return cls(span[:, None, None], generated[:, None, None])


def _change(
    state: PassState, layer: int, scores: Tensor, groups: _Groups, sink: Tensor | None
) -> Tensor:
    """The change to the scores, [B, H, q, K], that gives the masses the methods ask for."""
    span, generated = _log_mass(scores, groups.span), _log_mass(scores, groups.generated)
    rest = _log_mass(scores, ~groups.span & ~groups.generated)
    if sink is not None:
        rest = torch.logaddexp(rest, sink.to(scores.dtype))
    rule = state.steering.list_rule(scores.shape[0], layer, scores.shape[1])
    moved_span, moved_generated = rule.shift_groups(span, generated, rest)
    change = torch.where(span.isfinite(), moved_span - span, 0.0)[..., None] * groups.span
    behind = torch.where(generated.isfinite(), moved_generated - generated, 0.0)[..., None]
    return change + behind * groups.generated


def _log_mass(scores: Tensor, members: Tensor) -> Tensor:
    """Log-sum-exp of a group's scores; its gradient is 0, not NaN, for a query that sees none."""
    scores = scores.masked_fill(~members, -torch.inf)
    if not scores.requires_grad:
        return scores.logsumexp(-1)
    fully_masked = (scores == -torch.inf).all(-1)
    return (
        scores.masked_fill(fully_masked[..., None], 0.0)
        .logsumexp(-1)
        .masked_fill(fully_masked, -torch.inf)
    )


def note_trace(state: PassState, layer: int, inputs: LayerInputs, scoring: ScoreFormula) -> None:
    """Records the mass on the span, unless it already is, and that of uniform attention."""
    query, keys, mask = inputs.query, inputs.key.shape[2], inputs.mask
    if state.last is not None:
        places = state.last.to(query.device)
    else:
        places = torch.full((query.shape[0],), query.shape[2] - 1, device=query.device)
    if not state.has_noted or (state.last is not None and query.shape[2] > 1):
        state.note(_mass_at(state, layer, inputs, scoring, places))
    uniform = state.plans.get(
        "uniform", inputs.size, mask, lambda: _uniform_at(state, keys, mask, inputs.causal, places)
    )
    state.note_uniform(uniform)


def _mass_at(
    state: PassState, layer: int, inputs: LayerInputs, scoring: ScoreFormula, places: Tensor
) -> Tensor:
    """The mass on the span, [B, H], at the query `places` [B] of each row, after steering."""
    query, key, mask = inputs.query, inputs.key, inputs.mask
    rows = torch.arange(query.shape[0], device=query.device)

    def chosen(states: Tensor | None) -> Tensor | None:
        """Selects one query per row: [B, H or 1, 1, ...] of [B or 1, H or 1, Q or 1, ...]."""
        if states is None or states.shape[2] == 1:
            return states
        return states.expand(query.shape[0], *states.shape[1:])[rows, :, places][:, :, None]

    sink = chosen(scoring.sinks)
    if scoring.causal and mask is None:
        mask = (torch.arange(key.shape[2], device=key.device) <= places[:, None])[:, None, None]
    scoring = ScoreFormula(scoring.scaling, scoring.softcap, chosen(scoring.bias), sink)
    grouped = query[rows, :, places][:, :, None].unflatten(1, (key.shape[1], -1))
    scores = _scores(grouped, key, chosen(mask), scoring, 0)
    groups = _Groups.of(state, query, key)
    if state.steering.touches(layer):
        scores = scores + _change(state, layer, scores, groups, sink)
    return (_softmax(scores, sink) * groups.span)[:, :, 0].sum(-1).float()


def _uniform_at(
    state: PassState, keys: int, mask: Tensor | None, causal: bool, places: Tensor
) -> Tensor:
    """The mass on the span, [B], of uniform attention to what any head sees at `places` [B]."""
    rows = len(places)
    seen = torch.ones(rows, keys, dtype=torch.bool, device=places.device)
    if mask is not None:
        mask = mask.expand(rows, *mask.shape[1:])
        last = places if mask.shape[2] > 1 else torch.zeros_like(places)
        seen = visible(mask[torch.arange(rows, device=places.device), :, last]).any(1)
    elif causal:
        seen = torch.arange(keys, device=places.device) <= places[:, None]
    span = state.columns.span(rows, keys).to(places.device)
    return (span & seen).sum(-1) / seen.sum(-1).clamp(min=1)


def _softmax(scores: Tensor, sink: Tensor | None) -> Tensor:
    """Weights of the keys; those of a query that sees nothing are 0."""
    if sink is None:  # the gradients of such a query are 0 too
        fully_masked = (scores == -torch.inf).all(-1, keepdim=True)
        return scores.masked_fill(fully_masked, 0.0).softmax(-1).masked_fill(fully_masked, 0.0)
    sink = sink.to(scores.dtype)[..., None].expand(*scores.shape[:-1], 1)
    return torch.cat([scores, sink], -1).softmax(-1)[..., :-1]
