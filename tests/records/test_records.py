"""Run folders: what is written stays written, and a folder holds one run."""

import errno
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest
from paths import ROOT
from small_records import ABOUT, IDENTITY, METHODS, RUNTIME, as_written, record
from synthetic_run import as_json

from holdfast.errors import AnotherRun, ModelError, RecordsError, RequestFailed
from holdfast.records import (
    FAILURES,
    Compatibility,
    command_of,
    open_run,
    read_run,
    refuse_early,
    union,
)
from holdfast.report.how_measured import about_runs


def begin_run(folder: Path, identity: dict = IDENTITY) -> None:
    """A run of one conversation."""
    with open_run(folder, identity, ABOUT) as run:
        run.append(record(0))


def test_what_is_appended_is_read_back(tmp_path):
    with open_run(tmp_path / "deep" / "run", IDENTITY, ABOUT) as run:
        run.append(record(0))
        run.append(record(0, "split-softmax:exponent=0.5"))
        run.append(record(1, text="naïve \u2028 \n \x85 🪸 \ud83c"))
        assert run.keys() == {("none", 0), ("split-softmax:exponent=0.5", 0), ("none", 1)}
    data = read_run(tmp_path / "deep" / "run")
    assert as_json(data)[2] == as_written(1, text="naïve \u2028 \n \x85 🪸 \ud83c")
    assert data.manifest.identity.to_json() == IDENTITY
    assert data.manifest.argv == ABOUT["argv"] and data.manifest.created
    assert len((tmp_path / "deep" / "run" / "records.jsonl").read_bytes().splitlines()) >= 3


def test_a_number_json_cannot_hold_is_not_written(tmp_path):
    (probe,) = record(0).probes
    unwritable = probe.model_copy(update={"score": float("nan")})
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        with pytest.raises(ValueError, match="nan"):
            run.append(record(0).model_copy(update={"probes": (unwritable,)}))
        run.append(record(0))
    assert len(read_run(tmp_path).records) == 1


def test_a_conversation_is_written_once(tmp_path):
    for _ in range(2):
        with open_run(tmp_path, IDENTITY, ABOUT) as run:
            if not run.keys():
                run.append(record(3))
            with pytest.raises(RecordsError) as excinfo:
                run.append(record(3))
            assert excinfo.value.value == ("none", 3)


@pytest.mark.parametrize("cut", [1, 2, 40, 10_000])
def test_a_torn_last_line_is_cut_off(tmp_path, cut):
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        run.append(record(0, text="é" * 20))
    path = tmp_path / "records.jsonl"
    whole = path.read_bytes()
    torn = whole.replace(b'"conversation": 0', b'"conversation": 1')
    path.write_bytes(whole + torn[: min(cut, len(whole) - 1)])
    assert len(read_run(tmp_path).records) == 1, "a reader leaves the torn line out"
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        assert run.keys() == {("none", 0)}
        assert path.read_bytes() == whole
        run.append(record(1))
    assert [r["conversation"] for r in as_json(read_run(tmp_path))] == [0, 1]


def test_a_broken_line_in_the_middle_is_named(tmp_path):
    begin_run(tmp_path)
    path = tmp_path / "records.jsonl"
    path.write_bytes(path.read_bytes() + b"{not json}\n" + path.read_bytes())
    with pytest.raises(RecordsError, match="checksum") as excinfo:
        read_run(tmp_path)
    assert (excinfo.value.option, excinfo.value.value) == (str(path), 2)
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0] * 2)
    with pytest.raises(RecordsError, match="of line 1") as excinfo:
        read_run(tmp_path)
    assert (excinfo.value.option, excinfo.value.value) == (str(path), 2)


def test_reading_does_not_show_the_checksum_and_json_readers_do(tmp_path):
    pandas = pytest.importorskip("pandas")
    begin_run(tmp_path)
    assert as_json(read_run(tmp_path)) == [as_written(0)]
    table = pandas.read_json(tmp_path / "records.jsonl", lines=True, dtype=False)
    line = (tmp_path / "records.jsonl").read_bytes()
    body = line[: line.index(b', "crc32"')]
    assert list(table["crc32"]) == [f"{zlib.crc32(body):08x}"] and list(table["conversation"]) == [
        0
    ]


