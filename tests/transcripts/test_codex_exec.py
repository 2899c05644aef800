"""The output of `codex exec --json`, in variations."""

from typing import Any

from log_variations import Variation, lines, text, variations


def printed(*values: Any) -> dict:
    return {"o.jsonl": lines(*values)}


def event(kind: str, **fields: Any) -> dict:
    return {"type": kind, **fields}


def completed(kind: str, **fields: Any) -> dict:
    return event("item.completed", item={"id": "item_0", "type": kind, **fields})


BEGIN = [event("thread.started", thread_id="x1"), event("turn.started")]
END = [completed("agent_message", text="A."), event("turn.completed", usage={})]
SAID_A = [[("", "A.")]]

test_output_of_codex_exec = variations(
    Variation(
        "a list of things to do",
        printed(
            *BEGIN,
            event("item.started", item={"id": "item_0", "type": "todo_list", "items": []}),
            completed("todo_list", items=[{"text": "Look", "completed": True}]),
            *END,
        ),
        SAID_A,
        calls=["[{'text': 'Look', 'completed': True}]"],
    ),
    Variation(
        "a search", printed(*BEGIN, completed("web_search", query="x"), *END), SAID_A, calls=["x"]
    ),
    Variation(
        "a command that never ended",
        printed(
            *BEGIN,
            event(
                "item.started",
                item={
                    "id": "i1",
                    "type": "command_execution",
                    "command": "ls",
                    "aggregated_output": "",
                    "status": "in_progress",
                },
            ),
        ),
        [[("", "")]],
        calls=["ls"],
    ),
    Variation(
        "a command that ended",
        printed(
            *BEGIN,
            event("item.started", item={"id": "i1", "type": "command_execution", "command": "ls"}),
            event(
                "item.completed",
                item={
                    "id": "i1",
                    "type": "command_execution",
                    "command": "ls",
                    "aggregated_output": "x",
                    "exit_code": 0,
                },
            ),
            *END,
        ),
        SAID_A,
        calls=["ls"],
        results=["x"],
    ),
    Variation(
        "a tool of a server with its result",
        printed(
            *BEGIN,
            completed(
                "mcp_tool_call",
                server="s",
                tool="f",
                arguments={"x": 1},
                result={"content": [text("ten")]},
                status="completed",
            ),
            *END,
        ),
        SAID_A,
        calls=["1"],
        results=["ten"],
    ),
    Variation(
        "a tool of a server that failed",
        printed(
            *BEGIN,
            completed(
                "mcp_tool_call",
                server="s",
                tool="f",
                arguments=None,
                error={"message": "no"},
                status="failed",
            ),
            *END,
        ),
        SAID_A,
        calls=[""],
        results=["no"],
    ),
    Variation(
        "changes of files",
        printed(
            *BEGIN, completed("file_change", changes=[{"path": "a.py", "kind": "update"}]), *END
        ),
        SAID_A,
        calls=["a.py update"],
    ),
    Variation(
        "a turn that failed",
        printed(*BEGIN, *END[:1], event("turn.failed", error={"message": "429"})),
        SAID_A,
    ),
    Variation("an error", printed(*BEGIN, event("error", message="stream"), *END), SAID_A),
    Variation(
        "items of the first version",
        printed(
            *BEGIN,
            event(
                "item.completed", item={"id": "i", "item_type": "assistant_message", "text": "A."}
            ),
        ),
        SAID_A,
    ),
    Variation(
        "a subagent's call",
        printed(*BEGIN, completed("collab_tool_call", tool="spawn_agent", prompt="Count."), *END),
        SAID_A,
        calls=["Count."],
    ),
    Variation(
        "two turns",
        printed(*BEGIN, *END, BEGIN[1], completed("agent_message", text="B.")),
        [[("", "A."), ("", "B.")]],
    ),
    Variation(
        "an item of an unknown type",
        printed(*BEGIN, completed("new_thing"), *END),
        SAID_A,
        problem="new_thing",
    ),
)
