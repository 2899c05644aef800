"""Reads log files into transcripts, each value with the reader of its format."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from holdfast.errors import UnknownName, UsageError, shortened
from holdfast.transcripts.containers import Contents
from holdfast.transcripts.finding import FoundLog, find_logs
from holdfast.transcripts.formats import FORMATS, format_of, may_be
from holdfast.transcripts.parsing import is_bookkeeping_event
from holdfast.transcripts.reader import Located, Unread, Values
from holdfast.transcripts.transcript import Transcript


@dataclass(frozen=True)
class LogFile:
    """The transcripts of a file, and what was not read.

    Args:
        unread: a sentence for each line that was not understood, and each part that was left out.
        digest: by which a change of the file is seen; "" if it was not read.
    """

    path: Path
    transcripts: tuple[Transcript, ...] = ()
    unread: tuple[str, ...] = ()
    digest: str = field(default="", repr=False)


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
    contents = Contents(path)
    try:
        parts = list(read_values(path, contents, format_name))
        digest = contents.digest
    except UsageError as error:
        if log.is_named:
            raise
        return LogFile(path, unread=(str(error).removesuffix("."),))
    return LogFile(
        path,
        tuple(part for part in parts if isinstance(part, Transcript)),
        tuple(part.sentence for part in parts if isinstance(part, Unread)),
        digest,
    )


class NotByItself(Exception):
    """A part of a file cannot be read without the rest."""


@dataclass
class _Sorting:
    """The values of a file by format, and those that are in none."""

    path: Path
    format_name: str | None
    first: str | None = None  # the format of the first value that is in any
    others: dict[str, Values] = field(default_factory=dict)
    unknown: Values = field(default_factory=list)
    problems: list[Unread] = field(default_factory=list)
    is_empty: bool = True

    def values_of_first(self, parsed: Iterable[Located | Unread], only: str) -> Iterator[Located]:
        """The values in the format of the first one; the others are kept."""
        for item in parsed:
            self.is_empty = False
            if isinstance(item, Unread):
                self.problems.append(item)
                continue
            detected = format_of(item.value)
            name = self.format_name or detected
            if name is None:
                self.unknown.append(item)
            elif self.format_name is not None and not may_be(item.value, self.format_name):
                sentence = f"is in the format {detected}, not {self.format_name}"
                self.problems.append(Unread(f"{item.source} {sentence}"))
            elif only and name != only:
                raise NotByItself(name)
            elif self.first in (None, name):
                self.first = name
                yield item
            else:
                self.others.setdefault(name, []).append(item)


def read_values(
    path: Path, parsed: Iterable[Located | Unread], format_name: str | None, only: str = ""
) -> Iterator[Transcript | Unread]:
    """The transcripts of the values in a file, each read by the reader of its format.

    Args:
        only: the format that all values have to be in; "" for any.

    Raises:
        NotByItself: a value is in another format than `only`, or cannot be read.
    """
    sorting = _Sorting(path, format_name)
    values = sorting.values_of_first(parsed, only)
    late: list[Unread] = []  # what the readers did not read, which comes after the lines
    if (first := next(values, None)) is not None:
        for part in _read_format(path, sorting.first or "", chain([first], values), bool(only)):
            if isinstance(part, Unread):
                late.append(replace(part, stage=2))
            else:
                yield part
        for _ in values:  # the rest after a value that could not be read
            pass
    for name, others in sorting.others.items():
        for part in _read_format(path, name, others):
            if isinstance(part, Unread):
                late.append(replace(part, stage=2))
            else:
                yield part
    if sorting.is_empty and not only:
        yield Unread(f"{path} is empty")
    yield from sorting.problems
    read = [*sorting.others, *([sorting.first] if sorting.first else [])]
    has_events = any(FORMATS[name].has_events for name in read)
    for source, value in sorting.unknown:
        if not (has_events and is_bookkeeping_event(value)):
            yield Unread(f"{source}: {shortened(value)} is in no known format", stage=1)
    yield from late


def _read_format(
    path: Path, name: str, values: Iterable[Located], is_part: bool = False
) -> Iterator[Transcript | Unread]:
    """The transcripts of values in one format."""
    form = FORMATS[name]
    listed = values if form.streams or form.is_per_value else list(values)
    try:
        for part in form.read(listed):  # type: ignore[arg-type]  # those that stream take any
            yield replace(part, format=name) if isinstance(part, Transcript) else part
    except RecursionError:
        if is_part:
            raise NotByItself(name) from None
        yield Unread(f"{path}: a value in the format {name} is nested too deeply to be read")
