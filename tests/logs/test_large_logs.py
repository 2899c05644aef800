"""Large logs: records that stay on the disk, and work in proportion to their size."""

import json

import numpy as np
import pytest
from logged_dialogs import PROBED, SHORT, asked_and_answered, chats, cities, lines_of

from holdfast.analysis.adherence import adherence
from holdfast.analysis.rule_context import context_effects
from holdfast.analysis.rule_scores import read_scores
from holdfast.drift import load_suite
from holdfast.errors import RecordsError
from holdfast.logs import FORMATS, read_logs, scan_logs, score_logs
from holdfast.measures.agent_acts import actions
from holdfast.measures.turns import ToolCall
from holdfast.records import read_run
from holdfast.records.log_scores import NONE
from holdfast.records.stored_logs import StoredLogs
from holdfast.report.logs_causes import causes_section, why_table
from holdfast.report.logs_page import logs_page
from holdfast.report.logs_table import logs_table
from holdfast.transcripts.reader import Located


def _short_suite(tmp_path):
    (tmp_path / "short.yaml").write_text(SHORT)
    return load_suite(str(tmp_path / "short.yaml"), probed=False)


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


# Time and size


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
