"""Moved attention by explicit scores, for batches of single-query rows and for chunks of a row
whose methods disagree on the span.

Scores and outputs are one matrix product each, over all rows and heads. Keys and values gathered
for decoding rows are kept from step to step (`row_copies.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import torch
from torch import Tensor

from holdfast.attention.layer_shifts import LayerShift, MethodSequence
from holdfast_vllm.layers import LayerPass
from holdfast_vllm.masses import Masses
from holdfast_vllm.moved_weights import (
    Methods,
    RankHeads,
    move_weights,
    on_rank,
    shift_of,
    touches,
)
from holdfast_vllm.moves import Move, VisibleKeys, members, needs_three, sees_both
from holdfast_vllm.pages import read_pages
from holdfast_vllm.row_copies import Copies, RowCopies, SlotPool, refill
from holdfast_vllm.wire import Admitted

_MAX_SCORES = 2**21  # computed at a time; a chunk with more is split into runs of queries
_NEUTRAL = MethodSequence((), -1, 0)


@dataclass(frozen=True)
class RowBatch:
    """Rows that are batched, with values that stay the same for many passes.

    Args:
        rows: the steering of the rows.
        methods: the methods of each row, on the heads of this rank.
        groups: the groups of keys, bool [group, row, key].
        shifts: the shift by layer; None for a layer where nothing is moved.
    """

    rows: tuple[Admitted, ...]
    methods: tuple[Methods, ...]
    groups: Tensor
    shifts: dict[int, LayerShift | None] = field(default_factory=dict)

    def shift(self, layer: int, heads: int) -> LayerShift | None:
        """Returns the shift of the log-odds in a layer of `heads` heads; None if nothing moves."""
        if layer not in self.shifts:
            three = len(self.groups) == 3
            is_moved = touches(self.methods, layer)
            self.shifts[layer] = shift_of(self.methods, layer, heads, three) if is_moved else None
        return self.shifts[layer]


@lru_cache(64)
def make_row_batch(rows: tuple[Admitted, ...], keys: int, heads: RankHeads) -> RowBatch:
    """Returns the batch of these rows, with at most `keys` keys, on the heads of a rank."""
    three = any(needs_three(admitted) for admitted in rows)
    methods = tuple(on_rank(admitted.methods, heads) for admitted in rows)
    return RowBatch(rows, methods, members(rows, keys, three))


@dataclass(frozen=True)
class Steps:
    """The queries of a batch in one pass: one for each of several rows, or several of one row.

    Args:
        batch: the rows.
        moves: the queries of each row; each row has the same number.
        groups: bool [group, row, key], up to the last key that any query sees.
        queries: int64 [row, query], the numbers of the queries in the pass.
        pages: int64 [row, page], the pages of the keys; each row has the same number.
        positions: int64 [row, query], the positions of the queries in their contexts.
        visible_keys: the keys that each query sees, the same for all layers; None with several
            queries per row.
        row_copies: the engine's copies for decoding rows; None for several queries of one row.
        pool: the slots of these rows, in their order.
    """

    batch: RowBatch
    moves: tuple[Move, ...]
    groups: Tensor
    queries: Tensor
    pages: Tensor
    positions: Tensor
    visible_keys: VisibleKeys | None
    row_copies: RowCopies | None
    pool: SlotPool | None

    @classmethod
    def of(
        cls,
        moves: Sequence[Move],
        table: Tensor,
        size: int,
        heads: RankHeads,
        row_copies: RowCopies | None = None,
        pool: SlotPool | None = None,
    ) -> Steps:
        """Plans rows once for all layers.

        Args:
            moves: the moves of the rows, with the same number of queries each.
            table: the pages of every row of the batch.
            size: tokens per page.
            heads: the heads of this rank.
            row_copies: the engine's copies for decoding rows; None for several queries of one row.
            pool: the slots of these rows, in their order.
        """
        num_pages = max(-(-move.length // size) for move in moves)
        pages = table[[move.row for move in moves], :num_pages].long()
        lengths = torch.tensor([move.length for move in moves])
        # after a row's last page, the table may have pages of other rows; use the row's first one
        beyond = torch.arange(num_pages) >= (-(-lengths // size))[:, None]
        pages = torch.where(beyond, pages[:, :1], pages)
        within = torch.arange(moves[0].count)
        queries = torch.tensor([[move.first] for move in moves]) + within
        positions = torch.tensor([[move.position] for move in moves]) + within
        batch = make_row_batch(tuple(move.admitted for move in moves), num_pages * size, heads)
        groups = batch.groups[:, :, : max(move.length for move in moves)]
        visible_keys = None
        if moves[0].count == 1:
            visible_keys = VisibleKeys(groups, positions, all(map(sees_both, moves)))
        return cls(
            batch=batch,
            moves=tuple(moves),
            groups=groups,
            queries=queries,
            pages=pages,
            positions=positions,
            visible_keys=visible_keys,
            row_copies=row_copies,
            pool=pool,
        )

    @property
    def writes(self) -> bool:
        """Whether outputs are moved; False if only the mass is recorded."""
        return self.moves[0].writes

    def moves_layer(self, layer: int, heads: int) -> bool:
        """Whether this layer's outputs are written."""
        return self.batch.shift(layer, heads) is not None and self.writes

    def run(self, states: LayerPass, masses: Masses) -> None:
        """Writes the moved outputs, and records the mass of each row's last query."""
        shift = self.batch.shift(states.number, states.query.shape[1])
        records_mass = any(move.records_mass for move in self.moves)
        if not records_mass and (shift is None or not self.writes):
            return
        keys, values = self._keys_and_values(states)
        queries = states.query[self.queries].float()  # [row, query, head, size]
        run_length = max(1, _MAX_SCORES // (len(self.moves) * queries.shape[2] * keys.shape[2]))
        mass = None
        for start in range(0, queries.shape[1], run_length):
            run = slice(start, start + run_length)
            visible_keys = self.visible_keys or VisibleKeys(self.groups, self.positions[:, run])
            scores = _compute_scores(queries[:, run], keys, states.scaling)
            weights, mass = move_weights(scores, visible_keys, shift or _NEUTRAL, records_mass)
            if shift is not None and self.writes:
                mixed = _mix_values(weights, values).flatten(0, 1)
                states.output[self.queries[:, run].flatten()] = mixed.to(states.output.dtype)
        for row, move in enumerate(self.moves):
            if move.records_mass and mass is not None:
                masses.record(move.admitted.trace, states.number, mass[row, :, -1])

    def _keys_and_values(self, states: LayerPass) -> tuple[Tensor, Tensor]:
        """Reads keys and values, float32 [row, group, key, size of a head] each."""
        longest = self.groups.shape[2]
        if self.row_copies is not None and self.pool is not None:
            room = self.row_copies.room(states.cache)
            copies = self.pool.copies(states.number, states.cache, room)
            if copies is not None:
                self._update(copies, states)
                rows = slice(0, len(self.moves)), slice(None), slice(0, longest)
                return copies.keys[rows], copies.values[rows]
        keys, values = read_pages(states.cache, self.pages)
        return keys[:, :, :longest].float(), values[:, :, :longest].float()

    def _update(self, copies: Copies, states: LayerPass) -> None:
        """Adds the keys and values of this pass to the copies of the rows, which may lack more."""
        lengths = [move.length for move in self.moves]
        outdated = [slot for slot, length in enumerate(lengths) if copies.filled[slot] < length - 1]
        if len(outdated) < len(lengths):
            latest = torch.arange(len(lengths)), slice(None), self.positions[:, 0]
            copies.keys[latest] = states.key[self.queries[:, 0]].float()
            copies.values[latest] = states.value[self.queries[:, 0]].float()
            copies.filled[: len(lengths)] = lengths
        refill(copies, outdated, states.cache, self.pages, lengths)


def _compute_scores(query: Tensor, keys: Tensor, scaling: float) -> Tensor:
    """Computes scores [row, head, query, key] from queries [row, query, head, size]."""
    rows, count, heads, size = query.shape
    groups = keys.shape[1]
    packed = query.mul_(scaling).transpose(1, 2).reshape(rows * groups, -1, size)
    return torch.bmm(packed, keys.flatten(0, 1).mT).view(rows, heads, count, -1)


def _mix_values(weights: Tensor, values: Tensor) -> Tensor:
    """Computes outputs [row, query, head, size] from weights [row, head, query, key]."""
    rows, heads, count, keys = weights.shape
    packed = weights.reshape(rows * values.shape[1], -1, keys)
    mixed = torch.bmm(packed, values.flatten(0, 1))
    return mixed.view(rows, heads, count, -1).transpose(1, 2)
