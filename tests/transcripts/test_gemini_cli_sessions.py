"""Sessions of Gemini CLI, in variations."""

import json
from typing import Any

import pytest
from gemini_cli_lines import message, session
from log_variations import (
    ONE_TURN,
    TWO_TURNS,
    Variation,
    context_before_last_reply,
    lines,
    variations,
)

HEAD = {"sessionId": "g1", "projectHash": "h", "startTime": "t", "lastUpdated": "t"}
HI, A = message("1", "user", "Hi"), message("2", "gemini", "A.", model="gemini-x")
MORE, B = message("3", "user", "More?"), message("4", "gemini", "B.")


def document(*messages: dict, **fields: Any) -> dict:
    return {**HEAD, "messages": [*messages], **fields}


def call(**fields: Any) -> dict:
    return {
        "id": "c1",
        "name": "run_shell_command",
        "args": {"command": "ls"},
        "status": "success",
        "timestamp": "t",
        **fields,
    }


test_sessions_of_gemini_cli = variations(
    Variation("a document", {"session-1.json": document(HI, A)}, ONE_TURN, format="gemini-cli"),
    Variation(
        "commands of the program",
        {
            "session-1.json": document(
                message("7", "user", "/memory show"), message("8", "user", "?"), HI, A
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a question that begins with a path",
        {"session-1.json": document(message("1", "user", "/src/a.ts is broken"), A)},
        [[("/src/a.ts is broken", "A.")]],
    ),
    Variation(
        "the program goes on",
        {
            "session-1.json": document(
                HI,
                message("2", "gemini", "A"),
                message("3", "user", [{"text": "System: Please continue."}]),
                message("4", "gemini", "B"),
            )
        },
        [[("Hi", "A\n\nB")]],
    ),
    Variation(
        "contents as parts",
        {
            "session-1.json": document(
                message("1", "user", [{"text": "Hi"}]), message("2", "gemini", [{"text": "A."}])
            )
        },
        ONE_TURN,
    ),
    Variation(
        "contents as one part",
        {"session-1.json": document(message("1", "user", {"text": "Hi"}), A)},
        ONE_TURN,
    ),
    Variation(
        "an image",
        {
            "session-1.json": document(
                message(
                    "1",
                    "user",
                    [{"text": "Hi"}, {"inlineData": {"mimeType": "image/png", "data": "AA=="}}],
                ),
                A,
            )
        },
        ONE_TURN,
        problem="1 of the type 'inlineData'",
    ),
    Variation(
        "a call whose result is a list",
        {
            "session-1.json": document(
                HI,
                message(
                    "2",
                    "gemini",
                    "A.",
                    toolCalls=[
                        call(
                            result=[
                                {
                                    "functionResponse": {
                                        "id": "c1",
                                        "name": "run_shell_command",
                                        "response": {"output": "a.py"},
                                    }
                                }
                            ]
                        )
                    ],
                ),
            )
        },
        ONE_TURN,
        calls=["ls"],
        results=["a.py"],
    ),
    Variation(
        "a call without a result",
        {
            "session-1.json": document(
                HI, message("2", "gemini", "A.", toolCalls=[call(status="cancelled", result=None)])
            )
        },
        ONE_TURN,
        calls=["ls"],
    ),
    Variation(
        "a call whose result is text",
        {
            "session-1.json": document(
                HI, message("2", "gemini", "A.", toolCalls=[call(result="a.py")])
            )
        },
        ONE_TURN,
        calls=["ls"],
        results=["a.py"],
    ),
    Variation(
        "a call without words",
        {
            "session-1.json": document(
                HI, message("2", "gemini", "", toolCalls=[call()]), message("3", "gemini", "A.")
            )
        },
        ONE_TURN,
        calls=["ls"],
    ),
    Variation(
        "lines for display",
        {
            "session-1.json": document(
                HI,
                message("5", "info", "Update"),
                A,
                message("6", "warning", "price"),
                message("7", "error", "429"),
            )
        },
        ONE_TURN,
    ),
    Variation(
        "thoughts",
        {
            "session-1.json": document(
                HI, {**A, "thoughts": [{"subject": "x", "description": "y", "timestamp": "t"}]}
            )
        },
        ONE_TURN,
    ),
    Variation(
        "content that is null",
        {"session-1.json": document(HI, message("9", "gemini", None), A)},
        ONE_TURN,
    ),
    Variation("lines", session(HEAD, HI, A, {"$set": {"lastUpdated": "t"}}, MORE, B), TWO_TURNS),
    Variation("a message that grows", session(HEAD, HI, message("2", "gemini", ""), A), ONE_TURN),
    Variation(
        "a rewind",
        session(
            HEAD,
            HI,
            A,
            MORE,
            B,
            {"$rewindTo": "3"},
            message("5", "user", "Or?"),
            message("6", "gemini", "C."),
        ),
        [[("Hi", "A."), ("Or?", "C.")]],
        problem="2 messages are left out",
    ),
    Variation(
        "a rewind, and the same message again",
        session(HEAD, HI, A, MORE, B, {"$rewindTo": "3"}, MORE, message("4", "gemini", "C.")),
        [[("Hi", "A."), ("More?", "C.")]],
        problem="2 messages are left out",
    ),
    Variation(
        "a session that is compressed",
        session(HEAD, HI, A, {"$set": {"messages": [message("9", "user", "Summary")]}}, MORE, B),
        TWO_TURNS,
    ),
    Variation(
        "a turn that was aborted",
        session(
            HEAD,
            HI,
            A,
            message("7", "user", "Or?"),
            message("8", "gemini", "C"),
            {"$set": {"messages": [HI, A]}},
            MORE,
            B,
        ),
        TWO_TURNS,
        problem="2 messages are left out",
    ),
    Variation(
        "messages that are set again as they are",
        session(HEAD, HI, A, {"$set": {"messages": [HI, A]}}, MORE, B),
        TWO_TURNS,
    ),
    Variation(
        "a rewind to a message that is not there",
        session(HEAD, HI, A, {"$rewindTo": "x"}, MORE, B),
        [[("More?", "B.")]],
        problem="2 messages are left out",
    ),
    Variation(
        "a copy of a session",
        {
            "a.jsonl": lines(HEAD, HI, A),
            "b.jsonl": lines({**HEAD, "sessionId": "g2"}, HI, A, MORE, B),
        },
        TWO_TURNS,
        problem="its only turn is in",
    ),
    Variation(
        "a session of a subagent",
        {"session-1.json": document(HI, A, kind="subagent")},
        ONE_TURN,
        subagents=1,
    ),
    Variation(
        "sessions that were put into one file",
        session(HEAD, HI, A, {**HEAD, "sessionId": "g2"}, MORE, B),
        [ONE_TURN[0], [("More?", "B.")]],
    ),
    Variation(
        "a last line that was cut",
        session(HEAD, HI, A, json.dumps(MORE)[:30]),
        ONE_TURN,
        problem="line 4:",
    ),
    Variation(
        "prompts alone",
        {
            "logs.json": [
                {
                    "sessionId": "g1",
                    "messageId": 0,
                    "type": "user",
                    "message": "Hi",
                    "timestamp": "t",
                }
            ]
        },
        refused="There is no dialog",
    ),
    Variation(
        "a directory that the user named",
        {
            "session-1.json": document(
                message(
                    "1",
                    "user",
                    [
                        {"text": "Hi @src"},
                        {"text": "\n--- Content from referenced files ---"},
                        {"text": "\nContent from @src/price.py:\n"},
                        {"text": "price"},
                    ],
                ),
                A,
            )
        },
        [[("Hi @src", "A.")]],
    ),
)


@pytest.mark.parametrize(
    ("replaced", "texts"),
    [
        ([message("9", "user", "Summary")], ["Summary", "More?"]),
        ([message("9", "user", "Summary"), A], ["A.", "Summary", "More?"]),
    ],
    ids=["all", "all but the last message"],
)
def test_the_context_of_gemini_cli_before_its_last_reply(replaced, texts, tmp_path):
    log = lines(HEAD, HI, A, {"$set": {"messages": replaced}}, MORE, B)
    assert context_before_last_reply(tmp_path, "s.jsonl", log) == texts
