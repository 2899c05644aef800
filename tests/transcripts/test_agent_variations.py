"""Logs of coding agents, in the variations of `log_variations`."""

import base64
import hashlib
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from log_variations import IMAGE, ONE, TWO, Variation, check, file_text, lines, text, variations

from holdfast.drift import load_suite
from holdfast.errors import UsageError
from holdfast.logs import read_logs, score_logs
from holdfast.logs.context import Contexts
from holdfast.measures.agent_acts.edits.tool_edits import edits_by_call

# Claude Code


def cc(kind: str, uuid: str, parent: str | None, content: Any, **fields: Any) -> dict:
    """A line of a session; `mid` is the id of the reply."""
    message = {"role": kind, "content": content}
    if mid := fields.pop("mid", None):
        message |= {"id": mid, "model": "claude-x", "type": "message"}
    line = {"parentUuid": parent, "isSidechain": False, "sessionId": "s1", "version": "2.1.0"}
    return {**line, "type": kind, "message": message, "uuid": uuid, **fields}


def u(uuid: str, parent: str | None, content: Any, **fields: Any) -> dict:
    return cc("user", uuid, parent, content, **fields)


def a(uuid: str, parent: str | None, *blocks: Any, **fields: Any) -> dict:
    content_blocks = [text(block) if isinstance(block, str) else block for block in blocks]
    return cc("assistant", uuid, parent, content_blocks, **fields)


def use(call: str, command: str = "ls") -> dict:
    return {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}}


def res(uuid: str, parent: str, call: str, content: Any = "ok", **fields: Any) -> dict:
    block = {"type": "tool_result", "tool_use_id": call, "content": content}
    return u(uuid, parent, [block], toolUseResult={"stdout": "ok"}, **fields)


def sysline(uuid: str, parent: str | None, subtype: str, **fields: Any) -> dict:
    line = {"parentUuid": parent, "isSidechain": False, "sessionId": "s1", "type": "system"}
    return {**line, "subtype": subtype, "uuid": uuid, "content": "", **fields}


def refreshed(events: Sequence[dict], session: str = "s2") -> list[dict]:
    """A copy of lines under another session, with new uuids."""
    return [
        {
            **event,
            "sessionId": session,
            "uuid": f"{event['uuid']}-new",
            "parentUuid": event["parentUuid"] and f"{event['parentUuid']}-new",
        }
        for event in events
    ]


U1 = u("u1", None, "Hi", timestamp="2026-05-01T10:00:00.000Z")
A1 = a("a1", "u1", "A.", mid="msg_1", timestamp="2026-05-01T10:00:01.000Z")
U2 = u("u2", "a1", "More?", timestamp="2026-05-01T10:00:02.000Z")
A2 = a("a2", "u2", "B.", mid="msg_2", timestamp="2026-05-01T10:00:03.000Z")
S1 = [U1, A1, U2, A2]
REFUSAL = {  # as Claude Code 2 writes it
    "type": "tool_result",
    "tool_use_id": "t1",
    "is_error": True,
    "content": "The user doesn't want to proceed with this tool use. The tool use was rejected (eg."
    " if it was a file edit, the new_string was NOT written to the file). To tell you"
    " how to proceed, the user said:\nMore?",
}
WORKED = [U1, a("a0", "u1", use("t1"), mid="m0"), res("r1", "a0", "t1")]


def without(events: Sequence[dict], *names: str) -> list[dict]:
    return [{n: v for n, v in event.items() if n not in names} for event in events]


def unnamed(events: Sequence[dict]) -> list[dict]:
    """Lines whose replies have no ids."""
    return [
        {**event, "message": {n: v for n, v in event["message"].items() if n != "id"}}
        for event in events
    ]


