"""Tasks of Cline and Roo Code, in variations."""

from typing import Any

import pytest
from log_variations import (
    ONE_TURN,
    TWO_TURNS,
    Variation,
    check,
    context_before_last_reply,
    text,
    variations,
)


def task(*messages: dict) -> dict:
    return {"api_conversation_history.json": [*messages]}


def user(*texts: Any, **fields: Any) -> dict:
    blocks = [text(part) if isinstance(part, str) else part for part in texts]
    return {"role": "user", "content": blocks, "ts": 1, **fields}


def assistant(*parts: Any, **fields: Any) -> dict:
    blocks = [text(part) if isinstance(part, str) else part for part in parts]
    return {"role": "assistant", "content": blocks, "ts": 2, **fields}


ENV = "<environment_details>\nprice.py\n</environment_details>"
TASK = user("<task>\nHi\n</task>", ENV)

test_tasks_of_cline = variations(
    Variation("a task", task(TASK, assistant("A.")), ONE_TURN, format="cline"),
    Variation(
        "a completion",
        task(
            TASK, assistant("<attempt_completion>\n<result>\nA.\n</result>\n</attempt_completion>")
        ),
        ONE_TURN,
    ),
    Variation(
        "thinking in the text", task(TASK, assistant("<thinking>hm.</thinking>\nA.")), ONE_TURN
    ),
    Variation(
        "a command in the text",
        task(
            TASK,
            assistant("<execute_command>\n<command>ls</command>\n</execute_command>"),
            user("[execute_command for 'ls'] Result:", "a.py", ENV),
            assistant("A."),
        ),
        ONE_TURN,
        calls=["ls"],
        results=["a.py"],
    ),
    Variation(
        "a result in one text",
        task(
            TASK,
            assistant("<execute_command>\n<command>ls</command>\n</execute_command>"),
            user("[execute_command for 'ls'] Result:\na.py"),
            assistant("A."),
        ),
        ONE_TURN,
        calls=["ls"],
    ),
    Variation(
        "feedback",
        task(TASK, assistant("A."), user("<feedback>\nMore?\n</feedback>", ENV), assistant("B.")),
        TWO_TURNS,
    ),
    Variation(
        "an answer",
        task(
            TASK,
            assistant("A."),
            user("[ask_followup_question for 'x'] Result:", "<answer>\nMore?\n</answer>"),
            assistant("B."),
        ),
        TWO_TURNS,
    ),
    Variation(
        "a native call",
        task(
            TASK,
            assistant(
                {
                    "type": "tool_use",
                    "id": "c1",
                    "name": "execute_command",
                    "input": {"command": "ls"},
                }
            ),
            user({"type": "tool_result", "tool_use_id": "c1", "content": [text("a.py")]}, ENV),
            assistant("A."),
        ),
        ONE_TURN,
        calls=["ls"],
        results=["a.py"],
    ),
    Variation(
        "a task that is resumed",
        task(
            TASK,
            assistant("A."),
            user(
                "[TASK RESUMPTION] This task was interrupted.\n\nNew message to respond to"
                " with plan_mode_respond tool: \n<user_message>\nMore?\n</user_message>",
                ENV,
            ),
            assistant("B."),
        ),
        TWO_TURNS,
    ),
    Variation(
        "content as text",
        task(
            {"role": "user", "content": f"<task>\nHi\n</task>\n{ENV}"},
            {"role": "assistant", "content": "A."},
        ),
        ONE_TURN,
    ),
    Variation(
        "a notice of what was removed",
        task(
            TASK,
            assistant(
                "[NOTE] Some previous conversation history with the user has been removed to"
                " maintain optimal context window length."
            ),
            user("<feedback>More?</feedback>"),
            assistant("B."),
        ),
        [[("Hi\n\nMore?", "B.")]],
    ),
    Variation(
        "reasoning between the messages",
        task(TASK, {"type": "reasoning", "text": "hm.", "ts": 3}, assistant("A.")),
        ONE_TURN,
    ),
    Variation(
        "no tool was used",
        task(
            TASK,
            assistant("A."),
            user("[ERROR] You did not use a tool in your previous response!", ENV),
            assistant("B."),
        ),
        [[("Hi", "A.\n\nB.")]],
    ),
    Variation(
        "a summary",
        task(
            TASK,
            assistant("A."),
            assistant("Summary.", isSummary=True),
            user("<feedback>More?</feedback>"),
            assistant("B."),
        ),
        TWO_TURNS,
    ),
    Variation(
        "what is shown",
        {"ui_messages.json": [{"ts": 1, "type": "say", "say": "text", "text": "Hi"}]},
        refused="api_conversation_history.json",
    ),
)


def roo(role: str, *blocks: Any, **fields: Any) -> dict:
    content_blocks = [text(block) if isinstance(block, str) else block for block in blocks]
    return {"role": role, "content": content_blocks, "ts": 1, **fields}


HIDDEN = {"truncationParent": "t1"}
MARK = {
    "role": "user",
    "content": "[Sliding window truncation: 2 messages hidden]",
    "ts": 2,
    "isTruncationMarker": True,
    "truncationId": "t1",
}
USE = {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": "a"}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "Use pnpm."}
TRUNCATED = [
    roo("user", "Hi"),
    roo("assistant", USE, **HIDDEN),
    roo("user", RESULT, **HIDDEN),
    MARK,
    roo("assistant", "A."),
    roo("user", "More?"),
    roo("assistant", "B."),
]


def test_the_mark_of_a_truncation_of_roo_code_was_not_said(tmp_path):
    check(
        Variation(
            "",
            {"api_conversation_history.json": TRUNCATED},
            TWO_TURNS,
            calls=["a"],
            results=["Use pnpm."],
        ),
        tmp_path,
    )


@pytest.mark.parametrize(("count", "texts"), [(6, ["Hi", "Use pnpm."]), (7, ["Hi", "A.", "More?"])])
def test_what_roo_code_hid_left_the_context_once_as_many_messages_had_followed(
    count, texts, tmp_path
):
    name = "api_conversation_history.json"
    assert context_before_last_reply(tmp_path, name, TRUNCATED[:count]) == texts
