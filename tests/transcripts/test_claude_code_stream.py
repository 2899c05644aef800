"""The output of `claude -p` as a stream of JSON, in variations."""

from typing import Any

from claude_code_lines import HI, MORE, A, B, bash_call
from log_variations import ONE_TURN, TWO_TURNS, Variation, lines, text, variations

SESSION = [HI, A, MORE, B]


STREAM = {"session_id": "s1", "parent_tool_use_id": None}


def streamed(kind: str, content: Any, **fields: Any) -> dict:
    message = {"role": kind, "content": content, **fields.pop("message", {})}
    return {"type": kind, "message": message, **STREAM, **fields}


test_streams_of_claude_code = variations(
    Variation(
        "a stream with all kinds of lines",
        {
            "o.jsonl": lines(
                {
                    "type": "system",
                    "subtype": "init",
                    "session_id": "s1",
                    "tools": ["Bash"],
                    "uuid": "i1",
                    "model": "claude-x",
                    "cwd": "/x",
                },
                {"type": "system", "subtype": "hook_started", "session_id": "s1", "uuid": "h1"},
                streamed("user", "Hi", uuid="u1", isReplay=True),
                {
                    "type": "stream_event",
                    "event": {"type": "message_start"},
                    **STREAM,
                    "uuid": "e1",
                },
                streamed("assistant", [{"type": "thinking", "thinking": "hm."}], uuid="a0"),
                streamed("assistant", [text("A.")], uuid="a1"),
                {"type": "rate_limit_event", "session_id": "s1", "uuid": "l1"},
                {"type": "tool_progress", "tool_name": "Bash", **STREAM, "uuid": "l2"},
                {"type": "result", "subtype": "success", "result": "A.", "session_id": "s1"},
            )
        },
        ONE_TURN,
        format="claude-code",
    ),
    Variation(
        "a stream without the user's message",
        {
            "o.jsonl": lines(
                streamed("assistant", [bash_call("t1")], uuid="a0"),
                streamed(
                    "user",
                    [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}],
                    uuid="r1",
                ),
                streamed("assistant", [text("A.")], uuid="a1"),
            )
        },
        [[("", "A.")]],
        calls=["ls"],
    ),
    Variation(
        "a stream with a subagent",
        {
            "o.jsonl": lines(
                streamed("user", "Hi"),
                streamed("assistant", [bash_call("t1")]),
                streamed("user", [text("Count.")], parent_tool_use_id="t1"),
                streamed("assistant", [text("One.")], parent_tool_use_id="t1"),
                streamed(
                    "user",
                    [{"type": "tool_result", "tool_use_id": "t1", "content": [text("One.")]}],
                ),
                streamed("assistant", [text("A.")]),
            )
        },
        [ONE_TURN[0], [("Count.", "One.")]],
    ),
    Variation(
        "an array of a stream",
        {
            "o.json": [
                {"type": "system", "subtype": "init", "session_id": "s1"},
                streamed("user", "Hi"),
                streamed("assistant", [text("A.")]),
                {"type": "result", "subtype": "success", "session_id": "s1"},
            ]
        },
        ONE_TURN,
    ),
    Variation(
        "a stream and the session that it is of",
        {
            "o.jsonl": lines(streamed("assistant", [text("A.")], message={"id": "msg_1"})),
            "s.jsonl": lines(*SESSION),
        },
        TWO_TURNS,
        problem="its only turn is in",
    ),
    Variation(
        "a boundary without an id",
        {
            "o.jsonl": lines(
                streamed("user", "x" * 4000),
                streamed("assistant", [text("A.")]),
                {"type": "system", "subtype": "compact_boundary", "session_id": "s1"},
                streamed("user", "Hi"),
                streamed("assistant", [text("A.")]),
            )
        },
        [[("x" * 4000, "A."), ("Hi", "A.")]],
        tokens=[1000, 0],
    ),
    Variation(
        "a stream that is written twice",
        {
            "o.jsonl": lines(
                *2
                * [
                    streamed("assistant", [bash_call("t1")], message={"id": "m0"}),
                    streamed(
                        "user", [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]
                    ),
                    streamed("assistant", [text("A.")], message={"id": "m1"}),
                ]
            )
        },
        [[("", "A.")]],
        calls=["ls"],
        results=["ok"],
    ),
    Variation(
        "an error of the interface in a stream",
        {
            "o.jsonl": lines(
                streamed("user", "Hi"),
                streamed("assistant", [text("A.")]),
                streamed("assistant", [text("API Error")], message={"model": "<synthetic>"}),
            )
        },
        ONE_TURN,
    ),
)
