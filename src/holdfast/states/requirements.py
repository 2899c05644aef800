"""Checks that a model has the states that methods edit, and is the model they were fitted on."""

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
    """Says whether a model's keys and hidden states can be edited.

    Neither can unless the whole model is on one device.
    """
    devices = {str(parameter.device) for parameter in model.parameters()}
    if len(devices) > 1 or "meta" in devices:
        return frozenset()
    offered = {Ability.RESIDUAL} if layer_modules(model) else set()
    attention = attention_modules(model).values()
    if any(part_of(module, Site.KEYS) and part_of(module, Site.VALUES) for module in attention):
        offered.add(Ability.KEYS)
    return frozenset(offered)


def check_states(model: PreTrainedModel, compiled: CompiledMethods, fingerprint: str = "") -> None:
    """Refuses methods that were fitted on another model, or that edit states this one lacks.

    Args:
        fingerprint: of the model; "" skips the comparison of fingerprints.
    """
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
                f"{method.name} touches no layer of {type(model).__name__}: no head reaches the"
                " threshold, or no head that you named was fitted; lower the threshold.",
                option="threshold",
            )
        if missing := sorted(set(method.touched_layers) - set(points)):
            layers = ", ".join(map(str, sorted(points))) or "none"
            raise UsageError(
                f"{method.name} touches layer {missing[0]}, but the layers of"
                f" {type(model).__name__} whose {site.value} can be edited, counted from 0, are:"
                f" {layers}.",
                option="layers",
                value=missing[0],
                allowed=sorted(points),
            )


def _check_file(
    model: PreTrainedModel, sites: Sites, method: EditsStates, file: Fitted, fingerprint: str
) -> None:
    """Refuses a fitted file of another model, or without a layer that the method touches."""
    name = type(model).__name__
    on = file.on
    cure = f"fit it on this one: holdfast fit {method.name}"
    layers = getattr(model.config.get_text_config(), "num_hidden_layers", 0)
    size = (layers, sites.hidden_size)
    if size != (on.layers, on.hidden_size):
        raise ModelError(
            f"{method.name} was fitted on {on.model}, which has {on.layers} layers of size"
            f" {on.hidden_size}, but {name} has {size[0]} of size {size[1]}; {cure}.",
            option="file",
            value=(on.layers, on.hidden_size),
            allowed=size,
        )
    if on.key_heads and (sites.key_heads, sites.head_size) != (on.key_heads, on.head_size):
        raise ModelError(
            f"{method.name} was fitted on {on.model}, which has {on.key_heads} key-value heads of"
            f" size {on.head_size}, but {name} has {sites.key_heads} of size {sites.head_size};"
            f" {cure}.",
            option="file",
            value=(on.key_heads, on.head_size),
            allowed=(sites.key_heads, sites.head_size),
        )
    if fingerprint and fingerprint != on.fingerprint:
        raise ModelError(
            f"{method.name} was fitted on {on.model} (fingerprint {on.fingerprint[:12]}), but this"
            f" is another model (fingerprint {fingerprint[:12]}); {cure}.",
            option="file",
            value=on.fingerprint,
            allowed=fingerprint,
        )
    if unknown := sorted(set(method.touched_layers) - set(file.layers)):
        raise UsageError(
            f"{method.name} names layer {unknown[0]}, but {str(file.path)!r} was fitted on layers"
            f" {', '.join(map(str, file.layers))}; name some of these.",
            option="layers",
            value=unknown[0],
            allowed=file.layers,
        )


def _check_heads(method: EditsStates, sites: Sites) -> None:
    """Refuses heads that are not key-value heads of the model."""
    heads = getattr(method, "heads", None) or ()
    made_for = getattr(heads, "made_for", None)
    if made_for is not None and made_for.heads != sites.key_heads:
        origin = getattr(heads, "file", "")
        source = repr(origin) if origin else "the list"
        raise UsageError(
            f"{method.name} takes key-value heads, {sites.key_heads} per layer, but {source} names"
            f" query heads, {made_for.heads} per layer; name key-value heads.",
            option="heads",
            value=made_for.heads,
            allowed=sites.key_heads,
        )
    for layer, head in sorted(heads):
        if sites.key_heads and head >= sites.key_heads:
            raise UsageError(
                f"{method.name} names key-value head {head} in layer {layer}, but this model has"
                f" {sites.key_heads}, counted from 0.",
                option="heads",
                value=(layer, head),
                allowed=sites.key_heads,
            )
