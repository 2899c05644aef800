"""Messages as Anthropic's API has them, in variations."""

from typing import Any

from log_variations import HI, IMAGE, ONE_TURN, TWO_TURNS, A, Variation, lines, text, variations


def chatfile(*messages: Any, **fields: Any) -> dict:
    return {"log.jsonl": lines({"messages": [*messages], **fields})}


test_messages_of_anthropic = variations(
    Variation(
        "a sentence that citations split",
        {
            "log.jsonl": lines(
                {
                    "system": "x",
                    "messages": [
                        HI,
                        {
                            "role": "assistant",
                            "content": [
                                text("It costs "),
                                {
                                    **text("5 euros"),
                                    "citations": [{"type": "char_location", "cited_text": "5"}],
                                },
                                text("."),
                            ],
                        },
                    ],
                }
            )
        },
        [[("Hi", "It costs 5 euros.")]],
    ),
    Variation(
        "a prompt as text",
        chatfile(HI, A, system="Be brief."),
        ONE_TURN,
        system="Be brief.",
        format="anthropic",
    ),
    Variation(
        "a prompt in blocks",
        chatfile(HI, A, system=[{**text("Be brief."), "cache_control": {}}]),
        ONE_TURN,
        system="Be brief.",
    ),
    Variation(
        "a call and its result",
        chatfile(
            HI,
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"x": "ls"}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c", "content": "y"}],
            },
            A,
        ),
        ONE_TURN,
        calls=["ls"],
        results=["y"],
    ),
    Variation(
        "a result and words",
        chatfile(
            HI,
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c", "content": [text("y"), IMAGE]},
                    text("More?"),
                ],
            },
            A,
        ),
        [[("Hi", ""), ("More?", "A.")]],
        results=["y"],
        problem="1 of the type 'image'",
    ),
    Variation(
        "thinking",
        chatfile(
            HI,
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "price", "signature": "x"},
                    text("A."),
                ],
            },
        ),
        ONE_TURN,
        format="anthropic",
    ),
    Variation(
        "a document",
        chatfile(
            {
                "role": "user",
                "content": [
                    {"type": "document", "source": {"type": "text", "data": "price"}},
                    text("Hi"),
                ],
            },
            A,
            system="x",
        ),
        ONE_TURN,
        problem="1 of the type 'document'",
    ),
    Variation(
        "a search of the server",
        chatfile(
            HI,
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "server_tool_use",
                        "id": "s",
                        "name": "web_search",
                        "input": {"query": "x"},
                    },
                    {
                        "type": "web_search_tool_result",
                        "tool_use_id": "s",
                        "content": [{"type": "web_search_result", "url": "u", "title": "t"}],
                    },
                    text("A."),
                ],
            },
        ),
        ONE_TURN,
        calls=["x"],
        problem="1 of the type 'web_search_result'",
    ),
    Variation(
        "a request and its response",
        {
            "log.jsonl": lines(
                {
                    "request": {"system": "Be brief.", "messages": [HI]},
                    "response": {
                        "role": "assistant",
                        "type": "message",
                        "content": [text("A.")],
                        "stop_reason": "max_tokens",
                    },
                }
            )
        },
        ONE_TURN,
        system="Be brief.",
        is_cut=True,
    ),
    Variation(
        "a compaction of Anthropic's interface",
        chatfile(
            HI,
            A,
            {"role": "user", "content": "More?"},
            {
                "role": "assistant",
                "content": [{"type": "compaction", "content": "Summary."}, text("B.")],
            },
            system="x",
        ),
        TWO_TURNS,
    ),
)
