"""The CUDA attention backend: vLLM's FlashAttention, whose outputs are then moved by `kernel`.

A pass in which nothing is steered runs only vLLM's own code. In any other pass, FlashAttention also
returns its log-sum-exps, and the kernel attends to the spans only. Moves are planned for each pass,
so CUDA graphs are piecewise: attention runs between them. A server with full graphs captures whole
decode steps (`graphs.py`), and then makes both calls even when nothing is steered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from vllm.distributed import get_tensor_model_parallel_rank
from vllm.model_executor.models.utils import extract_layer_index
from vllm.v1.attention.backend import (
    AttentionCGSupport,
    CommonAttentionMetadata,
)
from vllm.v1.attention.backends import fa_utils
from vllm.v1.attention.backends.flash_attn import (
    FlashAttentionBackend,
    FlashAttentionImpl,
    FlashAttentionMetadata,
    FlashAttentionMetadataBuilder,
)
from vllm.v1.kv_cache_interface import KVCacheSpec

from holdfast.methods.compiled import compile_methods, head_tables
from holdfast.methods.table import layer_table
from holdfast_vllm.graphs import Buffers
from holdfast_vllm.kernel import (
    NONE_GENERATED,
    KernelQueries,
    KernelTable,
    QueryRun,
    steer_outputs,
)
from holdfast_vllm.layers import report_layer, rows_of_pass
from holdfast_vllm.masses import Masses
from holdfast_vllm.moved_weights import Methods, RankHeads, on_rank, touches
from holdfast_vllm.moves import Move, counts_generated, moves_of
from holdfast_vllm.status import engine_of, uses_full_graphs

_MAX_CACHED_TABLES = 4096  # a few kilobytes each, reused by later passes


@dataclass(frozen=True)
class Plan:
    """The rows and heads that are moved in a pass.

    Args:
        moves: the queries of each row.
        methods: the methods of each row, on the heads of this rank.
        queries: the queries of `moves`, on the device.
        masses: receives the masses that requests have asked for.
        buffers: the buffers of a full graph; None in any other pass.
    """

    moves: Sequence[Move]
    methods: tuple[Methods, ...]
    queries: KernelQueries
    masses: Masses
    buffers: Buffers | None = None

    @property
    def records_mass(self) -> bool:
        """Whether the mass of any query is recorded."""
        return any(move.records_mass for move in self.moves)

    def moves_layer(self, layer: int) -> bool:
        """Whether there is anything to do in a layer; in a full graph there always is."""
        return self.buffers is not None or self.records_mass or touches(self.methods, layer)


class Backend(FlashAttentionBackend):
    """vLLM's FlashAttention with steered rows, selected by `--attention-backend CUSTOM`."""

    @staticmethod
    def get_name() -> str:
        return "CUSTOM"

    @staticmethod
    def get_impl_cls() -> type[Impl]:
        return Impl

    @staticmethod
    def get_builder_cls() -> type[Builder]:
        return Builder


