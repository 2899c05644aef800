# mypy: disable-error-code="no-untyped-call"
"""Steered attention of one query per row: each group of keys is attended to by itself, and the
outputs are merged by the moved mass.

Where all there is to do is to add to the log-odds, it is added to the scores of the group in one
call. Nothing here asks the device what it holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.attention.kernels import States, attend
from holdfast.attention.plan import Part, additive, masked_part, over
from holdfast.attention.rules import TableRule
from holdfast.attention.steering import Steering


@dataclass(frozen=True)
class StepPlan:
    """The two groups of a pass of one query; None where a group is empty in every row.

    Args:
        span, rest: the groups; `proper` is the span without generated tokens.
        unseen: [B or 1, 1, 1], added to the log-odds of rows that do not see both: -inf where the
            span is not in sight, else inf; None where every row sees both.
    """

    span: Part | None
    rest: Part | None
    proper: Part | None
    unseen: Tensor | None


def step(steering: Steering, layer: int, states: States) -> Tensor | None:
    """Attention of one query per row, [B, H, 1, D], moved; None if no row has anything to move."""
    rows, heads = states.query.shape[:2]
    rule = steering.rule(rows, layer, heads, states.query.dtype)
    if isinstance(rule, TableRule) and rule.layer.only_adds and not steering.trace:
        return _step_by_bias(steering, rule, states)
    plan = _plan(steering, states)
    if plan.span is None or plan.rest is None:
        if steering.trace:
            _note_all_or_nothing(steering, plan, states)
        return None
    rest, rest_lse = _attend_part(states, plan.rest)
    held, held_lse = _attend_part(states, plan.span)
    log_odds = held_lse - rest_lse
    if plan.unseen is not None:
        log_odds = log_odds.add_(plan.unseen)
    mass = rule.mass(log_odds)
    if steering.trace:
        steering.note(_proper_mass(states, plan, mass, held_lse)[..., 0].float())
    return towards(rest, held, mass.reshape(held.shape[:3])).reshape(states.query.shape)


def _plan(steering: Steering, states: States) -> StepPlan:
    return steering.plans.get("step", states.size, states.mask, lambda: _made(steering, states))


def _made(steering: Steering, states: States) -> StepPlan:
    rows, keys, dtype = states.query.shape[0], states.key.shape[2], states.query.dtype
    groups, mask = steering.groups(keys), states.mask
    parts = groups.span, groups.rest, groups.proper
    plain = all(part is None or part.uniform for part in parts)
    members = None if plain else steering.members(rows, keys)
    others = None if members is None else ~members
    span, rest = (
        None if part is None else masked_part(part, over(mask, part), held, dtype)
        for part, held in ((groups.span, members), (groups.rest, others))
    )
    proper = span
    if groups.proper is not None and groups.proper is not groups.span:
        columns = steering.columns(rows, keys)[0]
        proper = masked_part(groups.proper, over(mask, groups.proper), columns, dtype)
    elif groups.proper is None:
        proper = None
    if span is None or rest is None or (mask is None and groups.certain):
        return StepPlan(span, rest, proper, None)
    return StepPlan(span, rest, proper, _unseen(span, rest))


def _unseen(span: Part, rest: Part) -> Tensor | None:
    """What to add to log-odds where a group is not in sight; of neither, there is no span."""
    unseen = None
    if rest.fully_masked is not None:
        unseen = torch.zeros(rest.fully_masked.shape, device=rest.fully_masked.device)
        unseen = unseen.masked_fill_(rest.fully_masked, torch.inf)
    if span.fully_masked is not None:
        before = torch.zeros((), device=span.fully_masked.device) if unseen is None else unseen
        unseen = torch.where(span.fully_masked, -torch.inf, before)
    return unseen


def _step_by_bias(steering: Steering, rule: TableRule, states: States) -> Tensor:
    """One attention call, with what the methods add on the scores of the group's keys."""
    rows, keys = states.query.shape[0], states.key.shape[2]
    wide = rule.layer.numbers.dtype
    members = steering.plans.get(
        "members", states.size, None, lambda: steering.members(rows, keys).to(wide)[:, None]
    )
    bias = rule.layer.numbers[0].unsqueeze(-1) * members
    if states.mask is not None:
        bias = bias + whole_mask(steering, states, wide)[:, :, 0]
    groups = states.key.shape[1]
    bias = bias.expand(-1, states.query.shape[1], -1).unflatten(1, (groups, -1))
    packed = states.packed
    return attend(packed, states.key, states.value, bias, False, states.scaling)[0].reshape(
        states.query.shape
    )


