"""Exports of Claude.ai, in variations."""

from typing import Any

from log_variations import ONE_TURN, Variation, text, variations


def message(sender: str, words: str = "", **fields: Any) -> dict:
    return {
        "sender": sender,
        "text": words,
        "content": [text(words)] if words else [],
        "attachments": [],
        "files": [],
        "created_at": "t",
        **fields,
    }


def export(*messages: dict, **fields: Any) -> list:
    return [{"uuid": "c", "name": "t", "chat_messages": [*messages], **fields}]


def branch(uuid: str, parent: str) -> dict:
    return {"uuid": uuid, "parent_message_uuid": parent}


ROOT = "00000000-0000-4000-8000-000000000000"
HI, A = message("human", "Hi", **branch("1", ROOT)), message("assistant", "A.", **branch("2", "1"))

test_exports_of_claude_ai = variations(
    Variation("an export", {"conversations.json": export(HI, A)}, ONE_TURN, format="claude-ai"),
    Variation(
        "no parents",
        {"c.json": export(message("human", "Hi"), message("assistant", "A."))},
        ONE_TURN,
    ),
    Variation(
        "text without content",
        {
            "c.json": export(
                {"sender": "human", "text": "Hi"},
                {"sender": "assistant", "text": "A.", "content": None},
            )
        },
        ONE_TURN,
    ),
    Variation(
        "thinking",
        {
            "c.json": export(
                HI, {**A, "content": [{"type": "thinking", "thinking": "price"}, text("A.")]}
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a tool",
        {
            "c.json": export(
                HI,
                {
                    **A,
                    "content": [
                        {"type": "tool_use", "name": "web_search", "input": {"query": "x"}},
                        {
                            "type": "tool_result",
                            "name": "web_search",
                            "content": [{"type": "knowledge", "title": "t"}],
                        },
                        text("A."),
                    ],
                },
            )
        },
        ONE_TURN,
        calls=["x"],
        problem="1 of the type 'knowledge'",
    ),
    Variation(
        "an edited question",
        {
            "c.json": export(
                HI,
                A,
                message("human", "Or?", **branch("3", ROOT)),
                message("assistant", "B.", **branch("4", "3")),
                current_leaf_message_uuid="4",
            )
        },
        [[("Or?", "B.")]],
        problem="2 messages of abandoned",
    ),
    Variation(
        "an edited question without a leaf",
        {
            "c.json": export(
                HI,
                A,
                message("human", "Or?", **branch("3", ROOT)),
                message("assistant", "B.", **branch("4", "3")),
            )
        },
        [[("Or?", "B.")]],
        problem="2 messages of abandoned",
    ),
    Variation(
        "a flag in a reply",
        {
            "c.json": export(
                HI,
                {
                    **A,
                    "content": [
                        text("A."),
                        {"type": "flag", "flag": "x"},
                        {"type": "token_budget"},
                    ],
                },
            )
        },
        ONE_TURN,
    ),
    Variation(
        "an empty conversation",
        {"c.json": export(HI, A) + export()},
        ONE_TURN,
        problem="the assistant says nothing",
    ),
    Variation(
        "an attachment",
        {
            "c.json": export(
                {**HI, "attachments": [{"file_name": "a.txt", "extracted_content": "price"}]}, A
            )
        },
        ONE_TURN,
        seen=["price"],
    ),
)
