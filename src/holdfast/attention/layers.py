"""The attention of one layer in the pass under way, and the mask it gets: both are registered with
transformers under the name "holdfast".

`holdfast_attention` computes a steered layer by one of three routes: a decode step on a GPU by one
kernel (`gpu_step.py`); otherwise the outputs of the span and of the other keys are merged by their
log-sum-exps (`merge.py`), or, if no fused kernel can be used, scores are computed explicitly
(`explicit.py`). A layer that is not steered keeps the
attention and the masks that the model had before.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from holdfast.attention.blocks import PriorAttention, pass_in
from holdfast.attention.explicit import ScoreFormula, attend_explicitly, note_trace
from holdfast.attention.extent import Starts, additive
from holdfast.attention.fused_kernels import LayerInputs, attend, is_fused
from holdfast.attention.merge import LARGEST_MASK, attend_merged, attend_one, step_kernel
from holdfast.attention.passes import PASS, Pass, PassState
from holdfast.errors import ModelError

IMPLEMENTATION = "holdfast"
# Configurations, which need not be hashable, with the attention that each had before ours.
_PLAIN: list[tuple[weakref.ref[Any], str]] = []


@torch.compiler.disable  # type: ignore[untyped-decorator]
def holdfast_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **kwargs: Any,
) -> tuple[Tensor, Any]:
    """Implements transformers' attention interface; returns the output [B, Q, H, D].

    Takes query [B, H, Q, D], key and value [B, G, K, D].

    Raises:
        ModelError: the model asks for something that this function cannot apply.
    """
    current = pass_in(module)
    state = _state_of(module, current)
    if current is None or current.state is None:  # a steered pass has SDPA's masks
        plain = _plain_attention(module, attention_mask, kwargs)
        if plain is not None:
            result: tuple[Tensor, Any] = plain(module, query, key, value, attention_mask, **kwargs)
            return result
    if state is None and attention_mask is None and current is not None:
        # without a mask, only SDPA treats cross-attention as causal
        crosses = current.model is not None and module in current.model.cross
        if crosses and _plain_name(getattr(module, "config", None)) != "sdpa":
            kwargs["is_causal"] = False
    extras = _extras_of(module, kwargs)
    layer = 0 if state is None else _enter(state, module)
    steers = state is not None and (state.steering.trace or state.steering.touches(layer))
    if extras is None and not steers:
        ours = current is not None and current.model is None  # a pass of the engine, not of a block
        if ours and _attends_faster(query, key, value, attention_mask):
            inputs = _inputs_of(module, query, key, value, attention_mask, kwargs)
            if (kernel := step_kernel(query)) is not None:
                return kernel(inputs, None, None, False)[0].transpose(1, 2), None
            mask = None if inputs.mask is None else additive(inputs.mask, query.dtype)
            if query.shape[2] == 1:
                return attend_one(inputs, mask)[0].transpose(1, 2).contiguous(), None
            attended, _ = attend(query, inputs.key, inputs.value, mask, False, inputs.scaling)
            return attended.transpose(1, 2).contiguous(), None
        return sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)
    refuse_dropout(module, kwargs.get("dropout"))
    if not (attention_mask is None or isinstance(attention_mask, Tensor)):
        raise ModelError(
            f"A mask of the kind {type(attention_mask).__name__} cannot be steered; load the model "
            "with attn_implementation='sdpa'."
        )
    inputs = _inputs_of(module, query, key, value, attention_mask, kwargs)
    scoring = ScoreFormula(inputs.scaling, *(extras or _Extras()), inputs.causal)
    if state is not None and extras is None and _merges(state, layer, inputs):
        output = attend_merged(state, layer, inputs)
    else:
        output = attend_explicitly(state, layer, inputs, scoring)
    if state is not None and state.steering.trace:
        note_trace(state, layer, inputs, scoring)
    if output is None:  # nothing is moved here
        given = inputs.query, inputs.key, inputs.value, inputs.mask
        return sdpa_attention_forward(module, *given, **kwargs)[0], None
    return output.transpose(1, 2).contiguous(), None


def _attends_faster(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> bool:
    """Whether SDPA would be slower than our kernels: on a CPU, if heads share keys, which it
    repeats for every head; on a GPU, in steps, since it repeats them there under a mask, and
    otherwise may plan a kernel anew for each number of keys.
    """
    step, on_cpu = query.shape[2] == 1, query.device.type == "cpu"
    if on_cpu and query.shape[1] == key.shape[1]:
        return False
    if isinstance(mask, Tensor):
        small = step or (on_cpu and mask.numel() <= LARGEST_MASK)
        if mask.ndim != 4 or mask.shape[1] != 1 or not small:
            return False
    elif mask is not None or not step:
        return False
    return is_fused(query, key, value) and (on_cpu or step_kernel(query) is not None)


def _merges(state: PassState, layer: int, inputs: LayerInputs) -> bool:
    """Whether outputs can be merged: a fused kernel, one mask for all heads, two groups of keys."""
    mask = inputs.mask
    if mask is not None and (
        mask.ndim != 4 or mask.shape[1] != 1 or mask.shape[2] != inputs.query.shape[2]
    ):
        return False
    two = not state.steering.touches(layer) or state.is_two_groups(inputs.key.shape[2])
    return two and is_fused(inputs.query, inputs.key, inputs.value)


def refuse_dropout(module: torch.nn.Module, dropout: float | None) -> None:
    """Refuses dropout, which steered attention does not apply."""
    if module.training and dropout:
        raise ModelError(
            f"Attention with dropout {dropout} cannot be steered; call model.eval() first."
        )


def _inputs_of(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    kwargs: dict[str, Any],
) -> LayerInputs:
    """The inputs, cut to the keys that the mask or causality covers; static caches have more."""
    causal = kwargs.get("is_causal")
    causal = getattr(module, "is_causal", True) if causal is None else causal
    causal = causal and mask is None and query.shape[2] > 1
    if causal and key.shape[2] > query.shape[2]:  # the first pass of a static cache
        key, value = key[:, :, : query.shape[2]], value[:, :, : query.shape[2]]
    # sliced only if needed, since plans are looked up by the tensor itself
    if mask is not None and mask.shape[-1] > key.shape[2]:
        mask = mask[..., : key.shape[2]]
    if kwargs.get("indices") is not None:
        mask = _only_chosen(mask, kwargs["indices"], key.shape[2], causal)
    scaling = kwargs.get("scaling")
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    return LayerInputs(query, key, value, mask, causal, scaling)


@torch.compiler.disable  # type: ignore[untyped-decorator]
def holdfast_mask(**kwargs: Any) -> Tensor | None:
    """Implements transformers' mask interface: SDPA's mask, or the model's own; notes columns."""
    current, config = PASS.get(), kwargs.get("config")
    if current is not None and current.model is not None and not current.model.has_config(config):
        current = None  # the mask is another model's, which runs in the middle of that pass
    name = _plain_name(config)
    if current is not None and current.state is not None:
        name = "sdpa"
        if "allow_is_bidirectional_skip" not in kwargs:  # otherwise the keys are an encoder's
            q_length, kv_length = int(kwargs.get("q_length", 0)), int(kwargs.get("kv_length", 0))
            first = _starts_of(current, kv_length) or int(kwargs.get("kv_offset", 0))
            current.state.note_keys(kwargs.get("q_offset", 0), q_length, first, kv_length)
    if current is not None and current.positions is not None:
        return _mask_by_positions(current, name, **kwargs)
    return ALL_MASK_ATTENTION_FUNCTIONS[name](**kwargs)  # type: ignore[no-any-return]


