"""Moved attention of several queries of one row: `holdfast.attention.prefill`, by fused kernels."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.attention.kernels import States, attend
from holdfast.attention.plan import additive
from holdfast.attention.prefill import prefill
from holdfast.attention.steering import Steering
from holdfast_vllm.masses import Masses
from holdfast_vllm.moved import on_rank
from holdfast_vllm.moves import Move, members
from holdfast_vllm.pages import in_order


@dataclass(frozen=True)
class Chunk:
    """The queries of one row in one pass.

    Args:
        moved: they.
        pages: int64 [page], of its keys.
        steering: of the row, over the keys it has by now.
        mask: bool [1, 1, query, key]; None where the chunk is the whole context.
    """

    moved: Move
    pages: Tensor
    steering: Steering
    mask: Tensor | None

    @classmethod
    def of(cls, moved: Move, table: Tensor, size: int, first_head: int, heads: int) -> Chunk:
        """Plans a row once for all layers; see `Steps.of`."""
        length, admitted = moved.length, moved.admitted
        pages = table[moved.row, : -(-length // size)].long()
        span = members([admitted], length, three=True)[0]
        methods = on_rank(admitted.methods, first_head, heads)
        steering = Steering(span, [methods], prompt=[admitted.prompt])
        mask = None
        if moved.position:
            positions = torch.arange(moved.position, length)[:, None]
            mask = (torch.arange(length) <= positions)[None, None]
        return cls(moved, pages, steering, mask)

    def moves_layer(self, layer: int, heads: int) -> bool:
        """Whether outputs of this layer are written."""
        return self.steering.touches(layer)

    def run(
        self,
        layer: int,
        scaling: float,
        query: Tensor,
        cache: Tensor,
        output: Tensor,
        masses: Masses,
    ) -> None:
        """Writes the moved outputs; see `Steps.run`. Masses are not its part."""
        if not self.steering.touches(layer):
            return
        key, value = in_order(cache, self.pages, self.moved.length)
        own = slice(self.moved.first, self.moved.first + self.moved.count)
        asked = query[own].transpose(0, 1)[None]
        states = States(asked, key, value, self.mask, self.mask is None, scaling)
        result = prefill(self.steering, layer, states)
        if result is None:  # all keys are of one group
            mask = None if self.mask is None else additive(self.mask, asked.dtype)
            result, _ = attend(asked, key, value, mask, self.mask is None, scaling)
        output[own] = result[0].transpose(0, 1)
