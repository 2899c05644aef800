"""Reads users' text and JSON Lines files, and writes files whole or not at all."""

import bz2
import contextlib
import difflib
import errno
import gzip
import hashlib
import io
import itertools
import json
import lzma
import os
import secrets
import stat
import warnings
import zlib
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import IO, Any, NamedTuple

from holdfast.errors import RecordsError, UsageError, reason_of

ASSETS = files("holdfast") / "assets"


def asset(name: str) -> str:
    """The text of a file in the package's folder `assets`."""
    return (ASSETS / name).read_text(encoding="utf-8")


def user_cache() -> Path:
    """The folder for cached files, which can be made again if they are deleted."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "holdfast"


def short_path(path: Path) -> Path:
    """A path as it is printed: as in `runs/first/report.html` below the current folder, which is
    where commands are repeated, else in full.
    """
    whole = path.resolve()
    here = Path.cwd()
    return whole.relative_to(here) if whole.is_relative_to(here) else whole


_MAX_NAMES_COMPARED = 1000  # of a folder, when a similar name is looked for
_MIN_SIMILARITY = 0.6  # of a stem to the one that was given, as `difflib` measures it


def similar_path(path: Path) -> Path | None:
    """The path in the same folder that was probably meant by one that does not exist."""
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in itertools.islice(entries, _MAX_NAMES_COMPARED)]
    except OSError:
        return None
    stems = {Path(name).stem for name in names}
    # the stems alone, as files of the same kind are alike by their suffix
    near = difflib.get_close_matches(path.stem, stems, n=len(stems) or 1, cutoff=_MIN_SIMILARITY)
    candidates = sorted(name for name in names if Path(name).stem in near)
    best = difflib.get_close_matches(path.name, candidates, n=1, cutoff=0)
    return path.with_name(best[0]) if best else None


# --- Reading


def read_text(path: Path | str, *, is_strict: bool = True) -> str:
    """Reads a user's UTF-8 file, which may be compressed (gzip, bzip2, xz, zstandard).

    Args:
        is_strict: whether to refuse other bytes, which otherwise become lone surrogates
            (`surrogateescape`).

    Raises:
        UsageError: the file cannot be read or unpacked, or is not UTF-8.
    """
    path = Path(path)
    with _read_errors(path):
        content = path.read_bytes()
        if (opener := _opener_of(path, content)) is not None:
            with opener(path) as file:
                content = file.read(MAX_UNPACKED_BYTES + 1)
            check_unpacked_size(path, len(content))
        elif content.startswith(_ZSTANDARD) or path.suffix == ".zst":
            content = unpack_zstandard(path, content)
        return content.decode("utf-8-sig", "strict" if is_strict else "surrogateescape")


def text_lines(
    path: Path, start: int = 0, end: int | None = None, *, is_strict: bool = True
) -> Iterator[str]:
    """Reads the lines of a user's UTF-8 file, which may be compressed (gzip, bzip2, xz, zstandard).

    If a later line than the first has other bytes, as when the last character was written only in
    part, these become lone surrogates (`surrogateescape`).

    Args:
        start: the byte to begin at, in a file that is not compressed.
        end: the byte to end at; None reads to the end of the file, as does any compressed file.
        is_strict: whether the first line has to be UTF-8.

    Raises:
        UsageError: the file cannot be read or unpacked, or its first line is not UTF-8.
    """
    with _read_errors(path), contextlib.ExitStack() as stack:
        file, is_packed = _open_unpacked(path, stack)
        max_bytes = MAX_UNPACKED_BYTES + 1 if is_packed else -1  # of a line; -1 is any number
        file.seek(start)
        position = start
        while is_packed or end is None or position < end:
            if not (line := file.readline(max_bytes)):
                return
            if is_packed:
                check_unpacked_size(path, len(line))
            content = line.removesuffix(b"\n")
            try:
                text = content.decode("utf-8" if position else "utf-8-sig")
            except UnicodeDecodeError as error:
                if position == start and is_strict:
                    error.start += position
                    raise
                text = content.decode("utf-8", "surrogateescape")
            yield text
            position += len(line)


def read_json_lines(path: Path | str) -> Iterator[tuple[int, Any]]:
    """Reads the values of a JSON Lines file, each with its line number; skips blank lines."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(
                f"Line {number} of {path} is not JSON ({reason_of(error)}); write one value per"
                " line."
            ) from error
        yield number, value


