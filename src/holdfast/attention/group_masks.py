"""Groups of keys, such as the span, and the masks that leave a query the keys of its group."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.attention.extent import KeyRange


@dataclass(frozen=True)
class KeyGroup:
    """A non-empty range of keys that contains one group."""

    start: int
    stop: int
    # added to the scores, [B or 1, 1, Q, stop - start]; None if every query sees the whole range
    mask: Tensor | None = None
    # bool [B or 1, 1, Q], True on queries that see none of it; None without a mask
    fully_masked: Tensor | None = None

    def of(self, states: Tensor) -> Tensor:
        """The group's part of keys or values [B, G, K, D]."""
        return states[:, :, self.start : self.stop]


def over(mask: Tensor | None, group: KeyRange) -> Tensor | None:
    """The mask [B or 1, 1, Q, K] over the keys of a group."""
    return None if mask is None else mask[..., group.start : group.stop]


def additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Converts a boolean or additive mask to an additive one, with -inf where a key is hidden."""
    if mask.dtype == torch.bool:
        zeros = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
        return zeros.masked_fill_(~mask, -torch.inf)
    return mask.masked_fill(~visible(mask), -torch.inf).to(dtype)


def visible(mask: Tensor) -> Tensor:
    """True where a query sees a key; models hide a key with the lowest number of their dtype."""
    return mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2


def masked_part(
    group: KeyRange, mask: Tensor | None, members: Tensor | None, dtype: torch.dtype
) -> KeyGroup:
    """A group of keys with the mask of its range (None: all are seen); `members`, bool [B, K], is
    not read if the range is pure.
    """
    if mask is None and group.pure:
        return KeyGroup(group.start, group.stop)
    is_visible = None if mask is None else visible(mask)
    if not group.pure:
        assert members is not None
        in_group = members[:, None, None, group.start : group.stop]
        is_visible = in_group if is_visible is None else is_visible & in_group
    assert is_visible is not None
    if mask is None or mask.dtype == torch.bool:
        bias = torch.zeros((), dtype=dtype, device=is_visible.device)
    else:
        bias = mask.to(dtype)
    bias = torch.where(is_visible, bias, -torch.inf)
    return KeyGroup(group.start, group.stop, bias, ~is_visible.any(-1))