def write_older(folder: Path, *lines: bytes | dict, **manifest: object) -> None:
    """Writes a run as a version without checksums did."""
    folder.mkdir(exist_ok=True)
    manifest = {**ABOUT, "identity": IDENTITY, **manifest}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    encoded = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    (folder / "records.jsonl").write_bytes(b"".join(line + b"\n" for line in encoded))


def test_a_run_without_checksums_is_read_and_resumed_with_them(tmp_path):
    write_older(tmp_path, as_written(0), as_written(1))
    assert as_json(read_run(tmp_path)) == [as_written(0), as_written(1)]
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        run.append(record(2))
    assert as_json(read_run(tmp_path)) == [as_written(0), as_written(1), as_written(2)]
    path = tmp_path / "records.jsonl"
    first, second, third = path.read_bytes().splitlines(keepends=True)
    assert b"crc32" not in first + second and b"crc32" in third
    path.write_bytes(first + second + third.replace(b"crc32", b"crc33"))
    with pytest.raises(RecordsError, match="checksum") as excinfo:
        read_run(tmp_path)
    assert excinfo.value.value == 3


DEEP = b'{"method": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
PROBE = as_written(0)["probes"][0]
TURN = as_written(0)["turns"][0]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{not json}", "is not a record"),
        (b"[1]", "is not a record but a list"),
        (DEEP, "nested too deeply"),
        (b'{"method": "none", "conversation": ' + b"1" * 5000 + b"}", "is not a record"),
        (b'{"method": "none", "conversation": 1e999}', "has no 'agent'"),
        (b'{"method": "none", "conversation": 0, "agent": {}}', "has no 'agent.id'"),
        ({"conversation": 1e999}, "has conversation inf, which should be"),
        ({"conversation": "3"}, "has conversation '3', which should be a valid integer"),
        ({"conversation": -1}, "has conversation -1, which should be greater than or equal to 0"),
        ({"conversation": 999}, "has conversation 999, and the run's are 0 to 199"),
        ({"method": "boost:factor=4"}, "the method 'boost:factor=4', which the run does not have"),
        ({"method": None}, "has method None, which should be a valid string"),
        ({"agent": {}}, "has no 'agent.id'"),
        ({"turns": {"a": 1}}, "has turns {'a': 1}, which should be a valid list"),
        ({"turns": [{**TURN, "round": 9}]}, "has round 9, and the run's are 1 to 8"),
        ({"turns": [{**TURN, "text": None}]}, "has turns.0.text None, which should be"),
        ({"probes": [{**PROBE, "score": 2}]}, "has the score 2, which is not between 0 and 1"),
        ({"probes": [{**PROBE, "score": None}]}, "has probes.0.score None, which should be"),
        ({"probes": [{**PROBE, "score": float("nan")}]}, "has probes.0.score nan"),
        ({"tokens": {"forwarded": None}}, "has tokens.forwarded None"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_line_that_does_not_belong_is_refused(tmp_path, line, why):
    identity = {**IDENTITY, "settings": {"conversations": 200, "rounds": 8}}
    wrong = line if isinstance(line, bytes) else {**as_written(1), **line}
    write_older(tmp_path, as_written(0), wrong, identity=identity)
    with pytest.raises(RecordsError) as excinfo:
        read_run(tmp_path)
    message = str(excinfo.value)
    assert message.startswith(f"Line 2 of {tmp_path / 'records.jsonl'} ") and why in message
    assert excinfo.value.value == 2 and len(message) < 400


@pytest.mark.parametrize(
    ("command", "identity", "line", "why"),
    [
        ("tasks", {}, {"scores": {"format": None}}, "has scores.format None, which should be"),
        ("tasks", {}, {"scores": []}, "has scores [], which should be a valid dictionary"),
        ("tasks", {}, {"conversation": 7}, "has sample 7, and the run's are 0 to 4"),
        ("tasks", {}, {"task": "bios"}, "has the task 'bios', which the run does not have"),
        ("tasks", {}, {"variant": "marked"}, "the variant 'marked', which the run does not have"),
        ("profile", {"samples": 3}, {"conversation": 4}, "has sample 4, and the run's are 0 to 2"),
    ],
)
def test_a_sample_that_does_not_belong_is_refused(tmp_path, command, identity, line, why):
    sample = {"method": "json zero-shot", "conversation": 0, "task": "json"}
    sample |= {"variant": "zero-shot", "scores": {"format": 1.0}}
    settings = {"samples": 5, "tasks": ["json"]}
    identity = {"variants": ["zero-shot"], "settings": settings, **identity}
    write_older(tmp_path, sample, command=command, identity=identity)
    (stored,) = read_run(tmp_path).records
    assert stored == type(stored).model_validate(sample)
    write_older(tmp_path, {**sample, **line}, command=command, identity=identity)
    with pytest.raises(RecordsError, match=re.escape(why)):
        read_run(tmp_path)


def test_a_thousand_flipped_bits_are_all_refused(tmp_path):
    """No flipped bit of the records goes unnoticed, and the message names its line."""
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        for number in range(30):
            run.append(record(number, text=f"naïve 🪸 \ud83d {number / 7}"))
            run.append(record(number, METHODS[1], text='{"a": [1e-05, 0.1]}'))
    path, rng = tmp_path / "records.jsonl", random.Random(7)
    whole = path.read_bytes()
    bits = [rng.randrange(len(whole) * 8) for _ in range(1000)]
    bits += range(len(whole) * 8 - 8, len(whole) * 8)  # the last newline
    for count, bit in enumerate(bits):
        path.write_bytes(flip_bit(whole, bit))
        with pytest.raises(RecordsError) as excinfo:
            read_run(tmp_path)
        number = whole.count(b"\n", 0, bit // 8) + 1
        assert str(excinfo.value).startswith(f"Line {number} of {path} is damaged")
        if count % 100 == 99:
            with pytest.raises(RecordsError, match=f"^Line {number} of"):
                open_run(tmp_path, IDENTITY, ABOUT)
            assert path.read_bytes() == flip_bit(whole, bit)


def flip_bit(data: bytes, bit: int) -> bytes:
    damaged = bytearray(data)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def test_a_flipped_bit_of_the_manifest_is_refused(tmp_path):
    begin_run(tmp_path)
    path = tmp_path / "manifest.json"
    whole = path.read_bytes()
    for bit in random.Random(3).sample(range(len(whole) * 8), 1000):
        path.write_bytes(flip_bit(whole, bit))
        with pytest.raises(RecordsError, match=r"manifest\.json"):
            read_run(tmp_path)


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"rounds": 4}, ("rounds", 8, 4)),
        ({"runtime": {**RUNTIME, "device": "cuda"}}, ("runtime.device", "cpu", "cuda")),
        ({"methods": ["none"]}, ("methods", METHODS, ["none"])),
        ({"extra": True}, ("extra", None, True)),
        ({"rounds": True}, ("rounds", 8, True)),
        ({"seed": ...}, ("seed", 0, None)),
    ],
)
def test_another_run_is_refused_by_its_first_difference(tmp_path, changes, difference):
    begin_run(tmp_path)
    identity = {k: v for k, v in {**IDENTITY, **changes}.items() if v is not ...}
    with pytest.raises(RecordsError) as excinfo:
        open_run(tmp_path, identity, {**ABOUT, "argv": "holdfast drift"})
    error = excinfo.value
    assert (error.option, error.allowed, error.value) == difference
    assert type(error.value) is type(difference[2])
    assert str(tmp_path) in str(error)
    assert ABOUT["argv"] in str(error)  # the command that would resume it
    open_run(tmp_path, IDENTITY, ABOUT).close()  # the refusal did not keep the lock


