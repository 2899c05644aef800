"""Checks that a model has what methods edit, and is the model that they were fitted on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.errors import ModelError, UsageError
from holdfast.methods.compiled import CompiledMethods
from holdfast.methods.fitted import Fitted
from holdfast.methods.kinds import Ability
from holdfast.methods.protocols import EditsStates
from holdfast.states.sites import Site, Sites, attention_modules, layer_modules, part_of, sites_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def abilities(model: PreTrainedModel) -> frozenset[Ability]:
    """Which of keys and hidden states can be edited; neither unless the model is on one device."""
    devices = {str(parameter.device) for parameter in model.parameters()}
    if len(devices) > 1 or "meta" in devices:
        return frozenset()
    offered = {Ability.RESIDUAL} if layer_modules(model) else set()
    attention = attention_modules(model).values()
    if any(part_of(module, "keys") and part_of(module, "values") for module in attention):
        offered.add(Ability.KEYS)
    return frozenset(offered)


def check_states(model: PreTrainedModel, compiled: CompiledMethods, fingerprint: str = "") -> None:
    """Refuses methods that were fitted on another model, or touch something this one lacks."""
    _check_site(model, Site.KEYS, compiled.keys, fingerprint)
    _check_site(model, Site.HIDDEN, compiled.hidden, fingerprint)


def _check_site(
    model: PreTrainedModel, site: Site, methods: Iterable[EditsStates], fingerprint: str
) -> None:
    """Checks the methods that edit one part of the layers."""
    for method in methods:
        sites = sites_of(model)
        file = getattr(method, "file", None)
        if isinstance(file, Fitted):
            _check_file(model, sites, method, file, fingerprint)
        points = sites.points[site]
        _check_heads(method, sites)
        if not method.touched_layers:
            raise UsageError(
                f"{method.name} touches no layer of {type(model).__name__}: no head reaches its"
                " threshold, or none of those named was fitted; lower the threshold.",
                option="threshold",
            )
        if missing := sorted(set(method.touched_layers) - set(points)):
            has = ", ".join(map(str, sorted(points))) or "none"
            raise UsageError(
                f"{method.name} touches layer {missing[0]}, and {type(model).__name__} gives"
                f" {site.value} in layers {has}, counted from 0.",
                option="layers",
                value=missing[0],
                allowed=sorted(points),
            )


def _check_file(
    model: PreTrainedModel, sites: Sites, method: EditsStates, file: Fitted, fingerprint: str
) -> None:
    name = type(model).__name__
    on = file.on
    cure = f"fit it on this one: holdfast fit {method.name}"
    layers = getattr(model.config.get_text_config(), "num_hidden_layers", 0)
    size = (layers, sites.hidden_size)
    if size != (on.layers, on.hidden_size):
        raise ModelError(
            f"{method.name} was fitted on {on.model}, of {on.layers} layers of size"
            f" {on.hidden_size}, and {name} has {size[0]} of size {size[1]}; {cure}.",
            option="file",
            value=(on.layers, on.hidden_size),
            allowed=size,
        )
    if on.key_heads and (sites.key_heads, sites.head_size) != (on.key_heads, on.head_size):
        raise ModelError(
            f"{method.name} was fitted on {on.model}, with {on.key_heads} key-value heads of size"
            f" {on.head_size}, and {name} has {sites.key_heads} of size {sites.head_size}; {cure}.",
            option="file",
            value=(on.key_heads, on.head_size),
            allowed=(sites.key_heads, sites.head_size),
        )
    if fingerprint and fingerprint != on.fingerprint:
        raise ModelError(
            f"{method.name} was fitted on {on.model} (fingerprint {on.fingerprint[:12]}), and this"
            f" model is another one (fingerprint {fingerprint[:12]}); {cure}.",
            option="file",
            value=on.fingerprint,
            allowed=fingerprint,
        )
    if unknown := sorted(set(method.touched_layers) - set(file.layers)):
        raise UsageError(
            f"{method.name} names layer {unknown[0]}, and {str(file.path)!r} was fitted on layers"
            f" {', '.join(map(str, file.layers))}; name some of those.",
            option="layers",
            value=unknown[0],
            allowed=file.layers,
        )


def _check_heads(method: EditsStates, sites: Sites) -> None:
    heads = getattr(method, "heads", None) or ()
    made_for = getattr(heads, "made_for", None)
    if made_for is not None and made_for.heads != sites.key_heads:
        named = getattr(heads, "file", "") or "these heads"
        raise UsageError(
            f"{method.name} takes key-value heads, of which a layer has {sites.key_heads}, and"
            f" {named!r} names some of {made_for.heads} query heads; name key-value heads.",
            option="heads",
            value=made_for.heads,
            allowed=sites.key_heads,
        )
    for layer, head in sorted(heads):
        if sites.key_heads and head >= sites.key_heads:
            raise UsageError(
                f"{method.name} names key-value head {head} in layer {layer}, and this model has"
                f" {sites.key_heads}, counted from 0.",
                option="heads",
                value=(layer, head),
                allowed=sites.key_heads,
            )
