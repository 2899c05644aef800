"""Reads the values of a file into transcripts, each with the reader of its format.

For example:

    {"messages": [...]}   -> Transcript(format="openai")
    {"level": "debug"}    -> Unread("july.jsonl, line 2: {'level': 'debug'} is in no known format")
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from holdfast.errors import shortened
from holdfast.transcripts.formats import FORMATS, can_read_as, format_of
from holdfast.transcripts.parsing import is_bookkeeping_event
from holdfast.transcripts.reader import Format, Located, Markdown, Unread, Values, unknown_lines
from holdfast.transcripts.transcript import Transcript
from holdfast.validation.json_values import fields_of


class NotByItself(Exception):
    """A part of a file cannot be read without the rest of it."""


def read_values(
    path: Path,
    parsed: Iterable[Located | Unread],
    format_name: str | None,
    required_format: str = "",
) -> Iterator[Transcript | Unread]:
    """Reads the values in a file into transcripts, each with the reader of its format.

    Args:
        required_format: the format that all values have to be in; "" accepts any.

    Raises:
        NotByItself: a value is not in the required format, or depends on what is before the part.
    """
    by_format = _ValuesByFormat(parsed, format_name, required_format)
    from_readers: list[Unread] = []  # reported after what is wrong with single lines
    for name, values in by_format:
        for part in _read_format(path, name, values, is_part=bool(required_format)):
            if isinstance(part, Unread):
                from_readers.append(replace(part, stage=2))
            else:
                yield part
    if by_format.is_empty and not required_format:
        yield Unread(f"{path} is empty")
    yield from by_format.problems
    yield from _unknown_values(path, by_format.unknown, [FORMATS[n] for n in by_format.formats])
    yield from from_readers


@dataclass
class _ValuesByFormat:
    """The values of a file, grouped by format, to be iterated over once.

    Values in the first format are passed on as they are parsed, so that a file may be larger than
    memory. The others, of which there are few, are kept until the end.

    Args:
        named_format: the format that the user named; None detects the format of each value.
        required_format: the format that every value of a part of a file has to be in; "" for a
            whole file.
        formats: the formats that occur, in the order in which they are met.
        others: the values in other formats than the first.
        unknown: the values in no format.
        problems: lines that are not JSON, and values that cannot be read in `named_format`.
    """

    parsed: Iterable[Located | Unread]
    named_format: str | None
    required_format: str
    formats: list[str] = field(default_factory=list)
    others: dict[str, Values] = field(default_factory=dict)
    unknown: Values = field(default_factory=list)
    problems: list[Unread] = field(default_factory=list)
    is_empty: bool = True

    def __iter__(self) -> Iterator[tuple[str, Iterable[Located]]]:
        """Yields each format with its values; values that the caller leaves unread are skipped."""
        values = self._values_in_first_format()
        first = next(values, None)
        if first is not None:
            yield self.formats[0], chain([first], values)
            for _ in values:  # those that the reader left, to find the values in other formats
                pass
        yield from self.others.items()

    def _values_in_first_format(self) -> Iterator[Located]:
        """Yields the values in the first one's format; keeps the other values and the problems."""
        for item in self.parsed:
            self.is_empty = False
            if isinstance(item, Unread):
                self.problems.append(item)
                continue
            for value, detected in _detect_formats(item):
                name = self._format_of(value, detected)
                if name is None:
                    continue
                if name not in self.formats:
                    self.formats.append(name)
                if name == self.formats[0]:
                    yield value
                else:
                    self.others.setdefault(name, []).append(value)

    def _format_of(self, item: Located, detected: str | None) -> str | None:
        """Returns the format to read a value in; None if it cannot be read, which is noted."""
        name = self.named_format or detected
        if name is None:
            self.unknown.append(item)
            return None
        if self.named_format is not None and not can_read_as(item.value, self.named_format):
            sentence = f"{item.source} is in the format {detected}, not {self.named_format}"
            self.problems.append(Unread(sentence))
            return None
        if self.required_format and (
            name != self.required_format or FORMATS[name].reaches_back(item.value)
        ):
            raise NotByItself(name)
        return name


class _DetectedValue(NamedTuple):
    """A value, and the format that recognises it; None if none does."""

    located: Located
    form: str | None


def _detect_formats(item: Located) -> list[_DetectedValue]:
    """Finds the format of a value. A value that is in no format itself, but lists values that are,
    such as `{"dialogs": [{"messages": [...]}, ...]}`, stands for these.
    """
    form = format_of(item.value)
    if form is not None or is_bookkeeping_event(item.value):
        return [_DetectedValue(item, form)]
    listed: list[_DetectedValue] = []
    for name, entries in fields_of(item.value).items():
        if not isinstance(entries, list) or not entries or format_of(entries[0]) is None:
            continue
        for number, entry in enumerate(entries, start=1):
            located = Located(f"{item.source}, {name} {number}", entry)
            listed.append(_DetectedValue(located, format_of(entry)))
    return listed or [_DetectedValue(item, None)]


def _read_format(
    path: Path, name: str, values: Iterable[Located], is_part: bool
) -> Iterator[Transcript | Unread]:
    """Reads values in one format, and marks the transcripts with its name."""
    form = FORMATS[name]
    try:
        if not (form.streams or form.is_per_value):
            values = list(values)
            values = values[: len(values) - _repeated_values(values)]
        for part in form.read(values):  # type: ignore[arg-type]
            yield replace(part, format=name) if isinstance(part, Transcript) else part
    except RecursionError:
        if is_part:
            raise NotByItself(name) from None
        yield Unread(f"{path}: a value in the format {name} is nested too deeply to be read")


def _repeated_values(values: Values) -> int:
    """Returns how many values at the end of a file repeat all those before, once or several times:
    a log was appended to itself.
    """
    first = values[0].value
    starts = [n for n, (_, value) in enumerate(values) if n and value == first]
    for length in starts:
        others = range(length, len(values))
        if len(values) % length == 0 and all(
            values[n].value == values[n - length].value for n in others
        ):
            return len(others)
    return 0


def _unknown_values(path: Path, values: Values, formats: Sequence[Format]) -> Iterator[Unread]:
    """Reports the values of a file that are in no format.

    In the log of a session, lines outside the dialog have types of their own; those of unknown
    types are counted.
    """
    has_events = any(form.has_events for form in formats)
    known_types = frozenset[str]().union(*(form.other_types for form in formats))
    unknown_types: Counter[str] = Counter()
    for source, value in values:
        if not (has_events and is_bookkeeping_event(value)):
            content = "its Markdown" if isinstance(value, Markdown) else shortened(value)
            yield Unread(f"{source}: {content} is in no known format", stage=1)
        elif value["type"] not in known_types:
            unknown_types[value["type"]] += 1
    yield from unknown_lines(path, unknown_types, stage=1)
