"""Sessions of Claude Code from 2.1.230 on: attachments, excerpts and summaries of a part."""

from typing import Any

import pytest
from log_variations import (
    ONE_TURN,
    TWO_TURNS,
    Variation,
    context_before_last_reply,
    file_text,
    lines,
    text,
    variations,
)

from holdfast.logs import read_logs


def line(kind: str, uuid: str, parent: str | None, **fields: Any) -> dict:
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "s1",
        "isSidechain": False,
        "version": "2.1.283",
        **fields,
    }


def says(role: str, uuid: str, parent: str | None, words: str, **fields: Any) -> dict:
    content: Any = words if role == "user" else [text(words)]
    return line(role, uuid, parent, message={"role": role, "content": content}, **fields)


def attached(rendered: Any = None, **attachment: Any) -> dict:
    extra = {} if rendered is None else {"rendered": rendered}
    return {
        "s.jsonl": lines(
            says("user", "u1", None, "Hi"),
            line("attachment", "x1", "u1", attachment=attachment, **extra),
            says("assistant", "a1", "x1", "A."),
        )
    }


RESULT = line(
    "user",
    "r1",
    "c1",
    message={
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "Use pnpm."}],
    },
)
CALL = line(
    "assistant",
    "c1",
    "u1",
    message={
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}],
    },
)
HI, A = says("user", "u1", None, "Hi"), says("assistant", "a1", "r1", "A.")
MORE, B = says("user", "u2", "a1", "More?"), says("assistant", "a2", "u2", "B.")


def collapsed(first: str, last: str) -> dict:
    return {
        "type": "marble-origami-commit",
        "sessionId": "s1",
        "collapseId": "1",
        "summaryUuid": "x",
        "summaryContent": "<collapsed>So far.</collapsed>",
        "summary": "So far.",
        "firstArchivedUuid": first,
        "lastArchivedUuid": last,
    }


test_sessions_of_claude_code_in_autumn_2026 = variations(
    Variation(
        "lines outside the dialog",
        {
            "s.jsonl": lines(
                HI,
                CALL,
                RESULT,
                A,
                {"type": "continued-in", "sessionId": "s1", "successor": "s2"},
                {"type": "history-suppression", "sessionId": "s1"},
                {"type": "observer-ref"},
                {"type": "ended-by-model", "sessionId": "s1"},
                {"type": "marble-origami-reset"},
            )
        },
        ONE_TURN,
        calls=["ls"],
        results=["Use pnpm."],
    ),
    Variation(
        "a result of which the model sees an excerpt",
        {
            "s.jsonl": lines(
                HI,
                CALL,
                RESULT,
                {
                    "type": "content-replacement",
                    "sessionId": "s1",
                    "replacements": [
                        {
                            "kind": "tool-result",
                            "toolUseId": "t1",
                            "replacement": "<persisted-output>",
                        }
                    ],
                },
                A,
                MORE,
                B,
            )
        },
        TWO_TURNS,
        calls=["ls"],
        results=["Use pnpm."],
    ),
    Variation(
        "messages that a summary replaced",
        {"s.jsonl": lines(HI, CALL, RESULT, A, collapsed("c1", "r1"), MORE, B)},
        TWO_TURNS,
        calls=["ls"],
    ),
    Variation(
        "messages that were removed",
        {
            "s.jsonl": lines(
                HI,
                CALL,
                RESULT,
                A,
                line(
                    "system",
                    "b1",
                    "a1",
                    subtype="snip_boundary",
                    snipMetadata={"removedUuids": ["c1", "r1"]},
                ),
                {**MORE, "parentUuid": "b1"},
                B,
            )
        },
        TWO_TURNS,
        calls=["ls"],
    ),
)


@pytest.mark.parametrize(
    ("change", "texts"),
    [
        (
            {
                "type": "content-replacement",
                "sessionId": "s1",
                "replacements": [{"kind": "tool-result", "toolUseId": "t1"}],
            },
            ["Hi", "A.", "More?"],
        ),
        (collapsed("c1", "r1"), ["Hi", "A.", "<collapsed>So far.</collapsed>", "More?"]),
        ({"type": "mode", "sessionId": "s1"}, ["Hi", "Use pnpm.", "A.", "More?"]),
    ],
    ids=["an excerpt", "a summary of some messages", "no change"],
)
def test_lines_of_claude_code_outside_the_tree_change_the_context(change, texts, tmp_path):
    log = lines(HI, CALL, RESULT, A, change, MORE, B)
    assert context_before_last_reply(tmp_path, "s.jsonl", log) == texts


