"""Reads the logs in archives: `.zip`, tar and Inspect's `.eval`.

For example:

    logs.zip, with july.jsonl -> Located("logs.zip/july.jsonl, line 1", {"messages": [...]})
"""

import bz2
import contextlib
import gzip
import io
import lzma
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from holdfast.errors import UsageError, shortened
from holdfast.files import MAX_UNPACKED_BYTES, check_unpacked_size, unpack_zstandard
from holdfast.transcripts.finding import is_json_log, is_unread_in_archives
from holdfast.transcripts.json_fields import list_or_empty
from holdfast.transcripts.parsing import load_json, parse
from holdfast.transcripts.reader import Located, Unread
from holdfast.validation.json_values import fields_of

# by its suffix, how a compressed member of an archive is opened
_OPENERS: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}
_ZSTANDARD = 93  # the number of this compression method in zip archives
_LENGTHS_AT = 26  # the offset of two lengths in the header before a member
_DAMAGED = (
    *(zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, lzma.LZMAError, zlib.error),
    *(EOFError, RuntimeError, struct.error),
)


def read_eval(path: Path) -> Iterator[Located | Unread]:
    """Reads the header and the samples of an `.eval` file."""
    with _open_zip(path) as (file, archive):

        def load(member: zipfile.ZipInfo) -> Located | Unread:
            source = f"{path}, {member.filename}"
            return load_json(source, _unpack(path, file, archive, member))

        # the header is missing while the evaluation runs
        headers = [m for m in archive.infolist() if m.filename == "header.json"]
        samples = [m for m in archive.infolist() if m.filename.startswith("samples/")]
        if not samples:
            yield Unread(f"{path} has no samples, as a log of Inspect's has")
        folders: dict[str, list[zipfile.ZipInfo]] = {}  # of samples in several files
        for member in samples:
            if member.filename.count("/") > 1:
                folders.setdefault("/".join(member.filename.split("/")[:2]), []).append(member)
        for member in (*headers, *samples):
            if member.filename.count("/") < 2:
                yield load(member)
        for folder, members in folders.items():
            yield from _sample_in_files(f"{path}, {folder}", folder, members, load)


def _sample_in_files(
    source: str,
    folder: str,
    members: Iterable[zipfile.ZipInfo],
    load: Callable[[zipfile.ZipInfo], Located | Unread],
) -> Iterator[Located | Unread]:
    """Puts together a large sample, whose messages and attachments are in files of their own.

    The names of these files are numbers, by which they are in order:

        samples/1_epoch_1/sample.json, samples/1_epoch_1/messages/0.json, .../messages/1000.json

    Args:
        load: parses a file of the archive.
    """
    samples: list[Any] = []
    messages: list[Any] = []
    attachments: list[Any] = []
    lists = {"messages": messages, "attachments": attachments}
    for member in sorted(members, key=_number_of):
        kind, _, name = member.filename.removeprefix(f"{folder}/").rpartition("/")
        is_list = kind in lists and name.removesuffix(".json").isdecimal()
        if not (is_list or name == "sample.json"):
            continue
        part = load(member)
        if isinstance(part, Unread):
            yield part
        elif is_list:
            lists[kind] += list_or_empty(part.value)
        else:
            samples.append(part.value)
    if not samples:
        yield Unread(f"{source} is a sample in parts, of which sample.json is missing")
        return
    sample = fields_of(samples[0])
    own_messages: list[Any] = []
    for message in _messages_of_sample(source, sample, messages):
        if isinstance(message, Unread):
            yield message
        else:
            own_messages.append(message)
    own_attachments = {
        **fields_of(sample.get("attachments")),
        **{str(number): text for number, text in enumerate(attachments)},
    }
    yield Located(source, {**sample, "messages": own_messages, "attachments": own_attachments})


