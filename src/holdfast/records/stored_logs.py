"""Records of logs that are too large for memory, and are read from the disk when needed."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import overload

from holdfast.records.belonging import refuse_foreign
from holdfast.records.conversation import LogDialog
from holdfast.records.identity import Manifest
from holdfast.records.lines import read_lines, whole_lines_size, without_checksum
from holdfast.records.log_scores import LogScores, collect_log_scores

LARGE_RUN_BYTES = 64_000_000  # a file of records of at least this size stays on the disk


class StoredLogs(Sequence[LogDialog]):
    """The records of a run of `logs` on the disk; iterating reads and parses them anew.

    The constructor checks all of them and collects their scores.

    Raises:
        RecordsError: a line is damaged, is repeated, or is not of this run.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self._path = path
        self._replaced: Mapping[int, LogDialog] = {}  # by their positions
        self._starts = array("Q", [0])  # of each line, and the end of the last one
        self.scores = LogScores()
        numbers: set[int] = set()
        for line in _whole_lines(path):
            record = _parse_valid(line, manifest)
            if record is None or record.conversation in numbers:
                read_lines(path.read_bytes(), path, manifest)  # raises, naming the line
                raise AssertionError("read_lines accepted a line that was found to be faulty")
            numbers.add(record.conversation)
            self._starts.append(self._starts[-1] + len(line))
            self.scores.add(record)

    def with_dialogs(self, dialogs: Mapping[int, LogDialog]) -> StoredLogs:
        """Returns the records with some of them replaced, given by position."""
        other = copy(self)
        other._replaced = {**self._replaced, **dialogs}
        other.scores = collect_log_scores(other)
        return other

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> LogDialog: ...
    @overload
    def __getitem__(self, index: slice) -> list[LogDialog]: ...
    def __getitem__(self, index: int | slice) -> LogDialog | list[LogDialog]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = range(len(self))[index]  # raises IndexError, as for a list
        if number in self._replaced:
            return self._replaced[number]
        with self._path.open("rb") as file:
            file.seek(self._starts[number])
            return _parse(file.read(self._starts[number + 1] - self._starts[number]))

    def __iter__(self) -> Iterator[LogDialog]:
        with self._path.open("rb") as file:
            for number in range(len(self)):
                line = file.readline()
                yield self._replaced.get(number) or _parse(line)


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Yields the lines of a file, without a last one whose writing was cut short."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n") or whole_lines_size(line) == len(line):
                yield line


def _parse_valid(line: bytes, manifest: Manifest) -> LogDialog | None:
    """Returns the record in a line; None if the line has any fault, such as no checksum."""
    content = without_checksum(line.removesuffix(b"\n"))
    if content is None or not content.has_checksum:
        return None
    try:
        record = LogDialog.model_validate_json(content.body)
        refuse_foreign(record, manifest, "The line")
    except ValueError:  # a ValidationError or a NotOfRun
        return None
    return record


def _parse(line: bytes) -> LogDialog:
    """Returns the record in a line that was found valid before."""
    content = without_checksum(line.removesuffix(b"\n"))
    return LogDialog.model_validate_json(content.body if content else line)
