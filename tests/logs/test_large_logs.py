"""Large logs: records that stay on the disk, and files that are read in parts."""

import json
import zipfile
from gzip import compress

import numpy as np
import pytest
from logged_dialogs import PROBED, SHORT, asked_and_answered, chats, cities, lines_of

from holdfast.analysis.adherence import adherence
from holdfast.analysis.rule_context import context_effects
from holdfast.analysis.rule_scores import read_scores
from holdfast.cli import main
from holdfast.drift import load_suite
from holdfast.errors import RecordsError, UsageError
from holdfast.logs import FORMATS, read_logs, scan_logs, scanning, score_logs, scored_logs
from holdfast.measures.agent_acts import actions
from holdfast.measures.turns import ToolCall
from holdfast.records import OpenRun, read_run
from holdfast.records.log_scores import NONE
from holdfast.records.stored_logs import StoredLogs
from holdfast.report.logs_causes import causes_section, why_table
from holdfast.report.logs_page import logs_page
from holdfast.report.logs_table import logs_table
from holdfast.transcripts import file_parts, read_transcripts
from holdfast.transcripts.finding import FoundLog
from holdfast.transcripts.reader import Located


@pytest.fixture
def scored(tmp_path):
    """A run of forty dialogs, some of which break rules."""
    (tmp_path / "a.jsonl").write_text(lines_of([*cities(40), *chats(4, lambda n: 3)]))
    (tmp_path / "luna.yaml").write_text(PROBED)
    suite = load_suite(str(tmp_path / "luna.yaml"), probed=False)
    return score_logs(read_logs([tmp_path / "a.jsonl"]), suite, tmp_path / "run")


def _read_large(run, monkeypatch):
    monkeypatch.setattr("holdfast.records.run.LARGE_RUN_BYTES", 1)
    return read_run(run.folder)


def test_records_on_the_disk_are_those_in_memory(scored, monkeypatch):
    on_disk = _read_large(scored, monkeypatch)
    assert isinstance(on_disk.records, StoredLogs) and not isinstance(scored.records, StoredLogs)
    assert [*on_disk.dialogs] == [*scored.dialogs] == [*on_disk.records]
    assert on_disk.records[-1] == scored.records[-1] and on_disk.records[2:4] == [
        *scored.records[2:4]
    ]
    with pytest.raises(IndexError):
        on_disk.records[len(scored.records)]
    assert on_disk.log_scores == scored.log_scores and set(scored.log_scores.cause) > {NONE}
    assert not on_disk.conversations
    assert on_disk.to_columns() == scored.to_columns()


def test_results_of_records_on_the_disk_are_the_same(scored, monkeypatch):
    on_disk = _read_large(scored, monkeypatch)
    rows = adherence(scored, min_adherence=0.9)
    assert adherence(on_disk, min_adherence=0.9) == rows
    assert logs_table(on_disk, rows, rows, 0.9) == logs_table(scored, rows, rows, 0.9)
    assert why_table(on_disk) == why_table(scored) != ""
    assert causes_section(on_disk) == causes_section(scored)
    assert context_effects(on_disk) == context_effects(scored)
    page = logs_page(on_disk, rows, rows, 0.9)
    assert "luna/city" in page and "not counted" in page
    assert "not counted" not in logs_page(scored, rows, rows, 0.9)


@pytest.mark.parametrize("fault", ["torn", "damaged", "repeated"])
def test_a_fault_in_records_on_the_disk_is_found(scored, monkeypatch, fault):
    path = scored.folder / "records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    if fault == "torn":
        path.write_bytes(b"".join(lines)[:-20])
        assert len(_read_large(scored, monkeypatch).records) == len(lines) - 1
        return
    lines[3] = lines[2] if fault == "repeated" else lines[3].replace(b"Rome", b"Roma", 1)
    path.write_bytes(b"".join(lines))
    with pytest.raises(RecordsError) as excinfo:
        _read_large(scored, monkeypatch)
    assert excinfo.value.value == 4


def test_scores_by_category_count_the_turns_of_every_rule(scored):
    (category,) = read_scores(scored, by_category=True)
    rules = read_scores(scored)
    assert category.turns == sum(rule.turns for rule in rules)
    assert len(category.scores) == sum(len(rule.scores) for rule in rules)
    assert (np.diff(category.dialogs) >= 0).all()


# Reading in parts and in processes


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


def test_spans_share_the_messages_that_they_repeat():
    question = {"role": "user", "parts": [{"type": "text", "content": "Hi, what is it?"}]}
    reply = {"role": "assistant", "parts": [{"type": "text", "content": "It is blue."}]}

    def span(number, messages):
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.conversation.id": f"c{number % 2}",
            "gen_ai.input.messages": json.dumps(messages),
            "gen_ai.output.messages": json.dumps([reply]),
        }
        return Located("a.jsonl, line 1", {"start_time": str(number), "attributes": attributes})

    spans = (span(n, [question, reply] * (n // 2) + [question]) for n in range(6))
    first, second = FORMATS["otel"].read(spans)
    assert [event.text for event in first.path] == ["Hi, what is it?", "It is blue."] * 3
    assert all(a is b for a, b in zip(first.path, second.path, strict=True))


@pytest.mark.slow
def test_the_page_of_2000_dialogs_has_a_bounded_size(tmp_path):
    sizes = []
    for count in (200, 2000):
        breaking = [
            {"messages": asked_and_answered(f"Question {n}?", f"Yes {n}. And more. And more.")}
            for n in range(count)
        ]
        (tmp_path / f"{count}.jsonl").write_text(lines_of(breaking) + "{\n" * count)
        suite = _short_suite(tmp_path)
        run = scan_logs([tmp_path / f"{count}.jsonl"], suite, tmp_path / str(count))
        rows = adherence(run)
        page = logs_page(run, rows, rows, None)
        assert len(rows[0].broken) == count == len(run.manifest.problems)
        sizes.append((page.count("<"), len(page)))
    (elements, size), (more_elements, more_size) = sizes
    assert more_elements < elements + 400 and more_size < size + 40_000
    assert more_elements < 3_000 and f"{2000 - 200:,} more" in page


def test_the_calls_of_earlier_turns_are_read_once_in_a_long_dialog(monkeypatch):
    """Each turn runs a script that the turn before it wrote; reading them all is quadratic."""
    reads = 0
    script_of = actions.script_of

    def counted(call: ToolCall) -> str:
        nonlocal reads
        reads += 1
        return script_of(call)

    monkeypatch.setattr(actions, "script_of", counted)
    earlier: tuple[ToolCall, ...] = ()
    for turn in range(60):
        run = ToolCall("Bash", {"command": "bash s.sh"}, f"run {turn}")
        written = {"file_path": "s.sh", "content": f"git push origin v{turn}"}
        commands = [action.command.words for action in actions.actions_of((run,), earlier)]
        assert (["git", "push", "origin", f"v{turn - 1}"] in map(list, commands)) is (turn > 0)
        earlier = (*earlier, run, ToolCall("Write", written, f"write {turn}"))
    assert reads < 4 * len(earlier)
