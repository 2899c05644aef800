"""Reads logs of any format into transcripts: trees of events, with one active path."""

from typing import TYPE_CHECKING, Any

from holdfast.lazy_imports import import_name

if TYPE_CHECKING:
    from holdfast.transcripts.formats import FORMATS
    from holdfast.transcripts.reader import Format, Unread
    from holdfast.transcripts.reading import LogFile, read_transcripts
    from holdfast.transcripts.transcript import Event, EventKind, Transcript, linear_transcript

_LATER = {
    "FORMATS": "holdfast.transcripts.formats",
    **dict.fromkeys(("Format", "Unread"), "holdfast.transcripts.reader"),
    **dict.fromkeys(("LogFile", "read_transcripts"), "holdfast.transcripts.reading"),
    **dict.fromkeys(
        ("Event", "EventKind", "Transcript", "linear_transcript"), "holdfast.transcripts.transcript"
    ),
}


def __dir__() -> list[str]:
    return [*_LATER]


def __getattr__(name: str) -> Any:
    return import_name(__name__, _LATER, name)