def test_tuples_and_lists_are_the_same_setting(tmp_path):
    begin_run(tmp_path, {**IDENTITY, "methods": tuple(METHODS)})
    open_run(tmp_path, IDENTITY, ABOUT).close()


def test_resuming_keeps_the_first_manifest_and_adds_its_own(tmp_path):
    open_run(tmp_path, IDENTITY, ABOUT).close()
    first = read_run(tmp_path).manifest
    open_run(tmp_path, IDENTITY, {**ABOUT, "versions": {"python": "3.12"}}).close()
    second = read_run(tmp_path).manifest
    assert second.versions == {"python": "3.11"} and second.created == first.created
    assert [about.versions for about in second.resumed] == [{"python": "3.12"}]


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    for name in ("records.jsonl", "thesis.tex"):
        (tmp_path / name).write_text("mine")
        with pytest.raises(AnotherRun) as excinfo:
            open_run(tmp_path, IDENTITY, ABOUT)
        assert excinfo.value.value == "records.jsonl"
        assert (tmp_path / name).read_text() == "mine"


def test_a_path_that_is_not_a_run_is_refused(tmp_path):
    with pytest.raises(AnotherRun) as excinfo:
        read_run(tmp_path / "nowhere")
    assert excinfo.value.option == str(tmp_path / "nowhere")
    with pytest.raises(AnotherRun, match=r"manifest\.json"):
        read_run(tmp_path)
    (page := tmp_path / "report.html").write_text("a page")
    with pytest.raises(AnotherRun) as excinfo:
        read_run(page)
    assert excinfo.value.option == str(page)
    run = tmp_path / "stability"
    open_run(run, IDENTITY, ABOUT).close()
    with pytest.raises(AnotherRun) as excinfo:
        read_run(tmp_path)
    assert str(page) in str(excinfo.value) and str(run) in str(excinfo.value)
    (run / "report.html").write_text("a page")
    with pytest.raises(AnotherRun, match=f"{re.escape(str(run))}\\."):
        read_run(run / "report.html")
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(RecordsError, match=r"manifest\.json") as excinfo:
        read_run(tmp_path)
    assert not isinstance(excinfo.value, AnotherRun)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordsError, match="Not a directory") as excinfo:
        open_run(tmp_path / "file" / "run", IDENTITY, ABOUT)
    assert excinfo.value.option == str(tmp_path / "file" / "run")