test_sessions_of_claude_code = variations(
    Variation(
        "thinking and text are lines of one reply",
        {"s.jsonl": lines(U1, a("a0", "u1", {"type": "thinking", "thinking": "hm.",
            "signature": "x"},
                                mid="msg_1"), {**A1, "parentUuid": "a0"})},
        ONE,
    ),
    Variation("a session of Qwen Code's", {"s.jsonl": lines(
        {**U1, "message": {"role": "user", "parts": [{"text": "Hi"}]}},
        {**A1, "message": {"role": "model", "parts": [{"text": "A."}]}})},
        refused="no known format"),
    Variation("a line before the one that it follows", {"s.jsonl": lines(U1, A2, U2, A1)}, TWO),
    Variation("an interruption and what the user says then", {"s.jsonl": lines(
        U1, A1, u("u2", "a1", [text("[Request interrupted by user]"), text("More?")]), A2)}, TWO),
    Variation("a file in which no line names a parent", {"s.jsonl": lines(
        *({**event, "parentUuid": None} for event in S1))}, TWO),
    Variation("a reply that another one replaced", {"s.jsonl": lines(
        U1, a("a0", "u1", "A", mid="m0"), {**A1, "supersedesUuids": ["a0"]})}, ONE,
        problem="1 message of abandoned branches"),
    Variation("a reply that a refusal took back", {"s.jsonl": lines(
        U1, a("a0", "u1", "A", mid="m0"), sysline("y1", "a0", "api_refusal",
            retractedMessageUuids=["a0"]), {**A1, "parentUuid": "y1"})},
        ONE, problem="1 message of abandoned branches"),
    Variation("lines of a type that is not known", {"s.jsonl": lines(
        U1, cc("tool", "t1", "u1", "x"), {**A1, "parentUuid": "t1"})}, ONE, problem="line 2"),
    Variation("a system prompt", {"s.jsonl": lines(
        cc("system", "y1", None, "Be brief."), {**U1, "parentUuid": "y1"}, A1)}, ONE,
        system="Be brief."),
    Variation("a document that lists the lines", {"s.json": {"loglines": S1}}, TWO),
    Variation(
        "redacted thinking",
        {"s.jsonl": lines(U1, a("a1", "u1", {"type": "redacted_thinking", "data": "x"}, "A."))},
        ONE,
    ),
    Variation(
        "a result as text", {"s.jsonl": lines(*WORKED, {**A1, "parentUuid": "r1"})}, ONE,
        calls=["ls"], results=["ok"],
    ),
    Variation(
        "a result as blocks",
        {"s.jsonl": lines(*WORKED[:2], res("r1", "a0", "t1", [text("x"), text("y"), IMAGE]),
                          {**A1, "parentUuid": "r1"})},
        ONE, results=["x\ny"], problem="1 of the type 'image'",
    ),
    Variation(
        "a result that is null",
        {"s.jsonl": lines(*WORKED[:2], res("r1", "a0", "t1", None), {**A1, "parentUuid": "r1"})},
        ONE, results=[""],
    ),
    Variation(
        "a result without content",
        {"s.jsonl": lines(*WORKED[:2], u("r1", "a0", [{"type": "tool_result",
            "tool_use_id": "t1"}]),
                          {**A1, "parentUuid": "r1"})},
        ONE, results=[""],
    ),
    Variation(
        "a result that names a tool",
        {"s.jsonl": lines(*WORKED[:2], res("r1", "a0", "t1", [{"type": "tool_reference",
                                                               "tool_name": "Read"}]),
                          {**A1, "parentUuid": "r1"})},
        ONE,
    ),
    Variation("an image and a text", {"s.jsonl": lines(u("u1", None, [IMAGE, text("Hi")]), A1)},
        ONE, problem="1 of the type 'image'"),
    Variation("an image alone", {"s.jsonl": lines(u("u1", None, [IMAGE]), A1)}, [[("", "A.")]],
        problem="1 of the type 'image'"),
    Variation(
        "the source of an image is a meta message",
        {"s.jsonl": lines(u("u1", None, [text("Hi"), IMAGE]),
                          u("m1", "u1", "[Image: source: /tmp/a.png]", isMeta=True),
                          {**A1, "parentUuid": "m1"})},
        ONE, seen=["[Image: source: /tmp/a.png]"], problem="1 of the type 'image'",
    ),
    Variation(
        "lines beside the messages",
        {"s.jsonl": lines(
            {"type": "summary", "summary": "Greeting", "leafUuid": "a1"},
            {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}},
            {"type": "queue-operation", "operation": "enqueue", "sessionId": "s1",
             "timestamp": "t", "content": "the cost?"},
            {"type": "ai-title", "aiTitle": "Hi", "sessionId": "s1"},
            {"type": "last-prompt", "lastPrompt": "the cost?", "sessionId": "s1"},
            {"type": "custom-title", "customTitle": "x", "sessionId": "s1"},
            {"type": "permission-mode", "permissionMode": "plan", "sessionId": "s1"},
            {"type": "pr-link", "sessionId": "s1", "prNumber": 1}, *S1,
            sysline("x1", "a2", "turn_duration", durationMs=3),
            sysline("x2", "x1", "stop_hook_summary", hookCount=1),
            sysline("x3", "x2", "away_summary", content="The user asked for the cost."),
        )},
        TWO, seen=[],
    ),
    Variation(
        "a local command as a system line",
        {"s.jsonl": lines(U1, A1, sysline("l1", "a1", "local_command",
                                          content="<command-name>/cost</command-name>"),
                          sysline("l2", "l1", "local_command",
                                  content="<local-command-stdout>The cost</local-command-stdout>"),
                          {**U2, "parentUuid": "l2"}, A2)},
        TWO,
    ),
    Variation(
        "progress in the chain of parents",
        {"s.jsonl": lines(U1, a("a0", "u1", use("t1"), mid="m0"),
                          {"type": "progress", "uuid": "p1", "parentUuid": "a0", "sessionId": "s1",
                           "data": {"type": "agent_progress", "message": {
                               "type": "user", "message": {"role": "user", "content": "price?"}}}},
                          res("r1", "p1", "t1"), {**A1, "parentUuid": "r1"})},
        ONE, calls=["ls"],
    ),
    Variation(
        "a subagent in its own file",
        {"p/s1/subagents/agent-1.jsonl": lines(
            *({**event, "isSidechain": True, "agentId": "1"} for event in (U1, A1)))},
        ONE,
    ),
    Variation(
        "a subagent that the user's file has too",
        {"s.jsonl": lines(U1, a("a0", "u1", {"type": "tool_use", "id": "t1", "name": "Task",
                                             "input": {"prompt": "Count."}}),
                          u("x1", None, "Count.", isSidechain=True),
                          a("x2", "x1", "One.", isSidechain=True),
                          res("r1", "a0", "t1", [text("One.")]), {**A1, "parentUuid": "r1"})},
        [[("Hi", "A.")], [("Count.", "One.")]],
    ),
    Variation(
        "subagents that are interleaved",
        {"s.jsonl": lines(U1, A1, u("x1", None, "X?", isSidechain=True, agentId="x"),
                          u("y1", None, "Y?", isSidechain=True, agentId="y"),
                          a("x2", "x1", "X.", isSidechain=True, agentId="x"),
                          a("y2", "y1", "Y.", isSidechain=True, agentId="y"), U2, A2)},
        [*TWO, [("X?", "X.")], [("Y?", "Y.")]],
    ),
    Variation(
        "a retry after an error",
        {"s.jsonl": lines(U1, a("e1", "u1", "API Error: 500", isApiErrorMessage=True),
                          u("u1b", None, "Hi"), {**A1, "parentUuid": "u1b"})},
        ONE, problem="2 messages of abandoned branches",
    ),
    Variation(
        "nothing was requested",
        {"s.jsonl": lines(U1, A1, {**a("n1", "a1", "No response requested."),
                                   "message": {"model": "<synthetic>", "role": "assistant",
                                               "content": [text("No response requested.")]}},
                          {**U2, "parentUuid": "n1"}, A2)},
        TWO,
    ),
    Variation(
        "an interruption in blocks",
        {"s.jsonl": lines(U1, A1, u("i1", "a1", [text("[Request interrupted by user]")]),
                          {**U2, "parentUuid": "i1"}, A2)},
        TWO,
    ),
    Variation(
        "an interruption during a tool",
        {"s.jsonl": lines(*WORKED[:2], res("r1", "a0", "t1", "The user doesn't want to proceed."),
                          u("i1", "r1", [text("[Request interrupted by user for tool use]")]),
                          {**U2, "parentUuid": "i1"}, A2)},
        [[("Hi", ""), ("More?", "B.")]],
    ),
    Variation(
        "feedback of a hook",
        {"s.jsonl": lines(U1, A1, u("h1", "a1", "Stop hook feedback:\nthe price?", isMeta=True),
                          {**A2, "parentUuid": "h1"})},
        [[("Hi", "A.\n\nB.")]], seen=["Stop hook feedback:\nthe price?"],
    ),
    Variation(
        "the text of a skill",
        {"s.jsonl": lines(*WORKED, u("k1", "r1", [text("Base directory for this skill: /x\nPrice")],
                                     isMeta=True, sourceToolUseID="t1"),
                          {**A1, "parentUuid": "k1"})},
        ONE, seen=["Base directory for this skill: /x\nPrice"],
    ),
    Variation(
        "a context that was compacted, with its head written elsewhere",
        {"s.jsonl": lines(*S1, sysline("b1", None, "compact_boundary", logicalParentUuid="gone",
                                       compactMetadata={"trigger": "auto", "preTokens": 9}),
                          u("c1", "b1", "Summary of the price.", isCompactSummary=True),
                          u("u3", "c1", "Bye."), a("a3", "u3", "Bye!"))},
        [[*TWO[0], ("Bye.", "Bye!")]],
    ),
    Variation(
        "a session that begins with the summary of another",
        {"s.jsonl": lines(u("c1", None, "This session is being continued from a previous"
                            " conversation that ran out of context. The price."),
                          {**U1, "parentUuid": "c1"}, A1)},
        ONE,
    ),
    Variation("a message without content", {"s.jsonl": lines(u("u0", None, None), {**U1,
        "parentUuid": "u0"}, A1)}, ONE),
    Variation(
        "times that are numbers",
        {"s.jsonl": lines(*({**event, "timestamp": 1789380000000 + n} for n,
            event in enumerate(S1)))},
        TWO,
    ),
    Variation(
        "lines with more usage are written again",
        {"s.jsonl": lines(U1, A1, {**A1, "message": {**A1["message"],
            "usage": {"output_tokens": 9}}},
                          U2, A2)},
        TWO,
    ),
    Variation(
        "a queued message of a task",
        {"s.jsonl": lines(U1, A1, {"type": "attachment", "uuid": "q1", "parentUuid": "a1",
                                   "sessionId": "s1", "attachment": {
                                       "type": "queued_command", "commandMode": "task-notification",
                                       "prompt": "The price is done."}},
                          {**A2, "parentUuid": "q1"})},
        [[("Hi", "A.\n\nB.")]], seen=["The price is done."],
    ),
    Variation("a message that a person is the origin of",
              {"s.jsonl": lines({**U1, "origin": {"kind": "human"}}, A1)}, ONE),
    Variation("a message of a channel",
              {"s.jsonl": lines(U1, A1, {**U2, "origin": {"kind": "coordinator"}}, A2)},
              [[("Hi", "A.\n\nB.")]]),
    Variation(
        "a mark of the order of bytes, and line breaks of Windows",
        {"s.jsonl": ("\ufeff" + "\r\n".join(map(json.dumps, S1)) + "\r\n")}, TWO,
    ),
    Variation("a last line that was cut",
              {"s.jsonl": lines(*S1, json.dumps(u("u3", "a2", "Bye"))[:50])}, TWO,
                  problem="line 5:"),
    Variation("no line break at the end", {"s.jsonl": "\n".join(map(json.dumps, S1))}, TWO),
    Variation(
        "two rewinds to one place",
        {"s.jsonl": lines(*S1, u("u3", "a1", "Or?"), a("a3", "u3", "C."), u("u4", "a1", "Else?"),
                          a("a4", "u4", "D."))},
        [[("Hi", "A."), ("Else?", "D.")]], problem="4 messages of abandoned branches",
    ),
    Variation(
        "a rewind to a branch that was left",
        {"s.jsonl": lines(*S1, u("u3", "a1", "Or?"), a("a3", "u3", "C."), u("u4", "a2", "Else?"),
                          a("a4", "u4", "D."))},
        [[*TWO[0], ("Else?", "D.")]], problem="2 messages of abandoned branches",
    ),
    Variation(
        "a rewind before everything",
        {"s.jsonl": lines(*S1, u("u3", None, "Or?"), a("a3", "u3", "C."))},
        [[("Or?", "C.")]], problem="4 messages of abandoned branches",
    ),
    Variation(
        "a rewind in the middle of a turn",
        {"s.jsonl": lines(*WORKED, a("a1", "r1", "A.", mid="m1"), u("u2", "r1", "Stop."),
                          a("a2", "u2", "B.", mid="m2"))},
        [[("Hi", ""), ("Stop.", "B.")]], problem="1 message of abandoned branches",
    ),
    Variation(
        "calls at once, whose results are one message",
        {"s.jsonl": lines(U1, a("a0", "u1", use("t1", "ls a"), use("t2", "ls b")),
                          u("r1", "a0", [{"type": "tool_result", "tool_use_id": "t1",
                        "content": "x"},
                                         {"type": "tool_result", "tool_use_id": "t2",
                        "content": "y"}],
                            toolUseResult="x"), {**A1, "parentUuid": "r1"})},
        ONE, calls=["ls a", "ls b"], results=["x", "y"],
    ),
    Variation(
        "a session in one list", {"s.json": S1}, TWO,
    ),
    Variation(
        "a copy with the same ids",
        {"a.jsonl": lines(U1, A1), "b.jsonl": lines(*({**e, "sessionId": "s2"} for e in S1))},
        TWO, problem="its only turn is in",
    ),
    Variation(
        "a copy with new ids", {"a.jsonl": lines(U1, A1), "b.jsonl": lines(*refreshed(S1))},
        TWO, problem="its only turn is in",
    ),
    Variation(
        "a copy with new ids, whose replies have none",
        {"a.jsonl": lines(*unnamed(S1[:2])), "b.jsonl": lines(*unnamed(refreshed(S1)))},
        TWO, problem="its only turn is in",
    ),
    Variation(
        "a fork, which names what it copied",
        {"a.jsonl": lines(*without(unnamed(S1[:2]), "timestamp")), "b.jsonl": lines(*(
            {**new, "forkedFrom": {"sessionId": "s1", "messageUuid": old["uuid"]}}
            for old, new in zip(S1, without(unnamed(refreshed(S1)), "timestamp"), strict=True)))},
        TWO, problem="its only turn is in",
    ),
    Variation(
        "a copy of a part of a turn",
        {"a.jsonl": lines(*WORKED), "b.jsonl": lines(
            *({**e, "sessionId": "s2"} for e in (*WORKED, {**A1, "parentUuid": "r1"})))},
        ONE, calls=["ls"], problem="its only turn is in",
    ),
    Variation(
        "a copy of a part of a turn, in the shorter session",
        {"a.jsonl": lines(*S1, u("u3", "a2", "Do."), a("a3", "u3", use("t1"), mid="m3"),
                          res("r3", "a3", "t1")),
         "b.jsonl": lines(*refreshed([u("u3", None, "Do."), a("a3", "u3", use("t1"), mid="m3"),
                                      res("r3", "a3", "t1"), a("a4", "r3", "Done.", mid="m4")]))},
        [TWO[0], [("Do.", "Done.")]], problem="1 of its 3 turns are in",
    ),
    Variation(
        "two copies that go on otherwise within a turn",
        {"a.jsonl": lines(*WORKED, a("a1", "r1", use("t2", "pwd"), mid="m1"),
                          res("r2", "a1", "t2"), a("a2", "r2", "A.", mid="m2")),
         "b.jsonl": lines(*refreshed([*WORKED, a("b1", "r1", "B.", mid="m9")]))},
        [ONE[0], [("Hi", "B.")]],
    ),
    Variation(
        "a context that was cleared",
        {"s.jsonl": lines(U1, A1, u("c1", None, "<command-name>/clear</command-name>"),
                          u("c2", "c1", "<local-command-stdout></local-command-stdout>"),
                          {**U2, "parentUuid": "c2"}, A2)},
        [ONE[0], [("More?", "B.")]],
    ),
    Variation(
        "a call that the user refused in words",
        {"s.jsonl": lines(*WORKED[:2], u("r1", "a0", [REFUSAL], toolUseResult="Error: ..."),
                          {**A2, "parentUuid": "r1"})},
        [[("Hi", ""), ("More?", "B.")]],
    ),
    Variation(
        "a refusal of a call without an id",
        {"s.jsonl": lines(*WORKED[:2], u("r1", "a0", [without([REFUSAL], "tool_use_id")[0]]),
                          {**A2, "parentUuid": "r1"})},
        [[("Hi", ""), ("More?", "B.")]],
    ),
    Variation(
        "an output with the words of a refusal",
        {"s.jsonl": lines(*WORKED[:2], u("r1", "a0", [{**REFUSAL, "is_error": False}]),
                          {**A2, "parentUuid": "r1"})},
        [[("Hi", "B.")]],
    ),
    Variation(
        "a failed command that says what the user wants",
        {"s.jsonl": lines(*WORKED[:2], u("r1", "a0", [{**REFUSAL, "content": (
            "The user doesn't want to be bothered, notes say. Then the user said:\nMore?")}]),
            {**A2, "parentUuid": "r1"})},
        [[("Hi", "B.")]],
    ),
    Variation(
        "a sentence that names an element of Claude Code's",
        {"s.jsonl": lines(u("u1", None, "Hi, never use <ide_selection> here. Run the tests."
                                        "<system-reminder>Be brief.</system-reminder>"), A1)},
        [[("Hi, never use <ide_selection> here. Run the tests.", "A.")]],
    ),
    Variation(
        "an element that was cut off",
        {"s.jsonl": lines(u("u0", None, "<ide_selection>price"), {**U1, "parentUuid": "u0"}, A1)},
        ONE, seen=["<ide_selection>price"],
    ),
    Variation(
        "a result beside words",
        {"s.jsonl": lines(*WORKED[:2], u("r1", "a0", [
            {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}, text("More?")],
            toolUseResult="ok"), {**A2, "parentUuid": "r1"})},
        [[("Hi", ""), ("More?", "B.")]],
    ),
    Variation(
        "sessions that only look alike",
        {"a.jsonl": lines(*without(unnamed([U1, A1]), "timestamp")),
         "b.jsonl": lines(*without(unnamed(refreshed([U1, A1])), "timestamp"))},
        [ONE[0], ONE[0]],
    ),
)  # fmt: skip


STREAM = {"session_id": "s1", "parent_tool_use_id": None}


def streamed(kind: str, content: Any, **fields: Any) -> dict:
    message = {"role": kind, "content": content, **fields.pop("message", {})}
    return {"type": kind, "message": message, **STREAM, **fields}


