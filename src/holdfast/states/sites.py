"""Where a model computes keys, values and hidden states.

Modules are found by their interface: the layers are a list of as many modules as the configuration
has layers, and a layer's attention has `layer_idx`, and `k_proj` or `is_causal`. In Llama, keys are
the output of `k_proj`, values that of `v_proj`, and hidden states that of a layer; in Qwen3, which
normalises keys, they are the output of `k_norm`. The outputs are inspected in passes of a few
tokens, since the axes of tokens and heads may come in either order.
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

# the relative difference of keys between positions that rounding explains; rotation moves them more
_MAX_DIFFERENCE = 0.01
_SHIFT = 3  # how far the second of two passes whose keys are compared is moved, in positions


class Site(Enum):
    """A part of a layer that is edited or read; the value is its name in messages."""

    KEYS = "keys"
    VALUES = "values"
    HIDDEN = "hidden states"

    @property
    def has_heads(self) -> bool:
        """Whether its states are divided among heads."""
        return self is not Site.HIDDEN


_Modules = Mapping[Site, Mapping[int, torch.nn.Module]]  # by site and layer
_Outputs = Mapping[tuple[Site, int], Tensor]  # of these modules, float32

# modules by preference: a norm is assumed to precede the rotation, unless it is found to follow it
_MODULE_NAMES = {
    Site.KEYS: ("k_norm", "k_layernorm", "k_proj"),
    Site.VALUES: ("v_norm", "v_proj"),
}


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
        """Returns the module's output as [row, token, head, size]."""
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
    """The hook points of a model: the modules that gave an output when the model was inspected."""

    points: Mapping[Site, Mapping[int, HookPoint]]  # by site and layer
    key_heads: int  # key-value heads per layer; 0 if layers differ, or no layer has keys
    head_size: int  # of a key; 0 in the same cases
    hidden_size: int  # of hidden states


_SITES: WeakKeyDictionary[torch.nn.Module, Sites] = WeakKeyDictionary()


def sites_of(model: PreTrainedModel) -> Sites:
    """Returns the hook points of a model, which is inspected only once.

    That takes one short pass, or up to three if keys have a norm.
    """
    if model not in _SITES:
        _SITES[model] = _inspect(model)
    return _SITES[model]


def attention_modules(model: PreTrainedModel) -> dict[int, torch.nn.Module]:
    """Returns the attention module of each layer; {} if no module has the interface of one."""
    modules: dict[int, torch.nn.Module] = {}
    for module in _text_model(model).modules():
        layer = getattr(module, "layer_idx", None)
        attends = hasattr(module, "k_proj") or hasattr(module, "is_causal")
        if isinstance(layer, int) and attends and not getattr(module, "is_cross_attention", False):
            modules.setdefault(layer, module)
    return modules


def layer_modules(model: PreTrainedModel) -> list[torch.nn.Module]:
    """Returns the layers in order; [] if no module list is as long as the configuration says."""
    count = getattr(model.config.get_text_config(), "num_hidden_layers", None)
    for module in _text_model(model).modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) == count:
            return list(module)
    return []


def part_of(attention: torch.nn.Module, site: Site) -> torch.nn.Module | None:
    """Returns the module that outputs keys or values alone; None if one module outputs both."""
    modules = (getattr(attention, name, None) for name in _MODULE_NAMES[site])
    return next((module for module in modules if isinstance(module, torch.nn.Module)), None)


def _text_model(model: PreTrainedModel) -> torch.nn.Module:
    """Returns the decoder of text, without the image encoders that some models have beside it."""
    decoder = model.get_decoder() if hasattr(model, "get_decoder") else None
    return decoder if isinstance(decoder, torch.nn.Module) else model


def _inspect(model: PreTrainedModel) -> Sites:
    """Finds the hook points of a model, by running it on a few tokens."""
    config = model.config.get_text_config()
    attention = attention_modules(model)
    modules = _candidates(model, attention)
    head_counts = (
        getattr(config, "num_attention_heads", 0),
        getattr(config, "num_key_value_heads", 0),
    )
    # a number of tokens that is no number of heads, so that their axis is known by its length
    num_tokens = next(count for count in (7, 11, 13) if count not in head_counts)
    outputs = _run_modules(model, modules, num_tokens)
    if unrotated := _unrotated_keys(model, modules, outputs, attention, num_tokens):
        modules[Site.KEYS] |= unrotated
        outputs = _run_modules(model, modules, num_tokens)
    points: dict[Site, dict[int, HookPoint]] = {site: {} for site in Site}
    for (site, layer), output in outputs.items():
        module = modules[site][layer]
        point = _point_of(module, attention.get(layer), config, site, output, num_tokens)
        if point is not None:
            points[site][layer] = point
    shapes = {
        tuple(points[Site.KEYS][layer].split_heads(outputs[Site.KEYS, layer]).shape[2:])
        for layer in points[Site.KEYS]
    }
    key_heads, head_size = shapes.pop() if len(shapes) == 1 else (0, 0)
    return Sites(points, key_heads, head_size, int(getattr(config, "hidden_size", 0)))