def _messages_of_sample(
    source: str, sample: Mapping[str, Any], messages: Sequence[Any]
) -> Iterator[Any | Unread]:
    """Yields the messages of a sample.

    They are in the sample itself, in its files, or at the positions in these that the sample gives:
    `"message_refs": [[0, 3], [5, 6]]`.

    Args:
        messages: those in its files.
    """
    if "message_refs" not in sample:
        yield from list_or_empty(sample.get("messages")) or messages
    for bounds in list_or_empty(sample.get("message_refs")):
        match bounds:
            case [int(start), int(end)] if 0 <= start < end <= len(messages):
                yield from messages[start:end]
            case _:
                yield Unread(f"{source}: its messages {shortened(bounds)} are not in its files")


def _number_of(member: zipfile.ZipInfo) -> int:
    """Returns the number that is the name of a file; -1 for another name."""
    name = member.filename.rpartition("/")[2].removesuffix(".json")
    return int(name) if name.isdecimal() else -1


class _Member(NamedTuple):
    """A file in an archive; `read` unpacks its content."""

    name: str
    size: int
    read: Callable[[], bytes]


def read_zip(path: Path) -> Iterator[Located | Unread]:
    """Reads the logs in an archive, such as an export of ChatGPT or Claude."""
    with _open_zip(path) as (file, archive):
        members = (
            _Member(m.filename, m.file_size, partial(_unpack, path, file, archive, m))
            for m in archive.infolist()
        )
        yield from _read_members(path, members)


def read_tar(path: Path) -> Iterator[Located | Unread]:
    """Reads the logs in a tar archive."""
    with _naming_damage(path), tarfile.open(path) as archive:
        members = (
            _Member(m.name, m.size, partial(_extract, archive, m)) for m in archive if m.isfile()
        )
        yield from _read_members(path, members)


def _read_members(archive: Path, members: Iterable[_Member]) -> Iterator[Located | Unread]:
    """Reads the logs of JSON values in an archive, and reports logs of other kinds."""
    is_empty = True
    for member in members:
        path = archive / member.name
        if is_json_log(path):
            is_empty = False
            check_unpacked_size(path, member.size)
            yield from _parse_member(path, member.read())
        elif is_unread_in_archives(path):
            yield Unread(f"{path} is not read within an archive; unpack it first")
    if is_empty:
        yield Unread(f"{archive} holds no file that ends in .json, .jsonl or .ndjson")


def _parse_member(path: Path, content: bytes) -> Iterator[Located | Unread]:
    """Parses a member of an archive, which may be compressed once more."""
    if (opener := _OPENERS.get(path.suffix.lower())) is not None:
        with opener(io.BytesIO(content)) as file:
            content = file.read(MAX_UNPACKED_BYTES + 1)
        check_unpacked_size(path, len(content))
    yield from parse(path, content.decode("utf-8-sig", "surrogateescape"))


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return file.read() if file else b""


@contextlib.contextmanager
def _open_zip(path: Path) -> Iterator[tuple[BinaryIO, zipfile.ZipFile]]:
    """Opens an archive.

    Raises:
        UsageError: it cannot be read or unpacked.
    """
    with _naming_damage(path), path.open("rb") as file, zipfile.ZipFile(file) as archive:
        yield file, archive


@contextlib.contextmanager
def _naming_damage(path: Path) -> Iterator[None]:
    """Raises a `UsageError` that names the archive for an error in unpacking it."""
    try:
        yield
    except _DAMAGED as error:
        reason = str(error).split("\n")[0].rstrip(":")
        raise UsageError(f"{path} cannot be unpacked ({reason}); give it whole.") from error
    except OSError as error:
        if error.errno is None:  # of bz2, about damaged contents
            raise UsageError(f"{path} cannot be unpacked ({error}); give it whole.") from error
        raise UsageError(f"{path} cannot be read ({error.strerror}); check the path.") from error


def _unpack(path: Path, file: BinaryIO, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Returns the content of a member of an archive.

    Members compressed with zstandard are unpacked here, as `zipfile` does it only since Python
    3.14.
    """
    if member.compress_type != _ZSTANDARD:
        return archive.read(member)
    file.seek(member.header_offset + _LENGTHS_AT)
    lengths = struct.unpack("<HH", file.read(4))  # of the name, and of what follows it
    file.seek(sum(lengths), os.SEEK_CUR)
    return unpack_zstandard(path, file.read(member.compress_size))
