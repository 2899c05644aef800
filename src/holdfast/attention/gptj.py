"""Steers attention like GPT-J's, which does not use transformers' attention interface."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from holdfast.attention.explicit import attend_explicitly, record_trace
from holdfast.attention.fused_kernels import LayerInputs
from holdfast.attention.layers import refuse_dropout, state_in
from holdfast.attention.open_model import pass_in


def is_like_gptj(module: torch.nn.Module) -> bool:
    """Whether a module computes attention in a method `_attn`, as GPT-J does."""
    return (
        hasattr(type(module), "_attn")
        and hasattr(module, "scale_attn")
        and getattr(module, "layer_idx", None) is not None
    )


class GPTJPatch:
    """Replaces `_attn` of a module like GPT-J's, which does not use the attention interface.

    `_attn` computes softmax(query @ key / scale_attn + mask) @ value. In unsteered passes, the
    module's own method is called.
    """

    def __init__(self, module: Any):
        self.module = module

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None
    ) -> Any:
        module = self.module
        layer = self.module.layer_idx
        state = state_in(pass_in(module), module)
        if state is not None:
            state.enter(layer)
        if state is None or not state.steering.acts_on(layer):
            return type(module)._attn(module, query, key, value, attention_mask)
        refuse_dropout(module, module.attn_dropout.p)
        wide = torch.promote_types(query.dtype, torch.float32)
        causal = attention_mask is None and query.shape[2] > 1
        scaling = 1 / float(module.scale_attn)
        inputs = LayerInputs(query.to(wide), key.to(wide), value, attention_mask, causal, scaling)
        output = attend_explicitly(state, layer, inputs)
        if state.steering.trace:
            record_trace(state, layer, inputs)
        return output, None