class Builder(FlashAttentionMetadataBuilder):
    """Adds to a pass's metadata a plan of the queries to move."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._engine = engine_of(self.vllm_config)
        self._engine.backends.add("CUDA")
        rank = get_tensor_model_parallel_rank()
        self._heads = RankHeads(rank * self.num_heads_q, self.num_heads_q)
        self._buffers = self._make_buffers() if uses_full_graphs(self.vllm_config) else None

    def _make_buffers(self) -> Buffers:
        masses = self._engine.masses
        rows = self.vllm_config.scheduler_config.max_num_seqs
        layers = sorted(map(extract_layer_index, self.layer_names))
        buffers = Buffers.of(rows, layers, self.num_heads_q, self.device)
        masses.fetch = lambda: buffers.read(masses)
        return buffers

    @classmethod
    def get_cudagraph_support(
        cls, vllm_config: Any, kv_cache_spec: KVCacheSpec
    ) -> AttentionCGSupport:
        if uses_full_graphs(vllm_config):
            return AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE
        return AttentionCGSupport.NEVER

    def use_cascade_attention(self, *args: Any, **kwargs: Any) -> bool:
        return False

    def build(
        self,
        common_prefix_len: int,
        common_attn_metadata: CommonAttentionMetadata,
        fast_build: bool = False,
    ) -> FlashAttentionMetadata:
        metadata = super().build(common_prefix_len, common_attn_metadata, fast_build)
        metadata.holdfast = self._plan(common_attn_metadata)
        return metadata

    def _plan(self, common: CommonAttentionMetadata) -> Plan | None:
        rows = rows_of_pass(self._engine.rows, common)
        moves = []
        if rows is not None:
            # exact without speculative decoding, which is refused
            lengths = common.seq_lens_cpu_upper_bound
            lengths = common.seq_lens.cpu() if lengths is None else lengths
            moves = moves_of(rows, common.query_start_loc_cpu.tolist(), lengths.tolist())
        methods = tuple(on_rank(move.admitted.methods, self._heads) for move in moves)
        masses = self._engine.masses
        buffers = self._buffers
        if buffers is not None:
            buffers.read(masses)
            if common.max_query_len == 1:
                buffers.write(moves, methods)
                return Plan(moves, methods, buffers.first(common.num_reqs), masses, buffers)
        if not moves:
            return None
        heads_per_group = self.num_heads_q // self.num_heads_kv
        runs = [_run_of(move) for move in moves]
        queries = KernelQueries.of(runs, heads_per_group, common.seq_lens.device)
        return Plan(moves, methods, queries, masses)


class Impl(FlashAttentionImpl):
    """vLLM's FlashAttention for one layer, with moved rows."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        obstacles = {
            "a sliding window": self.sliding_window != (-1, -1),
            "a quantised cache": self.kv_cache_dtype.startswith("fp8"),
            "heads of more than 256 numbers": self.head_size > 256,
        }
        report_layer(self, obstacles)

    def forward(
        self,
        layer: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        kv_cache: Tensor,
        attn_metadata: FlashAttentionMetadata | None,
        output: Tensor,
        output_scale: Tensor | None = None,
        output_block_scale: Tensor | None = None,
    ) -> Tensor:
        plan: Plan | None = getattr(attn_metadata, "holdfast", None)
        number = -1 if plan is None else extract_layer_index(layer.layer_name)
        if plan is None or attn_metadata is None or not plan.moves_layer(number):
            return super().forward(
                layer, query, key, value, kv_cache, attn_metadata, output,
                output_scale, output_block_scale,
            )  # fmt: skip
        keys, values = kv_cache.transpose(1, 2).split(self.head_size, dim=-1)
        lse = self._attend(query, keys, values, attn_metadata, output)
        if plan.buffers is not None:
            table, mass = plan.buffers.layer(number)
        else:
            table = _table(plan.methods, number, self.num_heads, query.device)
            mass = None
            if plan.records_mass:
                mass = torch.zeros(len(plan.moves), self.num_heads, device=query.device)
        pages = attn_metadata.block_table
        steer_outputs(
            output, lse, query, keys, values, pages, plan.queries, table, self.scale, mass
        )
        if plan.buffers is None and mass is not None:
            for run, move in enumerate(plan.moves):
                if move.records_mass:
                    plan.masses.record(move.admitted.trace, number, mass[run])
        return output

    def _attend(
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        metadata: FlashAttentionMetadata,
        output: Tensor,
    ) -> Tensor:
        """Writes the unsteered outputs; returns the log-sum-exps, float32 [head, query]."""
        count = metadata.num_actual_tokens
        _, lse = fa_utils.flash_attn_varlen_func(
            q=query[:count],
            k=keys,
            v=values,
            out=output[:count],
            cu_seqlens_q=metadata.query_start_loc,
            max_seqlen_q=metadata.max_query_len,
            seqused_k=metadata.seq_lens,
            max_seqlen_k=metadata.max_seq_len,
            softmax_scale=self.scale,
            causal=True,
            block_table=metadata.block_table,
            scheduler_metadata=metadata.scheduler_metadata,
            fa_version=self.vllm_flash_attn_version,
            num_splits=metadata.max_num_splits,
            return_softmax_lse=True,
        )
        return lse


def _run_of(move: Move) -> QueryRun:
    """The queries of a move as the kernel takes them."""
    admitted = move.admitted
    return QueryRun(
        move.row,
        move.first,
        move.count,
        move.position,
        admitted.ranges,
        admitted.prompt if counts_generated(admitted) else NONE_GENERATED,
    )


@lru_cache(_MAX_CACHED_TABLES)
def _table(
    methods: tuple[Methods, ...], layer: int, heads: int, device: torch.device
) -> KernelTable:
    """Makes the steering table of a layer, with a row for each run of queries."""
    rows = head_tables(map(compile_methods, methods))
    assert rows is not None, "lists that three numbers cannot express are refused at admission"
    table = layer_table(rows, layer, heads, torch.float32, device)
    numbers = table.numbers.expand(3, len(methods), heads)
    return KernelTable(*(part.contiguous() for part in numbers.unbind(0)))
