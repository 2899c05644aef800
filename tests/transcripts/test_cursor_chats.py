"""Chats of Cursor: databases of the editor and its agent, transcripts, and streams."""

import base64
import hashlib
import json
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest
from log_variations import ONE_TURN, Variation, lines, text, variations

from holdfast.errors import UsageError
from holdfast.logs import read_logs


def database(**rows: Any) -> bytes:
    """A database of Cursor's."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.vscdb")
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB)")
            values = rows.values()  # a number is stored as such
            contents = [v if isinstance(v, bytes | int) else json.dumps(v) for v in values]
            keys = [key.replace("__", ":") for key in rows]
            db.executemany(
                "INSERT INTO cursorDiskKV VALUES (?, ?)", zip(keys, contents, strict=True)
            )
        db.close()
        return path.read_bytes()


def agent_database(messages: list[dict], **meta: Any) -> bytes:
    """A `store.db` of Cursor's agent, whose `meta` is JSON in hexadecimal."""
    state, blobs = agent_state(messages)
    root = hashlib.sha256(state).hexdigest()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store.db")
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB)")
            db.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")
            info = json.dumps({"agentId": "a1", "latestRootBlobId": root, **meta})
            db.execute("INSERT INTO meta VALUES ('0', ?)", (info.encode().hex(),))
            db.executemany("INSERT INTO blobs VALUES (?, ?)", {**blobs, root: state}.items())
        db.close()
        return path.read_bytes()


def field_of_state(number: int, content: bytes) -> bytes:
    """A length-delimited field of a Protocol Buffers message."""
    assert number < 16 and len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def agent_state(messages: list[dict], turns: int = 0) -> tuple[bytes, dict[str, bytes]]:
    """A state of Cursor's agent, and the blobs that it refers to, by their hashes."""
    contents = [json.dumps(message).encode() for message in messages]
    hashes = [hashlib.sha256(content).digest() for content in contents]
    state = b"".join(field_of_state(1, name) for name in hashes)
    state += b"".join(field_of_state(8, bytes([n]) * 32) for n in range(turns))
    state += bytes([10 << 3, 1]) + bytes([26 << 3 & 0x7F | 0x80, 1, 0x80, 1])  # two numbers
    return state, {name.hex(): content for name, content in zip(hashes, contents, strict=True)}


def agent_rows(messages: list[dict], turns: int = 0) -> dict[str, Any]:
    """The rows of a `state.vscdb` with the context of a dialog, and its state."""
    state, blobs = agent_state(messages, turns)
    rows: dict[str, Any] = {f"agentKv__blob__{name}": text for name, text in blobs.items()}
    return {"state": "~" + base64.b64encode(state).decode(), **rows}


def composer(*names: str, state: str = "", **rows: Any) -> bytes:
    """A `state.vscdb` with a dialog that shows these messages, and has this state."""
    data = {"fullConversationHeadersOnly": heads(*names), "conversationState": state}
    return database(composerData__k=data, **rows)


def heads(*names: str) -> list[dict]:
    return [{"bubbleId": name, "type": 1} for name in names]


HI_BUBBLE, A_BUBBLE = (
    {"type": 1, "text": "Hi", "bubbleId": "b1"},
    {"type": 2, "text": "A.", "bubbleId": "b2"},
)
BUBBLES = {"bubbleId__k__b1": HI_BUBBLE, "bubbleId__k__b2": A_BUBBLE}


def transcript_line(role: str, *blocks: Any) -> dict:
    content_blocks = [text(block) if isinstance(block, str) else block for block in blocks]
    return {"role": role, "message": {"content": content_blocks}}


RULES = "<rules>\nBe kind.\n</rules>"
CONTEXT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [text(f"{RULES}\n<user_query>\nHi\n</user_query>")]},
    {
        "role": "assistant",
        "content": [
            {"type": "reasoning", "text": "hm."},
            {
                "type": "tool-call",
                "toolCallId": "t1",
                "toolName": "Shell",
                "args": {"command": "ls"},
            },
        ],
    },
    {
        "role": "tool",
        "content": [
            {"type": "tool-result", "toolCallId": "t1", "toolName": "Shell", "result": "a.py"}
        ],
    },
    {"role": "assistant", "content": [text("A.")]},
]


