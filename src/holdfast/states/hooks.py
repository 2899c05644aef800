"""A forward pass with its edits: hooks that are registered only for the duration of the pass.

Other threads may run passes of the same model meanwhile. So each hook acts only if its own edits
are those of the pass under way, which a context variable records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from holdfast.errors import Unsteerable
from holdfast.methods.compiled import CompiledMethods
from holdfast.methods.protocols import EditsStates
from holdfast.states.edits import EditGroup
from holdfast.states.sites import HookPoint, Site, hooked, sites_of, through

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_HAVE_HEADS = (Site.KEYS, Site.VALUES)
_Edits = Sequence[EditGroup]  # of one pass, a list of its own
_UNDER_WAY: ContextVar[_Edits | None] = ContextVar("holdfast_edits", default=None)


@contextmanager
def edited(model: PreTrainedModel, edits: Sequence[EditGroup]) -> Iterator[None]:
    """Edits the pass inside, in this thread only; registers no hook if there are no edits."""
    if not edits:
        yield
        return
    current, points = list(edits), sites_of(model).points
    touched = _touched(edits)
    for site, layer in touched:
        if layer not in points[site]:
            raise Unsteerable(
                f"Layer {layer} gives no {site.value} here, so they cannot be edited."
            )
    handles = [
        points[site][layer].module.register_forward_hook(
            _hook(current, site, layer, points[site][layer])
        )
        for site, layer in touched
    ]
    token = _UNDER_WAY.set(current)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
        _UNDER_WAY.reset(token)


@contextmanager
def watched(
    model: PreTrainedModel, wanted: Sequence[Site]
) -> Iterator[dict[Site, dict[int, Tensor]]]:
    """Collects the states of the pass inside, by site and layer: [row, token, ...]."""
    points = sites_of(model).points
    seen: dict[Site, dict[int, Tensor]] = {site: {} for site in wanted}

    def keep(site: Site, layer: int, point: HookPoint) -> Callable[[Tensor], Tensor]:
        def note(states: Tensor) -> Tensor:
            seen[site][layer] = point.split_heads(states) if site in _HAVE_HEADS else states
            return states

        return note

    hooks: list[tuple[torch.nn.Module, Callable[[Tensor], Tensor]]] = []
    for site in wanted:
        for layer, point in points[site].items():
            hooks.append((point.module, keep(site, layer, point)))
    with hooked(hooks):
        yield seen


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


def _hook(edits: _Edits, site: Site, layer: int, point: HookPoint) -> Callable[..., Any]:
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
