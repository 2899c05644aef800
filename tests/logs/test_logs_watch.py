"""`holdfast logs --watch`: new and grown files are scored as they change."""

import json
import tracemalloc

import pytest
from logged_dialogs import SHORT, asked_and_answered, chats, lines_of

from holdfast.cli import main
from holdfast.cli.logs import log_progress
from holdfast.drift import load_suite
from holdfast.logs import part_scanning, read_logs, score_logs
from holdfast.logs.part_scanning import Scan
from holdfast.logs.watching import LogWatch
from holdfast.records import read_run


def _breaking(number):
    return {"messages": asked_and_answered("And?", f"Yes {number}. And more. So.")}


def _event(name, kind, text, parent=None):
    message = {"role": kind, "content": text}
    of_session = {"type": kind, "uuid": name, "parentUuid": parent, "sessionId": "s"}
    return {**of_session, "message": message}


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "short.yaml").write_text(SHORT)
    return tmp_path / "short.yaml"


@pytest.fixture
def watch(tmp_path, suite):
    (tmp_path / "logs").mkdir()
    (tmp_path / "scratch").mkdir()
    loaded = load_suite(str(suite), probed=False)
    return LogWatch([tmp_path / "logs"], Scan(loaded, None, tmp_path / "scratch"))


def _append(path, *values):
    with path.open("a") as file:
        file.write(lines_of(values))


def test_only_what_is_new_is_read_and_only_new_breaches_are_given(tmp_path, watch, monkeypatch):
    assert watch.poll() is None
    path = tmp_path / "logs" / "a.jsonl"
    _append(path, *chats(3, lambda n: 9), _breaking(1))
    (breach,) = watch.poll()
    assert (breach.turn, breach.rule) == (1, "short") and breach.source.endswith("line 4")
    assert watch.poll() is None
    parts = []

    def watched_scan(scan, part):
        parts.append((part.start, part.first_line))
        return scan_part(scan, part)

    scan_part = part_scanning.scan_part
    monkeypatch.setattr("holdfast.logs.watching.scan_part", watched_scan)
    size = path.stat().st_size
    _append(path, _breaking(2))
    (breach,) = watch.poll()
    assert breach.source.endswith("line 5") and parts == [(size, 5)]


@pytest.mark.parametrize("polls", [0, 1], ids=["first read", "appended lines"])
def test_lines_that_are_added_while_a_file_is_read_are_counted_once(
    tmp_path, watch, monkeypatch, polls
):
    path = tmp_path / "logs" / "a.jsonl"
    _append(path, *chats(3, lambda n: 9))
    for _ in range(polls):
        watch.poll()
    _append(path, _breaking(1))
    late = [_breaking(2)]

    def scan_late(scan, part):
        _append(path, *late)
        late.clear()
        return scan_part(scan, part)

    scan_part = part_scanning.scan_part
    monkeypatch.setattr("holdfast.logs.watching.scan_part", scan_late)
    assert [breach.source[-6:] for breach in watch.poll()] == ["line 4"]
    assert [breach.source[-6:] for breach in watch.poll()] == ["line 5"]
    assert len(watch.logs().to_write) == 5


def test_a_session_is_read_anew_and_its_old_breaches_are_not_repeated(tmp_path, watch):
    path = tmp_path / "logs" / "session.jsonl"
    _append(path, _event("a", "user", "Hi"), _event("b", "assistant", "One. Two. Three.", "a"))
    assert [breach.turn for breach in watch.poll()] == [1]
    _append(
        path, _event("c", "user", "And?", "b"), _event("d", "assistant", "Yes. And more. So.", "c")
    )
    assert [breach.turn for breach in watch.poll()] == [2]
    path.unlink()
    assert watch.poll() == []


def test_what_was_followed_is_scored_as_what_is_read_at_once(tmp_path, watch, suite):
    path = tmp_path / "logs" / "a.jsonl"
    for number in range(4):
        _append(path, *chats(2, lambda n: n), _breaking(number))
        watch.poll()
    loaded = load_suite(str(suite), probed=False)
    whole = score_logs(read_logs([tmp_path / "logs"]), loaded, tmp_path / "whole")
    logs = watch.logs()
    assert logs.fingerprint == whole.manifest.identity.logs
    assert [json.loads(dialog.scores())["source"] for dialog in logs.to_write] == [
        record.source for record in whole.dialogs
    ]


def test_the_command_prints_new_breaches_and_ends_with_the_verdict(
    tmp_path, suite, monkeypatch, capsys
):
    path, waits = tmp_path / "logs" / "a.jsonl", []
    path.parent.mkdir()

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 3:
            raise KeyboardInterrupt
        _append(path, *chats(20, lambda n: 9), *(_breaking(n) for n in range(len(waits))))

    monkeypatch.setattr(log_progress.time, "sleep", wait)
    words = ["logs", str(path.parent), "--suite", str(suite), "--out", str(tmp_path / "run")]
    assert main([*words, "--watch", "--min-adherence", "0.99"]) == 3
    lines = [line for line in capsys.readouterr().out.splitlines() if ", turn 1: short" in line]
    assert len(lines) == 3 and '"Yes 0. And more. So."' in lines[0]
    assert len(read_run(tmp_path / "run").records) == 43
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["records"] == 43


def test_what_was_read_of_a_large_log_is_not_held_in_memory_when_it_grows(tmp_path, watch):
    path = tmp_path / "logs" / "a.jsonl"
    long = "word " * 200_000
    _append(path, *({"messages": asked_and_answered("Hi", long)} for _ in range(8)))
    watch.poll()
    _append(path, *chats(1, lambda n: 9))  # of a breach, the dialogs before are read
    tracemalloc.start()
    try:
        assert watch.poll() == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < path.stat().st_size / 2
