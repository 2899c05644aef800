"""Moved attention by explicit scores: rows of one query together, and the queries of a chunk whose
methods disagree on what the span is.

A row's keys and values are gathered once per layer, and scores and outputs are a matrix product
each, over all rows and heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import torch
from torch import Tensor

from holdfast.attention.rules import ListRule, Rule
from holdfast_vllm.masses import Masses
from holdfast_vllm.moved import Methods, move, on_rank, rule_of, touches
from holdfast_vllm.moves import Move, Sight, members, needs_three, sees_both
from holdfast_vllm.pages import gathered
from holdfast_vllm.wire import Admitted

_SCORES = 2**21  # computed at a time; a chunk with more is cut into runs of queries
_NEUTRAL = ListRule((), -1, 0)


@dataclass(frozen=True)
class Cohort:
    """Rows that go together, and what is known of them for many passes.

    Args:
        rows: what they asked for.
        methods: of each, on the heads of this rank.
        groups: bool [group, row, key].
        rules: by layer; None where nothing is moved.
    """

    rows: tuple[Admitted, ...]
    methods: tuple[Methods, ...]
    groups: Tensor
    rules: dict[int, Rule | None] = field(default_factory=dict)

    def rule(self, layer: int, heads: int) -> Rule | None:
        """What their methods do in a layer of so many heads."""
        if layer not in self.rules:
            three = len(self.groups) == 3
            moved = touches(self.methods, layer)
            self.rules[layer] = rule_of(self.methods, layer, heads, three) if moved else None
        return self.rules[layer]


@lru_cache(64)
def cohort(rows: tuple[Admitted, ...], keys: int, first_head: int, heads: int) -> Cohort:
    """Rows with so many keys at most, and the heads that a rank has."""
    three = any(needs_three(admitted) for admitted in rows)
    methods = tuple(on_rank(admitted.methods, first_head, heads) for admitted in rows)
    return Cohort(rows, methods, members(rows, keys, three))


@dataclass(frozen=True)
class Steps:
    """The queries of a cohort in one pass: one for each of several rows, or several of one row.

    Args:
        cohort: the rows.
        moves: the queries of each, equally many.
        queries: int64 [row, query], in the pass.
        pages: int64 [row * page], the pages of their keys; as many for each row.
        positions: int64 [row, query], of the queries in their contexts.
        seen: what queries see, where there is one per row: the same for all layers.
    """

    cohort: Cohort
    moves: tuple[Move, ...]
    queries: Tensor
    pages: Tensor
    positions: Tensor
    seen: Sight | None

    @classmethod
    def of(
        cls, moves: Sequence[Move], table: Tensor, size: int, first_head: int, heads: int
    ) -> Steps:
        """Plans rows once for all layers.

        Args:
            moves: of the rows, equally many queries each.
            table: the pages of every row of the batch.
            size: tokens of a page.
            first_head, heads: of this rank.
        """
        count = max(-(-moved.length // size) for moved in moves)
        pages = table[[moved.row for moved in moves], :count].long()
        lengths = torch.tensor([moved.length for moved in moves])
        # Behind a row's last page the table may name pages of others: its first stands in.
        beyond = torch.arange(count) >= (-(-lengths // size))[:, None]
        pages = torch.where(beyond, pages[:, :1], pages)
        within = torch.arange(moves[0].count)
        queries = torch.tensor([[moved.first] for moved in moves]) + within
        positions = torch.tensor([[moved.position] for moved in moves]) + within
        rows = cohort(tuple(m.admitted for m in moves), count * size, first_head, heads)
        seen = None
        if moves[0].count == 1:
            seen = Sight(rows.groups, positions, all(map(sees_both, moves)))
        return cls(rows, tuple(moves), queries, pages.flatten(), positions, seen)

    def moves_layer(self, layer: int, heads: int) -> bool:
        """Whether outputs of this layer are written."""
        return self.cohort.rule(layer, heads) is not None and self.moves[0].writes

    def run(
        self,
        layer: int,
        scaling: float,
        query: Tensor,
        cache: Tensor,
        output: Tensor,
        masses: Masses,
    ) -> None:
        """Writes the moved outputs, and notes the mass of each row's last query.

        Args:
            layer: counted from 0.
            scaling: of the scores.
            query: [query, head, size of a head], of the whole pass.
            cache: of the layer.
            output: like `query`; written to.
            masses: of requests that ask for it.
        """
        rule, writes = self.cohort.rule(layer, query.shape[1]), self.moves[0].writes
        notes = any(moved.notes for moved in self.moves)
        if not notes and (rule is None or not writes):
            return
        rows, groups = len(self.moves), self.cohort.groups
        keys, values = (part.float() for part in gathered(cache, self.pages, rows))
        asked = query[self.queries].float().mul_(scaling)  # [row, query, head, size]
        most = max(1, _SCORES // (rows * query.shape[1] * groups.shape[2]))
        mass = None
        for start in range(0, asked.shape[1], most):
            run = slice(start, start + most)
            seen = self.seen or Sight(groups, self.positions[:, run])
            scores = _scores(asked[:, run], keys)
            weights, mass = move(scores, seen, rule or _NEUTRAL, notes)
            if rule is not None and writes:
                mixed = _mixed(weights, values).flatten(0, 1)
                output[self.queries[:, run].flatten()] = mixed.to(output.dtype)
        for row, moved in enumerate(self.moves):
            if moved.notes and mass is not None:
                masses.note(moved.admitted.trace, layer, mass[row, :, -1])


def _scores(query: Tensor, keys: Tensor) -> Tensor:
    """[row, head, query, key] of queries [row, query, head, size] and keys as gathered."""
    rows, count, heads, size = query.shape
    packed = query.transpose(1, 2).reshape(rows, 1, keys.shape[2], -1, size)
    scores = (packed @ keys).permute(0, 2, 3, 1, 4)
    return scores.reshape(rows, heads, count, -1)


def _mixed(weights: Tensor, values: Tensor) -> Tensor:
    """Outputs [row, query, head, size] of weights [row, head, query, key]."""
    rows, heads, count, _ = weights.shape
    pages, groups = values.shape[1:3]
    packed = weights.view(rows, groups, heads // groups * count, pages, -1).permute(0, 3, 1, 2, 4)
    mixed = (packed @ values).sum(1)
    return mixed.view(rows, heads, count, -1).transpose(1, 2)
