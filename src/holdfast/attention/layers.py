"""The attention of one layer in the pass under way, and the mask it gets.

In a steered pass it is steered. In any other it is the attention that the model had before it got
ours, for a while or for good, with the masks that go with it.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from holdfast.attention.blocks import pass_in
from holdfast.attention.decode import read_step, step
from holdfast.attention.explicit import Scoring, attend_explicitly, mass_at, uniform_at
from holdfast.attention.extent import Starts
from holdfast.attention.kernels import States, is_fused
from holdfast.attention.prefill import prefill
from holdfast.attention.steering import PASS, Pass, Steering
from holdfast.errors import ModelError

IMPLEMENTATION = "holdfast"
# By `id` of each configuration that has our attention for a while or for good, what it had before.
_PLAIN: dict[int, str] = {}
_REFUSED = ("block_indices", "cache")  # sparse blocks, and paged caches of continuous batching


def attend_layer(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **kwargs: Any,
) -> tuple[Tensor, Any]:
    """`holdfast_attention` of a pass that is not compiled."""
    current = pass_in(module)
    steering = _steering_of(module, current)
    if current is None or current.steering is None:  # else its masks are not of the form before
        plain = _plain_attention(module, attention_mask, kwargs)
        if plain is not None:
            result: tuple[Tensor, Any] = plain(module, query, key, value, attention_mask, **kwargs)
            return result
    if steering is None and attention_mask is None and _sees_all(module, current):
        kwargs["is_causal"] = False
    own = _own_scoring(module, query, key, kwargs)
    layer = 0 if steering is None else _enter(steering, module)
    if own is None and (steering is None or not (steering.trace or steering.touches(layer))):
        return sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)
    _refuse(module, attention_mask, kwargs)
    states = _states_of(module, query, key, value, attention_mask, kwargs)
    scoring = Scoring(states.scaling, *(own or (None, None, None)), states.causal)
    output, noted = _attend(steering, layer, states, None if own is None else scoring)
    if output is None:
        given = states.query, states.key, states.value, states.mask
        output = sdpa_attention_forward(module, *given, **kwargs)[0]
    else:
        output = output.transpose(1, 2).contiguous()
    if steering is not None and steering.trace:
        places, keys = noted_queries(steering, query), states.key.shape[2]
        if not noted:
            mass = mass_at(steering, layer, states.query, states.key, states.mask, scoring, places)
            steering.note(mass)
        steering.uniform[layer] = steering.plans.get(
            "uniform",
            states.size,
            states.mask,
            lambda: uniform_at(steering, keys, states.mask, states.causal, places),
        )
    return output, None


def _refuse(module: torch.nn.Module, mask: object, kwargs: dict[str, Any]) -> None:
    if module.training and kwargs.get("dropout"):
        raise ModelError(
            f"Attention with dropout {kwargs['dropout']} cannot be steered; call model.eval() "
            "first."
        )
    if not (mask is None or isinstance(mask, Tensor)):
        raise ModelError(
            f"A mask of the kind {type(mask).__name__} cannot be steered; load the model "
            "with attn_implementation='sdpa'."
        )


def _states_of(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    kwargs: dict[str, Any],
) -> States:
    """What the layer attends with: as many keys as its mask, or its causality, tells of."""
    causal = kwargs.get("is_causal")
    causal = (
        query.shape[2] > 1
        and mask is None
        and (getattr(module, "is_causal", True) if causal is None else causal)
    )
    if causal and key.shape[2] > query.shape[2]:  # the first pass of a static cache
        key, value = key[:, :, : query.shape[2]], value[:, :, : query.shape[2]]
    if (
        mask is not None and mask.shape[-1] > key.shape[2]
    ):  # else the same tensor, by which plans are known
        mask = mask[..., : key.shape[2]]
    if kwargs.get("indices") is not None:
        mask = _only_chosen(mask, kwargs["indices"], key.shape[2], causal)
    scaling = kwargs.get("scaling")
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    return States(query, key, value, mask, causal, scaling)


def _attend(
    steering: Steering | None, layer: int, states: States, scoring: Scoring | None
) -> tuple[Tensor | None, bool]:
    """The output, [B, H, Q, D], and whether the mass that was asked for is noted.

    None where the unsteered output will do. `scoring` is that of a model which has its own.
    """
    single, by_row = states.query.shape[2] == 1, steering is not None and steering.last is not None
    given = states.query, states.key, states.value, states.mask
    fuses = scoring is None and steering is not None and is_fused(*given[:3])
    if steering is not None and fuses and _fits(steering, layer, states):
        return _steer_fused(steering, layer, states), single
    scoring = Scoring(states.scaling, causal=states.causal) if scoring is None else scoring
    return attend_explicitly(steering, layer, *given, scoring), single or not by_row


def noted_queries(steering: Steering, query: Tensor) -> Tensor:
    """The query of each row whose mass is noted, [B]."""
    if steering.last is not None:
        return steering.last.to(query.device)
    return torch.full((query.shape[0],), query.shape[2] - 1, device=query.device)


def mask_layer(**kwargs: Any) -> Tensor | None:
    """A mask as transformers' interface has it: SDPA's.

    Tells the steering where the keys of a cache stand.
    """
    current, config = PASS.get(), kwargs.get("config")
    if current is not None and current.model is not None and not current.model.has_config(config):
        current = None  # of another model, which runs in the middle of that pass
    name = _PLAIN.get(id(config), "sdpa")
    if current is not None and current.steering is not None:
        name = "sdpa"
        if "allow_is_bidirectional_skip" not in kwargs:  # else it is of an encoder's keys
            q_length, kv_length = int(kwargs.get("q_length", 0)), int(kwargs.get("kv_length", 0))
            first = _starts_of(current, kv_length) or int(kwargs.get("kv_offset", 0))
            current.steering.place(kwargs.get("q_offset", 0), q_length, first, kv_length)
    if current is not None and current.positions is not None:
        return _mask_by_positions(current, name, **kwargs)
    mask: Tensor | None = ALL_MASK_ATTENTION_FUNCTIONS[name](**kwargs)
    return mask


def _starts_of(current: Pass, keys: int) -> Starts | None:
    """Where so many keys begin, if rows keep different ones."""
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
    """What a model's own rule lets each query see, [row, 1, query, key], in the form of `plain`.

    Rules of transformers are functions of row, head, query and key; here a query is told by its
    position, and a key by its column, which is its position too.
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


