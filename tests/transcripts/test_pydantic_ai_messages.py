"""Messages of Pydantic AI and its spans, in variations."""

import json
from typing import Any

from log_variations import ONE_TURN, TWO_TURNS, Variation, lines, variations

from holdfast.logs import read_logs
from holdfast.logs.context import Contexts


def request(*parts: dict, **fields: Any) -> dict:
    return {"parts": parts, "kind": "request", "instructions": None, **fields}


def response(*parts: dict, **fields: Any) -> dict:
    return {"parts": parts, "kind": "response", "usage": {}, "model_name": "m", **fields}


def part(kind: str, content: Any, **fields: Any) -> dict:
    return {"part_kind": kind, "content": content, **fields}


def call_part(arguments: Any) -> dict:
    names = {"tool_name": "bash", "tool_call_id": "c1", "part_kind": "tool-call"}
    return {**names, "args": arguments}


HI_PART = part("user-prompt", "Hi")
A_PART = part("text", "A.")
RUN = [request(part("system-prompt", "Be brief."), HI_PART), response(A_PART)]
RESULT = part("tool-return", "a.py", tool_name="bash", tool_call_id="c1", outcome="success")
RETRY = part("retry-prompt", "Fix it.", tool_name="bash", tool_call_id="c1")
INVALID = part("retry-prompt", [{"type": "missing"}], tool_name="bash", tool_call_id="c1")
LS_ARGUMENTS = {"command": "ls"}


def span_message(role: str, words: str, **fields: Any) -> dict:
    return {"role": role, "parts": [{"type": "text", "content": words}], **fields}


INPUT = [span_message("user", "Hi")]
INPUT_2 = [*INPUT, span_message("assistant", "A."), span_message("user", "More?")]
OUT_2 = [span_message("assistant", "B.")]
INSTRUCTIONS = json.dumps([{"type": "text", "content": "Be brief."}])
AGENT_RUN = {"gen_ai.operation.name": "invoke_agent", "gen_ai.system_instructions": INSTRUCTIONS}
ALL_MESSAGES = {"pydantic_ai.all_messages": json.dumps([*INPUT_2, *OUT_2])}

