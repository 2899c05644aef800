"""Sets of heads and of layers as text: in the specs of methods, and in files.

For example:

    the spec "3.0/20-21.0-1"    <-> HeadSet({(3, 0), (20, 0), (20, 1), (21, 0), (21, 1)})
    the file {"3": [0, 5]}      <-> HeadSet({(3, 0), (3, 5)})
    the spec "20-22"             -> LayerSet({20, 21, 22})
"""

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
from holdfast.methods.heads import Head, HeadSet, LayerSet, Shape, counts_from_0, to_head_set

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