def _candidates(
    model: PreTrainedModel, attention: Mapping[int, torch.nn.Module]
) -> dict[Site, dict[int, torch.nn.Module]]:
    """Returns, by site and layer, the modules that may be hook points."""
    modules = {Site.HIDDEN: dict(enumerate(layer_modules(model)))}
    for site in (Site.KEYS, Site.VALUES):
        parts = {layer: part_of(module, site) for layer, module in attention.items()}
        modules[site] = {layer: part for layer, part in parts.items() if part is not None}
    return modules


def _point_of(
    module: torch.nn.Module,
    attention: torch.nn.Module | None,
    config: Any,
    site: Site,
    output: Tensor,
    num_tokens: int,
) -> HookPoint | None:
    """Returns the hook point of a module, given its output for this many tokens.

    None if the layout of the output is not known.
    """
    if output.shape[0] != 1:
        return None
    if site is Site.HIDDEN:
        is_known = output.ndim == 3 and output.shape[1] == num_tokens
        return HookPoint(module) if is_known else None
    if output.ndim == 4 and output.shape[1] == num_tokens:
        return HookPoint(module, Axes.TOKENS_FIRST, output.shape[3])
    if output.ndim == 4 and output.shape[2] == num_tokens:
        return HookPoint(module, Axes.HEADS_FIRST, output.shape[3])
    size = getattr(attention, "head_dim", None) or getattr(config, "head_dim", None)
    size = size or config.hidden_size // config.num_attention_heads
    is_flat = output.ndim == 3 and output.shape[1] == num_tokens and output.shape[2] % size == 0
    return HookPoint(module, Axes.FLAT, size) if is_flat else None


def _unrotated_keys(
    model: PreTrainedModel,
    modules: _Modules,
    outputs: _Outputs,
    attention: Mapping[int, torch.nn.Module],
    num_tokens: int,
) -> dict[int, torch.nn.Module]:
    """Returns, by layer, the key projections of a model that rotates keys before their norm.

    There, the output of the norm depends on the positions of the tokens, so `outputs` is compared
    with that of a pass at other positions.
    """
    projections: dict[int, torch.nn.Module] = {}
    for layer, module in modules[Site.KEYS].items():
        projection = getattr(attention[layer], "k_proj", None)
        has_norm = module is not projection and (Site.KEYS, layer) in outputs
        if has_norm and isinstance(projection, torch.nn.Module):
            projections[layer] = projection
    if not projections:
        return {}
    shifted = _run_modules(model, modules, num_tokens, _SHIFT)

    def is_rotated(layer: int) -> bool:
        before = outputs[Site.KEYS, layer]
        after = shifted[Site.KEYS, layer]
        return bool((before - after).abs().max() > _MAX_DIFFERENCE * before.abs().max())

    return {layer: module for layer, module in projections.items() if is_rotated(layer)}


@torch.inference_mode()
def _run_modules(
    model: PreTrainedModel, modules: _Modules, num_tokens: int, shift: int = 0
) -> _Outputs:
    """Runs a pass of a few tokens, and returns the output of each module that it calls.

    Args:
        shift: added to the positions of the tokens.
    """
    outputs: dict[tuple[Site, int], Tensor] = {}

    def keep(site: Site, layer: int) -> Callable[[Tensor], Tensor]:
        def note(output: Tensor) -> Tensor:
            outputs[site, layer] = output.float()
            return output

        return note

    hooks: dict[tuple[torch.nn.Module, Site], Callable[[Tensor], Tensor]] = {}
    for site, layers in modules.items():
        for layer, module in layers.items():
            hooks[module, site] = keep(site, layer)  # one hook for a module that layers share
    ids = torch.arange(num_tokens, device=model.device)[None]
    arguments: dict[str, Any] = {"input_ids": ids, "use_cache": False}
    if "position_ids" in inspect.signature(model.forward).parameters:
        arguments["position_ids"] = ids + shift
    training = model.training
    model.eval()
    try:
        with _hook_outputs([(module, hook) for (module, _), hook in hooks.items()]):
            model(**arguments)
    finally:
        model.train(training)
    return outputs


@contextmanager
def _hook_outputs(
    hooks: list[tuple[torch.nn.Module, Callable[[Tensor], Tensor]]],
) -> Iterator[None]:
    """Passes the output of each module through its function, inside the block."""
    with ExitStack() as stack:
        for module, function in hooks:
            handle = module.register_forward_hook(
                lambda _, __, output, function=function: apply_to_output(function, output)
            )
            stack.enter_context(handle)
        yield


def apply_to_output(function: Callable[[Tensor], Tensor], output: Any) -> Any:
    """Applies a function to a module's output, or to the first tensor of an output of several.

    Raises:
        Unsteerable: the output is not a tensor, nor a sequence that begins with one.
    """
    if isinstance(output, Tensor):
        return function(output)
    if isinstance(output, (tuple, list)) and output and isinstance(output[0], Tensor):
        return (function(output[0]), *output[1:])
    raise Unsteerable(
        f"A layer gives {type_in_words(output)} and no tensor, so it cannot be edited; use a"
        " method of another kind."
    )
