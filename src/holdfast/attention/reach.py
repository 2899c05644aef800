"""Switching a loaded model to this package's attention for a while, and back; and the door to GPT-J, which has no interface.

While any thread steers a model, its attention implementation is ours; what is steered is known by the calling thread alone, so others
meanwhile get plain SDPA. The last one to leave restores every configuration as it was.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import Tensor
from transformers import PreTrainedModel

from holdfast.attention.interface import IMPLEMENTATION
from holdfast.attention.literal import Scoring, attend_literally
from holdfast.attention.steering import STEERING, Steering, steered
from holdfast.errors import ModelError, UsageError
from holdfast.methods.protocols import ShiftsAttention


@dataclass
class _Switched:
    """A model in use, and what it was."""

    users: int = 0
    passes: Counter = field(default_factory=Counter)  # by thread, that run now: with masks of our form, so the model stays ours meanwhile
    before: list[tuple[object, object]] = field(default_factory=list)  # configurations, and their implementations
    doors: list[torch.nn.Module] = field(default_factory=list)
    hooks: list = field(default_factory=list)


_LOCK = threading.RLock()
_SWITCHED: WeakKeyDictionary[PreTrainedModel, _Switched] = WeakKeyDictionary()
_REACHED: WeakSet[PreTrainedModel] = WeakSet()  # probed
_APART = {torch.float32: 1e-3, torch.float64: 1e-3}  # of logits, relative: a lost mask or sink moves them by far more than rounding


@contextmanager
def reached(model: PreTrainedModel) -> Iterator[None]:
    """Has the model's attention go through `holdfast_attention` inside the block; may be nested and entered by several threads.

    Raises:
        ModelError: it cannot be reached, or not all that it does can be steered; the model is as it was.
    """
    with _LOCK:
        if model not in _SWITCHED:
            plain = None if model in _REACHED else _logits(model)
            switched = _Switched()
            try:
                _switch(model, switched)
                if plain is not None:
                    _probe(model, plain)
            except BaseException:
                _restore(switched)
                raise
            _SWITCHED[model] = switched
            _count_passes(model, switched)
        switched = _SWITCHED[model]
        switched.users += 1
    try:
        yield
    finally:
        with _LOCK:
            switched.users -= 1
            _leave(model, switched)


def _leave(model: PreTrainedModel, switched: _Switched) -> None:
    """Restores the model if nobody steers it and no pass of another thread is under way; that pass does so at its end."""
    if not switched.users and not switched.passes.total():
        _restore(switched)
        _SWITCHED.pop(model, None)


def _count_passes(model: PreTrainedModel, switched: _Switched) -> None:
    def begin(*_) -> None:
        with _LOCK:
            switched.passes[threading.get_ident()] += 1

    def end(*_) -> None:
        with _LOCK:
            if switched.passes[threading.get_ident()]:  # else it began before the switch
                switched.passes[threading.get_ident()] -= 1
            _leave(model, switched)

    inner = model.base_model
    switched.hooks = [inner.register_forward_pre_hook(begin), inner.register_forward_hook(end, always_call=True)]


def adopt(model: PreTrainedModel) -> bool:
    """Gives a model this package's attention for good; False where that cannot be done, and the model is as it was."""
    switched = _Switched()
    try:
        plain = _logits(model)
        _switch(model, switched)
        _probe(model, plain)
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
    layers, heads = getattr(config, "num_hidden_layers", None), getattr(config, "num_attention_heads", None)
    for method in methods:
        chosen = getattr(method, "heads", None) or ()
        file, made_for = getattr(chosen, "file", ""), getattr(chosen, "made_for", None)
        source = f" (from {file!r})" if file else ""
        if made_for and isinstance(layers, int) and isinstance(heads, int) and (made_for.layers, made_for.heads) != (layers, heads):
            raise UsageError(
                f"{method.name} has heads{source} made for {made_for.model or 'a model'} of {made_for.layers} layers x {made_for.heads} heads, and "
                f"this model has {layers} x {heads}; profile this one."
            )
        for layer, head in sorted(chosen):
            if isinstance(layers, int) and layer >= layers:
                raise UsageError(f"{method.name} names head {head} in layer {layer}{source}, and this model has {layers} layers, counted from 0.")
            count = heads[layer] if isinstance(heads, (list, tuple)) else heads
            if isinstance(count, int) and head >= count:
                raise UsageError(f"{method.name} names head {head} in layer {layer}{source}, and this model has {count} heads, counted from 0.")


