"""A format of logs: how its values are recognised and read, and what is left out.

A value in a file is a dialog, a call of a model, or an event. A reader turns the values of one file
into transcripts, and says in `Unread` what it did not understand or left out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from holdfast.errors import shortened
from holdfast.transcripts.chat_messages import is_message
from holdfast.transcripts.transcript import Event, Malformed, Transcript, linear
from holdfast.validation.json_values import fields_of


class Located(NamedTuple):
    """A value in a file, and its source, such as `july.jsonl, line 3`."""

    source: str
    value: Any


@dataclass(frozen=True)
class Markdown:
    """The value of a file that is Markdown, and no JSON."""

    text: str


class Record(NamedTuple):
    """A value in a file that is an object, and its source."""

    source: str
    fields: Mapping[str, Any]


Values = list[Located]


@dataclass(frozen=True)
class Unread:
    """A part of a file that is in no transcript."""

    sentence: str  # which part, and why
    # when it is found: 0 for a line, 1 for a value in no format, 2 by the reader of a format
    stage: int = field(default=0, compare=False)


Reader = Callable[[Values], Iterator[Transcript | Unread]]
StreamingReader = Callable[[Iterable[Located]], Iterator[Transcript | Unread]]


@dataclass(frozen=True)
class Format:
    """A format of logs.

    Args:
        name: as `--format` takes it.
        recognises: whether a value is in this format.
        read: reads the values of a file.
        has_events: whether a value is an event of a session; a file of them has other lines with a
            `type`, such as snapshots of files, which are outside the dialog.
        reaches_back: whether a value changes what was read before it, such as a rewind, so that
            those from somewhere in the middle on cannot be read alone.
        streams: whether `read` takes any iterable, once, and does not keep the values, so that a
            file can be larger than memory.
        is_per_value: whether every value is a dialog, so that any part of a file can be read alone.
    """

    name: str
    recognises: Callable[[Any], bool]
    read: Reader
    has_events: bool = False
    reaches_back: Callable[[Any], bool] = lambda value: False
    streams: bool = False
    is_per_value: bool = False


def dialog_per_value(read: Callable[[Any], list[Event]]) -> StreamingReader:
    """A reader of a format in which every value is a dialog."""

    def transcripts(values: Iterable[Located]) -> Iterator[Transcript | Unread]:
        for where, value in values:
            try:
                yield linear(where, read(value))
            except Malformed as error:
                yield Unread(f"{where}: {error}")

    return transcripts


def objects(values: Values) -> tuple[list[Record], list[Unread]]:
    """The values that are objects, and the others as unread."""
    records = [Record(*located) for located in values if isinstance(located.value, Mapping)]
    others = [
        Unread(f"{where}: {shortened(value)} is not an object")
        for where, value in values
        if not isinstance(value, Mapping)
    ]
    return records, others


def has_messages(value: Any) -> bool:
    """Whether a value is an object with a list of messages, and no run of LangSmith's."""
    fields = fields_of(value)
    return isinstance(fields.get("messages"), list) and "run_type" not in fields


def first_message(value: Any) -> Mapping[str, Any]:
    """The first message of a list, or of an object that has one; {} if there is none."""
    messages = value["messages"] if has_messages(value) else value
    return fields_of(messages[0]) if isinstance(messages, list) and messages else {}


def is_message_list(value: Any) -> bool:
    """Whether a value is a list that begins with a message."""
    return isinstance(value, list) and bool(value) and is_message(value[0])


def is_item(value: Mapping[str, Any]) -> bool:
    """Whether a message is an item of the Responses API that no other API has."""
    return "type" in value and "role" not in value


def file_of(where: str) -> str:
    """The file in a source such as `july.jsonl, line 3`."""
    return where.rpartition(", ")[0]


def position_of(where: str) -> str:
    """The line or entry in a source such as `july.jsonl, line 3`."""
    return where.rpartition(", ")[2]
