"""Logs that are read in parts and in several processes give what reading at once gives."""

import json
import zipfile
from gzip import compress

import pytest
from logged_dialogs import SHORT, asked_and_answered, chats, lines_of

from holdfast.cli import main
from holdfast.drift import load_suite
from holdfast.errors import UsageError
from holdfast.logs import read_logs, scan_logs, scanning, score_logs, scored_logs
from holdfast.records import OpenRun, read_run
from holdfast.transcripts import file_parts, read_transcripts
from holdfast.transcripts.finding import FoundLog


def _session(name: str, turns: int, origin: str = "") -> list[dict]:
    """A session of Claude Code, which may begin with a copy of another's turns."""
    events, parent = [], None
    for number in range(turns):
        for kind, text in (("user", f"Question {number}"), ("assistant", f"It is {number}. So.")):
            uuid = f"{origin if origin and number < 2 else name}-{number}-{kind}"
            message = {"role": kind, "content": text}
            fields = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": name}
            events.append({**fields, "message": message})
            parent = uuid
        if number == 0:  # before the turn that a resumed session copies
            uuid = f"{origin or name}-summary"
            message = {"role": "user", "content": "Summary: Answer in one sentence."}
            fields = {"type": "user", "uuid": uuid, "parentUuid": parent, "sessionId": name}
            events.append({**fields, "isCompactSummary": True, "message": message})
            parent = uuid
    return events


def _requests(turns: int) -> list[dict]:
    """Requests of one dialog, of which the later ones begin at a later message."""
    rule = "Answer in one sentence. Question 0?"
    texts = [rule, *(f"Question {n}? {'So. ' * 600}" for n in range(1, turns))]
    pairs = [asked_and_answered(text, "Yes. And more.") for text in texts]
    return [{"messages": [*pairs[max(0, n - 1)], *pairs[n]]} for n in range(1, turns)]


def test_only_the_lines_of_one_file_are_a_log_of_requests(tmp_path):
    whole = [*asked_and_answered("Hi", "Hello."), *asked_and_answered("Bye", "Bye.")]
    dialogs = [{"messages": whole[:2]}, {"messages": whole}]
    for name, dialog in zip("ab", dialogs, strict=True):
        (tmp_path / f"{name}.json").write_text(json.dumps(dialog))
    assert len(read_logs(tmp_path).dialogs) == 2
    (tmp_path / "log.jsonl").write_text(lines_of(dialogs))
    logs = read_logs(tmp_path / "log.jsonl")
    assert len(logs.dialogs) == 1
    assert "log.jsonl: a log of requests; left out 1 dialog" in logs.problems[0]
    run = scan_logs([tmp_path / "log.jsonl"], _short_suite(tmp_path), tmp_path / "run")
    assert [len(record.turns) for record in run.dialogs] == [2]


def _archive(path) -> None:
    """An archive of Inspect AI with a sample."""
    messages = asked_and_answered("Why?", "Because. And more.")
    sample = {"id": 1, "epoch": 1, "input": "Why?", "messages": messages}
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("samples/1_epoch_1.json", json.dumps(sample))


@pytest.fixture
def folder_of_logs(tmp_path):
    """Logs in several formats: large and small, resumed sessions, and what cannot be read."""
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "chats.jsonl").write_text(
        lines_of([*chats(30, lambda n: n % 7), {"messages": "none"}, {"strange": 1}])
        + "{\n\n"
        + lines_of([{"messages": [{"role": "user", "content": "Hi"}]}, *chats(3, lambda n: 2)])
    )
    (logs / "long.jsonl").write_text(lines_of(_session("long", 5)))
    (logs / "resumed.jsonl").write_text(lines_of(_session("resumed", 4, origin="long")))
    (logs / "mixed.jsonl").write_text(
        lines_of([*chats(2, lambda n: 3), *_session("mixed", 2), *chats(2, lambda n: 4)])
    )
    (logs / "latin.jsonl").write_bytes(b'{"messages": "caf\xe9"}\n')
    (logs / "chats.json").write_text(json.dumps([*chats(2, lambda n: 1)]))
    (logs / "requests.jsonl").write_text(lines_of(_requests(5)))
    _archive(logs / "archive.eval")
    (logs / ".aider.chat.history.md").write_text(
        "# aider chat started at 2026-09-14 10:00:00\n\n#### Why?\n\nBecause. And more.\n"
    )
    (logs / "packed.jsonl.gz").write_bytes(compress(lines_of(chats(2, lambda n: 5)).encode()))
    return logs


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(file_parts, "PART_SIZE", 2_000)
    monkeypatch.setattr(scanning, "MAX_BYTES_IN_ONE_PROCESS", 0)


def _short_suite(tmp_path):
    (tmp_path / "short.yaml").write_text(SHORT)
    return load_suite(str(tmp_path / "short.yaml"), probed=False)


def _facts(run):
    manifest = run.manifest.to_json()
    identity = run.manifest.identity.to_json()
    return identity, [manifest[name] for name in ("dialogs", "formats", "problems", "rules")]


@pytest.mark.parametrize("workers", [1, 2])
def test_scanning_in_parts_gives_what_reading_at_once_gives(
    tmp_path, folder_of_logs, small_parts, workers
):
    suite = _short_suite(tmp_path)
    whole = score_logs(read_logs([folder_of_logs]), suite, tmp_path / "whole")
    updates = []
    scanned = scan_logs(
        [folder_of_logs], suite, tmp_path / "run", workers=workers, watch=updates.append
    )
    for name, count in (("chats.jsonl", 5), ("requests.jsonl", 2)):
        assert len(file_parts.parts_of(FoundLog(folder_of_logs / name, False), None)) > count
    records = [(run.folder / "records.jsonl").read_bytes() for run in (whole, scanned)]
    assert records[0] == records[1] and len(scanned.dialogs) > 40
    assert _facts(scanned) == _facts(whole)
    assert any("too, and counted there" in problem for problem in scanned.manifest.problems)
    assert updates[-1].files == updates[-1].all_files == 10
    assert updates[-1].problems == len(scanned.manifest.problems) - 1  # copies are found at the end
    assert not [*scanned.folder.glob(".scanning*")]