def _starts_of(current: Pass, keys: int) -> Starts | None:
    """Where this many keys begin, if rows keep different ones."""
    return current.starts if current.starts is not None and current.starts.keys == keys else None


def _mask_by_positions(
    current: Pass,
    plain: str,
    *,
    mask_function: Callable[..., Tensor],
    kv_length: int,
    kv_offset: int = 0,
    dtype: torch.dtype = torch.float32,
    **_: Any,
) -> Tensor:
    """The mask of a model's own rule, [row, 1, query, key], in the format of `plain`; queries are
    identified by position, keys by column.
    """
    positions, starts = current.positions, _starts_of(current, kv_length)
    assert positions is not None
    rows = torch.arange(len(positions), device=positions.device)[:, None, None, None]
    first = kv_offset if starts is None else starts.on_device[:, :, None, None]
    keys = torch.arange(kv_length, device=positions.device)[None, None, None] + first
    seen = mask_function(rows, rows.new_zeros(()), positions[:, None, :, None], keys)
    seen = seen.expand(len(positions), 1, positions.shape[1], kv_length)
    if plain != "eager":
        return seen
    return torch.zeros_like(seen, dtype=dtype).masked_fill_(~seen, torch.finfo(dtype).min)


def state_of(module: torch.nn.Module) -> PassState | None:
    """The state of the steered pass that a module is part of; None in any other pass."""
    return _state_of(module, pass_in(module))


