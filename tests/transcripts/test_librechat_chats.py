"""Exports of LibreChat: variations, reasoning and errors."""

from typing import Any

import pytest
from agent_sessions import write
from log_variations import ONE_TURN, TWO_TURNS, Variation, text, variations
from read_dialogs import dialog_in, turns_of

from holdfast.errors import UsageError
from holdfast.logs import read_logs

ROOT = "00000000-0000-4000-8000-000000000000"


def message(name: str, parent: str, is_user: bool, words: Any, **fields: Any) -> dict:
    return {
        "messageId": name,
        "parentMessageId": parent,
        "isCreatedByUser": is_user,
        "text": words,
        "sender": "User" if is_user else "GPT",
        "conversationId": "c",
        **fields,
    }


def export(*messages: dict, **fields: Any) -> dict:
    return {
        "conversationId": "c",
        "endpoint": "openAI",
        "title": "t",
        "recursive": False,
        "branches": True,
        "options": {},
        "messages": [*messages],
        **fields,
    }


HI, A = message("1", ROOT, True, "Hi"), message("2", "1", False, "A.")

test_exports_of_librechat = variations(
    Variation("an export", {"x.json": export(HI, A)}, ONE_TURN, format="librechat"),
    Variation(
        "a prompt",
        {"x.json": export(HI, A, options={"promptPrefix": "Be brief."})},
        ONE_TURN,
        system="Be brief.",
    ),
    Variation(
        "another answer",
        {"x.json": export(HI, A, message("3", "1", False, "B."))},
        [[("Hi", "B.")]],
        problem="1 message of abandoned",
    ),
    Variation(
        "a nested export",
        {"x.json": export({**HI, "children": [A]}, recursive=True)},
        refused="nested",
    ),
    Variation(
        "content in parts",
        {
            "x.json": export(
                HI,
                message(
                    "2",
                    "1",
                    False,
                    "",
                    content=[{"type": "think", "think": "price"}, {"type": "text", "text": "A."}],
                ),
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a call",
        {
            "x.json": export(
                HI,
                message(
                    "2",
                    "1",
                    False,
                    "",
                    content=[
                        {
                            "type": "tool_call",
                            "tool_call": {
                                "id": "c",
                                "name": "f",
                                "args": '{"x": "ls"}',
                                "output": "y",
                            },
                        },
                        {"type": "text", "text": "A."},
                    ],
                ),
            )
        },
        ONE_TURN,
        calls=["ls"],
        results=["y"],
    ),
    Variation(
        "an unfinished answer",
        {"x.json": export(HI, {**A, "unfinished": True})},
        ONE_TURN,
        is_cut=False,
    ),
    Variation(
        "text that is null",
        {"x.json": export(HI, message("9", "1", False, None), message("2", "9", False, "A."))},
        ONE_TURN,
    ),
)


def message_of_parts(name: str, parent: str, is_user: bool, *content: Any) -> dict:
    return {
        "messageId": name,
        "parentMessageId": parent,
        "isCreatedByUser": is_user,
        "text": "",
        "content": [text(part) if isinstance(part, str) else part for part in content],
    }


def agent_chat(*messages: dict) -> dict:
    return {"x.json": {"conversationId": "c", "endpoint": "agents", "messages": [*messages]}}


HI_OF_PARTS = message_of_parts("1", "0", True, "Hi")
FUNCTION = {
    "type": "function",
    "id": "c1",
    "function": {"name": "bash", "arguments": '{"command": "ls"}', "output": "a.py"},
}
INTERPRETER = {
    "type": "code_interpreter",
    "id": "c2",
    "code_interpreter": {"input": "1 + 1", "outputs": [{"type": "logs", "logs": "2"}]},
}
SEARCH = {"type": "file_search", "id": "c3", "file_search": {}}

test_chats_of_librechat_in_2026 = variations(
    Variation(
        "calls of assistants",
        agent_chat(
            HI_OF_PARTS,
            message_of_parts(
                "2",
                "1",
                False,
                *(
                    {"type": "tool_call", "tool_call": call}
                    for call in (FUNCTION, INTERPRETER, SEARCH)
                ),
                "A.",
            ),
        ),
        ONE_TURN,
        calls=["ls", "1 + 1", ""],
        results=["a.py", "2"],
    ),
    Variation(
        "another agent goes on",
        agent_chat(
            HI_OF_PARTS,
            message_of_parts(
                "2",
                "1",
                False,
                {
                    "type": "agent_update",
                    "agent_update": {"agentId": "a", "runId": "r", "index": 1},
                },
                "A.",
            ),
        ),
        ONE_TURN,
    ),
    Variation(
        "an error after a part of the reply",
        agent_chat(
            HI_OF_PARTS,
            message_of_parts(
                "2", "1", False, "A.", {"type": "error", "error": "429", "text": "price"}
            ),
        ),
        ONE_TURN,
    ),
    Variation(
        "a summary of the dialog so far",
        agent_chat(
            HI_OF_PARTS,
            message_of_parts("2", "1", False, "A."),
            message_of_parts("3", "2", True, "More?"),
            message_of_parts(
                "4",
                "3",
                False,
                {"type": "summary", "content": [text("So far.")], "tokenCount": 9},
                "B.",
            ),
        ),
        TWO_TURNS,
        seen=[],
    ),
)


def test_a_nested_export_of_librechat_is_refused_by_name(tmp_path):
    nested = {"messageId": "m1", "isCreatedByUser": True, "text": "Hi.", "children": []}
    path = write(tmp_path, {"conversationId": "c", "recursive": True, "messages": [nested]})
    with pytest.raises(UsageError, match="LibreChat"):
        read_logs([path])


def export_with_answer(**answer) -> dict:
    first = {"messageId": "a", "parentMessageId": "0", "isCreatedByUser": True, "text": "Hi"}
    second = {"messageId": "b", "parentMessageId": "a", "isCreatedByUser": False, **answer}
    return {"conversationId": "c", "recursive": False, "messages": [first, second]}


@pytest.mark.parametrize(
    "answer",
    [
        {"text": ":::thinking\nhm. no.\n:::\n\nTen."},
        {"content": [{"type": "think", "think": "hm."},
                     {"type": "text", "text": {"value": "Ten."}}]},
    ],
)  # fmt: skip
def test_texts_of_librechat_in_every_form_are_read_without_reasoning(answer, tmp_path):
    assert turns_of(dialog_in(tmp_path, "a.json", export_with_answer(**answer))) == [("Hi", "Ten.")]


def test_an_error_of_librechat_is_no_reply(tmp_path):
    log = export_with_answer(text="Something went wrong. Try again.", error=True)
    messages = [
        {"messageId": "c", "parentMessageId": "b", "isCreatedByUser": True, "text": "?"},
        {"messageId": "d", "parentMessageId": "c", "isCreatedByUser": False, "text": "A."},
    ]
    log["messages"] += messages
    assert turns_of(dialog_in(tmp_path, "a.json", log)) == [("Hi\n\n?", "A.")]
