"""Which queries of a pass are moved, and which group each of their keys belongs to.

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

# Added to the score of a key that is outside the group or invisible. It is finite, since a softmax
# over nothing but -inf is NaN.
HIDDEN = -1e30


@dataclass(frozen=True)
class Move:
    """The queries of one row that are moved, or the one whose mass is noted.

    Args:
        row: its number in the batch.
        admitted: what its request asked for.
        first: the first query, counted in the pass.
        count: how many queries there are; they are consecutive.
        position: of the first query, in the row's own context.
        notes: whether the mass of the last query, which draws a token, is wanted.
        writes: whether outputs are moved; False if there is only a mass to note.
    """

    row: int
    admitted: Admitted
    first: int
    count: int
    position: int
    notes: bool
    writes: bool

    @property
    def length(self) -> int:
        """How many keys the last of the queries sees."""
        return self.position + self.count


def moves_of(
    rows: Sequence[Admitted | None], starts: Sequence[int], lengths: Sequence[int]
) -> list[Move]:
    """The queries of a pass that are moved, or whose mass is noted.

    A row whose queries do not see the span yet is skipped.

    Args:
        rows: what each row asked for.
        starts: the first query of each row, and finally the number of all queries.
        lengths: of each row's context, including this pass.
    """
    moves = []
    for row, admitted in enumerate(rows):
        end = starts[row + 1]
        count = starts[row + 1] - starts[row]
        if admitted is None or count <= 0:
            continue
        length = lengths[row]
        notes = bool(admitted.trace) and length >= admitted.prompt
        writes = bool(admitted.methods) and length > admitted.ranges[0][0]
        if not writes:
            count = int(notes)
        if count:
            moves.append(Move(row, admitted, end - count, count, length - count, notes, writes))
    return moves


def notes_apart(moves: Sequence[Move]) -> list[Move]:
    """The same moves; for rows with several queries, noting is a separate move of the last one."""
    apart = []
    for moved in moves:
        if not moved.notes or moved.count == 1:
            apart.append(moved)
            continue
        last = moved.count - 1
        apart.append(replace(moved, notes=False))
        apart.append(
            replace(
                moved,
                first=moved.first + last,
                count=1,
                position=moved.position + last,
                writes=False,
            )
        )
    return apart


def counts_generated(admitted: Admitted) -> bool:
    """Whether any method counts generated tokens as part of the span."""
    return any(method.span_includes_generated for method in admitted.methods)


def disagrees(admitted: Admitted) -> bool:
    """Whether a row's methods disagree on whether the span includes generated tokens."""
    return len({method.span_includes_generated for method in admitted.methods}) > 1


def needs_three(admitted: Admitted) -> bool:
    """Whether span, generated tokens and rest must be distinguished.

    They must if the methods disagree, or if the methods count generated tokens as well but the mass
    on the span itself is wanted.
    """
    return disagrees(admitted) or (counts_generated(admitted) and bool(admitted.trace))


def members(rows: Sequence[Admitted], keys: int, three: bool) -> Tensor:
    """The group of each key, visible or not: bool [group, row, key].

    The groups are the span (including generated tokens if a method counts them) and the rest; with
    `three`, the span, the generated tokens and the rest.
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
class Sight:
    """The keys of each group that queries see; computed on first use and cached.

    Args:
        groups: bool [group, row, key], from `members`.
        positions: int64 [row, query], of the queries in their contexts.
        whole: whether every query is known to see something of every group.
    """

    groups: Tensor
    positions: Tensor
    whole: bool = False

    @cached_property
    def before(self) -> Tensor:
        """Bool [row, query, key], True on visible keys."""
        keys = torch.arange(self.groups.shape[2], device=self.groups.device)
        return keys <= self.positions[..., None]

    @cached_property
    def bias(self) -> Tensor:
        """Float32 [group, row, 1, query, key], added to the scores: 0 on visible keys of the group,
        else `HIDDEN`.
        """
        return torch.where(self.groups[:, :, None] & self.before, 0.0, HIDDEN)[:, :, None]

    @cached_property
    def unseen(self) -> Tensor | None:
        """Bool [group, row, 1, query], True where a query sees nothing of the group; None if
        `whole`.
        """
        return None if self.whole else (self.bias == HIDDEN).all(-1)

    @cached_property
    def first(self) -> Tensor:
        """Float32 [row, 1, 1, key], 1 on keys of the first group."""
        return self.groups[0, :, None, None].float()

    @cached_property
    def hidden(self) -> Tensor:
        """Float32 [row, 1, query, key], added to the scores: `HIDDEN` on invisible keys."""
        return torch.where(self.before, 0.0, HIDDEN)[:, None]


def sees_both(moved: Move) -> bool:
    """Whether a row's last query is known to see tokens of both the span and the rest."""
    admitted = moved.admitted
    length = moved.length
    counted = length if not counts_generated(admitted) else min(length, admitted.prompt)
    span = sum(min(last, counted) - min(first, counted) for first, last in admitted.ranges)
    return 0 < span < counted and not needs_three(admitted)
