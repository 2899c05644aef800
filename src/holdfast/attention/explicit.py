# mypy: disable-error-code="no-untyped-call"
"""Steered attention by explicit scores, where the fused kernels cannot be used.

The fused kernels cannot handle soft caps, attention sinks, per-head biases and masks, values
narrower than keys, gradients, or rows whose methods disagree on the span. A sink is one more score
in the denominator: it belongs to the rest, and its value is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from holdfast.attention.fused_kernels import LayerInputs
from holdfast.attention.key_groups import to_additive, to_boolean
from holdfast.attention.passes import PassState

# scores in memory at a time; more queries are processed in blocks, which does not change a bit
_MAX_SCORES = 2**21


@dataclass(frozen=True)
class ScoreExtras:
    """Modifications of the scores that only some models make; None for each that is not made."""

    softcap: float | None = None  # c of c * tanh(score / c)
    bias: Tensor | None = None  # added to the scores, [B or 1, H or 1, Q, K]
    sinks: Tensor | None = None  # one more score in the rest, [B or 1, H, Q or 1]


NO_EXTRAS = ScoreExtras()


def attend_explicitly(
    state: PassState | None, layer: int, inputs: LayerInputs, extras: ScoreExtras = NO_EXTRAS
) -> Tensor:
    """Computes attention of all queries, steered if there is a `state`.

    Records the mass at the last query, if it is traced.

    Args:
        state: the current pass; None if it is not steered.
        layer: counted from 0.
        inputs: of the layer; values may have another size than queries and keys.
        extras: the model's own modifications of the scores.

    Returns:
        The output, [B, H, Q, D of the values].
    """
    query = inputs.query
    key = inputs.key
    value = inputs.value
    block = max(1, _MAX_SCORES // (query.shape[0] * query.shape[1] * key.shape[2]))
    masks = None if state is None else _KeyMasks.of(state, query, key)
    outputs = []
    for start in range(0, query.shape[2], block):
        scores = _compute_scores(inputs, extras, start, start + block)
        sink = extras.sinks
        if sink is not None and sink.shape[2] > 1:
            sink = sink[..., start : start + block]
        if state is not None and masks is not None and state.steering.touches(layer):
            scores = scores + _score_change(state, layer, scores, masks, sink)
        weights = _softmax(scores, sink)
        mixed = weights.to(value.dtype).unflatten(1, (key.shape[1], -1)).flatten(2, 3) @ value
        outputs.append(mixed.unflatten(2, (-1, scores.shape[2])).flatten(1, 2))
    if state is not None and masks is not None and state.steering.trace:
        state.record_mass((weights[:, :, -1] * masks.span[:, :, 0]).sum(-1).float())
    return torch.cat(outputs, 2)


def _compute_scores(inputs: LayerInputs, extras: ScoreExtras, start: int, stop: int) -> Tensor:
    """Computes the masked scores of queries `start` to `stop`, float32 or wider, [B, H, q, K]."""
    key = inputs.key
    mask = inputs.mask
    query = inputs.query[:, :, start:stop].unflatten(1, (key.shape[1], -1))  # [B, G, H/G, q, D]
    count = query.shape[3]
    wide = torch.promote_types(key.dtype, torch.float32)
    scores: Tensor = (query.flatten(2, 3).to(wide) @ key.transpose(-1, -2).to(wide)).mul_(
        inputs.scaling
    )
    scores = scores.unflatten(2, (-1, count)).flatten(1, 2)
    if extras.softcap is not None:
        scores = (scores / extras.softcap).tanh() * extras.softcap
    if extras.bias is not None:
        scores = scores + extras.bias[:, :, start : start + count]
    if mask is not None:
        mask = mask if mask.shape[2] == 1 else mask[:, :, start : start + count]
        return scores + to_additive(mask, wide)
    if inputs.causal:
        queries = torch.arange(start, start + count, device=key.device)
        scores = scores.masked_fill(
            torch.arange(key.shape[2], device=key.device) > queries[:, None], -torch.inf
        )
    return scores


@dataclass(frozen=True)
class _KeyMasks:
    """Which keys are in the span, and which were generated, bool [B, 1, 1, K]."""

    span: Tensor
    generated: Tensor

    @classmethod
    def of(cls, state: PassState, query: Tensor, key: Tensor) -> _KeyMasks:
        """Makes the masks of a layer's keys."""
        rows = query.shape[0]
        keys = key.shape[2]
        span = state.columns.span(rows, keys)
        generated = state.columns.generated(rows, keys)
        generated = torch.zeros_like(span) if generated is None else generated
        return cls(span[:, None, None], generated[:, None, None])