test_streams_of_claude_code = variations(
    Variation(
        "a stream with all kinds of lines",
        {"o.jsonl": lines(
            {"type": "system", "subtype": "init", "session_id": "s1", "tools": ["Bash"],
                "uuid": "i1",
             "model": "claude-x", "cwd": "/x"},
            {"type": "system", "subtype": "hook_started", "session_id": "s1", "uuid": "h1"},
            streamed("user", "Hi", uuid="u1", isReplay=True),
            {"type": "stream_event", "event": {"type": "message_start"}, **STREAM, "uuid": "e1"},
            streamed("assistant", [{"type": "thinking", "thinking": "hm."}], uuid="a0"),
            streamed("assistant", [text("A.")], uuid="a1"),
            {"type": "rate_limit_event", "session_id": "s1", "uuid": "l1"},
            {"type": "tool_progress", "tool_name": "Bash", **STREAM, "uuid": "l2"},
            {"type": "result", "subtype": "success", "result": "A.", "session_id": "s1"})},
        ONE, format="claude-code",
    ),
    Variation(
        "a stream without the user's message",
        {"o.jsonl": lines(streamed("assistant", [use("t1")], uuid="a0"),
                          streamed("user", [{"type": "tool_result", "tool_use_id": "t1",
                                             "content": "ok"}], uuid="r1"),
                          streamed("assistant", [text("A.")], uuid="a1"))},
        [[("", "A.")]], calls=["ls"],
    ),
    Variation(
        "a stream with a subagent",
        {"o.jsonl": lines(streamed("user", "Hi"), streamed("assistant", [use("t1")]),
                          streamed("user", [text("Count.")], parent_tool_use_id="t1"),
                          streamed("assistant", [text("One.")], parent_tool_use_id="t1"),
                          streamed("user", [{"type": "tool_result", "tool_use_id": "t1",
                                             "content": [text("One.")]}]),
                          streamed("assistant", [text("A.")]))},
        [ONE[0], [("Count.", "One.")]],
    ),
    Variation(
        "an array of a stream",
        {"o.json": [{"type": "system", "subtype": "init", "session_id": "s1"},
                    streamed("user", "Hi"), streamed("assistant", [text("A.")]),
                    {"type": "result", "subtype": "success", "session_id": "s1"}]},
        ONE,
    ),
    Variation(
        "a stream and the session that it is of",
        {"o.jsonl": lines(streamed("assistant", [text("A.")], message={"id": "msg_1"})),
         "s.jsonl": lines(*S1)},
        TWO, problem="its only turn is in",
    ),
    Variation(
        "a boundary without an id",
        {"o.jsonl": lines(streamed("user", "x" * 4000), streamed("assistant", [text("A.")]),
                          {"type": "system", "subtype": "compact_boundary", "session_id": "s1"},
                          streamed("user", "Hi"), streamed("assistant", [text("A.")]))},
        [[("x" * 4000, "A."), ("Hi", "A.")]], tokens=[1000, 0],
    ),
    Variation(
        "a stream that is written twice",
        {"o.jsonl": lines(*2 * [streamed("assistant", [use("t1")], message={"id": "m0"}),
                                streamed("user", [{"type": "tool_result", "tool_use_id": "t1",
                                                   "content": "ok"}]),
                                streamed("assistant", [text("A.")], message={"id": "m1"})])},
        [[("", "A.")]], calls=["ls"], results=["ok"],
    ),
    Variation(
        "an error of the interface in a stream",
        {"o.jsonl": lines(streamed("user", "Hi"), streamed("assistant", [text("A.")]),
                          streamed("assistant", [text("API Error")],
                        message={"model": "<synthetic>"}))},
        ONE,
    ),
)  # fmt: skip


# Codex


def cx(kind: str, **payload: Any) -> dict:
    return {"timestamp": "2026-05-01T10:00:00Z", "type": kind, "payload": payload}


def item(**payload: Any) -> dict:
    return cx("response_item", **payload)


def says(role: str, *texts: str, **fields: Any) -> dict:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": words} for words in texts]
    return item(type="message", role=role, content=content, **fields)


def calls(name: str, arguments: Any, call: str = "c1") -> dict:
    return item(type="function_call", name=name, arguments=json.dumps(arguments), call_id=call)


def output(value: Any, call: str = "c1", kind: str = "function_call_output") -> dict:
    return item(type=kind, call_id=call, output=value)


META = cx("session_meta", id="x1", base_instructions={"text": "Be brief."}, source="cli")
CU, CA = says("user", "Hi"), says("assistant", "A.")
IDE = (
    "# Context from my IDE setup:\n\n## Active file: price.py\n\n## Open tabs:\n- price.py\n\n"
    "## My request for Codex:\nHi\n"
)

test_rollouts_of_codex = variations(
    Variation("a prompt as an object", {"r.jsonl": lines(META, CU, CA)}, ONE, system="Be brief."),
    Variation("a prompt that is null",
              {"r.jsonl": lines(cx("session_meta", id="x", instructions=None), CU, CA)}, ONE,
                  system=""),
    Variation(
        "events for display", {"r.jsonl": lines(
            META, cx("event_msg", type="task_started"), CU,
            cx("event_msg", type="user_message", message="Hi"), cx("turn_context", model="x"),
            cx("event_msg", type="agent_reasoning", text="price"),
            item(type="reasoning", summary=[{"type": "summary_text", "text": "hm."}],
                 encrypted_content="x"),
            cx("event_msg", type="agent_message", message="A."), CA,
            cx("event_msg", type="token_count", info=None))}, ONE, seen=[]),
    Variation("messages that only the events for display have", {"r.jsonl": lines(
        META, cx("event_msg", type="user_message", message="Hi"), CA)}, ONE),
    Variation("a call of a kind that is not known", {"r.jsonl": lines(
        META, CU, item(type="tool_call", function={"name": "shell"}, arguments={"command": "ls"}),
        CA)}, ONE, calls=["ls"]),
    Variation("calls that a script of the model's made", {"r.jsonl": lines(
        META, CU, item(type="custom_tool_call", name="exec", call_id="c1", input="await f()"),
        cx("event_msg", type="exec_command_end", call_id="c2", command=["git", "push"],
           aggregated_output="x", source="agent"),
        cx("event_msg", type="exec_command_end", call_id="c3", command=["ls"], source="user_shell"),
        cx("event_msg", type="mcp_tool_call_end", call_id="c4", invocation={
            "server": "s", "tool": "t", "arguments": {"q": "y"}}, result={"Ok": {"content": []}}),
        output("done"), CA)}, ONE, calls=["await f()", "['git', 'push']", "y"],
        results=["x", "", "done"]),
    Variation("a call that an event for display repeats", {"r.jsonl": lines(
        META, CU, calls("shell", {"command": "ls"}), cx("event_msg", type="exec_command_end",
            call_id="c1", command=["bash", "-lc", "ls"]), output("x"), CA)}, ONE, calls=["ls"]),
    Variation("an item of a kind that is not known", {"r.jsonl": lines(
        META, CU, item(type="tool_result", name="shell", result="x"), CA)}, ONE,
        problem="its type 'tool_result' is not known"),
    Variation("a message of another agent", {"r.jsonl": lines(
        META, CU, item(type="agent_message", author="b", recipient="a", content=[
            {"type": "input_text", "text": "Done."}, {"type": "encrypted_content"}]), CA)}, ONE,
        seen=["Done."], problem="1 of the type 'encrypted_content'"),
    Variation("reasoning in the rollouts of 2025", {"r.jsonl": lines(
        {"id": "x", "timestamp": "t", "instructions": None}, CU["payload"],
        {"type": "reasoning", "id": "rs", "summary": [], "content": None}, CA["payload"])}, ONE),
    Variation("a message with a phase", {"r.jsonl": lines(META, CU, says("assistant", "A.",
        phase="final"))}, ONE),
    Variation("surroundings and words", {"r.jsonl": lines(
        META, says("user", "<environment_context>\n<cwd>/x</cwd>\n</environment_context>\n\nHi"),
        CA)}, ONE),
    Variation("the context of an editor", {"r.jsonl": lines(META, says("user", IDE), CA)}, ONE),
    Variation(
        "files that the user named",
        {"r.jsonl": lines(META, says("user",
            "# Files mentioned by the user:\n\n## price.png: /x\n\n"
                                     "## My request for Codex:\nHi"), CA)}, ONE),
    Variation(
        "an image", {"r.jsonl": lines(META, item(type="message", role="user", content=[
            {"type": "input_text", "text": "<image>"}, {"type": "input_image",
                "image_url": "data:"},
            {"type": "input_text", "text": "</image>"}, {"type": "input_text", "text": "Hi"}]),
                CA)},
        ONE, problem="1 of the type 'input_image'"),
    Variation("a command as a list",
              {"r.jsonl": lines(META, CU, calls("shell", {"command": ["bash", "-lc", "ls"]}),
                                output('{"output": "a.py", "metadata": {"exit_code": 0}}'), CA)},
              ONE, calls=["['bash', '-lc', 'ls']"],
              results=['{"output": "a.py", "metadata": {"exit_code": 0}}']),
    Variation("a command as text", {"r.jsonl": lines(META, CU, calls("exec_command", {"cmd": "ls"}),
                                                     output("a.py"), CA)}, ONE, calls=["ls"]),
    Variation("an output in parts",
              {"r.jsonl": lines(META, CU, calls("f", {}), output([
                  {"type": "input_text", "text": "x"}, {"type": "input_image",
                      "image_url": "data:"}]),
                  CA)}, ONE, results=["x"], problem="1 of the type 'input_image'"),
    Variation("an output as an object",
              {"r.jsonl": lines(META, CU, calls("f", {}), output({"content": "x", "success": True}),
                                CA)}, ONE, results=["x"]),
    Variation("a local command",
              {"r.jsonl": lines(META, CU, item(type="local_shell_call", call_id="c1",
                  status="completed",
                                               action={"type": "exec", "command": ["ls"]}),
                                output("x"), CA)}, ONE, calls=["exec ['ls']"]),
    Variation("a patch", {"r.jsonl": lines(META, CU, item(type="custom_tool_call",
        name="apply_patch",
                                                          input="*** Begin Patch", call_id="c1"),
                                           output("ok", kind="custom_tool_call_output"), CA)},
              ONE, calls=["*** Begin Patch"], results=["ok"]),
    Variation("a search", {"r.jsonl": lines(META, CU, item(type="web_search_call",
        status="completed",
                                                           action={"type": "search", "query": "x"}),
                                            CA)}, ONE, calls=["search x"]),
    Variation("a ghost snapshot", {"r.jsonl": lines(META, CU, CA, item(type="ghost_snapshot"))},
        ONE),
    Variation("a subagent", {"r.jsonl": lines(
        cx("session_meta", id="x2", source={"subagent": {"thread_spawn": {
            "parent_thread_id": "x1"}}}),
        CU, CA)}, ONE, subagents=1),
    Variation("an interruption", {"r.jsonl": lines(
        META, CU, CA, says("user",
            "<turn_aborted>\nThe user interrupted the turn.\n</turn_aborted>"),
        cx("event_msg", type="turn_aborted", reason="interrupted"), says("user", "More?"),
        says("assistant", "B."))}, TWO),
    Variation("an error", {"r.jsonl": lines(META, CU, cx("event_msg", type="error", message="429"),
        CA)},
              ONE),
    Variation("a fork", {"r.jsonl": lines(
        cx("session_meta", id="x2", forked_from_id="x1"), META, CU, CA, says("user", "More?"),
        says("assistant", "B."))}, TWO),
    Variation("a fork and its origin", {
        "a.jsonl": lines(META, CU, CA),
        "b.jsonl": lines(cx("session_meta", id="x2", forked_from_id="x1"), META, CU, CA,
                         says("user", "More?"), says("assistant", "B."))},
        TWO, problem="its only turn is in"),
    Variation("a resumed rollout with the same items", {
        "a.jsonl": lines(META, CU, says("assistant", "A.", id="msg_1")),
        "b.jsonl": lines(META, CU, says("assistant", "A.", id="msg_1"), says("user", "More?"),
                         says("assistant", "B.", id="msg_2"))},
        TWO, problem="its only turn is in"),
    Variation("two rollouts that look alike", {
        "a.jsonl": lines(META, CU, CA),
        "b.jsonl": lines(cx("session_meta", id="x2", base_instructions={"text": "Be brief."}), CU,
            CA)},
        [ONE[0], ONE[0]]),
    Variation("a compaction with a summary", {"r.jsonl": lines(
        META, CU, CA, cx("compacted", message="Summary."), says("user", "More?"),
        says("assistant", "B."))}, TWO),
    Variation("a compaction with an encrypted summary", {"r.jsonl": lines(
        META, CU, CA, cx("compacted", message="", replacement_history=[
            CU["payload"], {"type": "compaction", "encrypted_content": "x"}]),
        says("user", "More?"), says("assistant", "B."))}, TWO),
    Variation("records of unknown types", {"r.jsonl": lines(
        META, cx("world_state", x=1), CU, CA, cx("inter_agent_communication", x=1))}, ONE),
    Variation("line breaks of Windows", {"r.jsonl": "\r\n".join(map(json.dumps, (META, CU, CA)))},
        ONE),
    Variation("several texts", {"r.jsonl": lines(META, says("user", "H", "i"), CA)}, [[("H\ni",
        "A.")]]),
    Variation("rules of AGENTS.md and words in one message", {"r.jsonl": lines(
        META, says("user", "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nUse pnpm.\n"
                   "</INSTRUCTIONS>",
                       "<environment_context>\n<cwd>/x</cwd>\n</environment_context>"),
        CU, CA)}, ONE),
    Variation("all turns are taken back", {"r.jsonl": lines(
        META, CU, CA, cx("event_msg", type="thread_rolled_back", num_turns=5), says("user",
            "More?"),
        says("assistant", "B."))}, [[("More?", "B.")]], problem="rewound"),
)  # fmt: skip


def ex(kind: str, **fields: Any) -> dict:
    return {"type": kind, **fields}


