"""The parts of a log that are not read are counted by file and listed: images, unknown lines."""

import json
from typing import Any

import pytest
from agent_sessions import claude, codex, codex_says, reply, user
from log_variations import HI, IMAGE, ONE_TURN, A, Variation, lines, text, variations

from holdfast.drift import load_suite
from holdfast.logs import read_logs, scan_logs, scanning
from holdfast.transcripts import file_parts


def left_out(kind: str, count: int = 1) -> str:
    parts = "1 part" if count == 1 else f"{count} parts"
    return f"left out {parts} of messages that are not read ({count} of the type '{kind}')"


def chat(*parts: Any) -> dict:
    return {"messages": [{"role": "user", "content": [*parts]}, A]}


SCREENSHOT = {"type": "tool_result", "tool_use_id": "t1", "content": [text("a.py"), IMAGE]}
SCREEN = {"type": "input_image", "image_url": "data:"}
SHOT = {"name": "shot", "arguments": "{}"}
TAKEN = [
    codex("response_item", type="function_call", call_id="c1", **SHOT),
    codex("response_item", type="function_call_output", call_id="c1", output=[SCREEN]),
]


def attached(**content: Any) -> dict:
    line = {**claude("attachment", "x1", "u1", []), "attachment": {"type": "file", **content}}
    del line["message"]
    return line


def node(name: str, parent: str | None, role: str, *parts: Any) -> dict:
    content = {"content_type": "multimodal_text", "parts": [*parts]}
    message = {"author": {"role": role}, "content": content, "recipient": "all"}
    return {"id": name, "parent": parent, "message": message}


def exported(**message: Any) -> dict:
    return {
        "chat_messages": [
            {"sender": "human", "text": "Hi", **message},
            {"sender": "assistant", "text": "A."},
        ]
    }


def librechat(**message: Any) -> dict:
    common = {"conversationId": "c", "sender": "x"}
    return {
        "messages": [
            {
                **common,
                "messageId": "m1",
                "parentMessageId": "0",
                "text": "Hi",
                "isCreatedByUser": True,
                **message,
            },
            {
                **common,
                "messageId": "m2",
                "parentMessageId": "m1",
                "text": "A.",
                "isCreatedByUser": False,
            },
        ]
    }


def opencode(*parts: dict) -> dict:
    asked = {"info": {"id": "m1", "role": "user"}, "parts": [*parts]}
    said = {"info": {"id": "m2", "role": "assistant"}, "parts": [text("A.")]}
    return {"info": {"id": "s1"}, "messages": [asked, said]}


def copilot(number: int, kind: str, **data: Any) -> dict:
    names = {"id": f"e{number}", "parentId": f"e{number - 1}", "timestamp": "t"}
    return {"type": kind, "data": data, **names}


def step(source: str, message: Any, **fields: Any) -> dict:
    return {"source": source, "message": message, **fields}


PNG = {"inlineData": {"mimeType": "image/png", "data": ""}}
GEMINI_CLI = {"id": "1", "timestamp": "t", "type": "user"}
SAMPLE = {"id": 1, "epoch": 1, "input": "Hi"}
AGENT_LINE = {"role": "assistant", "message": {"content": [text("A.")]}}
SPOKEN = {"role": "user", "content": [text("Hi"), {"type": "input_audio", "input_audio": {}}]}
FILE = {"type": "file", "mediaType": "image/png", "url": "data:"}
NAMES = {"user_name": "You", "character_name": "Ada"}