def _score_change(
    state: PassState, layer: int, scores: Tensor, masks: _KeyMasks, sink: Tensor | None
) -> Tensor:
    """Computes the change of the scores, [B, H, q, K], that results in the methods' masses."""
    span = _log_mass(scores, masks.span)
    generated = _log_mass(scores, masks.generated)
    rest = _log_mass(scores, ~masks.span & ~masks.generated)
    if sink is not None:
        rest = torch.logaddexp(rest, sink.to(scores.dtype))
    methods = state.steering.method_sequence(layer, scores)
    moved_span, moved_generated = methods.shift_log_masses(span, generated, rest)
    on_span = torch.where(span.isfinite(), moved_span - span, 0.0)[..., None]
    on_generated = torch.where(generated.isfinite(), moved_generated - generated, 0.0)[..., None]
    return on_span * masks.span + on_generated * masks.generated


def _log_mass(scores: Tensor, members: Tensor) -> Tensor:
    """Log-sum-exp of a group's scores; for queries that see none, its gradient is 0, not NaN."""
    scores = scores.masked_fill(~members, -torch.inf)
    if not scores.requires_grad:
        return scores.logsumexp(-1)
    fully_masked = (scores == -torch.inf).all(-1)
    return (
        scores.masked_fill(fully_masked[..., None], 0.0)
        .logsumexp(-1)
        .masked_fill(fully_masked, -torch.inf)
    )


def record_trace(
    state: PassState, layer: int, inputs: LayerInputs, extras: ScoreExtras = NO_EXTRAS
) -> None:
    """Records the mass on the span, unless the layer already has, and under uniform attention."""
    query = inputs.query
    keys = inputs.key.shape[2]
    mask = inputs.mask
    if state.last_queries is not None:
        queries = state.last_queries.to(query.device)
    else:
        queries = torch.full((query.shape[0],), query.shape[2] - 1, device=query.device)
    if not state.has_recorded or (state.last_queries is not None and query.shape[2] > 1):
        state.record_mass(_mass_at(state, layer, inputs, extras, queries))
    uniform = state.shared(
        "uniform", inputs.size, mask, lambda: _uniform_at(state, keys, mask, inputs.causal, queries)
    )
    state.record_uniform(uniform)


def _mass_at(
    state: PassState, layer: int, inputs: LayerInputs, extras: ScoreExtras, queries: Tensor
) -> Tensor:
    """The steered mass on the span, [B, H], at one query of each row; `queries` is int64 [B]."""
    query = inputs.query
    key = inputs.key
    mask = inputs.mask
    rows = torch.arange(query.shape[0], device=query.device)

    def select(states: Tensor | None) -> Tensor | None:
        """Selects one query per row: [B, H or 1, 1, ...] from [B or 1, H or 1, Q or 1, ...]."""
        if states is None or states.shape[2] == 1:
            return states
        return states.expand(query.shape[0], *states.shape[1:])[rows, :, queries][:, :, None]

    if inputs.causal and mask is None:
        mask = (torch.arange(key.shape[2], device=key.device) <= queries[:, None])[:, None, None]
    last_only = replace(
        inputs, query=query[rows, :, queries][:, :, None], mask=select(mask), causal=False
    )
    extras = ScoreExtras(extras.softcap, select(extras.bias), select(extras.sinks))
    scores = _compute_scores(last_only, extras, 0, 1)
    masks = _KeyMasks.of(state, query, key)
    if state.steering.touches(layer):
        scores = scores + _score_change(state, layer, scores, masks, extras.sinks)
    return (_softmax(scores, extras.sinks) * masks.span)[:, :, 0].sum(-1).float()


def _uniform_at(
    state: PassState, keys: int, mask: Tensor | None, causal: bool, queries: Tensor
) -> Tensor:
    """The mass on the span, [B], if a query of each row weighted all keys equally that a head sees.

    `queries` is int64 [B].
    """
    rows = len(queries)
    is_visible = torch.ones(rows, keys, dtype=torch.bool, device=queries.device)
    if mask is not None:
        mask = mask.expand(rows, *mask.shape[1:])
        last = queries if mask.shape[2] > 1 else torch.zeros_like(queries)
        is_visible = to_boolean(mask[torch.arange(rows, device=queries.device), :, last]).any(1)
    elif causal:
        is_visible = torch.arange(keys, device=queries.device) <= queries[:, None]
    span = state.columns.span(rows, keys).to(queries.device)
    return (span & is_visible).sum(-1) / is_visible.sum(-1).clamp(min=1)


def _softmax(scores: Tensor, sink: Tensor | None) -> Tensor:
    """Computes the weights of the keys; all are 0 for a query that sees no key."""
    if sink is None:  # the gradients of such a query are 0 too
        fully_masked = (scores == -torch.inf).all(-1, keepdim=True)
        return scores.masked_fill(fully_masked, 0.0).softmax(-1).masked_fill(fully_masked, 0.0)
    sink = sink.to(scores.dtype)[..., None].expand(*scores.shape[:-1], 1)
    return torch.cat([scores, sink], -1).softmax(-1)[..., :-1]
