"""Where span, generated tokens and rest stand among the keys: known on the host.

It is found when a steering is made; what changes from pass to pass is counted, not looked for, so
that a pass waits for no device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Range:
    """Keys `start` to `stop` hold a group of every row; `uniform` where they hold nothing else."""

    start: int
    stop: int
    uniform: bool


@dataclass(frozen=True)
class Starts:
    """Where the keys of windowed layers begin, in a pass whose rows keep different ones.

    Args:
        keys: how many such a layer reads, by which it is told from the others.
        columns: per row, the column of the first of them.
        on_device: the same, int64 [row, 1].
    """

    keys: int
    columns: tuple[int, ...]
    on_device: Tensor


@dataclass(frozen=True)
class Groups:
    """The keys that a pass attends to as two groups; None where a group is empty in every row.

    Args:
        span: the span; also generated tokens, in rows where they count as the span.
        rest: the others.
        proper: the span without generated tokens; the same object as `span` where it has none.
        certain: whether each row has keys of both groups, if none are masked.
    """

    span: Range | None
    rest: Range | None
    proper: Range | None
    certain: bool


@dataclass(frozen=True)
class Extent:
    """Where the span of a batch stands in all its passes, in columns.

    Args:
        start, stop: of the columns that some row's span holds; both 0 where none does.
        uniform: whether every row's span holds all of these.
        certain: whether every row has a span.
        prompt: per row, the first generated column.
        includes: per row, whether generated tokens count as its span.
    """

    start: int
    stop: int
    uniform: bool
    certain: bool
    prompt: tuple[int, ...]
    includes: tuple[bool, ...]

    @classmethod
    def of(cls, span: Tensor, prompt: Sequence[int], includes: Sequence[bool]) -> Extent:
        """Of a span mask, bool [row, column]; reads it on the host, once."""
        span = span.cpu()
        columns = span.any(0).nonzero()[:, 0].tolist()
        start, stop = (columns[0], columns[-1] + 1) if columns else (0, 0)
        uniform = bool(span[:, start:stop].all())
        certain = start < stop and (uniform or bool(span.any(1).all()))
        return cls(start, stop, uniform, certain, tuple(prompt), tuple(includes))

    def groups(self, first: int, last: int) -> Groups:
        """The groups among the columns `first` to `last`, in keys counted from 0."""
        starts = zip(self.prompt, self.includes, strict=True)
        generated = [start for start, included in starts if included]
        if any(start < last for start in generated):
            return self._with_generated(first, last, generated)
        if (proper := self._proper(first, last)) is None:
            return Groups(None, Range(0, last - first, True), None, False)
        leads = self.uniform and proper.start == 0
        rest = Range(proper.stop if leads else 0, last - first, leads)
        certain = self.certain and self.start >= first and self._has_rest(first, last)
        return Groups(proper, rest if rest.start < rest.stop else None, proper, certain)

    def groups_behind(self, firsts: Sequence[int], keys: int) -> Groups:
        """The groups among so many keys, of which each row's first is another column."""
        proper = None
        if self.stop:
            start, stop = max(0, self.start - max(firsts)), min(keys, self.stop - min(firsts))
            proper = Range(start, stop, False) if start < stop else None
        every = zip(firsts, self.prompt, self.includes, strict=True)
        generated = any(included and first + keys > start for first, start, included in every)
        span = Range(0, keys, False) if generated else proper
        return Groups(span, Range(0, keys, span is None), proper, False)

    def _proper(self, first: int, last: int) -> Range | None:
        start, stop = max(self.start, first), min(self.stop, last)
        return Range(start - first, stop - first, self.uniform) if start < stop else None

    def _with_generated(self, first: int, last: int, generated: Sequence[int]) -> Groups:
        """The same where generated tokens are in sight that count as the span of some rows."""
        starts = [*generated, *([self.start] if self.stop else [])]
        start = max(min(starts), first)
        leads = self.uniform and self.stop > self.start and self.start <= first
        alike = leads and all(self.includes)
        whole = alike and all(column == self.stop for column in self.prompt)
        rest_start = max(self.stop, first) if leads else first
        rest_stop = min(max(self.prompt), last) if all(self.includes) else last
        plain = alike and all(column >= rest_stop for column in self.prompt)
        rest = Range(rest_start - first, rest_stop - first, plain)
        return Groups(
            Range(start - first, last - first, whole),
            rest if rest.start < rest.stop else None,
            self._proper(first, last),
            self.certain and self.start >= first and self._has_rest(first, last),
        )

    def _has_rest(self, first: int, last: int) -> bool:
        """Whether it is sure without a look that every row has keys of the rest."""
        before = self.start > first
        behind = last > self.stop
        return before or (behind and (not any(self.includes) or min(self.prompt) > self.stop))
