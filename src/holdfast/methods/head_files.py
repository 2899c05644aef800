"""Heads and layers as spec strings and files write them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.errors import UsageError, reason_of
from holdfast.files import write_whole
from holdfast.methods.heads import Head, HeadSet, LayerSet, Shape, checked_heads, counts_from_0

MADE_FOR = "made_for"  # the one key of a head file that is not a layer
_MAX_HEADS = 100_000  # in a list; no model has that many


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
    matches = [_RECTANGLE.fullmatch(part) for part in spec.split("/")]
    if not all(matches):
        raise UsageError(
            "Heads are written LAYER.HEAD/LAYER.HEAD, as in heads=3.0/3.5 or heads=3-5.0-7, or name"
            f" a JSON file, not {spec!r}.",
            option="heads",
            value=spec,
            allowed="LAYER.HEAD/LAYER.HEAD",
        )
    rectangles = [_Rectangle.of(match) for match in matches if match]
    sizes = [rectangle.size for rectangle in rectangles]
    if not all(sizes) or sum(sizes) > _MAX_HEADS:
        raise UsageError(
            f"A range of heads goes from the lower number to the higher one, and {_MAX_HEADS:,}"
            f" heads are the most, not {spec!r}.",
            option="heads",
            value=spec,
            allowed=_MAX_HEADS,
        )
    return HeadSet(itertools.chain(*(rectangle.heads for rectangle in rectangles)))


_RANGE = r"(\d{1,9})(?:-(\d{1,9}))?"
_RECTANGLE = re.compile(rf"{_RANGE}\.{_RANGE}")


class _Rectangle(NamedTuple):
    """The same heads of consecutive layers, as "20-29.0-8" names them."""

    layers: range
    numbers: range  # of the heads

    @classmethod
    def of(cls, match: re.Match[str]) -> _Rectangle:
        first_layer, last_layer, first_head, last_head = match.groups()
        return cls(
            range(int(first_layer), int(last_layer or first_layer) + 1),
            range(int(first_head), int(last_head or first_head) + 1),
        )

    @property
    def size(self) -> int:
        """How many heads it has; 0 if a range goes downwards."""
        return len(self.layers) * len(self.numbers)

    @property
    def heads(self) -> Iterator[Head]:
        return itertools.product(self.layers, self.numbers)


def write_heads(path: Path | str, heads: Iterable[Head], made_for: Shape | None = None) -> None:
    """Writes {"layer": [heads]}, and beside the layers the model that the heads were made for."""
    pairs = checked_heads(str(path), heads)
    made_for = made_for or getattr(heads, "made_for", None)
    listed: dict[str, object] = {
        str(layer): [head for _, head in heads_of_layer]
        for layer, heads_of_layer in itertools.groupby(sorted(pairs or ()), lambda pair: pair[0])
    }
    if made_for:
        listed[MADE_FOR] = asdict(made_for)
    write_whole(path, json.dumps(listed, indent=1) + "\n")


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
    """The heads of a file as it lists them; numbers are not checked yet."""

    pairs: list[Head]
    made_for: Shape | None  # the model; None if the file does not say


def _parse(text: str, path: Path) -> _ListedHeads:
    """The content of a file; a ValueError or TypeError for a text of another form."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        names = [name for name, _ in pairs]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise UsageError(
                f"{str(path)!r} names layer {twice} twice; put its heads into one list.",
                option="heads",
                value=twice,
            )
        return dict(pairs)

    listed = json.loads(text, object_pairs_hook=once)
    made_for = None
    if isinstance(listed, dict):
        if (shape := listed.pop(MADE_FOR, None)) is not None:
            made_for = _read_shape(shape)
        listed = [(int(layer), head) for layer, heads in listed.items() for head in heads]
    return _ListedHeads([(layer, head) for layer, head in listed], made_for)


def _check_pairs(heads: _ListedHeads, path: Path) -> None:
    """Refuses a pair that is no head, stands there twice, or is not in the model it is made for."""
    pairs, made_for = heads
    for number, (layer, head) in enumerate(pairs):
        named = f"{str(path)!r} names head {head!r} in layer {layer!r}"
        if not (counts_from_0(layer) and counts_from_0(head)):
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


def _read_shape(fields: Any) -> Shape:
    if not isinstance(fields, dict) or not {"layers", "heads"} <= fields.keys():
        raise ValueError(f"{MADE_FOR} lacks layers or heads")
    shape = Shape(**{name: fields[name] for name in Shape.__dataclass_fields__ if name in fields})
    if any(type(number) is not int or number < 1 for number in (shape.layers, shape.heads)):
        raise ValueError(f"{MADE_FOR} gives {shape.layers!r} layers of {shape.heads!r} heads")
    return shape
