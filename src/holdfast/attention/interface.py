"""What transformers calls: registered as the attention implementation "holdfast". Without a `Steering` in the calling thread it is SDPA."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from holdfast.attention import fused
from holdfast.attention.kernels import is_fused
from holdfast.attention.literal import Scoring, attend_literally
from holdfast.attention.steering import STEERING, Steering
from holdfast.errors import ModelError

IMPLEMENTATION = "holdfast"
_REFUSED = ("block_indices", "cache")  # sparse blocks, and paged caches of continuous batching


def holdfast_attention(
    module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **kwargs
) -> tuple[Tensor, None]:
    """transformers' attention interface: query [B, H, Q, D], key and value [B, G, K, D], output [B, Q, H, D].

    Raises:
        ModelError: the model asks for something that this function would have to leave out.
    """
    steering = STEERING.get()
    own = _own_scoring(module, query, key, kwargs)
    layer = 0 if steering is None else _enter(steering, module)
    if own is None and (steering is None or not (steering.trace or steering.touches(layer))):
        return sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)
    if module.training and kwargs.get("dropout"):
        raise ModelError(f"Attention with dropout {kwargs['dropout']} cannot be steered; call model.eval() first.")
    causal = kwargs.get("is_causal")
    causal = query.shape[2] > 1 and attention_mask is None and (getattr(module, "is_causal", True) if causal is None else causal)
    if causal and key.shape[2] > query.shape[2]:  # the first pass of a static cache
        key, value = key[:, :, : query.shape[2]], value[:, :, : query.shape[2]]
    if attention_mask is not None and attention_mask.shape[-1] > key.shape[2]:  # else the same tensor, by which plans are known
        attention_mask = attention_mask[..., : key.shape[2]]
    if kwargs.get("indices") is not None:
        attention_mask = _only_chosen(attention_mask, kwargs["indices"], key.shape[2], causal)
    scaling = kwargs.get("scaling")
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    if own is None and is_fused(query, key, value) and _fits(steering, query, key, attention_mask):
        output = _steer_fused(steering, layer, query, key, value, attention_mask, causal, scaling)
        if output is None:
            return sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)
    else:
        scoring = Scoring(scaling, *(own or (None, None, None)), causal)
        output = attend_literally(steering, layer, query, key, value, attention_mask, scoring)
    return output.transpose(1, 2).contiguous(), None


def holdfast_mask(**kwargs) -> Tensor | None:
    """transformers' mask interface: the mask of SDPA; tells the steering where the keys of a cache stand."""
    steering = STEERING.get()
    if steering is not None:
        steering.place(*(int(kwargs.get(name, 0)) for name in ("q_offset", "q_length", "kv_offset", "kv_length")))
    return sdpa_mask(**kwargs)


def _enter(steering: Steering, module: torch.nn.Module) -> int:
    layer = getattr(module, "layer_idx", None)
    if layer is None:
        raise ModelError(f"{type(module).__name__} does not tell its layer, so it cannot be steered; use prompt methods such as repetition.")
    steering.enter(layer)
    return layer


def _own_scoring(module: torch.nn.Module, query: Tensor, key: Tensor, kwargs: dict) -> tuple[float | None, Tensor | None, Tensor | None] | None:
    """Soft cap, bias and sinks of a model that has any; SDPA would leave them out or raise."""
    for refused in _REFUSED:
        if kwargs.get(refused) is not None:
            raise ModelError(f"Attention with {refused} ({type(module).__name__}) cannot be steered; use prompt methods such as repetition.")
    softcap, bias, sinks = kwargs.get("softcap"), kwargs.get("position_bias"), kwargs.get("s_aux")
    if sinks is not None:
        sinks = sinks.reshape(1, -1, 1)
    elif kwargs.get("sinks") is not None:
        sinks = kwargs["sinks"][..., 0]
    if softcap is None and bias is None and sinks is None and kwargs.get("indices") is None:
        return None
    return softcap, bias, sinks


def _only_chosen(mask: Tensor | None, indices: Tensor, keys: int, causal: bool) -> Tensor:
    """The mask, bool [B, 1, Q, K], with only the keys that a sparse model chose for each query, `indices` [B, Q, chosen]."""
    chosen = torch.zeros(*indices.shape[:2], keys, dtype=torch.bool, device=indices.device).scatter_(-1, indices.long(), True)[:, None]
    if mask is None:
        return chosen.tril() if causal else chosen
    return mask & chosen if mask.dtype == torch.bool else mask.masked_fill(~chosen, -torch.inf)


def _fits(steering: Steering, query: Tensor, key: Tensor, mask: Tensor | None) -> bool:
    """Whether the fused path covers this pass: one mask for all heads, and beside several queries generated keys as a third group only
    where methods add to scores."""
    if mask is not None and (mask.ndim != 4 or mask.shape[1] != 1 or mask.shape[2] != query.shape[2]):
        return False
    return query.shape[2] == 1 or fused.by_bias(steering) or not steering.has_reply(key.shape[2])


def _steer_fused(
    steering: Steering, layer: int, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, scaling: float
) -> Tensor | None:
    """The steered output, [B, H, Q, D]; None where the unsteered one will do."""
    if query.shape[2] > 1:
        return fused.many(steering, layer, query, key, value, mask, causal, scaling)
    if steering.touches(layer):
        return fused.step(steering, layer, query, key, value, mask, scaling)
    return fused.read_step(steering, query, key, value, mask, scaling)


AttentionInterface.register(IMPLEMENTATION, holdfast_attention)
AttentionMaskInterface.register(IMPLEMENTATION, holdfast_mask)
