"""Sets of attention heads and of layers, in methods, specs and files."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from holdfast.errors import ParameterOutOfRange, UsageError, reason_of
from holdfast.files import write_whole
from holdfast.validation import ranges

M = TypeVar("M")  # a method that touches some heads of a model, or all
Head = tuple[int, int]  # (layer, head), both counted from 0; heads are query heads
MADE_FOR = "made_for"  # the one key of a head file that is not a layer
_MOST_HEADS = 100_000  # in a list; no model has that many


@dataclass(frozen=True)
class Shape:
    """The model that a head set or a profile was made for.

    Args:
        layers, heads: their numbers in the model.
        model, fingerprint: of the model, for people: a set made on a base model also serves its
            fine-tunes, which have other fingerprints.
    """

    layers: int
    heads: int
    model: str = ""
    fingerprint: str = ""


class HeadSet(frozenset[Head]):
    """A frozenset of (layer, head) pairs that may record where it comes from."""

    made_for: Shape | None
    file: str

    def __new__(
        cls, pairs: Iterable[Head] = (), made_for: Shape | None = None, file: str = ""
    ) -> HeadSet:
        made = super().__new__(cls, pairs)
        made.made_for, made.file = made_for, file
        return made

    def __repr__(self) -> str:
        return f"HeadSet({spec_of_heads(self)!r})" if self else "HeadSet()"

    def __reduce__(self) -> tuple[object, ...]:
        return HeadSet, (tuple(self), self.made_for, self.file)


class LayerSet(frozenset[int]):
    """Layers of a model, counted from 0."""


@dataclass(frozen=True)
class Ranking:
    """All heads of a model, best first for one task (R of Algorithm 1, Zhang et al. 2024)."""

    heads: tuple[Head, ...]  # (layer, head) pairs
    made_for: Shape | None = None  # the model

    def top(self, k: int) -> HeadSet:
        """The best k heads; a `ParameterOutOfRange` unless k is from 1 to the number of heads."""
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
    """The heads among the best k of every task: Algorithm 1's choice for several tasks."""
    _check_alike(rankings)

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
    """The heads among the best k of any task; a `UsageError` for models of different shapes."""
    _check_alike(rankings)
    heads = frozenset[Head]().union(*(ranking.top(k) for ranking in rankings))
    return HeadSet(heads, rankings[0].made_for)


