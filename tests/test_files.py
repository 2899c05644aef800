"""Files other than records are written whole or not at all, whatever the disk does."""

import errno
import os
import re
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import holdfast
from holdfast import files
from holdfast.errors import AnotherRun, RecordsError, UsageError
from holdfast.files import FULL, read_text, short_path, write_whole
from holdfast.methods.head_specs import write_heads
from holdfast.papers.findings import publish
from holdfast.records.traces import TurnTrace, write_traces
from holdfast.report.figures import save


@pytest.fixture
def small_disk(tmp_path):
    """A 64 KiB disk, if this machine lets us mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_text_and_bytes_are_written_and_folders_are_made(tmp_path):
    path = write_whole(tmp_path / "a" / "b.html", "naïve \ud83d")
    assert path.read_bytes() == "naïve ?".encode()
    write_whole(path, b"\xff")
    assert path.read_bytes() == b"\xff"
    assert names(path.parent) == ["b.html"]


def test_permissions_match_those_of_an_ordinary_file(tmp_path):
    (tmp_path / "plain").write_text("")
    write_whole(tmp_path / "whole", "")
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_link_keeps_pointing_to_its_file(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_text() == "new"


def test_a_full_disk_leaves_the_old_file(small_disk):
    write_whole(small_disk / "page.html", "old")
    with pytest.raises(RecordsError) as excinfo:
        write_whole(small_disk / "page.html", b"x" * 100_000, "another place with --report")
    message = str(excinfo.value)
    assert str(small_disk / "page.html") in message and FULL[errno.ENOSPC] in message
    assert message.endswith("another place with --report.")
    assert (small_disk / "page.html").read_text() == "old" and names(small_disk) == ["page.html"]


@pytest.mark.parametrize("at", [0, 1])
def test_a_write_that_fails_half_way_leaves_the_old_file(tmp_path, monkeypatch, at):
    write_whole(tmp_path / "page.html", "old")
    real, calls = os.write, []

    def full(file: int, data: bytes) -> int:
        calls.append(len(data))
        if len(calls) <= at:
            return real(file, data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(RecordsError, match=FULL[errno.ENOSPC]):
        write_whole(tmp_path / "page.html", "new" * 100)
    assert (tmp_path / "page.html").read_text() == "old" and names(tmp_path) == ["page.html"]


def test_an_unwritable_path_is_explained(tmp_path):
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file" / "page.html", tmp_path):
        with pytest.raises(RecordsError, match=f"Cannot write {path}: .*; choose another place"):
            write_whole(path, "x")
    assert names(tmp_path) == ["file"]


def test_a_missing_file_is_named_with_the_one_that_was_meant(tmp_path):
    (tmp_path / "bot.yaml").write_text("cases: []")
    with pytest.raises(UsageError, match=r"bot\.yml cannot be read .*did you mean .*bot\.yaml\?$"):
        read_text(tmp_path / "bot.yml")
    with pytest.raises(UsageError, match=r"did you mean .*bot\.yaml\?$"):
        read_text(tmp_path / "bto.yaml")
    with pytest.raises(UsageError, match=r"a\.yaml cannot be read .*; check the path\.$"):
        read_text(tmp_path / "a.yaml")
    with pytest.raises(UsageError, match=r"other\.md cannot be read .*; check the path\.$"):
        read_text(tmp_path / "other.md")
    with pytest.raises(UsageError, match=r"check the path\.$"):
        read_text(tmp_path / "nowhere" / "bot.yaml")


def test_a_missing_run_is_named_with_the_one_that_was_meant(tmp_path):
    (tmp_path / "drift-bot").mkdir()
    with pytest.raises(AnotherRun, match=r"does not exist; did you mean .*drift-bot\?$"):
        holdfast.records.read_run(tmp_path / "drift-bto")
    with pytest.raises(AnotherRun, match=r"it does not exist; give the folder .* named\.$"):
        holdfast.records.read_run(tmp_path / "other")


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_file_system_without_sync_only_causes_a_warning(tmp_path, monkeypatch, what):
    real = os.fsync

    def unsupported(file: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{file}") == (what == "folder"):
            raise OSError(errno.EINVAL, "Invalid argument")
        real(file)

    monkeypatch.setattr(os, "fsync", unsupported)
    with pytest.warns(UserWarning, match="cannot be synced") as warned:
        write_whole(tmp_path / "page.html", "x")
    assert len(warned) == 1 and (tmp_path / "page.html").read_text() == "x"


def test_a_disk_that_fails_to_sync_is_an_error(tmp_path, monkeypatch):
    def failing_sync(file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(files.os, "fsync", failing_sync)
    with warnings.catch_warnings(), pytest.raises(RecordsError, match="Input/output error"):
        warnings.simplefilter("error")
        write_whole(tmp_path / "page.html", "x")
    assert names(tmp_path) == []


def test_a_device_is_written_to():
    write_whole("/dev/null", "x")
    assert not Path("/dev/null").is_file()


# modules that cannot write a file whole, and why
OTHER_WRITERS = {
    "records": "a run's lines are appended",
    "coding_agents/session_state.py": "a new file, by its descriptor",
    "logs/label_file.py": "labels are appended as they are given",
    "logs/part_scanning.py": "a scratch file",
    "models/install.py": "downloads, which may be resumed",
    "proxy/chat_log.py": "chats are appended as they end",
    "report/logs_export.py": "larger than memory, so to a temporary file",
    "cli/command_failures.py": "/dev/null",
}


def test_no_other_module_writes_files_by_itself():
    source = Path(holdfast.__file__).parent
    plain = re.compile(
        r"\.write_(text|bytes)\(|\bopen\([^)]*[\"'][wxa]b?\+?[\"']|savefig\((?!buffer)"
    )
    paths = [
        path.relative_to(source)
        for path in source.rglob("*.py")
        if plain.search(path.read_text(encoding="utf-8"))
    ]
    writers = {"records" if path.parts[0] == "records" else str(path) for path in paths}
    assert writers == {"files.py", *OTHER_WRITERS}


def test_every_writer_explains_a_full_disk(tmp_path, monkeypatch):
    def full(file: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    turns = {1: TurnTrace(np.zeros((1, 1, 2)), np.zeros(2))}
    writers = {
        "heads.json": lambda: write_heads(tmp_path / "heads.json", [(0, 1)]),
        "traces/none-3.npz": lambda: write_traces(tmp_path, "none", 3, turns),
        "drift.svg": lambda: save({"drift": Figure()}, tmp_path),
        "findings.json": lambda: publish([], "", [], tmp_path, print),
    }
    monkeypatch.setattr(os, "write", full)
    for name, write in writers.items():
        with pytest.raises(RecordsError, match=f"{tmp_path / name}: {FULL[errno.ENOSPC]}"):
            write()
    assert names(tmp_path) == ["traces"] and names(tmp_path / "traces") == []


def test_a_path_is_printed_from_the_current_folder_if_it_lies_below(tmp_path, monkeypatch):
    (here := tmp_path / "here").mkdir()
    monkeypatch.chdir(here)
    assert short_path(here / "runs" / "a.html") == Path("runs/a.html")
    assert short_path(Path("runs/../b.html")) == Path("b.html")
    assert short_path(Path("../c.html")) == tmp_path.resolve() / "c.html"
