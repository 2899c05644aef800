"""A format that the user names, and the list of all formats."""

import pytest
from agent_sessions import FIRST, codex, codex_says, write
from code_blocks import ROOT
from read_dialogs import turns_of

from holdfast.cli import main
from holdfast.errors import UsageError
from holdfast.logs import read_logs
from holdfast.report.log_formats import formats_list, formats_table
from holdfast.transcripts import FORMATS, read_transcripts
from holdfast.transcripts.format_guide import GUIDES

SYSTEM = {"role": "system", "content": "Be brief."}

HI, HELLO = {"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}

META = codex("session_meta", id="s1", instructions="Work on the shop.")
SESSION_LINES = (META, codex_says("user", "Explain it."), codex_says("assistant", "It adds up."))

CALLED = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "look"}}]}
USED = {"role": "assistant", "content": [{"type": "tool_use", "name": "look", "input": {}}]}


@pytest.mark.parametrize(
    ("value", "form", "detected"),
    [
        ({"messages": [SYSTEM, HI, HELLO]}, "anthropic", "openai"),
        ({"messages": [HI, CALLED]}, "anthropic", "openai"),
        ({"messages": [HI, USED]}, "openai", "anthropic"),
        ({"system": "Be brief.", "messages": [HI, HELLO]}, "openai", "anthropic"),
        ({"messages": [HI, HELLO]}, "sharegpt", "openai"),
        ({"messages": [HI, HELLO]}, "claude-code", "openai"),
        (SESSION_LINES[1], "claude-code", "codex"),
        (FIRST[0], "codex", "claude-code"),
        (FIRST[0], "langfuse", "claude-code"),
    ],
)
def test_a_file_of_another_format_than_the_named_one_is_refused(value, form, detected, tmp_path):
    with pytest.raises(UsageError, match=f"line 1 .* {detected}, not {form}"):
        read_logs([write(tmp_path, value)], form)


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_messages_that_two_formats_share_are_read_in_either(form, tmp_path):
    (dialog,) = read_logs([write(tmp_path, {"messages": [HI, HELLO]})], form).dialogs
    assert turns_of(dialog) == [("Hi.", "Hello.")]


@pytest.mark.parametrize("form", FORMATS)
def test_a_value_in_no_format_does_not_end_the_reading_in_the_named_one(form, tmp_path):
    values = [None, True, 5, '"a"', [], [1], {}, {"a": 1}, {"turns": 1}]
    (file,) = read_transcripts(write(tmp_path, *values), form)
    assert file.unread and not any(transcript.path for transcript in file.transcripts)


# The list of formats


DATA = ROOT / "tests" / "data" / "logs"


def test_every_format_is_in_the_guide():
    missing = FORMATS.keys() - GUIDES.keys()
    assert not missing, f"describe {missing} in transcripts/format_guide.py"
    assert not GUIDES.keys() - FORMATS.keys()


def test_the_page_on_logs_has_the_table():
    page = (DATA.parents[2] / "docs" / "logs.md").read_text()
    assert f"<!-- log_formats -->\n{formats_table()}\n<!-- /log_formats -->" in page


def test_the_formats_are_listed_without_a_suite(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["logs", "--list-formats"])
    assert not ended.value.code
    output = capsys.readouterr().out
    assert output.strip() == formats_list()
    assert all(f"\n{name}\n" in f"\n{output}" for name in FORMATS)
    for row in (
        "Linux: ~/.config/Cursor/User/globalStorage/state.vscdb",
        "macOS: ~/Library/Application Support/Cursor/User/globalStorage/state.vscdb",
        r"Windows: %APPDATA%\Cursor\User\globalStorage\state.vscdb",
        r"Windows: %USERPROFILE%\.claude\projects\*\*.jsonl",
    ):
        assert row in output