def test_two_writers_are_kept_apart(tmp_path):
    run = open_run(tmp_path, IDENTITY, ABOUT)
    with pytest.raises(RecordsError) as excinfo:
        open_run(tmp_path, IDENTITY, ABOUT)
    assert excinfo.value.value == str(os.getpid())
    code = (
        "import sys; from holdfast.records import open_run; from holdfast.errors import"
        f" RecordsError\ntry: open_run({str(tmp_path)!r}, {IDENTITY!r}, {{}})\nexcept RecordsError"
        " as error: print(error.value)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True
    )
    assert result.stdout.strip() == str(os.getpid())
    run.close()
    run.close()
    open_run(tmp_path, IDENTITY, ABOUT).close()


def without_flock(monkeypatch, error: int = errno.ENOLCK) -> None:
    """Simulates a network file system without locks."""
    import fcntl

    def unsupported(file: int, operation: int) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(fcntl, "flock", unsupported)


@pytest.mark.parametrize("error", [errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP])
def test_a_file_system_without_locks_is_a_warning(tmp_path, monkeypatch, error):
    without_flock(monkeypatch, error)
    with pytest.warns(UserWarning, match=f"{tmp_path} has no locks"):
        begin_run(tmp_path)
    assert len(read_run(tmp_path).records) == 1


