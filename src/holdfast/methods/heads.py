"""Sets of attention heads and of layers, and rankings of heads; in spec strings and in files."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from holdfast.errors import ParameterOutOfRange, UsageError, reason_of
from holdfast.files import write_whole
from holdfast.validation import ranges

MADE_FOR = "made_for"  # the one key of a head file that is not a layer
_MAX_HEADS = 100_000  # in a list; no model has more

# 3.0 or 20-29.0-8: layers, then heads
_RECTANGLE = re.compile(
    r"""
    (?P<first_layer>\d{1,9}) (?: -(?P<last_layer>\d{1,9}) )?
    \.
    (?P<first_head>\d{1,9}) (?: -(?P<last_head>\d{1,9}) )?
    """,
    re.VERBOSE,
)

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


class _Rectangle(NamedTuple):
    """The same heads of consecutive layers, as "20-29.0-8" names them."""

    layers: range
    heads: range  # of each layer

    @classmethod
    def of_match(cls, match: re.Match[str]) -> _Rectangle:
        first_layer = int(match["first_layer"])
        last_layer = int(match["last_layer"] or first_layer)
        first_head = int(match["first_head"])
        last_head = int(match["last_head"] or first_head)
        return cls(range(first_layer, last_layer + 1), range(first_head, last_head + 1))

    @property
    def size(self) -> int:
        """How many heads there are in all; 0 if a range goes downwards."""
        return len(self.layers) * len(self.heads)

    @property
    def pairs(self) -> Iterator[Head]:
        return itertools.product(self.layers, self.heads)


def read_layers(spec: str) -> LayerSet:
    """Reads layers such as "3/5/7"; raises a `UsageError` for any other form."""
    if not re.fullmatch(r"\d{1,9}(/\d{1,9})*", spec):
        raise UsageError(
            f"Layers are written LAYER/LAYER, as in layers=3/4, not {spec!r}.",
            option="layers",
            value=spec,
            allowed="LAYER/LAYER",
        )
    return LayerSet(map(int, spec.split("/")))


def read_heads(spec: str, *, files: bool = True) -> HeadSet:
    """Reads heads from a spec string or from the JSON file that it names.

    A spec string is "3.0/3.5/7.1" (layer.head), in which a number may be a range, as in
    "20-29.0-8". A file is [[3, 0], [3, 5]] or {"3": [0, 5]}; the latter may have a key "made_for".

    Args:
        files: False for a spec string from elsewhere, which may not make this process read files.

    Raises:
        UsageError: the text or the file has another form, or a file is named and may not be.
    """
    if spec.endswith(".json"):
        if not files:
            raise UsageError(
                f"{spec!r} names a file, which a spec string from elsewhere may not do; write the"
                " heads themselves.",
                option="heads",
                value=spec,
            )
        return _read_file(Path(spec))
    matches = [_RECTANGLE.fullmatch(part) for part in spec.split("/")]
    if not all(matches):
        raise UsageError(
            "Heads are written LAYER.HEAD/LAYER.HEAD, as in heads=3.0/3.5 or heads=3-5.0-7, or name"
            f" a JSON file, not {spec!r}.",
            option="heads",
            value=spec,
            allowed="LAYER.HEAD/LAYER.HEAD",
        )
    rectangles = [_Rectangle.of_match(match) for match in matches if match]
    sizes = [rectangle.size for rectangle in rectangles]
    if not all(sizes) or sum(sizes) > _MAX_HEADS:
        raise UsageError(
            f"A range of heads goes from the lower number to the higher one, and a list has at"
            f" most {_MAX_HEADS:,} heads, not {spec!r}.",
            option="heads",
            value=spec,
            allowed=_MAX_HEADS,
        )
    return HeadSet(itertools.chain(*(rectangle.pairs for rectangle in rectangles)))


def write_heads(path: Path | str, heads: Iterable[Head], made_for: Shape | None = None) -> None:
    """Writes {"layer": [heads]}, with the model that the heads were made for under "made_for".

    Args:
        made_for: None for the model that `heads` records, if it does.
    """
    pairs = to_head_set(str(path), heads)
    made_for = made_for or getattr(heads, "made_for", None)
    content: dict[str, object] = {
        str(layer): [head for _, head in heads_of_layer]
        for layer, heads_of_layer in itertools.groupby(sorted(pairs or ()), lambda pair: pair[0])
    }
    if made_for:
        content[MADE_FOR] = asdict(made_for)
    write_whole(path, json.dumps(content, indent=1) + "\n")


def _read_file(path: Path) -> HeadSet:
    form = 'give [[layer, head], ...] or {"layer": [head, ...]}'
    try:
        heads = _parse(path.read_text(encoding="utf-8"), path)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            f"Cannot read heads from {str(path)!r} ({reason_of(error)}); {form}.",
            option="heads",
            value=str(path),
        ) from None
    if not heads.pairs:
        raise UsageError(f"{str(path)!r} names no heads; {form}.", option="heads", value=str(path))
    _check_pairs(heads, path)
    return HeadSet(heads.pairs, heads.made_for, str(path))


class _ListedHeads(NamedTuple):
    """The heads as a file lists them, with numbers that are not checked yet."""

    pairs: list[Head]
    made_for: Shape | None  # the model; None if the file does not say


def _parse(text: str, path: Path) -> _ListedHeads:
    """Parses the content of a head file.

    Raises:
        ValueError, TypeError: the text has another form.
        UsageError: the file names a layer twice.
    """

    def refuse_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
        names = [name for name, _ in pairs]
        if duplicate := next((name for name in names if names.count(name) > 1), None):
            raise UsageError(
                f"{str(path)!r} names layer {duplicate} twice; put its heads into one list.",
                option="heads",
                value=duplicate,
            )
        return dict(pairs)

    content = json.loads(text, object_pairs_hook=refuse_duplicates)
    made_for = None
    if isinstance(content, dict):
        if (shape := content.pop(MADE_FOR, None)) is not None:
            made_for = _read_shape(shape)
        content = [(int(layer), head) for layer, heads in content.items() for head in heads]
    return _ListedHeads([(layer, head) for layer, head in content], made_for)


def _check_pairs(heads: _ListedHeads, path: Path) -> None:
    """Refuses a pair that is no head, is listed twice, or is not in the model it is made for."""
    pairs, made_for = heads
    for number, (layer, head) in enumerate(pairs):
        sentence = f"{str(path)!r} names head {head!r} in layer {layer!r}"
        if not (counts_from_0(layer) and counts_from_0(head)):
            raise UsageError(
                f"{sentence}; both are whole numbers counted from 0.",
                option="heads",
                value=(layer, head),
            )
        if (layer, head) in pairs[:number]:
            raise UsageError(
                f"{sentence} twice; take one of them out.", option="heads", value=(layer, head)
            )
        if made_for and (layer >= made_for.layers or head >= made_for.heads):
            raise UsageError(
                f"{sentence}, but the model that the file was made for has {made_for.layers}"
                f" layers of {made_for.heads} heads, counted from 0; profile the model again.",
                option="heads",
                value=(layer, head),
                allowed=(made_for.layers, made_for.heads),
            )


def _read_shape(fields: Any) -> Shape:
    if not isinstance(fields, dict) or not {"layers", "heads"} <= fields.keys():
        raise ValueError(f"{MADE_FOR} lacks layers or heads")
    shape = Shape(**{name: fields[name] for name in Shape.__dataclass_fields__ if name in fields})
    if any(type(number) is not int or number < 1 for number in (shape.layers, shape.heads)):
        raise ValueError(f"{MADE_FOR} gives {shape.layers!r} layers of {shape.heads!r} heads")
    return shape
