"""Which keys belong to the span, to the reply and to the rest: found once per pass for every kind
of layer.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.attention.steering import Steering


@dataclass(frozen=True)
class Part:
    """A range of keys that holds one group.

    Args:
        start, stop: of the range, not empty.
        mask: added to the scores, [B or 1, 1, Q, stop - start]; None where every query sees the
            whole range.
        fully_masked: bool [B or 1, 1, Q], True on queries that see none of it; None where
            there are none.
    """

    start: int
    stop: int
    mask: Tensor | None = None
    fully_masked: Tensor | None = None


@dataclass(frozen=True)
class StepPlan:
    """The groups of a pass of one query; None where a group is empty in every row."""

    span: Part | None
    reply: Part | None
    rest: Part | None


def additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A boolean or additive mask as an additive one with -inf where nothing is seen."""
    if mask.dtype == torch.bool:
        return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(
            ~mask, -torch.inf
        )
    return mask.masked_fill(~visible(mask), -torch.inf).to(dtype)


def visible(mask: Tensor) -> Tensor:
    """Where a boolean or additive mask lets a query see; models write "not" as the least number of
    their dtype.
    """
    return mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2


def masked_part(
    start: int, stop: int, mask: Tensor | None, members: Tensor | None, dtype: torch.dtype
) -> Part:
    """The part of `members` (bool [B, stop - start]; None: all) among the keys from `start`, seen
    through `mask` [B or 1, 1, Q, stop - start].
    """
    if mask is None and members is None:
        return Part(start, stop)
    if mask is None:
        seen, bias = members[:, None, None], None
    else:
        seen = visible(mask) if members is None else visible(mask) & members[:, None, None]
        bias = None if mask.dtype == torch.bool else mask
    fully_masked = ~seen.any(-1)
    if not bool(fully_masked.any()):
        fully_masked = None
        if bias is None and bool(seen.all()):
            return Part(start, stop)
    bias = torch.zeros((), dtype=dtype, device=seen.device) if bias is None else bias.to(dtype)
    return Part(start, stop, torch.where(seen, bias, -torch.inf), fully_masked)


def bounds(span: Tensor) -> tuple[int, int] | None:
    """First and last-but-one column that any row of `span` [B, K] holds; None if no row holds
    any.
    """
    held = span.any(0).nonzero()
    return (int(held[0]), int(held[-1]) + 1) if len(held) else None


def plan_step(
    steering: Steering, rows: int, keys: int, mask: Tensor | None, dtype: torch.dtype
) -> StepPlan:
    """The groups of a pass of one query per row; the reply is one of its own only if a method asks
    for it.
    """
    span, reply = steering.columns(rows, keys)
    if mask is not None and mask.dtype == torch.bool and bool(mask.all()):
        mask = None
    rest = ~span if reply is None else ~(span | reply)
    return StepPlan(*(_part(members, mask, dtype) for members in (span, reply, rest)))


def _part(members: Tensor | None, mask: Tensor | None, dtype: torch.dtype) -> Part | None:
    """The keys of a group, bool [B, K], as the narrowest range that holds them in every row; None
    where there are none.
    """
    held = None if members is None else bounds(members)
    if held is None:
        return None
    members = members[:, held[0] : held[1]]
    return masked_part(
        *held, _columns(mask, *held), None if bool(members.all()) else members, dtype
    )


def _columns(mask: Tensor | None, start: int, stop: int) -> Tensor | None:
    return None if mask is None else mask[..., start:stop]
