"""`holdfast logs --model`: whether a model can still state the rules that were in the context."""

import json

import pytest
from scripted_model import ScriptedModel

from holdfast.cli import main
from holdfast.drift import load_suite
from holdfast.errors import RequestFailed
from holdfast.logs import read_logs, score_logs
from holdfast.logs.recall_forks import messages_of
from holdfast.logs.recalled_causes import ask_recall
from holdfast.logs.rereading import LogSource
from holdfast.measures.turns import ToolCall
from holdfast.records import read_run
from holdfast.report.logs_causes import why_table
from holdfast.transcripts.transcript import Event, EventKind

SUITE = """
cases:
- id: shop
  system_prompt: Answer in one sentence. Never mention VeloWorld.
  rules:
  - {id: rival, text: Never mention VeloWorld., measure: {name: never_contains, words: [VeloWorld]}}
  - id: short
    text: Answer in one sentence.
    measure: one_sentence
    recalled: {regex: '(?i)one sentence'}
"""
SYSTEM = {"role": "system", "content": "Answer in one sentence. Never mention VeloWorld."}


class Recalls(ScriptedModel):
    """States the first rule only, and keeps what it was asked."""

    answer = "I have to answer in one sentence."

    def __init__(self):
        self.asked = []

    def text(self, request):
        self.asked.append([*request.messages])
        return self.answer


class Refuses(ScriptedModel):
    def text(self, request):
        raise RequestFailed("too long", why="context")


@pytest.fixture
def scored(tmp_path):
    """Logs whose three dialogs break both rules in their second turn, and their scores."""
    file, suite = tmp_path / "july.jsonl", tmp_path / "suite.yaml"
    suite.write_text(SUITE)
    lines = []
    for number in range(3):
        texts = [f"Hello {number}.", "Hi.", "And else?", "VeloWorld. It is near. Go there."]
        roles = ["user", "assistant"] * 2
        dialog = [{"role": r, "content": t} for r, t in zip(roles, texts, strict=True)]
        lines.append(json.dumps({"messages": [SYSTEM, *dialog]}) + "\n")
    file.write_text("".join(lines))
    logs, loaded = read_logs([file]), load_suite(str(suite), probed=False)
    return score_logs(logs, loaded, tmp_path / "run"), logs, loaded


def causes_of(run):
    return sorted(
        (probe.rule, probe.cause.cause)
        for record in run.dialogs
        for probe in record.probes
        if probe.cause
    )


def test_a_rule_that_is_stated_is_recalled_and_another_is_not(scored):
    model = Recalls()
    run, counts = ask_recall(*scored, model, limit=100)
    assert (
        causes_of(run)
        == [("rival", "present_not_recalled")] * 3 + [("short", "present_recalled")] * 3
    )
    assert (counts.present, counts.asked, counts.undecided) == (6, 6, 0)
    assert len(model.asked) == 3  # both rules of a turn share a question
    prompt, *dialog = sorted(model.asked, key=str)[0]
    assert prompt == SYSTEM and [m["role"] for m in dialog] == ["user", "assistant", "user"]
    assert dialog[-1]["content"].startswith("And else?\n\nWhat are your instructions")
    assert (
        causes_of(read_run(run.folder)) == [("rival", "present")] * 3 + [("short", "present")] * 3
    )


def test_records_on_the_disk_get_the_same_causes_from_logs_that_are_read_again(
    scored, tmp_path, monkeypatch
):
    run, logs, suite = scored
    first, counts = ask_recall(run, logs, suite, Recalls(), limit=4)
    monkeypatch.setattr("holdfast.records.run.LARGE_RUN_BYTES", 1)
    on_disk = read_run(run.folder)
    source = LogSource([tmp_path / "july.jsonl"])
    second, counts_again = ask_recall(on_disk, source, suite, Recalls(), limit=4)
    assert on_disk.is_stored and second.is_stored and counts == counts_again
    assert [*second.dialogs] == [*first.dialogs] != [*on_disk.dialogs]
    assert second.dialogs[1] == first.dialogs[1]
    assert second.log_scores == first.log_scores and why_table(second) == why_table(first)


def test_answers_are_kept_and_not_asked_for_again(scored):
    ask_recall(*scored, Recalls(), limit=100)
    path = scored[0].folder / "recall.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]) + lines[2][:20])  # interrupted while it was written
    second_model, done = Recalls(), []
    run, _ = ask_recall(*scored, second_model, limit=100, progress=done.append)
    assert len(second_model.asked) == 1 and done == [4, 2]
    assert path.read_bytes().splitlines(keepends=True)[:2] == lines[:2]
    assert ("short", "present_recalled") in causes_of(run)


def test_the_same_breaches_are_drawn_each_time(scored):
    first, counts = ask_recall(*scored, Recalls(), limit=2)
    second, _ = ask_recall(*scored, Recalls(), limit=2)
    assert (counts.present, counts.asked) == (6, 2)
    assert [r.probes for r in first.dialogs] == [r.probes for r in second.dialogs]
    assert [cause for _, cause in causes_of(first)].count("present") == 4


def test_a_rule_that_the_model_cannot_be_asked_about_stays_present(scored):
    run, counts = ask_recall(*scored, Refuses(), limit=100)
    assert {cause for _, cause in causes_of(run)} == {"present"} and counts.undecided == 6


def test_tools_and_summaries_are_put_in_words():
    call = ToolCall("Bash", {"command": "ls"})
    events = [
        Event(EventKind.COMPACTION, "Summary."),
        Event(EventKind.TOOL_CALL, call=call),
        Event(EventKind.TOOL_RESULT, "a.py"),
        Event(EventKind.ERROR, "API error"),
        Event(EventKind.MESSAGE, "Go on.", "user"),
    ]
    summary, called, result = messages_of(events)
    assert summary == {"role": "user", "content": "Summary."}
    assert called == {"role": "assistant", "content": '[calls Bash {"command": "ls"}]'}
    assert result["content"].startswith("[result]\na.py\n\nGo on.\n\n")
    assert [m["role"] for m in messages_of(events[1:2])] == ["user", "assistant", "user"]


def test_the_command_asks_and_says_how_many(scored, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        "holdfast.cli.logs.logs.load_model_to_ask", lambda name, arguments: Recalls()
    )
    words = [str(tmp_path / "july.jsonl"), "--suite", str(tmp_path / "suite.yaml")]
    words += ["--out", str(tmp_path / "other"), "--model", "default", "--ask", "4"]
    assert main(["logs", *words]) == 0
    output = capsys.readouterr().out
    assert "asked for its rules at 4 of 6 breaches" in output
    why = json.loads((tmp_path / "other" / "summary.json").read_text())["results"]["context"]["why"]
    assert why["present"] == 2
    assert why["present_recalled"] + why["present_not_recalled"] == 4
    assert "present, recalled" in (tmp_path / "other" / "report.html").read_text()
