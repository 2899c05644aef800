"""Sessions of Copilot CLI, in variations."""

import itertools
from typing import Any

from log_variations import ONE_TURN, TWO_TURNS, Variation, lines, variations

EVENT_NUMBERS = itertools.count(1)


def event(kind: str, **data: Any) -> dict:
    name = f"e{next(EVENT_NUMBERS)}"
    return {"type": kind, "data": data, "id": name, "timestamp": "t", "parentId": None}


START = event("session.start", sessionId="p1", version=1)
HI, A = (
    event("user.message", content="Hi"),
    event("assistant.message", content="A.", messageId="m1"),
)
MORE, B = (
    event("user.message", content="More?"),
    event("assistant.message", content="B.", messageId="m2"),
)


def session(*events: dict) -> dict:
    return {"events.jsonl": lines(START, *events)}


OTHER_START = event("session.start", sessionId="p2", version=1)

TRUNCATED = {"messagesRemovedDuringTruncation": 3, "performedBy": "BasicTruncator", "tokenLimit": 9}

test_sessions_of_copilot_cli = variations(
    Variation("a session", session(HI, A, MORE, B), TWO_TURNS, format="copilot-cli"),
    Variation(
        "a truncation",
        session(HI, A, event("session.truncation", **TRUNCATED), MORE, B),
        TWO_TURNS,
        problem="3 messages",
    ),
    Variation(
        "a truncation without a count",
        session(HI, A, event("session.truncation", reason="context_limit"), MORE, B),
        TWO_TURNS,
        problem="removed messages from",
    ),
    Variation(
        "autopilot goes on",
        session(HI, A, event("user.message", content="", transformedContent="<x>Go on</x>"), B),
        [[("Hi", "A.\n\nB.")]],
        seen=["<x>Go on</x>"],
    ),
    Variation(
        "events for display",
        session(
            HI,
            event("assistant.turn_start", turnId="0"),
            event("assistant.reasoning", content="price"),
            event("session.info", message="price"),
            A,
            event("assistant.turn_end", turnId="0"),
            event("session.idle"),
            event("session.shutdown"),
        ),
        ONE_TURN,
        seen=[],
    ),
    Variation(
        "a call and its result",
        session(
            HI,
            event(
                "assistant.message",
                content="",
                toolRequests=[{"toolCallId": "c1", "name": "bash", "arguments": {"command": "ls"}}],
            ),
            event(
                "tool.execution_start",
                toolCallId="c1",
                toolName="bash",
                arguments={"command": "ls"},
            ),
            event(
                "tool.execution_complete", toolCallId="c1", success=True, result={"content": "x"}
            ),
            A,
        ),
        ONE_TURN,
        calls=["ls"],
        results=["x"],
    ),
    Variation(
        "a call that failed",
        session(
            HI,
            event(
                "tool.execution_start",
                toolCallId="c1",
                toolName="bash",
                arguments={"command": "ls"},
            ),
            event(
                "tool.execution_complete", toolCallId="c1", success=False, error={"message": "no"}
            ),
            A,
        ),
        ONE_TURN,
        calls=["ls"],
        results=["no"],
    ),
    Variation(
        "a session that is resumed",
        session(HI, A, event("session.resume", eventCount=3), MORE, B),
        TWO_TURNS,
    ),
    Variation(
        "a rewind",
        session(
            HI,
            A,
            MORE,
            B,
            event("session.snapshot_rewind", upToEventId=MORE["id"], eventsRemoved=2),
            event("user.message", content="Or?"),
            event("assistant.message", content="C."),
        ),
        [[("Hi", "A."), ("Or?", "C.")]],
        problem="rewound",
    ),
    Variation(
        "a compaction",
        session(
            HI,
            A,
            event("session.compaction_start"),
            event("session.compaction_complete", success=True, summaryContent="Summary."),
            MORE,
            B,
        ),
        TWO_TURNS,
    ),
    Variation(
        "an interruption",
        session(HI, A, event("abort", reason="user initiated"), MORE, B),
        TWO_TURNS,
    ),
    Variation(
        "a subagent",
        session(
            HI,
            event("user.message", content="Count.", parentToolCallId="c1"),
            event("assistant.message", content="One.", parentToolCallId="c1"),
            A,
        ),
        [ONE_TURN[0], [("Count.", "One.")]],
        subagents=1,
    ),
    Variation(
        "a user's attachments",
        session(
            event(
                "user.message",
                content="Hi",
                attachments=[{"type": "file", "path": "/x"}],
                transformedContent="<x>price</x> Hi",
            ),
            A,
        ),
        ONE_TURN,
    ),
    Variation(
        "a message of autopilot",
        session(HI, A, event("user.message", content="Go on.", source="autopilot"), B),
        [[("Hi", "A.\n\nB.")]],
        seen=["Go on."],
    ),
    Variation("an unknown event", session(HI, A, event("new.kind")), ONE_TURN, problem="new.kind"),
    Variation(
        "content that is null", session(HI, event("assistant.message", content=None), A), ONE_TURN
    ),
    Variation(
        "a command of the user's",
        session(
            event(
                "tool.user_requested", toolCallId="c1", toolName="bash", arguments={"command": "ls"}
            ),
            event(
                "tool.execution_start",
                toolCallId="c1",
                toolName="bash",
                arguments={"command": "ls"},
            ),
            event(
                "tool.execution_complete",
                toolCallId="c1",
                success=True,
                isUserRequested=True,
                result={"content": "x"},
            ),
            HI,
            A,
        ),
        ONE_TURN,
        calls=[],
    ),
    Variation("no start", {"events.jsonl": lines(HI, A)}, ONE_TURN),
    Variation(
        "two sessions of Copilot CLI",
        {"e.jsonl": lines(START, HI, A, OTHER_START, MORE, B)},
        [ONE_TURN[0], [("More?", "B.")]],
    ),
    Variation(
        "events of Copilot CLI that are written again",
        {"e.jsonl": lines(START, HI, A, HI, A, MORE, B)},
        TWO_TURNS,
    ),
)