def whole_mask(steering: Steering, states: States, dtype: torch.dtype) -> Tensor:
    """The mask over all keys, additive; made once per pass."""
    mask = states.mask
    assert mask is not None
    return steering.plans.get("whole", states.size, mask, lambda: additive(mask, dtype))


def read_step(steering: Steering, states: States) -> Tensor:
    """Attention of one query per row as it is, [B, H, 1, D]; notes the mass on the span."""
    plan, rows = _plan(steering, states), states.query.shape[0]
    if states.mask is None:
        output, lse = attend(states.query, states.key, states.value, None, False, states.scaling)
    else:
        mask = whole_mask(steering, states, states.query.dtype)
        output, lse = attend(states.packed, states.key, states.value, mask, False, states.scaling)
        output, lse = output.reshape(states.query.shape), lse.reshape(rows, -1, 1)
    if plan.proper is None:
        steering.note(torch.zeros(states.query.shape[:2], device=states.query.device))
    else:
        held = _lse(states, plan.proper)
        steering.note((held - lse)[..., 0].clamp_(max=0).exp_().nan_to_num_(0.0).float())
    return output


def _note_all_or_nothing(steering: Steering, plan: StepPlan, states: States) -> None:
    """Of a pass with one group: the mass is 1 or 0, but for generated tokens in the group."""
    if plan.proper is None or plan.rest is not None:
        steering.note(torch.zeros(states.query.shape[:2], device=states.query.device))
        return
    assert plan.span is not None
    share = _lse(states, plan.proper) - _lse(states, plan.span)
    steering.note(share[..., 0].clamp_(max=0).exp_().nan_to_num_(0.0).float())


def _proper_mass(states: States, plan: StepPlan, mass: Tensor, held_lse: Tensor) -> Tensor:
    """The part of the moved mass that is on the span itself, [B, H, 1]."""
    if plan.proper is plan.span:
        return mass
    if plan.proper is None:
        return torch.zeros_like(mass)
    share = (_lse(states, plan.proper) - held_lse).clamp_(max=0).exp_()
    return mass * share


def _attend_part(states: States, part: Part) -> tuple[Tensor, Tensor]:
    """Output [B, G, H/G, D] and log-sum-exp [B, H, 1] of one group."""
    key, value = part.of(states.key), part.of(states.value)
    output, lse = attend(states.packed, key, value, part.mask, False, states.scaling)
    return output, lse.reshape(states.query.shape[0], -1, 1)


def _lse(states: States, part: Part) -> Tensor:
    """Log-sum-exp [B, H, 1] of one group, -inf if none is seen; scores of one query are few."""
    if states.query.dtype not in (torch.float32, torch.float64):
        lse = _attend_part(states, part)[1]
        return lse if part.fully_masked is None else lse.masked_fill(part.fully_masked, -torch.inf)
    scores = (states.packed @ part.of(states.key).mT).mul_(states.scaling)
    scores = scores if part.mask is None else scores.add_(part.mask)
    return scores.logsumexp(-1).reshape(states.query.shape[0], -1, 1)


def towards(output: Tensor, goal: Tensor, weight: Tensor) -> Tensor:
    """Moves `output` [..., D] in place by the share `weight` [...] of its way to `goal`; half
    precision rounds once, at the end.
    """
    if output.dtype == weight.dtype:
        return output.lerp_(goal, weight.unsqueeze(-1))
    return output.add_(goal.to(weight.dtype).sub_(output).mul_(weight.unsqueeze(-1)))
