"""Switching a loaded model to this package's attention for a while, and back; and a door to GPT-J.

While a block is open on a model, its attention implementation is ours, and each pass is told as it
begins what block steers it. A pass that none steers, or that began before the first block, gets the
attention that the model had. The last one to leave restores every configuration as it was. GPT-J
has no interface to attention, so its own method is stood in for.
"""

from __future__ import annotations

import copy
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from transformers import PreTrainedModel

from holdfast.attention.blocks import LOCK, WAITING, Block, OpenModel, cached_tokens
from holdfast.attention.compiled import Hook, begin_traced, end_traced, forget, number_modules
from holdfast.attention.explicit import Scoring, attend_explicitly, mass_at
from holdfast.attention.interface import IMPLEMENTATION
from holdfast.attention.layers import CONFIGS, OWNERS, adopted, steering_of
from holdfast.attention.steering import NEVER_REACHED, PASS, Pass, Steering, steered
from holdfast.errors import ModelError, UsageError
from holdfast.methods.protocols import ShiftsAttention


@dataclass
class _Switched:
    """What was changed in a model; `before` has its configurations and their implementations."""

    before: list[tuple[object, object]] = field(default_factory=list)
    doors: list[torch.nn.Module] = field(default_factory=list)
    guarded: list[torch.nn.Module] = field(default_factory=list)
    opened: OpenModel | None = None


_SWITCHED: WeakKeyDictionary[PreTrainedModel, _Switched] = WeakKeyDictionary()
# Of models that were probed, the heads of each layer with attention.
_REACHED: WeakKeyDictionary[PreTrainedModel, dict[int, int]] = WeakKeyDictionary()
# Of logits, relative: a lost mask or sink moves them by far more than rounding.
_APART = {torch.float32: 1e-3, torch.float64: 1e-3}
_CROSS = re.compile(r"cross|encoder_?(decoder_?)?att", re.IGNORECASE)
_KEY = -1  # of our hooks in a module; PyTorch counts from 0
_HOOKS = (
    "_forward_pre_hooks",
    "_forward_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
)


@contextmanager
def open_block(model: PreTrainedModel, block: Block) -> Iterator[OpenModel]:
    """Opens a block on a model; on leaving, the block knows whether another thread is in its pass.

    Raises:
        ModelError: it cannot be reached, or not all of it can be steered; the model is as it was.
    """
    with LOCK:
        if model not in _SWITCHED:
            _SWITCHED[model] = _open(model)
        switched = _SWITCHED[model]
        opened = switched.opened
        opened.open(block)
    try:
        yield opened
    finally:
        with LOCK:
            block.abandoned = opened.close(block)
            _leave(model, switched)


def _open(model: PreTrainedModel) -> _Switched:
    _check_reachable(model)
    plain = None if model in _REACHED else _plain_logits(model)
    switched = _Switched()
    try:
        switched.before = _implementations(model)
        _own(model, switched)
        _switch(model, switched)
        number_modules(model, open_blocks=True)
        if plain is not None:
            _probe(model, plain)
    except BaseException:
        _restore(switched)
        _forget_blocks(model, switched)
        raise
    _watch(model, switched)
    return switched


def _own(model: PreTrainedModel, switched: _Switched) -> None:
    """Makes known whose the modules are, before anything is switched: passes may be under way."""
    named = list(model.named_modules())
    opened = switched.opened = OpenModel(
        type(model).__name__,
        id(model),
        plain={id(config): name for config, name in switched.before},
        modules=frozenset(id(module) for _, module in named),
        cross=frozenset(id(module) for name, module in named if _attends_elsewhere(name, module)),
        config=model.config.get_text_config(),
    )
    for config, _ in switched.before:
        CONFIGS[id(config)] = opened
    for _, module in named:
        OWNERS[module] = opened


def _attends_elsewhere(name: str, module: torch.nn.Module) -> bool:
    """Whether a module is cross-attention, by what it says of itself, its class or its name."""
    told = getattr(module, "is_cross_attention", None)
    if isinstance(told, bool):
        return told
    return any(_CROSS.search(text) for text in (type(module).__name__, name.rpartition(".")[2]))


