"""The attention of one layer in the current pass, and its mask, both registered with transformers
as "holdfast". With the attention alone, transformers would make no causal mask for it.

A steered layer is computed by one of three routes: a decode step on a GPU by one kernel
(`gpu_step.py`); otherwise the outputs of the span and of the other keys are merged by their
log-sum-exps (`decode_step.py` for one query per row, `merge.py` for several), or, if no fused
kernel can be used, scores are computed explicitly (`explicit.py`). A layer that is not steered
keeps the attention and the masks that the model had before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

from holdfast.attention.decode_step import attend_single_query, steer_step, step_kernel
from holdfast.attention.explicit import (
    NO_EXTRAS,
    ScoreExtras,
    attend_explicitly,
    record_trace,
)
from holdfast.attention.fused_kernels import LayerInputs, attend, is_fused
from holdfast.attention.key_groups import Starts, to_additive
from holdfast.attention.merge import MAX_MASK_ELEMENTS, move_queries
from holdfast.attention.open_model import pass_in
from holdfast.attention.passes import PASS, Pass, PassState
from holdfast.attention.plain_attention import IMPLEMENTATION, plain_attention, plain_name
from holdfast.errors import Unsteerable


@torch.compiler.disable  # type: ignore[untyped-decorator]
def holdfast_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **kwargs: Any,
) -> tuple[Tensor, Any]:
    """Implements transformers' attention interface.

    Args:
        module: the attention module of the layer.
        query: [B, H, Q, D].
        key: [B, G, K, D], with H a multiple of G.
        value: of the shape of `key`.
        attention_mask: boolean or additive, [B or 1, H or 1, Q, K]; None for a causal one.
        kwargs: passed by the model's class, such as `scaling`, `softcap` or `s_aux` (sinks).

    Returns:
        The output [B, Q, H, D], and the weights if the model's own attention returns them.

    Raises:
        Unsteerable: the model uses a feature that this function does not support.
    """
    current = pass_in(module)
    state = state_in(current, module)
    # 1. outside steered passes: the model's own attention; inside, the masks are made for SDPA
    if current is None or current.state is None:
        plain = plain_attention(module, attention_mask, kwargs)
        if plain is not None:
            return plain(module, query, key, value, attention_mask, **kwargs)
    crosses = current is not None and current.crosses(module)
    if crosses and attention_mask is None and plain_name(getattr(module, "config", None)) != "sdpa":
        kwargs["is_causal"] = False  # without a mask, only SDPA treats cross-attention as causal
    # 2. a layer that is not steered: SDPA, or a faster kernel of ours
    extras = _extras_of(module, kwargs)
    layer = 0 if state is None else _enter(state, module)
    if extras is None and (state is None or not state.steering.acts_on(layer)):
        in_decode_loop = current is not None and current.model is None
        if not (in_decode_loop and _attends_faster(query, key, value, attention_mask)):
            return sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)
        inputs = _inputs_of(module, query, key, value, attention_mask, kwargs)
        return _attend_plainly(inputs).transpose(1, 2).contiguous(), None
    # 3. a layer that is steered, traced, or has modified scores
    refuse_dropout(module, kwargs.get("dropout"))
    if not (attention_mask is None or isinstance(attention_mask, Tensor)):
        raise Unsteerable(
            f"Attention with a mask of the kind {type(attention_mask).__name__} cannot be steered;"
            " load the model with attn_implementation='sdpa'."
        )
    inputs = _inputs_of(module, query, key, value, attention_mask, kwargs)
    output = _attend_steered(state, layer, inputs, extras)
    if output is None:  # the layer's weights stay as they are
        tensors = inputs.query, inputs.key, inputs.value, inputs.mask
        return sdpa_attention_forward(module, *tensors, **kwargs)[0], None
    return output.transpose(1, 2).contiguous(), None


def state_in(current: Pass | None, module: torch.nn.Module) -> PassState | None:
    """The steering of a module in the current pass; None if not steered, as in cross-attention."""
    return None if current is None or current.crosses(module) else current.state


def _enter(state: PassState, module: torch.nn.Module) -> int:
    """Records that the pass has reached a layer; returns the number of the layer."""
    layer: int | None = getattr(module, "layer_idx", None)
    if layer is None:
        raise Unsteerable(
            f"{type(module).__name__} has no attribute layer_idx, so it cannot be steered; use"
            " prompt methods such as repetition."
        )
    state.enter(layer)
    return layer


def refuse_dropout(module: torch.nn.Module, dropout: float | None) -> None:
    """Refuses dropout, which steered attention does not apply."""
    if module.training and dropout:
        raise Unsteerable(
            f"Attention with dropout {dropout} cannot be steered; call model.eval() first."
        )


# Inputs from the model


def _extras_of(module: torch.nn.Module, kwargs: Mapping[str, Any]) -> ScoreExtras | None:
    """Reads the modifications of scores that SDPA ignores or refuses; None if there are none."""
    for refused in ("block_indices", "cache"):  # sparse blocks; paged caches of continuous batching
        if kwargs.get(refused) is not None:
            raise Unsteerable(
                f"Attention with {refused} ({type(module).__name__}) cannot be steered; use prompt "
                "methods such as repetition."
            )
    softcap, bias, sinks = (kwargs.get(name) for name in ("softcap", "position_bias", "s_aux"))
    if sinks is not None:
        sinks = sinks.reshape(1, -1, 1)
    elif kwargs.get("sinks") is not None:
        sinks = kwargs["sinks"][..., 0]
    if softcap is None and bias is None and sinks is None and kwargs.get("indices") is None:
        return None
    return ScoreExtras(softcap, bias, sinks)


def _inputs_of(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    kwargs: Mapping[str, Any],
) -> LayerInputs:
    """Collects the inputs, cut to the keys that can be seen, as static caches have more keys."""
    causal = kwargs.get("is_causal")
    causal = getattr(module, "is_causal", True) if causal is None else causal
    causal = causal and mask is None and query.shape[2] > 1
    if causal and key.shape[2] > query.shape[2]:  # the first pass of a static cache
        key = key[:, :, : query.shape[2]]
        value = value[:, :, : query.shape[2]]
    # sliced only if needed, since plans are looked up by the identity of the mask
    if mask is not None and mask.shape[-1] > key.shape[2]:
        mask = mask[..., : key.shape[2]]
    if kwargs.get("indices") is not None:
        mask = _with_selection(mask, kwargs["indices"], key.shape[2], causal)
    scaling = kwargs.get("scaling")
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    return LayerInputs(query, key, value, mask, causal, scaling)


def _with_selection(mask: Tensor | None, indices: Tensor, keys: int, causal: bool) -> Tensor:
    """Restricts a mask to the keys that a sparse model selects; returns [B, 1, Q, K].

    `indices` of the selected keys are [B, Q, number of selected keys].
    """
    selected = torch.zeros(*indices.shape[:2], keys, dtype=torch.bool, device=indices.device)
    selected = selected.scatter_(-1, indices.long(), True)[:, None]
    if mask is None:
        return selected.tril() if causal else selected
    if mask.dtype == torch.bool:
        return mask & selected
    return mask.masked_fill(~selected, -torch.inf)


# Computation


def _attend_steered(
    state: PassState | None, layer: int, inputs: LayerInputs, extras: ScoreExtras | None
) -> Tensor | None:
    """Computes the output of a layer that is steered, traced or has modified scores, [B, H, Q, D].

    None if the layer's weights stay as they are, so that SDPA can compute the output.
    """
    if state is not None and extras is None and _merges(state, layer, inputs):
        output = _attend_merged(state, layer, inputs)
    else:
        output = attend_explicitly(state, layer, inputs, extras or NO_EXTRAS)
    if state is not None and state.steering.trace:
        record_trace(state, layer, inputs, extras or NO_EXTRAS)
    return output


def _merges(state: PassState, layer: int, inputs: LayerInputs) -> bool:
    """Whether the outputs of span and rest can be merged.

    This needs a fused kernel, the same mask for all heads, and only two groups of keys.
    """
    mask = inputs.mask
    if mask is not None and (
        mask.ndim != 4 or mask.shape[1] != 1 or mask.shape[2] != inputs.query.shape[2]
    ):
        return False
    keys = inputs.key.shape[2]
    has_two_groups = not state.steering.touches(layer) or state.columns.agrees_on_groups(keys)
    return has_two_groups and is_fused(inputs.query, inputs.key, inputs.value)


def _attend_merged(state: PassState, layer: int, inputs: LayerInputs) -> Tensor | None:
    """Computes the steered output, [B, H, Q, D]; None if the weights stay as they are."""
    if inputs.query.shape[2] == 1:
        return steer_step(state, layer, inputs)
    return move_queries(state, layer, inputs) if state.steering.touches(layer) else None


def _attends_faster(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> bool:
    """Whether our kernels are faster than SDPA for unsteered attention.

    On a CPU, they are if heads share keys, which SDPA repeats for every head. On a GPU, they are in
    decode steps: there SDPA repeats shared keys if there is a mask, and otherwise may plan a new
    kernel for every number of keys.
    """
    is_step = query.shape[2] == 1
    on_cpu = query.device.type == "cpu"
    if on_cpu and query.shape[1] == key.shape[1]:
        return False
    if isinstance(mask, Tensor):
        is_small = is_step or (on_cpu and mask.numel() <= MAX_MASK_ELEMENTS)
        if mask.ndim != 4 or mask.shape[1] != 1 or not is_small:
            return False
    elif mask is not None or not is_step:
        return False
    return is_fused(query, key, value) and (on_cpu or step_kernel(query) is not None)


def _attend_plainly(inputs: LayerInputs) -> Tensor:
    """Computes unsteered attention by our kernels, [B, H, Q, D]."""
    query = inputs.query
    mask = inputs.mask
    if (kernel := step_kernel(query)) is not None:
        return kernel(inputs)[0]
    bias = None if mask is None else to_additive(mask, query.dtype)
    if query.shape[2] == 1:
        return attend_single_query(inputs, bias).output
    return attend(query, inputs.key, inputs.value, bias, inputs.scaling).output


# The mask


@torch.compiler.disable  # type: ignore[untyped-decorator]
def holdfast_mask(**kwargs: Any) -> Tensor | None:
    """Implements transformers' mask interface.

    Returns SDPA's mask in a steered pass, and otherwise the mask of the model's own attention. In a
    steered pass, it also reports which keys the layers will see.
    """
    current = PASS.get()
    config = kwargs.get("config")
    if current is not None and current.model is not None and not current.model.has_config(config):
        current = None  # the mask is for another model, which runs inside that pass
    name = plain_name(config)
    if current is not None and current.state is not None:
        name = "sdpa"
        if "allow_is_bidirectional_skip" not in kwargs:  # with it, the keys come from an encoder
            _report_keys(current, current.state, kwargs)
    if current is not None and current.positions is not None:
        return _mask_by_positions(current, name, **kwargs)
    return ALL_MASK_ATTENTION_FUNCTIONS[name](**kwargs)  # type: ignore[no-any-return]


def _report_keys(current: Pass, state: PassState, kwargs: Mapping[str, Any]) -> None:
    """Reports to a steered pass which queries and keys the mask is for."""
    q_length = int(kwargs.get("q_length", 0))
    kv_length = int(kwargs.get("kv_length", 0))
    kv_offset = _starts_of(current, kv_length) or int(kwargs.get("kv_offset", 0))
    state.report_keys(kwargs.get("q_offset", 0), q_length, kv_offset, kv_length)


def _starts_of(current: Pass, keys: int) -> Starts | None:
    """Returns where `keys` keys begin in each row, if rows differ in it; otherwise None."""
    return current.starts if current.starts is not None and current.starts.keys == keys else None


def _mask_by_positions(
    current: Pass,
    implementation: str,
    /,
    *,
    mask_function: Callable[..., Tensor],
    kv_length: int,
    kv_offset: int = 0,
    dtype: torch.dtype = torch.float32,
    **_: Any,
) -> Tensor:
    """Makes the mask of the model's own rule, [row, 1, query, key].

    It is additive for the `implementation` "eager", and otherwise boolean. Queries are identified
    by their position, keys by their column.
    """
    positions = current.positions
    starts = _starts_of(current, kv_length)
    assert positions is not None
    rows = torch.arange(len(positions), device=positions.device)[:, None, None, None]
    first_key = kv_offset if starts is None else starts.on_device[:, :, None, None]
    keys = torch.arange(kv_length, device=positions.device)[None, None, None] + first_key
    visible = mask_function(rows, rows.new_zeros(()), positions[:, None, :, None], keys)
    visible = visible.expand(len(positions), 1, positions.shape[1], kv_length)
    if implementation != "eager":
        return visible
    return torch.zeros_like(visible, dtype=dtype).masked_fill_(~visible, torch.finfo(dtype).min)


AttentionInterface.register(IMPLEMENTATION, holdfast_attention)
AttentionMaskInterface.register(IMPLEMENTATION, holdfast_mask)