def done(kind: str, **fields: Any) -> dict:
    return ex("item.completed", item={"id": "item_0", "type": kind, **fields})


BEGIN = [ex("thread.started", thread_id="x1"), ex("turn.started")]
END = [done("agent_message", text="A."), ex("turn.completed", usage={})]
SAID_A = [[("", "A.")]]

test_output_of_codex_exec = variations(
    Variation("a list of things to do", {"o.jsonl": lines(
        *BEGIN, ex("item.started", item={"id": "item_0", "type": "todo_list", "items": []}),
        done("todo_list", items=[{"text": "Look", "completed": True}]), *END)},
        SAID_A, calls=["[{'text': 'Look', 'completed': True}]"]),
    Variation("a search", {"o.jsonl": lines(*BEGIN, done("web_search", query="x"), *END)}, SAID_A,
              calls=["x"]),
    Variation("a command that never ended", {"o.jsonl": lines(
        *BEGIN, ex("item.started", item={"id": "i1", "type": "command_execution", "command": "ls",
                                         "aggregated_output": "", "status": "in_progress"}))},
        [[("", "")]], calls=["ls"]),
    Variation("a command that ended", {"o.jsonl": lines(
        *BEGIN, ex("item.started", item={"id": "i1", "type": "command_execution", "command": "ls"}),
        ex("item.completed", item={"id": "i1", "type": "command_execution", "command": "ls",
                                   "aggregated_output": "x", "exit_code": 0}), *END)},
        SAID_A, calls=["ls"], results=["x"]),
    Variation("a tool of a server with its result", {"o.jsonl": lines(
        *BEGIN, done("mcp_tool_call", server="s", tool="f", arguments={"x": 1},
                     result={"content": [text("ten")]}, status="completed"), *END)},
        SAID_A, calls=["1"], results=["ten"]),
    Variation("a tool of a server that failed", {"o.jsonl": lines(
        *BEGIN, done("mcp_tool_call", server="s", tool="f", arguments=None,
                     error={"message": "no"}, status="failed"), *END)},
        SAID_A, calls=[""], results=["no"]),
    Variation("changes of files", {"o.jsonl": lines(
        *BEGIN, done("file_change", changes=[{"path": "a.py", "kind": "update"}]), *END)},
        SAID_A, calls=["a.py update"]),
    Variation("a turn that failed", {"o.jsonl": lines(
        *BEGIN, *END[:1], ex("turn.failed", error={"message": "429"}))}, SAID_A),
    Variation("an error", {"o.jsonl": lines(*BEGIN, ex("error", message="stream"), *END)}, SAID_A),
    Variation("items of the first version", {"o.jsonl": lines(
        *BEGIN, ex("item.completed", item={"id": "i", "item_type": "assistant_message",
            "text": "A."}))},
        SAID_A),
    Variation("a subagent's call", {"o.jsonl": lines(
        *BEGIN, done("collab_tool_call", tool="spawn_agent", prompt="Count."), *END)},
        SAID_A, calls=["Count."]),
    Variation("two turns", {"o.jsonl": lines(*BEGIN, *END, BEGIN[1], done("agent_message",
        text="B."))},
              [[("", "A."), ("", "B.")]]),
    Variation("an item of an unknown type", {"o.jsonl": lines(*BEGIN, done("new_thing"), *END)},
              SAID_A, problem="new_thing"),
)  # fmt: skip


# Gemini CLI


def gem(name: str, kind: str, content: Any, **fields: Any) -> dict:
    return {
        "id": name,
        "timestamp": "2026-05-01T10:00:00Z",
        "type": kind,
        "content": content,
        **fields,
    }


GHEAD = {"sessionId": "g1", "projectHash": "h", "startTime": "t", "lastUpdated": "t"}
GU, GA = gem("1", "user", "Hi"), gem("2", "gemini", "A.", model="gemini-x")
GU2, GA2 = gem("3", "user", "More?"), gem("4", "gemini", "B.")


def gjson(*messages: dict, **fields: Any) -> dict:
    return {**GHEAD, "messages": [*messages], **fields}


def gcall(**fields: Any) -> dict:
    return {"id": "c1", "name": "run_shell_command", "args": {"command": "ls"}, "status": "success",
            "timestamp": "t", **fields}  # fmt: skip


test_sessions_of_gemini_cli = variations(
    Variation("a document", {"session-1.json": gjson(GU, GA)}, ONE, format="gemini-cli"),
    Variation("commands of the program", {"session-1.json": gjson(
        gem("7", "user", "/memory show"), gem("8", "user", "?"), GU, GA)}, ONE),
    Variation("a question that begins with a path", {"session-1.json": gjson(
        gem("1", "user", "/src/a.ts is broken"), GA)}, [[("/src/a.ts is broken", "A.")]]),
    Variation("the program goes on", {"session-1.json": gjson(
        GU, gem("2", "gemini", "A"), gem("3", "user", [{"text": "System: Please continue."}]),
        gem("4", "gemini", "B"))}, [[("Hi", "A\n\nB")]]),
    Variation("contents as parts", {"session-1.json": gjson(
        gem("1", "user", [{"text": "Hi"}]), gem("2", "gemini", [{"text": "A."}]))}, ONE),
    Variation("contents as one part", {"session-1.json": gjson(gem("1", "user", {"text": "Hi"}),
        GA)}, ONE),
    Variation("an image", {"session-1.json": gjson(
        gem("1", "user", [{"text": "Hi"}, {"inlineData": {"mimeType": "image/png",
            "data": "AA=="}}]),
        GA)}, ONE, problem="1 of the type 'inlineData'"),
    Variation("a call whose result is a list", {"session-1.json": gjson(
        GU, gem("2", "gemini", "A.", toolCalls=[gcall(result=[{"functionResponse": {
            "id": "c1", "name": "run_shell_command", "response": {"output": "a.py"}}}])]))},
        ONE, calls=["ls"], results=["a.py"]),
    Variation("a call without a result", {"session-1.json": gjson(
        GU, gem("2", "gemini", "A.", toolCalls=[gcall(status="cancelled", result=None)]))},
        ONE, calls=["ls"]),
    Variation("a call whose result is text", {"session-1.json": gjson(
        GU, gem("2", "gemini", "A.", toolCalls=[gcall(result="a.py")]))},
        ONE, calls=["ls"], results=["a.py"]),
    Variation("a call without words", {"session-1.json": gjson(
        GU, gem("2", "gemini", "", toolCalls=[gcall()]), gem("3", "gemini", "A."))},
        ONE, calls=["ls"]),
    Variation("lines for display", {"session-1.json": gjson(
        GU, gem("5", "info", "Update"), GA, gem("6", "warning", "price"), gem("7", "error",
            "429"))}, ONE),
    Variation("thoughts", {"session-1.json": gjson(
        GU, {**GA, "thoughts": [{"subject": "x", "description": "y", "timestamp": "t"}]})}, ONE),
    Variation("content that is null", {"session-1.json": gjson(
        GU, gem("9", "gemini", None), GA)}, ONE),
    Variation("lines", {"s.jsonl": lines(GHEAD, GU, GA, {"$set": {"lastUpdated": "t"}}, GU2, GA2)},
        TWO),
    Variation("a message that grows", {"s.jsonl": lines(GHEAD, GU, gem("2", "gemini", ""), GA)},
        ONE),
    Variation("a rewind", {"s.jsonl": lines(GHEAD, GU, GA, GU2, GA2, {"$rewindTo": "3"},
                                            gem("5", "user", "Or?"), gem("6", "gemini", "C."))},
              [[("Hi", "A."), ("Or?", "C.")]], problem="2 messages are left out"),
    Variation("a rewind, and the same message again", {"s.jsonl": lines(
        GHEAD, GU, GA, GU2, GA2, {"$rewindTo": "3"}, GU2, gem("4", "gemini", "C."))},
        [[("Hi", "A."), ("More?", "C.")]], problem="2 messages are left out"),
    Variation("a session that is compressed", {"s.jsonl": lines(
        GHEAD, GU, GA, {"$set": {"messages": [gem("9", "user", "Summary")]}}, GU2, GA2)}, TWO),
    Variation("a turn that was aborted", {"s.jsonl": lines(
        GHEAD, GU, GA, gem("7", "user", "Or?"), gem("8", "gemini", "C"),
        {"$set": {"messages": [GU, GA]}}, GU2, GA2)}, TWO, problem="2 messages are left out"),
    Variation("messages that are set again as they are", {"s.jsonl": lines(
        GHEAD, GU, GA, {"$set": {"messages": [GU, GA]}}, GU2, GA2)}, TWO),
    Variation("a rewind to a message that is not there", {"s.jsonl": lines(
        GHEAD, GU, GA, {"$rewindTo": "x"}, GU2, GA2)}, [[("More?", "B.")]],
        problem="2 messages are left out"),
    Variation("a copy of a session", {
        "a.jsonl": lines(GHEAD, GU, GA), "b.jsonl": lines({**GHEAD, "sessionId": "g2"}, GU, GA,
                                                          GU2, GA2)}, TWO,
        problem="its only turn is in"),
    Variation("a session of a subagent", {"session-1.json": gjson(GU, GA, kind="subagent")}, ONE,
        subagents=1),
    Variation("sessions that were put into one file",
              {"s.jsonl": lines(GHEAD, GU, GA, {**GHEAD, "sessionId": "g2"}, GU2, GA2)},
              [ONE[0], [("More?", "B.")]]),
    Variation("a last line that was cut",
              {"s.jsonl": lines(GHEAD, GU, GA, json.dumps(GU2)[:30])}, ONE, problem="line 4:"),
    Variation("prompts alone", {"logs.json": [{"sessionId": "g1", "messageId": 0, "type": "user",
                                               "message": "Hi", "timestamp": "t"}]},
              refused="There is no dialog"),
    Variation("a directory that the user named", {"session-1.json": gjson(
        gem("1", "user", [{"text": "Hi @src"}, {"text": "\n--- Content from referenced files ---"},
                          {"text": "\nContent from @src/price.py:\n"}, {"text": "price"}]), GA)},
        [[("Hi @src", "A.")]]),
)  # fmt: skip


# Copilot in VS Code, and Copilot CLI


def asked(words: str, *response: Any, **fields: Any) -> dict:
    return {"requestId": f"r-{words}", "message": {"text": words, "parts": []}, "variableData": {},
            "response": [*response], **fields}  # fmt: skip


def chat(*requests: dict, **fields: Any) -> dict:
    return {"version": 3, "responderUsername": "GitHub Copilot", "initialLocation": "panel",
            "sessionId": "v1", "creationDate": 1, "requests": [*requests], **fields}  # fmt: skip


def shown(command: str = "ls", **fields: Any) -> dict:
    return {"kind": "toolInvocationSerialized", "toolId": "run_in_terminal", "toolCallId": "c1",
            "isComplete": True, "toolSpecificData": {"kind": "terminal",
                                                     "commandLine": {"original": command}},
                        **fields}  # fmt: skip


PART = {"value": "A.", "supportThemeIcons": False}
HI_A = asked("Hi", PART)
MORE_B = asked("More?", {"value": "B."})

