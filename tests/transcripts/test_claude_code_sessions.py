"""Sessions of Claude Code: branches, copies, and what users and programs said, in variations."""

import json
from collections.abc import Sequence
from typing import Any

from claude_code_lines import (
    HI,
    MORE,
    A,
    B,
    assistant,
    bash_call,
    line,
    result,
    system,
    user,
    without,
)
from log_variations import ONE_TURN, TWO_TURNS, Variation, lines, text, variations


def session(*values: Any) -> dict:
    return {"s.jsonl": lines(*values)}


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


SESSION = [HI, A, MORE, B]
WORKED = [HI, assistant("a0", "u1", bash_call("t1"), mid="m0"), result("r1", "a0", "t1")]


def unnamed(events: Sequence[dict]) -> list[dict]:
    """Lines whose replies have no ids."""
    return [
        {**event, "message": {n: v for n, v in event["message"].items() if n != "id"}}
        for event in events
    ]


test_branches_and_compactions_of_claude_code = variations(
    Variation(
        "thinking and text are lines of one reply",
        session(
            HI,
            assistant(
                "a0", "u1", {"type": "thinking", "thinking": "hm.", "signature": "x"}, mid="msg_1"
            ),
            {**A, "parentUuid": "a0"},
        ),
        ONE_TURN,
    ),
    Variation("a line before the one that it follows", session(HI, B, MORE, A), TWO_TURNS),
    Variation(
        "a file in which no line names a parent",
        session(*({**event, "parentUuid": None} for event in SESSION)),
        TWO_TURNS,
    ),
    Variation(
        "a reply that another one replaced",
        session(HI, assistant("a0", "u1", "A", mid="m0"), {**A, "supersedesUuids": ["a0"]}),
        ONE_TURN,
        problem="1 message of abandoned branches",
    ),
    Variation(
        "a reply that a refusal took back",
        session(
            HI,
            assistant("a0", "u1", "A", mid="m0"),
            system("y1", "a0", "api_refusal", retractedMessageUuids=["a0"]),
            {**A, "parentUuid": "y1"},
        ),
        ONE_TURN,
        problem="1 message of abandoned branches",
    ),
    Variation(
        "redacted thinking",
        session(HI, assistant("a1", "u1", {"type": "redacted_thinking", "data": "x"}, "A.")),
        ONE_TURN,
    ),
    Variation(
        "progress in the chain of parents",
        session(
            HI,
            assistant("a0", "u1", bash_call("t1"), mid="m0"),
            {
                "type": "progress",
                "uuid": "p1",
                "parentUuid": "a0",
                "sessionId": "s1",
                "data": {
                    "type": "agent_progress",
                    "message": {"type": "user", "message": {"role": "user", "content": "price?"}},
                },
            },
            result("r1", "p1", "t1"),
            {**A, "parentUuid": "r1"},
        ),
        ONE_TURN,
        calls=["ls"],
    ),
    Variation(
        "a retry after an error",
        session(
            HI,
            assistant("e1", "u1", "API Error: 500", isApiErrorMessage=True),
            user("u1b", None, "Hi"),
            {**A, "parentUuid": "u1b"},
        ),
        ONE_TURN,
        problem="2 messages of abandoned branches",
    ),
    Variation(
        "nothing was requested",
        session(
            HI,
            A,
            {
                **assistant("n1", "a1", "No response requested."),
                "message": {
                    "model": "<synthetic>",
                    "role": "assistant",
                    "content": [text("No response requested.")],
                },
            },
            {**MORE, "parentUuid": "n1"},
            B,
        ),
        TWO_TURNS,
    ),
    Variation(
        "a context that was compacted, with its head written elsewhere",
        session(
            *SESSION,
            system(
                "b1",
                None,
                "compact_boundary",
                logicalParentUuid="gone",
                compactMetadata={"trigger": "auto", "preTokens": 9},
            ),
            user("c1", "b1", "Summary of the price.", isCompactSummary=True),
            user("u3", "c1", "Bye."),
            assistant("a3", "u3", "Bye!"),
        ),
        [[*TWO_TURNS[0], ("Bye.", "Bye!")]],
    ),
    Variation(
        "a session that begins with the summary of another",
        session(
            user(
                "c1",
                None,
                "This session is being continued from a previous"
                " conversation that ran out of context. The price.",
            ),
            {**HI, "parentUuid": "c1"},
            A,
        ),
        ONE_TURN,
    ),
    Variation(
        "lines with more usage are written again",
        session(HI, A, {**A, "message": {**A["message"], "usage": {"output_tokens": 9}}}, MORE, B),
        TWO_TURNS,
    ),
    Variation(
        "two rewinds to one place",
        session(
            *SESSION,
            user("u3", "a1", "Or?"),
            assistant("a3", "u3", "C."),
            user("u4", "a1", "Else?"),
            assistant("a4", "u4", "D."),
        ),
        [[("Hi", "A."), ("Else?", "D.")]],
        problem="4 messages of abandoned branches",
    ),
    Variation(
        "a rewind to a branch that was left",
        session(
            *SESSION,
            user("u3", "a1", "Or?"),
            assistant("a3", "u3", "C."),
            user("u4", "a2", "Else?"),
            assistant("a4", "u4", "D."),
        ),
        [[*TWO_TURNS[0], ("Else?", "D.")]],
        problem="2 messages of abandoned branches",
    ),
    Variation(
        "a rewind before everything",
        session(*SESSION, user("u3", None, "Or?"), assistant("a3", "u3", "C.")),
        [[("Or?", "C.")]],
        problem="4 messages of abandoned branches",
    ),
    Variation(
        "a rewind in the middle of a turn",
        session(
            *WORKED,
            assistant("a1", "r1", "A.", mid="m1"),
            user("u2", "r1", "Stop."),
            assistant("a2", "u2", "B.", mid="m2"),
        ),
        [[("Hi", ""), ("Stop.", "B.")]],
        problem="1 message of abandoned branches",
    ),
    Variation(
        "a context that was cleared",
        session(
            HI,
            A,
            user("c1", None, "<command-name>/clear</command-name>"),
            user("c2", "c1", "<local-command-stdout></local-command-stdout>"),
            {**MORE, "parentUuid": "c2"},
            B,
        ),
        [ONE_TURN[0], [("More?", "B.")]],
    ),
)

