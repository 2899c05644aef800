"""The masks of the groups of keys: made once per pass for every kind of layer.

Nothing here asks the device what it holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor

from holdfast.attention.extent import Range

Plan = TypeVar("Plan")


@dataclass(frozen=True)
class KeyGroup:
    """A range of keys that holds one group.

    Args:
        start, stop: of the range, not empty.
        mask: added to the scores, [B or 1, 1, Q, stop - start]; None where every query sees the
            whole range.
        fully_masked: bool [B or 1, 1, Q], True on queries that see none of it; None with no mask.
    """

    start: int
    stop: int
    mask: Tensor | None = None
    fully_masked: Tensor | None = None

    def of(self, states: Tensor) -> Tensor:
        """Its keys, or values, of [B, G, K, D]."""
        return states[:, :, self.start : self.stop]


def over(mask: Tensor | None, group: Range) -> Tensor | None:
    """The mask [B or 1, 1, Q, K] over the keys of a group."""
    return None if mask is None else mask[..., group.start : group.stop]


@dataclass
class Plans:
    """Plans that the layers of a pass share: by kind, and the mask and size each was made for."""

    _made: list[tuple[str, tuple[int, int], Tensor | None, Any]] = field(default_factory=list)

    def get(
        self, kind: str, size: tuple[int, int], mask: Tensor | None, make: Callable[[], Plan]
    ) -> Plan:
        """The plan of this kind for queries x keys under a mask, made where there is none yet."""
        for made_kind, made_size, made_mask, plan in self._made:
            if made_kind == kind and made_size == size and made_mask is mask:
                found: Plan = plan
                return found
        made = make()
        self._made.append((kind, size, mask, made))
        return made

    def clear(self) -> None:
        """Forgets those of the pass before."""
        self._made.clear()


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
    group: Range, mask: Tensor | None, members: Tensor | None, dtype: torch.dtype
) -> KeyGroup:
    """A group of keys as some queries see it.

    Args:
        group: where it stands.
        mask: of these queries over its range, [B or 1, 1, Q, stop - start]; None: they see all.
        members: bool [B, K], the keys of the group; not read where it is uniform.
        dtype: of the mask that is made.
    """
    if mask is None and group.uniform:
        return KeyGroup(group.start, group.stop)
    seen = bias = None
    if mask is not None:
        seen, bias = visible(mask), None if mask.dtype == torch.bool else mask.to(dtype)
    if not group.uniform:
        assert members is not None
        inside = members[:, None, None, group.start : group.stop]
        seen = inside if seen is None else seen & inside
    assert seen is not None
    if bias is None:
        bias = torch.zeros((), dtype=dtype, device=seen.device)
    return KeyGroup(group.start, group.stop, torch.where(seen, bias, -torch.inf), ~seen.any(-1))
