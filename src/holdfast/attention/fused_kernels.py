"""Attention over a range of keys by PyTorch's fused kernels, which also return its log-sum-exp."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

_ATEN = torch.ops.aten


@dataclass(frozen=True)
class LayerInputs:
    """Queries, keys and values of one layer."""

    query: Tensor  # [B, H, Q, D]
    key: Tensor  # [B, G, K, D] with H a multiple of G
    value: Tensor  # likewise
    mask: Tensor | None  # boolean or additive, [B or 1, 1, Q, K]; None: no key is hidden
    causal: bool  # whether query i sees only keys 0 to i; False if there is a mask
    scaling: float  # factor of the scores

    @property
    def size(self) -> tuple[int, int]:
        """The numbers of queries and of keys."""
        return self.query.shape[2], self.key.shape[2]

    @property
    def packed(self) -> Tensor:
        """The queries, one per row, as [B, G, H/G, D], so that heads read shared keys only once."""
        return self.query.reshape(self.query.shape[0], self.key.shape[1], -1, self.query.shape[3])


class Attended(NamedTuple):
    """The result of attending to some keys."""

    output: Tensor  # [B, H, Q, D]
    lse: Tensor  # log-sum-exp of the scores, float32 or wider, [B, H, Q]


def is_fused(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether `attend` can be used: the device has kernels that return log-sum-exps, the sizes
    match, and no gradient is needed.
    """
    if not query.shape[-1] == key.shape[-1] == value.shape[-1]:
        return False
    if torch.is_grad_enabled() and any(states.requires_grad for states in (query, key, value)):
        return False
    if query.device.type == "cuda":
        size = query.shape[-1]
        narrow = query.dtype != torch.float64
        return size <= 256 and size % 8 == 0 and narrow
    return query.device.type == "cpu"


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scaling: float,
    *,
    causal: bool = False,
) -> Attended:
    """Computes attention of queries [B, H, Q, D] to keys [B, G, K, D], with H a multiple of G.

    Args:
        query: [B, H, Q, D].
        key: [B, G, K, D], with K of at least 1: without keys, the CPU kernel crashes the process.
        value: likewise.
        mask: added to the scores, [B or 1, 1, Q, K], or None. For a query that sees no key, output
            and log-sum-exp are undefined; the CPU kernel returns 0.
        scaling: factor of the scores.
        causal: whether query i sees only keys 0 to i.
    """
    if _on_cpu(query):
        output, lse = _ATEN._scaled_dot_product_flash_attention_for_cpu(
            query, key, value, 0.0, causal, attn_mask=mask, scale=scaling
        )
        return Attended(output, lse)
    return _attend_on_cuda(query, key, value, mask, causal, scaling)


def _on_cpu(query: Tensor) -> bool:
    return query.device.type == "cpu"


def _attend_on_cuda(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, scaling: float
) -> Attended:
    """Uses flash attention without a mask, and memory-efficient attention otherwise or in float32.

    Flash attention reads shared keys in place. The other kernel cannot, so it is called once for
    each head of a group, on views; no key is ever repeated in memory.
    """
    if mask is None and query.dtype in (torch.float16, torch.bfloat16):
        output, lse, *_ = _ATEN._scaled_dot_product_flash_attention(
            query, key, value, 0.0, causal, False, scale=scaling
        )
        return Attended(output, lse)
    repeats = query.shape[1] // key.shape[1]
    if repeats == 1:
        return _attend_efficiently(query, key, value, mask, causal, scaling)
    calls = [
        _attend_efficiently(query[:, head::repeats], key, value, mask, causal, scaling)
        for head in range(repeats)
    ]
    output = torch.stack([call.output for call in calls], 2).flatten(1, 2)
    lse = torch.stack([call.lse for call in calls], 2).flatten(1, 2)
    return Attended(output, lse)


def _attend_efficiently(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, scaling: float
) -> Attended:
    """Uses memory-efficient attention; there must be as many query heads as key heads."""
    if mask is not None:
        keys = key.shape[2]
        # the kernel needs rows of the mask that start at multiples of 16 bytes
        padded = mask.to(query.dtype).clamp(min=torch.finfo(query.dtype).min)
        padded = torch.nn.functional.pad(padded, (0, -keys % 16))[..., :keys]
        mask = padded.expand(query.shape[0], query.shape[1], query.shape[2], keys)
    output, lse, *_ = _ATEN._scaled_dot_product_efficient_attention(
        query, key, value, mask, True, 0.0, causal, scale=scaling
    )
    return Attended(output, lse[..., : query.shape[2]])
