# mypy: disable-error-code="no-untyped-call"
"""Steered attention of one query per row, by kernels that return log-sum-exps: a decode step.

The query attends to each group of keys separately, and the outputs are merged by the moved mass. If
methods only add to the log-odds, the bias is added to the scores in a single call instead. On a
GPU, one kernel does all of it (`gpu_step.py`). Nothing here reads back from the device.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import torch
from torch import Tensor

from holdfast.attention.fused_kernels import Attended, LayerInputs, attend
from holdfast.attention.key_groups import KeyGroup, make_key_group, slice_mask
from holdfast.attention.merge import lerp, whole_mask
from holdfast.attention.pass_columns import SpanColumns
from holdfast.attention.passes import PassState
from holdfast.errors import cut
from holdfast.methods.table import LayerTable


def steer_step(state: PassState, layer: int, inputs: LayerInputs) -> Tensor | None:
    """Computes steered attention of one query per row, [B, H, 1, D].

    Records the mass on the span, if it is traced. Returns None if nothing is moved, so that the
    caller can use plain attention.
    """
    touches = state.steering.touches(layer)
    if (kernel := step_kernel(inputs.query)) is not None:
        shift = state.steering.layer_shift(layer, inputs.query) if touches else None
        if shift is None or isinstance(shift, LayerTable):
            return _step_in_one_kernel(kernel, state, shift, inputs)
    return (
        _move_single_query(state, layer, inputs) if touches else _trace_single_query(state, inputs)
    )


def attend_single_query(inputs: LayerInputs, bias: Tensor | None) -> Attended:
    """Computes unsteered attention of one query per row, [B, H, 1, D].

    Heads that share keys read them once. `bias` is the additive mask, or None.
    """
    output, lse = attend(inputs.packed, inputs.key, inputs.value, bias, inputs.scaling)
    rows = inputs.query.shape[0]
    return Attended(output.reshape(inputs.query.shape), lse.reshape(rows, -1, 1))


# On a GPU


class StepKernel(Protocol):
    """The type of `attend_step` in `gpu_step.py`, which can only be imported where Triton is."""

    def __call__(
        self,
        inputs: LayerInputs,
        columns: SpanColumns | None = None,
        table: LayerTable | None = None,
        /,
        *,
        traced: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Returns the output [B, H, 1, D], and the mass on the span, float32 [B, H]."""


def step_kernel(query: Tensor) -> StepKernel | None:
    """Returns the GPU kernel for one query per row; None if these queries cannot use it."""
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


def _step_in_one_kernel(
    kernel: StepKernel, state: PassState, table: LayerTable | None, inputs: LayerInputs
) -> Tensor:
    """Computes attention of one query per row in one GPU kernel; without a table, only traces."""
    rows = inputs.query.shape[0]
    keys = inputs.key.shape[2]
    columns = state.shared(
        "columns", inputs.size, None, lambda: state.columns.for_kernel(rows, keys)
    )
    output, mass = kernel(inputs, columns, table, traced=state.steering.trace)
    if mass is not None:
        state.record_mass(mass)
    return output


# Span and rest, attended to separately


@dataclass(frozen=True)
class StepPlan:
    """The two groups of a pass of one query; None if a group is empty in every row."""

    span: KeyGroup | None
    rest: KeyGroup | None
    prompt_span: KeyGroup | None  # the span without generated tokens
    # [B or 1, 1, 1], added to the log-odds: -inf in rows that do not see the span, inf in rows that
    # see only the span, 0 elsewhere; None if every row sees both groups
    unseen: Tensor | None


def _move_single_query(state: PassState, layer: int, inputs: LayerInputs) -> Tensor | None:
    """Computes steered attention of one query per row, [B, H, 1, D]; None if nothing is moved."""
    shift = state.steering.layer_shift(layer, inputs.query)
    if isinstance(shift, LayerTable) and shift.only_adds and not state.steering.trace:
        return _step_by_bias(state, shift, inputs)
    plan = _get_plan(state, inputs)
    if plan.span is None or plan.rest is None:
        if state.steering.trace:
            _record_all_or_nothing(state, plan, inputs)
        return None
    rest_output, rest_lse = _attend_to_group(inputs, plan.rest)
    span_output, span_lse = _attend_to_group(inputs, plan.span)
    log_odds = span_lse - rest_lse
    if plan.unseen is not None:
        log_odds = log_odds.add_(plan.unseen)
    mass = shift.mass(log_odds)
    if state.steering.trace:
        traced_mass = mass
        if plan.prompt_span is not plan.span:
            traced_mass = mass * _prompt_span_share(inputs, plan.prompt_span, span_lse)
        state.record_mass(traced_mass[..., 0].float())
    output = lerp(rest_output, span_output, mass.reshape(span_output.shape[:3]))
    return output.reshape(inputs.query.shape)


def _get_plan(state: PassState, inputs: LayerInputs) -> StepPlan:
    """Returns the groups of keys; layers of the same kind share one plan."""
    return state.shared("step", inputs.size, inputs.mask, lambda: _make_plan(state, inputs))