def _switch(model: PreTrainedModel, switched: _Switched) -> None:
    if getattr(model.config, "is_encoder_decoder", False):
        raise ModelError(f"{type(model).__name__} has an encoder, whose keys are not those of its prompt's span; steer a decoder-only model.")
    with_doors = [module for module in model.modules() if _has_door(module)]
    switched.doors = [module for module in with_doors if "_attn" not in module.__dict__]
    for module in switched.doors:
        module.__dict__["_attn"] = _Door(module)
    if with_doors:
        return
    configs = {id(c): c for c in (getattr(m, "config", None) for m in model.modules()) if hasattr(c, "_attn_implementation_internal")}
    configs[id(model.config)] = model.config
    for name in model.config.sub_configs:
        if (config := getattr(model.config, name, None)) is not None:
            configs[id(config)] = config
    switched.before = [(config, config._attn_implementation_internal) for config in configs.values()]
    text = model.config.get_text_config()
    names = [name for name in model.config.sub_configs if getattr(model.config, name, None) is text]
    try:
        model.set_attn_implementation({names[0]: IMPLEMENTATION} if names else IMPLEMENTATION)
    except (ValueError, ImportError) as error:
        raise ModelError(_unreachable(model, str(error).split("\n")[0])) from error
    if text._attn_implementation != IMPLEMENTATION:
        raise ModelError(_unreachable(model, "its class does not use transformers' attention interface"))


def _restore(switched: _Switched) -> None:
    for module in switched.doors:
        module.__dict__.pop("_attn", None)
    for hook in switched.hooks:
        hook.remove()
    for config, implementation in switched.before:
        config._attn_implementation_internal = implementation


def _probe(model: PreTrainedModel, plain: Tensor) -> None:
    """Forwards two tokens, once per model: does its attention arrive here, and do logits stay as they were before the switch?"""
    try:
        state = Steering(torch.tensor([[True, False]], device=model.device), [()], trace=True)
        with steered(state):
            ours = _logits(model, state)
    except (ModelError, ValueError, TypeError, KeyError, RuntimeError, AttributeError) as error:
        raise ModelError(_unreachable(model, " ".join(str(error).split())[:200])) from error
    apart = float((ours - plain).abs().max() / plain.abs().max().clamp(min=1e-6))
    if not model.training and apart > _APART.get(model.dtype, 0.2):
        raise ModelError(_unreachable(model, f"it computes something else than softmax attention: logits move by {apart:.0%}"))
    _REACHED.add(model)


@torch.inference_mode()
def _logits(model: PreTrainedModel, steering: Steering | None = None) -> Tensor:
    token = STEERING.set(steering)  # not that of a block around this one
    try:
        return model(input_ids=torch.tensor([[0, 1]], device=model.device), use_cache=False).logits.float()
    finally:
        STEERING.reset(token)


def _unreachable(model: PreTrainedModel, reason: str) -> str:
    why = reason.rstrip(".").removesuffix("; use prompt methods such as repetition")
    return f"The attention of {type(model).__name__} cannot be steered ({why}); use a prompt method such as repetition."


def _has_door(module: torch.nn.Module) -> bool:
    return hasattr(type(module), "_attn") and hasattr(module, "scale_attn") and getattr(module, "layer_idx", None) is not None


class _Door:
    """Stands in for `_attn` of a module like GPT-J's, which computes softmax(query @ key / scale_attn + mask) @ value there.

    Unsteered passes keep the module's own.
    """

    def __init__(self, module: torch.nn.Module):
        self.module = module

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None):
        steering, module = STEERING.get(), self.module
        if steering is not None:
            steering.enter(module.layer_idx)
        if steering is None or not (steering.trace or steering.touches(module.layer_idx)):
            return type(module)._attn(module, query, key, value, attention_mask)
        if module.training and module.attn_dropout.p:
            raise ModelError(f"Attention with dropout {module.attn_dropout.p} cannot be steered; call model.eval() first.")
        scoring = Scoring(1 / float(module.scale_attn), causal=attention_mask is None and query.shape[2] > 1)
        return attend_literally(steering, module.layer_idx, query.float(), key.float(), value, attention_mask, scoring), None