test_chats_of_vs_code = variations(
    Variation("an export", {"chat.json": {n: v for n, v in chat(HI_A, MORE_B).items()
                                          if n not in ("sessionId", "creationDate", "version")}},
              TWO, format="copilot"),
    Variation("a message as text", {"c.json": chat({**HI_A, "message": "Hi"})}, ONE),
    Variation("a part as text", {"c.json": chat(asked("Hi", "A."))}, ONE),
    Variation("parts of one text", {"c.json": chat(asked(
        "Hi", {"value": "A"}, {"kind": "codeblockUri", "uri": {}}, {"value": "."}))}, ONE),
    Variation("thinking", {"c.json": chat(asked("Hi", {"kind": "thinking", "value": ["hm."]},
        PART))}, ONE),
    Variation("a command", {"c.json": chat(asked("Hi", shown(), PART))}, ONE, calls=["ls"]),
    Variation("a command that the user changed", {"c.json": chat(asked("Hi", shown(
        toolSpecificData={"kind": "terminal", "commandLine": {"original": "rm x",
            "userEdited": "ls"}}),
        PART))}, ONE, calls=["ls"]),
    Variation("a request that was cancelled", {"c.json": chat(asked("Hi", isCanceled=True), HI_A)},
              [[("Hi\n\nHi", "A.")]]),
    Variation("a response that is null", {"c.json": chat({**HI_A, "response": None}, HI_A)},
              [[("Hi\n\nHi", "A.")]]),
    Variation("an error", {"c.json": chat(asked("Hi", result={"errorDetails": {"message": "429"}}),
        HI_A)},
              [[("Hi\n\nHi", "A.")]]),
    Variation("a restored checkpoint", {"c.json": chat(
        HI_A, asked("Or?", {"value": "C."}, isHidden=True), MORE_B)}, TWO, problem="restored"),
    Variation("a part of an unknown kind", {"c.json": chat(asked("Hi", {"kind": "new"}, PART))},
        ONE,
              problem="unknown kinds"),
    Variation("an edit", {"c.json": chat(asked("Hi", {"kind": "textEditGroup", "edits": [], "uri": {
        "path": "/x/a.py"}}, PART))}, ONE, calls=["/x/a.py"]),
    Variation("a reference", {"c.json": chat(asked("Hi", {"value": "See "}, {
        "kind": "inlineReference", "inlineReference": {"uri": {"path": "/x/a.py"}, "range": {}}}))},
        [[("Hi", "See a.py")]]),
    Variation("an empty session beside another", {"a.json": chat(), "b.json": chat(HI_A)}, ONE,
              problem="the assistant says nothing"),
    Variation("a log of changes", {"c.jsonl": lines(
        {"kind": 0, "v": chat()}, {"kind": 2, "k": ["requests"], "v": [asked("Hi")]},
        {"kind": 2, "k": ["requests", 0, "response"], "v": [PART]},
        {"kind": 1, "k": ["customTitle"], "v": "x"}, {"kind": 2, "k": ["requests"],
            "v": [MORE_B]})},
        TWO),
    Variation("a log of changes that cuts a list", {"c.jsonl": lines(
        {"kind": 0, "v": chat(HI_A, asked("Or?", {"value": "C."}))},
        {"kind": 2, "k": ["requests"], "i": 1, "v": [MORE_B]})}, TWO),
    Variation("a change of nothing", {"c.jsonl": lines(
        {"kind": 0, "v": chat(HI_A)}, {"kind": 2, "k": [], "i": 1, "v": []})}, ONE,
        problem="the change at [] fits no earlier state"),
    Variation("a log of changes whose last line was cut", {"c.jsonl": lines(
        {"kind": 0, "v": chat(HI_A)}, '{"kind": 2, "k": ["requ')}, ONE, problem="line 2:"),
    Variation("a call of a model that was recorded", {"c.json": chat(asked(
        "Hi", shown(), PART, result={"metadata": {"toolCallRounds": [
            {"response": "", "toolCalls": [{"id": "c9", "name": "run_in_terminal",
                                            "arguments": '{"command": "pwd"}'}]}],
            "toolCallResults": {"c9": {"content": [{"value": "/x"}]}}}}))},
        ONE, calls=["pwd"], results=["/x"]),
)  # fmt: skip


def ev(kind: str, **data: Any) -> dict:
    ev.count += 1  # type: ignore[attr-defined]
    name = f"e{ev.count}"  # type: ignore[attr-defined]
    return {"type": kind, "data": data, "id": name, "timestamp": "t", "parentId": None}


ev.count = 0  # type: ignore[attr-defined]
CSTART = ev("session.start", sessionId="p1", version=1)
CU1, CA1 = ev("user.message", content="Hi"), ev("assistant.message", content="A.", messageId="m1")
CU2, CA2 = (
    ev("user.message", content="More?"),
    ev("assistant.message", content="B.", messageId="m2"),
)


def cli(*events: dict) -> dict:
    return {"events.jsonl": lines(CSTART, *events)}


TRUNCATED = {"messagesRemovedDuringTruncation": 3, "performedBy": "BasicTruncator", "tokenLimit": 9}

test_sessions_of_copilot_cli = variations(
    Variation("a session", cli(CU1, CA1, CU2, CA2), TWO, format="copilot-cli"),
    Variation("a truncation", cli(CU1, CA1, ev("session.truncation", **TRUNCATED), CU2, CA2), TWO,
              problem="3 messages"),
    Variation("a truncation without a count", cli(
        CU1, CA1, ev("session.truncation", reason="context_limit"), CU2, CA2), TWO,
        problem="removed messages from"),
    Variation("autopilot goes on", cli(
        CU1, CA1, ev("user.message", content="", transformedContent="<x>Go on</x>"), CA2),
        [[("Hi", "A.\n\nB.")]], seen=["<x>Go on</x>"]),
    Variation("events for display", cli(
        CU1, ev("assistant.turn_start", turnId="0"), ev("assistant.reasoning", content="price"),
        ev("session.info", message="price"), CA1, ev("assistant.turn_end", turnId="0"),
        ev("session.idle"), ev("session.shutdown")), ONE, seen=[]),
    Variation("a call and its result", cli(
        CU1, ev("assistant.message", content="", toolRequests=[
            {"toolCallId": "c1", "name": "bash", "arguments": {"command": "ls"}}]),
        ev("tool.execution_start", toolCallId="c1", toolName="bash", arguments={"command": "ls"}),
        ev("tool.execution_complete", toolCallId="c1", success=True, result={"content": "x"}), CA1),
        ONE, calls=["ls"], results=["x"]),
    Variation("a call that failed", cli(
        CU1, ev("tool.execution_start", toolCallId="c1", toolName="bash",
            arguments={"command": "ls"}),
        ev("tool.execution_complete", toolCallId="c1", success=False, error={"message": "no"}),
            CA1),
        ONE, calls=["ls"], results=["no"]),
    Variation("a session that is resumed", cli(CU1, CA1, ev("session.resume", eventCount=3), CU2,
        CA2), TWO),
    Variation("a rewind", cli(CU1, CA1, CU2, CA2, ev("session.snapshot_rewind",
        upToEventId=CU2["id"],
                                                     eventsRemoved=2),
                              ev("user.message", content="Or?"), ev("assistant.message",
                        content="C.")),
              [[("Hi", "A."), ("Or?", "C.")]], problem="rewound"),
    Variation("a compaction", cli(CU1, CA1, ev("session.compaction_start"), ev(
        "session.compaction_complete", success=True, summaryContent="Summary."), CU2, CA2), TWO),
    Variation("an interruption", cli(CU1, CA1, ev("abort", reason="user initiated"), CU2, CA2),
        TWO),
    Variation("a subagent", cli(CU1, ev("user.message", content="Count.", parentToolCallId="c1"),
        ev(
        "assistant.message", content="One.", parentToolCallId="c1"), CA1),
        [ONE[0], [("Count.", "One.")]], subagents=1),
    Variation("a user's attachments", cli(ev("user.message", content="Hi", attachments=[
        {"type": "file", "path": "/x"}], transformedContent="<x>price</x> Hi"), CA1), ONE),
    Variation("a message of autopilot", cli(CU1, CA1, ev("user.message", content="Go on.",
        source="autopilot"),
                                            CA2), [[("Hi", "A.\n\nB.")]], seen=["Go on."]),
    Variation("an unknown event", cli(CU1, CA1, ev("new.kind")), ONE, problem="new.kind"),
    Variation("content that is null", cli(CU1, ev("assistant.message", content=None), CA1), ONE),
    Variation("a command of the user's", cli(
        ev("tool.user_requested", toolCallId="c1", toolName="bash", arguments={"command": "ls"}),
        ev("tool.execution_start", toolCallId="c1", toolName="bash", arguments={"command": "ls"}),
        ev("tool.execution_complete", toolCallId="c1", success=True, isUserRequested=True,
           result={"content": "x"}), CU1, CA1), ONE, calls=[]),
    Variation("no start", {"events.jsonl": lines(CU1, CA1)}, ONE),
)  # fmt: skip


# Cline and Roo Code


def task(*messages: dict) -> dict:
    return {"api_conversation_history.json": [*messages]}


def cu(*texts: Any, **fields: Any) -> dict:
    blocks = [text(part) if isinstance(part, str) else part for part in texts]
    return {"role": "user", "content": blocks, "ts": 1, **fields}


def ca(*parts: Any, **fields: Any) -> dict:
    blocks = [text(part) if isinstance(part, str) else part for part in parts]
    return {"role": "assistant", "content": blocks, "ts": 2, **fields}


ENV = "<environment_details>\nprice.py\n</environment_details>"
TASK = cu("<task>\nHi\n</task>", ENV)

test_tasks_of_cline = variations(
    Variation("a task", task(TASK, ca("A.")), ONE, format="cline"),
    Variation("a completion", task(TASK, ca("<attempt_completion>\n<result>\nA.\n</result>\n"
                                            "</attempt_completion>")), ONE),
    Variation("thinking in the text", task(TASK, ca("<thinking>hm.</thinking>\nA.")), ONE),
    Variation("a command in the text", task(
        TASK, ca("<execute_command>\n<command>ls</command>\n</execute_command>"),
        cu("[execute_command for 'ls'] Result:", "a.py", ENV), ca("A.")),
        ONE, calls=["ls"], results=["a.py"]),
    Variation("a result in one text", task(
        TASK, ca("<execute_command>\n<command>ls</command>\n</execute_command>"),
        cu("[execute_command for 'ls'] Result:\na.py"), ca("A.")), ONE, calls=["ls"]),
    Variation("feedback", task(TASK, ca("A."), cu("<feedback>\nMore?\n</feedback>", ENV), ca("B.")),
        TWO),
    Variation("an answer", task(
        TASK, ca("A."), cu("[ask_followup_question for 'x'] Result:", "<answer>\nMore?\n</answer>"),
        ca("B.")), TWO),
    Variation("a native call", task(
        TASK, ca({"type": "tool_use", "id": "c1", "name": "execute_command",
            "input": {"command": "ls"}}),
        cu({"type": "tool_result", "tool_use_id": "c1", "content": [text("a.py")]}, ENV), ca("A.")),
        ONE, calls=["ls"], results=["a.py"]),
    Variation("a task that is resumed", task(
        TASK, ca("A."), cu(
            "[TASK RESUMPTION] This task was interrupted.\n\nNew message to respond to"
                           " with plan_mode_respond tool: \n<user_message>\nMore?\n</user_message>",
                        ENV),
        ca("B.")), TWO),
    Variation("content as text", task({"role": "user", "content": f"<task>\nHi\n</task>\n{ENV}"},
                                      {"role": "assistant", "content": "A."}), ONE),
    Variation("a notice of what was removed", task(
        TASK, ca("[NOTE] Some previous conversation history with the user has been removed to"
                 " maintain optimal context window length."), cu("<feedback>More?</feedback>"),
        ca("B.")), [[("Hi\n\nMore?", "B.")]]),
    Variation("reasoning between the messages", task(
        TASK, {"type": "reasoning", "text": "hm.", "ts": 3}, ca("A.")), ONE),
    Variation("no tool was used", task(
        TASK, ca("A."), cu("[ERROR] You did not use a tool in your previous response!", ENV),
            ca("B.")),
        [[("Hi", "A.\n\nB.")]]),
    Variation("a summary", task(TASK, ca("A."), ca("Summary.", isSummary=True), cu(
        "<feedback>More?</feedback>"), ca("B.")), TWO),
    Variation("what is shown", {"ui_messages.json": [
        {"ts": 1, "type": "say", "say": "text", "text": "Hi"}]},
            refused="api_conversation_history.json"),
)  # fmt: skip


# Cursor


def database(**rows: Any) -> bytes:
    """A database of Cursor's."""
    import tempfile

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
    import tempfile

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


B1, B2 = {"type": 1, "text": "Hi", "bubbleId": "b1"}, {"type": 2, "text": "A.", "bubbleId": "b2"}
KEYS = {"bubbleId__k__b1": B1, "bubbleId__k__b2": B2}


def cur(role: str, *blocks: Any) -> dict:
    content_blocks = [text(block) if isinstance(block, str) else block for block in blocks]
    return {"role": role, "message": {"content": content_blocks}}


