"""Head sets as they are spelled, and the files that hold them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from holdfast.errors import UsageError
from holdfast.files import write_whole
from holdfast.methods.heads import Head, HeadSet, Shape, checked_heads

MADE_FOR = "made_for"  # the one key of a head file that is no layer
_MOST_HEADS = 100_000  # in a list; no model has as many


def read_heads(spec: str) -> HeadSet:
    """Reads "3.0/3.5/7.1" (layer 3 heads 0 and 5, layer 7 head 1), in which a number may be a range
    ("20-29.0-8": heads 0 to 8 of layers 20 to 29); or a JSON file: [[3, 0], [3, 5]] or
    {"3": [0, 5]}.

    A file may say beside its layers what model it was made for, as `write_heads` does.

    Raises:
        UsageError: `spec` has another form or too many heads; the file cannot be read, or has a
            head twice, a negative or a too large one.
    """
    if spec.endswith(".json"):
        return _read_file(Path(spec))
    number = r"(\d{1,9})(?:-(\d{1,9}))?"
    matches = [re.fullmatch(rf"{number}\.{number}", part) for part in spec.split("/")]
    if not all(matches):
        raise UsageError(
            "Heads are written LAYER.HEAD/LAYER.HEAD, as in heads=3.0/3.5 or heads=3-5.0-7, or name"
            f" a JSON file, not {spec!r}."
        )
    rectangles = [
        (range(int(a), int(b or a) + 1), range(int(c), int(d or c) + 1))
        for a, b, c, d in (match.groups() for match in matches if match)
    ]
    counts = [len(layers) * len(heads) for layers, heads in rectangles]
    if not all(counts) or sum(counts) > _MOST_HEADS:
        raise UsageError(
            f"A range of heads goes from the lower number to the higher one, and {_MOST_HEADS:,}"
            f" heads are the most, not {spec!r}."
        )
    return HeadSet(itertools.chain(*(itertools.product(*sides) for sides in rectangles)))


def write_heads(path: Path | str, heads: Iterable[Head], made_for: Shape | None = None) -> None:
    """Writes the published form, {"layer": [heads]}, and with `made_for` the model beside the
    layers.

    Raises:
        UsageError: no heads, or no pairs of whole numbers.
        RecordsError: the file cannot be written.
    """
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
    try:
        listed = json.loads(
            path.read_text(encoding="utf-8"), object_pairs_hook=lambda pairs: _once(path, pairs)
        )
        if isinstance(listed, dict):
            if (shape := listed.pop(MADE_FOR, None)) is not None:
                made_for = _read_shape(shape)
            listed = [(int(layer), head) for layer, heads in listed.items() for head in heads]
        pairs = [(layer, head) for layer, head in listed]
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            f"Cannot read heads from {str(path)!r} ({error}); give [[layer, head], ...] or"
            ' {"layer": [head, ...]}.'
        ) from None
    if not pairs:
        raise UsageError(
            f'{str(path)!r} names no heads; give [[layer, head], ...] or {{"layer": [head, ...]}}.'
        )
    seen: set[Head] = set()
    for pair in pairs:
        _check_pair(path, pair, seen, made_for)
        seen.add(pair)
    return HeadSet(seen, made_for, str(path))


def _check_pair(path: Path, pair: Head, seen: set[Head], made_for: Shape | None) -> None:
    layer, head = pair
    if any(type(part) is not int or part < 0 for part in pair):
        raise UsageError(
            f"{str(path)!r} names head {head!r} in layer {layer!r}; both are whole numbers"
            " counted from 0."
        )
    if pair in seen:
        raise UsageError(
            f"{str(path)!r} names head {head} in layer {layer} twice; take one of them out."
        )
    if made_for and (layer >= made_for.layers or head >= made_for.heads):
        raise UsageError(
            f"{str(path)!r} names head {head} in layer {layer}, and the model it was made"
            f" for has {made_for.layers} layers of {made_for.heads} heads, counted from 0;"
            " profile the model again."
        )


def _read_shape(fields: Any) -> Shape:
    if not isinstance(fields, dict) or not {"layers", "heads"} <= fields.keys():
        raise ValueError(f"{MADE_FOR} lacks layers or heads")
    made_for = Shape(
        fields["layers"],
        fields["heads"],
        str(fields.get("model", "")),
        str(fields.get("fingerprint", "")),
    )
    if any(type(number) is not int or number < 1 for number in (made_for.layers, made_for.heads)):
        raise ValueError(f"{MADE_FOR} gives {made_for.layers!r} layers of {made_for.heads!r} heads")
    return made_for


def _once(path: Path, pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"{str(path)!r} names layer {twice} twice; put its heads into one list.")
    return dict(pairs)


def spell_heads(heads: Iterable[Head]) -> str:
    """The one spec of a head set, in order of layer and head: a range where it is the same heads,
    more than one, of more than one layer, without a gap; else a list.
    """
    pairs = sorted(heads)
    (first, low), (last, high) = pairs[0], pairs[-1]
    sides = range(first, last + 1), range(low, high + 1)
    is_full = len(pairs) == len(sides[0]) * len(sides[1])
    if first < last and low < high and is_full and pairs == list(itertools.product(*sides)):
        return f"{first}-{last}.{low}-{high}"
    return "/".join(f"{layer}.{head}" for layer, head in pairs)