GO_BUBBLE, GONE_BUBBLE = {"type": 1, "text": "Go", "bubbleId": "b3"}, {"type": 2, "text": "Gone."}
PUSHED = {"name": "run_terminal_cmd", "rawArgs": '{"command": "git push"}', "status": "completed"}
PUSH_ROWS = {
    **BUBBLES,
    "bubbleId__k__b3": GO_BUBBLE,
    "bubbleId__k__b4": {**GONE_BUBBLE, "toolFormerData": PUSHED},
}
BUBBLE_NAMES = ("b1", "b2", "b3", "b4")
PUSHES = [[("Hi", "A."), ("Go", "Gone.")]]


def message(role: str, words: str) -> dict:
    return {"role": role, "content": [text(words)]}


def call_message(command: str) -> dict:
    return {
        "role": "assistant",
        "content": [
            {
                "type": "tool-call",
                "toolCallId": "t1",
                "toolName": "Shell",
                "args": {"command": command},
            }
        ],
    }


def beside(*messages: dict) -> dict[str, bytes]:
    """A `state.vscdb` that shows two turns, beside a context with these messages."""
    return {
        "state.vscdb": composer(*BUBBLE_NAMES, **PUSH_ROWS, **agent_rows([CONTEXT[0], *messages]))
    }


SHOWN_MESSAGES = (message("user", "Hi"), message("assistant", "A."), message("user", "Go"))


def with_hash(first: int) -> dict:
    """A message whose hash begins with this byte."""
    for number in range(10_000):
        message = {"role": "assistant", "content": [text("A.")], "id": str(number)}
        if hashlib.sha256(json.dumps(message).encode()).digest()[0] == first:
            return message
    raise AssertionError


BRACE = [CONTEXT[0], message("user", "Hi"), with_hash(ord("{"))]


def state_of(*contents: bytes) -> str:
    fields = b"".join(field_of_state(1, content) for content in contents)
    return "~" + base64.b64encode(fields).decode()


def with_number(rows: dict[str, Any]) -> dict[str, Any]:
    """The rows, with a number in place of the last blob."""
    return {**rows, [*rows][-1]: 5}


def without_last(rows: dict[str, Any]) -> dict[str, Any]:
    return dict(list(rows.items())[:-1])


SESSION_ID = {"session_id": "c1"}


def streamed(kind: str, words: str, **fields: Any) -> dict:
    return {
        "type": kind,
        "message": {"role": kind, "content": [text(words)]},
        **SESSION_ID,
        **fields,
    }


def streamed_call(subtype: str, call: str = "t1", **result: Any) -> dict:
    tool_call = {"shellToolCall": {"args": {"command": "ls"}, **result}}
    return {
        "type": "tool_call",
        "subtype": subtype,
        "call_id": call,
        "tool_call": tool_call,
        **SESSION_ID,
    }


STREAM_END = {"type": "result", "subtype": "success", "result": "A.", **SESSION_ID}
STREAM_START = {
    "type": "system",
    "subtype": "init",
    "model": "x",
    "cwd": "/x",
    "apiKeySource": "env",
    **SESSION_ID,
}

