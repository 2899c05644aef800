"""Attention over a range of keys that also returns its log-sum-exp, by the fused kernels PyTorch
ships.
"""

from __future__ import annotations

import torch
from torch import Tensor

_ATEN = torch.ops.aten


def is_fused(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether `attend` can run: it needs a kernel that returns log-sum-exps, equal sizes, and no
    gradients, which those lack.
    """
    if not query.shape[-1] == key.shape[-1] == value.shape[-1]:
        return False
    if torch.is_grad_enabled() and (
        query.requires_grad or key.requires_grad or value.requires_grad
    ):
        return False
    if query.device.type == "cuda":
        return query.shape[-1] <= 256 and query.shape[-1] % 8 == 0
    return query.device.type == "cpu"


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, scaling: float
) -> tuple[Tensor, Tensor]:
    """Attention of all queries to all keys given.

    Args:
        query: [B, H, Q, D].
        key, value: [B, G, K, D] with H a multiple of G, K at least 1 (the CPU kernel ends the
            process on none).
        mask: added to the scores, [B or 1, 1, Q, K], or None. A query that sees nothing gets an
            output and a log-sum-exp that mean nothing: those of the CPU kernel are 0.
        causal: query i sees keys 0 to i.
        scaling: of the scores.

    Returns:
        The output [B, H, Q, D] and the log-sum-exp of the scores, float32 or wider, [B, H, Q].
    """
    if query.device.type == "cpu":
        return _ATEN._scaled_dot_product_flash_attention_for_cpu(
            query, key, value, 0.0, causal, attn_mask=mask, scale=scaling
        )
    return _attend_on_cuda(query, key, value, mask, causal, scaling)


def _attend_on_cuda(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, scaling: float
) -> tuple[Tensor, Tensor]:
    """Flash attention without a mask, memory-efficient attention with one or in float32."""
    repeats = query.shape[1] // key.shape[1]
    if repeats > 1:
        key, value = (states.repeat_interleave(repeats, 1) for states in (key, value))
    if mask is None and query.dtype in (torch.float16, torch.bfloat16):
        output, lse, *_ = _ATEN._scaled_dot_product_flash_attention(
            query, key, value, 0.0, causal, False, scale=scaling
        )
        return output, lse
    if mask is not None:
        keys = key.shape[2]  # the kernel reads rows of the mask that start at multiples of 16 bytes
        padded = mask.to(query.dtype).clamp(min=torch.finfo(query.dtype).min)
        padded = torch.nn.functional.pad(padded, (0, -keys % 16))[..., :keys]
        mask = padded.expand(query.shape[0], query.shape[1], query.shape[2], keys)
    output, lse, *_ = _ATEN._scaled_dot_product_efficient_attention(
        query, key, value, mask, True, 0.0, causal, scale=scaling
    )
    return output, lse[..., : query.shape[2]]
