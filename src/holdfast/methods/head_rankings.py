"""The heads of a model in the order of their use for a task, and the best of several tasks.

For example:

    the best 2 heads of one task are (3, 0) and (5, 1), of another (5, 1) and (7, 2)
    -> intersection(rankings, 2) == HeadSet({(5, 1)})
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.errors import ParameterOutOfRange, UsageError
from holdfast.methods.heads import Head, HeadSet, Shape
from holdfast.validation import ranges


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