def _watch(model: PreTrainedModel, switched: _Switched) -> None:
    """Has each pass of the model, and of that inside it, tell when it begins and ends.

    Copies of the model are kept free of all this.
    """
    opened = switched.opened
    watched = {id(module): module for module in (model, model.base_model)}
    names = {key: list(inspect.signature(part.forward).parameters) for key, part in watched.items()}

    def begin(module, args, kwargs):
        if torch.compiler.is_compiling():
            return begin_traced(module, names.get(id(module), []), args, kwargs)
        ahead, WAITING.ahead = WAITING.ahead, None
        given = {**dict(zip(names.get(id(module), ()), args, strict=False)), **kwargs}
        made = ahead if ahead is not None and ahead.model is opened else None
        opened.begin(module, given, sys._getframe(2), made)
        return None

    def end(module, args, kwargs, output):
        if torch.compiler.is_compiling():
            return end_traced(module, output)
        opened.end(output, kwargs.get("past_key_values"))
        left()
        return None

    def left() -> None:
        with LOCK:
            _leave(model, switched)

    opened.left = left

    for module in watched.values():
        _hook(module, Hook(begin), Hook(end))
        switched.guarded.append(module)
        module.__dict__["__deepcopy__"] = Hook(
            lambda memo, module=module: _plain_copy(module, switched, memo)
        )


def _hook(module: torch.nn.Module, begin: Hook, end: Hook) -> None:
    """Has each pass of a module call both; under a key that is the same in every block.

    What PyTorch's own registration gives is a new one each time, by which compiled code would be
    compiled anew.
    """
    parts = module.__dict__
    parts["_forward_pre_hooks"][_KEY] = begin
    parts["_forward_hooks"][_KEY] = end
    for name in _HOOKS[2:]:
        parts[name][_KEY] = True


def _unhook(module: torch.nn.Module) -> None:
    for name in _HOOKS:
        module.__dict__[name].pop(_KEY, None)


def _plain_copy(module: torch.nn.Module, switched: _Switched, memo: dict) -> torch.nn.Module:
    """A deep copy of a model with open blocks, as if there were none."""
    shell = copy.copy(module)
    shell.__dict__.pop("__deepcopy__", None)
    made = memo[id(module)] = copy.deepcopy(shell, memo)
    for config, implementation in switched.before:
        if id(config) in memo:
            memo[id(config)]._attn_implementation_internal = implementation
    forget(made)
    if IMPLEMENTATION in [implementation for _, implementation in switched.before]:
        number_modules(made, open_blocks=False)
    for part in made.modules():
        if isinstance(part.__dict__.get("_attn"), _Door):
            del part._attn
        _unhook(part)
    return made


def _leave(model: PreTrainedModel, switched: _Switched) -> None:
    """Restores the model if no block is open on it; a pass under way does so at its end."""
    if not switched.opened.blocks and not switched.opened.running:
        _restore(switched)
        _forget_blocks(model, switched)
        if _SWITCHED.get(model) is switched:
            del _SWITCHED[model]


def adopt(model: PreTrainedModel) -> bool:
    """Gives a model this package's attention for good; False, and leaves it, if that cannot be."""
    switched = _Switched()
    try:
        _check_reachable(model)
        plain = _logits(model)
        switched.before = _implementations(model)
        _switch(model, switched)
        _probe(model, plain)
        number_modules(model, open_blocks=False)
        adopted(switched.before)
    except ModelError:
        _restore(switched)
        return False
    return True


