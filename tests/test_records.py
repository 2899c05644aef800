"""Run folders: what is written stays written, and a folder holds one run."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.errors import RecordsError
from holdfast.records import open_run, probes_frame, read_run

IDENTITY = {"model": {"name": "default", "fingerprint": "ab12"}, "rounds": 8, "methods": ["none"], "seed": 0}
ABOUT = {"holdfast": "0.1.0", "command": "drift", "argv": "holdfast drift --seed 0", "versions": {"python": "3.11"}}


def record(number: int, method: str = "none", text: str = "hello") -> dict:
    """A small whole record."""
    person = {"id": "a", "category": "pattern", "system_prompt": "Be brief."}
    return {
        "method": method,
        "conversation": number,
        "agent": person,
        "user": {"id": None, "category": None, "system_prompt": ""},
        "turns": [{"round": 1, "speaker": "user", "text": text, "stop_reason": "stop", "mass": None}],
        "probes": [
            {
                "round": 1,
                "kind": "stability",
                "probe": 0,
                "question": "?",
                "reply": text,
                "score": 1.0,
                "reason": "short",
                "mass": 0.1,
            }
        ],
        "tokens": {"forwarded": 10, "least": 9},
        "seconds": 0.1,
    }


def test_what_is_appended_is_read_back(tmp_path):
    with open_run(tmp_path / "deep" / "run", IDENTITY, ABOUT) as run:
        run.append(record(0))
        run.append(record(0, "split-softmax:exponent=0.5"))
        run.append(record(1, text="naïve \u2028 \n \x85 🪸"))
        assert run.keys() == {("none", 0), ("split-softmax:exponent=0.5", 0), ("none", 1)}
    data = read_run(tmp_path / "deep" / "run")
    assert data.records[2] == record(1, text="naïve \u2028 \n \x85 🪸")
    assert data.manifest["identity"] == IDENTITY
    assert data.manifest["argv"] == ABOUT["argv"]
    assert data.manifest["created"]
    assert len((tmp_path / "deep" / "run" / "records.jsonl").read_bytes().splitlines()) >= 3


def test_a_lone_surrogate_is_kept(tmp_path):
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        run.append(record(0, text="half \ud83c"))
    assert read_run(tmp_path).records[0]["turns"][0]["text"] == "half \ud83c"


def test_a_number_json_cannot_hold_is_not_written(tmp_path):
    broken = record(0)
    broken["probes"][0]["score"] = float("nan")
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        with pytest.raises(ValueError, match="JSON compliant"):
            run.append(broken)
        run.append(record(0))
    assert len(read_run(tmp_path).records) == 1


def test_a_conversation_is_written_once(tmp_path):
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        run.append(record(3))
        with pytest.raises(RecordsError, match="Conversation 3 with method 'none' is already recorded"):
            run.append(record(3))
    with (
        open_run(tmp_path, IDENTITY, ABOUT) as run,
        pytest.raises(RecordsError, match=r"Conversation 3 .* already recorded"),
    ):
        run.append(record(3))


@pytest.mark.parametrize("cut", [1, 2, 40, 10_000])
def test_a_torn_last_line_is_cut_away(tmp_path, cut):
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        run.append(record(0, text="é" * 20))
    path = tmp_path / "records.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + whole.replace(b'"conversation": 0', b'"conversation": 1')[: min(cut, len(whole) - 1)])
    assert len(read_run(tmp_path).records) == 1, "a reader leaves the torn line out"
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        assert run.keys() == {("none", 0)}
        assert path.read_bytes() == whole
        run.append(record(1))
    assert [r["conversation"] for r in read_run(tmp_path).records] == [0, 1]


def test_a_broken_line_in_the_middle_is_named(tmp_path):
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        run.append(record(0))
    path = tmp_path / "records.jsonl"
    path.write_bytes(path.read_bytes() + b"{not json}\n" + path.read_bytes())
    with pytest.raises(RecordsError, match=r"Line 2 of .*records\.jsonl is not a record"):
        read_run(tmp_path)
    path.write_bytes(b'{"method": "none", "conversation": 0, "agent": {}, "user": {}, "turns": []}\n')
    with pytest.raises(RecordsError, match=r"Line 1 of .* has no 'probes'"):
        read_run(tmp_path)
    path.write_text(json.dumps(record(0)) + "\n" + json.dumps(record(0)) + "\n")
    with pytest.raises(RecordsError, match=r"Line 2 of .* repeats conversation 0"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rounds": 4}, "its rounds is 8, this command's is 4"),
        (
            {"model": {"name": "default", "fingerprint": "cd34"}},
            'its model.fingerprint is "ab12", this command\'s is "cd34"',
        ),
        ({"methods": ["none", "repeat"]}, r'its methods is ["none"], this command\'s is ["none", "repeat"]'),
        ({"extra": True}, "its extra is not given, this command's is true"),
        ({"rounds": True}, "its rounds is 8, this command's is true"),
        ({"seed": False}, "its seed is 0, this command's is false"),
        ({"rounds": 4, "seed": 9}, "its rounds is 8, this command's is 4"),
    ],
)
def test_another_run_is_refused_by_its_first_difference(tmp_path, changed, message):
    open_run(tmp_path, IDENTITY, ABOUT).close()
    with pytest.raises(RecordsError) as caught:
        open_run(tmp_path, {**IDENTITY, **changed}, ABOUT)
    assert message.replace("\\'", "'") in str(caught.value)
    assert "holdfast drift --seed 0" in str(caught.value), "the command that would resume it"
    assert str(tmp_path) in str(caught.value)
    open_run(tmp_path, IDENTITY, ABOUT).close()  # the refusal did not keep the lock


def test_a_missing_setting_is_a_difference_too(tmp_path):
    open_run(tmp_path, IDENTITY, ABOUT).close()
    shorter = {name: value for name, value in IDENTITY.items() if name != "seed"}
    with pytest.raises(RecordsError, match="its seed is 0, this command's is not given"):
        open_run(tmp_path, shorter, ABOUT)


def test_tuples_and_lists_are_the_same_setting(tmp_path):
    open_run(tmp_path, {**IDENTITY, "methods": ("none",)}, ABOUT).close()
    open_run(tmp_path, IDENTITY, ABOUT).close()


def test_resuming_keeps_the_first_manifest_and_adds_its_own(tmp_path):
    open_run(tmp_path, IDENTITY, ABOUT).close()
    first = read_run(tmp_path).manifest
    open_run(tmp_path, IDENTITY, {**ABOUT, "versions": {"python": "3.12"}}).close()
    second = read_run(tmp_path).manifest
    assert second["versions"] == {"python": "3.11"} and second["created"] == first["created"]
    assert [about["versions"] for about in second["resumed"]] == [{"python": "3.12"}]


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(RecordsError, match=r"not empty and is not a run \(it holds 'thesis.tex'\)"):
        open_run(tmp_path, IDENTITY, ABOUT)


def test_reading_what_is_no_run(tmp_path):
    with pytest.raises(RecordsError, match="nowhere is not a run: it does not exist"):
        read_run(tmp_path / "nowhere")
    with pytest.raises(RecordsError, match=r"is not a run: it holds no manifest.json"):
        read_run(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(RecordsError, match=r"manifest.json cannot be read"):
        read_run(tmp_path)


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordsError, match=r"Cannot write to .*file/run: Not a directory; choose a folder"):
        open_run(tmp_path / "file" / "run", IDENTITY, ABOUT)


def test_two_writers_are_kept_apart(tmp_path):
    run = open_run(tmp_path, IDENTITY, ABOUT)
    with pytest.raises(RecordsError, match=f"is being written by process {os.getpid()}; wait for it to end"):
        open_run(tmp_path, IDENTITY, ABOUT)
    code = (
        "import sys; from holdfast.records import open_run; from holdfast.errors import RecordsError\n"
        f"try: open_run({str(tmp_path)!r}, {IDENTITY!r}, {{}})\n"
        "except RecordsError as error: print(error)\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True)
    assert f"is being written by process {os.getpid()}" in shown.stdout
    run.close()
    run.close()
    open_run(tmp_path, IDENTITY, ABOUT).close()


def test_full_disk_in_the_middle_of_a_line(tmp_path, monkeypatch):
    """A write that stops half-way and then fails leaves the lines before it, and the run can go on."""
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
    with pytest.raises(RecordsError, match="the disk is full; the 1 conversations recorded there are safe, so free some space"):
        run.append(record(1))
    monkeypatch.undo()
    assert len(calls) == 2
    assert (tmp_path / "records.jsonl").read_bytes() == before
    assert run.keys() == {("none", 0)}
    run.append(record(1))
    run.close()
    assert len(read_run(tmp_path).records) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_device(tmp_path):
    run = open_run(tmp_path, IDENTITY, ABOUT)
    device = os.open("/dev/full", os.O_WRONLY)
    os.dup2(device, run._file)
    os.close(device)
    with pytest.raises(RecordsError, match="the disk is full; the 0 conversations"):
        run.append(record(0))
    run.close()


def test_a_file_that_may_not_grow(tmp_path):
    """The kernel itself cuts a line off at the size limit of the process; what was whole before stays."""
    code = (
        "import json, resource, signal, sys; from holdfast.records import open_run; from holdfast.errors import RecordsError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"run = open_run({str(tmp_path)!r}, {IDENTITY!r}, {ABOUT!r})\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2500, 2500))\n"
        "record = json.loads(sys.argv[1])\n"
        "try:\n"
        "    for i in range(100): run.append({**record, 'conversation': i})\n"
        "except RecordsError as error: print(error)\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code, json.dumps(record(0))], capture_output=True, text=True, env=os.environ, check=True
    )
    kept = read_run(tmp_path).records
    assert 1 <= len(kept) < 100
    assert f"the file may not grow further; the {len(kept)} conversations" in shown.stdout
    assert (tmp_path / "records.jsonl").read_bytes().endswith(b"\n")


def test_killed_and_resumed_equals_uninterrupted(tmp_path):
    """A writer killed at five moments and resumed leaves the same lines as one that was left in peace."""
    total = 120
    code = (
        "import sys; sys.path.insert(0, 'tests'); from test_records import record, IDENTITY, ABOUT\n"
        "from holdfast.records import open_run\n"
        "with open_run(sys.argv[1], IDENTITY, ABOUT) as run:\n"
        "    print('open', flush=True)\n"
        f"    for i in range({total}):\n"
        "        if ('none', i) not in run.keys(): run.append(record(i, text='x' * 5000))\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    root = Path(__file__).parents[1]

    def start(folder: Path) -> subprocess.Popen:
        return subprocess.Popen([sys.executable, "-c", code, str(folder)], env=env, cwd=root, stdout=subprocess.PIPE)

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
    left, right = ((tmp_path / folder / "records.jsonl").read_bytes() for folder in ("killed", "whole"))
    assert left == right
    assert left.count(b"\n") == total


def test_probes_as_a_table(tmp_path):
    pandas = pytest.importorskip("pandas")
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        run.append(record(0))
    frame = probes_frame(read_run(tmp_path))
    assert isinstance(frame, pandas.DataFrame) and len(frame) == 1
    row = frame.iloc[0]
    assert (row["method"], row["conversation"], row["agent"], row["category"]) == ("none", 0, "a", "pattern")
    assert (row["round"], row["kind"], row["score"], row["mass"], row["reply"]) == (1, "stability", 1.0, 0.1, "hello")
    assert row["user"] is None
