"""The rows of a pass, and sums of their attention weights over the span and over the rest.

For example, a row with the span [False, True, True, False] and a generated token after it:

    runs_until(5) -> ColumnRun(0, 1, False), ColumnRun(1, 3, True), ColumnRun(3, 4, False),
                     ColumnRun(4, 5, False)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from holdfast.methods.protocols import ShiftsAttention


class ColumnRun(NamedTuple):
    """Consecutive columns of a row, all in the span or all outside."""

    start: int
    stop: int  # exclusive
    in_span: bool


@dataclass(frozen=True, eq=False)
class SteeredRow:
    """A row of a pass.

    Args:
        stream: the number of the stream with its keys and values.
        start: how many of its tokens are already computed.
        span: True on the span's tokens in its prompt; generated tokens come after the prompt.
        methods: only methods that the steering table can express.
        trace: whether to record the mass on the span.
    """

    stream: int
    start: int
    span: Sequence[bool]
    methods: tuple[ShiftsAttention, ...] = ()
    trace: bool = False

    @cached_property
    def _run_starts(self) -> dict[int, bool]:
        """The first column of each run, and whether the run is in the span.

        The last run has the generated columns. Their mass is never traced, so they have a run of
        their own even if the prompt ends with the span and they count as part of it.
        """
        generated = any(method.span_includes_generated for method in self.methods)
        in_span = np.array([*self.span, generated])
        changes = (np.flatnonzero(in_span[1:] != in_span[:-1]) + 1).tolist()
        return {start: bool(in_span[start]) for start in sorted({0, *changes, len(self.span)})}

    def runs_until(self, end: int) -> list[ColumnRun]:
        """Returns the runs of the columns before `end`."""
        starts = list(self._run_starts)
        pairs = zip(self._run_starts.items(), [*starts[1:], end], strict=True)
        return [
            ColumnRun(start, min(stop, end), in_span)
            for (start, in_span), stop in pairs
            if start < end
        ]


class _SetRun(NamedTuple):
    """Consecutive columns of a row in the same sets, up to the beginning of the next run."""

    start: int
    is_span: bool  # they count as the span
    is_rest: bool
    is_traced: bool  # they are in the span of the prompt, whose mass is traced


class SetMasses(NamedTuple):
    """The mass on each of three sets of columns, [row, head, query]."""

    span: np.ndarray  # columns that count as the span
    rest: np.ndarray  # all others
    traced: np.ndarray  # the span in the prompt


class ColumnSets:
    """Three sets of the columns of each row, over which weights are summed; see `SetMasses`.

    Sums over runs of columns are much faster than products with indicators of the sets.

    Args:
        rows: the rows of a pass.
        ends: the number of tokens of each row after the pass, without padding.
        width: the number of columns, of which those after a row's end are in no set.
    """

    def __init__(self, rows: Sequence[SteeredRow], ends: Sequence[int], width: int):
        self.width = width
        runs_by_row = [_set_runs(row, end, width) for row, end in zip(rows, ends, strict=True)]
        num_runs = max(map(len, runs_by_row))  # numpy needs as many in every row
        runs_by_row = [_split(runs, num_runs, width) for runs in runs_by_row]
        self._starts = np.array([[run.start for run in runs] for runs in runs_by_row])
        self._sets = np.array([[run[1:] for run in runs] for runs in runs_by_row], np.float32)
        # by the number of lines of a row: where each run starts in the flattened weights
        self._offsets: dict[int, np.ndarray] = {}

    def masses(self, weights: np.ndarray) -> SetMasses:
        """Sums contiguous weights [row, head, query, column] over each set."""
        rows, heads, queries, width = weights.shape
        lines = heads * queries
        if lines not in self._offsets:
            line_starts = np.arange(0, rows * lines * width, width).reshape(rows, lines, 1)
            self._offsets[lines] = (line_starts + self._starts[:, None]).ravel()
        sums = np.add.reduceat(weights.reshape(-1), self._offsets[lines])
        # einsum, as the idle threads of BLAS would spin through the whole pass
        by_run = sums.reshape(rows, heads, queries, -1)
        return SetMasses(*np.einsum("rhqs,rsc->crhq", by_run, self._sets))


def _set_runs(row: SteeredRow, end: int, width: int) -> list[_SetRun]:
    """Returns the runs of a row of `width` columns, of which those from `end` on are in no set."""
    runs = [
        _SetRun(run.start, run.in_span, not run.in_span, run.in_span and run.start < len(row.span))
        for run in row.runs_until(end)
    ]
    return [*runs, _SetRun(end, False, False, False)] if end < width else runs


def _split(runs: list[_SetRun], count: int, width: int) -> list[_SetRun]:
    """Splits runs of `width` columns into `count`, by starting new ones at the first columns that
    start none.
    """
    starts = {run.start for run in runs}
    new_starts = [column for column in range(width) if column not in starts]
    new_runs = []
    for column in new_starts[: count - len(runs)]:
        containing = next(run for run in reversed(runs) if run.start < column)
        new_runs.append(containing._replace(start=column))
    return sorted([*runs, *new_runs])