def check_methods(model: PreTrainedModel, methods: Sequence[ShiftsAttention]) -> None:
    """Checks that every head named is a head of the model.

    Raises:
        UsageError: names the first that is not, and what there is.
    """
    config = model.config.get_text_config()
    layers, heads = (
        getattr(config, "num_hidden_layers", None),
        getattr(config, "num_attention_heads", None),
    )
    for method in methods:
        chosen = getattr(method, "heads", None) or ()
        file, made_for = getattr(chosen, "file", ""), getattr(chosen, "made_for", None)
        source = f" (from {file!r})" if file else ""
        if (
            made_for
            and isinstance(layers, int)
            and isinstance(heads, int)
            and (made_for.layers, made_for.heads) != (layers, heads)
        ):
            raise UsageError(
                f"{method.name} has heads{source} made for {made_for.model or 'a model'} of "
                f"{made_for.layers} layers x {made_for.heads} heads, and this model has {layers} x "
                f"{heads}; profile this one."
            )
        for layer, head in sorted(chosen):
            if isinstance(layers, int) and layer >= layers:
                raise UsageError(
                    f"{method.name} names head {head} in layer {layer}{source}, and this model has "
                    f"{layers} layers, counted from 0."
                )
            count = heads[layer] if isinstance(heads, (list, tuple)) else heads
            with_attention = layers_with_attention(model)
            if with_attention is not None and layer not in with_attention:
                some = ", ".join(map(str, sorted(with_attention)))
                cure = f"take heads of layers {some}" if some else "give no heads, which steers all"
                raise UsageError(
                    f"{method.name} names head {head} in layer {layer}{source}, and no attention "
                    "of "
                    f"{type(model).__name__} can be steered there; {cure}."
                )
            if isinstance(count, int) and head >= count:
                raise UsageError(
                    f"{method.name} names head {head} in layer {layer}{source}, and this model has "
                    f"{count} heads, counted from 0."
                )


def layers_with_attention(model: PreTrainedModel) -> frozenset[int] | None:
    """The layers whose heads can be steered one by one; None before the model was first steered.

    Hybrid models have layers without attention, and some share one that does not tell its layer.
    """
    if (layers := _REACHED.get(model)) is None:
        return None
    return frozenset(layer for layer in layers if layer >= 0)


def _check_reachable(model: PreTrainedModel) -> None:
    """Refuses by name what would otherwise fail far from its cause."""
    name = type(model).__name__
    if getattr(model.config, "is_encoder_decoder", False):
        raise ModelError(
            f"{name} has an encoder, whose keys are not those of its prompt's span; steer a "
            "decoder-only model."
        )
    devices = {parameter.device for parameter in model.parameters()}
    if torch.device("meta") in devices:
        raise ModelError(
            f"{name} has weights that are not on a device (offloaded by accelerate, or on 'meta'); "
            "load it whole on one device."
        )
    if len(devices) > 1:
        places = ", ".join(sorted(map(str, devices)))
        raise ModelError(
            f"The weights of {name} lie on {places}, and steering needs them on one device."
        )


def _plain_logits(model: PreTrainedModel) -> Tensor:
    """The logits of two tokens before the switch."""
    try:
        return _logits(model)
    except torch.OutOfMemoryError:
        raise
    except (ValueError, TypeError, LookupError, RuntimeError, AttributeError) as error:
        if isinstance(error, AttributeError) and "logits" in str(error):
            raise ModelError(
                f"{type(model).__name__} gives no logits (a base model without a head?); load it "
                "with "
                "AutoModelForCausalLM."
            ) from error
        raise ModelError(_unreachable(model, " ".join(str(error).split())[:200])) from error


def _implementations(model: PreTrainedModel) -> list[tuple[object, object]]:
    """The configurations that a switch changes, each with its attention implementation."""
    if any(_has_door(module) for module in model.modules()):
        return []
    found = [getattr(module, "config", None) for module in model.modules()]
    configs = {id(c): c for c in found if hasattr(c, "_attn_implementation_internal")}
    configs[id(model.config)] = model.config
    for name in model.config.sub_configs:
        if (config := getattr(model.config, name, None)) is not None:
            configs[id(config)] = config
    return [(config, config._attn_implementation_internal) for config in configs.values()]


