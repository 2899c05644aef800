"""Sets of attention heads and of layers, which a method may be restricted to."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from holdfast.errors import UsageError

M = TypeVar("M")  # a method with the field `heads`
Head = tuple[int, int]  # (layer, head), both counted from 0; heads are query heads


@dataclass(frozen=True)
class Shape:
    """The model that a head set or a profile was made for.

    Args:
        layers, heads: the number of layers, and of query heads per layer.
        model, fingerprint: identify the model for people. They are not compared, because a set
            made on a base model also serves its fine-tunes, which have other fingerprints.
    """

    layers: int
    heads: int
    model: str = ""
    fingerprint: str = ""


class HeadSet(frozenset[Head]):
    """A frozenset of (layer, head) pairs that may record where it comes from."""

    made_for: Shape | None  # the model; None if unknown
    file: str  # the path that it was read from; "" if none

    def __new__(
        cls, pairs: Iterable[Head] = (), made_for: Shape | None = None, file: str = ""
    ) -> HeadSet:
        head_set = super().__new__(cls, pairs)
        head_set.made_for = made_for
        head_set.file = file
        return head_set

    def __repr__(self) -> str:
        return f"HeadSet({spec_of_heads(self)!r})" if self else "HeadSet()"

    def __reduce__(self) -> tuple[object, ...]:
        return HeadSet, (tuple(self), self.made_for, self.file)


class LayerSet(frozenset[int]):
    """Layers of a model, counted from 0."""


def to_head_set(owner: str, heads: Any) -> HeadSet | None:
    """Converts (layer, head) pairs to a `HeadSet`; None, for all heads, stays None.

    Args:
        owner: the method or file that takes the heads, for the message.

    Raises:
        UsageError: they are not pairs of whole numbers from 0, or there are none.
    """
    if heads is None:
        return None
    try:
        pairs = [(layer, head) for layer, head in heads]
    except (TypeError, ValueError):
        pairs = []
    if not pairs or not all(map(counts_from_0, itertools.chain(*pairs))):
        raise UsageError(
            f"{owner} takes heads as (layer, head) pairs counted from 0, at least one, not"
            f" {heads!r}.",
            option="heads",
            value=heads,
            allowed="(layer, head) pairs",
        )
    return HeadSet(pairs, getattr(heads, "made_for", None), getattr(heads, "file", ""))


def to_layer_set(owner: str, layers: Any) -> LayerSet | None:
    """Converts numbers of layers to a `LayerSet`; None stays None.

    Args:
        owner: the method that takes the layers, for the message.

    Raises:
        UsageError: they are not whole numbers from 0, or there are none.
    """
    if layers is None:
        return None
    if not isinstance(layers, Iterable) or not all(map(counts_from_0, layers)) or not set(layers):
        raise UsageError(
            f"{owner} takes layers as whole numbers counted from 0, at least one, not {layers!r}.",
            option="layers",
            value=layers,
            allowed="whole numbers from 0",
        )
    return LayerSet(layers)


def counts_from_0(number: object) -> bool:
    """Whether a value can be the number of a layer or head: a whole number of at least 0."""
    return type(number) is int and number >= 0


def with_heads(method: M, heads: Iterable[Head] | None) -> M:
    """Returns the method restricted to these heads, or on all heads for None.

    Raises:
        UsageError: the method has no field `heads`.
    """
    if "heads" not in getattr(method, "__dataclass_fields__", {}):
        raise UsageError(
            f"The method {type(method).__name__} cannot be restricted to heads; make it a frozen"
            " dataclass with the field heads: HeadSet | None = None.",
            option="method",
            value=type(method).__name__,
        )
    restricted: M = replace(cast(Any, method), heads=heads)
    return restricted


def spec_of_heads(heads: Iterable[Head]) -> str:
    """Returns the canonical spec of a head set.

    It is a list such as "3.0/3.5", or "3-5.0-7" if consecutive layers have the same range of
    several heads.
    """
    pairs = sorted(heads)
    (first, low), (last, high) = pairs[0], pairs[-1]
    full = itertools.product(range(first, last + 1), range(low, high + 1))
    # a pair that is not in the rectangle ends the comparison, however large it is
    if first < last and low < high and all(p == q for p, q in itertools.zip_longest(pairs, full)):
        return f"{first}-{last}.{low}-{high}"
    return "/".join(f"{layer}.{head}" for layer, head in pairs)
