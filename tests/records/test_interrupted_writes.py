"""A write that is interrupted, or finds no room, loses no record before it."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from paths import ROOT
from small_records import ABOUT, IDENTITY, as_written, record
from synthetic_run import as_json

from holdfast.errors import RecordsError
from holdfast.records import open_run, read_run


def interrupt(file: int) -> None:
    raise KeyboardInterrupt


def test_an_interrupt_in_the_middle_of_a_line_removes_it(tmp_path, monkeypatch):
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        run.append(record(0))
        before = (tmp_path / "records.jsonl").read_bytes()
        real = os.write

        def interrupt_write(file: int, data: bytes) -> int:
            real(file, data[:25])
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "write", interrupt_write)
        with pytest.raises(KeyboardInterrupt):
            run.append(record(1))
        monkeypatch.undo()
        assert (tmp_path / "records.jsonl").read_bytes() == before
        run.append(record(1))
        monkeypatch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run.append(record(2))
        monkeypatch.undo()
        assert run.keys() == {("none", 0), ("none", 1), ("none", 2)}, "a whole line stays"
    assert len(read_run(tmp_path).records) == 3


def test_a_disk_that_fills_up_within_a_line_loses_only_that_line(tmp_path, monkeypatch):
    """Records before a write that stops half-way are kept, and the run can continue."""
    run = open_run(tmp_path, IDENTITY, ABOUT)
    run.append(record(0))
    before = (tmp_path / "records.jsonl").read_bytes()
    real, calls = os.write, []

    def full(file: int, data: bytes) -> int:
        calls.append(len(data))
        if len(calls) == 1:
            return real(file, data[:25])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(RecordsError, match="the disk is full; the 1"):
        run.append(record(1))
    monkeypatch.undo()
    assert len(calls) == 2 and run.keys() == {("none", 0)}
    assert (tmp_path / "records.jsonl").read_bytes() == before
    run.append(record(1))
    run.close()
    assert len(read_run(tmp_path).records) == 2


def test_a_size_limit_reached_within_a_line_loses_only_that_line(tmp_path):
    """The kernel cuts a line off at the size limit; the whole lines before it stay."""
    code = (
        "import json, resource, signal, sys; from holdfast.records import Conversation, open_run;"
        " from holdfast.errors import RecordsError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nrun"
        f" = open_run({str(tmp_path)!r}, {IDENTITY!r},"
        f" {ABOUT!r})\nresource.setrlimit(resource.RLIMIT_FSIZE, (2500, 2500))\nrecord ="
        " json.loads(sys.argv[1])\ntry:\n    for i in range(100):"
        " run.append(Conversation.model_validate({**record, 'conversation': i}))\n"
        "except RecordsError as error: print(error)\n"
    )
    command = [sys.executable, "-c", code, json.dumps(as_written(0))]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    records = as_json(read_run(tmp_path))
    assert 1 <= len(records) < 100
    assert f"the {len(records)} conversations" in result.stdout
    assert (tmp_path / "records.jsonl").read_bytes().endswith(b"\n")


@pytest.mark.slow
def test_killed_and_resumed_equals_uninterrupted(tmp_path):
    """A writer killed at five moments and resumed leaves the same lines as an uninterrupted one."""
    total = 120
    code = (
        "import sys; from small_records import record, IDENTITY,"
        " ABOUT\nfrom holdfast.records import open_run\nwith open_run(sys.argv[1], IDENTITY,"
        f" ABOUT) as run:\n    print('open', flush=True)\n    for i in range({total}):\n        if"
        " ('none', i) not in run.keys(): run.append(record(i, text='x' * 5000))\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    root = ROOT

    def start(folder: Path) -> subprocess.Popen:
        command = [sys.executable, "-c", code, str(folder)]
        return subprocess.Popen(command, env=env, cwd=root, stdout=subprocess.PIPE)

    killed = 0
    for moment in (0.0, 0.004, 0.011, 0.023, 0.05):
        with start(tmp_path / "killed") as writer:
            writer.stdout.readline()
            time.sleep(moment)
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            killed += writer.returncode == -signal.SIGKILL
    for folder in ("killed", "whole"):
        with start(tmp_path / folder) as writer:
            assert writer.wait() == 0
    assert killed
    resumed, uninterrupted = (
        (tmp_path / folder / "records.jsonl").read_bytes() for folder in ("killed", "whole")
    )
    assert resumed == uninterrupted and resumed.count(b"\n") == total