def steering_of(module: torch.nn.Module) -> Steering | None:
    """The steering of this module's pass; None for another model's, or cross-attention.

    Raises:
        UsageError: as `pass_in`.
    """
    return _steering_of(module, pass_in(module))


def _steering_of(module: torch.nn.Module, current: Pass | None) -> Steering | None:
    if current is None or (current.model is not None and module in current.model.cross):
        return None
    return current.steering


def note_plain(configs: Sequence[tuple[Any, str | None]]) -> None:
    """Notes the attention that configurations of a model had before they got ours."""
    for config, name in configs:
        if name is not None and name != IMPLEMENTATION:
            _PLAIN[id(config)] = name


def forget_plain(configs: Sequence[tuple[Any, str | None]]) -> None:
    """Forgets it, where they have got that attention back."""
    for config, name in configs:
        if name is not None and name != IMPLEMENTATION:
            _PLAIN.pop(id(config), None)


def note_adopted(configs: Sequence[tuple[Any, str | None]]) -> None:
    """The same, for as long as the configurations live."""
    note_plain(configs)
    for config, _ in configs:
        weakref.finalize(config, _PLAIN.pop, id(config), None)


def _plain_attention(
    module: torch.nn.Module, mask: object, kwargs: dict[str, Any]
) -> Callable[..., Any] | None:
    """The attention that a model had before ours, for a pass that is not steered.

    None for SDPA, and where eager attention is not given what it takes: masks of another form, as
    in a compiled pass, or indices.
    """
    name = _PLAIN.get(id(getattr(module, "config", None)), "sdpa")
    eager = _is_additive(mask) and kwargs.get("indices") is None
    if name == "sdpa" or (name == "eager" and not eager):
        return None
    file = sys.modules[type(module).__module__]
    own = getattr(file, "eager_attention_forward", sdpa_attention_forward)
    interface: Callable[..., Any] = ALL_ATTENTION_FUNCTIONS.get_interface(name, own)
    return interface


def _is_additive(mask: object) -> bool:
    return isinstance(mask, Tensor) and mask.is_floating_point()


def _sees_all(module: torch.nn.Module, current: Pass | None) -> bool:
    """Whether this is cross-attention that, without a mask, SDPA alone would take for causal."""
    name = _PLAIN.get(id(getattr(module, "config", None)), "sdpa")
    crosses = current is not None and current.model is not None and module in current.model.cross
    return crosses and name != "sdpa"


def _enter(steering: Steering, module: torch.nn.Module) -> int:
    layer: int | None = getattr(module, "layer_idx", None)
    if layer is None:
        raise ModelError(
            f"{type(module).__name__} does not tell its layer, so it cannot be steered; use prompt "
            "methods such as repetition."
        )
    steering.enter(layer)
    return layer


def _own_scoring(
    module: torch.nn.Module, query: Tensor, key: Tensor, kwargs: dict[str, Any]
) -> tuple[float | None, Tensor | None, Tensor | None] | None:
    """Soft cap, bias and sinks of a model that has any; SDPA would leave them out or raise."""
    for refused in _REFUSED:
        if kwargs.get(refused) is not None:
            raise ModelError(
                f"Attention with {refused} ({type(module).__name__}) cannot be steered; use prompt "
                "methods such as repetition."
            )
    softcap, bias, sinks = kwargs.get("softcap"), kwargs.get("position_bias"), kwargs.get("s_aux")
    if sinks is not None:
        sinks = sinks.reshape(1, -1, 1)
    elif kwargs.get("sinks") is not None:
        sinks = kwargs["sinks"][..., 0]
    if softcap is None and bias is None and sinks is None and kwargs.get("indices") is None:
        return None
    return softcap, bias, sinks


def _only_chosen(mask: Tensor | None, indices: Tensor, keys: int, causal: bool) -> Tensor:
    """The mask with only the keys that a sparse model chose for each query.

    `indices` is [B, Q, chosen]; the mask returned is [B, 1, Q, K].
    """
    chosen = torch.zeros(
        *indices.shape[:2], keys, dtype=torch.bool, device=indices.device
    ).scatter_(-1, indices.long(), True)[:, None]
    if mask is None:
        return chosen.tril() if causal else chosen
    return mask & chosen if mask.dtype == torch.bool else mask.masked_fill(~chosen, -torch.inf)


def _fits(steering: Steering, layer: int, states: States) -> bool:
    """Whether the fused path covers this pass: one mask for all heads, and two groups of keys."""
    mask = states.mask
    if mask is not None and (
        mask.ndim != 4 or mask.shape[1] != 1 or mask.shape[2] != states.query.shape[2]
    ):
        return False
    return not steering.touches(layer) or steering.is_two_groups(states.key.shape[2])


def _steer_fused(steering: Steering, layer: int, states: States) -> Tensor | None:
    """The steered output, [B, H, Q, D]; None where the unsteered one will do."""
    if states.query.shape[2] > 1:
        return prefill(steering, layer, states) if steering.touches(layer) else None
    if steering.touches(layer):
        return step(steering, layer, states)
    return read_step(steering, states)
