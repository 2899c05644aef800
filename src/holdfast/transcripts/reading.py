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
    if isinstance(paths, (Path, str)):
        paths = [paths]
    logs = [log for path in paths for log in find_logs(Path(path))]
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
class _ValuesByFormat:
    """The values of a file by format: those of the first one as they are read, so that a file can
    be larger than memory, and the others, which are few, afterwards.

    Args:
        form: the format that all have to be in; None detects it for each.
        only: the same, for a part of a file; "" for a whole file.
        formats: those that occur.
        others: the values in other formats than the first.
        unknown: values in no format.
        problems: lines that are none, and values that are not in `form`.
    """

    parsed: Iterable[Located | Unread]
    form: str | None
    only: str
    formats: list[str] = field(default_factory=list)
    others: dict[str, Values] = field(default_factory=dict)
    unknown: Values = field(default_factory=list)
    problems: list[Unread] = field(default_factory=list)
    is_empty: bool = True

    def __iter__(self) -> Iterator[tuple[str, Iterable[Located]]]:
        """Each format with its values; those of one that are left unread are skipped."""
        values = self._values_in_first_format()
        first = next(values, None)
        if first is not None:
            yield self.formats[0], chain([first], values)
            for _ in values:  # which its reader did not take
                pass
        yield from self.others.items()

    def _values_in_first_format(self) -> Iterator[Located]:
        for item in self.parsed:
            self.is_empty = False
            if isinstance(item, Unread):
                self.problems.append(item)
                continue
            name = self._format_of(item)
            if name is None:
                continue
            if name not in self.formats:
                self.formats.append(name)
            if name == self.formats[0]:
                yield item
            else:
                self.others.setdefault(name, []).append(item)

    def _format_of(self, item: Located) -> str | None:
        """The format to read a value in; None, with a note of it, if it cannot be read."""
        detected = format_of(item.value)
        name = self.form or detected
        if name is None:
            self.unknown.append(item)
            return None
        if self.form is not None and not may_be(item.value, self.form):
            sentence = f"is in the format {detected}, not {self.form}"
            self.problems.append(Unread(f"{item.source} {sentence}"))
            return None
        if self.only and (name != self.only or FORMATS[name].reaches_back(item.value)):
            raise NotByItself(name)
        return name


def read_values(
    path: Path, parsed: Iterable[Located | Unread], format_name: str | None, only: str = ""
) -> Iterator[Transcript | Unread]:
    """The transcripts of the values in a file, each read by the reader of its format.

    Args:
        only: the format that all values have to be in; "" for any.

    Raises:
        NotByItself: a value is in another format than `only`, or cannot be read.
    """
    by_format = _ValuesByFormat(parsed, format_name, only)
    of_readers: list[Unread] = []  # come after what is wrong with single lines
    for name, values in by_format:
        for part in _read_format(path, name, values, is_part=bool(only)):
            if isinstance(part, Unread):
                of_readers.append(replace(part, stage=2))
            else:
                yield part
    if by_format.is_empty and not only:
        yield Unread(f"{path} is empty")
    yield from by_format.problems
    has_events = any(FORMATS[name].has_events for name in by_format.formats)
    for source, value in by_format.unknown:
        if not (has_events and is_bookkeeping_event(value)):
            yield Unread(f"{source}: {shortened(value)} is in no known format", stage=1)
    yield from of_readers


def _read_format(
    path: Path, name: str, values: Iterable[Located], is_part: bool
) -> Iterator[Transcript | Unread]:
    """The transcripts of values in one format."""
    form = FORMATS[name]
    takes_any = form.streams or form.is_per_value
    try:
        for part in form.read(values if takes_any else list(values)):  # type: ignore[arg-type]
            yield replace(part, format=name) if isinstance(part, Transcript) else part
    except RecursionError:
        if is_part:
            raise NotByItself(name) from None
        yield Unread(f"{path}: a value in the format {name} is nested too deeply to be read")