test_parts_without_text = variations(
    Variation(
        "openai",
        {"a.jsonl": lines(chat(text("Hi"), {"type": "image_url", "image_url": {"url": "x"}}))},
        ONE_TURN,
        problem=left_out("image_url"),
    ),
    Variation(
        "openai's sound",
        {"a.jsonl": lines({"messages": [SPOKEN, A]})},
        ONE_TURN,
        problem=left_out("input_audio"),
    ),
    Variation(
        "three of a file",
        {"a.jsonl": lines(chat(text("Hi"), IMAGE, IMAGE), chat(text("Hi"), IMAGE))},
        [*ONE_TURN, *ONE_TURN],
        problem=left_out("image", 3),
    ),
    Variation(
        "Ollama",
        {"a.jsonl": lines({"messages": [{**HI, "images": ["AA=="]}, A]})},
        ONE_TURN,
        problem=left_out("image"),
    ),
    Variation(
        "anthropic",
        {"a.jsonl": lines({"system": "", **chat(text("Hi"), {"type": "document", "source": {}})})},
        ONE_TURN,
        problem=left_out("document"),
    ),
    Variation(
        "a result of anthropic's",
        {
            "a.jsonl": lines(
                {"system": "", "messages": [HI, {"role": "user", "content": [SCREENSHOT]}, A]}
            )
        },
        ONE_TURN,
        results=["a.py"],
        problem=left_out("image"),
    ),
    Variation(
        "responses",
        {
            "a.jsonl": lines(
                {
                    "input": [
                        {"role": "user", "content": [{"type": "input_text", "text": "Hi"}, SCREEN]}
                    ],
                    "instructions": "",
                    "output": [A],
                }
            )
        },
        ONE_TURN,
        problem=left_out("input_image"),
    ),
    Variation(
        "ai-sdk",
        {
            "a.jsonl": lines(
                {
                    "messages": [
                        {"role": "user", "parts": [text("Hi"), FILE]},
                        {"role": "assistant", "parts": [{"type": "step-start"}, text("A.")]},
                    ]
                }
            )
        },
        ONE_TURN,
        problem=left_out("file"),
    ),
    Variation(
        "gemini",
        {
            "a.jsonl": lines(
                {
                    "contents": [
                        {"role": "user", "parts": [{"text": "Hi"}, PNG]},
                        {
                            "role": "model",
                            "parts": [
                                {"text": "hm.", "thought": True},
                                {"text": "A."},
                                {"thoughtSignature": "x"},
                            ],
                        },
                    ]
                }
            )
        },
        ONE_TURN,
        problem=left_out("inlineData"),
    ),
    Variation(
        "claude-code",
        {"s.jsonl": lines(user("u1", None, [text("Hi"), IMAGE]), reply("a1", "u1", "A."))},
        ONE_TURN,
        problem=left_out("image"),
    ),
    Variation(
        "an attachment of Claude Code",
        {
            "s.jsonl": lines(
                user("u1", None, "Hi"),
                attached(content={"type": "image", "file": {}}),
                reply("a1", "x1", "A."),
            )
        },
        ONE_TURN,
        problem=left_out("image"),
    ),
    Variation(
        "codex",
        {
            "r.jsonl": lines(
                codex(
                    "response_item",
                    type="message",
                    role="user",
                    content=[{"type": "input_text", "text": "Hi"}, SCREEN],
                ),
                *TAKEN,
                codex_says("assistant", "A."),
            )
        },
        ONE_TURN,
        problem=left_out("input_image", 2),
    ),
    Variation(
        "gemini-cli",
        {
            "s.jsonl": lines(
                {**GEMINI_CLI, "content": [{"text": "Hi"}, PNG]},
                {**GEMINI_CLI, "id": "2", "type": "gemini", "content": "A."},
            )
        },
        ONE_TURN,
        problem=left_out("inlineData"),
    ),
    Variation(
        "cline",
        {
            "t.json": [
                {"role": "user", "ts": 1, "content": [text("<task>\nHi\n</task>"), IMAGE]},
                {"role": "assistant", "ts": 2, "content": [text("A.")]},
            ]
        },
        ONE_TURN,
        problem=left_out("image"),
    ),
    Variation(
        "cursor",
        {
            "t.jsonl": lines(
                {
                    "role": "user",
                    "message": {"content": [text("<user_query>\nHi\n</user_query>"), IMAGE]},
                },
                AGENT_LINE,
            )
        },
        ONE_TURN,
        problem=left_out("image"),
    ),
    Variation(
        "copilot",
        {
            "c.json": {
                "version": 3,
                "sessionId": "s",
                "requests": [
                    {
                        "message": {"text": "Hi"},
                        "response": [{"value": "A."}],
                        "variableData": {
                            "variables": [
                                {"kind": "image", "name": "a.png"},
                                {"kind": "file", "name": "a.py"},
                            ]
                        },
                    }
                ],
            }
        },
        ONE_TURN,
        problem=left_out("image"),
    ),
    Variation(
        "copilot-cli",
        {
            "e.jsonl": lines(
                copilot(
                    1,
                    "user.message",
                    content="Hi",
                    attachments=[
                        {"type": "file", "path": "a.py"},
                        {"type": "blob", "data": "AA=="},
                    ],
                ),
                copilot(
                    2,
                    "tool.execution_complete",
                    toolCallId="c",
                    success=True,
                    result={"content": "a.py", "contents": [text("a.py"), IMAGE]},
                ),
                copilot(3, "assistant.message", content="A."),
            )
        },
        ONE_TURN,
        results=["a.py"],
        problem="2 parts of messages that are not read (1 of the type 'blob', 1 of the",
    ),
    Variation(
        "opencode",
        {"s.json": opencode(text("Hi"), {"type": "file", "mime": "image/png", "url": "data:"})},
        ONE_TURN,
        problem=left_out("image/png"),
    ),
    Variation(
        "a text file of opencode",
        {"s.json": opencode(text("Hi"), {"type": "file", "mime": "text/plain", "url": "file:"})},
        ONE_TURN,
    ),
    Variation(
        "an image of opencode alone",
        {"s.json": opencode({"type": "file", "mime": "image/png", "url": "data:"})},
        [[("", "A.")]],
        problem=left_out("image/png"),
    ),
    Variation(
        "atif",
        {
            "t.json": {
                "schema_version": "ATIF-v1.7",
                "steps": [step("user", [text("Hi"), IMAGE]), step("agent", "A.")],
            }
        },
        ONE_TURN,
        problem=left_out("image"),
    ),
    Variation(
        "chatgpt",
        {
            "c.json": [
                {
                    "mapping": {
                        "u": node("u", None, "user", {"content_type": "image_asset_pointer"}, "Hi"),
                        "a": node("a", "u", "assistant", "A."),
                    },
                    "current_node": "a",
                }
            ]
        },
        ONE_TURN,
        problem=left_out("image_asset_pointer"),
    ),
    Variation(
        "claude-ai",
        {"c.json": [exported(files=[{"file_name": "a.png"}])]},
        ONE_TURN,
        problem=left_out("file"),
    ),
    Variation(
        "a file of claude-ai with its text",
        {
            "c.json": [
                exported(
                    files=[{"file_name": "a.txt"}],
                    attachments=[{"file_name": "a.txt", "extracted_content": "x"}],
                )
            ]
        },
        ONE_TURN,
        seen=["x"],
    ),
    Variation(
        "librechat",
        {"c.json": librechat(files=[{"type": "image/png"}])},
        ONE_TURN,
        problem=left_out("image/png"),
    ),
    Variation(
        "open-webui",
        {"c.json": [{"chat": {"messages": [{**HI, "files": [{"type": "image", "url": "x"}]}, A]}}]},
        ONE_TURN,
        problem=left_out("image"),
    ),
    Variation(
        "sillytavern",
        {
            "c.jsonl": lines(
                NAMES,
                {"is_user": True, "mes": "Hi", "extra": {"image": "a.png"}},
                {"is_user": False, "mes": "A.", "extra": {}},
            )
        },
        ONE_TURN,
        problem=left_out("image"),
    ),
    Variation(
        "inspect",
        {
            "l.json": {
                "version": 2,
                "status": "success",
                "eval": {},
                "samples": [
                    {**SAMPLE, "messages": [{"role": "user", "content": [text("Hi"), IMAGE]}, A]}
                ],
            }
        },
        ONE_TURN,
        problem=left_out("image"),
    ),
)


