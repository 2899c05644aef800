"""Adds text to a JSON document, removes elements of its lists, and leaves every other character as
it is.

Writing a parsed document out again would change its spaces, escapes and numbers, and with them what
a server caches or signs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Path = tuple[str | int, ...]  # the keys and positions that lead to a value

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Insertion:
    """Text for the string at a path, where null is an empty one; or, with `part_type`, for a new
    first part of the list there.

    The new part is `{"type": part_type, "text": text}`, as chat APIs write parts of a message.
    """

    path: Path
    text: str
    at_end: bool = False
    part_type: str = ""


@dataclass(frozen=True)
class Removal:
    """Removes the element of a list at a path; it must not be the last."""

    path: Path

    @property
    def next_element(self) -> Path:
        """The path of the element behind it."""
        *parents, number = self.path
        assert isinstance(number, int)
        return (*parents, number + 1)


Change = Insertion | Removal


class _Span(NamedTuple):
    """Where a value begins and ends in a document."""

    start: int
    end: int


class _Splice(NamedTuple):
    """The characters of a document to replace, and the text that replaces them."""

    start: int
    end: int
    text: str


def edit_document(document: str, changes: Sequence[Change]) -> str:
    """The valid JSON `document` with changes, whose paths it has."""
    paths = [change.path for change in changes]
    paths += [change.next_element for change in changes if isinstance(change, Removal)]
    spans = _spans(document, paths)
    splices = sorted(_splice(document, spans, change) for change in changes)
    for splice in reversed(splices):
        document = f"{document[: splice.start]}{splice.text}{document[splice.end :]}"
    return document


def _splice(document: str, spans: Mapping[Path, _Span], change: Change) -> _Splice:
    """The replacement that makes a change."""
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


def _spans(document: str, paths: Sequence[Path]) -> dict[Path, _Span]:
    """Where the values at these paths begin and end."""
    spans = dict[Path, _Span]()
    parents = {path[:length] for path in paths for length in range(len(path))}
    targets = frozenset(paths)

    def scan(start: int, path: Path) -> int:
        """Notes the spans in the value that begins here, and returns where it ends."""
        if path not in parents:
            end = _DECODER.raw_decode(document, start)[1]
        elif document[start] == "{":
            end = scan_members(start, path)
        elif document[start] == "[":
            end = scan_elements(start, path)
        if path in targets:
            spans[path] = _Span(start, end)
        return end

    def scan_members(start: int, path: Path) -> int:
        position = _after_space(document, start + 1)
        while document[position] != "}":
            key, end_of_key = _DECODER.raw_decode(document, position)
            colon = _after_space(document, end_of_key)
            end_of_value = scan(_after_space(document, colon + 1), (*path, key))
            position = _after_comma(document, end_of_value)
        return position + 1

    def scan_elements(start: int, path: Path) -> int:
        position = _after_space(document, start + 1)
        number = 0
        while document[position] != "]":
            position = _after_comma(document, scan(position, (*path, number)))
            number += 1
        return position + 1

    scan(_after_space(document, 0), ())
    return spans


def _after_space(document: str, position: int) -> int:
    space = _SPACE.match(document, position)
    assert space is not None
    return space.end()


def _after_comma(document: str, position: int) -> int:
    """The position behind a comma and the space around it; without one, behind the space."""
    position = _after_space(document, position)
    return _after_space(document, position + 1) if document[position] == "," else position
