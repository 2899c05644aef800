"""A forward pass that is edited or watched, by hooks that are registered only meanwhile.

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
from holdfast.states.sites import HookPoint, Site, sites_of, through

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_HAVE_HEADS = (Site.KEYS, Site.VALUES)
_Edits = Sequence[EditGroup]  # of one pass, a list of its own
_States = dict[Site, dict[int, Tensor]]  # by site and layer: [row, token, ...]
_UNDER_WAY: ContextVar[_Edits | None] = ContextVar("holdfast_edits", default=None)
_WATCHED: ContextVar[_States | None] = ContextVar("holdfast_watched", default=None)


@contextmanager
def edited(model: PreTrainedModel, edits: Sequence[EditGroup]) -> Iterator[None]:
    """Edits the pass inside, in this thread only; registers no hook if there are no edits."""
    if not edits:
        yield
        return
    current = list(edits)
    points = sites_of(model).points
    touched = _touched(edits)
    for site, layer in touched:
        if layer not in points[site]:
            raise Unsteerable(_no_such_states(site, layer, points[site]))
    with ExitStack() as stack:
        for site, layer in touched:
            point = points[site][layer]
            hook = _editing_hook(current, site, layer, point)
            stack.enter_context(point.module.register_forward_hook(hook))
        stack.callback(_UNDER_WAY.reset, _UNDER_WAY.set(current))
        yield


def _no_such_states(site: Site, layer: int, points: Mapping[int, HookPoint]) -> str:
    sentence = f"Layer {layer} of this model gives no {site.value} that could be edited"
    if not points:
        return f"{sentence}, nor does another; use a method of another kind."
    return f"{sentence}; use a method for the layers {', '.join(map(str, sorted(points)))}."


@contextmanager
def watched(model: PreTrainedModel, wanted: Sequence[Site]) -> Iterator[_States]:
    """Collects the states of the pass inside, in this thread only, by site and layer: [row, token,
    ...].
    """
    points = sites_of(model).points
    states: _States = {site: {} for site in wanted}
    with ExitStack() as stack:
        for site in wanted:
            for layer, point in points[site].items():
                hook = _watching_hook(states, site, layer, point)
                stack.enter_context(point.module.register_forward_hook(hook))
        stack.callback(_WATCHED.reset, _WATCHED.set(states))
        yield states


def _touched(edits: Sequence[EditGroup]) -> list[tuple[Site, int]]:
    """The sites and layers that any method touches or reads, each once."""
    touched: dict[tuple[Site, int], None] = {}
    for group in edits:
        for site in Site:
            for method in _methods_at(site, group.compiled):
                touched |= dict.fromkeys((site, layer) for layer in method.touched_layers)
    return list(touched)


def _methods_at(site: Site, compiled: CompiledMethods) -> Sequence[EditsStates]:
    """The methods that edit this part of a layer, in order."""
    if site is Site.HIDDEN:
        return compiled.hidden
    if site is Site.VALUES:
        return [method for method in compiled.keys if method.edits_values]
    return compiled.keys


def _watching_hook(states: _States, site: Site, layer: int, point: HookPoint) -> Callable[..., Any]:
    def note(output: Tensor) -> Tensor:
        states[site][layer] = point.split_heads(output) if site in _HAVE_HEADS else output
        return output

    def hook(module: torch.nn.Module, given: object, output: Any) -> None:
        if _WATCHED.get() is states:
            through(note, output)

    return hook


def _editing_hook(edits: _Edits, site: Site, layer: int, point: HookPoint) -> Callable[..., Any]:
    def change(states: Tensor) -> Tensor:
        if site not in _HAVE_HEADS:
            return _edit(edits, site, layer, states)
        return point.merge_heads(_edit(edits, site, layer, point.split_heads(states)))

    def hook(module: torch.nn.Module, given: object, output: Any) -> Any:
        return through(change, output) if _UNDER_WAY.get() is edits else None

    return hook


def _edit(edits: _Edits, site: Site, layer: int, states: Tensor) -> Tensor:
    """The states of a layer, [row, token, ...], edited by the methods of all groups."""
    for group in edits:
        methods = [
            method for method in _methods_at(site, group.compiled) if layer in method.touched_layers
        ]
        if not methods:
            continue
        before = after = group.of(states)
        for method in methods:
            after = _edit_group(site, layer, group, method, after)
        if after is not before:
            states = group.put(after, states)
    return states


def _edit_group(site: Site, layer: int, group: EditGroup, method: Any, states: Tensor) -> Tensor:
    """The states of a group, edited by one method where it may touch them."""
    if site in (Site.KEYS, Site.VALUES):
        if group.span is None:
            return states
        if site is Site.VALUES:
            changed = method.edit_values(states, layer)
        else:
            changed = method.edit_keys(states, layer)
        return states if changed is states else changed.where(group.span[..., None, None], states)
    changed = method.edit_hidden(states, layer)
    if changed is states or not method.reply_only or group.reply is None:
        return changed
    return changed.where(group.reply[..., None], states)