def _make_plan(state: PassState, inputs: LayerInputs) -> StepPlan:
    """Finds the keys of span and rest, and their masks, for all layers of the step."""
    rows = inputs.query.shape[0]
    keys = inputs.key.shape[2]
    dtype = inputs.query.dtype
    groups = state.columns.groups(keys)
    mask = inputs.mask
    ranges = groups.span, groups.rest, groups.prompt_span
    all_pure = all(key_range is None or key_range.pure for key_range in ranges)
    members = None if all_pure else state.columns.members(rows, keys)
    non_members = None if members is None else ~members
    span = rest = None
    if groups.span is not None:
        span = make_key_group(groups.span, slice_mask(mask, groups.span), members, dtype)
    if groups.rest is not None:
        rest = make_key_group(groups.rest, slice_mask(mask, groups.rest), non_members, dtype)
    prompt_span = span
    prompt_range = groups.prompt_span
    if prompt_range is None:
        prompt_span = None
    elif prompt_range is not groups.span:
        in_span = state.columns.span(rows, keys)
        prompt_mask = slice_mask(mask, prompt_range)
        prompt_span = make_key_group(prompt_range, prompt_mask, in_span, dtype)
    if span is None or rest is None or (mask is None and groups.never_empty):
        return StepPlan(span, rest, prompt_span, None)
    return StepPlan(span, rest, prompt_span, _mark_unseen(span, rest))


def _mark_unseen(span: KeyGroup, rest: KeyGroup) -> Tensor | None:
    """Builds `StepPlan.unseen`; where neither group is visible, the span counts as hidden."""
    unseen = None
    if rest.fully_masked is not None:
        unseen = torch.zeros(rest.fully_masked.shape, device=rest.fully_masked.device)
        unseen = unseen.masked_fill_(rest.fully_masked, torch.inf)
    if span.fully_masked is not None:
        before = torch.zeros((), device=span.fully_masked.device) if unseen is None else unseen
        unseen = torch.where(span.fully_masked, -torch.inf, before)
    return unseen


def _step_by_bias(state: PassState, table: LayerTable, inputs: LayerInputs) -> Tensor:
    """Computes attention in one call, with the methods' bias added to the scores of the span."""
    rows = inputs.query.shape[0]
    keys = inputs.key.shape[2]
    dtype = table.numbers.dtype
    members = state.shared(
        "members", inputs.size, None, lambda: state.columns.members(rows, keys).to(dtype)[:, None]
    )
    bias = table.numbers[0].unsqueeze(-1) * members
    if inputs.mask is not None:
        bias = bias + whole_mask(state, inputs, dtype)[:, :, 0]
    groups = inputs.key.shape[1]
    bias = bias.expand(-1, inputs.query.shape[1], -1).unflatten(1, (groups, -1))
    packed = inputs.packed
    attended = attend(packed, inputs.key, inputs.value, bias, inputs.scaling)
    return attended.output.reshape(inputs.query.shape)


def _trace_single_query(state: PassState, inputs: LayerInputs) -> Tensor:
    """Computes unsteered attention of one query per row, [B, H, 1, D], and records the mass."""
    mask = None if inputs.mask is None else whole_mask(state, inputs, inputs.query.dtype)
    output, lse = attend_single_query(inputs, mask)
    share = _prompt_span_share(inputs, _get_plan(state, inputs).prompt_span, lse)
    state.record_mass(share[..., 0].float())
    return output


def _record_all_or_nothing(state: PassState, plan: StepPlan, inputs: LayerInputs) -> None:
    """Records the mass if only one group has keys.

    It is 0 without a span. If there is only the span, it is 1, minus the mass on generated tokens
    that count as the span.
    """
    if plan.prompt_span is None or plan.rest is not None:
        state.record_mass(torch.zeros(inputs.query.shape[:2], device=inputs.query.device))
        return
    assert plan.span is not None
    share = _prompt_span_share(inputs, plan.prompt_span, _lse(inputs, plan.span))
    state.record_mass(share[..., 0].float())


def _prompt_span_share(inputs: LayerInputs, prompt_span: KeyGroup | None, lse: Tensor) -> Tensor:
    """The share of the mass of a group of keys that is on the span of the prompt, [B, H, 1].

    `lse` is the log-sum-exp of the whole group.
    """
    if prompt_span is None:
        return torch.zeros_like(lse)
    return (_lse(inputs, prompt_span) - lse).clamp_(max=0).exp_().nan_to_num_(0.0)


def _attend_to_group(inputs: LayerInputs, group: KeyGroup) -> Attended:
    """Attends to one group: output [B, G, H/G, D] and log-sum-exp [B, H, 1]."""
    key = group.of(inputs.key)
    value = group.of(inputs.value)
    output, lse = attend(inputs.packed, key, value, group.mask, inputs.scaling)
    return Attended(output, lse.reshape(inputs.query.shape[0], -1, 1))


def _lse(inputs: LayerInputs, group: KeyGroup) -> Tensor:
    """Log-sum-exp of the scores of one group, [B, H, 1]; -inf if no key of it is visible.

    In float32 and float64 the scores themselves are computed, as one query has few.
    """
    if inputs.query.dtype not in (torch.float32, torch.float64):
        lse = _attend_to_group(inputs, group).lse
        return (
            lse if group.fully_masked is None else lse.masked_fill(group.fully_masked, -torch.inf)
        )
    scores = (inputs.packed @ group.of(inputs.key).mT).mul_(inputs.scaling)
    scores = scores if group.mask is None else scores.add_(group.mask)
    return scores.logsumexp(-1).reshape(inputs.query.shape[0], -1, 1)
