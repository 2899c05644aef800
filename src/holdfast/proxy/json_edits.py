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


def edit_document(document: str, changes: Sequence[Change]) -> str:
    """The valid JSON `document` with changes, whose paths it has."""
    removals = [change for change in changes if isinstance(change, Removal)]
    spans = _spans(document, [c.path for c in changes] + [r.next_element for r in removals])
    for start, end, text in sorted((_splice(document, spans, c) for c in changes), reverse=True):
        document = f"{document[:start]}{text}{document[end:]}"
    return document


def _splice(
    document: str, spans: Mapping[Path, tuple[int, int]], change: Change
) -> tuple[int, int, str]:
    """Which characters of the document to replace, and by what."""
    start, end = spans[change.path]
    if isinstance(change, Removal):
        return start, spans[change.next_element][0], ""
    if change.part_type:
        part = json.dumps({"type": change.part_type, "text": change.text})
        is_empty = document[_after_space(document, start + 1)] == "]"
        return start + 1, start + 1, part if is_empty else f"{part}, "
    if document[start:end] == "null":
        return start, end, json.dumps(change.text.rstrip())
    at = end - 1 if change.at_end else start + 1  # behind the quotation mark, or before it
    return at, at, json.dumps(change.text)[1:-1]


def _spans(document: str, paths: Sequence[Path]) -> dict[Path, tuple[int, int]]:
    """Where the values at these paths begin and end."""
    spans = dict[Path, tuple[int, int]]()
    on_the_way = {path[:length] for path in paths for length in range(len(path))}
    wanted = frozenset(paths)

    def scan(start: int, path: Path) -> int:
        """Notes the spans in the value that begins here, and returns where it ends."""
        if path not in on_the_way:
            end = _DECODER.raw_decode(document, start)[1]
        elif document[start] == "{":
            end = scan_members(start, path)
        elif document[start] == "[":
            end = scan_elements(start, path)
        if path in wanted:
            spans[path] = start, end
        return end

    def scan_members(start: int, path: Path) -> int:
        at = _after_space(document, start + 1)
        while document[at] != "}":
            key, at = _DECODER.raw_decode(document, at)
            at = _after_space(document, at) + 1  # behind the colon
            at = scan(_after_space(document, at), (*path, key))
            at = _after_comma(document, at)
        return at + 1

    def scan_elements(start: int, path: Path) -> int:
        at, number = _after_space(document, start + 1), 0
        while document[at] != "]":
            at = _after_comma(document, scan(at, (*path, number)))
            number += 1
        return at + 1

    scan(_after_space(document, 0), ())
    return spans


def _after_space(document: str, at: int) -> int:
    space = _SPACE.match(document, at)
    assert space is not None
    return space.end()


def _after_comma(document: str, at: int) -> int:
    at = _after_space(document, at)
    return _after_space(document, at + 1) if document[at] == "," else at
