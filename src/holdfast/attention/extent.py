"""Where span, generated tokens and rest are among the keys, and the masks of these groups.

Positions are known on the host: found once for a steering, and counted from pass to pass. Masks are
made once per pass, not per layer. Except for `Extent.of`, nothing here reads back from the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor


@dataclass(frozen=True)
class KeyRange:
    """Keys `start` to `stop` contain a group in every row; `uniform` if they contain only it."""

    start: int
    stop: int
    uniform: bool


@dataclass(frozen=True)
class Starts:
    """Where the keys of windowed layers begin, in a pass whose rows keep different keys."""

    keys: int  # how many such a layer reads, which distinguishes it from other layers
    columns: tuple[int, ...]  # per row, the column of the first key
    on_device: Tensor  # the same, int64 [row, 1]


@dataclass(frozen=True)
class Groups:
    """The keys that a pass attends to as two groups; None if a group is empty in every row."""

    span: KeyRange | None  # the span; also generated tokens, in rows where they count as the span
    rest: KeyRange | None  # all other keys
    # the span without generated tokens; the same object as `span` if it has none
    proper: KeyRange | None
    certain: bool  # whether every row has keys of both groups, if none are masked


@dataclass(frozen=True)
class Extent:
    """The columns of the span of a batch, in all its passes."""

    start: int  # the first column in any row's span; 0 if there is none
    stop: int  # one after the last such column; 0 if there is none
    uniform: bool  # whether every row's span contains all columns between
    certain: bool  # whether every row has a span
    first_generated: tuple[int, ...]  # per row, the first generated column
    includes: tuple[bool, ...]  # per row, whether generated tokens count as its span

    @classmethod
    def of(cls, span: Tensor, first_generated: Sequence[int], includes: Sequence[bool]) -> Extent:
        """The extent of a span mask, bool [row, column], which is copied to the host."""
        span = span.cpu()
        columns = span.any(0).nonzero()[:, 0].tolist()
        start, stop = (columns[0], columns[-1] + 1) if columns else (0, 0)
        uniform = bool(span[:, start:stop].all())
        certain = start < stop and (uniform or bool(span.any(1).all()))
        return cls(start, stop, uniform, certain, tuple(first_generated), tuple(includes))

    def groups(self, first: int, last: int) -> Groups:
        """The groups among the columns `first` to `last`, in keys counted from `first`."""
        starts = zip(self.first_generated, self.includes, strict=True)
        generated = [start for start, included in starts if included]
        if any(start < last for start in generated):
            return self._with_generated(first, last, generated)
        if (proper := self._proper(first, last)) is None:
            return Groups(None, KeyRange(0, last - first, True), None, False)
        leads = self.uniform and proper.start == 0
        rest = KeyRange(proper.stop if leads else 0, last - first, leads)
        certain = self.certain and self.start >= first and self._has_rest(first, last)
        return Groups(proper, rest if rest.start < rest.stop else None, proper, certain)

    def groups_by_row(self, firsts: Sequence[int], keys: int) -> Groups:
        """The groups among this many keys, which start at a different column in each row."""
        proper = None
        if self.stop:
            start, stop = max(0, self.start - max(firsts)), min(keys, self.stop - min(firsts))
            proper = KeyRange(start, stop, False) if start < stop else None
        every = zip(firsts, self.first_generated, self.includes, strict=True)
        generated = any(included and first + keys > start for first, start, included in every)
        span = KeyRange(0, keys, False) if generated else proper
        return Groups(span, KeyRange(0, keys, span is None), proper, False)

    def _proper(self, first: int, last: int) -> KeyRange | None:
        start, stop = max(self.start, first), min(self.stop, last)
        return KeyRange(start - first, stop - first, self.uniform) if start < stop else None

    def _with_generated(self, first: int, last: int, generated: Sequence[int]) -> Groups:
        """The same if visible generated tokens count as the span of some rows."""
        starts = [*generated, *([self.start] if self.stop else [])]
        start = max(min(starts), first)
        leads = self.uniform and self.stop > self.start and self.start <= first
        alike = leads and all(self.includes)
        whole = alike and all(column == self.stop for column in self.first_generated)
        rest_start = max(self.stop, first) if leads else first
        rest_stop = min(max(self.first_generated), last) if all(self.includes) else last
        plain = alike and all(column >= rest_stop for column in self.first_generated)
        rest = KeyRange(rest_start - first, rest_stop - first, plain)
        return Groups(
            KeyRange(start - first, last - first, whole),
            rest if rest.start < rest.stop else None,
            self._proper(first, last),
            self.certain and self.start >= first and self._has_rest(first, last),
        )

    def _has_rest(self, first: int, last: int) -> bool:
        """Whether the columns alone show that every row has keys of the rest."""
        before = self.start > first
        behind = last > self.stop
        rest_between = not any(self.includes) or min(self.first_generated) > self.stop
        return before or (behind and rest_between)


@dataclass(frozen=True)
class SpanColumns:
    """Which keys of a pass are the span's.

    Args:
        span: bool [row, column]; columns behind the last are not in it.
        generated: int64 [row], the first generated column that counts as the row's span, or one
            that no row reaches.
        first: the column of the first key.
        copies: rows of the pass for each row of the span.
    """

    span: Tensor
    generated: Tensor
    first: int | Starts
    copies: int


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


Plan = TypeVar("Plan")


class _MadePlan(NamedTuple):
    kind: str
    size: tuple[int, int]
    mask: Tensor | None
    plan: Any


@dataclass
class Plans:
    """Values that the layers of a pass share, by kind, and by the size and mask of a layer.

    There are as many as there are kinds of layers, so they are searched one by one; a mask is known
    by its tensor, as comparing its values would wait for the device.
    """

    _made: list[_MadePlan] = field(default_factory=list)

    def get(
        self, kind: str, size: tuple[int, int], mask: Tensor | None, make: Callable[[], Plan]
    ) -> Plan:
        """The plan of this kind for queries x keys under a mask, made if there is none yet."""
        for made in self._made:
            if made.kind == kind and made.size == size and made.mask is mask:
                return made.plan  # type: ignore[no-any-return]
        plan = make()
        self._made.append(_MadePlan(kind, size, mask, plan))
        return plan

    def clear(self) -> None:
        """Drops the plans of the pass before."""
        self._made.clear()


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
    not read if the range is uniform.
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
