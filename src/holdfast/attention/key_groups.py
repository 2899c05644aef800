"""The groups of the keys of a pass: ranges that contain them, and masks that hide all other keys.

The span is the set of tokens that methods move attention to, usually the system prompt; the rest is
all other tokens.

In this example, S is a token of the span, g a generated token, and replies count as the span:

    column    0  1  2  3  4  5  6  7
    row 0     S  S  .  .  g  g  g  g      span: 0 to 7, not pure
    row 1     S  S  .  .  .  g  g  g      rest: 2 to 4, not pure: 4 is in row 0's reply
                                          prompt_span: 0 and 1, pure

A pure range contains nothing else in any row, so it needs no mask. All of this is known on the
host: it is found once for a steering, and then follows from the number of tokens. Except for
`Extent.of`, no range is read back from the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class KeyRange:
    """A range of keys that contains all keys of a group, in every row."""

    start: int
    stop: int
    pure: bool  # whether it contains only keys of the group, in every row


@dataclass(frozen=True)
class Starts:
    """Where the keys of windowed layers begin, in a pass whose rows differ in this."""

    keys: int  # number of keys that such a layer reads, which tells it apart from other layers
    columns: tuple[int, ...]  # per row, the column of the first key
    on_device: Tensor  # the same, int64 [row, 1]


@dataclass(frozen=True)
class Groups:
    """The two groups of keys of a pass; a range is None if its group is empty in every row."""

    span: KeyRange | None  # the span, with generated tokens in rows where they count as the span
    rest: KeyRange | None  # all other keys
    # the span without generated tokens; the same object as `span` if there are none in it
    prompt_span: KeyRange | None
    never_empty: bool  # whether every row has keys of both groups, if none are masked


@dataclass(frozen=True)
class Extent:
    """The columns of the span of a batch, in all its passes."""

    start: int  # the first column that is in any row's span; 0 if no row has a span
    stop: int  # one after the last such column; 0 if no row has a span
    pure: bool  # whether every row's span contains all columns between
    in_every_row: bool  # whether every row has a span
    first_generated: tuple[int, ...]  # per row, the first generated column
    includes_generated: tuple[bool, ...]  # per row, whether generated tokens count as the span

    @classmethod
    def of(
        cls, span: Tensor, first_generated: Sequence[int], includes_generated: Sequence[bool]
    ) -> Extent:
        """Finds the extent of a span mask, bool [row, column], which is copied to the host."""
        span = span.cpu()
        columns = span.any(0).nonzero()[:, 0].tolist()
        start = stop = 0
        if columns:
            start = columns[0]
            stop = columns[-1] + 1
        pure = bool(span[:, start:stop].all())
        in_every_row = start < stop and (pure or bool(span.any(1).all()))
        return cls(
            start, stop, pure, in_every_row, tuple(first_generated), tuple(includes_generated)
        )

    def groups(self, first: int, last: int) -> Groups:
        """Returns the groups in the columns `first` to `last`, as keys counted from `first`."""
        starts = zip(self.first_generated, self.includes_generated, strict=True)
        generated = [start for start, included in starts if included]
        if any(start < last for start in generated):
            return self._with_generated(first, last, generated)
        if (prompt_span := self._prompt_span(first, last)) is None:
            all_keys = KeyRange(0, last - first, pure=True)
            return Groups(None, all_keys, None, never_empty=False)
        comes_first = self.pure and prompt_span.start == 0  # so that the rest is in one piece
        rest = _range_or_none(prompt_span.stop if comes_first else 0, last - first, comes_first)
        return Groups(prompt_span, rest, prompt_span, self._never_empty(first, last))

    def groups_by_row(self, first_columns: Sequence[int], keys: int) -> Groups:
        """Returns the groups in `keys` keys that start at a different column in each row."""
        prompt_span = None
        if self.stop:
            start = max(0, self.start - max(first_columns))
            stop = min(keys, self.stop - min(first_columns))
            prompt_span = _range_or_none(start, stop, pure=False)
        rows = zip(first_columns, self.first_generated, self.includes_generated, strict=True)
        sees_reply = any(includes and first + keys > start for first, start, includes in rows)
        span = KeyRange(0, keys, pure=False) if sees_reply else prompt_span
        rest = KeyRange(0, keys, pure=span is None)
        return Groups(span, rest, prompt_span, never_empty=False)

    def _with_generated(self, first: int, last: int, generated: Sequence[int]) -> Groups:
        """Returns the groups if some rows' replies, which begin at `generated`, count as span."""
        starts = [*generated, *([self.start] if self.stop else [])]
        span_start = max(min(starts), first)
        span_comes_first = self.pure and self.stop > self.start and self.start <= first
        rest_start = max(self.stop, first) if span_comes_first else first
        every_row = all(self.includes_generated)
        rest_stop = min(max(self.first_generated), last) if every_row else last
        # in every row: the span, then the rest, then the reply
        in_order = span_comes_first and every_row
        no_rest = all(column == self.stop for column in self.first_generated)
        no_reply_in_rest = all(column >= rest_stop for column in self.first_generated)
        return Groups(
            KeyRange(span_start - first, last - first, in_order and no_rest),
            _range_or_none(rest_start - first, rest_stop - first, in_order and no_reply_in_rest),
            self._prompt_span(first, last),
            self._never_empty(first, last),
        )

    def _prompt_span(self, first: int, last: int) -> KeyRange | None:
        """Returns the range of the span without generated tokens."""
        start = max(self.start, first)
        stop = min(self.stop, last)
        return _range_or_none(start - first, stop - first, self.pure)

    def _never_empty(self, first: int, last: int) -> bool:
        """Whether the columns alone show that every row has keys of both groups."""
        rest_before = self.start > first
        continues = last > self.stop
        rest_between = not any(self.includes_generated) or min(self.first_generated) > self.stop
        has_rest = rest_before or (continues and rest_between)
        return self.in_every_row and self.start >= first and has_rest


def _range_or_none(start: int, stop: int, pure: bool) -> KeyRange | None:
    """Makes a range of keys; None if it is empty."""
    return KeyRange(start, stop, pure) if start < stop else None


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
