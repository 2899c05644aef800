"""What a pass and its cache may be, whatever block it belongs to, and refusals in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from holdfast.attention.steering import Steering
from holdfast.errors import ModelError, UsageError


def cached_tokens(cache: Any) -> int:
    """How many tokens a cache holds; 0 where it does not say."""
    try:
        return int(cache.get_seq_length())
    except (AttributeError, TypeError, ValueError):
        return 0


def can_be_noted(cache: object) -> bool:
    return type(cache).__hash__ is not None and hasattr(cache, "__weakref__")


def refuse_checkpointing(name: str, module: torch.nn.Module) -> None:
    if not (module.training and torch.is_grad_enabled()):
        return
    if getattr(module, "is_activation_checkpointing", False):
        raise ModelError(
            f"{name} computes passes again for their gradients, outside the block; call "
            "activation_checkpointing_disable() to steer it."
        )


def refuse_attention_weights(given: Mapping[str, Any]) -> None:
    if given.get("output_attentions"):
        raise ModelError(
            "A steered pass makes no attention weights for output_attentions; leave it out, and "
            "read the mass with trace=True."
        )


def check_padding(steering: Steering, mask: Tensor | None) -> None:
    """Refuses a span on tokens that an attention mask [row, token] hides.

    Raises:
        UsageError: names the first such row.
    """
    span = steering.span
    if mask is None or mask.ndim != 2 or mask.shape[0] % span.shape[0]:
        return
    if mask.shape[1] < span.shape[1]:
        return
    span = span.repeat_interleave(mask.shape[0] // span.shape[0], 0).to(mask.device)
    hidden = (span & (mask[:, : span.shape[1]] == 0)).nonzero()
    if len(hidden):
        row, column = hidden[0].tolist()
        raise UsageError(
            f"The span mask is True in row {row} at token {column}, which attention_mask hides as "
            "padding; pad both on the same side, as holdfast.encode_chats does."
        )
