"""Chats of VS Code with agents that record no calls: these are read from what is displayed."""

import json
from typing import Any

import pytest
from log_variations import (
    ONE_TURN,
    TWO_TURNS,
    Variation,
    check,
    context_before_last_reply,
    variations,
)

from holdfast.transcripts import read_transcripts


def vscode(*parts: dict, **request: Any) -> dict:
    answer = [{"value": "A.", "kind": "markdownContent", "content": {"value": "A."}}]
    asked = {"message": {"text": "Hi"}, "response": [*parts, *answer], **request}
    return {"c.json": {"version": 3, "sessionId": "v", "requests": [asked]}}


def shown(tool: str, data: Any = None, **fields: Any) -> dict:
    return {
        "kind": "toolInvocationSerialized",
        "toolId": tool,
        "toolCallId": tool,
        "isConfirmed": {"type": 1},
        "isComplete": True,
        "toolSpecificData": data,
        **fields,
    }


def recorded(*content: dict) -> dict:
    call = {"id": "c", "name": "run", "arguments": '{"command": "ls"}'}
    rounds = [{"response": "", "toolCalls": [call]}]
    return {"metadata": {"toolCallRounds": rounds, "toolCallResults": {"c": {"content": content}}}}


PATH = {"path": "/w/a.py", "scheme": "file"}
RUNS = shown(
    "run",
    {
        "kind": "terminal",
        "language": "sh",
        "commandLine": {"original": "ls"},
        "terminalCommandOutput": {"text": "a.py"},
    },
)
PNG = {"type": "embed", "value": "AA==", "isText": False, "mimeType": "image/png"}
STARTS = shown(
    "task", {"kind": "subagent", "description": "d", "prompt": "Look", "result": "Done."}
)
INNER = {**RUNS, "subAgentInvocationId": "task"}

test_what_vscode_displays = variations(
    Variation(
        "a command's output",
        vscode(RUNS),
        ONE_TURN,
        calls=["ls"],
        results=["a.py"],
        format="copilot",
    ),
    Variation(
        "a tool's input and output",
        vscode(shown("t", {"kind": "simpleToolInvocation", "input": "x", "output": "y"})),
        ONE_TURN,
        calls=["x"],
        results=["y"],
    ),
    Variation(
        "a server's text and image",
        vscode(
            shown(
                "t",
                resultDetails={
                    "input": '{"q": "x"}',
                    "output": [{"type": "embed", "value": "y", "isText": True}, PNG],
                },
            )
        ),
        ONE_TURN,
        calls=["x"],
        results=["y"],
        problem="image",
    ),
    Variation(
        "an image alone",
        vscode(
            shown(
                "t",
                {"kind": "generatedImage"},
                resultDetails={
                    "output": {"type": "data", "mimeType": "image/png", "base64Data": "AA=="}
                },
            )
        ),
        ONE_TURN,
        results=[""],
        problem="image",
    ),
    Variation(
        "a failure",
        vscode(shown("t", {"kind": "input", "rawInput": {"q": "x"}}, resultError="No such file")),
        ONE_TURN,
        calls=["x"],
        results=["No such file"],
    ),
    Variation(
        "a file that an agent outside changed",
        vscode({"kind": "externalEdit", "uri": PATH, "editKind": "edit"}),
        ONE_TURN,
        calls=["/w/a.py"],
    ),
    Variation(
        "a file that a displayed call changed",
        vscode(
            shown("edit", {"kind": "input", "rawInput": {"path": "/w/a.py"}}),
            {"kind": "externalEdit", "uri": PATH, "editKind": "edit", "undoStopId": "edit"},
        ),
        ONE_TURN,
        calls=["/w/a.py"],
    ),
    Variation(
        "a file that was deleted",
        vscode({"kind": "workspaceEdit", "edits": [{"oldResource": PATH}]}),
        ONE_TURN,
        calls=["/w/a.py"],
    ),
    Variation(
        "a subagent's calls",
        vscode(STARTS, INNER),
        [*ONE_TURN, [("Look", "Done.")]],
        calls=["d Look", "ls"],
        results=["Done.", "a.py"],
        subagents=1,
    ),
    Variation(
        "a result as a tree, and an image",
        vscode(
            result=recorded(
                {
                    "$mid": 23,
                    "value": {
                        "node": {
                            "type": 1,
                            "children": [
                                {"type": 2, "text": "a.py", "lineBreakBefore": True},
                                {
                                    "type": 1,
                                    "children": [
                                        {"type": 2, "text": "b.py", "lineBreakBefore": True}
                                    ],
                                },
                            ],
                        }
                    },
                },
                {"$mid": 24, "mimeType": "image/png", "data": {"$mid": 16}},
            )
        ),
        ONE_TURN,
        calls=["ls"],
        results=["a.py\nb.py"],
        problem="image",
    ),
    Variation(
        "what was put around the user's words, and a hook's",
        vscode(
            result={
                "metadata": {
                    "renderedUserMessage": [
                        {
                            "type": 1,
                            "text": "<context>Today.</context>\n<userRequest>\nHi\n</userRequest>",
                        }
                    ],
                    "toolCallRounds": [
                        {"id": "r", "toolCalls": [], "hookContext": "Run the tests."}
                    ],
                }
            }
        ),
        ONE_TURN,
        seen=["<context>Today.</context>", "Run the tests."],
    ),
    Variation(
        "progress",
        vscode(
            {"kind": "mcpServersStartingSlow"},
            {"kind": "voiceProgress", "id": "planning", "value": "x"},
        ),
        ONE_TURN,
    ),
    Variation(
        "a request of the program's", vscode(isSystemInitiated=True), [[("", "A.")]], seen=["Hi"]
    ),
    Variation(
        "a call in VS Code whose end is an object",
        {
            "c.json": {
                "version": 3,
                "sessionId": "v",
                "requests": [
                    {
                        "message": {"text": "Hi"},
                        "response": [
                            {
                                "kind": "toolInvocationSerialized",
                                "toolId": "run_in_terminal",
                                "toolCallId": "c1",
                                "isComplete": {"status": "done"},
                                "toolSpecificData": {
                                    "kind": "terminal",
                                    "commandLine": {"original": "ls"},
                                },
                            },
                            {"value": "A."},
                        ],
                    }
                ],
            }
        },
        ONE_TURN,
        calls=["ls"],
        results=[""],
    ),
)