test_databases_of_cursor = variations(
    Variation(
        "a database",
        {
            "state.vscdb": database(
                composerData__k={
                    "composerId": "k",
                    "fullConversationHeadersOnly": heads("b1", "b2"),
                },
                **BUBBLES,
            )
        },
        ONE_TURN,
        format="cursor",
    ),
    Variation(
        "a conversation within its composer",
        {
            "state.vscdb": database(
                composerData__k={"composerId": "k", "conversation": [HI_BUBBLE, A_BUBBLE]}
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a message that is not there",
        {
            "state.vscdb": database(
                composerData__k={"fullConversationHeadersOnly": heads("b1", "b9", "b2")}, **BUBBLES
            )
        },
        ONE_TURN,
        problem="does not have",
    ),
    Variation(
        "a message of no dialog",
        {
            "state.vscdb": database(
                composerData__k={"fullConversationHeadersOnly": heads("b1", "b2")},
                **BUBBLES,
                bubbleId__k__b3={"type": 2, "text": "C."},
            )
        },
        ONE_TURN,
        problem="abandoned",
    ),
    Variation(
        "a call",
        {
            "state.vscdb": database(
                composerData__k={"fullConversationHeadersOnly": heads("b1", "b3", "b2")},
                **BUBBLES,
                bubbleId__k__b3={
                    "type": 2,
                    "text": "",
                    "toolFormerData": {
                        "name": "run_terminal_cmd",
                        "toolCallId": "t1",
                        "rawArgs": '{"command": "ls"}',
                        "result": "a.py",
                        "status": "completed",
                    },
                },
            )
        },
        ONE_TURN,
        calls=["ls"],
        results=["a.py"],
    ),
    Variation(
        "thinking",
        {
            "state.vscdb": database(
                composerData__k={"fullConversationHeadersOnly": heads("b1", "b3", "b2")},
                **BUBBLES,
                bubbleId__k__b3={"type": 2, "text": "", "thinking": {"text": "hm."}},
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a composer without messages beside another",
        {
            "state.vscdb": database(
                composerData__j={"composerId": "j", "fullConversationHeadersOnly": []},
                composerData__k={"fullConversationHeadersOnly": heads("b1", "b2")},
                **BUBBLES,
            )
        },
        ONE_TURN,
    ),
    Variation(
        "an image beside the text",
        {
            "state.vscdb": database(
                composerData__k={"fullConversationHeadersOnly": heads("b1", "b2")},
                bubbleId__k__b2=A_BUBBLE,
                bubbleId__k__b1={**HI_BUBBLE, "images": [{"uuid": "i", "data": "AA=="}]},
            )
        },
        ONE_TURN,
        problem="1 of the type 'image'",
    ),
    Variation(
        "a text that is null",
        {
            "state.vscdb": database(
                composerData__k={"fullConversationHeadersOnly": heads("b1", "b3", "b2")},
                **BUBBLES,
                bubbleId__k__b3={"type": 2, "text": None},
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a context that is encrypted",
        {"state.vscdb": composer("b1", "b2", **BUBBLES, state="~!!")},
        ONE_TURN,
        problem="(conversationState) is in no known form",
    ),
    Variation(
        "a state that ends early",
        {"state.vscdb": composer("b1", "b2", **BUBBLES, state="~CiA=")},
        ONE_TURN,
        problem="conversationState",
    ),
    Variation(
        "an empty state", {"state.vscdb": composer("b1", "b2", **BUBBLES, state="~")}, ONE_TURN
    ),
    Variation(
        "a number in place of a message that is shown",
        {"state.vscdb": composer("b1", "b2", **BUBBLES, bubbleId__k__b3=5)},
        ONE_TURN,
        problem="bubbleId:k:b3 is not JSON",
    ),
    Variation(
        "a number in place of a dialog",
        {
            "state.vscdb": database(
                composerData__j=5,
                composerData__k={"fullConversationHeadersOnly": heads("b1", "b2")},
                **BUBBLES,
            )
        },
        ONE_TURN,
        problem="composer j is not JSON",
    ),
    Variation(
        "a composer beside another context",
        {
            "x.json": {
                "composerData": {"conversation": [HI_BUBBLE, A_BUBBLE]},
                "context": {"selections": []},
            }
        },
        ONE_TURN,
    ),
    Variation(
        "a composer beside a context of other types",
        {
            "x.json": {
                "composerData": {"conversation": [HI_BUBBLE, A_BUBBLE]},
                "context": {"messages": 5, "missing": 0, "unread": 0, "turns": 0},
            }
        },
        ONE_TURN,
    ),
    Variation(
        "a dialog of another type",
        {
            "state.vscdb": database(
                composerData__j="text",
                composerData__k={"fullConversationHeadersOnly": heads("b1", "b2")},
                **BUBBLES,
            )
        },
        ONE_TURN,
        problem="is in no known format",
    ),
)

test_contexts_of_cursors_agent = variations(
    Variation(
        "a context with all messages",
        {"state.vscdb": composer("b1", "b2", **BUBBLES, **agent_rows(CONTEXT))},
        ONE_TURN,
        format="cursor",
        system="Be brief.",
        seen=[RULES],
        calls=["ls"],
        results=["a.py"],
    ),
    Variation(
        "a context without messages that are shown",
        {"state.vscdb": composer(**agent_rows(CONTEXT, turns=1))},
        ONE_TURN,
        system="Be brief.",
        calls=["ls"],
    ),
    Variation(
        "a context after a summary",
        {
            "state.vscdb": composer(
                "b1",
                "b2",
                **BUBBLES,
                **agent_rows([CONTEXT[0], {"role": "user", "content": "Go on."}]),
            )
        },
        ONE_TURN,
        problem="left out the agent's context",
    ),
    Variation(
        "a context that lacks a message, beside the messages that are shown",
        {"state.vscdb": composer("b1", "b2", **BUBBLES, **without_last(agent_rows(CONTEXT)))},
        ONE_TURN,
        problem="left out the agent's context",
    ),
    Variation(
        "a context that lacks a message",
        {"state.vscdb": composer(**without_last(agent_rows(CONTEXT)))},
        [[("Hi", "")]],
        problem="1 message that the database",
    ),
    Variation(
        "a context that no dialog refers to",
        {
            "state.vscdb": composer(
                "b1",
                "b2",
                **BUBBLES,
                **{k: v for k, v in agent_rows(CONTEXT).items() if k != "state"},
            )
        },
        ONE_TURN,
        problem="left out 5 messages of an agent (agentKv:blob)",
    ),
    Variation(
        "a database of the agent",
        {"store.db": agent_database(CONTEXT)},
        ONE_TURN,
        format="cursor",
        system="Be brief.",
        seen=[RULES],
        calls=["ls"],
        results=["a.py"],
    ),
    Variation(
        "a database of an agent that said nothing",
        {"store.db": agent_database(CONTEXT, latestRootBlobId="")},
        refused="is empty or missing",
    ),
    Variation(
        "a database of an agent with half a character for a hash",
        {"store.db": agent_database(CONTEXT, latestRootBlobId="\ud800")},
        refused="is empty or missing",
    ),
    Variation(
        "a context with the same texts and calls",
        beside(*SHOWN_MESSAGES, call_message("git push"), message("assistant", "Gone.")),
        PUSHES,
        system="Be brief.",
        calls=["git push"],
    ),
    Variation(
        "a context that divides a reply",
        beside(
            message("user", "Hi"),
            message("assistant", "A"),
            message("assistant", "."),
            SHOWN_MESSAGES[2],
            call_message("git push"),
            message("assistant", "Gone."),
        ),
        [[("Hi", "A\n\n."), ("Go", "Gone.")]],
        system="Be brief.",
    ),
    Variation(
        "a context without the last reply",
        beside(*SHOWN_MESSAGES),
        PUSHES,
        calls=["git push"],
        problem="left out the agent's context",
    ),
    Variation(
        "a context without a reply in the middle",
        beside(
            SHOWN_MESSAGES[0],
            SHOWN_MESSAGES[2],
            call_message("git push"),
            message("assistant", "Gone."),
        ),
        PUSHES,
        calls=["git push"],
        problem="left out the agent's context",
    ),
    Variation(
        "a context with another reply",
        beside(*SHOWN_MESSAGES, call_message("git push"), message("assistant", "Done.")),
        PUSHES,
        problem="left out the agent's context",
    ),
    Variation(
        "a context without the last call",
        beside(*SHOWN_MESSAGES, message("assistant", "Gone.")),
        PUSHES,
        calls=["git push"],
        problem="left out the agent's context",
    ),
    Variation(
        "a context with another command",
        beside(*SHOWN_MESSAGES, call_message("git diff"), message("assistant", "Gone.")),
        PUSHES,
        calls=["git push"],
        problem="left out the agent's context",
    ),
    Variation(
        "a context with the question only",
        {"state.vscdb": composer("b1", "b2", **BUBBLES, **agent_rows(CONTEXT[:2]))},
        ONE_TURN,
        problem="left out the agent's context",
    ),
    Variation(
        "a hash that begins like JSON",
        {"state.vscdb": composer(**agent_rows(BRACE))},
        ONE_TURN,
        system="Be brief.",
    ),
    Variation(
        "a hash that begins like JSON, without its message",
        {"state.vscdb": composer(**without_last(agent_rows(BRACE)))},
        refused="1 message that the database does not have",
    ),
    Variation(
        "a message in the state itself, as long as a hash",
        {
            "state.vscdb": composer(
                state=state_of(b'{"role":"user","content":"Hi"}  ', b'{"role":"ai","content":"A."}')
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a number in place of a message",
        {"state.vscdb": composer(**with_number(agent_rows(CONTEXT)))},
        [[("Hi", "")]],
        problem="1 message that the database does not have",
    ),
)

test_exports_and_transcripts_of_cursor = variations(
    Variation(
        "a transcript of the agent",
        {
            "t.jsonl": lines(
                transcript_line("user", "<user_query>\nHi\n</user_query>"),
                transcript_line("assistant", "A."),
            )
        },
        ONE_TURN,
        format="cursor",
    ),
    Variation(
        "a transcript with surroundings",
        {
            "t.jsonl": lines(
                transcript_line(
                    "user", "<timestamp>t</timestamp>\n<user_query>\nHi\n</user_query>"
                ),
                transcript_line(
                    "assistant", {"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}
                ),
                transcript_line("assistant", "A."),
            )
        },
        ONE_TURN,
        calls=["ls"],
    ),
    Variation(
        "an export with line breaks of Windows",
        {
            "cursor_x.md": (
                "# T\r\n_Exported on 1/1/2026 at 1:00:00 GMT+2 from Cursor (2.0)_\r\n\r\n"
                "---\r\n\r\n**User**\r\n\r\nHi\r\n\r\n---\r\n\r\n**Cursor**\r\n\r\nA.\r\n"
            )
        },
        ONE_TURN,
    ),
    Variation(
        "an export with a rule in a reply",
        {
            "cursor_x.md": (
                "# T\n_Exported on 1/1/2026 at 1:00:00 GMT+2 from Cursor (2.0)_\n\n---\n\n"
                "**User**\n\nHi\n\n---\n\n**Cursor**\n\nA.\n\n---\n\nB.\n"
            )
        },
        [[("Hi", "A.\n\n---\n\nB.")]],
    ),
    Variation(
        "a chat of the first version",
        {
            "x.json": {
                "tabs": [
                    {
                        "tabId": "1",
                        "bubbles": [
                            {"type": "user", "text": "Hi"},
                            {"type": "ai", "rawText": "A."},
                        ],
                    }
                ]
            }
        },
        ONE_TURN,
    ),
    Variation(
        "chats beside another context",
        {
            "x.json": {
                "context": {},
                "tabs": [
                    {"bubbles": [{"type": "user", "text": "Hi"}, {"type": "ai", "rawText": "A."}]}
                ],
            }
        },
        ONE_TURN,
    ),
    Variation(
        "a context of other types",
        {"x.json": {"context": {"messages": [], "missing": None, "unread": 0, "turns": 0}}},
        refused="x.json",
    ),
)

test_streams_of_cursors_agent = variations(
    Variation(
        "the agent's stream",
        {
            "o.jsonl": lines(
                STREAM_START, streamed("user", "Hi"), streamed("assistant", "A."), STREAM_END
            )
        },
        ONE_TURN,
        format="cursor",
    ),
    Variation(
        "the agent's stream with a call",
        {
            "o.jsonl": lines(
                STREAM_START,
                streamed("user", "Hi"),
                streamed_call("started"),
                streamed_call("completed", result={"success": {"stdout": "x"}}),
                streamed("assistant", "A."),
                STREAM_END,
            )
        },
        ONE_TURN,
        calls=["ls"],
        results=['{"success": {"stdout": "x"}}'],
    ),
    Variation(
        "the agent's stream with a call that did not end",
        {"o.jsonl": lines(STREAM_START, streamed("user", "Hi"), streamed_call("started"))},
        [[("Hi", "")]],
        calls=["ls"],
    ),
    Variation(
        "the agent's stream in parts",
        {
            "o.jsonl": lines(
                STREAM_START,
                streamed("user", "Hi"),
                streamed("assistant", "A", timestamp_ms=1),
                streamed("assistant", ".", timestamp_ms=2),
                streamed("assistant", "A."),
                STREAM_END,
            )
        },
        ONE_TURN,
    ),
    Variation(
        "the agent's thinking",
        {
            "o.jsonl": lines(
                STREAM_START,
                streamed("user", "Hi"),
                {"type": "thinking", "subtype": "delta", "text": "price", **SESSION_ID},
                {"type": "thinking", "subtype": "completed", **SESSION_ID},
                streamed("assistant", "A."),
                STREAM_END,
            )
        },
        ONE_TURN,
    ),
)


def test_a_dialog_of_cursor_of_another_type_is_named(tmp_path):
    (tmp_path / "x.json").write_text('{"composerData": 5}')
    with pytest.raises(UsageError, match="its dialog is 5"):
        read_logs([tmp_path / "x.json"], "cursor")
