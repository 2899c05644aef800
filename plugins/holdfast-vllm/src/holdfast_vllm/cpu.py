"""The CPU attention backend: vLLM's own, except that steered rows are computed here.

Decode steps of several rows are batched. If every query of a pass is moved, vLLM's kernel is not
called at all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from torch import Tensor
from vllm.distributed import get_tensor_model_parallel_rank
from vllm.model_executor.models.utils import extract_layer_index
from vllm.v1.attention.backend import CommonAttentionMetadata
from vllm.v1.attention.backends.cpu_attn import (
    CPUAttentionBackend,
    CPUAttentionBackendImpl,
    CPUAttentionMetadata,
    CPUAttentionMetadataBuilder,
)

from holdfast_vllm.chunks import Chunk
from holdfast_vllm.layers import LayerPass, report_layer, rows_of_pass
from holdfast_vllm.masses import Masses
from holdfast_vllm.moved_weights import RankHeads
from holdfast_vllm.moves import Move, disagrees, moves_of, needs_three, separate_recorded_queries
from holdfast_vllm.pages import is_readable
from holdfast_vllm.row_copies import RowCopies
from holdfast_vllm.status import engine_of
from holdfast_vllm.steps import Steps


class BatchKey(NamedTuple):
    """Equal for rows of a single query that are batched."""

    writes: bool  # whether outputs are moved
    needs_three: bool  # whether keys are in three groups
    max_pages: int  # the number of pages, rounded up to a power of two


class Part(Protocol):
    """Queries of a pass that are moved together: `Steps` or a `Chunk`."""

    @property
    def writes(self) -> bool:
        """Whether outputs are moved; False if only the mass is recorded."""

    def moves_layer(self, layer: int, heads: int) -> bool:
        """Whether the outputs of a layer of `heads` heads are written."""

    def run(self, states: LayerPass, masses: Masses) -> None:
        """Writes the moved outputs of a layer, and records the masses that are asked for."""


@dataclass(frozen=True)
class Plan:
    """The rows and heads that are moved in a pass.

    Args:
        parts: the queries, in groups that are computed together.
        has_all_queries: whether the groups contain all queries of the pass.
        masses: receives the masses that requests have asked for.
    """

    parts: Sequence[Part]
    has_all_queries: bool
    masses: Masses

    def replaces(self, layer: int, heads: int) -> bool:
        """Whether this plug-in writes all outputs of a layer."""
        return self.has_all_queries and all(
            part.moves_layer(layer, heads) for part in self.parts if part.writes
        )


class Backend(CPUAttentionBackend):
    """vLLM's CPU attention, with steered rows."""

    @staticmethod
    def get_impl_cls() -> type[Impl]:
        return Impl

    @staticmethod
    def get_builder_cls() -> type[Builder]:
        return Builder


class Builder(CPUAttentionMetadataBuilder):
    """Adds to a pass's metadata a plan of the queries to move."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self._can_read():
            self.isa = "vec"  # slower than AMX, but its pages can be read
            self._set_isa_to_layers(self.layer_names)
        self._engine = engine_of(self.vllm_config)
        self._row_copies = RowCopies()
        self._heads = RankHeads(get_tensor_model_parallel_rank() * self.num_heads, self.num_heads)
        if self._can_read():
            self._engine.backends.add("CPU")

    def _can_read(self) -> bool:
        return is_readable(self.isa, self.block_size, self.head_dim, self.dtype)

    def build(
        self,
        common_prefix_len: int,
        common_attn_metadata: CommonAttentionMetadata,
        fast_build: bool = False,
    ) -> CPUAttentionMetadata:
        metadata = super().build(common_prefix_len, common_attn_metadata, fast_build)
        metadata.holdfast = self._plan(common_attn_metadata)
        return metadata

    def _plan(self, common: CommonAttentionMetadata) -> Plan | None:
        rows = rows_of_pass(self._engine.rows, common)
        moves = []
        if rows is not None:
            starts = common.query_start_loc_cpu.tolist()
            lengths = common.seq_lens.tolist()
            moves = separate_recorded_queries(moves_of(rows, starts, lengths))
        groups: dict[BatchKey, list[Move]] = defaultdict(list)
        for move in moves:
            if move.count == 1:
                groups[self._batch_key(move)].append(move)
        self._row_copies.retain(list(groups))
        if not moves:
            return None
        table = common.block_table_tensor
        parts = [self._chunk(move, table) for move in moves if move.count > 1]
        parts += [self._steps(key, group, table) for key, group in groups.items()]
        steered = sum(move.count for move in moves if move.writes)
        has_all_queries = steered == common.num_actual_tokens
        return Plan(parts, has_all_queries, self._engine.masses)

    def _batch_key(self, move: Move) -> BatchKey:
        pages = -(-move.length // self.block_size)
        max_pages = 1 << (pages - 1).bit_length()
        return BatchKey(move.writes, needs_three(move.admitted), max_pages)

    def _steps(self, key: BatchKey, moves: list[Move], table: Tensor) -> Part:
        pool = self._row_copies.pool(key, key.max_pages * self.block_size)
        moves = [moves[number] for number in pool.assign([move.admitted for move in moves])]
        return Steps.of(moves, table, self.block_size, self._heads, self._row_copies, pool)

    def _chunk(self, move: Move, table: Tensor) -> Part:
        if disagrees(move.admitted):
            return Steps.of([move], table, self.block_size, self._heads)
        return Chunk.of(move, table, self.block_size, self._heads)


class Impl(CPUAttentionBackendImpl):
    """vLLM's CPU attention for one layer, with moved rows."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        obstacles = {
            "a sliding window": self.sliding_window != -1,
            "a quantised cache": self.is_fp8_kv_cache,
        }
        report_layer(self, obstacles)

    def forward(
        self,
        layer: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        kv_cache: Tensor,
        attn_metadata: CPUAttentionMetadata | None,
        output: Tensor,
        output_scale: Tensor | None = None,
        output_block_scale: Tensor | None = None,
    ) -> Tensor:
        plan: Plan | None = getattr(attn_metadata, "holdfast", None)
        number = -1 if plan is None else extract_layer_index(layer.layer_name)
        if plan is None or not plan.replaces(number, self.num_heads):
            super().forward(
                layer, query, key, value, kv_cache, attn_metadata, output,
                output_scale, output_block_scale,
            )  # fmt: skip
        if plan is not None:
            heads = (-1, self.num_heads, self.head_size)
            groups = (-1, *kv_cache.shape[1:2])
            states = LayerPass(
                number,
                self.scale,
                query.view(heads),
                key.view(*groups, self.head_size),
                value.view(*groups, self.head_size),
                kv_cache,
                output.view(heads),
            )
            for part in plan.parts:
                part.run(states, plan.masses)
        return output
