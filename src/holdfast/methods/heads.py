"""Sets of attention heads and of layers, and rankings of heads."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from holdfast.errors import ParameterOutOfRange, UsageError
from holdfast.validation import ranges

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


@dataclass(frozen=True)
class Ranking:
    """All heads of a model, best first for one task (R of Algorithm 1, Zhang et al. 2024)."""

    heads: tuple[Head, ...]
    made_for: Shape | None = None  # the model; None if unknown

    def top(self, k: int) -> HeadSet:
        """Returns the best k heads; a `ParameterOutOfRange` unless k is from 1 to their number."""
        if ranges.whole_number("a ranking", "k", k, 1) > len(self.heads):
            raise ParameterOutOfRange(
                f"a ranking of {len(self.heads)} heads takes k from 1 to {len(self.heads)}, not"
                f" {k}.",
                option="k",
                value=k,
                allowed=f"from 1 to {len(self.heads)}",
            )
        return HeadSet(self.heads[:k], self.made_for)


def intersection(rankings: Sequence[Ranking], k: int) -> HeadSet:
    """Returns the heads among the best k of every task: Algorithm 1's choice for several tasks.

    Raises:
        UsageError: there are none, or the rankings are of models of different shapes.
    """
    _require_same_shape(rankings)

    def shared(k: int) -> frozenset[Head]:
        return frozenset.intersection(*(ranking.top(k) for ranking in rankings))

    if heads := shared(k):
        return HeadSet(heads, rankings[0].made_for)
    sizes: dict[int, int] = {}
    for larger in range(k + 1, min(len(ranking.heads) for ranking in rankings) + 1):
        count = len(shared(larger))
        if count and count not in sizes.values():
            sizes[larger] = count
    if not sizes:
        raise UsageError(
            f"The rankings of the {len(rankings)} tasks have no head in common; take their union.",
            option="k",
            value=k,
        )
    hints = ", ".join(f"k={larger} gives {count}" for larger, count in list(sizes.items())[:3])
    raise UsageError(
        f"The best {k} heads of the {len(rankings)} tasks have none in common; a larger k shares"
        f" some: {hints}.",
        option="k",
        value=k,
        allowed=sizes,
    )


def union(rankings: Sequence[Ranking], k: int) -> HeadSet:
    """Returns the heads among the best k of any task.

    Raises:
        UsageError: the rankings are of models of different shapes.
    """
    _require_same_shape(rankings)
    heads = frozenset[Head]().union(*(ranking.top(k) for ranking in rankings))
    return HeadSet(heads, rankings[0].made_for)


def _require_same_shape(rankings: Sequence[Ranking]) -> None:
    """Refuses rankings of models that differ in their numbers of layers or heads."""
    if not rankings:
        raise UsageError(
            "The list of rankings is empty ([]); give at least one.",
            option="rankings",
            value=[],
        )
    made_for = [ranking.made_for for ranking in rankings if ranking.made_for]
    shapes = {(shape.layers, shape.heads) for shape in made_for}
    if len(shapes) > 1:
        first, second = sorted(shapes)[:2]
        raise UsageError(
            f"The rankings are of models of {first[0]} layers x {first[1]} heads and of"
            f" {second[0]} x {second[1]}; profile one model.",
            option="rankings",
            value=second,
            allowed=first,
        )


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
