"""Sessions of Google's Agent Development Kit: exports and databases, in variations."""

import json
import re
from typing import Any

from agent_databases import adk_row, database
from log_variations import ONE_TURN, TWO_TURNS, Variation, lines, variations

from holdfast.logs import read_logs
from holdfast.logs.context import Contexts

LS_ARGUMENTS = {"command": "ls"}


def event(author: str, *parts: dict, **fields: Any) -> dict:
    role = "user" if author == "user" else "model"
    content = {"parts": parts, "role": role}
    fields_of_event = {"invocationId": "e1", "author": author, "content": content, "id": "x"}
    return {**fields_of_event, "actions": {"stateDelta": {}}, "timestamp": 1.0, **fields}


def session(*events: dict) -> dict:
    return {"id": "s1", "appName": "shop", "userId": "u", "state": {}, "events": events}


def in_snake_case(value: Any) -> Any:
    if isinstance(value, dict):
        names = {name: re.sub("[A-Z]", lambda c: f"_{c[0].lower()}", name) for name in value}
        return {names[name]: in_snake_case(entry) for name, entry in value.items()}
    return [*map(in_snake_case, value)] if isinstance(value, (list, tuple)) else value


HI = event("user", {"text": "Hi"})
A = event("shop", {"text": "A."})
CALL = event("shop", {"functionCall": {"id": "c1", "name": "bash", "args": LS_ARGUMENTS}})
RESULT = event(
    "shop", {"functionResponse": {"id": "c1", "name": "bash", "response": {"result": "a.py"}}}
)
SUMMARY = {
    "startTimestamp": 1.0,
    "endTimestamp": 2.0,
    "compactedContent": {"role": "model", "parts": [{"text": "So far."}]},
}
REWOUND = event("user", content=None, invocationId="e3", actions={"rewindBeforeInvocationId": "e2"})


def later(author: str, words: str) -> dict:
    return event(author, {"text": words}, invocationId="e2")


def more(author: str, words: str) -> dict:
    return event(author, {"text": words}, invocationId="e4")


INVOCATION = {
    "user_content": {"parts": [{"text": "Hi"}]},
    "final_response": {"parts": [{"text": "A."}]},
    "intermediate_data": {"tool_uses": [{"name": "bash", "args": LS_ARGUMENTS}]},
}