test_messages_of_pydantic_ai = variations(
    Variation("a list", {"m.json": RUN}, ONE_TURN, system="Be brief.", format="pydantic-ai"),
    Variation("a list in a line", {"m.jsonl": lines(RUN)}, ONE_TURN, system="Be brief."),
    Variation("a message per line", {"m.jsonl": lines(*RUN)}, ONE_TURN, system="Be brief."),
    Variation(
        "two lists",
        {"m.jsonl": lines(RUN, [*RUN[:1], response(part("text", "C."))])},
        [*ONE_TURN, [("Hi", "C.")]],
    ),
    Variation(
        "instructions",
        {
            "m.json": [
                request(HI_PART, instructions="Be brief."),
                response(A_PART),
                request(part("user-prompt", "More?"), instructions="Be brief."),
                response(part("text", "B.")),
            ]
        },
        TWO_TURNS,
        system="Be brief.",
    ),
    Variation(
        "a call and its result",
        {
            "m.json": [
                request(HI_PART),
                response(call_part('{"command": "ls"}')),
                request(RESULT),
                response(A_PART),
            ]
        },
        ONE_TURN,
        calls=["ls"],
        results=["a.py"],
    ),
    Variation(
        "arguments as an object",
        {"m.json": [request(HI_PART), response(A_PART, call_part(LS_ARGUMENTS)), request(RESULT)]},
        ONE_TURN,
        calls=["ls"],
    ),
    Variation(
        "an answer of a tool that asks to try again",
        {
            "m.json": [
                request(HI_PART),
                response(call_part(LS_ARGUMENTS)),
                request(RETRY),
                response(A_PART),
            ]
        },
        ONE_TURN,
        calls=["ls"],
    ),
    Variation(
        "a call with invalid arguments, which did not run",
        {
            "m.json": [
                request(HI_PART),
                response(call_part(LS_ARGUMENTS)),
                request(INVALID),
                response(A_PART),
            ]
        },
        ONE_TURN,
        calls=[],
    ),
    Variation(
        "a call that was denied",
        {
            "m.json": [
                request(HI_PART),
                response(call_part(LS_ARGUMENTS)),
                request({**RESULT, "outcome": "denied"}),
                response(A_PART),
            ]
        },
        ONE_TURN,
        calls=[],
    ),
    Variation(
        "thinking",
        {"m.json": [request(HI_PART), response(part("thinking", "hm."), A_PART)]},
        ONE_TURN,
    ),
    Variation(
        "an image",
        {
            "m.json": [
                request(
                    part("user-prompt", ["Hi", {"url": "https://x/a.png", "kind": "image-url"}])
                ),
                response(A_PART),
            ]
        },
        ONE_TURN,
        problem="left out 1 part of messages that are not read (1 of the type 'image-url')",
    ),
    Variation(
        "an image that a tool returned",
        {
            "m.json": [
                request(HI_PART),
                response(call_part(LS_ARGUMENTS)),
                request({**RESULT, "content": ["a.py", {"url": "x", "kind": "image-url"}]}),
                response(A_PART),
            ]
        },
        ONE_TURN,
        results=["a.py"],
        problem="1 of the type 'image-url'",
    ),
    Variation(
        "a part of an unknown kind",
        {"m.json": [request(HI_PART, part("hologram", "Buy.")), response(A_PART)]},
        ONE_TURN,
        problem="1 of the type 'hologram'",
    ),
    Variation(
        "parts that are not in the dialog",
        {
            "m.json": [
                request(HI_PART, {"part_kind": "tool-availability-delta", "tools_added": ["bash"]}),
                response(A_PART),
            ]
        },
        ONE_TURN,
    ),
    Variation(
        "words that were spoken",
        {
            "m.json": [
                request({"part_kind": "speech", "speaker": "user", "transcript": "Hi"}),
                response({"part_kind": "speech", "speaker": "assistant", "transcript": "A."}),
            ]
        },
        ONE_TURN,
    ),
    Variation(
        "a compaction whose text the provider keeps",
        {"m.json": [request(HI_PART), response(part("compaction", None), A_PART)]},
        ONE_TURN,
        problem="1 of the type 'compaction'",
    ),
    Variation(
        "a prompt in parts",
        {
            "m.json": [
                request(part("user-prompt", [{"content": "Hi", "kind": "text-content"}])),
                response(A_PART),
            ]
        },
        ONE_TURN,
    ),
    Variation(
        "an answer that was cut",
        {"m.json": [request(HI_PART), response(A_PART, finish_reason="length")]},
        ONE_TURN,
        is_cut=True,
    ),
    Variation(
        "a message of the program",
        {
            "m.json": [
                request(HI_PART),
                response(A_PART),
                request(part("retry-prompt", "Call a tool.")),
                response(part("text", "B.")),
            ]
        },
        [[("Hi", "A.\n\nB.")]],
        seen=["Call a tool."],
    ),
    Variation(
        "the span of a run",
        {
            "s.jsonl": lines(
                {
                    "trace_id": "t",
                    "span_id": "s",
                    "name": "agent run",
                    "attributes": {**AGENT_RUN, **ALL_MESSAGES},
                }
            )
        },
        TWO_TURNS,
        system="Be brief.",
    ),
)


def test_instructions_of_pydantic_ai_replace_those_before_them(tmp_path):
    path = tmp_path / "m.json"
    path.write_text(
        json.dumps(
            [
                request(HI_PART, instructions="Be brief."),
                response(A_PART),
                request(HI_PART, instructions="Be kind."),
                response(A_PART),
            ]
        )
    )
    (dialog,) = read_logs(path).dialogs
    context = Contexts(dialog.transcript.path).before(len(dialog.transcript.path) - 1)
    prompts = [event.text for event in context.events if event.is_prompt]
    assert prompts == ["Be kind."]