def digest_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with _read_errors(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    """Within this context, an error in reading a file is raised as a `UsageError` naming it."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8."
        ) from error
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise UsageError(
            f"{path} cannot be unpacked ({error}); give the whole file, or rename it without"
            f" {path.suffix} if it is not compressed."
        ) from error
    except OSError as error:
        if error.errno is None:  # of bz2, about damaged contents
            raise UsageError(
                f"{path} cannot be unpacked ({error}); give the whole file."
            ) from error
        similar = similar_path(path) if isinstance(error, FileNotFoundError) else None
        cure = "check the path." if similar is None else f"did you mean {similar}?"
        raise UsageError(f"{path} cannot be read ({error.strerror}); {cure}") from error


# --- Unpacking

# the first bytes of compressed files
_GZIPPED = b"\x1f\x8b"
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
_OPENERS: dict[str, Callable[[Path], Any]] = {".bz2": bz2.BZ2File, ".xz": lzma.LZMAFile}
MAX_UNPACKED_BYTES = 1 << 30  # of a compressed file that is read whole, or of a line in one
_ZSTANDARD_PIECE = 4096  # bytes that are unpacked at once, which may become 128 MiB


class _UnpackedFile(NamedTuple):
    """A file that is read unpacked."""

    file: IO[bytes]
    is_packed: bool  # whether it is compressed on the disk


def _open_unpacked(path: Path, stack: contextlib.ExitStack) -> _UnpackedFile:
    """Opens a file, which may be compressed; the stack closes it."""
    file: IO[bytes] = stack.enter_context(path.open("rb"))
    first_bytes = file.read(len(_ZSTANDARD))
    if (opener := _opener_of(path, first_bytes)) is not None:
        return _UnpackedFile(stack.enter_context(opener(path)), is_packed=True)
    if first_bytes == _ZSTANDARD or path.suffix == ".zst":
        # read whole, as only then is it certain that no frame is missing
        return _UnpackedFile(io.BytesIO(unpack_zstandard(path, path.read_bytes())), is_packed=True)
    return _UnpackedFile(file, is_packed=False)


def _opener_of(path: Path, first_bytes: bytes) -> Callable[[Path], Any] | None:
    """Returns what opens a file that is compressed by gzip, bzip2 or xz; None for other files."""
    if first_bytes.startswith(_GZIPPED) or path.suffix == ".gz":
        return gzip.GzipFile
    return _OPENERS.get(path.suffix.lower())


def check_unpacked_size(path: Path, size: int) -> None:
    """Refuses a text that would fill the memory when it is unpacked.

    Raises:
        UsageError: it is too large.
    """
    if size > MAX_UNPACKED_BYTES:
        raise UsageError(
            f"{path} has more than {MAX_UNPACKED_BYTES >> 20} MiB when it is unpacked; unpack it,"
            " and give it as .jsonl, with a value per line."
        )


def unpack_zstandard(path: Path, content: bytes) -> bytes:
    """Unpacks the content of a zstandard file, which may consist of several frames.

    Args:
        path: where the content is from, for the message.

    Raises:
        UsageError: the package `zstandard` is not installed, or the content is too large.
        EOFError: the content is damaged, or ends in the middle of a frame.
    """
    try:
        import zstandard
    except ImportError:
        raise UsageError(
            f"{path} is compressed by zstandard; install 'holdfast-llm[zstd]' to read it, or unpack"
            " it with `zstd -d`."
        ) from None
    unpacked: list[bytes] = []
    size = 0
    frame: Any = None
    for start in range(0, len(content), _ZSTANDARD_PIECE):
        piece = content[start : start + _ZSTANDARD_PIECE]
        while piece:
            if frame is None or frame.eof:
                frame = zstandard.ZstdDecompressor().decompressobj()
            try:
                unpacked.append(frame.decompress(piece))
            except zstandard.ZstdError as error:
                raise EOFError(str(error)) from error
            size += len(unpacked[-1])
            check_unpacked_size(path, size)
            piece = frame.unused_data
    if frame is not None and not frame.eof:
        raise EOFError("it ends in the middle of a zstandard frame")
    return b"".join(unpacked)


# --- Writing

# why a file cannot grow, by the number of the system error
FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file may not grow further",
}
_CREATE_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
# errors of `fsync` on file systems that do not support it
_SYNC_UNSUPPORTED = (
    errno.EINVAL,
    errno.ENOSYS,
    errno.ENOTSUP,
    errno.EBADF,
    errno.EACCES,
    errno.EPERM,
)


def write_whole(path: Path | str, data: bytes | str, alternative: str = "another place") -> Path:
    """Writes a file atomically: a crash or a full disk leaves the old file or the whole new one.

    Args:
        data: the content. Text is written as UTF-8, with "?" in place of lone surrogates.
        alternative: what the user may choose if this fails: "another place with --report".

    Raises:
        RecordsError: the file cannot be written; an existing one is unchanged.
    """
    path = Path(path)
    content = data.encode("utf-8", "replace") if isinstance(data, str) else data
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(Path(os.path.realpath(path)), content)
    except OSError as error:
        raise cannot_write(path, error, alternative) from error
    return path


def cannot_write(
    path: Path | str, error: OSError, alternative: str = "another place"
) -> RecordsError:
    """Builds the error for a file or folder that the system does not let us write."""
    why = FULL.get(error.errno or 0, reason_of(error))
    cure = f"choose {alternative}"
    if error.errno in FULL:
        cure = f"free some space and repeat the command, or {cure}"
    return RecordsError(f"Cannot write {path}: {why}; {cure}.")


def _replace(path: Path, content: bytes) -> None:
    """Writes a temporary file beside the path, then renames it to the path."""
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):  # a device or a pipe
        path.write_bytes(content)
        return
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.new")
    try:
        file = os.open(temporary, _CREATE_NEW, 0o666)
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(file, rest) :]
            sync(file, path.parent)
        finally:
            os.close(file)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync(file: int, name: Path | str) -> None:
    """Flushes a file descriptor to disk; warns if the file system does not support that."""
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in _SYNC_UNSUPPORTED:
            raise
        warnings.warn(
            f"The file system of {name} cannot be synced ({error.strerror});"
            " the last lines written may be lost if the machine stops.",
            stacklevel=2,
        )


def sync_folder(folder: Path) -> None:
    """Flushes a folder's list of files to disk; warns and continues if that fails."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows
        return
    try:
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as error:
        warnings.warn(
            f"The folder {folder} cannot be synced ({error.strerror});"
            " a file that was just made there may be missing if the machine stops.",
            stacklevel=2,
        )
