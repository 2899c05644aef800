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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import torch
from transformers import PreTrainedModel

from holdfast.attention.blocks import LOCK, Block
from holdfast.attention.compiled import Hook, begin_traced, end_traced, forget, number_modules
from holdfast.attention.door import Door, has_door
from holdfast.attention.interface import IMPLEMENTATION
from holdfast.attention.layers import CONFIGS, OWNERS, adopted
from holdfast.attention.open_model import WAITING, OpenModel
from holdfast.attention.reaching import (
    REACHED,
    check_reachable,
    logits_of,
    plain_logits,
    probe,
    unreachable,
)
from holdfast.errors import ModelError


@dataclass
class _Switched:
    """What was changed in a model; `before` has its configurations and their implementations."""

    before: list[tuple[Any, str | None]] = field(default_factory=list)
    doors: list[torch.nn.Module] = field(default_factory=list)
    guarded: list[torch.nn.Module] = field(default_factory=list)
    opened: OpenModel | None = None


_SWITCHED: WeakKeyDictionary[PreTrainedModel, _Switched] = WeakKeyDictionary()
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
        assert opened is not None, "a model is switched for its blocks after it has a list of them"
        opened.blocks.add(block)
    try:
        yield opened
    finally:
        with LOCK:
            block.abandoned = opened.close(block)
            _leave(model, switched, opened)


def _open(model: PreTrainedModel) -> _Switched:
    check_reachable(model)
    plain = None if model in REACHED else plain_logits(model)
    switched = _Switched()
    try:
        switched.before = _implementations(model)
        opened = switched.opened = _own(model, switched)
        _switch(model, switched)
        number_modules(model, open_blocks=True)
        if plain is not None:
            probe(model, plain)
    except BaseException:
        _restore(switched)
        _forget_blocks(model, switched)
        raise
    _watch(model, switched, opened)
    return switched


def _own(model: PreTrainedModel, switched: _Switched) -> OpenModel:
    """Makes known whose the modules are, before anything is switched: passes may be under way."""
    named = list(model.named_modules())
    opened = OpenModel(
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
    return opened


def _attends_elsewhere(name: str, module: torch.nn.Module) -> bool:
    """Whether a module is cross-attention, by what it says of itself, its class or its name."""
    told = getattr(module, "is_cross_attention", None)
    if isinstance(told, bool):
        return told
    return any(_CROSS.search(text) for text in (type(module).__name__, name.rpartition(".")[2]))


def _watch(model: PreTrainedModel, switched: _Switched, opened: OpenModel) -> None:
    """Has each pass of the model, and of that inside it, tell when it begins and ends.

    Copies of the model are kept free of all this.
    """
    watched = {id(module): module for module in (model, model.base_model)}
    names = {key: list(inspect.signature(part.forward).parameters) for key, part in watched.items()}

    def begin(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if torch.compiler.is_compiling():
            return begin_traced(module, names.get(id(module), []), args, kwargs)
        ahead, WAITING.ahead = WAITING.ahead, None
        given = {**dict(zip(names.get(id(module), ()), args, strict=False)), **kwargs}
        made = ahead if ahead is not None and ahead.model is opened else None
        opened.begin(module, given, sys._getframe(2), made)
        return None

    def end(
        module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
    ) -> Any:
        if torch.compiler.is_compiling():
            return end_traced(module, output)
        opened.end(output, kwargs.get("past_key_values"))
        left()
        return None

    def left() -> None:
        with LOCK:
            _leave(model, switched, opened)

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


def _plain_copy(
    module: torch.nn.Module, switched: _Switched, memo: dict[int, Any]
) -> torch.nn.Module:
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
        if isinstance(part.__dict__.get("_attn"), Door):
            del part._attn
        _unhook(part)
    return made


def _leave(model: PreTrainedModel, switched: _Switched, opened: OpenModel) -> None:
    """Restores the model if no block is open on it; a pass under way does so at its end."""
    if not opened.blocks.opened and not opened.running:
        _restore(switched)
        _forget_blocks(model, switched)
        if _SWITCHED.get(model) is switched:
            del _SWITCHED[model]


def adopt(model: PreTrainedModel) -> bool:
    """Gives a model this package's attention for good; False, and leaves it, if that cannot be."""
    switched = _Switched()
    try:
        check_reachable(model)
        plain = logits_of(model)
        switched.before = _implementations(model)
        _switch(model, switched)
        probe(model, plain)
        number_modules(model, open_blocks=False)
        adopted(switched.before)
    except ModelError:
        _restore(switched)
        return False
    return True


def _implementations(model: PreTrainedModel) -> list[tuple[Any, str | None]]:
    """The configurations that a switch changes, each with its attention implementation."""
    if any(has_door(module) for module in model.modules()):
        return []
    found: list[Any] = [getattr(module, "config", None) for module in model.modules()]
    configs = {id(c): c for c in found if hasattr(c, "_attn_implementation_internal")}
    configs[id(model.config)] = model.config
    for name in model.config.sub_configs:
        if (config := getattr(model.config, name, None)) is not None:
            configs[id(config)] = config
    return [(config, config._attn_implementation_internal) for config in configs.values()]


def _switch(model: PreTrainedModel, switched: _Switched) -> None:
    with_doors = [module for module in model.modules() if has_door(module)]
    switched.doors = [module for module in with_doors if "_attn" not in module.__dict__]
    for module in switched.doors:
        module.__dict__["_attn"] = Door(module)
    if with_doors:
        return
    text = model.config.get_text_config()
    names = [name for name in model.config.sub_configs if getattr(model.config, name, None) is text]
    try:
        model.set_attn_implementation({names[0]: IMPLEMENTATION} if names else IMPLEMENTATION)
    except (ValueError, ImportError) as error:
        raise ModelError(unreachable(model, str(error).split("\n")[0])) from error
    if text._attn_implementation != IMPLEMENTATION:
        raise ModelError(
            unreachable(model, "its class does not use transformers' attention interface")
        )


def _restore(switched: _Switched) -> None:
    for module in switched.doors:
        module.__dict__.pop("_attn", None)
    for module in switched.guarded:
        _unhook(module)
        module.__dict__.pop("__deepcopy__", None)
    for switched_config, implementation in switched.before:
        switched_config._attn_implementation_internal = implementation
    if switched.opened is not None:
        for module in [own for own, owner in OWNERS.items() if owner is switched.opened]:
            del OWNERS[module]
        for config in [own for own, owner in CONFIGS.items() if owner is switched.opened]:
            del CONFIGS[config]


def _forget_blocks(model: PreTrainedModel, switched: _Switched) -> None:
    """What compiled passes know of the model after its last block."""
    forget(model)
    if any(implementation == IMPLEMENTATION for _, implementation in switched.before):
        number_modules(model, open_blocks=False)