def test_a_file_in_utf16_is_read_at_once(tmp_path, small_parts):
    path = tmp_path / "wide.jsonl"
    path.write_bytes(lines_of(chats(40, lambda n: 5)).encode("utf-16"))
    assert len(file_parts.parts_of(FoundLog(path, True), "openai")) == 1
    run = scan_logs([path], _short_suite(tmp_path), tmp_path / "run", form="openai")
    assert len(run.dialogs) == 40 and not run.manifest.problems


def test_what_a_part_needs_of_the_part_before_is_read(tmp_path, folder_of_logs, small_parts):
    run = scan_logs([folder_of_logs / "requests.jsonl"], _short_suite(tmp_path), tmp_path / "run")
    causes = [record.probes[-1].cause for record in run.dialogs]
    assert [cause.cause for cause in causes] == ["present", "removed", "unknown", "unknown"]
    assert causes[1].evidence[0].source.endswith("requests.jsonl, line 1")
    (file,) = read_transcripts(folder_of_logs / "requests.jsonl")
    part = file_parts.parts_of(FoundLog(folder_of_logs / "requests.jsonl", False), None)[-1]
    for count, size in ((1, 10), (2, 3_000), (9, 10), (9, 1_000_000)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(file_parts, "_BACK", size)
            before = file_parts.dialogs_before(part, count)
        assert [t.path for t in before] == [t.path for t in file.transcripts[:-1][-count:]]
        assert [t.source for t in before] == [t.source for t in file.transcripts[:-1][-count:]]


def test_a_compaction_before_a_copied_turn_counts_once(tmp_path, folder_of_logs):
    logs = [folder_of_logs / name for name in ("long.jsonl", "resumed.jsonl")]
    run = score_logs(read_logs(logs), _short_suite(tmp_path), tmp_path / "run")
    (compaction,) = (item for record in run.dialogs for item in record.compactions)
    assert compaction.turn == 2 and "long.jsonl" in compaction.source
    (resumed,) = (record for record in run.dialogs if "resumed" in record.source)
    assert [probe.round for probe in resumed.probes] == [3, 4]
    assert resumed.probes[0].context.compactions == 1


def test_an_interrupted_scan_goes_on_where_it_stopped(tmp_path, folder_of_logs, monkeypatch):
    suite = _short_suite(tmp_path)
    whole = scan_logs([folder_of_logs], suite, tmp_path / "whole")
    monkeypatch.setattr(scored_logs, "_BATCH", 5)
    append, batch_sizes = OpenRun.append_lines, []

    def interrupt(run, lines):
        if len(batch_sizes) == 3:
            raise KeyboardInterrupt
        append(run, lines)
        batch_sizes.append(len(lines))

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(OpenRun, "append_lines", interrupt)
        scan_logs([folder_of_logs], suite, tmp_path / "run")
    assert len(read_run(tmp_path / "run").records) == 15
    scan_logs([folder_of_logs], suite, tmp_path / "run")
    paths = [tmp_path / name / "records.jsonl" for name in ("whole", "run")]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert len(whole.records) > 40


def test_a_suite_with_python_functions_is_scored_in_this_process(
    tmp_path, folder_of_logs, small_parts, monkeypatch
):
    (tmp_path / "mine.py").write_text("def calm(text):\n    return float('!' not in text)\n")
    (tmp_path / "mine.yaml").write_text(SHORT.replace("one_sentence", "{python: mine.calm}"))
    suite = load_suite(str(tmp_path / "mine.yaml"), allow_code=True, probed=False)
    assert scanning.has_code(suite) and not scanning.has_code(_short_suite(tmp_path))
    monkeypatch.setattr(scanning, "ProcessPoolExecutor", None)
    run = scan_logs([folder_of_logs], suite, tmp_path / "run", workers=2)
    assert {probe.score for record in run.dialogs for probe in record.probes} == {1.0}


def test_the_command_says_that_workers_are_ignored(tmp_path, capsys, monkeypatch):
    (tmp_path / "a.jsonl").write_text(lines_of(chats(1, lambda n: 3)))
    (tmp_path / "mine.py").write_text("def calm(text):\n    return float('!' not in text)\n")
    (tmp_path / "mine.yaml").write_text(SHORT.replace("one_sentence", "{python: mine.calm}"))
    (tmp_path / "short.yaml").write_text(SHORT)
    for name, is_said in (("mine", True), ("short", False)):
        options = ["--suite", str(tmp_path / f"{name}.yaml"), "--out", str(tmp_path / name)]
        logs = ["logs", str(tmp_path / "a.jsonl"), "--workers", "2", "--allow-code"]
        assert main([*logs, *options]) == 0
        assert ("--workers" in capsys.readouterr().err) == is_said


def test_a_scan_that_fails_leaves_no_folder(tmp_path):
    (tmp_path / "a.jsonl").write_text("{}\n")
    with pytest.raises(UsageError):
        scan_logs([tmp_path / "a.jsonl"], _short_suite(tmp_path), tmp_path / "run")
    assert not (tmp_path / "run").exists()
