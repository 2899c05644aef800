"""Rollouts of Codex: compactions, messages that the program wrote, and compressed files."""

import json
import sys

import pytest
from agent_files import compress
from agent_sessions import codex, codex_says, write
from log_variations import lines
from read_dialogs import calls_of, dialog_in, read_file, read_lines, turns_of

from holdfast.logs import read_logs

META = codex("session_meta", id="s1", instructions="Work on the shop.")
SESSION_LINES = (META, codex_says("user", "Explain it."), codex_says("assistant", "It adds up."))


def test_codex_begins_the_context_again_after_a_compaction(tmp_path):
    long = codex_says("assistant", "x" * 4000)
    history = [
        codex_says("user", "Explain it.")["payload"],
        codex_says("user", "y" * 400)["payload"],
    ]
    end = (codex_says("user", "Thanks."), codex_says("assistant", "Welcome."))
    for payload, tokens in (
        ({"message": "short", "replacement_history": history}, 110),
        ({"message": "y" * 400}, 107),
    ):
        compacted = codex("compacted", **payload)
        turns, _, dialog = read_lines(tmp_path, META, SESSION_LINES[1], long, compacted, *end)
        assert [text for text, _ in turns] == ["Explain it.", "Thanks."]
        assert abs(dialog.turns[1].tokens - tokens) < 5


CODEX_WROTE = [
    "<turn_aborted>\nThe user interrupted the turn: the price.\n</turn_aborted>",
    '<subagent_notification>\n{"status": "the price list is done"}\n</subagent_notification>',
    "<environment_context>\n  <cwd>/price</cwd>\n</environment_context>",
    "<user_instructions>\nMind the price.\n</user_instructions>",
    "# AGENTS.md instructions for /shop\n\n<INSTRUCTIONS>\nMind the price.\n</INSTRUCTIONS>",
    "<user_shell_command>\n<command>price</command>\n</user_shell_command>",
    "<skill>\n<name>price</name>\n</skill>",
    "<some_new_element>\nprice\n</some_new_element>",
]


@pytest.mark.parametrize("text", CODEX_WROTE)
def test_what_codex_wrote_was_not_said_by_the_user(text, tmp_path):
    next_turn = (codex_says("user", text), codex_says("assistant", "Noted."))
    turns, problems, _ = read_lines(tmp_path, *SESSION_LINES, *next_turn)
    assert turns == [("Explain it.", "It adds up.\n\nNoted.")] and not problems


def test_an_element_that_the_user_typed_was_said(tmp_path):
    text = "<my_page>\nprice\n</my_page>"
    event = codex("event_msg", type="user_message", message=text)
    next_turn = (codex_says("user", text), event, codex_says("assistant", "I see."))
    assert read_lines(tmp_path, *SESSION_LINES, *next_turn)[0][1] == (text, "I see.")


def test_codex_takes_back_turns(tmp_path):
    price = (codex_says("user", "The price?"), codex_says("assistant", "Ten."))
    back = codex("event_msg", type="thread_rolled_back", num_turns=1)
    next_turn = (codex_says("user", "Bye."), codex_says("assistant", "Bye!"))
    turns, (problem,), _ = read_lines(tmp_path, *SESSION_LINES, *price, back, *next_turn)
    assert turns == [("Explain it.", "It adds up."), ("Bye.", "Bye!")]
    assert "line 6" in problem and "rewound" in problem


def test_a_rollout_of_2025_without_payloads_is_read(tmp_path):
    log = lines(
        {"id": "x", "timestamp": "2025-06-01", "instructions": "Use pnpm.", "git": {}},
        {"record_type": "state"},
        codex_says("user", "Hi")["payload"],
        {"type": "function_call", "name": "shell", "call_id": "c",
         "arguments": json.dumps({"command": ["ls"]})},
        {"type": "function_call_output", "call_id": "c", "output": "a.py"},
        codex_says("assistant", "A.")["payload"],
    )  # fmt: skip
    dialog = dialog_in(tmp_path, "rollout-2025-06-01.jsonl", log)
    assert (dialog.system, turns_of(dialog)) == ("Use pnpm.", [("Hi", "A.")])
    assert calls_of(dialog) == [("shell", {"command": ["ls"]})]


# Compressed rollouts


def test_a_rollout_that_is_compressed_by_zstandard_is_read(tmp_path):
    rollout = write(tmp_path, codex("session_meta", id="s"), codex_says("user", "Hi."))
    first = compress(rollout.read_bytes())
    second = compress(json.dumps(codex_says("assistant", "Hello.")).encode())
    path = tmp_path / "rollout-1.jsonl.zst"
    path.write_bytes(first + second)  # two frames
    assert read_file(path)[0] == [("Hi.", "Hello.")]


def test_a_log_that_is_named_is_read_whatever_its_name_before_the_suffix_of_zstandard(tmp_path):
    rollout = write(tmp_path, codex_says("user", "Hi."), codex_says("assistant", "Hello."))
    path = tmp_path / "july.zst"
    path.write_bytes(compress(rollout.read_bytes()))
    assert read_file(path)[0] == [("Hi.", "Hello.")]


def test_without_the_package_for_it_a_compressed_rollout_is_named_with_the_cure(
    tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    write(tmp_path, codex_says("user", "Hi."), codex_says("assistant", "Hello."))
    (tmp_path / "rollout-1.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    (problem,) = read_logs([tmp_path]).problems
    assert "rollout-1.jsonl.zst" in problem and "holdfast-llm[zstd]" in problem
