"""Sets of attention heads, and of layers: which of them a method touches."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, cast

from holdfast import ranges
from holdfast.errors import ParameterOutOfRange, UsageError


class _OnHeads(Protocol):
    """A method that touches some heads of a model, or all."""

    @property
    def heads(self) -> HeadSet | None: ...


M = TypeVar("M", bound=_OnHeads)
Head = tuple[int, int]  # (layer, head), both counted from 0; heads are query heads


@dataclass(frozen=True)
class Shape:
    """The model that a head set or a profile was made for.

    Args:
        layers, heads: of the model.
        model, fingerprint: of it, for people: a set made on a base model serves its fine-tuned
            children, which have other fingerprints.
    """

    layers: int
    heads: int
    model: str = ""
    fingerprint: str = ""


class HeadSet(frozenset[Head]):
    """A frozenset of (layer, head) pairs that may know where it comes from; as a set it equals any
    other with the same pairs.

    Args:
        pairs: (layer, head), both counted from 0.
        made_for: the shape of the model it was made for, or None.
        file: where it was read, or "".
    """

    made_for: Shape | None
    file: str

    def __new__(
        cls, pairs: Iterable[Head] = (), made_for: Shape | None = None, file: str = ""
    ) -> HeadSet:
        made = super().__new__(cls, pairs)
        made.made_for, made.file = made_for, file
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return HeadSet, (tuple(self), self.made_for, self.file)

    def intersection(self, *others: Iterable[object]) -> HeadSet:
        """The heads in all of them."""
        return HeadSet(super().intersection(*others), self.made_for)

    def union(self, *others: Iterable[Head]) -> HeadSet:  # type: ignore[override]
        """The heads in any of them."""
        return HeadSet(super().union(*others), self.made_for)


@dataclass(frozen=True)
class Ranking:
    """All heads of a model by what steering each alone gives on one task, the best first (R of
    Algorithm 1, Zhang et al. 2024).

    Args:
        heads: (layer, head) pairs.
        made_for: the model.
    """

    heads: tuple[Head, ...]
    made_for: Shape | None = None

    def top(self, k: int) -> HeadSet:
        """The best k heads.

        Raises:
            ParameterOutOfRange: `k` is not from 1 to the number of heads.
        """
        if ranges.whole_number("a ranking", "k", k, 1) > len(self.heads):
            raise ParameterOutOfRange(
                f"a ranking of {len(self.heads)} heads takes k from 1 to {len(self.heads)}, not"
                f" {k}."
            )
        return HeadSet(self.heads[:k], self.made_for)


def intersection(rankings: Sequence[Ranking], k: int) -> HeadSet:
    """The heads among the best k of every task: Algorithm 1's choice for several tasks.

    Raises:
        UsageError: there are none; the message says which k gives how many. Or the rankings are of
            models of different shapes.
    """
    _check_alike(rankings)
    first, *others = (ranking.top(k) for ranking in rankings)
    if shared := first.intersection(*others):
        return shared
    sizes: dict[int, int] = {}
    for larger in range(k + 1, min(len(ranking.heads) for ranking in rankings) + 1):
        count = len(frozenset.intersection(*(ranking.top(larger) for ranking in rankings)))
        if count and count not in sizes.values():
            sizes[larger] = count
    hints = ", ".join(f"k={larger} gives {count}" for larger, count in list(sizes.items())[:3])
    cure = (
        f"a larger k shares some: {hints}"
        if hints
        else "these rankings have no head in common, so take their union"
    )
    raise UsageError(
        f"The best {k} heads of the {len(rankings)} tasks have none in common; {cure}."
    )


def union(rankings: Sequence[Ranking], k: int) -> HeadSet:
    """The heads among the best k of any task.

    Raises:
        UsageError: the rankings are of models of different shapes.
    """
    _check_alike(rankings)
    first, *others = (ranking.top(k) for ranking in rankings)
    return first.union(*others)


def _check_alike(rankings: Sequence[Ranking]) -> None:
    if not rankings:
        raise UsageError("There is no ranking of heads to choose from ([]); give at least one.")
    shapes = {
        (ranking.made_for.layers, ranking.made_for.heads)
        for ranking in rankings
        if ranking.made_for
    }
    if len(shapes) > 1:
        first, second = sorted(shapes)[:2]
        raise UsageError(
            f"The rankings are of models of {first[0]} layers x {first[1]} heads and of"
            f" {second[0]} x {second[1]}; profile one model."
        )


def checked_heads(owner: str, heads: Any) -> HeadSet | None:
    """Returns `heads` as a `HeadSet`, or None.

    Raises:
        UsageError: not pairs of whole numbers, or no pair at all (which would silently do nothing).
    """
    if heads is None:
        return None
    try:
        chosen = HeadSet(
            ((layer, head) for layer, head in heads),
            getattr(heads, "made_for", None),
            getattr(heads, "file", ""),
        )
        right = all(type(part) is int and part >= 0 for pair in chosen for part in pair)
    except (TypeError, ValueError):
        chosen, right = HeadSet(), False
    if not chosen or not right:
        raise UsageError(
            f"{owner} takes heads as (layer, head) pairs counted from 0, at least one, not"
            f" {heads!r}."
        )
    return chosen


def on_layers(methods: Sequence[M], layers: Sequence[int], heads: int) -> tuple[M, ...]:
    """The methods on these layers only, of a model with so many heads per layer; those without
    heads there fall away.
    """
    every = HeadSet(itertools.product(layers, range(heads)))
    narrowed = []
    for method in methods:
        chosen = HeadSet(pair for pair in method.heads or every if pair[0] in layers)
        if chosen:
            narrowed.append(with_heads(method, chosen))
    return tuple(narrowed)


def with_heads(method: M, heads: Iterable[Head] | None) -> M:
    """The same method on these heads alone; None for all.

    Raises:
        UsageError: a method that is no dataclass with `heads` as a field.
    """
    if "heads" not in getattr(method, "__dataclass_fields__", {}):
        raise UsageError(
            f"The method {type(method).__name__} cannot be put on chosen heads; make it a frozen"
            " dataclass with the field heads: HeadSet | None = None."
        )
    chosen: M = replace(cast(Any, method), heads=heads)
    return chosen


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
