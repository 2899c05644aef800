"""The formats of `holdfast logs`: each gives the same dialog, and a fault costs only its line."""

import json

import pytest
from fast_set import only_fast
from logged_dialogs import chats, lines_of, paths_in, replace_at
from paths import ROOT
from synthetic_run import as_json

from holdfast.errors import UsageError
from holdfast.logs import FORMATS, read_logs
from holdfast.measures.agent_acts.actions import edits_of
from holdfast.records import read_run

DATA = ROOT / "tests" / "data" / "logs"


FORMATS_WITH_FIXTURES = sorted(set(FORMATS) - {"run"})
MARKDOWN = {"aider", "cursor"}
FILES = {
    name: f"{name.replace('-', '_')}.{'md' if name in MARKDOWN else 'jsonl'}"
    for name in FORMATS_WITH_FIXTURES
}
# these files do not have the system prompt, or do not have what the user said
WITHOUT_PROMPT = {"claude-code", "codex-exec", "gemini-cli", "claude-ai"}
WITHOUT_PROMPT |= {"aider", "copilot", "cursor", "google-adk", "sillytavern"}
WITHOUT_PROMPT |= {"gemini-cli-stream", "goose", "openai-agents"}
WITHOUT_USER = {"codex-exec"}
WITHOUT_TOOLS = {"cursor"}  # as it exports them


def test_every_format_has_a_fixture():
    fixtures = {path.name for path in DATA.iterdir()} - {"README.md", "agent_transcripts.yaml"}
    missing = {*FILES.values()} - fixtures
    assert not missing, f"write the dialog of tests/data/logs in the new format, as {missing}"
    assert not fixtures - {*FILES.values()}


def test_the_conversations_of_a_run_are_dialogs():
    folder = DATA.parent / "recorded" / "schema-3" / "drift"
    logs, records = read_logs([folder]), as_json(read_run(folder))
    assert logs.formats == {"run": len(records)} and not logs.problems
    texts = [turn["text"] for turn in records[0]["turns"] if turn["speaker"] == "agent"]
    assert [turn.done.text for turn in logs.dialogs[0].turns] == texts


@pytest.mark.parametrize("names_format", [True, False], ids=["named", "found out"])
@pytest.mark.parametrize("form", FILES)
def test_every_format_gives_the_same_dialog(form, names_format):
    logs = read_logs([DATA / FILES[form]], form if names_format else None)
    assert logs.formats == {form: 1} and not logs.problems
    (dialog,) = logs.dialogs  # Codex's continues with a patch
    system = "" if form in WITHOUT_PROMPT else "Answer in one sentence."
    assert dialog.system.startswith(system) and bool(dialog.system) == bool(system)
    first, second = dialog.turns[:2]
    questions = ["What is in the repository?", "Thanks! What does it cost to run?"]
    assert [first.user, second.user] == (["", ""] if form in WITHOUT_USER else questions)
    assert first.role == ("user" if form in WITHOUT_TOOLS else "tool")
    assert second.role == ("" if form in WITHOUT_USER else "user")
    assert first.done.text == "I will look.\n\nThere is one file, cart.py."
    calls = first.done.calls
    assert len(calls) == (form not in WITHOUT_TOOLS)
    assert all("ls src" in json.dumps(dict(call.arguments)) for call in calls)
    assert second.done.text == "Nothing." and second.done.earlier == calls
    assert 0 <= first.tokens < second.tokens


def test_a_codex_patch_counts_as_a_file_change():
    (dialog,) = read_logs([DATA / FILES["codex"]]).dialogs
    assert edits_of(dialog.turns[2].done.calls)
    assert not any("environment_context" in turn.user for turn in dialog.turns)


# Faults


@pytest.mark.parametrize(
    "value",
    [
        {"messages": "no"},
        {"messages": [{"role": "alien", "content": "x"}]},
        {"messages": [{"role": "user", "content": 3}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]},
        {"conversations": [{"from": "function_call", "value": "{"}]},
        {"input": 3, "output": []},
        {"type": "user", "sessionId": "s", "message": 3},
        {"type": "response_item", "payload": 3},
        {"type": "GENERATION", "traceId": "t", "input": {"a": 1}, "output": "x"},
        {"span_kind": "LLM", "context": 3, "attributes.llm": 1, "attributes.llm.x": 2},
        {"span_kind": "LLM", "context": 3, "attributes.llm.input_messages.²": {}},
    ],
)
def test_a_malformed_line_costs_only_itself(value, tmp_path):
    (path := tmp_path / "a.jsonl").write_text(lines_of([value, *chats(1, lambda n: 9)]))
    logs = read_logs([path])
    assert len(logs.dialogs) == 1
    assert any("line 1" in problem or "session" in problem for problem in logs.problems)


LONG = {"langsmith", "codex", "phoenix", "langfuse", "opencode"}  # files with many fields


@pytest.mark.parametrize(
    "form", only_fast(sorted(FILES.keys() - MARKDOWN), *(FILES.keys() - MARKDOWN - LONG))
)
def test_a_field_of_another_type_is_read_or_named(form, tmp_path):
    values = [json.loads(line) for line in (DATA / FILES[form]).read_text().splitlines()]
    path = tmp_path / "a.jsonl"
    for path_to_field in paths_in(values):
        for new in (3, {"a": 1}, [[]]):
            path.write_text(lines_of(replace_at(values, path_to_field, new)))
            try:
                logs = read_logs([path])
            except UsageError:  # in no format
                continue
            assert logs.dialogs or logs.problems, (path_to_field, new)
