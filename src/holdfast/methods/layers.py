"""Sets of layers: which layers a method touches, and how they are spelled."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from holdfast.errors import UsageError


class LayerSet(frozenset[int]):
    """Layers of a model, counted from 0."""

    def __new__(cls, layers: Iterable[int] = ()) -> LayerSet:
        return super().__new__(cls, layers)


def read_layers(spec: str) -> LayerSet:
    """Reads "3/5/7".

    Raises:
        UsageError: `spelled` has another form.
    """
    if not re.fullmatch(r"\d{1,9}(/\d{1,9})*", spec):
        raise UsageError(f"Layers are written LAYER/LAYER, as in layers=3/4, not {spec!r}.")
    return LayerSet(map(int, spec.split("/")))


def spell_layers(layers: Iterable[int]) -> str:
    """The one spelling of a set of layers, in order."""
    return "/".join(map(str, sorted(layers)))


def checked_layers(owner: str, layers: Any) -> LayerSet | None:
    """Returns `layers` as a `LayerSet`, or None.

    Raises:
        UsageError: not whole numbers from 0, or none at all (which would silently do nothing).
    """
    if layers is None:
        return None
    try:
        chosen = LayerSet(layers)
        right = all(type(layer) is int and layer >= 0 for layer in chosen)
    except TypeError:
        chosen, right = LayerSet(), False
    if not chosen or not right:
        raise UsageError(
            f"{owner} takes layers as whole numbers counted from 0, at least one, not {layers!r}."
        )
    return chosen
