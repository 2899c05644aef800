"""Reads log files into transcripts, each value with the reader of its format."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from holdfast.errors import UnknownName, UsageError, shortened
from holdfast.transcripts.containers import Contents, contents_of
from holdfast.transcripts.finding import FoundLog, find_logs
from holdfast.transcripts.formats import FORMATS, format_of, may_be
from holdfast.transcripts.parsing import is_bookkeeping_event
from holdfast.transcripts.reader import Unread, Values
from holdfast.transcripts.transcript import Transcript


@dataclass(frozen=True)
class LogFile:
    """The transcripts of a file, and what was not read.

    Args:
        unread: a sentence for each line that was not understood, and each part that was left out.
        text: its content, unpacked if it was compressed; "" if it was not read.
    """

    path: Path
    transcripts: tuple[Transcript, ...] = ()
    unread: tuple[str, ...] = ()
    text: str = field(default="", repr=False)


def read_transcripts(
    paths: Path | str | Sequence[Path | str], format_name: str | None = None
) -> Iterator[LogFile]:
    """Reads log files, including those in folders.

    The files are found at once, and each is read when the iterator reaches it. A file of a folder
    that cannot be read, such as one that was cut off while it was compressed, is a `LogFile` whose
    `unread` says why.

    Args:
        paths: log files, folders of them, or folders of runs; logs may be gzipped, or compressed
            by zstandard.
        format_name: one of `FORMATS`; None detects it for each value.

    Raises:
        UnknownName: there is no such format.
        UsageError: a path does not exist, a folder has no logs, a run has no finished conversation,
            or a file was given that is compressed in another way; while iterating, a file that was
            given cannot be read.
    """
    if format_name is not None and format_name not in FORMATS:
        raise UnknownName("format", format_name, FORMATS)
    given = [paths] if isinstance(paths, (Path, str)) else paths
    logs = [log for path in given for log in find_logs(Path(path))]
    return (_read_file(log, format_name) for log in logs)


def _read_file(log: FoundLog, format_name: str | None) -> LogFile:
    path = log.path
    if log.obstacle:
        return LogFile(path, unread=(f"{path} {log.obstacle}",))
    try:
        contents = contents_of(path)
    except UsageError as error:
        if log.is_named:
            raise
        return LogFile(path, unread=(str(error).removesuffix("."),))
    parts = list(_read_values(path, contents, format_name))
    return LogFile(
        path,
        tuple(part for part in parts if isinstance(part, Transcript)),
        tuple(part.sentence for part in parts if isinstance(part, Unread)),
        contents.text,
    )


def _read_values(
    path: Path, contents: Contents, format_name: str | None
) -> Iterator[Transcript | Unread]:
    """The transcripts of the values in a file, each read by the reader of its format."""
    by_format: dict[str, Values] = {}
    unknown: Values = []
    for parsed in contents.values:
        if isinstance(parsed, Unread):
            yield parsed
            continue
        detected = format_of(parsed.value)
        name = format_name or detected
        if name is None:
            unknown.append(parsed)
        elif format_name is not None and not may_be(parsed.value, format_name):
            yield Unread(f"{parsed.source} is in the format {detected}, not {format_name}")
        else:
            by_format.setdefault(name, []).append(parsed)
    has_events = any(FORMATS[name].has_events for name in by_format)
    for source, value in unknown:
        if not (has_events and is_bookkeeping_event(value)):
            yield Unread(f"{source}: {shortened(value)} is in no known format")
    for name, values in by_format.items():
        try:
            for part in FORMATS[name].read(values):
                yield replace(part, format=name) if isinstance(part, Transcript) else part
        except RecursionError:
            yield Unread(f"{path}: a value in the format {name} is nested too deeply to be read")