test_words_of_users_and_programs_in_claude_code = variations(
    Variation(
        "an interruption and what the user says then",
        session(HI, A, user("u2", "a1", [text("[Request interrupted by user]"), text("More?")]), B),
        TWO_TURNS,
    ),
    Variation(
        "a system prompt",
        session(line("system", "y1", None, "Be brief."), {**HI, "parentUuid": "y1"}, A),
        ONE_TURN,
        system="Be brief.",
    ),
    Variation(
        "lines beside the messages",
        session(
            {"type": "summary", "summary": "Greeting", "leafUuid": "a1"},
            {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}},
            {
                "type": "queue-operation",
                "operation": "enqueue",
                "sessionId": "s1",
                "timestamp": "t",
                "content": "the cost?",
            },
            {"type": "ai-title", "aiTitle": "Hi", "sessionId": "s1"},
            {"type": "last-prompt", "lastPrompt": "the cost?", "sessionId": "s1"},
            {"type": "custom-title", "customTitle": "x", "sessionId": "s1"},
            {"type": "permission-mode", "permissionMode": "plan", "sessionId": "s1"},
            {"type": "pr-link", "sessionId": "s1", "prNumber": 1},
            *SESSION,
            system("x1", "a2", "turn_duration", durationMs=3),
            system("x2", "x1", "stop_hook_summary", hookCount=1),
            system("x3", "x2", "away_summary", content="The user asked for the cost."),
        ),
        TWO_TURNS,
        seen=[],
    ),
    Variation(
        "a local command as a system line",
        session(
            HI,
            A,
            system("l1", "a1", "local_command", content="<command-name>/cost</command-name>"),
            system(
                "l2",
                "l1",
                "local_command",
                content="<local-command-stdout>The cost</local-command-stdout>",
            ),
            {**MORE, "parentUuid": "l2"},
            B,
        ),
        TWO_TURNS,
    ),
    Variation(
        "an interruption in blocks",
        session(
            HI,
            A,
            user("i1", "a1", [text("[Request interrupted by user]")]),
            {**MORE, "parentUuid": "i1"},
            B,
        ),
        TWO_TURNS,
    ),
    Variation(
        "feedback of a hook",
        session(
            HI,
            A,
            user("h1", "a1", "Stop hook feedback:\nthe price?", isMeta=True),
            {**B, "parentUuid": "h1"},
        ),
        [[("Hi", "A.\n\nB.")]],
        seen=["Stop hook feedback:\nthe price?"],
    ),
    Variation(
        "the text of a skill",
        session(
            *WORKED,
            user(
                "k1",
                "r1",
                [text("Base directory for this skill: /x\nPrice")],
                isMeta=True,
                sourceToolUseID="t1",
            ),
            {**A, "parentUuid": "k1"},
        ),
        ONE_TURN,
        seen=["Base directory for this skill: /x\nPrice"],
    ),
    Variation(
        "a queued message of a task",
        session(
            HI,
            A,
            {
                "type": "attachment",
                "uuid": "q1",
                "parentUuid": "a1",
                "sessionId": "s1",
                "attachment": {
                    "type": "queued_command",
                    "commandMode": "task-notification",
                    "prompt": "The price is done.",
                },
            },
            {**B, "parentUuid": "q1"},
        ),
        [[("Hi", "A.\n\nB.")]],
        seen=["The price is done."],
    ),
    Variation(
        "a message that a person is the origin of",
        session({**HI, "origin": {"kind": "human"}}, A),
        ONE_TURN,
    ),
    Variation(
        "a message of a channel",
        session(HI, A, {**MORE, "origin": {"kind": "coordinator"}}, B),
        [[("Hi", "A.\n\nB.")]],
    ),
    Variation(
        "a sentence that names an element of Claude Code's",
        session(
            user(
                "u1",
                None,
                "Hi, never use <ide_selection> here. Run the tests."
                "<system-reminder>Be brief.</system-reminder>",
            ),
            A,
        ),
        [[("Hi, never use <ide_selection> here. Run the tests.", "A.")]],
    ),
    Variation(
        "an element that was cut off",
        session(user("u0", None, "<ide_selection>price"), {**HI, "parentUuid": "u0"}, A),
        ONE_TURN,
        seen=["<ide_selection>price"],
    ),
)


