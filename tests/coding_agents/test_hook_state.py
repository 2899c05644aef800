"""The state that a hook remembers of a session, and how much of its log it reads."""

import json
import os
import re
import stat
from pathlib import Path

import pytest
from agent_sessions import GEMINI, codex, reply, result, user, write
from hook_sessions import (
    BE_BRIEF,
    RULES,
    THREE_SENTENCES,
    claude_turn,
    codex_turn,
    gemini_turn,
)

from holdfast.coding_agents.hook_rules import cached_hook_rules, load_hook_rules
from holdfast.transcripts.session_part import read_session_part

# The state


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 1}', '{"version": 9}'])
def test_a_state_that_cannot_be_read_is_made_again(session, content, tmp_path):
    session.append(*claude_turn(1, THREE_SENTENCES))
    assert session.hook("UserPromptSubmit") == [BE_BRIEF]
    folder = tmp_path / "cache" / "holdfast" / "remind"
    (file,) = [path for path in folder.iterdir() if not path.name.startswith("rules-")]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text(content)
    assert session.hook("UserPromptSubmit") == [BE_BRIEF]


def test_states_of_old_sessions_are_deleted(session, tmp_path):
    old = tmp_path / "cache" / "holdfast" / "remind" / "old.json"
    old.parent.mkdir(parents=True)
    old.write_text("{}")
    os.utime(old, (1, 1))
    session.append(*claude_turn(1, THREE_SENTENCES))
    session.hook("UserPromptSubmit")
    assert not old.exists() and list(old.parent.iterdir())


def test_without_a_state_the_rules_are_said_all_the_same(session, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    session.append(*claude_turn(1, THREE_SENTENCES))
    assert session.hook("UserPromptSubmit") == [BE_BRIEF]
    assert "XDG_CACHE_HOME" in session.errors


def test_a_change_of_the_rules_begins_anew(rules, session):
    session.append(*claude_turn(1, THREE_SENTENCES))
    assert session.hook("UserPromptSubmit") == [BE_BRIEF]
    rules.write_text(RULES.replace("count: 2", "count: 1"))
    assert session.hook("UserPromptSubmit") == [BE_BRIEF]


# The log


def test_a_log_that_was_written_anew_is_read_from_its_start(session):
    session.append(*claude_turn(1, "Done."), *claude_turn(2, "Done."))
    assert session.hook("UserPromptSubmit") == []
    session.log.unlink()
    session.append(*claude_turn(1, THREE_SENTENCES))  # shorter
    assert session.hook("UserPromptSubmit") == [BE_BRIEF]
    session.log.unlink()
    session.append(
        *claude_turn(1, f"{THREE_SENTENCES} {'x' * 5000}."), *claude_turn(2, THREE_SENTENCES)
    )  # longer
    assert session.hook("UserPromptSubmit") == [BE_BRIEF]


def test_a_line_that_is_still_being_written_is_left_for_the_next_time(session):
    session.append(*claude_turn(1, "Done."))
    assert session.hook("UserPromptSubmit") == []
    line = json.dumps(reply("a2", "a1", THREE_SENTENCES))
    with session.log.open("a") as file:
        file.write(line[:-10])
    assert session.hook("UserPromptSubmit") == []
    with session.log.open("a") as file:
        file.write(line[-10:])  # whole now, though without a line break
    assert session.hook("UserPromptSubmit") == [BE_BRIEF]


@pytest.mark.parametrize(
    ("begin", "rewind"),
    [
        (
            [codex("session_meta", id="s"), *codex_turn(1, "Done."), *codex_turn(2, "Done.")],
            [
                codex("event_msg", type="thread_rolled_back", num_turns=2),
                *codex_turn(3, THREE_SENTENCES),
            ],
        ),
        (
            [GEMINI, *gemini_turn(1, "Done."), *gemini_turn(2, "Done.")],
            [{"$rewindTo": "2"}, *gemini_turn(3, THREE_SENTENCES)],
        ),
        (
            [*claude_turn(1, "Done."), *claude_turn(2, "Done.")],
            [user("u3", "a1", "Else?"), reply("a3", "u3", THREE_SENTENCES)],
        ),
    ],
    ids=["codex", "gemini-cli", "claude-code"],
)
def test_a_turn_after_a_rewind_is_judged(session, begin, rewind):
    session.append(*begin)
    assert session.hook("UserPromptSubmit") == []
    session.append(*rewind)
    assert session.hook("UserPromptSubmit") == [BE_BRIEF]
    assert session.hook("UserPromptSubmit") == []


def bytes_read():
    """The number of bytes that this process has read from anything."""
    counts = Path("/proc/self/io").read_text()
    return int(re.search(r"^rchar: (\d+)$", counts, re.MULTILINE)[1])


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="only Linux counts what is read")
def test_of_a_session_of_ten_megabytes_only_the_new_part_is_read(session):
    for number in range(1, 101):
        padding = result(f"r{number}", f"a{number}", f"p{number}")
        padding["toolUseResult"] = {"stdout": "x" * 100_000}
        session.append(*claude_turn(number, "Done."), padding)
    assert session.log.stat().st_size > 10_000_000
    before = bytes_read()
    assert session.hook("UserPromptSubmit") == []
    assert bytes_read() - before > 10_000_000
    session.append(*claude_turn(101, THREE_SENTENCES))
    before = bytes_read()
    assert session.hook("UserPromptSubmit") == [BE_BRIEF]
    assert bytes_read() - before < 300_000


def test_a_part_of_a_session_has_the_events_from_there_on(tmp_path):
    path = write(tmp_path, *claude_turn(1, "Done."), *claude_turn(2, "Yes."))
    whole = read_session_part(path)
    start = whole.offset_of(whole.events[2])
    part = read_session_part(path, start)
    assert part.events == whole.events[2:] and part.end == whole.end == path.stat().st_size
    assert part.offset_of(part.events[0]) == start


# The rules


def test_the_rules_of_a_hook_are_kept_until_the_suite_changes(rules, tmp_path):
    cache = tmp_path / "kept"
    first = cached_hook_rules(str(rules), cache)
    (file,) = cache.iterdir()
    second = cached_hook_rules(str(rules), cache)
    assert second == first and second.rules[2].measure.reads_earlier is False
    file.write_text(file.read_text().replace("Never force-push.", "Push gently."))
    assert cached_hook_rules(str(rules), cache).rules[2].text == "Push gently."
    file.write_text("[{}]")
    assert cached_hook_rules(str(rules), cache) == first
    rules.write_text(RULES.replace("count: 2", "count: 1"))
    after_change = cached_hook_rules(str(rules), cache)
    assert after_change.rules[1].measure.arguments["count"] == 1 and len([*cache.iterdir()]) == 2


def test_a_rule_without_a_text_is_said_in_the_words_of_the_prompt(rules):
    prompt = "Work on the shop. Prices come first. Never push by force."
    without = RULES.replace("Work on the shop.", prompt).replace("text: Never force-push.", "")
    rules.write_text(without)
    assert load_hook_rules(str(rules)).rules[2].text == "Never push by force."
