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
from holdfast_vllm.moved_weights import on_rank
from holdfast_vllm.moves import Move, members
from holdfast_vllm.pages import read_pages


@dataclass(frozen=True)
class Chunk:
    """The queries of one row in one pass.

    Args:
        moved: the queries.
        pages: int64 [1, page], the pages of the row's keys.
        state: the steering of the row, over the keys that it has so far.
        mask: bool [1, 1, query, key]; None if the chunk is the whole context.
    """

    moved: Move
    pages: Tensor
    state: PassState
    mask: Tensor | None

    @classmethod
    def of(cls, moved: Move, table: Tensor, size: int, heads: tuple[int, int]) -> Chunk:
        """Plans a row once for all layers; see `Steps.of`."""
        length = moved.length
        admitted = moved.admitted
        pages = table[moved.row : moved.row + 1, : -(-length // size)].long()
        span = members([admitted], length, three=True)[0]
        methods = on_rank(admitted.methods, *heads)
        rows = [compile_methods(methods)]
        state = PassState(BatchSteering(span, rows, prompt_columns=[admitted.prompt]))
        mask = None
        if moved.position:
            positions = torch.arange(moved.position, length)[:, None]
            mask = (torch.arange(length) <= positions)[None, None]
        return cls(moved, pages, state, mask)

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
            part[:, :, : self.moved.length] for part in read_pages(states.cache, self.pages)
        )
        rows = slice(self.moved.first, self.moved.first + self.moved.count)
        query = states.query[rows].transpose(0, 1)[None]
        whole = self.mask is None
        result = move_queries(
            self.state,
            states.number,
            LayerInputs(query, key, value, self.mask, whole, states.scaling),
        )
        if result is None:  # all keys are in one group
            mask = None if self.mask is None else to_additive(self.mask, query.dtype)
            result, _ = attend(query, key, value, mask, states.scaling, causal=whole)
        states.output[rows] = result[0].transpose(0, 1)
