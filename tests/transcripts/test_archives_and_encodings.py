"""Logs in archives, compressed, and in encodings other than UTF-8."""

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile

import pytest
from log_variations import HI, ONE_TURN, A, Variation, variations
from opentelemetry_messages import messages, span

from holdfast.errors import UsageError
from holdfast.logs import read_logs

CHAT = '{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "A."}]}\n'


def tar(mode: str = "w", name: str = "logs/a.jsonl", content: bytes = CHAT.encode()) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def zipped(name: str, content: bytes) -> bytes:
    return zipped_files(**{name: content})


def zipped_files(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


CAFE = CHAT.replace("A.", "Café “x”.")
OF_CAFE = [[("Hi", "Café “x”.")]]
AIDER = "# aider chat started at 2026-05-01 10:00:00\n\n#### Hi  \n\nCafé “x”.\n"

test_archives_and_encodings = variations(
    *(
        Variation(name, {name: tar(mode)}, ONE_TURN)
        for name, mode in (
            ("a.tar", "w"),
            ("a.tar.gz", "w:gz"),
            ("a.tgz", "w:gz"),
            ("a.tar.bz2", "w:bz2"),
            ("a.tar.xz", "w:xz"),
        )
    ),
    Variation(
        "a member that is compressed",
        {"a.tar": tar(name="a.jsonl.gz", content=gzip.compress(CHAT.encode()))},
        ONE_TURN,
    ),
    Variation(
        "another kind of log beside it",
        {
            "a.zip": zipped_files(
                **{"a.jsonl": CHAT.encode(), "state.vscdb": b"x", "notes.txt": b"x"}
            )
        },
        ONE_TURN,
        problem="state.vscdb is not read within an archive; unpack it first",
    ),
    Variation(
        "a member of a zip that is compressed",
        {"a.zip": zipped("a.jsonl.bz2", bz2.compress(CHAT.encode()))},
        ONE_TURN,
    ),
    Variation(
        "an archive that was cut",
        {"a.tar.gz": tar("w:gz", content=CHAT.encode() * 9)[:-40]},
        refused="cannot be unpacked",
    ),
    Variation(
        "an archive without logs",
        {"a.tar": tar(name="a.txt")},
        refused="holds no file that ends in",
    ),
    Variation("bzip2", {"a.jsonl.bz2": bz2.compress(CHAT.encode())}, ONE_TURN),
    Variation("xz", {"a.json.xz": lzma.compress(CHAT.encode())}, ONE_TURN),
    Variation(
        "bzip2 that was cut",
        {"a.jsonl.bz2": bz2.compress(CHAT.encode())[:-9]},
        refused="cannot be unpacked",
    ),
    Variation(
        "lines in Windows-1252",
        {"a.jsonl": CAFE.encode("cp1252")},
        OF_CAFE,
        problem="line 1: it is not UTF-8, and was read as Windows-1252",
    ),
    Variation(
        "a document in Windows-1252",
        {"a.json": CAFE.encode("cp1252")},
        OF_CAFE,
        problem="is not UTF-8, and was read as Windows-1252",
    ),
    Variation(
        "one line in Windows-1252",
        {"a.jsonl": CHAT.encode() + CAFE.encode("cp1252")},
        [*ONE_TURN, *OF_CAFE],
        problem="line 2: it is not UTF-8, and was read as Windows-1252",
    ),
    Variation(
        "Markdown in Windows-1252",
        {".aider.chat.history.md": AIDER.encode("cp1252")},
        OF_CAFE,
        problem="is not UTF-8, and was read as Windows-1252",
    ),
    Variation(
        "UTF-8 with a byte that is none",
        {"a.jsonl": CHAT.encode() + CAFE.encode().replace(b"x", b"\xff")},
        ONE_TURN,
        problem="line 2: it is not UTF-8 text",
    ),
)


def packed(name: str, content: bytes) -> bytes:
    """An archive of tar with a file."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as file:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        file.addfile(member, io.BytesIO(content))
    return archive.getvalue()


def limit_unpacked_bytes(monkeypatch) -> None:
    """Lets no text have more than 1 MiB when it is unpacked."""
    for module in ("holdfast.files", "holdfast.transcripts.archives"):
        monkeypatch.setattr(f"{module}.MAX_UNPACKED_BYTES", 1 << 20)


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (b"hello" * 300, "cannot be unpacked (file could not be opened successfully); give it"),
        (packed("a.jsonl.bz2", b"hello"), "cannot be unpacked (Invalid data stream); give it"),
        (packed("a.jsonl.bz2", bz2.compress(CHAT.encode())[:-5]), "cannot be unpacked (Compressed"),
        (packed("a.jsonl.gz", b"hello"), "cannot be unpacked (Not a gzipped file"),
        (packed("a.jsonl.xz", b"hello"), "cannot be unpacked ("),
        (packed("a.jsonl.gz", gzip.compress(b" " * (2 << 20))), "has more than 1 MiB when it is"),
        (packed("a.jsonl", b" " * (2 << 20)), "has more than 1 MiB when it is unpacked; unpack"),
    ],
)
def test_an_archive_that_is_damaged_or_too_large_is_refused(
    content, refusal, tmp_path, monkeypatch
):
    limit_unpacked_bytes(monkeypatch)
    path = tmp_path / "logs.tar"
    path.write_bytes(content)
    with pytest.raises(UsageError) as excinfo:
        read_logs(path)
    assert refusal in str(excinfo.value)


def zstandard_of(content: bytes) -> bytes:
    return pytest.importorskip("zstandard").compress(content)


COMPRESSORS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstandard_of}


@pytest.mark.parametrize("suffix", COMPRESSORS)
@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_a_compressed_file_or_line_that_would_fill_the_memory_is_refused(
    name, suffix, tmp_path, monkeypatch
):
    limit_unpacked_bytes(monkeypatch)
    path = tmp_path / f"{name}.{suffix}"
    path.write_bytes(COMPRESSORS[suffix](b" " * (2 << 20)))
    with pytest.raises(UsageError, match="has more than 1 MiB when it is unpacked"):
        read_logs(path)


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz"])
def test_a_large_compressed_file_of_small_lines_is_read(suffix, tmp_path, monkeypatch):
    limit_unpacked_bytes(monkeypatch)
    path = tmp_path / f"a.jsonl.{suffix}"
    chat = CHAT.replace("A.", "A. " + "x" * (1 << 17))
    path.write_bytes(COMPRESSORS[suffix](chat.encode() * 10))
    assert len(read_logs(path).dialogs) == 10


PRINTED = json.dumps(span(**messages()), indent=4)
CUT = f"{json.dumps([HI, A])}\n{json.dumps([HI, A])}".encode("utf-16")[:-7]

test_files_that_are_written_otherwise = variations(
    Variation(
        "spans that are printed one after the other",
        {"spans.json": f"{PRINTED}\n{PRINTED}\n"},
        ONE_TURN,
        format="otel",
    ),
    Variation("a name in capitals", {"LOG.JSON": json.dumps([HI, A], indent=2)}, ONE_TURN),
    Variation(
        "UTF-16, as PowerShell redirects output",
        {"u.jsonl": f"{json.dumps([HI, A])}\r\n".encode("utf-16")},
        ONE_TURN,
    ),
    Variation(
        "UTF-16 with the high byte first",
        {"u.jsonl": b"\xfe\xff" + f"{json.dumps([HI, A])}\r\n".encode("utf-16-be")},
        ONE_TURN,
    ),
    Variation(
        "a document in UTF-16", {"u.json": json.dumps([HI, A], indent=2).encode("utf-16")}, ONE_TURN
    ),
    Variation(
        "UTF-16 that was cut in a character",
        {"u.jsonl": CUT},
        ONE_TURN,
        problem="line 2: it is not JSON",
    ),
)


def test_logs_with_names_in_capitals_are_found_in_folders(tmp_path):
    (tmp_path / "A.JSONL").write_text(json.dumps([HI, A]) + "\n")
    (tmp_path / "B.7Z").write_bytes(b"7z")
    logs = read_logs(tmp_path)
    assert [len(dialog.turns) for dialog in logs.dialogs] == [1]
    assert len(logs.problems) == 1 and "is compressed" in logs.problems[0]


def test_the_logs_in_a_zip_are_read_and_its_other_files_are_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("data/conversations.json", json.dumps([HI, A]))
        archive.writestr("data/user.json", json.dumps({"id": "u"}))
        archive.writestr("chat.html", "<html>")
    logs = read_logs(tmp_path)
    assert [[turn.user for turn in dialog.turns] for dialog in logs.dialogs] == [["Hi"]]
    assert len(logs.problems) == 1 and "user.json" in logs.problems[0]


def test_a_zip_that_is_torn_or_has_no_log_is_named(tmp_path):
    (tmp_path / "a.zip").write_bytes(b"PK")
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("chat.html", "<html>")
    (tmp_path / "c.jsonl").write_text(json.dumps([HI, A]))
    torn, empty = read_logs(tmp_path).problems
    assert "cannot be unpacked" in torn and "holds no file" in empty