def _check_alike(rankings: Sequence[Ranking]) -> None:
    if not rankings:
        raise UsageError(
            "There is no ranking of heads to choose from ([]); give at least one.",
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


def checked_heads(owner: str, heads: Any) -> HeadSet | None:
    """`heads` as a `HeadSet`, or None; a `UsageError` unless they are pairs of whole numbers."""
    if heads is None:
        return None
    try:
        pairs = [(layer, head) for layer, head in heads]
    except (TypeError, ValueError):
        pairs = []
    if not pairs or not all(map(_counts_from_0, itertools.chain(*pairs))):
        raise UsageError(
            f"{owner} takes heads as (layer, head) pairs counted from 0, at least one, not"
            f" {heads!r}.",
            option="heads",
            value=heads,
            allowed="(layer, head) pairs",
        )
    return HeadSet(pairs, getattr(heads, "made_for", None), getattr(heads, "file", ""))


def checked_layers(owner: str, layers: Any) -> LayerSet | None:
    """`layers` as a `LayerSet`, or None; a `UsageError` unless they are whole numbers."""
    if layers is None:
        return None
    if not isinstance(layers, Iterable) or not all(map(_counts_from_0, layers)) or not set(layers):
        raise UsageError(
            f"{owner} takes layers as whole numbers counted from 0, at least one, not {layers!r}.",
            option="layers",
            value=layers,
            allowed="whole numbers from 0",
        )
    return LayerSet(layers)


def _counts_from_0(number: object) -> bool:
    return type(number) is int and number >= 0


def with_heads(method: M, heads: Iterable[Head] | None) -> M:
    """The same method on only these heads (None: all); a `UsageError` if it has no such field."""
    if "heads" not in getattr(method, "__dataclass_fields__", {}):
        raise UsageError(
            f"The method {type(method).__name__} cannot be put on chosen heads; make it a frozen"
            " dataclass with the field heads: HeadSet | None = None.",
            option="method",
            value=type(method).__name__,
        )
    chosen: M = replace(cast(Any, method), heads=heads)
    return chosen


def read_layers(spec: str) -> LayerSet:
    """Reads "3/5/7"; a `UsageError` for any other form."""
    if not re.fullmatch(r"\d{1,9}(/\d{1,9})*", spec):
        raise UsageError(
            f"Layers are written LAYER/LAYER, as in layers=3/4, not {spec!r}.",
            option="layers",
            value=spec,
            allowed="LAYER/LAYER",
        )
    return LayerSet(map(int, spec.split("/")))


def read_heads(spec: str, *, files: bool = True) -> HeadSet:
    """Reads "3.0/3.5/7.1" (layer.head), in which a number may be a range ("20-29.0-8"), or a JSON
    file: [[3, 0], [3, 5]] or {"3": [0, 5]}, perhaps with the model it was made for. A `UsageError`
    for anything else, or for a file unless `files`.
    """
    if spec.endswith(".json"):
        if not files:
            raise UsageError(
                f"{spec!r} names a file, and none is read for a spec string that comes from"
                " elsewhere; write the heads themselves.",
                option="heads",
                value=spec,
            )
        return _read_file(Path(spec))
    number = r"(\d{1,9})(?:-(\d{1,9}))?"
    matches = [re.fullmatch(rf"{number}\.{number}", part) for part in spec.split("/")]
    if not all(matches):
        raise UsageError(
            "Heads are written LAYER.HEAD/LAYER.HEAD, as in heads=3.0/3.5 or heads=3-5.0-7, or name"
            f" a JSON file, not {spec!r}.",
            option="heads",
            value=spec,
            allowed="LAYER.HEAD/LAYER.HEAD",
        )
    rectangles = [
        (range(int(a), int(b or a) + 1), range(int(c), int(d or c) + 1))
        for a, b, c, d in (match.groups() for match in matches if match)
    ]
    counts = [len(layers) * len(heads) for layers, heads in rectangles]
    if not all(counts) or sum(counts) > _MOST_HEADS:
        raise UsageError(
            f"A range of heads goes from the lower number to the higher one, and {_MOST_HEADS:,}"
            f" heads are the most, not {spec!r}.",
            option="heads",
            value=spec,
            allowed=_MOST_HEADS,
        )
    return HeadSet(itertools.chain(*(itertools.product(*sides) for sides in rectangles)))


def spec_of_heads(heads: Iterable[Head]) -> str:
    """The canonical spec of a head set: "3-5.0-7" for a full rectangle of heads, else a list."""
    pairs = sorted(heads)
    (first, low), (last, high) = pairs[0], pairs[-1]
    full = itertools.product(range(first, last + 1), range(low, high + 1))
    # a pair that is not in the rectangle ends the comparison, however large it is
    if first < last and low < high and all(p == q for p, q in itertools.zip_longest(pairs, full)):
        return f"{first}-{last}.{low}-{high}"
    return "/".join(f"{layer}.{head}" for layer, head in pairs)


def write_heads(path: Path | str, heads: Iterable[Head], made_for: Shape | None = None) -> None:
    """Writes {"layer": [heads]}, and beside the layers the model that the heads were made for."""
    pairs = checked_heads(str(path), heads)
    made_for = made_for or getattr(heads, "made_for", None)
    listed: dict[str, object] = {
        str(layer): [head for _, head in some]
        for layer, some in itertools.groupby(sorted(pairs or ()), lambda pair: pair[0])
    }
    if made_for:
        listed[MADE_FOR] = asdict(made_for)
    write_whole(path, json.dumps(listed, indent=1) + "\n")


def _read_file(path: Path) -> HeadSet:
    made_for = None
    form = 'give [[layer, head], ...] or {"layer": [head, ...]}'

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        names = [name for name, _ in pairs]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise UsageError(
                f"{str(path)!r} names layer {twice} twice; put its heads into one list.",
                option="heads",
                value=twice,
            )
        return dict(pairs)

    try:
        listed = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=once)
        if isinstance(listed, dict):
            if (shape := listed.pop(MADE_FOR, None)) is not None:
                made_for = _read_shape(shape)
            listed = [(int(layer), head) for layer, heads in listed.items() for head in heads]
        pairs = [(layer, head) for layer, head in listed]
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            f"Cannot read heads from {str(path)!r} ({reason_of(error)}); {form}.",
            option="heads",
            value=str(path),
        ) from None
    if not pairs:
        raise UsageError(f"{str(path)!r} names no heads; {form}.", option="heads", value=str(path))
    for number, (layer, head) in enumerate(pairs):
        named = f"{str(path)!r} names head {head!r} in layer {layer!r}"
        if not (_counts_from_0(layer) and _counts_from_0(head)):
            raise UsageError(
                f"{named}; both are whole numbers counted from 0.",
                option="heads",
                value=(layer, head),
            )
        if (layer, head) in pairs[:number]:
            raise UsageError(
                f"{named} twice; take one of them out.", option="heads", value=(layer, head)
            )
        if made_for and (layer >= made_for.layers or head >= made_for.heads):
            raise UsageError(
                f"{named}, and the model it was made for has {made_for.layers} layers of"
                f" {made_for.heads} heads, counted from 0; profile the model again.",
                option="heads",
                value=(layer, head),
                allowed=(made_for.layers, made_for.heads),
            )
    return HeadSet(pairs, made_for, str(path))


def _read_shape(fields: Any) -> Shape:
    if not isinstance(fields, dict) or not {"layers", "heads"} <= fields.keys():
        raise ValueError(f"{MADE_FOR} lacks layers or heads")
    shape = Shape(**{name: fields[name] for name in Shape.__dataclass_fields__ if name in fields})
    if any(type(number) is not int or number < 1 for number in (shape.layers, shape.heads)):
        raise ValueError(f"{MADE_FOR} gives {shape.layers!r} layers of {shape.heads!r} heads")
    return shape
