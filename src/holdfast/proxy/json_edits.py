"""Adds text to a JSON document and removes elements of its lists, character by character.

All other characters stay as they are. Parsing the document and writing it again would change its
spaces, escapes and numbers, and with them what a server caches or signs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

JsonPath = tuple[str | int, ...]  # the keys and positions that lead to a value

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Insertion:
    """Adds text to the string at a path, or adds a part to the list there.

    Args:
        path: the string, which may be null, or with `part_type` the list.
        at_end: whether the text goes behind the string, rather than in front of it.
        part_type: the type of the part; "" adds text to a string. The part becomes the first of the
            list, as `{"type": part_type, "text": text}`, which is how chat APIs write them.
    """

    path: JsonPath
    text: str
    at_end: bool = False
    part_type: str = ""


@dataclass(frozen=True)
class Removal:
    """Removes the element of a list at a path; it must not be the last one."""

    path: JsonPath

    @property
    def next_element(self) -> JsonPath:
        """The path of the element after it."""
        *parents, number = self.path
        assert isinstance(number, int)
        return (*parents, number + 1)


JsonEdit = Insertion | Removal


class _Span(NamedTuple):
    """The characters of a value in a document: from `start` to before `end`."""

    start: int
    end: int


class _Splice(NamedTuple):
    """A replacement: the characters of a document from `start` to `end`, and their new text."""

    start: int
    end: int
    text: str


def edit_document(document: str, changes: Sequence[JsonEdit]) -> str:
    """Applies changes to a valid JSON `document`, in which their paths have to exist."""
    paths = [change.path for change in changes]
    paths += [change.next_element for change in changes if isinstance(change, Removal)]
    spans = _spans(document, paths)
    splices = sorted(_splice(document, spans, change) for change in changes)
    for splice in reversed(splices):
        document = f"{document[: splice.start]}{splice.text}{document[splice.end :]}"
    return document


def _splice(document: str, spans: Mapping[JsonPath, _Span], change: JsonEdit) -> _Splice:
    """Returns the replacement that carries out a change."""
    start, end = spans[change.path]
    if isinstance(change, Removal):
        return _Splice(start, spans[change.next_element].start, "")
    if change.part_type:
        part = json.dumps({"type": change.part_type, "text": change.text})
        is_empty = document[_after_space(document, start + 1)] == "]"
        return _Splice(start + 1, start + 1, part if is_empty else f"{part}, ")
    if document[start:end] == "null":
        return _Splice(start, end, json.dumps(change.text.rstrip()))
    position = end - 1 if change.at_end else start + 1  # inside the quotation marks
    return _Splice(position, position, json.dumps(change.text)[1:-1])


def _spans(document: str, paths: Sequence[JsonPath]) -> dict[JsonPath, _Span]:
    """Returns where the values at these paths begin and end."""
    spans = dict[JsonPath, _Span]()
    parents = {path[:length] for path in paths for length in range(len(path))}
    targets = frozenset(paths)

    def scan(start: int, path: JsonPath) -> int:
        """Scans the value that begins here, notes the spans in it, and returns where it ends."""
        if path not in parents:
            end = _DECODER.raw_decode(document, start)[1]
        elif document[start] == "{":
            end = scan_members(start, path)
        elif document[start] == "[":
            end = scan_elements(start, path)
        if path in targets:
            spans[path] = _Span(start, end)
        return end

    def scan_members(start: int, path: JsonPath) -> int:
        """Scans an object from its brace on."""
        position = _after_space(document, start + 1)
        while document[position] != "}":
            key, end_of_key = _DECODER.raw_decode(document, position)
            colon = _after_space(document, end_of_key)
            end_of_value = scan(_after_space(document, colon + 1), (*path, key))
            position = _after_comma(document, end_of_value)
        return position + 1

    def scan_elements(start: int, path: JsonPath) -> int:
        """Scans a list from its bracket on."""
        position = _after_space(document, start + 1)
        number = 0
        while document[position] != "]":
            position = _after_comma(document, scan(position, (*path, number)))
            number += 1
        return position + 1

    scan(_after_space(document, 0), ())
    return spans


def _after_space(document: str, position: int) -> int:
    """Returns the position of the first character that is not white space."""
    space = _SPACE.match(document, position)
    assert space is not None
    return space.end()


def _after_comma(document: str, position: int) -> int:
    """Returns the position after a comma and the space around it; without one, after the space."""
    position = _after_space(document, position)
    return _after_space(document, position + 1) if document[position] == "," else position
