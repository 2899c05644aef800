"""The interface of a format of logs: how its values are recognised and read.

A value in a file is a dialog, a call of a model, or an event. A reader turns the values of one file
into transcripts, and yields an `Unread` for each part that it did not understand or left out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.errors import shortened
from holdfast.plurals import count_of
from holdfast.transcripts.chat_messages import is_message
from holdfast.transcripts.transcript import Event, Malformed, Transcript, linear_transcript
from holdfast.validation.json_values import fields_of

# --- Values


class Located(NamedTuple):
    """A value in a file, and its source, such as `july.jsonl, line 3`."""

    source: str
    value: Any


@dataclass(frozen=True)
class Markdown:
    """The value of a Markdown file: its whole text."""

    text: str


class SourcedRecord(NamedTuple):
    """A value that is an object, and its source; `separate_objects` finds them."""

    source: str
    fields: Mapping[str, Any]


Values = list[Located]  # of one file


# --- Formats


@dataclass(frozen=True)
class Unread:
    """A part of a file that is in no transcript.

    Args:
        sentence: which part, and why.
        stage: when it was found: 0 while parsing lines, 1 among values in no format, 2 by a
            format's reader. Parts of a file that were read apart are reported in this order, as if
            it had been read at once.
    """

    sentence: str
    stage: int = field(default=0, compare=False)


Reader = Callable[[Values], Iterator[Transcript | Unread]]
# reads any iterable of values once, so it is a `Reader` too
StreamingReader = Callable[[Iterable[Located]], Iterator[Transcript | Unread]]


@dataclass(frozen=True)
class Format:
    """A format of logs.

    Args:
        name: the value of `--format` that selects it.
        recognises: whether a value is in this format.
        read: reads the values of a file.
        has_events: whether a value is an event of a session. Files of such formats have further
            lines with a `type` that are outside the dialog, such as snapshots of files.
        other_types: the known types of these lines; lines of other types are reported.
        reaches_back: whether a value changes events before it, as a rewind does, so that the rest
            of a file cannot be read without its beginning.
        streams: whether `read` iterates over its values only once and does not keep them, so that
            a file may be larger than memory.
        is_per_value: whether every value is a dialog, so that any part of a file can be read alone.
    """

    name: str
    recognises: Callable[[Any], bool]
    read: Reader
    has_events: bool = False
    other_types: frozenset[str] = frozenset()
    reaches_back: Callable[[Any], bool] = lambda value: False
    streams: bool = False
    is_per_value: bool = False


def dialog_format(
    name: str, recognises: Callable[[Any], bool], read: Callable[[Any], list[Event]]
) -> Format:
    """Makes a format in which every value is a dialog.

    Args:
        name: the value of `--format` that selects it.
        recognises: whether a value is in this format.
        read: returns the events of a dialog, or raises `Malformed`. If the user names the format,
            it also gets values that `recognises` refuses.
    """

    def read_dialogs(values: Iterable[Located]) -> Iterator[Transcript | Unread]:
        for source, value in values:
            try:
                yield linear_transcript(source, read(value))
            except Malformed as error:
                yield Unread(f"{source}: {error}")

    return Format(name, recognises, read_dialogs, is_per_value=True)


# --- Helpers of readers


def unknown_lines(file: Path | str, types: Mapping[str, int], stage: int = 0) -> Iterator[Unread]:
    """Reports how many lines or events of each unknown type a file has."""
    for kind, count in types.items():
        lines = count_of(count, "line")
        yield Unread(f"{file}: left out {lines} of the unknown type {shortened(kind)}", stage)


def separate_objects(values: Values) -> tuple[list[SourcedRecord], list[Unread]]:
    """Separates the values that are objects from the rest, which become `Unread`."""
    records = [SourcedRecord(*located) for located in values if isinstance(located.value, Mapping)]
    others = [
        Unread(f"{source}: {shortened(value)} is not an object")
        for source, value in values
        if not isinstance(value, Mapping)
    ]
    return records, others


def has_messages(value: Any) -> bool:
    """Whether a value is an object with a list of messages, other than a run of LangSmith's."""
    fields = fields_of(value)
    return isinstance(fields.get("messages"), list) and "run_type" not in fields


def first_message(value: Any) -> Mapping[str, Any]:
    """Returns the first message of a list, or of an object that has one; {} if there is none."""
    messages = value["messages"] if has_messages(value) else value
    return fields_of(messages[0]) if isinstance(messages, list) and messages else {}


def is_message_list(value: Any) -> bool:
    """Whether a value is a list that begins with a message."""
    return isinstance(value, list) and bool(value) and is_message(value[0])


def is_responses_item(value: Mapping[str, Any]) -> bool:
    """Whether a message is of a kind that only the Responses API has."""
    return "type" in value and "role" not in value


def file_of(source: str) -> str:
    """Returns the file in a source such as `july.jsonl, line 3`."""
    return source.rpartition(", ")[0]


def position_of(source: str) -> str:
    """Returns the line or entry in a source such as `july.jsonl, line 3`."""
    return source.rpartition(", ")[2]