def test_messages_that_claude_code_removed_left_the_context(tmp_path):
    boundary = line(
        "system",
        "b1",
        "a1",
        subtype="snip_boundary",
        snipMetadata={"removedUuids": ["u1", "c1", "r1"]},
    )
    log = lines(HI, CALL, RESULT, A, boundary, {**MORE, "parentUuid": "b1"}, B)
    assert context_before_last_reply(tmp_path, "s.jsonl", log) == ["A.", "More?"]


def test_calls_and_results_of_claude_code_without_ids_do_not_belong_together(tmp_path):
    call = {"type": "tool_use", "name": "Bash", "input": {}}
    result = {"type": "tool_result", "content": "elsewhere"}
    content = file_text(
        lines(
            says("user", "u1", None, "Hi"),
            line("assistant", "a0", "u1", message={"role": "assistant", "content": [call]}),
            line("user", "r0", "a0", message={"role": "user", "content": [result]}),
            says("user", "u2", None, "Hi"),
            line("assistant", "a1", "u2", message={"role": "assistant", "content": [call]}),
            says("assistant", "a2", "a1", "A."),
        )
    )
    path = tmp_path / "s.jsonl"
    path.write_text(content)
    dialogs = read_logs([path]).dialogs
    last = [event.text for event in dialogs[-1].transcript.path]
    assert "elsewhere" not in last and last[-1] == "A."


REMINDED = "<system-reminder>\nAnswer in German.\n</system-reminder>"
QUEUED: dict = {"type": "queued_command", "prompt": "More?", "commandMode": "prompt"}

test_attachments_of_claude_code = variations(
    Variation(
        "what was seen of an attachment",
        attached([{"content": REMINDED}], type="output_style_instructions", style="x"),
        ONE_TURN,
        seen=[REMINDED],
    ),
    Variation(
        "what was seen of a hook after a tool",
        attached(
            [{"content": [text(REMINDED)]}],
            type="hook_success",
            hookEvent="PostToolUse",
            content="price",
        ),
        ONE_TURN,
        seen=[REMINDED],
    ),
    Variation(
        "an attachment of which nothing was seen",
        attached([], type="hook_success", hookEvent="SessionStart", content="price"),
        ONE_TURN,
        seen=[],
    ),
    Variation(
        "a message that a person queued",
        attached(
            [{"content": "<system-reminder>More?</system-reminder>"}],
            **QUEUED,
            origin={"kind": "human"},
        ),
        [[("Hi\n\nMore?", "A.")]],
        seen=[],
    ),
    Variation(
        "a message that another agent queued",
        attached([{"content": "x"}], **QUEUED, origin={"kind": "peer", "name": "b"}),
        ONE_TURN,
        seen=["More?"],
    ),
    Variation(
        "the rules of a forked subagent",
        {
            "s.jsonl": lines(
                {
                    "type": "fork-context-ref",
                    "agentId": "f1",
                    "parentSessionId": "p1",
                    "parentLastUuid": "z",
                    "contextLength": 9,
                },
                says(
                    "user",
                    "u1",
                    None,
                    "<fork-boilerplate>\nprice\n</fork-boilerplate>\n\nHi",
                    agentId="f1",
                ),
                says("assistant", "a1", "u1", "A.", agentId="f1"),
            )
        },
        ONE_TURN,
        subagents=1,
    ),
)


@pytest.mark.parametrize("kind", [{"a": 1}, ["a"]])
def test_a_line_of_claude_code_whose_type_is_no_text_is_reported(kind, tmp_path):
    path = tmp_path / "s.jsonl"
    odd = {**line("x", "o1", "a1"), "type": kind}
    path.write_text(file_text(lines(HI, {**A, "parentUuid": "u1"}, odd)))
    logs = read_logs([path])
    assert len(logs.dialogs) == 1 and len(logs.problems) == 1