def test_a_file_system_that_cannot_be_synced_is_a_warning(tmp_path, monkeypatch):
    def unsupported(file: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", unsupported)
    with pytest.warns(UserWarning, match="cannot be synced"):
        begin_run(tmp_path)
    assert len(read_run(tmp_path).records) == 1


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


def test_an_older_manifest_is_read_with_defaults_for_what_it_lacks(tmp_path):
    identity = {"model": "a", "settings": {"rounds": 8, "sampling": {"temperature": 1.0}}}
    defaults = {"settings": {"pairs": "random", "sampling": {"top_p": 0.9}}, "scoring": "strict"}
    write_older(tmp_path, as_written(0), identity=identity)
    sampling = {"temperature": 1.0, "top_p": 0.9}
    settings = {"rounds": 8, "pairs": "random", "sampling": sampling}
    newer = {"model": "a", "settings": settings, "scoring": "strict"}
    open_run(tmp_path, newer, ABOUT, Compatibility(defaults)).close()
    assert read_run(tmp_path).manifest.identity.to_json() == newer
    write_older(tmp_path, as_written(0), identity=identity)
    newer["settings"]["pairs"] = "all"
    with pytest.raises(AnotherRun) as excinfo:
        open_run(tmp_path, newer, ABOUT, Compatibility(defaults))
    error = excinfo.value
    assert (error.option, error.allowed, error.value) == ("settings.pairs", "random", "all")


def test_a_run_is_extended_if_its_identity_may_grow(tmp_path):
    begin_run(tmp_path)
    joins = {"methods": union, "seed": lambda old, new: None}
    grows = Compatibility(joins=joins, reasons={"rounds": "dialogs are over"})
    open_run(tmp_path, {**IDENTITY, "methods": ["none", "boost"]}, ABOUT, grows).close()
    assert read_run(tmp_path).manifest.identity.to_json()["methods"] == [*METHODS, "boost"]
    for changes, message in (
        ({"rounds": 9}, "rounds is 8 there and 9 here (dialogs are over); choose"),
        ({"seed": 1}, "seed is 0 there"),
    ):
        with pytest.raises(RecordsError, match=re.escape(message)):
            open_run(tmp_path, {**IDENTITY, **changes}, ABOUT, grows)
        with pytest.raises(RecordsError, match=re.escape(message)):
            refuse_early(tmp_path, changes, {}, grows)
    refuse_early(tmp_path, {"methods": ["boost"], "rounds": 8}, {}, grows)
    defaults = {"settings": {"pairs": "random", "batch": 48}, "plan": {"draws": 5}}
    newer = Compatibility(defaults=defaults)
    refuse_early(tmp_path, {"settings": {"pairs": "random"}}, {}, newer)
    assert read_run(tmp_path).manifest.identity.to_json()["methods"] == [*METHODS, "boost"]


def test_a_run_without_records_accepts_changed_settings(tmp_path):
    open_run(tmp_path, IDENTITY, ABOUT).close()
    refuse_early(tmp_path, {"rounds": 4}, {})
    begin_run(tmp_path, {**IDENTITY, "rounds": 4})
    manifest = read_run(tmp_path).manifest
    assert manifest.identity.to_json()["rounds"] == 4 and not manifest.resumed


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


def test_a_run_is_read_as_a_table_of_probes(tmp_path):
    pandas = pytest.importorskip("pandas")
    begin_run(tmp_path)
    frame = read_run(tmp_path).to_pandas()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == 1
    row = frame.iloc[0]
    expected = {"method": "none", "conversation": 0, "agent": "a", "category": "pattern"}
    expected |= {"round": 1, "kind": "stability", "score": 1.0, "mass": 0.1, "reply": "hello"}
    assert {name: row[name] for name in expected} == expected
    assert row["user"] is None


def test_failure_notes_are_read_until_their_key_is_recorded(tmp_path):
    begin_run(tmp_path)
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        run.note_failure("none", 1, "failure", "It failed.")
        run.note_failure("none", 2, "filter", "Naïve \u2028 line.")
        run.note_failure("none", 1, "context", "It was too long.")
    notes = {note.conversation: note.why for note in read_run(tmp_path).failures}
    assert notes == {1: "context", 2: "filter"}
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        run.append(record(1))
    (failure,) = read_run(tmp_path).failures
    assert failure.conversation == 2 and failure.reason == "Naïve \u2028 line."


def test_a_torn_note_is_cut_and_a_damaged_one_named(tmp_path):
    begin_run(tmp_path)
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        run.note_failure("none", 1, "failure", "It failed.")
        run.note_failure("none", 2, "failure", "It failed.")
    path = tmp_path / FAILURES
    path.write_bytes(path.read_bytes()[:-20])
    assert [note.conversation for note in read_run(tmp_path).failures] == [1]
    open_run(tmp_path, IDENTITY, ABOUT).close()
    assert path.read_bytes().count(b"\n") == 1 and path.read_bytes().endswith(b"}\n")
    path.write_bytes(path.read_bytes().replace(b"failed", b"fooled"))
    with pytest.raises(RecordsError, match=r"Line 1 of .*failures\.jsonl"):
        read_run(tmp_path)


def test_an_extended_run_names_the_command_that_extended_it(tmp_path):
    grows = Compatibility(joins={"methods": union})
    begin_run(tmp_path)
    nine_rounds = {**IDENTITY, "rounds": 9}
    typed = {**ABOUT, "argv": "holdfast drift --rounds 9"}
    with pytest.raises(RecordsError, match="drift --seed 0`"):
        open_run(tmp_path, nine_rounds, typed, grows)
    wider = {**IDENTITY, "methods": ["none", "boost"]}
    open_run(tmp_path, wider, {**ABOUT, "argv": "holdfast drift --method boost"}, grows).close()
    about_again = {**ABOUT, "argv": "holdfast drift --seed 0 --progress"}
    open_run(tmp_path, IDENTITY, about_again, grows).close()
    message = r"repeat the last command that extended it to .*drift --method boost`"
    with pytest.raises(RecordsError, match=message):
        open_run(tmp_path, nine_rounds, typed, grows)
    run = read_run(tmp_path)
    assert command_of(run.manifest) == "holdfast drift --method boost"
    (about,) = about_runs([run], [""])
    assert about.command == "holdfast drift --method boost"


def test_the_refusal_of_a_command_does_not_suggest_repeating_it(tmp_path):
    begin_run(tmp_path)
    message = r"there and 9 here; choose another folder with out\.$"
    with pytest.raises(AnotherRun, match=message) as excinfo:
        open_run(tmp_path, {**IDENTITY, "rounds": 9}, ABOUT)
    assert "repeat" not in str(excinfo.value)


def test_a_changed_suite_is_reported_without_its_fingerprints(tmp_path):
    edited = [{**IDENTITY, "suite": "bot", "suite_fingerprint": sign * 64} for sign in "ab"]
    begin_run(tmp_path, edited[0])
    with pytest.raises(AnotherRun) as excinfo:
        open_run(tmp_path, edited[1], ABOUT)
    message = f"The suite 'bot' has changed since the run in {tmp_path}; choose another folder"
    assert str(excinfo.value).startswith(message) and "fingerprint" not in str(excinfo.value)


def test_a_run_of_another_command_is_reported_before_any_difference(tmp_path):
    begin_run(tmp_path)
    nine_rounds = {**IDENTITY, "rounds": 9}
    check = {**ABOUT, "argv": "holdfast check bot.yaml"}
    message = r"a run of `holdfast drift`, not of `holdfast check`; .*--seed 0`\)\.$"
    with pytest.raises(AnotherRun, match=message):
        open_run(tmp_path, nine_rounds, check)
    python = {**ABOUT, "command": "tasks", "argv": ""}
    with pytest.raises(AnotherRun, match=r"`holdfast drift`.*`holdfast tasks`"):
        open_run(tmp_path, nine_rounds, python)
    with pytest.raises(AnotherRun, match="rounds is 8 there"):
        open_run(tmp_path, nine_rounds, {**python, "command": ABOUT["command"]})


def test_a_dry_run_is_not_the_command_that_made_the_run(tmp_path):
    dry, whole = "holdfast drift --dry-run --seed 0", "holdfast drift --seed 0"
    open_run(tmp_path, IDENTITY, {**ABOUT, "argv": dry}).close()
    assert command_of(read_run(tmp_path).manifest) == dry
    open_run(tmp_path, IDENTITY, {**ABOUT, "argv": whole}).close()
    open_run(tmp_path, IDENTITY, {**ABOUT, "argv": dry}).close()
    (about,) = about_runs([read_run(tmp_path)], [""])
    assert about.command == whole


def test_errors_of_a_reachable_endpoint_are_passed_on_unchanged(tmp_path):
    for error in (ModelError("The key is wrong."), RequestFailed("It failed.")):
        with pytest.raises(type(error)) as excinfo, open_run(tmp_path, IDENTITY, ABOUT):
            raise error
        assert excinfo.value is error
