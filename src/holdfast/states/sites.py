"""Where a model computes keys, values and hidden states.

Modules are found by their interface: the layers are a list of as many modules as the configuration
has layers, and a layer's attention has `layer_idx`, and `k_proj` or `is_causal`. Their outputs are
inspected in passes of a few tokens, since the axes of tokens and heads may come in either order.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from holdfast.errors import Unsteerable, type_in_words

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# relative difference of keys at other positions: rotation moves them by far more
_MAX_DIFFERENCE = 0.01
_SHIFT = 3  # positions
# by preference: a norm is assumed to precede the rotation, unless it is found to follow it
_NAMES = {
    "keys": ("k_norm", "k_layernorm", "k_proj"),
    "values": ("v_norm", "v_proj"),
}


class Site(Enum):
    """A part of a layer that is edited or read; the value is its name in messages."""

    KEYS = "keys"
    VALUES = "values"
    HIDDEN = "hidden states"


class Axes(Enum):
    """The layout of a module's output."""

    FLAT = "row, token, head * size"
    TOKENS_FIRST = "row, token, head, size"
    HEADS_FIRST = "row, head, token, size"


@dataclass(frozen=True)
class HookPoint:
    """A module that outputs a part of a layer, with `axes` and `head_size` if it has heads."""

    module: torch.nn.Module
    axes: Axes = Axes.FLAT
    head_size: int = 0

    def split_heads(self, states: Tensor) -> Tensor:
        """The states as [row, token, head, size]."""
        if self.axes is Axes.FLAT:
            return states.unflatten(-1, (-1, self.head_size))
        return states if self.axes is Axes.TOKENS_FIRST else states.transpose(1, 2)

    def merge_heads(self, states: Tensor) -> Tensor:
        """Undoes `split_heads`."""
        if self.axes is Axes.FLAT:
            return states.flatten(-2)
        return states if self.axes is Axes.TOKENS_FIRST else states.transpose(1, 2).contiguous()


@dataclass(frozen=True)
class Sites:
    """The hook points of a model that gave an output when they were inspected."""

    points: Mapping[Site, Mapping[int, HookPoint]]  # by site and layer
    key_heads: int  # key-value heads of each layer with keys; 0 if layers differ, or none has keys
    head_size: int  # of a key; 0 in the same cases
    hidden_size: int  # of hidden states


_SITES: WeakKeyDictionary[torch.nn.Module, Sites] = WeakKeyDictionary()


def sites_of(model: PreTrainedModel) -> Sites:
    """The hook points of a model; found once, in one pass, or up to three if keys have a norm."""
    if model not in _SITES:
        _SITES[model] = _inspect(model)
    return _SITES[model]


def attention_modules(model: PreTrainedModel) -> dict[int, torch.nn.Module]:
    """The attention module of each layer; {} if no module has the interface of one."""
    modules: dict[int, torch.nn.Module] = {}
    for module in _text_model(model).modules():
        layer = getattr(module, "layer_idx", None)
        attends = hasattr(module, "k_proj") or hasattr(module, "is_causal")
        if isinstance(layer, int) and attends and not getattr(module, "is_cross_attention", False):
            modules.setdefault(layer, module)
    return modules


def layer_modules(model: PreTrainedModel) -> list[torch.nn.Module]:
    """The layers in order; [] if no list has as many modules as the configuration has layers."""
    count = getattr(model.config.get_text_config(), "num_hidden_layers", None)
    for module in _text_model(model).modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) == count:
            return list(module)
    return []


def part_of(attention: torch.nn.Module, part: str) -> torch.nn.Module | None:
    """The module that outputs keys or values; None if they share one, as in a fused projection."""
    modules = (getattr(attention, name, None) for name in _NAMES[part])
    return next((module for module in modules if isinstance(module, torch.nn.Module)), None)


def _text_model(model: PreTrainedModel) -> torch.nn.Module:
    """The decoder, without any image encoders that the model has beside it."""
    decoder = model.get_decoder() if hasattr(model, "get_decoder") else None
    return decoder if isinstance(decoder, torch.nn.Module) else model


def _inspect(model: PreTrainedModel) -> Sites:
    config = model.config.get_text_config()
    attention = attention_modules(model)
    modules: dict[Site, dict[int, torch.nn.Module]] = {
        Site.HIDDEN: dict(enumerate(layer_modules(model))),
    }
    for site in (Site.KEYS, Site.VALUES):
        parts = {layer: part_of(module, site.value) for layer, module in attention.items()}
        modules[site] = {layer: part for layer, part in parts.items() if part is not None}
    head_counts = (
        getattr(config, "num_attention_heads", 0),
        getattr(config, "num_key_value_heads", 0),
    )
    # so that the axis of the tokens is known by its length
    tokens = next(count for count in (7, 11, 13) if count not in head_counts)
    seen = _outputs(model, modules, tokens)
    if unrotated := _unrotated_keys(model, modules, seen, attention, tokens):
        modules[Site.KEYS] |= unrotated
        seen = _outputs(model, modules, tokens)
    points: dict[Site, dict[int, HookPoint]] = {site: {} for site in Site}
    for (site, layer), output in seen.items():
        module = modules[site][layer]
        point = _point_of(module, attention.get(layer), config, site, output, tokens)
        if point is not None:
            points[site][layer] = point
    shapes = {
        tuple(points[Site.KEYS][layer].split_heads(seen[Site.KEYS, layer]).shape[2:])
        for layer in points[Site.KEYS]
    }
    key_heads, head_size = shapes.pop() if len(shapes) == 1 else (0, 0)
    return Sites(points, key_heads, head_size, int(getattr(config, "hidden_size", 0)))


