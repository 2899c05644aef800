"""The CUDA attention backend: vLLM's FlashAttention, whose outputs are then moved by `kernel`.

A pass with nothing steered is vLLM's own. In any other, FlashAttention is asked for its
log-sum-exps too, and the kernel attends to the spans alone. What is moved is planned for each pass,
so CUDA graphs are piecewise ones: attention runs between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from vllm.config import get_current_vllm_config
from vllm.distributed import get_tensor_model_parallel_rank
from vllm.model_executor.models.utils import extract_layer_index
from vllm.v1.attention.backend import (
    AttentionCGSupport,
    AttentionType,
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

from holdfast.attention.cuda.arguments import LayerTable
from holdfast.attention.table import layer_numbers
from holdfast_vllm.kernel import Queries, move, queries_of
from holdfast_vllm.masses import Masses
from holdfast_vllm.moved import Methods, on_rank, touches
from holdfast_vllm.moves import Move, counts_generated, moves_of
from holdfast_vllm.status import engine_of

_KEPT = 4096  # tables of layers, some kilobytes each, for the passes to come


@dataclass(frozen=True)
class Plan:
    """What is moved in a pass.

    Args:
        moves: the queries of each row.
        methods: of each, on the heads of this rank.
        queries: the same on the device.
        masses: of requests that ask for it.
    """

    moves: Sequence[Move]
    methods: tuple[Methods, ...]
    queries: Queries
    masses: Masses


class Backend(FlashAttentionBackend):
    """vLLM's FlashAttention, with steered rows: `--attention-backend CUSTOM`."""

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
    """Adds to the metadata of a pass which of its queries are moved."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._engine = engine_of(self.vllm_config)
        self._engine.backends.add("CUDA")
        self._first_head = get_tensor_model_parallel_rank() * self.num_heads_q

    @classmethod
    def get_cudagraph_support(
        cls, vllm_config: Any, kv_cache_spec: KVCacheSpec
    ) -> AttentionCGSupport:
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
        numbers = range(common.num_reqs) if common.req_idx is None else common.req_idx
        rows = self._engine.rows.of(numbers)
        if rows is None:
            return None
        # Exact without speculative decoding, which is refused.
        lengths = common.seq_lens_cpu_upper_bound
        lengths = common.seq_lens.cpu() if lengths is None else lengths
        moves = moves_of(rows, common.query_start_loc_cpu.tolist(), lengths.tolist())
        if not moves:
            return None
        heads = self.num_heads_q
        queries = queries_of(
            [(moved.row, moved.first, moved.count, moved.position) for moved in moves],
            [moved.admitted.ranges for moved in moves],
            [
                moved.admitted.prompt if counts_generated(moved.admitted) else Queries.NOWHERE
                for moved in moves
            ],
            heads // self.num_heads_kv,
            common.seq_lens.device,
        )
        methods = tuple(on_rank(moved.admitted.methods, self._first_head, heads) for moved in moves)
        return Plan(moves, methods, queries, self._engine.masses)


class Impl(FlashAttentionImpl):
    """vLLM's FlashAttention of one layer, and the moved rows."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        engine_of(get_current_vllm_config()).refusals.append(self._refusal())

    def _refusal(self) -> str:
        """Why this layer cannot be steered; "" where it can."""
        asked = {
            "attention of another kind than a decoder's": self.attn_type != AttentionType.DECODER,
            "a sliding window": self.sliding_window != (-1, -1),
            "attention sinks": self.sinks is not None,
            "ALiBi": self.alibi_slopes is not None,
            "a soft cap": bool(self.logits_soft_cap),
            "a quantised cache": self.kv_cache_dtype.startswith("fp8"),
            "keys that layers share": self.kv_sharing_target_layer_name is not None,
            "heads of more than 256 numbers": self.head_size > 256,
        }
        return next((f"the model has {name}" for name, there in asked.items() if there), "")

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
        notes = plan is not None and any(moved.notes for moved in plan.moves)
        if plan is None or attn_metadata is None or not (notes or touches(plan.methods, number)):
            return super().forward(
                layer, query, key, value, kv_cache, attn_metadata, output,
                output_scale, output_block_scale,
            )  # fmt: skip
        count = attn_metadata.num_actual_tokens
        keys, values = kv_cache.transpose(1, 2).split(self.head_size, dim=-1)
        _, lse = fa_utils.flash_attn_varlen_func(
            q=query[:count],
            k=keys,
            v=values,
            out=output[:count],
            cu_seqlens_q=attn_metadata.query_start_loc,
            max_seqlen_q=attn_metadata.max_query_len,
            seqused_k=attn_metadata.seq_lens,
            max_seqlen_k=attn_metadata.max_seq_len,
            softmax_scale=self.scale,
            causal=True,
            block_table=attn_metadata.block_table,
            scheduler_metadata=attn_metadata.scheduler_metadata,
            fa_version=self.vllm_flash_attn_version,
            num_splits=attn_metadata.max_num_splits,
            return_softmax_lse=True,
        )
        table = _table(plan.methods, number, self.num_heads, query.device)
        pages = attn_metadata.block_table
        mass = move(
            output, lse, query, keys, values, pages, plan.queries, table, self.scale, trace=notes
        )
        if mass is not None:
            for run, moved in enumerate(plan.moves):
                if moved.notes:
                    plan.masses.note(moved.admitted.trace, number, mass[run])
        return output


@lru_cache(_KEPT)
def _table(
    methods: tuple[Methods, ...], layer: int, heads: int, device: torch.device
) -> LayerTable:
    """The steering table of a layer, a row for each run of queries."""
    made = layer_numbers(methods, layer, heads, torch.float32, device)
    numbers = made.numbers.expand(3, len(methods), heads)
    return LayerTable(*(part.contiguous() for part in numbers.unbind(0)))
