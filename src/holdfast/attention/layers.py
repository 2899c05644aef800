"""The attention of one layer in the pass under way, and the mask it gets.

In a steered pass it is steered. In any other it is the attention that the model had before it got
ours, for a while or for good, with the masks that go with it.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from holdfast.attention.checks import check_padding
from holdfast.attention.cuda import steer
from holdfast.attention.decode import read_step, step
from holdfast.attention.explicit import Scoring, attend_explicitly, mass_at
from holdfast.attention.extent import Starts
from holdfast.attention.kernels import States, is_fused
from holdfast.attention.open_model import WAITING, Ahead, OpenModel
from holdfast.attention.prefill import prefill
from holdfast.attention.steering import PASS, Pass, Steering
from holdfast.errors import ModelError

IMPLEMENTATION = "holdfast"
OWNERS: WeakKeyDictionary[torch.nn.Module, OpenModel] = (
    WeakKeyDictionary()
)  # of the modules of models with open blocks
CONFIGS: dict[int, OpenModel] = {}  # the same by `id` of their configurations
# By `id` of each configuration of models that have our attention for good, what they had before.
_ADOPTED: dict[int, str] = {}
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
    steering, plain = steering_of(module), None
    if kwargs.get("indices") is None:  # eager functions do not take them
        plain = _left_alone(module)
    if plain is None and steering is None:
        plain = _plain_attention(module, attention_mask)
    if plain is not None:
        result: tuple[Tensor, Any] = plain(module, query, key, value, attention_mask, **kwargs)
        return result
    if steering is None and attention_mask is None and _sees_all(module):
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
    if steering is not None and steering.trace and not noted:
        places = _noted_queries(steering, query)
        mass = mass_at(steering, layer, states.query, states.key, states.mask, scoring, places)
        steering.note(mass)
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
    if scoring is None and steering is not None:
        if (on_gpu := steer.taken(steering, layer, *given)) is not None:
            output = steer.attend(on_gpu, *given, states.causal, states.scaling)
            return output, single or not by_row
        if is_fused(*given[:3]) and _fits(steering, layer, states):
            return _steer_fused(steering, layer, states), single
    scoring = Scoring(states.scaling, causal=states.causal) if scoring is None else scoring
    return attend_explicitly(steering, layer, *given, scoring), single or not by_row


def _noted_queries(steering: Steering, query: Tensor) -> Tensor:
    """The query of each row whose mass is noted, [B]."""
    if steering.last is not None:
        return steering.last.to(query.device)
    return torch.full((query.shape[0],), query.shape[2] - 1, device=query.device)


def mask_layer(**kwargs: Any) -> Tensor | None:
    """A mask as transformers' interface has it: SDPA's.

    Tells the steering where the keys of a cache stand.
    """
    current, owner = PASS.get(), CONFIGS.get(id(kwargs.get("config")))
    if owner is None and (current is None or (current.model is None and current.steering is None)):
        plain = _ADOPTED.get(id(kwargs.get("config")), "sdpa")
        if current is not None and current.positions is not None:
            return _mask_by_positions(current, plain, **kwargs)
        return _mask_of(plain, kwargs)
    q_length = int(kwargs.get("q_length", 0))
    kv_offset, kv_length = int(kwargs.get("kv_offset", 0)), int(kwargs.get("kv_length", 0))
    place = kwargs.get("q_offset", 0), q_length, kv_offset, kv_length
    if current is not None and (current.model is None or current.model is owner):
        if not current.masks and owner is not None:
            return _mask_before(owner, kwargs)
        if (
            current.steering is not None and "allow_is_bidirectional_skip" not in kwargs
        ):  # else it is of an encoder's keys
            starts = _starts_of(current, kv_length)
            current.steering.place(place[0], q_length, starts or kv_offset, kv_length)
        if current.positions is not None:
            return _mask_by_positions(current, "sdpa", **kwargs)
    elif owner is not None:  # `generate` makes the masks of static caches ahead of the pass
        block = owner.blocks.block_of()
        if block is None or block.steering is None:
            return _mask_before(owner, kwargs)
        if WAITING.ahead is None or WAITING.ahead.model is not owner:
            WAITING.ahead = Ahead(owner)
        WAITING.ahead.places.append(place)
        block.reached = True
        if q_length > 1:
            check_padding(block.steering, kwargs.get("attention_mask"))
    return _mask_of("sdpa", kwargs)


def _mask_of(name: str | None, kwargs: dict[str, Any]) -> Tensor | None:
    """A mask of the form that one of transformers' implementations takes."""
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
    """What the pass under way does in this module; None for another model's, or cross-attention."""
    current = PASS.get()
    if current is None or current.steering is None:
        return None
    if current.model is not None and (
        not current.model.belongs(module) or id(module) in current.model.cross
    ):
        return None
    return current.steering


def adopted(configs: Sequence[tuple[Any, str | None]]) -> None:
    """Notes the attention of a model's configurations before it got ours for good."""
    for config, name in configs:
        if name is not None and name != IMPLEMENTATION:
            _ADOPTED[id(config)] = name
            weakref.finalize(config, _ADOPTED.pop, id(config), None)


def _plain_attention(module: torch.nn.Module, mask: object) -> Callable[..., Any] | None:
    """The attention that an adopted model had, for a pass that is not steered.

    None for SDPA, and where the masks are not of the form it takes, as in a compiled pass.
    """
    name = _ADOPTED.get(id(getattr(module, "config", None)), "sdpa")
    if name == "sdpa" or (name == "eager" and not _is_additive(mask)):
        return None
    return _interface(module, name)


def _is_additive(mask: object) -> bool:
    return isinstance(mask, Tensor) and mask.is_floating_point()


def _interface(module: torch.nn.Module, name: str | None) -> Callable[..., Any]:
    """One of transformers' attention functions, or the eager one of the module's own file."""
    file = sys.modules[type(module).__module__]
    eager = getattr(file, "eager_attention_forward", sdpa_attention_forward)
    interface: Callable[..., Any] = ALL_ATTENTION_FUNCTIONS.get_interface(str(name), eager)
    return interface


def _sees_all(module: torch.nn.Module) -> bool:
    """Whether this is cross-attention that, without a mask, SDPA alone would take for causal."""
    current = PASS.get()
    model = None if current is None else current.model
    return (
        model is not None
        and id(module) in model.cross
        and _name_before(model, module) not in ("sdpa", IMPLEMENTATION)
    )


def _name_before(owner: OpenModel, module: torch.nn.Module) -> str | None:
    """The attention implementation that a module had before the first block."""
    return owner.plain.get(id(getattr(module, "config", None)), owner.plain.get(id(owner.config)))


def _left_alone(module: torch.nn.Module) -> Callable[..., Any] | None:
    """The attention that a model with an open block had, for its other passes; None to use ours."""
    if not OWNERS:
        return None
    current = PASS.get()
    if current is not None and (current.masks or not current.model.belongs(module)):
        return None
    owner = OWNERS.get(module)
    if owner is None or (
        current is None and WAITING.ahead is not None and WAITING.ahead.model is owner
    ):
        return None
    name = _name_before(owner, module)
    if name == IMPLEMENTATION:
        return None
    return _interface(module, name)


def _mask_before(owner: OpenModel, kwargs: dict[str, Any]) -> Tensor | None:
    """A mask of the form that the model had before its first block."""
    name = owner.plain.get(id(kwargs.get("config")), owner.plain.get(id(owner.config)))
    return _mask_of("sdpa" if name == IMPLEMENTATION else name, kwargs)


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