def _point_of(
    module: torch.nn.Module,
    attention: torch.nn.Module | None,
    config: Any,
    site: Site,
    output: Tensor,
    tokens: int,
) -> HookPoint | None:
    """The hook point, from its module's output for this many tokens; None for an unknown layout."""
    if output.shape[0] != 1:
        return None
    if site is Site.HIDDEN:
        is_known = output.ndim == 3 and output.shape[1] == tokens
        return HookPoint(module) if is_known else None
    if output.ndim == 4 and output.shape[1] == tokens:
        return HookPoint(module, Axes.TOKENS_FIRST, output.shape[3])
    if output.ndim == 4 and output.shape[2] == tokens:
        return HookPoint(module, Axes.HEADS_FIRST, output.shape[3])
    size = getattr(attention, "head_dim", None) or getattr(config, "head_dim", None)
    size = size or config.hidden_size // config.num_attention_heads
    is_flat = output.ndim == 3 and output.shape[1] == tokens and output.shape[2] % size == 0
    return HookPoint(module, Axes.FLAT, size) if is_flat else None


def _unrotated_keys(
    model: PreTrainedModel,
    modules: Mapping[Site, Mapping[int, torch.nn.Module]],
    seen: Mapping[tuple[Site, int], Tensor],
    attention: Mapping[int, torch.nn.Module],
    tokens: int,
) -> dict[int, torch.nn.Module]:
    """By layer, the projection of keys that are rotated before their norm: the norm's output,
    which was `seen`, is another one if the tokens have other positions.
    """
    projections: dict[int, torch.nn.Module] = {}
    for layer, module in modules[Site.KEYS].items():
        projection = getattr(attention[layer], "k_proj", None)
        has_norm = module is not projection and (Site.KEYS, layer) in seen
        if has_norm and isinstance(projection, torch.nn.Module):
            projections[layer] = projection
    if not projections:
        return {}
    shifted = _outputs(model, modules, tokens, _SHIFT)

    def is_rotated(layer: int) -> bool:
        before = seen[Site.KEYS, layer]
        after = shifted[Site.KEYS, layer]
        return bool((before - after).abs().max() > _MAX_DIFFERENCE * before.abs().max())

    return {layer: module for layer, module in projections.items() if is_rotated(layer)}


@torch.inference_mode()
def _outputs(
    model: PreTrainedModel,
    modules: Mapping[Site, Mapping[int, torch.nn.Module]],
    tokens: int,
    shift: int = 0,
) -> dict[tuple[Site, int], Tensor]:
    """The output, float32, of each module that a pass of a few tokens calls."""
    outputs: dict[tuple[Site, int], Tensor] = {}

    def keep(site: Site, layer: int) -> Callable[[Tensor], Tensor]:
        def note(output: Tensor) -> Tensor:
            outputs[site, layer] = output.float()
            return output

        return note

    hooks = {
        (module, site): keep(site, layer)
        for site, layers in modules.items()
        for layer, module in layers.items()
    }
    ids = torch.arange(tokens, device=model.device)[None]
    given: dict[str, Any] = {"input_ids": ids, "use_cache": False}
    if "position_ids" in inspect.signature(model.forward).parameters:
        given["position_ids"] = ids + shift
    training = model.training
    model.eval()
    try:
        with hooked([(module, hook) for (module, _), hook in hooks.items()]):
            model(**given)
    finally:
        model.train(training)
    return outputs


@contextmanager
def hooked(hooks: list[tuple[torch.nn.Module, Callable[[Tensor], Tensor]]]) -> Iterator[None]:
    """Passes the outputs of modules through functions while inside."""
    with ExitStack() as stack:
        for module, function in hooks:
            handle = module.register_forward_hook(
                lambda _, __, output, function=function: through(function, output)
            )
            stack.enter_context(handle)
        yield


def through(function: Callable[[Tensor], Tensor], output: Any) -> Any:
    """A module's output, with its tensor or the first of several passed through a function."""
    if isinstance(output, Tensor):
        return function(output)
    if isinstance(output, (tuple, list)) and output and isinstance(output[0], Tensor):
        return (function(output[0]), *output[1:])
    raise Unsteerable(
        f"A layer gives {type_in_words(output)} and no tensor, so it cannot be edited; use a"
        " method of another kind."
    )
