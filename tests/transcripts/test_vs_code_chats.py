"""Chats of Copilot in VS Code, in variations."""

from typing import Any

from log_variations import ONE_TURN, TWO_TURNS, Variation, lines, variations


def changes(*values: Any) -> dict:
    return {"c.jsonl": lines(*values)}


def asked(words: str, *response: Any, **fields: Any) -> dict:
    return {
        "requestId": f"r-{words}",
        "message": {"text": words, "parts": []},
        "variableData": {},
        "response": [*response],
        **fields,
    }


def chat(*requests: dict, **fields: Any) -> dict:
    return {
        "version": 3,
        "responderUsername": "GitHub Copilot",
        "initialLocation": "panel",
        "sessionId": "v1",
        "creationDate": 1,
        "requests": [*requests],
        **fields,
    }


def shown(command: str = "ls", **fields: Any) -> dict:
    return {
        "kind": "toolInvocationSerialized",
        "toolId": "run_in_terminal",
        "toolCallId": "c1",
        "isComplete": True,
        "toolSpecificData": {"kind": "terminal", "commandLine": {"original": command}},
        **fields,
    }


PART = {"value": "A.", "supportThemeIcons": False}
HI_A = asked("Hi", PART)
MORE_B = asked("More?", {"value": "B."})

test_chats_of_vs_code = variations(
    Variation(
        "an export",
        {
            "chat.json": {
                n: v
                for n, v in chat(HI_A, MORE_B).items()
                if n not in ("sessionId", "creationDate", "version")
            }
        },
        TWO_TURNS,
        format="copilot",
    ),
    Variation("a message as text", {"c.json": chat({**HI_A, "message": "Hi"})}, ONE_TURN),
    Variation("a part as text", {"c.json": chat(asked("Hi", "A."))}, ONE_TURN),
    Variation(
        "parts of one text",
        {
            "c.json": chat(
                asked("Hi", {"value": "A"}, {"kind": "codeblockUri", "uri": {}}, {"value": "."})
            )
        },
        ONE_TURN,
    ),
    Variation(
        "thinking",
        {"c.json": chat(asked("Hi", {"kind": "thinking", "value": ["hm."]}, PART))},
        ONE_TURN,
    ),
    Variation("a command", {"c.json": chat(asked("Hi", shown(), PART))}, ONE_TURN, calls=["ls"]),
    Variation(
        "a command that the user changed",
        {
            "c.json": chat(
                asked(
                    "Hi",
                    shown(
                        toolSpecificData={
                            "kind": "terminal",
                            "commandLine": {"original": "rm x", "userEdited": "ls"},
                        }
                    ),
                    PART,
                )
            )
        },
        ONE_TURN,
        calls=["ls"],
    ),
    Variation(
        "a request that was cancelled",
        {"c.json": chat(asked("Hi", isCanceled=True), HI_A)},
        [[("Hi\n\nHi", "A.")]],
    ),
    Variation(
        "a response that is null",
        {"c.json": chat({**HI_A, "response": None}, HI_A)},
        [[("Hi\n\nHi", "A.")]],
    ),
    Variation(
        "an error",
        {"c.json": chat(asked("Hi", result={"errorDetails": {"message": "429"}}), HI_A)},
        [[("Hi\n\nHi", "A.")]],
    ),
    Variation(
        "a restored checkpoint",
        {"c.json": chat(HI_A, asked("Or?", {"value": "C."}, isHidden=True), MORE_B)},
        TWO_TURNS,
        problem="restored",
    ),
    Variation(
        "a part of an unknown kind",
        {"c.json": chat(asked("Hi", {"kind": "new"}, PART))},
        ONE_TURN,
        problem="unknown kinds",
    ),
    Variation(
        "an edit",
        {
            "c.json": chat(
                asked(
                    "Hi", {"kind": "textEditGroup", "edits": [], "uri": {"path": "/x/a.py"}}, PART
                )
            )
        },
        ONE_TURN,
        calls=["/x/a.py"],
    ),
    Variation(
        "a reference",
        {
            "c.json": chat(
                asked(
                    "Hi",
                    {"value": "See "},
                    {
                        "kind": "inlineReference",
                        "inlineReference": {"uri": {"path": "/x/a.py"}, "range": {}},
                    },
                )
            )
        },
        [[("Hi", "See a.py")]],
    ),
    Variation(
        "an empty session beside another",
        {"a.json": chat(), "b.json": chat(HI_A)},
        ONE_TURN,
        problem="the assistant says nothing",
    ),
    Variation(
        "a log of changes",
        changes(
            {"kind": 0, "v": chat()},
            {"kind": 2, "k": ["requests"], "v": [asked("Hi")]},
            {"kind": 2, "k": ["requests", 0, "response"], "v": [PART]},
            {"kind": 1, "k": ["customTitle"], "v": "x"},
            {"kind": 2, "k": ["requests"], "v": [MORE_B]},
        ),
        TWO_TURNS,
    ),
    Variation(
        "a log of changes that cuts a list",
        changes(
            {"kind": 0, "v": chat(HI_A, asked("Or?", {"value": "C."}))},
            {"kind": 2, "k": ["requests"], "i": 1, "v": [MORE_B]},
        ),
        TWO_TURNS,
    ),
    Variation(
        "a change of nothing",
        changes({"kind": 0, "v": chat(HI_A)}, {"kind": 2, "k": [], "i": 1, "v": []}),
        ONE_TURN,
        problem="the change at [] fits no earlier state",
    ),
    Variation(
        "a log of changes whose last line was cut",
        changes({"kind": 0, "v": chat(HI_A)}, '{"kind": 2, "k": ["requ'),
        ONE_TURN,
        problem="line 2:",
    ),
    Variation(
        "a call of a model that was recorded",
        {
            "c.json": chat(
                asked(
                    "Hi",
                    shown(),
                    PART,
                    result={
                        "metadata": {
                            "toolCallRounds": [
                                {
                                    "response": "",
                                    "toolCalls": [
                                        {
                                            "id": "c9",
                                            "name": "run_in_terminal",
                                            "arguments": '{"command": "pwd"}',
                                        }
                                    ],
                                }
                            ],
                            "toolCallResults": {"c9": {"content": [{"value": "/x"}]}},
                        }
                    },
                )
            )
        },
        ONE_TURN,
        calls=["pwd"],
        results=["/x"],
    ),
    Variation(
        "two sessions of VS Code",
        {
            "c.jsonl": lines(
                {"kind": 0, "v": chat(HI_A)}, {"kind": 0, "v": chat(MORE_B, sessionId="v2")}
            )
        },
        [ONE_TURN[0], [("More?", "B.")]],
    ),
    Variation(
        "a session of VS Code that is written anew",
        {"c.jsonl": lines({"kind": 0, "v": chat(HI_A)}, {"kind": 0, "v": chat(HI_A, MORE_B)})},
        TWO_TURNS,
    ),
)