test_sessions_of_google_adk = variations(
    Variation("a session", {"s.json": session(HI, A)}, ONE_TURN, format="google-adk"),
    Variation(
        "names in snake case",
        {"s.json": in_snake_case(session(HI, CALL, RESULT, A))},
        ONE_TURN,
        calls=["ls"],
        results=["a.py"],
    ),
    Variation("a call", {"s.json": session(HI, CALL, RESULT, A)}, ONE_TURN, calls=["ls"]),
    Variation(
        "parts of a reply that streams",
        {"s.json": session(HI, event("shop", {"text": "A"}, partial=True), A)},
        ONE_TURN,
    ),
    Variation(
        "thoughts",
        {"s.json": session(HI, event("shop", {"text": "hm.", "thought": True}, {"text": "A."}))},
        ONE_TURN,
    ),
    Variation(
        "an image",
        {
            "s.json": session(
                event(
                    "user", {"text": "Hi"}, {"inlineData": {"mimeType": "image/png", "data": ""}}
                ),
                A,
            )
        },
        ONE_TURN,
        problem="1 of the type 'inlineData'",
    ),
    Variation(
        "words that were spoken",
        {
            "s.json": session(
                {**HI, "content": None, "inputTranscription": {"text": "Hi", "finished": True}},
                {**A, "content": None, "outputTranscription": {"text": "A.", "finished": True}},
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a rewind",
        {
            "s.json": session(
                HI,
                A,
                later("user", "Bye"),
                later("shop", "C."),
                REWOUND,
                more("user", "More?"),
                more("shop", "B."),
            )
        },
        TWO_TURNS,
        problem="rewound to before the invocation 'e2', so what followed it is left out",
    ),
    Variation(
        "a rewind to an invocation that is not there", {"s.json": session(REWOUND, HI, A)}, ONE_TURN
    ),
    Variation(
        "two agents",
        {
            "s.json": session(
                HI,
                event(
                    "shop",
                    {"functionCall": {"name": "transfer_to_agent", "args": {"agent_name": "b"}}},
                ),
                event("b", {"text": "A."}),
            )
        },
        ONE_TURN,
        calls=["b"],
    ),
    Variation(
        "an event without a content",
        {
            "s.json": session(
                HI, {"invocationId": "e", "author": "shop", "actions": {}, "id": "y"}, A
            )
        },
        ONE_TURN,
    ),
    Variation(
        "two turns",
        {"s.json": session(HI, A, event("user", {"text": "More?"}), event("shop", {"text": "B."}))},
        TWO_TURNS,
    ),
    Variation("a list of events", {"s.json": [HI, A]}, ONE_TURN),
    Variation("an event per line", {"s.jsonl": lines(HI, A)}, ONE_TURN),
    Variation(
        "two sessions",
        {"s.jsonl": lines(session(HI, A), session(HI, event("shop", {"text": "C."})))},
        [*ONE_TURN, [("Hi", "C.")]],
    ),
    Variation(
        "an evaluation set",
        {
            "e.json": {
                "eval_set_id": "x",
                "eval_cases": [{"eval_id": "a", "conversation": [INVOCATION]}],
            }
        },
        ONE_TURN,
        calls=["ls"],
    ),
    Variation(
        "an error",
        {"s.json": session(HI, event("shop", errorMessage="Too many requests"), A)},
        ONE_TURN,
    ),
    Variation(
        "a compaction",
        {
            "s.json": session(
                HI,
                A,
                event("shop", actions={"compaction": SUMMARY}),
                event("user", {"text": "More?"}),
                event("shop", {"text": "B."}),
            )
        },
        TWO_TURNS,
    ),
)


def test_a_summary_of_google_adk_replaces_the_events_of_its_time_only(tmp_path):
    def at(time: float, author: str, words: str) -> dict:
        return event(author, {"text": words}, timestamp=time, id=f"x{time}")

    early, late = at(1.0, "user", "Use pnpm."), at(3.0, "user", "Never push.")
    summary = {
        "startTimestamp": 1.0,
        "endTimestamp": 2.0,
        "compactedContent": {"parts": [{"text": "So far."}]},
    }
    compacted = event("shop", actions={"compaction": summary}, content=None, id="k", timestamp=5.0)
    path = tmp_path / "s.json"
    path.write_text(
        json.dumps(
            session(
                early,
                at(2.0, "shop", "A."),
                late,
                at(4.0, "shop", "B."),
                compacted,
                at(6.0, "user", "More?"),
                at(7.0, "shop", "C."),
            )
        )
    )
    (dialog,) = read_logs(path).dialogs
    context = Contexts(dialog.transcript.path).before(len(dialog.transcript.path) - 1)
    assert [event.text for event in context.events] == ["Never push.", "B.", "So far.", "More?"]


def adk_column_row(number: int, author: str, words: str, **fields: Any) -> dict:
    row = adk_row(number, author, words)
    event = json.loads(row.pop("event_data"))
    row |= {"author": author, "content": json.dumps(event["content"]), "actions": b"\x80\x04."}
    return {**row, "partial": None, "error_message": None, **fields}


COVERED = {
    "startTimestamp": 1.0,
    "endTimestamp": 2.0,
    "compactedContent": {"role": "model", "parts": [{"text": "So far."}]},
}

test_databases_of_google_adk = variations(
    Variation(
        "a session",
        {"session.db": database(events=[adk_row(1, "user", "Hi"), adk_row(2, "shop", "A.")])},
        ONE_TURN,
        format="google-adk",
    ),
    Variation(
        "events out of order",
        {"session.db": database(events=[adk_row(2, "shop", "A."), adk_row(1, "user", "Hi")])},
        ONE_TURN,
    ),
    Variation(
        "two sessions",
        {
            "session.db": database(
                events=[
                    adk_row(1, "user", "Hi"),
                    {**adk_row(2, "user", "Hi"), "session_id": "s2"},
                    adk_row(3, "shop", "A."),
                    {**adk_row(4, "shop", "C."), "session_id": "s2"},
                ]
            )
        },
        [*ONE_TURN, [("Hi", "C.")]],
    ),
    Variation(
        "a summary",
        {
            "session.db": database(
                events=[
                    adk_row(1, "user", "Hi"),
                    adk_row(2, "shop", "A."),
                    adk_row(3, "shop", "", content=None, actions={"compaction": COVERED}),
                    adk_row(4, "user", "More?"),
                    adk_row(5, "shop", "B."),
                ]
            )
        },
        TWO_TURNS,
    ),
    Variation(
        "a column for each field",
        {
            "session.db": database(
                events=[
                    adk_column_row(1, "user", "Hi"),
                    adk_column_row(2, "shop", "A."),
                    adk_column_row(3, "shop", "", content=None, error_message="429"),
                ]
            )
        },
        ONE_TURN,
        problem="left out the actions of its events",
    ),
    Variation(
        "an event that is not JSON",
        {
            "session.db": database(
                events=[
                    adk_row(1, "user", "Hi"),
                    {**adk_row(2, "shop", "A."), "event_data": "{"},
                    adk_row(3, "shop", "A."),
                ]
            )
        },
        ONE_TURN,
        problem="event 'e2' is not JSON",
    ),
    Variation(
        "a database of another program",
        {"session.db": database(events=[{"id": 1}]), "s.jsonl": lines(session(HI, A))},
        ONE_TURN,
        problem="is a database of none of",
    ),
)
