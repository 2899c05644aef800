"""A door to GPT-J, whose attention has no interface: its own method is stood in for."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from holdfast.attention.explicit import Scoring, attend_explicitly, mass_at, uniform_at
from holdfast.attention.layers import noted_queries, steering_of
from holdfast.errors import ModelError


def has_door(module: torch.nn.Module) -> bool:
    return (
        hasattr(type(module), "_attn")
        and hasattr(module, "scale_attn")
        and getattr(module, "layer_idx", None) is not None
    )


class Door:
    """Stands in for `_attn` of a module like GPT-J's.

    It computes softmax(query @ key / scale_attn + mask) @ value there. Unsteered passes keep the
    module's own.
    """

    def __init__(self, module: Any):
        self.module = module

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None
    ) -> Any:
        steering, module = steering_of(self.module), self.module
        if steering is not None:
            steering.enter(module.layer_idx)
        if steering is None or not (steering.trace or steering.touches(module.layer_idx)):
            return type(module)._attn(module, query, key, value, attention_mask)
        if module.training and module.attn_dropout.p:
            raise ModelError(
                f"Attention with dropout {module.attn_dropout.p} cannot be steered; call "
                "model.eval() first."
            )
        causal = attention_mask is None and query.shape[2] > 1
        scoring, layer = Scoring(1 / float(module.scale_attn), causal=causal), module.layer_idx
        given = query.float(), key.float(), value, attention_mask
        output = attend_explicitly(steering, layer, *given, scoring)
        if steering.trace:
            query, key, _, mask = given
            places = noted_queries(steering, query)
            if steering.last is not None and query.shape[2] > 1:
                steering.note(mass_at(steering, layer, query, key, mask, scoring, places))
            steering.uniform[layer] = uniform_at(steering, key.shape[2], mask, causal, places)
        return output, None