RULES = "<rules>\nBe kind.\n</rules>"
AGENT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [text(f"{RULES}\n<user_query>\nHi\n</user_query>")]},
    {"role": "assistant", "content": [{"type": "reasoning", "text": "hm."}, {
        "type": "tool-call", "toolCallId": "t1", "toolName": "Shell", "args": {"command": "ls"}}]},
    {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "t1", "toolName": "Shell",
                                  "result": "a.py"}]},
    {"role": "assistant", "content": [text("A.")]},
]  # fmt: skip


GO, GONE = {"type": 1, "text": "Go", "bubbleId": "b3"}, {"type": 2, "text": "Gone."}
PUSHED = {"name": "run_terminal_cmd", "rawArgs": '{"command": "git push"}', "status": "completed"}
PUSH_ROWS = {**KEYS, "bubbleId__k__b3": GO, "bubbleId__k__b4": {**GONE, "toolFormerData": PUSHED}}
ALL = ("b1", "b2", "b3", "b4")
PUSHES = [[("Hi", "A."), ("Go", "Gone.")]]


def said(role: str, words: str) -> dict:
    return {"role": role, "content": [text(words)]}


def ran(command: str) -> dict:
    return {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "t1",
        "toolName": "Shell", "args": {"command": command}}]}  # fmt: skip


def beside(*messages: dict) -> dict[str, bytes]:
    """A `state.vscdb` that shows two turns, beside a context with these messages."""
    return {"state.vscdb": composer(*ALL, **PUSH_ROWS, **agent_rows([AGENT[0], *messages]))}


SAID = (said("user", "Hi"), said("assistant", "A."), said("user", "Go"))


def with_hash(first: int) -> dict:
    """A message whose hash begins with this byte."""
    for number in range(10_000):
        message = {"role": "assistant", "content": [text("A.")], "id": str(number)}
        if hashlib.sha256(json.dumps(message).encode()).digest()[0] == first:
            return message
    raise AssertionError


BRACE = [AGENT[0], said("user", "Hi"), with_hash(ord("{"))]


def state_of(*contents: bytes) -> str:
    fields = b"".join(field_of_state(1, content) for content in contents)
    return "~" + base64.b64encode(fields).decode()


def with_number(rows: dict[str, Any]) -> dict[str, Any]:
    """The rows, with a number in place of the last blob."""
    return {**rows, [*rows][-1]: 5}


def without_last(rows: dict[str, Any]) -> dict[str, Any]:
    return dict(list(rows.items())[:-1])


CS = {"session_id": "c1"}


def cs(kind: str, words: str, **fields: Any) -> dict:
    return {"type": kind, "message": {"role": kind, "content": [text(words)]}, **CS, **fields}


def ctool(subtype: str, call: str = "t1", **result: Any) -> dict:
    tool_call = {"shellToolCall": {"args": {"command": "ls"}, **result}}
    return {"type": "tool_call", "subtype": subtype, "call_id": call, "tool_call": tool_call, **CS}


CEND = {"type": "result", "subtype": "success", "result": "A.", **CS}
CINIT = {
    "type": "system",
    "subtype": "init",
    "model": "x",
    "cwd": "/x",
    "apiKeySource": "env",
    **CS,
}