def vscode_request(words: str, answer: str, round_id: str, **metadata: Any) -> dict:
    call = {"id": f"c-{round_id}", "name": "run", "arguments": '{"command": "ls"}'}
    rounds = [{"id": round_id, "response": "", "toolCalls": [call], **metadata.pop("round", {})}]
    results = {call["id"]: {"content": [{"value": "a.py"}]}}
    recorded = {"toolCallRounds": rounds, "toolCallResults": results, **metadata}
    return {
        "message": {"text": words},
        "response": [{"value": answer}],
        "result": {"metadata": recorded},
    }


@pytest.mark.parametrize(
    ("of_round", "context"),
    [("r1", ["Summary.", "More?", "a.py"]), ("r2", ["Summary."])],
)
def test_a_summary_of_vscode_replaces_what_came_before_its_round(tmp_path, of_round, context):
    summary = {"toolCallRoundId": of_round, "text": "Summary."}
    content = {
        "version": 3,
        "sessionId": "v",
        "requests": [
            vscode_request("Hi", "A.", "r1"),
            vscode_request("More?", "B.", "r2", summary=summary),
        ],
    }
    check(Variation("", {"c.json": content}, TWO_TURNS, calls=["ls", "ls"]), tmp_path)
    assert context_before_last_reply(tmp_path, "c.json", content) == context


def test_a_summary_that_only_its_round_of_vscode_has_is_read(tmp_path):
    content = {
        "version": 3,
        "sessionId": "v",
        "requests": [
            vscode_request("Hi", "A.", "r1"),
            vscode_request("More?", "B.", "r2", round={"summary": "Summary."}),
        ],
    }
    assert context_before_last_reply(tmp_path, "c.json", content) == ["Summary."]


@pytest.mark.parametrize("rendered", ["Hi", "<prompt>\nHi\n</prompt>"])
def test_the_users_words_in_a_message_as_vs_code_rendered_it_are_said_once(rendered, tmp_path):
    shown = {
        "kind": "toolInvocationSerialized",
        "toolId": "run",
        "toolCallId": "t",
        "isComplete": True,
        "toolSpecificData": {
            "commandLine": {"original": "ls"},
            "terminalCommandOutput": {"text": "a.py"},
        },
        "resultDetails": {"output": [{"value": "a.py"}]},
    }
    metadata = {"renderedUserMessage": [{"type": 1, "text": rendered}]}
    request = {
        "requestId": "r1",
        "message": {"text": "Hi"},
        "response": [shown, {"value": "A."}],
        "result": {"metadata": metadata},
    }
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"version": 3, "sessionId": "s", "requests": [request]}))
    (file,) = read_transcripts(path)
    texts = [event.text for event in file.transcripts[0].path if not event.call]
    assert texts == ["Hi", "a.py", "A."]