def numbered_event(kind: str, number: int, **data: Any) -> dict:
    return {
        "type": kind,
        "data": data,
        "id": f"e{number}",
        "timestamp": "t",
        "parentId": f"e{number - 1}",
    }


def numbered_result(**result: Any) -> dict:
    return numbered_event(
        "tool.execution_complete",
        4,
        toolCallId="c1",
        success=True,
        result={"content": "a.py", **result},
    )


NUMBERED_START = numbered_event("session.start", 1, sessionId="s1", version=1)
NUMBERED_HI = numbered_event("user.message", 2, content="Hi")
NUMBERED_CALL = numbered_event(
    "assistant.message",
    3,
    messageId="m1",
    content="",
    toolRequests=[{"toolCallId": "c1", "name": "bash", "arguments": {"command": "ls"}}],
)
NUMBERED_A = numbered_event("assistant.message", 5, messageId="m2", content="A.")

test_sessions_of_copilot_cli_in_summer_2026 = variations(
    Variation(
        "the exit code of a command",
        {
            "events.jsonl": lines(
                NUMBERED_START,
                NUMBERED_HI,
                NUMBERED_CALL,
                numbered_result(
                    contents=[
                        {"type": "terminal", "text": "a.py"},
                        {"type": "shell_exit", "shellId": "1", "exitCode": 0},
                    ]
                ),
                NUMBERED_A,
            )
        },
        ONE_TURN,
        calls=["ls"],
        results=["a.py"],
    ),
    Variation(
        "a picture for the model",
        {
            "events.jsonl": lines(
                NUMBERED_START,
                NUMBERED_HI,
                NUMBERED_CALL,
                numbered_result(
                    binaryResultsForLlm=[{"type": "image", "mimeType": "image/png", "data": "AA=="}]
                ),
                NUMBERED_A,
            )
        },
        ONE_TURN,
        results=["a.py"],
        problem="1 of the type 'image/png'",
    ),
    Variation(
        "a selection and an issue that the user attached",
        {
            "events.jsonl": lines(
                NUMBERED_START,
                numbered_event(
                    "user.message",
                    2,
                    content="Hi",
                    attachments=[
                        {"type": "file", "path": "/x/a.py", "displayName": "a.py"},
                        {
                            "type": "selection",
                            "filePath": "/x/a.py",
                            "displayName": "a.py",
                            "text": "price",
                        },
                        {"type": "github_reference", "number": 1, "title": "x", "url": "u"},
                    ],
                ),
                NUMBERED_A,
            )
        },
        ONE_TURN,
        seen=["price"],
        problem="1 of the type 'github_reference'",
    ),
    Variation(
        "a search by the provider",
        {
            "events.jsonl": lines(
                NUMBERED_START,
                NUMBERED_HI,
                numbered_event(
                    "assistant.message",
                    5,
                    messageId="m2",
                    content="A.",
                    serverTools={
                        "provider": "openai",
                        "items": [
                            {
                                "type": "web_search_call",
                                "id": "w1",
                                "action": {"type": "search", "query": "x"},
                            }
                        ],
                    },
                ),
            )
        },
        ONE_TURN,
        calls=["search x"],
    ),
    Variation(
        "a context that was cleared",
        {
            "events.jsonl": lines(
                NUMBERED_START,
                NUMBERED_HI,
                NUMBERED_A,
                numbered_event(
                    "session.context_cleared", 6, messagesCleared=2, initialMessage="price"
                ),
                numbered_event("user.message", 7, content="More?"),
                numbered_event("assistant.message", 8, messageId="m3", content="B."),
            )
        },
        TWO_TURNS,
        seen=[],
    ),
)
