"""Edits or collects the states of a forward pass, by hooks that are registered only during it.

Other threads may run passes of the same model at the same time. So a hook acts only if a context
variable, which each thread has for itself, names the edits or the states that it was made for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from holdfast.errors import Unsteerable
from holdfast.methods.compiled import CompiledMethods
from holdfast.methods.protocols import EditsStates
from holdfast.states.edits import EditGroup
from holdfast.states.sites import HookPoint, Site, apply_to_output, sites_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_Edits = Sequence[EditGroup]  # the edits of one pass; passes are told apart by the list's identity
_States = dict[Site, dict[int, Tensor]]  # by site and layer: [row, token, ...]
_CURRENT_EDITS: ContextVar[_Edits | None] = ContextVar("holdfast_edits", default=None)
_CURRENT_STATES: ContextVar[_States | None] = ContextVar("holdfast_watched", default=None)


@contextmanager
def edit_states(model: PreTrainedModel, edits: Sequence[EditGroup]) -> Iterator[None]:
    """Edits the pass that runs inside the block, in this thread only.

    Raises:
        Unsteerable: a method touches states that this model does not output.
    """
    if not edits:
        yield
        return
    current = list(edits)
    points = sites_of(model).points
    touched = _touched(edits)
    for site, layer in touched:
        if layer not in points[site]:
            raise Unsteerable(_refuse_layer(site, layer, points[site]))
    with ExitStack() as stack:
        for site, layer in touched:
            point = points[site][layer]
            hook = _editing_hook(current, site, layer, point)
            stack.enter_context(point.module.register_forward_hook(hook))
        stack.callback(_CURRENT_EDITS.reset, _CURRENT_EDITS.set(current))
        yield


def _refuse_layer(site: Site, layer: int, points: Mapping[int, HookPoint]) -> str:
    """Words the refusal of a layer without the states that a method edits."""
    sentence = f"Layer {layer} of this model has no {site.value} that can be edited"
    if not points:
        return f"{sentence}, and no other layer has; use a method of another kind."
    return f"{sentence}; use a method for the layers {', '.join(map(str, sorted(points)))}."


@contextmanager
def watch_states(model: PreTrainedModel, sites: Sequence[Site]) -> Iterator[_States]:
    """Collects the states of the pass that runs inside the block, in this thread only.

    Yields a dictionary that the pass fills: by site and layer, the states [row, token, ...].
    """
    points = sites_of(model).points
    states: _States = {site: {} for site in sites}
    with ExitStack() as stack:
        for site in sites:
            for layer, point in points[site].items():
                hook = _watching_hook(states, site, layer, point)
                stack.enter_context(point.module.register_forward_hook(hook))
        stack.callback(_CURRENT_STATES.reset, _CURRENT_STATES.set(states))
        yield states


def _touched(edits: _Edits) -> list[tuple[Site, int]]:
    """Returns the sites and layers that any method touches, each once."""
    touched: dict[tuple[Site, int], None] = {}
    for group in edits:
        for site in Site:
            for method in _methods_at(site, group.pass_methods):
                touched |= dict.fromkeys((site, layer) for layer in method.touched_layers)
    return list(touched)


def _methods_at(site: Site, methods: CompiledMethods) -> Sequence[EditsStates]:
    """Returns the methods that edit a part of the layers, in order."""
    if site is Site.HIDDEN:
        return methods.hidden
    if site is Site.VALUES:
        return [method for method in methods.keys if method.edits_values]
    return methods.keys


def _watching_hook(states: _States, site: Site, layer: int, point: HookPoint) -> Callable[..., Any]:
    """Makes a forward hook that puts a layer's output into `states`."""

    def note(output: Tensor) -> Tensor:
        states[site][layer] = point.split_heads(output) if site.has_heads else output
        return output

    def hook(module: torch.nn.Module, arguments: object, output: Any) -> None:
        if _CURRENT_STATES.get() is states:
            apply_to_output(note, output)

    return hook


def _editing_hook(edits: _Edits, site: Site, layer: int, point: HookPoint) -> Callable[..., Any]:
    """Makes a forward hook that edits a layer's output."""

    def change(states: Tensor) -> Tensor:
        if not site.has_heads:
            return _edit_layer(edits, site, layer, states)
        return point.merge_heads(_edit_layer(edits, site, layer, point.split_heads(states)))

    def hook(module: torch.nn.Module, arguments: object, output: Any) -> Any:
        if _CURRENT_EDITS.get() is not edits:
            return None  # leaves the output as it is
        return apply_to_output(change, output)

    return hook


def _edit_layer(edits: _Edits, site: Site, layer: int, states: Tensor) -> Tensor:
    """Returns the states of a layer, [row, token, ...], edited by the methods of all groups."""
    for group in edits:
        methods = _methods_at(site, group.pass_methods)
        if not any(layer in method.touched_layers for method in methods):
            continue
        before = group.select(states)
        if site is Site.HIDDEN:
            after = _edit_hidden(group, layer, before)
        else:
            after = _edit_span(group, site, layer, before)
        if after is not before:
            states = group.replace(states, after)
    return states


def _edit_hidden(group: EditGroup, layer: int, hidden: Tensor) -> Tensor:
    """Returns the edited hidden states of a group, [row, token, size]."""
    for method in group.pass_methods.hidden:
        if layer not in method.touched_layers:
            continue
        changed = method.edit_hidden(hidden, layer)
        if changed is hidden:
            continue
        if method.reply_only and group.reply is not None:
            changed = changed.where(group.reply[..., None], hidden)
        hidden = changed
    return hidden


def _edit_span(group: EditGroup, site: Site, layer: int, states: Tensor) -> Tensor:
    """Returns keys or values of a group, edited on the span: [row, token, key-value head, size]."""
    if group.span is None:
        return states
    is_in_span = group.span[..., None, None]
    for method in group.pass_methods.keys:
        if layer not in method.touched_layers:
            continue
        if site is Site.KEYS:
            changed = method.edit_keys(states, layer)
        elif method.edits_values:
            changed = method.edit_values(states, layer)
        else:
            continue
        if changed is not states:
            states = changed.where(is_in_span, states)
    return states