# Lines of unknown types in the logs of sessions


SNAPSHOT = {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}}
STARTED = {"type": "thread.started", "thread_id": "t1"}
COMPLETED = {"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": "A."}}
CURSOR = {"session_id": "s1"}
CURSOR_SAYS = [
    {"type": kind, "message": {"role": kind, "content": [text(words)]}, **CURSOR}
    for kind, words in (("user", "Hi"), ("assistant", "A."))
]
DELIVERED = {"author": "/root", "recipient": "/root/a", "content": "Use pnpm.", "trigger_turn": 1}

test_lines_of_unknown_types = variations(
    Variation(
        "claude-code",
        {
            "s.jsonl": lines(
                user("u1", None, "Hi"),
                SNAPSHOT,
                {"type": "new-thing", "x": 1},
                {"type": "new-thing"},
                reply("a1", "u1", "A."),
            )
        },
        ONE_TURN,
        problem="s.jsonl: left out 2 lines of the unknown type 'new-thing'",
    ),
    Variation(
        "with the id of its session",
        {
            "s.jsonl": lines(
                user("u1", None, "Hi"),
                {"type": "mode", "sessionId": "s1"},
                {"type": "new-thing", "sessionId": "s1"},
                reply("a1", "u1", "A."),
            )
        },
        ONE_TURN,
        problem="s.jsonl: left out 1 line of the unknown type 'new-thing'",
    ),
    Variation(
        "codex",
        {
            "r.jsonl": lines(
                codex_says("user", "Hi"),
                codex("world_state", x=1),
                codex("new_thing", x=1),
                codex_says("assistant", "A."),
            )
        },
        ONE_TURN,
        problem="r.jsonl: left out 1 line of the unknown type 'new_thing'",
    ),
    Variation(
        "what another agent wrote to Codex",
        {
            "r.jsonl": lines(
                codex_says("user", "Hi"),
                codex("inter_agent_communication", **DELIVERED),
                codex_says("assistant", "A."),
            )
        },
        ONE_TURN,
        seen=["Use pnpm."],
    ),
    Variation(
        "codex-exec",
        {
            "l.jsonl": lines(
                STARTED,
                {"type": "turn.started"},
                COMPLETED,
                {"type": "turn.paused"},
                {"type": "turn.completed"},
            )
        },
        [[("", "A.")]],
        problem="l.jsonl: left out 1 line of the unknown type 'turn.paused'",
    ),
    Variation(
        "cursor",
        {
            "l.jsonl": lines(
                {"type": "system", "subtype": "init", **CURSOR},
                *CURSOR_SAYS,
                {"type": "new_thing", **CURSOR},
                {"type": "result", **CURSOR},
            )
        },
        ONE_TURN,
        problem="l.jsonl: left out 1 line of the unknown type 'new_thing'",
    ),
)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_parts_of_a_large_file_are_counted_together(workers, tmp_path, monkeypatch):
    monkeypatch.setattr(file_parts, "PART_SIZE", 200)
    monkeypatch.setattr(scanning, "MAX_BYTES_IN_ONE_PROCESS", 0)
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(chat(text("Hi"), IMAGE)) + "\n" for _ in range(9)))
    (tmp_path / "suite.yaml").write_text(
        "cases: [{id: a, system_prompt: Be brief., rules: [{id: one, measure: one_sentence}]}]"
    )
    suite = load_suite(str(tmp_path / "suite.yaml"), probed=False)
    run = scan_logs([path], suite, tmp_path / "run", workers=workers)
    assert run.manifest.problems == read_logs(path).problems
    assert left_out("image", 9) in run.manifest.problems[0]