def _state_of(module: torch.nn.Module, current: Pass | None) -> PassState | None:
    if current is None or (current.model is not None and module in current.model.cross):
        return None
    return current.state


def note_plain(before: Sequence[PriorAttention]) -> None:
    """Records the attention that configurations of a model had before ours."""
    forget_plain(before)
    for prior in before:
        if prior.implementation is not None and prior.implementation != IMPLEMENTATION:
            _PLAIN.append((weakref.ref(prior.config), prior.implementation))


def forget_plain(before: Sequence[PriorAttention]) -> None:
    """Forgets the configurations that have that attention back."""
    restored = [p.config for p in before if p.implementation not in (None, IMPLEMENTATION)]
    _PLAIN[:] = [
        (known, name)
        for known, name in _PLAIN
        if (alive := known()) is not None and not any(alive is config for config in restored)
    ]


def _plain_name(config: object) -> str:
    """The attention that a configuration had before ours; "sdpa" if none is recorded."""
    return next((name for known, name in _PLAIN if known() is config), "sdpa")


def _plain_attention(
    module: torch.nn.Module, mask: object, kwargs: dict[str, Any]
) -> Callable[..., Any] | None:
    """The attention before ours, for an unsteered pass; None if SDPA will do."""
    name = _plain_name(getattr(module, "config", None))
    is_additive = isinstance(mask, Tensor) and mask.is_floating_point()
    if name == "sdpa" or (name == "eager" and not (is_additive and kwargs.get("indices") is None)):
        return None
    file = sys.modules[type(module).__module__]
    eager = getattr(file, "eager_attention_forward", sdpa_attention_forward)
    return ALL_ATTENTION_FUNCTIONS.get_interface(name, eager)


def _enter(state: PassState, module: torch.nn.Module) -> int:
    layer: int | None = getattr(module, "layer_idx", None)
    if layer is None:
        raise ModelError(
            f"{type(module).__name__} does not expose its layer, so it cannot be steered; use"
            " prompt methods such as repetition."
        )
    state.enter(layer)
    return layer


class _Extras(NamedTuple):
    """Additions to scores that only some models have, as in `ScoreFormula`."""

    softcap: float | None = None
    bias: Tensor | None = None
    sinks: Tensor | None = None


def _extras_of(module: torch.nn.Module, kwargs: dict[str, Any]) -> _Extras | None:
    """The additions of a model that has any; SDPA would ignore them or raise."""
    for refused in ("block_indices", "cache"):  # sparse blocks; paged caches of continuous batching
        if kwargs.get(refused) is not None:
            raise ModelError(
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
    return _Extras(softcap, bias, sinks)


def _only_chosen(mask: Tensor | None, indices: Tensor, keys: int, causal: bool) -> Tensor:
    """The mask, [B, 1, Q, K], with only the keys [B, Q, chosen] that a sparse model chose."""
    chosen = torch.zeros(
        *indices.shape[:2], keys, dtype=torch.bool, device=indices.device
    ).scatter_(-1, indices.long(), True)[:, None]
    if mask is None:
        return chosen.tril() if causal else chosen
    return mask & chosen if mask.dtype == torch.bool else mask.masked_fill(~chosen, -torch.inf)


AttentionInterface.register(IMPLEMENTATION, holdfast_attention)
AttentionMaskInterface.register(IMPLEMENTATION, holdfast_mask)
