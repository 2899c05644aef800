"""The CPU attention backend: vLLM's own, with the rows that are steered computed here.

Decoding steps of several rows go together. Where every query of a pass is moved, vLLM's kernel is
not called at all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor
from vllm.config import get_current_vllm_config
from vllm.distributed import get_tensor_model_parallel_rank
from vllm.model_executor.models.utils import extract_layer_index
from vllm.v1.attention.backend import AttentionType, CommonAttentionMetadata
from vllm.v1.attention.backends.cpu_attn import (
    CPUAttentionBackend,
    CPUAttentionBackendImpl,
    CPUAttentionMetadata,
    CPUAttentionMetadataBuilder,
)

from holdfast_vllm.chunks import Chunk
from holdfast_vllm.masses import Masses
from holdfast_vllm.moves import Move, disagrees, moves_of, needs_three, notes_apart
from holdfast_vllm.pages import is_readable
from holdfast_vllm.status import engine_of
from holdfast_vllm.steps import Steps


class Part(Protocol):
    """Queries of a pass that are moved together: `Steps` or a `Chunk`."""

    def moves_layer(self, layer: int, heads: int) -> bool: ...

    def run(
        self,
        layer: int,
        scaling: float,
        query: Tensor,
        cache: Tensor,
        output: Tensor,
        masses: Masses,
    ) -> None: ...


@dataclass(frozen=True)
class Plan:
    """What is moved in a pass.

    Args:
        parts: the queries, as they go together.
        writing: those that are more than a note of the mass.
        everything: whether they are all queries of the pass.
        masses: of requests that ask for it.
    """

    parts: Sequence[Part]
    writing: Sequence[Part]
    everything: bool
    masses: Masses


class Backend(CPUAttentionBackend):
    """vLLM's CPU attention, with steered rows."""

    @staticmethod
    def get_impl_cls() -> type[Impl]:
        return Impl

    @staticmethod
    def get_builder_cls() -> type[Builder]:
        return Builder


class Builder(CPUAttentionMetadataBuilder):
    """Adds to the metadata of a pass which of its queries are moved."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self._can_read():
            self.isa = "vec"  # pages that can be read, for some of AMX's speed
            self._set_isa_to_layers(self.layer_names)
        self._engine = engine_of(self.vllm_config)
        self._first_head = get_tensor_model_parallel_rank() * self.num_heads
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
        numbers = range(common.num_reqs) if common.req_idx is None else common.req_idx
        rows = self._engine.rows.of(numbers)
        if rows is None:
            return None
        starts, lengths = common.query_start_loc_cpu.tolist(), common.seq_lens.tolist()
        moves = notes_apart(moves_of(rows, starts, lengths))
        if not moves:
            return None
        writing = self._parts([m for m in moves if m.writes], common.block_table_tensor)
        notes = self._parts([m for m in moves if not m.writes], common.block_table_tensor)
        steered = sum(moved.count for moved in moves if moved.writes)
        everything = steered == common.num_actual_tokens
        return Plan([*writing, *notes], writing, everything, self._engine.masses)

    def _parts(self, moves: Sequence[Move], table: Tensor) -> list[Part]:
        """Queries as they go together: rows of one, where they have about as many pages."""
        parts: list[Part] = []
        together: dict[tuple[int, bool], list[Move]] = defaultdict(list)
        rank = self._first_head, self.num_heads
        for moved in moves:
            pages = -(-moved.length // self.block_size)
            if moved.count == 1:
                alike = (pages - 1).bit_length(), needs_three(moved.admitted)
                together[alike].append(moved)
            elif disagrees(moved.admitted):
                parts.append(Steps.of([moved], table, self.block_size, *rank))
            else:
                parts.append(Chunk.of(moved, table, self.block_size, *rank))
        parts += [Steps.of(some, table, self.block_size, *rank) for some in together.values()]
        return parts


class Impl(CPUAttentionBackendImpl):
    """vLLM's CPU attention of one layer, and the moved rows."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        engine_of(get_current_vllm_config()).refusals.append(self._refusal())

    def _refusal(self) -> str:
        """Why this layer cannot be steered; "" where it can."""
        asked = {
            "attention of another kind than a decoder's": self.attn_type != AttentionType.DECODER,
            "a sliding window": self.sliding_window != -1,
            "attention sinks": self.sinks is not None,
            "ALiBi": self.alibi_slopes is not None,
            "a soft cap": bool(self.logits_soft_cap),
            "a quantised cache": self.is_fp8_kv_cache,
            "keys that layers share": self.kv_sharing_target_layer_name is not None,
        }
        return next((f"the model has {name}" for name, there in asked.items() if there), "")

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
        if (
            plan is None
            or not plan.everything
            or not all(part.moves_layer(number, self.num_heads) for part in plan.writing)
        ):
            super().forward(
                layer, query, key, value, kv_cache, attn_metadata, output,
                output_scale, output_block_scale,
            )  # fmt: skip
        if plan is not None:
            shape = -1, self.num_heads, self.head_size
            asked, result = query.view(shape), output.view(shape)
            for part in plan.parts:
                part.run(number, self.scale, asked, kv_cache, result, plan.masses)
        return output
