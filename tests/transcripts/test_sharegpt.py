"""Dialogs of ShareGPT, in variations."""

from typing import Any

from log_variations import HI, ONE_TURN, A, Variation, lines, variations


def turn(speaker: str, words: Any) -> dict:
    return {"from": speaker, "value": words}


test_sharegpt = variations(
    Variation(
        "a dialog",
        {"x.jsonl": lines({"conversations": [turn("human", "Hi"), turn("gpt", "A.")]})},
        ONE_TURN,
        format="sharegpt",
    ),
    Variation(
        "a prompt among the turns",
        {
            "x.jsonl": lines(
                {
                    "conversations": [
                        turn("system", "Be brief."),
                        turn("human", "Hi"),
                        turn("gpt", "A."),
                    ]
                }
            )
        },
        ONE_TURN,
        system="Be brief.",
    ),
    Variation(
        "a prompt beside the turns",
        {
            "x.jsonl": lines(
                {"system": "Be brief.", "conversations": [turn("human", "Hi"), turn("gpt", "A.")]}
            )
        },
        ONE_TURN,
        system="Be brief.",
    ),
    Variation(
        "other names",
        {"x.jsonl": lines({"conversations": [turn("user", "Hi"), turn("chatgpt", "A.")]})},
        ONE_TURN,
    ),
    Variation("roles and contents", {"x.jsonl": lines({"conversations": [HI, A]})}, ONE_TURN),
    Variation(
        "a document",
        {"x.json": [{"id": "1", "conversations": [turn("human", "Hi"), turn("gpt", "A.")]}]},
        ONE_TURN,
    ),
    Variation(
        "a call",
        {
            "x.jsonl": lines(
                {
                    "tools": "[]",
                    "conversations": [
                        turn("human", "Hi"),
                        turn("function_call", '{"name": "f", "arguments": {"x": "ls"}}'),
                        turn("observation", "y"),
                        turn("gpt", "A."),
                    ],
                }
            )
        },
        ONE_TURN,
        calls=["ls"],
        results=["y"],
    ),
    Variation(
        "a weight",
        {
            "x.jsonl": lines(
                {
                    "conversations": [
                        {**turn("human", "Hi"), "weight": 0},
                        {**turn("gpt", "A."), "weight": 1},
                    ]
                }
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a value that is null",
        {
            "x.jsonl": lines(
                {"conversations": [turn("human", "Hi"), turn("gpt", None), turn("gpt", "A.")]}
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a pair of texts",
        {
            "x.jsonl": lines(
                {"conversations": [turn("human", "Hi"), turn("gpt", "A.")]},
                {"conversation": [{"human": "Hi", "assistant": "A."}]},
            )
        },
        ONE_TURN,
        problem="line 2",
    ),
)
