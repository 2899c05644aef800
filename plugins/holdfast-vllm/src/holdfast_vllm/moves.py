"""Finds the queries of a pass that are moved, and the group of each of their keys.

A pass of vLLM has the queries of all rows one after another. A row with one query is a decode step;
a row with several is a chunk of a prompt, or is recomputed after preemption.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from holdfast_vllm.wire import Admitted

# added to the score of a key that is outside the group or invisible; it is finite because a softmax
# over only -inf would be NaN
HIDDEN = -1e30


@dataclass(frozen=True)
class Move:
    """Consecutive queries of one row that are moved, or a single query whose mass is recorded.

    Args:
        row: the number of the row in the batch.
        admitted: the steering of its request.
        first: the first query, counted in the pass.
        count: how many queries there are.
        position: the position of the first query in the row's context.
        records_mass: whether to record the mass of the last query, which draws a token.
        writes: whether outputs are moved; False if only the mass is recorded.
    """

    row: int
    admitted: Admitted
    first: int
    count: int
    position: int
    records_mass: bool
    writes: bool

    @property
    def length(self) -> int:
        """How many keys the last query sees."""
        return self.position + self.count


def moves_of(
    rows: Sequence[Admitted | None], starts: Sequence[int], lengths: Sequence[int]
) -> list[Move]:
    """Finds the queries of a pass that are moved, or whose mass is recorded.

    Rows whose queries do not see the span yet are skipped.

    Args:
        rows: the steering of each row; None for a row without any.
        starts: the first query of each row, followed by the number of all queries.
        lengths: the length of each row's context, including this pass.
    """
    moves = []
    for row, admitted in enumerate(rows):
        end = starts[row + 1]
        count = starts[row + 1] - starts[row]
        if admitted is None or count <= 0:
            continue
        length = lengths[row]
        records_mass = bool(admitted.trace) and length >= admitted.prompt
        writes = bool(admitted.methods) and length > admitted.ranges[0][0]
        if not writes:
            count = int(records_mass)
        if count:
            moves.append(
                Move(row, admitted, end - count, count, length - count, records_mass, writes)
            )
    return moves


def separate_recorded_queries(moves: Sequence[Move]) -> list[Move]:
    """Splits moves of several queries that record a mass: the last query becomes a second move."""
    split = []
    for move in moves:
        if not move.records_mass or move.count == 1:
            split.append(move)
            continue
        last = move.count - 1
        split.append(replace(move, records_mass=False))
        split.append(
            replace(
                move,
                first=move.first + last,
                count=1,
                position=move.position + last,
                writes=False,
            )
        )
    return split


def counts_generated(admitted: Admitted) -> bool:
    """Whether any method counts generated tokens as part of the span."""
    return any(method.span_includes_generated for method in admitted.methods)


def disagrees(admitted: Admitted) -> bool:
    """Whether a row has methods that disagree on whether the span includes generated tokens."""
    return len({method.span_includes_generated for method in admitted.methods}) > 1


def needs_three(admitted: Admitted) -> bool:
    """Whether span, generated tokens and rest must be distinguished.

    This is so if the methods disagree on generated tokens, or if the methods count them as the span
    but the mass on the span alone is to be recorded.
    """
    return disagrees(admitted) or (counts_generated(admitted) and bool(admitted.trace))


def members(rows: Sequence[Admitted], keys: int, three: bool) -> Tensor:
    """Returns the keys of each group, visible or not: bool [group, row, key].

    The groups are the span (with generated tokens if a method counts them) and the rest; with
    `three`, they are the span, the generated tokens and the rest.
    """
    span = torch.zeros(len(rows), keys, dtype=torch.bool)
    generated = torch.zeros(len(rows), keys, dtype=torch.bool)
    for row, admitted in enumerate(rows):
        for first, last in admitted.ranges:
            span[row, first:last] = True
        if three or counts_generated(admitted):
            generated[row, admitted.prompt :] = True
    if three:
        return torch.stack([span, generated, ~(span | generated)])
    return torch.stack([span | generated, ~(span | generated)])


@dataclass(frozen=True)
class VisibleKeys:
    """The keys of each group that queries see; computed on first use and cached.

    Args:
        groups: bool [group, row, key], from `members`.
        positions: int64 [row, query], of the queries in their contexts.
        whole: whether every query is known to see keys of every group.
    """

    groups: Tensor
    positions: Tensor
    whole: bool = False

    @cached_property
    def is_visible(self) -> Tensor:
        """True on visible keys, bool [row, query, key]."""
        keys = torch.arange(self.groups.shape[2], device=self.groups.device)
        return keys <= self.positions[..., None]

    @cached_property
    def bias(self) -> Tensor:
        """Added to the scores, float32 [group, row, 1, query, key].

        It is 0 on visible keys of the group and `HIDDEN` elsewhere.
        """
        return torch.where(self.groups[:, :, None] & self.is_visible, 0.0, HIDDEN)[:, :, None]

    @cached_property
    def sees_none(self) -> Tensor | None:
        """True where a query sees no key of the group, bool [group, row, 1, query]; None if
        `whole`.
        """
        return None if self.whole else (self.bias == HIDDEN).all(-1)

    @cached_property
    def first_group(self) -> Tensor:
        """1 on keys of the first group, float32 [row, 1, 1, key]."""
        return self.groups[0, :, None, None].float()

    @cached_property
    def mask(self) -> Tensor:
        """Added to the scores, float32 [row, 1, query, key]: `HIDDEN` on invisible keys, else 0."""
        return torch.where(self.is_visible, 0.0, HIDDEN)[:, None]


def sees_both(move: Move) -> bool:
    """Whether a row's last query is known to see tokens of both the span and the rest."""
    admitted = move.admitted
    length = move.length
    counted = length if not counts_generated(admitted) else min(length, admitted.prompt)
    span = sum(min(last, counted) - min(first, counted) for first, last in admitted.ranges)
    return 0 < span < counted and not needs_three(admitted)
