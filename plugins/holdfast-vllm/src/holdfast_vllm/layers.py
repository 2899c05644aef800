"""Access to vLLM's layers and batches, for both attention backends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from vllm.config import get_current_vllm_config
from vllm.v1.attention.backend import AttentionType, CommonAttentionMetadata

from holdfast_vllm.rows import Rows
from holdfast_vllm.status import engine_of
from holdfast_vllm.wire import Admitted


@dataclass(frozen=True)
class LayerPass:
    """One layer in one pass.

    Args:
        number: counted from 0.
        scaling: factor of the scores.
        query: [query, head, size of a head], of the whole pass.
        key, value: [query, group, size of a head]; they are in the cache too.
        cache: vLLM's cache of the layer.
        output: like `query`; written to.
    """

    number: int
    scaling: float
    query: Tensor
    key: Tensor
    value: Tensor
    cache: Tensor
    output: Tensor


def report_layer(impl: Any, backend_obstacles: Mapping[str, bool]) -> None:
    """Reports a layer to the engine, with the reason if it cannot be steered.

    Args:
        impl: vLLM's attention of the layer.
        backend_obstacles: further obstacles, which each backend detects differently: a description,
            and whether the layer has it.
    """
    obstacles = {
        "attention of another kind than a decoder's": impl.attn_type != AttentionType.DECODER,
        "attention sinks": impl.sinks is not None,
        "ALiBi": impl.alibi_slopes is not None,
        "a soft cap": bool(impl.logits_soft_cap),
        "keys that layers share": impl.kv_sharing_target_layer_name is not None,
        **backend_obstacles,
    }
    refusals = [f"the model has {name}" for name, present in obstacles.items() if present]
    engine_of(get_current_vllm_config()).refusals.append(refusals[0] if refusals else "")


def rows_of_pass(
    rows: Rows[Admitted], common: CommonAttentionMetadata
) -> list[Admitted | None] | None:
    """Returns the requests in a pass's rows, for either runner; None if there are none."""
    return rows.of(range(common.num_reqs) if common.req_idx is None else common.req_idx)
