"""Moved attention for several queries of one row, by `holdfast.attention.merge`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.attention.batch_steering import BatchSteering
from holdfast.attention.fused_kernels import LayerInputs, attend
from holdfast.attention.key_groups import to_additive
from holdfast.attention.merge import move_queries
from holdfast.attention.passes import PassState
from holdfast.methods import compile_methods
from holdfast_vllm.layers import LayerPass
from holdfast_vllm.masses import Masses
from holdfast_vllm.moved_weights import RankHeads, on_rank
from holdfast_vllm.moves import Move, members
from holdfast_vllm.pages import read_pages


@dataclass(frozen=True)
class Chunk:
    """The queries of one row in one pass.

    Args:
        move: the queries.
        pages: int64 [1, page], the pages of the row's keys.
        state: the steering of the row, over the keys that it has so far.
        mask: bool [1, 1, query, key]; None if the chunk is the whole context.
    """

    move: Move
    pages: Tensor
    state: PassState
    mask: Tensor | None

    @classmethod
    def of(cls, move: Move, table: Tensor, size: int, heads: RankHeads) -> Chunk:
        """Plans a row once for all layers; see `Steps.of`."""
        length = move.length
        admitted = move.admitted
        pages = table[move.row : move.row + 1, : -(-length // size)].long()
        span = members([admitted], length, three=True)[0]
        methods = on_rank(admitted.methods, heads)
        steering = BatchSteering(span, [compile_methods(methods)], prompt_columns=[admitted.prompt])
        mask = None
        if move.position:
            positions = torch.arange(move.position, length)[:, None]
            mask = (torch.arange(length) <= positions)[None, None]
        return cls(move, pages, PassState(steering), mask)

    @property
    def writes(self) -> bool:
        """Always True: the mass is recorded by a separate move of the last query."""
        return True

    def moves_layer(self, layer: int, heads: int) -> bool:
        """Whether this layer's outputs are written."""
        return self.state.steering.touches(layer)

    def run(self, states: LayerPass, masses: Masses) -> None:
        """Writes the moved outputs; records no masses."""
        if not self.state.steering.touches(states.number):
            return
        key, value = (
            part[:, :, : self.move.length] for part in read_pages(states.cache, self.pages)
        )
        queries = slice(self.move.first, self.move.first + self.move.count)
        query = states.query[queries].transpose(0, 1)[None]
        is_whole = self.mask is None
        result = move_queries(
            self.state,
            states.number,
            LayerInputs(query, key, value, self.mask, is_whole, states.scaling),
        )
        if result is None:  # all keys are in one group
            mask = None if self.mask is None else to_additive(self.mask, query.dtype)
            result, _ = attend(query, key, value, mask, states.scaling, causal=is_whole)
        states.output[queries] = result[0].transpose(0, 1)