test_files_and_copies_of_claude_code = variations(
    Variation(
        "a session of Qwen Code's",
        session(
            {**HI, "message": {"role": "user", "parts": [{"text": "Hi"}]}},
            {**A, "message": {"role": "model", "parts": [{"text": "A."}]}},
        ),
        refused="no known format",
    ),
    Variation(
        "lines of a type that is not known",
        session(HI, line("tool", "t1", "u1", "x"), {**A, "parentUuid": "t1"}),
        ONE_TURN,
        problem="line 2",
    ),
    Variation("a document that lists the lines", {"s.json": {"loglines": SESSION}}, TWO_TURNS),
    Variation(
        "a subagent in its own file",
        {
            "p/s1/subagents/agent-1.jsonl": lines(
                *({**event, "isSidechain": True, "agentId": "1"} for event in (HI, A))
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a subagent that the user's file has too",
        session(
            HI,
            assistant(
                "a0",
                "u1",
                {"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "Count."}},
            ),
            user("x1", None, "Count.", isSidechain=True),
            assistant("x2", "x1", "One.", isSidechain=True),
            result("r1", "a0", "t1", [text("One.")]),
            {**A, "parentUuid": "r1"},
        ),
        [[("Hi", "A.")], [("Count.", "One.")]],
    ),
    Variation(
        "subagents that are interleaved",
        session(
            HI,
            A,
            user("x1", None, "X?", isSidechain=True, agentId="x"),
            user("y1", None, "Y?", isSidechain=True, agentId="y"),
            assistant("x2", "x1", "X.", isSidechain=True, agentId="x"),
            assistant("y2", "y1", "Y.", isSidechain=True, agentId="y"),
            MORE,
            B,
        ),
        [*TWO_TURNS, [("X?", "X.")], [("Y?", "Y.")]],
    ),
    Variation(
        "a message without content",
        session(user("u0", None, None), {**HI, "parentUuid": "u0"}, A),
        ONE_TURN,
    ),
    Variation(
        "times that are numbers",
        session(*({**event, "timestamp": 1789380000000 + n} for n, event in enumerate(SESSION))),
        TWO_TURNS,
    ),
    Variation(
        "a mark of the order of bytes, and line breaks of Windows",
        {"s.jsonl": ("\ufeff" + "\r\n".join(map(json.dumps, SESSION)) + "\r\n")},
        TWO_TURNS,
    ),
    Variation(
        "a last line that was cut",
        session(*SESSION, json.dumps(user("u3", "a2", "Bye"))[:50]),
        TWO_TURNS,
        problem="line 5:",
    ),
    Variation(
        "no line break at the end", {"s.jsonl": "\n".join(map(json.dumps, SESSION))}, TWO_TURNS
    ),
    Variation(
        "a session in one list",
        {"s.json": SESSION},
        TWO_TURNS,
    ),
    Variation(
        "a copy with the same ids",
        {"a.jsonl": lines(HI, A), "b.jsonl": lines(*({**e, "sessionId": "s2"} for e in SESSION))},
        TWO_TURNS,
        problem="its only turn is in",
    ),
    Variation(
        "a copy with new ids",
        {"a.jsonl": lines(HI, A), "b.jsonl": lines(*refreshed(SESSION))},
        TWO_TURNS,
        problem="its only turn is in",
    ),
    Variation(
        "a copy with new ids, whose replies have none",
        {"a.jsonl": lines(*unnamed(SESSION[:2])), "b.jsonl": lines(*unnamed(refreshed(SESSION)))},
        TWO_TURNS,
        problem="its only turn is in",
    ),
    Variation(
        "a fork, which names what it copied",
        {
            "a.jsonl": lines(*without(unnamed(SESSION[:2]), "timestamp")),
            "b.jsonl": lines(
                *(
                    {**new, "forkedFrom": {"sessionId": "s1", "messageUuid": old["uuid"]}}
                    for old, new in zip(
                        SESSION, without(unnamed(refreshed(SESSION)), "timestamp"), strict=True
                    )
                )
            ),
        },
        TWO_TURNS,
        problem="its only turn is in",
    ),
    Variation(
        "a copy of a part of a turn",
        {
            "a.jsonl": lines(*WORKED),
            "b.jsonl": lines(
                *({**e, "sessionId": "s2"} for e in (*WORKED, {**A, "parentUuid": "r1"}))
            ),
        },
        ONE_TURN,
        calls=["ls"],
        problem="its only turn is in",
    ),
    Variation(
        "a copy of a part of a turn, in the shorter session",
        {
            "a.jsonl": lines(
                *SESSION,
                user("u3", "a2", "Do."),
                assistant("a3", "u3", bash_call("t1"), mid="m3"),
                result("r3", "a3", "t1"),
            ),
            "b.jsonl": lines(
                *refreshed(
                    [
                        user("u3", None, "Do."),
                        assistant("a3", "u3", bash_call("t1"), mid="m3"),
                        result("r3", "a3", "t1"),
                        assistant("a4", "r3", "Done.", mid="m4"),
                    ]
                )
            ),
        },
        [TWO_TURNS[0], [("Do.", "Done.")]],
        problem="1 of its 3 turns are in",
    ),
    Variation(
        "two copies that go on otherwise within a turn",
        {
            "a.jsonl": lines(
                *WORKED,
                assistant("a1", "r1", bash_call("t2", "pwd"), mid="m1"),
                result("r2", "a1", "t2"),
                assistant("a2", "r2", "A.", mid="m2"),
            ),
            "b.jsonl": lines(*refreshed([*WORKED, assistant("b1", "r1", "B.", mid="m9")])),
        },
        [ONE_TURN[0], [("Hi", "B.")]],
    ),
    Variation(
        "sessions that only look alike",
        {
            "a.jsonl": lines(*without(unnamed([HI, A]), "timestamp")),
            "b.jsonl": lines(*without(unnamed(refreshed([HI, A])), "timestamp")),
        },
        [ONE_TURN[0], ONE_TURN[0]],
    ),
    Variation(
        "a session of Claude Code whose message is null",
        {"s.jsonl": lines(HI, A, {**MORE, "message": None})},
        ONE_TURN,
        problem="is not an object",
    ),
)
