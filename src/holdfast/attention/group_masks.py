"""Groups of keys, such as the span, and masks that hide all other keys."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.attention.extent import KeyRange


@dataclass(frozen=True)
class KeyGroup:
    """A non-empty range of keys that contains a group, with a mask that hides all other keys."""

    start: int
    stop: int
    # added to the scores, [B or 1, 1, Q, stop - start]; None if every query sees the whole range
    mask: Tensor | None = None
    # bool [B or 1, 1, Q], True on queries that see no key of the group; None without a mask
    fully_masked: Tensor | None = None

    def of(self, states: Tensor) -> Tensor:
        """Returns the part of keys or values [B, G, K, D] in this range, as a view."""
        return states[:, :, self.start : self.stop]


def slice_mask(mask: Tensor | None, group: KeyRange) -> Tensor | None:
    """Returns the part of a mask [B or 1, 1, Q, K] for a range of keys; None without a mask."""
    return None if mask is None else mask[..., group.start : group.stop]


def to_additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Converts a boolean or additive mask to an additive one, with -inf where a key is hidden."""
    if mask.dtype == torch.bool:
        zeros = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
        return zeros.masked_fill_(~mask, -torch.inf)
    return mask.masked_fill(~to_boolean(mask), -torch.inf).to(dtype)


def to_boolean(mask: Tensor) -> Tensor:
    """Converts a mask to a boolean one, True where a key is visible.

    In an additive mask, models hide a key with -inf or with the lowest number of their dtype.
    """
    return mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2


def make_key_group(
    group: KeyRange, mask: Tensor | None, members: Tensor | None, dtype: torch.dtype
) -> KeyGroup:
    """Makes a group of keys and its mask.

    Args:
        group: the range that contains the group.
        mask: the model's mask over this range; None if no key is hidden.
        members: the keys of the group, bool [B, K]; may be None if the range is pure.
        dtype: of the additive mask.
    """
    if mask is None and group.pure:
        return KeyGroup(group.start, group.stop)
    is_visible = None if mask is None else to_boolean(mask)
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
