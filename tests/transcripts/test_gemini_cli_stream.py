"""The output of Gemini CLI as a stream of JSON, in variations."""

import json
from typing import Any

from log_variations import ONE_TURN, Variation, lines, variations

from holdfast.logs import read_logs


def event(kind: str, **fields: Any) -> dict:
    return {"type": kind, "timestamp": "2026-09-10T10:00:00.000Z", **fields}


def message(role: str, content: str, **fields: Any) -> dict:
    return event("message", role=role, content=content, **fields)


INIT = event("init", session_id="s1", model="gemini-3-pro")
HI = message("user", "Hi")
A = message("assistant", "A.", delta=True)
DONE = event("result", status="success", stats={"total_tokens": 9})
SHELL = event("tool_use", tool_name="run_shell_command", tool_id="t1", parameters={"command": "ls"})


def returned(**fields: Any) -> dict:
    return event("tool_result", tool_id="t1", **fields)


test_the_stream_of_gemini_cli = variations(
    Variation(
        "a turn", {"l.jsonl": lines(INIT, HI, A, DONE)}, ONE_TURN, format="gemini-cli-stream"
    ),
    Variation(
        "a reply in parts",
        {
            "l.jsonl": lines(
                INIT,
                HI,
                message("assistant", "A", delta=True),
                message("assistant", ".", delta=True),
                DONE,
            )
        },
        ONE_TURN,
    ),
    Variation(
        "whole replies",
        {"l.jsonl": lines(INIT, HI, message("assistant", "A."), message("assistant", "B."), DONE)},
        [[("Hi", "A.\n\nB.")]],
    ),
    Variation(
        "a call between parts of a reply",
        {
            "l.jsonl": lines(
                INIT,
                HI,
                message("assistant", "A", delta=True),
                SHELL,
                returned(status="success", output="a.py"),
                message("assistant", "B", delta=True),
                DONE,
            )
        },
        [[("Hi", "A\n\nB")]],
        calls=["ls"],
        results=["a.py"],
    ),
    Variation(
        "a call that failed",
        {
            "l.jsonl": lines(
                INIT,
                HI,
                SHELL,
                returned(
                    status="error",
                    output="no",
                    error={"type": "shell_execute_error", "message": "no"},
                ),
                A,
                DONE,
            )
        },
        ONE_TURN,
        calls=["ls"],
        results=["no"],
    ),
    Variation(
        "a warning and an error",
        {
            "l.jsonl": lines(
                INIT,
                HI,
                event("error", severity="warning", message="Loop detected"),
                A,
                event("result", status="error", error={"type": "X", "message": "Too many turns"}),
            )
        },
        ONE_TURN,
    ),
    Variation(
        "two sessions",
        {"l.jsonl": lines(INIT, HI, A, DONE, {**INIT, "session_id": "s2"}, HI, A)},
        [*ONE_TURN, *ONE_TURN],
    ),
    Variation(
        "a stream that was cut",
        {"l.jsonl": lines(INIT, HI, A, '{"type": "res')},
        ONE_TURN,
        problem="line 4: it is not JSON",
    ),
    Variation(
        "text before the stream",
        {"l.jsonl": lines("Loaded cached credentials.", INIT, HI, A)},
        ONE_TURN,
        problem="line 1: it is not JSON",
    ),
    Variation(
        "a content that is no text",
        {"l.jsonl": lines(INIT, HI, {**A, "content": None}, A)},
        ONE_TURN,
        problem="is in no known format",
    ),
)


def test_calls_that_gemini_cli_did_not_run_are_marked_in_its_stream(tmp_path):
    errors = [
        {"type": "policy_violation", "message": "Tool execution denied by policy."},
        {"type": "invalid_tool_params", "message": "params must have required property"},
        {"type": "shell_execute_error", "message": "exit code 1"},
    ]
    for number, error in enumerate(errors):
        path = tmp_path / f"{number}.jsonl"
        rows = [INIT, HI, SHELL, returned(status="error", error=error), A]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    dialogs = read_logs([tmp_path]).dialogs
    assert [len(dialog.turns[0].done.calls) for dialog in dialogs] == [0, 0, 1]