test_chats_of_cursor = variations(
    Variation("a database", {"state.vscdb": database(
        composerData__k={"composerId": "k", "fullConversationHeadersOnly": heads("b1", "b2")},
            **KEYS)},
        ONE, format="cursor"),
    Variation("a conversation within its composer", {"state.vscdb": database(
        composerData__k={"composerId": "k", "conversation": [B1, B2]})}, ONE),
    Variation("a message that is not there", {"state.vscdb": database(
        composerData__k={"fullConversationHeadersOnly": heads("b1", "b9", "b2")}, **KEYS)},
        ONE, problem="does not have"),
    Variation("a message of no dialog", {"state.vscdb": database(
        composerData__k={"fullConversationHeadersOnly": heads("b1", "b2")}, **KEYS,
        bubbleId__k__b3={"type": 2, "text": "C."})}, ONE, problem="abandoned"),
    Variation("a call", {"state.vscdb": database(
        composerData__k={"fullConversationHeadersOnly": heads("b1", "b3", "b2")}, **KEYS,
        bubbleId__k__b3={"type": 2, "text": "", "toolFormerData": {
            "name": "run_terminal_cmd", "toolCallId": "t1", "rawArgs": '{"command": "ls"}',
            "result": "a.py", "status": "completed"}})}, ONE, calls=["ls"], results=["a.py"]),
    Variation("thinking", {"state.vscdb": database(
        composerData__k={"fullConversationHeadersOnly": heads("b1", "b3", "b2")}, **KEYS,
        bubbleId__k__b3={"type": 2, "text": "", "thinking": {"text": "hm."}})}, ONE),
    Variation("a composer without messages beside another", {"state.vscdb": database(
        composerData__j={"composerId": "j", "fullConversationHeadersOnly": []},
        composerData__k={"fullConversationHeadersOnly": heads("b1", "b2")}, **KEYS)}, ONE),
    Variation("an image beside the text", {"state.vscdb": database(
        composerData__k={"fullConversationHeadersOnly": heads("b1", "b2")}, bubbleId__k__b2=B2,
        bubbleId__k__b1={**B1, "images": [{"uuid": "i", "data": "AA=="}]})}, ONE,
        problem="1 of the type 'image'"),
    Variation("a text that is null", {"state.vscdb": database(
        composerData__k={"fullConversationHeadersOnly": heads("b1", "b3", "b2")}, **KEYS,
        bubbleId__k__b3={"type": 2, "text": None})}, ONE),
    Variation("a context with all messages", {"state.vscdb": composer(
        "b1", "b2", **KEYS, **agent_rows(AGENT))}, ONE, format="cursor", system="Be brief.",
        seen=[RULES], calls=["ls"], results=["a.py"]),
    Variation("a context without messages that are shown", {"state.vscdb": composer(
        **agent_rows(AGENT, turns=1))}, ONE, system="Be brief.", calls=["ls"]),
    Variation("a context after a summary", {"state.vscdb": composer(
        "b1", "b2", **KEYS, **agent_rows([AGENT[0], {"role": "user", "content": "Go on."}]))},
        ONE, problem="left out the agent's context"),
    Variation("a context that lacks a message, beside the messages that are shown", {
        "state.vscdb": composer("b1", "b2", **KEYS, **without_last(agent_rows(AGENT)))},
        ONE, problem="left out the agent's context"),
    Variation("a context that lacks a message", {"state.vscdb": composer(
        **without_last(agent_rows(AGENT)))}, [[("Hi", "")]], problem="1 message that the database"),
    Variation("a context that is encrypted", {"state.vscdb": composer(
        "b1", "b2", **KEYS, state="~!!")}, ONE, problem="(conversationState) is in no known form"),
    Variation("a state that ends early", {"state.vscdb": composer(
        "b1", "b2", **KEYS, state="~CiA=")}, ONE, problem="conversationState"),
    Variation("an empty state", {"state.vscdb": composer("b1", "b2", **KEYS, state="~")}, ONE),
    Variation("a context that no dialog refers to", {"state.vscdb": composer(
        "b1", "b2", **KEYS, **{k: v for k, v in agent_rows(AGENT).items() if k != "state"})},
        ONE, problem="left out 5 messages of an agent (agentKv:blob)"),
    Variation("a database of the agent", {"store.db": agent_database(AGENT)}, ONE,
        format="cursor", system="Be brief.", seen=[RULES], calls=["ls"], results=["a.py"]),
    Variation("a database of an agent that said nothing", {"store.db": agent_database(
        AGENT, latestRootBlobId="")}, refused="is empty or missing"),
    Variation("a database of an agent with half a character for a hash", {
        "store.db": agent_database(AGENT, latestRootBlobId="\ud800")},
        refused="is empty or missing"),
    Variation("a transcript of the agent", {"t.jsonl": lines(
        cur("user", "<user_query>\nHi\n</user_query>"), cur("assistant", "A."))}, ONE,
            format="cursor"),
    Variation("a transcript with surroundings", {"t.jsonl": lines(
        cur("user", "<timestamp>t</timestamp>\n<user_query>\nHi\n</user_query>"),
        cur("assistant", {"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}),
        cur("assistant", "A."))}, ONE, calls=["ls"]),
    Variation("the agent's stream", {"o.jsonl": lines(CINIT, cs("user", "Hi"), cs("assistant",
        "A."), CEND)},
              ONE, format="cursor"),
    Variation("the agent's stream with a call", {"o.jsonl": lines(
        CINIT, cs("user", "Hi"), ctool("started"), ctool("completed",
            result={"success": {"stdout": "x"}}),
        cs("assistant", "A."), CEND)}, ONE, calls=["ls"], results=['{"success": {"stdout": "x"}}']),
    Variation("the agent's stream with a call that did not end", {"o.jsonl": lines(
        CINIT, cs("user", "Hi"), ctool("started"))}, [[("Hi", "")]], calls=["ls"]),
    Variation("the agent's stream in parts", {"o.jsonl": lines(
        CINIT, cs("user", "Hi"), cs("assistant", "A", timestamp_ms=1), cs("assistant", ".",
            timestamp_ms=2),
        cs("assistant", "A."), CEND)}, ONE),
    Variation("the agent's thinking", {"o.jsonl": lines(
        CINIT, cs("user", "Hi"), {"type": "thinking", "subtype": "delta", "text": "price", **CS},
        {"type": "thinking", "subtype": "completed", **CS}, cs("assistant", "A."), CEND)}, ONE),
    Variation("an export with line breaks of Windows", {"cursor_x.md": (
        "# T\r\n_Exported on 1/1/2026 at 1:00:00 GMT+2 from Cursor (2.0)_\r\n\r\n---\r\n\r\n"
        "**User**\r\n"
        "\r\nHi\r\n\r\n---\r\n\r\n**Cursor**\r\n\r\nA.\r\n")}, ONE),
    Variation("an export with a rule in a reply", {"cursor_x.md": (
        "# T\n_Exported on 1/1/2026 at 1:00:00 GMT+2 from Cursor (2.0)_\n\n---\n\n**User**\n\n"
        "Hi\n\n"
        "---\n\n**Cursor**\n\nA.\n\n---\n\nB.\n")}, [[("Hi", "A.\n\n---\n\nB.")]]),
    Variation("a chat of the first version", {"x.json": {"tabs": [{"tabId": "1", "bubbles": [
        {"type": "user", "text": "Hi"}, {"type": "ai", "rawText": "A."}]}]}}, ONE),
    Variation("a context with the same texts and calls", beside(*SAID, ran("git push"),
        said("assistant", "Gone.")), PUSHES, system="Be brief.", calls=["git push"]),
    Variation("a context that divides a reply", beside(said("user", "Hi"), said("assistant", "A"),
        said("assistant", "."), SAID[2], ran("git push"), said("assistant", "Gone.")),
        [[("Hi", "A\n\n."), ("Go", "Gone.")]], system="Be brief."),
    Variation("a context without the last reply", beside(*SAID), PUSHES,
        calls=["git push"], problem="left out the agent's context"),
    Variation("a context without a reply in the middle", beside(SAID[0], SAID[2], ran("git push"),
        said("assistant", "Gone.")), PUSHES, calls=["git push"],
        problem="left out the agent's context"),
    Variation("a context with another reply", beside(*SAID, ran("git push"),
        said("assistant", "Done.")), PUSHES, problem="left out the agent's context"),
    Variation("a context without the last call", beside(*SAID, said("assistant", "Gone.")),
        PUSHES, calls=["git push"], problem="left out the agent's context"),
    Variation("a context with another command", beside(*SAID, ran("git diff"),
        said("assistant", "Gone.")), PUSHES, calls=["git push"],
        problem="left out the agent's context"),
    Variation("a context with the question only", {"state.vscdb": composer(
        "b1", "b2", **KEYS, **agent_rows(AGENT[:2]))}, ONE, problem="left out the agent's context"),
    Variation("a hash that begins like JSON", {"state.vscdb": composer(**agent_rows(BRACE))},
        ONE, system="Be brief."),
    Variation("a hash that begins like JSON, without its message", {"state.vscdb": composer(
        **without_last(agent_rows(BRACE)))},
        refused="1 message that the database does not have"),
    Variation("a message in the state itself, as long as a hash", {"state.vscdb": composer(
        state=state_of(b'{"role":"user","content":"Hi"}  ', b'{"role":"ai","content":"A."}'))},
        ONE),
    Variation("a number in place of a message", {"state.vscdb": composer(
        **with_number(agent_rows(AGENT)))}, [[("Hi", "")]],
        problem="1 message that the database does not have"),
    Variation("a number in place of a message that is shown", {"state.vscdb": composer(
        "b1", "b2", **KEYS, bubbleId__k__b3=5)}, ONE, problem="bubbleId:k:b3 is not JSON"),
    Variation("a number in place of a dialog", {"state.vscdb": database(
        composerData__j=5, composerData__k={"fullConversationHeadersOnly": heads("b1", "b2")},
        **KEYS)}, ONE, problem="composer j is not JSON"),
    Variation("chats beside another context", {"x.json": {"context": {}, "tabs": [{"bubbles": [
        {"type": "user", "text": "Hi"}, {"type": "ai", "rawText": "A."}]}]}}, ONE),
    Variation("a composer beside another context", {"x.json": {
        "composerData": {"conversation": [B1, B2]}, "context": {"selections": []}}}, ONE),
    Variation("a composer beside a context of other types", {"x.json": {
        "composerData": {"conversation": [B1, B2]}, "context": {
            "messages": 5, "missing": 0, "unread": 0, "turns": 0}}}, ONE),
    Variation("a context of other types", {"x.json": {"context": {
        "messages": [], "missing": None, "unread": 0, "turns": 0}}}, refused="x.json"),
    Variation("a dialog of another type", {"state.vscdb": database(
        composerData__j="text", composerData__k={
            "fullConversationHeadersOnly": heads("b1", "b2")}, **KEYS)}, ONE,
        problem="is in no known format"),
)  # fmt: skip


def test_a_dialog_of_cursor_of_another_type_is_named(tmp_path):
    (tmp_path / "x.json").write_text('{"composerData": 5}')
    with pytest.raises(UsageError, match="its dialog is 5"):
        read_logs([tmp_path / "x.json"], "cursor")


# opencode


def om(name: str, role: str, *parts: dict, created: int = 0, **info: Any) -> dict:
    return {"info": {"id": name, "sessionID": "ses_1", "role": role, "time": {"created": created},
                     **info}, "parts": [*parts]}  # fmt: skip


def ot(words: str, **fields: Any) -> dict:
    return {"id": f"prt_{words}", "type": "text", "text": words, **fields}


def oc(command: str = "ls", status: str = "completed", **state: Any) -> dict:
    return {"id": "prt_c", "type": "tool", "callID": "c1", "tool": "bash",
            "state": {"status": status, "input": {"command": command}, **state}}  # fmt: skip


def session(*messages: dict, **info: Any) -> dict:
    return {"o.json": {"info": {"id": "ses_1", **info}, "messages": [*messages]}}


OU, OA = om("msg_1", "user", ot("Hi"), created=1), om("msg_2", "assistant", ot("A."), created=2)
OU2, OA2 = (
    om("msg_3", "user", ot("More?"), created=3),
    om("msg_4", "assistant", ot("B."), created=4),
)
COMPACTED = om("msg_5", "user", {"id": "prt_5", "type": "compaction", "auto": True}, created=5)
SUMMARY = om("msg_6", "assistant", ot("Summary."), created=6, summary=True, finish="stop")

test_sessions_of_opencode = variations(
    Variation("a session", session(OU, OA, OU2, OA2), TWO, format="opencode"),
    Variation("a list of messages", {"o.json": [OU, OA]}, ONE),
    Variation("a command that the user ran", session(
        om("msg_8", "user", ot("The following tool was executed by the user", synthetic=True)),
        om("msg_9", "assistant", oc("git push", output="ok"), parentID="msg_8"), OU, OA), ONE,
        calls=[], seen=["The following tool was executed by the user", "git push", "ok"]),
    Variation("parts for display", session(OU, om("msg_2", "assistant", {"id": "p",
        "type": "step-start"},
                                                  {"id": "q", "type": "reasoning", "text": "hm."},
                        ot("A."),
                                                  {"id": "r", "type": "patch", "files": []})), ONE),
    Variation("a call", session(OU, om("msg_2", "assistant", oc(output="x"), ot("A."))), ONE,
              calls=["ls"], results=["x"]),
    Variation("a call that is running", session(OU, om("msg_2", "assistant", oc(status="running"))),
              [[("Hi", "")]], calls=["ls"]),
    Variation("a call that failed", session(OU, om("msg_2", "assistant", oc(status="error",
        error="no"),
                                                   ot("A."))), ONE, results=["no"]),
    Variation("text that is synthetic", session(om("msg_1", "user", ot("Hi"), ot("price",
        synthetic=True)),
                                                OA), ONE, seen=["price"]),
    Variation("text that is ignored", session(om("msg_1", "user", ot("Hi"), ot("price",
        ignored=True)), OA),
              ONE),
    Variation("a revert", session(OU, OA, OU2, OA2, revert={"messageID": "msg_3"}), ONE,
              problem="took back"),
    Variation("a revert of a part", session(OU, om("msg_2", "assistant", ot("A."), ot("B.")),
                                            revert={"messageID": "msg_2", "partID": "prt_B."}), ONE,
              problem="took back"),
    Variation("an interruption", session(OU, om("msg_2", "assistant", ot("A."), error={
        "name": "MessageAbortedError", "data": {}}), OU2, OA2), TWO),
    Variation("an error", session(OU, om("msg_x", "assistant", error={
        "name": "APIError", "data": {"message": "429"}}), OA), ONE),
    Variation("a compaction", session(OU, OA, COMPACTED, SUMMARY, om(
        "msg_7", "user", ot("Continue if you have next steps", synthetic=True)), om(
        "msg_8", "assistant", ot("B."))), [[("Hi", "A.\n\nB.")]]),
    Variation("a message that is sent again after a compaction", session(
        OU, OA, OU2, om("msg_4", "assistant", error={"name": "ContextOverflowError", "data": {}}),
        COMPACTED, SUMMARY, om("msg_7", "user", ot("More?")), om("msg_8", "assistant", ot("B."))),
        TWO, problem="sent again"),
    Variation("a subagent", session(OU, OA, parentID="ses_0"), ONE, subagents=1),
    Variation("a reply that was cut", session(OU, om("msg_2", "assistant", ot("A."),
        finish="length")), ONE,
              is_cut=True),
    Variation("a part of an unknown type", session(OU, om("msg_2", "assistant", {"type": "new"},
        ot("A."))),
              ONE, problem="unknown type"),
    Variation("a file", session(om("msg_1", "user", ot("Hi"), {"type": "file",
        "mime": "text/plain"}), OA), ONE),
    Variation("a subtask", session(om("msg_1", "user", ot("Hi"), {"type": "subtask",
        "prompt": "Count."}),
                                   OA), ONE, seen=["Count."]),
)  # fmt: skip


# aider

AIDER = "# aider chat started at 2026-05-01 10:00:00\n\n> Aider v0.86.1  \n\n"

test_histories_of_aider = variations(
    Variation("a session", {
        ".aider.chat.history.md": AIDER + "#### Hi  \n\nA.\n\n> Tokens: 1k sent  \n"}, ONE),
    Variation("a message of several lines", {
        ".aider.chat.history.md": AIDER + "#### H  \n#### i  \n\nA.\n"}, [[("H\ni", "A.")]]),
    Variation("a heading in a reply", {
        ".aider.chat.history.md": AIDER + "#### Hi  \n\n## Price\n\nA.\n"}, [[("Hi",
            "## Price\n\nA.")]]),
    Variation("commands of aider's", {
        ".aider.chat.history.md": AIDER + "#### /add price.py  \n\n> Added  \n\n#### Hi  \n\nA.\n"},
            ONE),
    Variation("a question", {".aider.chat.history.md": AIDER + "#### /ask Hi  \n\nA.\n"}, ONE),
    Variation("line breaks of Windows", {
        ".aider.chat.history.md": (AIDER + "#### Hi  \n\nA.\n").replace("\n", "\r\n")}, ONE),
    Variation("two sessions", {".aider.chat.history.md": (
        f"{AIDER}#### Hi  \n\nA.\n\n{AIDER}#### More?  \n\nB.\n")}, [ONE[0], [("More?", "B.")]]),
    Variation("an interruption", {".aider.chat.history.md": (
        f"{AIDER}#### Hi  \n\nA.\n\n> ^C KeyboardInterrupt  \n\n#### More?  \n\nB.\n")}, TWO),
    Variation("code with marks of aider's", {".aider.chat.history.md": (
        f"{AIDER}#### Hi  \n\n```\n> x\n```\n")}, [[("Hi", "```\n> x\n```")]]),
    Variation("words behind a command, which aider repeats", {".aider.chat.history.md": (
        f"{AIDER}#### /code Hi  \n\n#### Hi  \n\nA.\n")}, ONE),
    Variation("a plan that the architect hands on", {".aider.chat.history.md": (
        f"{AIDER}#### Hi  \n\nDo x:\n\n- y\n\n> Tokens: 1k sent  \n\n#### Do x:  \n####   \n"
        "#### - y  \n\nA.\n\n> Applied edit to a.py  \n")}, [[("Hi", "Do x:\n\n- y\n\nA.")]],
            calls=["a.py"]),
    Variation("a plan with reasoning before it", {".aider.chat.history.md": (
        f"{AIDER}#### Hi  \n\n<thinking-content-7b>\nB\n</thinking-content-7b>\n\nDo x.\n\n"
        "#### Do x.  \n\nA.\n")}, [[("Hi", "Do x.\n\nA.")]]),
    Variation("a question that aider asked", {".aider.chat.history.md": (
        f"{AIDER}#### Hi  \n\nA.\n\n> a.py  \n\n#### Add file to the chat? (Y)es/(N)o/(A)ll [Yes]: "
        "all  \n\nB.\n")}, [[("Hi", "A.\n\nB.")]]),
    Variation("a message that was sent again after an interruption", {".aider.chat.history.md": (
        f"{AIDER}#### Hi  \n\n> ^C KeyboardInterrupt  \n\n#### Hi  \n\nA.\n")},
            [[("Hi\n\nHi", "A.")]]),
    Variation("words behind a command, sent again after an interruption", {
        ".aider.chat.history.md": (f"{AIDER}#### /code Hi  \n\n#### Hi  \n\n"
            "> ^C KeyboardInterrupt  \n\n#### Hi  \n\nA.\n")}, [[("Hi\n\nHi", "A.")]]),
    Variation("a message about a question of aider's", {".aider.chat.history.md": (
        f"{AIDER}#### What does (Y)es/(N)o [Yes]: mean?  \n\nA.\n")},
            [[("What does (Y)es/(N)o [Yes]: mean?", "A.")]]),
    Variation("a heading of the fourth level in a reply", {".aider.chat.history.md": (
        f"{AIDER}#### Hi  \n\nA.\n\n#### With npm:\n\nB.\n")},
            [[("Hi", "A.\n\n#### With npm:\n\nB.")]]),
    Variation("a quotation, with line breaks of Windows", {".aider.chat.history.md": (
        f"{AIDER}#### Hi  \n\nA.\n> B.\n\n> Tokens: 1k sent  \n").replace("\n", "\r\n")},
            [[("Hi", "A.\n> B.")]]),
    Variation("a session without a message", {".aider.chat.history.md": (
        f"{AIDER}{AIDER}#### Hi  \n\nA.\n")}, ONE, problem="the assistant says nothing"),
)  # fmt: skip


# what left the context


def in_context(folder: Path, name: str, content: Any) -> list[str]:
    """The texts in the context before the last reply."""
    path = folder / name
    path.write_text(file_text(content))
    (dialog,) = read_logs([path]).dialogs
    events = dialog.transcript.path
    last = max(n for n, event in enumerate(events) if event.is_by_assistant)
    return [event.text for event in Contexts(events).before(last).events if event.text]


def cleared(uuid: str, parent: str, *tools: str, attachments: Sequence[str] = ()) -> dict:
    metadata = {"trigger": "auto", "preTokens": 9, "tokensSaved": 5, "compactedToolIds": [*tools],
                "clearedAttachmentUUIDs": [*attachments]}  # fmt: skip
    return sysline(uuid, parent, "microcompact_boundary", microcompactMetadata=metadata)


def kept(head: str, tail: str) -> dict:
    segment = {"headUuid": head, "anchorUuid": "c1", "tailUuid": tail}
    return {"compactMetadata": {"trigger": "auto", "preTokens": 9, "preservedSegment": segment}}


READ = [U1, a("a0", "u1", use("t1"), use("t2", "pwd")), res("r1", "a0", "t1", "price"),
        res("r2", "r1", "t2", "folder")]  # fmt: skip
END_OF_CC = [u("u9", "r2", "More?"), a("a9", "u9", "B.")]


def with_edits(*counts: int) -> dict:
    """The last reply, before which the server cleared so many results."""
    edits = [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": n} for n in counts]
    reply = a("a9", "u9", "B.")
    return {**reply, "message": {**reply["message"],
                                 "context_management": {"applied_edits": edits}}}  # fmt: skip


ATTACHED = {"type": "attachment", "uuid": "at1", "parentUuid": "r2", "sessionId": "s1",
            "attachment": {"type": "file", "content": {"file": {"content": "notes"}}}}  # fmt: skip
COMPACTION = [sysline("b1", None, "compact_boundary", logicalParentUuid="r2", **kept("r1", "r2")),
              u("c1", "b1", "Summary.", isCompactSummary=True)]  # fmt: skip
AFTER = [u("u9", "c1", "More?"), a("a9", "u9", "B.")]
SNAKE = {"pre_tokens": 9, "preserved_segment": {"head_uuid": "r1", "anchor_uuid": "c1",
                                                "tail_uuid": "r2"}}  # fmt: skip


@pytest.mark.parametrize(
    ("events", "texts"),
    [
        ([*READ, *END_OF_CC], ["Hi", "price", "folder", "More?"]),
        ([*READ, END_OF_CC[0], with_edits(1)], ["Hi", "folder", "More?"]),
        ([*READ, END_OF_CC[0], with_edits()], ["Hi", "price", "folder", "More?"]),
        ([*READ, cleared("m1", "r2", "t1"), {**END_OF_CC[0], "parentUuid": "m1"}, END_OF_CC[1]],
         ["Hi", "folder", "More?"]),
        ([*READ, cleared("m1", "r2", "t1"), cleared("m2", "m1", "t2"),
          {**END_OF_CC[0], "parentUuid": "m2"}, END_OF_CC[1]], ["Hi", "More?"]),
        ([*READ, ATTACHED, cleared("m1", "at1", attachments=["at1"]),
          {**END_OF_CC[0], "parentUuid": "m1"}, END_OF_CC[1]], ["Hi", "price", "folder", "More?"]),
        ([*READ, *COMPACTION, *AFTER], ["price", "folder", "Summary.", "More?"]),
        ([*READ, cleared("m1", "r2", "t1"), {**COMPACTION[0], **kept("r1", "m1")}, COMPACTION[1],
          *AFTER], ["folder", "Summary.", "More?"]),
        ([*READ, {**COMPACTION[0], "compactMetadata": {"preservedMessages": {"uuids": ["r1"]}}},
          COMPACTION[1], *AFTER], ["price", "Summary.", "More?"]),
        ([*READ, {**without(COMPACTION[:1], "compactMetadata")[0], "compact_metadata": SNAKE},
          COMPACTION[1], *AFTER], ["price", "folder", "Summary.", "More?"]),
        ([*READ, {**COMPACTION[0], "compactMetadata": {"trigger": "manual"}}, COMPACTION[1],
            *AFTER],
         ["Summary.", "More?"]),
    ],
    ids=["all", "the server cleared a result", "the server cleared none", "a result is cleared",
         "two clearings", "an attachment is cleared", "kept results",
         "kept, but cleared before", "kept messages", "kept in a stream", "nothing is kept"],
)  # fmt: skip
def test_the_context_of_claude_code_before_its_last_reply(events, texts, tmp_path):
    assert in_context(tmp_path, "s.jsonl", lines(*events)) == texts


def test_a_cleared_result_without_an_id_is_of_no_call(tmp_path):
    unidentified = u("r1", "a0", [{"type": "tool_result", "content": "price"}])
    path = tmp_path / "s.jsonl"
    events = [*READ[:2], unidentified, READ[3], END_OF_CC[0]]
    path.write_text(file_text(lines(*events, with_edits(1))))
    (dialog,) = read_logs([path]).dialogs
    assert not any(event.clears for event in dialog.transcript.path)
    path.write_text(file_text(lines(*events, with_edits(2))))
    (dialog,) = read_logs([path]).dialogs
    assert [event.clears for event in dialog.transcript.path if event.clears] == [{"t2"}]


def test_a_cleared_result_is_not_counted_among_the_tokens_before_a_turn(tmp_path):
    long = [*READ[:2], res("r1", "a0", "t1", "x" * 4000), READ[3]]
    for events, least in (([*long, *END_OF_CC], 1000), (
        [*long, cleared("m1", "r2", "t1"), {**END_OF_CC[0], "parentUuid": "m1"}, END_OF_CC[1]], 0),
    ):  # fmt: skip
        (tmp_path / "s.jsonl").write_text(file_text(lines(*events)))
        (dialog,) = read_logs([tmp_path / "s.jsonl"]).dialogs
        assert least <= dialog.turns[1].tokens < least + 50


OLD = om("msg_2", "assistant", oc(output="price", time={"compacted": 25}), ot("A."), created=20)


@pytest.mark.parametrize(
    ("messages", "texts"),
    [
        ([OU, OLD, om("msg_3", "user", ot("More?"), created=30),
          om("msg_4", "assistant", ot("B."), created=40)], ["Hi", "A.", "More?"]),
        ([OU, OLD], ["Hi", "price"]),
        ([OU, OA, om("msg_5", "user", {"type": "compaction", "tail_start_id": "msg_2"}), SUMMARY,
          om("msg_7", "user", ot("More?")), om("msg_8", "assistant", ot("B."))],
         ["A.", "Summary.", "More?"]),
        ([OU, OA, COMPACTED, SUMMARY, om("msg_7", "user", ot("More?")),
          om("msg_8", "assistant", ot("B."))], ["Summary.", "More?"]),
    ],
    ids=["a result is cleared", "cleared after the turn", "a kept tail", "no tail"],
)  # fmt: skip
def test_the_context_of_opencode_before_its_last_reply(messages, texts, tmp_path):
    content = session(*messages)["o.json"]
    assert in_context(tmp_path, "o.json", content) == texts


@pytest.mark.parametrize(
    ("replaced", "texts"),
    [([gem("9", "user", "Summary")], ["Summary", "More?"]),
     ([gem("9", "user", "Summary"), GA], ["A.", "Summary", "More?"])],
    ids=["all", "all but the last message"],
)  # fmt: skip
def test_the_context_of_gemini_cli_before_its_last_reply(replaced, texts, tmp_path):
    log = lines(GHEAD, GU, GA, {"$set": {"messages": replaced}}, GU2, GA2)
    assert in_context(tmp_path, "s.jsonl", log) == texts


def test_copies_in_a_fork_of_opencode_count_once(tmp_path):
    fork = [{**message, "info": {**message["info"], "id": f"{message['info']['id']}_new"}}
            for message in (OU, OA, OU2, OA2)]  # fmt: skip
    check(Variation("", {"a.json": session(OU, OA)["o.json"],
                         "b.json": {"info": {"id": "ses_2"}, "messages": fork}},
                    TWO, problem="its only turn is in"), tmp_path)  # fmt: skip


# files that were put together, or written twice

OTHER_META = cx("session_meta", id="x9", base_instructions={"text": "Be kind."})
CP2 = ev("session.start", sessionId="p2", version=1)

test_files_that_were_put_together = variations(
    Variation("two rollouts of Codex", {"r.jsonl": lines(META, CU, CA, OTHER_META, says("user",
        "More?"),
                                                         says("assistant", "B."))},
              [ONE[0], [("More?", "B.")]]),
    Variation("a rollout of Codex that was resumed", {"r.jsonl": lines(
        META, CU, CA, META, says("user", "More?"), says("assistant", "B."))}, TWO),
    Variation("items of Codex that are written again", {"r.jsonl": lines(
        META, CU, says("assistant", "A.", id="msg_1"), says("assistant", "A.", id="msg_1"))}, ONE),
    Variation("calls of Codex that are written again", {"r.jsonl": lines(
        META, CU, calls("f", {"x": 1}), calls("f", {"x": 1}), output("y"), output("y"), CA)}, ONE,
        calls=["1"], results=["y"]),
    Variation("two sessions of Copilot CLI", {"e.jsonl": lines(CSTART, CU1, CA1, CP2, CU2, CA2)},
              [ONE[0], [("More?", "B.")]]),
    Variation("events of Copilot CLI that are written again", {"e.jsonl": lines(
        CSTART, CU1, CA1, CU1, CA1, CU2, CA2)}, TWO),
    Variation("two sessions of VS Code", {"c.jsonl": lines(
        {"kind": 0, "v": chat(HI_A)}, {"kind": 0, "v": chat(MORE_B, sessionId="v2")})},
        [ONE[0], [("More?", "B.")]]),
    Variation("a session of VS Code that is written anew", {"c.jsonl": lines(
        {"kind": 0, "v": chat(HI_A)}, {"kind": 0, "v": chat(HI_A, MORE_B)})}, TWO),
    Variation("messages of two sessions of opencode", {"o.jsonl": lines(
        OU, OA, *({**m, "info": {**m["info"], "sessionID": "ses_2"}} for m in (OU2, OA2)))},
        [ONE[0], [("More?", "B.")]]),
    Variation("a session of Claude Code whose message is null", {"s.jsonl": lines(
        U1, A1, {**U2, "message": None})}, ONE, problem="is not an object"),
)  # fmt: skip


# why a rule was broken that a tool's result said

RULE = """
cases:
  - id: shop
    system_prompt: Answer in one sentence.
    rules: [{id: force, text: Never push with force., measure: {name: command_not_run,
             command: git push --force}}]
"""
RULES = [U1, a("a0", "u1", {"type": "tool_use", "id": "t1", "name": "Read",
                            "input": {"file_path": "RULES.md"}}),
         res("r1", "a0", "t1", "Never push with force."), u("u2", "r1", "Go on.")]  # fmt: skip
BOUNDARY = sysline("b1", None, "compact_boundary", logicalParentUuid="u2")
PUSH = use("t9", "git push --force")


@pytest.mark.parametrize(
    ("between", "cause", "why"),
    [
        ([], "present", "in the context"),
        ([cleared("m1", "u2", "t1")], "removed", "cleared"),
        ([{**BOUNDARY, **kept("r1", "u2")}, u("c1", "b1", "Summary.", isCompactSummary=True)],
         "present", "in the context"),
        ([BOUNDARY, u("c1", "b1", "Summary.", isCompactSummary=True)], "removed", "compaction"),
    ],
    ids=["nothing left", "cleared", "kept by a compaction", "compacted"],
)  # fmt: skip
def test_the_cause_of_a_breach_depends_on_whether_its_rules_file_was_in_context(
    between, cause, why, tmp_path
):
    last = between[-1]["uuid"] if between else "u2"
    log = [*RULES, *between, u("u9", last, "Push."), a("a9", "u9", PUSH, mid="m9")]
    (tmp_path / "s.jsonl").write_text(file_text(lines(*log)))
    (tmp_path / "suite.yaml").write_text(RULE)
    suite = load_suite(str(tmp_path / "suite.yaml"), probed=False)
    run = score_logs(read_logs([tmp_path / "s.jsonl"]), suite, tmp_path / "run")
    (breach,) = [probe.cause for d in run.dialogs for probe in d.probes if probe.cause is not None]
    assert breach.cause == cause and why in breach.why


def test_a_patch_that_a_script_of_codex_applied_is_an_edit(tmp_path):
    changes = {
        "/x/a.py": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-old\n+new\n"},
        "/x/b.py": {"type": "add", "content": "first\nsecond\n"},
    }
    patched = cx("event_msg", type="patch_apply_end", call_id="c2", success=True, changes=changes)
    path = tmp_path / "r.jsonl"
    path.write_text(file_text(lines(META, CU, patched, CA)), encoding="utf-8")
    (dialog,) = read_logs([path]).dialogs
    edits = [edit for call in dialog.turns[0].done.calls for edit in edits_by_call(call)]
    assert [(edit.path, edit.added) for edit in edits] == [
        ("/x/a.py", ("new",)),
        ("/x/b.py", ("first\nsecond",)),
    ]
