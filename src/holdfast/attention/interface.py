"""The attention implementation "holdfast" that is registered with transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from holdfast.attention.compiled import attend_traced
from holdfast.attention.layers import attend_layer, mask_layer

IMPLEMENTATION = "holdfast"


def holdfast_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """transformers' attention interface.

    Takes query [B, H, Q, D], key and value [B, G, K, D]; returns the output [B, Q, H, D].

    Raises:
        ModelError: the model asks for something that this function would have to leave out.
    """
    if torch.compiler.is_compiling():
        return attend_traced(module, query, key, value, attention_mask, kwargs), None
    return attend_layer(module, query, key, value, attention_mask, **kwargs)


def holdfast_mask(**kwargs: Any) -> Tensor | None:
    """transformers' mask interface: SDPA's mask, or that of the attention the model had."""
    if torch.compiler.is_compiling():
        return sdpa_mask(**kwargs)
    return mask_layer(**kwargs)


AttentionInterface.register(IMPLEMENTATION, holdfast_attention)
AttentionMaskInterface.register(IMPLEMENTATION, holdfast_mask)