def _switch(model: PreTrainedModel, switched: _Switched) -> None:
    with_doors = [module for module in model.modules() if _has_door(module)]
    switched.doors = [module for module in with_doors if "_attn" not in module.__dict__]
    for module in switched.doors:
        module.__dict__["_attn"] = _Door(module)
    if with_doors:
        return
    text = model.config.get_text_config()
    names = [name for name in model.config.sub_configs if getattr(model.config, name, None) is text]
    try:
        model.set_attn_implementation({names[0]: IMPLEMENTATION} if names else IMPLEMENTATION)
    except (ValueError, ImportError) as error:
        raise ModelError(_unreachable(model, str(error).split("\n")[0])) from error
    if text._attn_implementation != IMPLEMENTATION:
        raise ModelError(
            _unreachable(model, "its class does not use transformers' attention interface")
        )


def _restore(switched: _Switched) -> None:
    for module in switched.doors:
        module.__dict__.pop("_attn", None)
    for module in switched.guarded:
        _unhook(module)
        module.__dict__.pop("__deepcopy__", None)
    for config, implementation in switched.before:
        config._attn_implementation_internal = implementation
    if switched.opened is not None:
        for owned in (OWNERS, CONFIGS):
            for key in [key for key, owner in owned.items() if owner is switched.opened]:
                del owned[key]


def _forget_blocks(model: PreTrainedModel, switched: _Switched) -> None:
    """What compiled passes know of the model after its last block."""
    forget(model)
    if any(implementation == IMPLEMENTATION for _, implementation in switched.before):
        number_modules(model, open_blocks=False)


def _probe(model: PreTrainedModel, plain: Tensor) -> None:
    """Forwards two tokens, once per model: does its attention arrive here, and do logits stay?"""
    try:
        state = Steering(torch.tensor([[True, False]], device=model.device), [()], trace=True)
        with steered(state):
            ours, cache = _forward(model, state, use_cache=True)
    except (ModelError, ValueError, TypeError, KeyError, RuntimeError, AttributeError) as error:
        why = " ".join(str(error).split())[:200] if state.calls else NEVER_REACHED
        raise ModelError(_unreachable(model, why)) from error
    apart = float((ours - plain).abs().max() / plain.abs().max().clamp(min=1e-6))
    if not model.training and apart > _APART.get(model.dtype, 0.2):
        why = f"it computes something else than softmax attention: logits move by {apart:.0%}"
        raise ModelError(_unreachable(model, why))
    if hasattr(cache, "get_seq_length") and (count := cached_tokens(cache)) != 2:
        why = f"its cache counts {count} tokens after 2, so no place in it is certain"
        raise ModelError(_unreachable(model, why))
    _REACHED[model] = state.layers


def _logits(model: PreTrainedModel) -> Tensor:
    return _forward(model, None)[0]


@torch.inference_mode()
def _forward(
    model: PreTrainedModel, steering: Steering | None, use_cache: bool = False
) -> tuple[Tensor, object]:
    """The logits of two tokens, and the cache."""
    token = PASS.set(Pass(steering))  # not that of a block around this one
    try:
        output = model(input_ids=torch.tensor([[0, 1]], device=model.device), use_cache=use_cache)
        return output.logits.float(), getattr(output, "past_key_values", None)
    finally:
        PASS.reset(token)


def _unreachable(model: PreTrainedModel, reason: str) -> str:
    why = reason.rstrip(".").removesuffix("; use prompt methods such as repetition")
    return (
        f"The attention of {type(model).__name__} cannot be steered ({why}); use a prompt method "
        "such "
        "as repetition."
    )


def _has_door(module: torch.nn.Module) -> bool:
    return (
        hasattr(type(module), "_attn")
        and hasattr(module, "scale_attn")
        and getattr(module, "layer_idx", None) is not None
    )


class _Door:
    """Stands in for `_attn` of a module like GPT-J's.

    It computes softmax(query @ key / scale_attn + mask) @ value there. Unsteered passes keep the
    module's own.
    """

    def __init__(self, module: torch.nn.Module):
        self.module = module

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None
    ):
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
        if steering.trace and steering.last is not None and query.shape[2] > 1:
            query, key, _, mask = given
            steering.note(mass_at(steering, layer, query, key, mask, scoring, steering.last))
        return output, None
