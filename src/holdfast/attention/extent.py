"""Where span, generated tokens and rest are among the keys of a pass.

This is known on the host: it is found once for a steering, and counted from pass to pass. Except
for `Extent.of`, nothing here reads back from the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
        comes_first = self.uniform and proper.start == 0  # so that the rest is in one piece
        rest = _range(proper.stop if comes_first else 0, last - first, comes_first)
        return Groups(proper, rest, proper, self._is_certain(first, last))

    def groups_by_row(self, firsts: Sequence[int], keys: int) -> Groups:
        """The groups among this many keys, which start at a different column in each row."""
        proper = None
        if self.stop:
            start, stop = max(0, self.start - max(firsts)), min(keys, self.stop - min(firsts))
            proper = _range(start, stop, False)
        every = zip(firsts, self.first_generated, self.includes, strict=True)
        generated = any(included and first + keys > start for first, start, included in every)
        span = KeyRange(0, keys, False) if generated else proper
        return Groups(span, KeyRange(0, keys, span is None), proper, False)

    def _with_generated(self, first: int, last: int, generated: Sequence[int]) -> Groups:
        """The same if visible generated tokens count as the span of some rows."""
        starts = [*generated, *([self.start] if self.stop else [])]
        start = max(min(starts), first)
        comes_first = self.uniform and self.stop > self.start and self.start <= first
        includes_all = all(self.includes)
        rest_start = max(self.stop, first) if comes_first else first
        rest_stop = min(max(self.first_generated), last) if includes_all else last
        # a range of one group alone: the replies follow the span at once, or none begins before
        # the rest ends
        span_is_uniform = all(column == self.stop for column in self.first_generated)
        rest_is_uniform = all(column >= rest_stop for column in self.first_generated)
        in_order = comes_first and includes_all
        return Groups(
            KeyRange(start - first, last - first, in_order and span_is_uniform),
            _range(rest_start - first, rest_stop - first, in_order and rest_is_uniform),
            self._proper(first, last),
            self._is_certain(first, last),
        )

    def _proper(self, first: int, last: int) -> KeyRange | None:
        """The span without generated tokens."""
        start, stop = max(self.start, first), min(self.stop, last)
        return _range(start - first, stop - first, self.uniform)

    def _is_certain(self, first: int, last: int) -> bool:
        """Whether the columns alone show that every row has keys of both groups."""
        rest_before, behind = self.start > first, last > self.stop
        rest_between = not any(self.includes) or min(self.first_generated) > self.stop
        has_rest = rest_before or (behind and rest_between)
        return self.certain and self.start >= first and has_rest


def _range(start: int, stop: int, uniform: bool) -> KeyRange | None:
    """The range, or None if it is empty."""
    return KeyRange(start, stop, uniform) if start < stop else None
