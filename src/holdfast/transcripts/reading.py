"""Reads log files into transcripts.

For example:

    july.jsonl -> LogFile(july.jsonl, transcripts=(Transcript, ...), unread=("line 3: ...",))
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from holdfast.errors import UnknownName, UsageError, shortened
from holdfast.plurals import count_of
from holdfast.transcripts.containers import Contents
from holdfast.transcripts.finding import FoundLog, find_logs
from holdfast.transcripts.formats import FORMATS
from holdfast.transcripts.reader import Unread
from holdfast.transcripts.transcript import Transcript
from holdfast.transcripts.value_reading import read_values


@dataclass(frozen=True)
class LogFile:
    """The transcripts of a file, and what was not read.

    Args:
        unread: a sentence for each line that was not understood and each part that was left out.
        digest: a hash of the contents, which changes with them; "" if the file was not read.
    """

    path: Path
    transcripts: tuple[Transcript, ...] = ()
    unread: tuple[str, ...] = ()
    digest: str = field(default="", repr=False)


def read_transcripts(
    paths: Path | str | Sequence[Path | str], format_name: str | None = None
) -> Iterator[LogFile]:
    """Reads log files, including those in folders.

    All files are found at once; each is read when the iterator reaches it. If a file in a folder
    cannot be read, for example because it is a truncated archive, the `unread` of its `LogFile`
    says so.

    Args:
        paths: log files, folders of them, or folders of runs; logs may be compressed by gzip,
            bzip2, xz or zstandard.
        format_name: one of `FORMATS`; None detects the format of each value.

    Raises:
        UnknownName: there is no such format.
        UsageError: a path does not exist, a folder has no logs, a run has no finished conversation,
            or a named file is compressed in another way; while iterating: a named file cannot be
            read.
    """
    if format_name is not None and format_name not in FORMATS:
        raise UnknownName("format", format_name, FORMATS)
    if isinstance(paths, (Path, str)):
        paths = [paths]
    logs = [log for path in paths for log in find_logs(Path(path))]
    return (_read_file(log, format_name) for log in logs)


def _read_file(log: FoundLog, format_name: str | None) -> LogFile:
    """Reads a log; the problem with one that the user did not name is reported."""
    path = log.path
    if log.obstacle:
        return LogFile(path, unread=(f"{path} {log.obstacle}",))
    contents = Contents(path)
    try:
        parts = list(read_values(path, contents, format_name))
        digest = contents.digest
    except UsageError as error:
        if log.is_named:
            raise
        return LogFile(path, unread=(str(error).removesuffix("."),))
    transcripts = tuple(part for part in parts if isinstance(part, Transcript))
    unread = [part.sentence for part in parts if isinstance(part, Unread)]
    unread_parts = sum(map(count_unread_parts, transcripts), Counter[str]())
    if unread_parts:
        unread.append(unread_parts_sentence(path, unread_parts))
    return LogFile(path, transcripts, tuple(unread), digest)


def count_unread_parts(transcript: Transcript) -> Counter[str]:
    """Counts the parts of messages on the active path that are not read, by their types."""
    return Counter(chain.from_iterable(event.unread for event in transcript.path))


def unread_parts_sentence(path: Path, counts: Mapping[str, int]) -> str:
    """Says how many parts of messages in a file are not read, such as `3 of the type image`."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    kinds = ", ".join(f"{count} of the type {shortened(kind)}" for kind, count in ordered)
    parts = count_of(sum(counts.values()), "part")
    return f"{path}: left out {parts} of messages that are not read ({kinds})"
