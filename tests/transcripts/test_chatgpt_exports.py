"""Exports of ChatGPT, in variations."""

from typing import Any

from log_variations import ONE_TURN, TWO_TURNS, Variation, variations


def node(role: str, words: Any, parent: str | None, kind: str = "text", **fields: Any) -> dict:
    content = {"content_type": kind, "parts": words if isinstance(words, list) else [words]}
    message = {"author": {"role": role}, "content": content, "recipient": "all", **fields}
    return {"parent": parent, "children": [], "message": message}


def export(last: str | None = "2", **nodes: dict) -> list:
    tree = {"root": {"parent": None, "message": None}}
    tree |= {name.removeprefix("n"): {"id": name, **fields} for name, fields in nodes.items()}
    return [{"title": "t", "mapping": tree, "current_node": last, "conversation_id": "c"}]


HI, A = node("user", "Hi", "root"), node("assistant", "A.", "1")
HIDDEN = {"metadata": {"is_visually_hidden_from_conversation": True}}

test_exports_of_chatgpt = variations(
    Variation("an export", {"conversations.json": export(n1=HI, n2=A)}, ONE_TURN, format="chatgpt"),
    Variation("one conversation", {"c.json": export(n1=HI, n2=A)[0]}, ONE_TURN),
    Variation(
        "a hidden system message",
        {
            "c.json": export(
                n0=node("system", "", "root", **HIDDEN), n1=node("user", "Hi", "0"), n2=A
            )
        },
        ONE_TURN,
        system="",
    ),
    Variation("no current node", {"c.json": export(None, n1=HI, n2=A)}, ONE_TURN),
    Variation(
        "another answer",
        {"c.json": export("3", n1=HI, n2=A, n3=node("assistant", "B.", "1"))},
        [[("Hi", "B.")]],
        problem="1 message of abandoned",
    ),
    Variation(
        "an edited question",
        {
            "c.json": export(
                "4", n1=HI, n2=A, n3=node("user", "Or?", "root"), n4=node("assistant", "B.", "3")
            )
        },
        [[("Or?", "B.")]],
        problem="2 messages of abandoned",
    ),
    Variation(
        "an image",
        {
            "c.json": export(
                n1=node(
                    "user",
                    [{"content_type": "image_asset_pointer", "asset_pointer": "file://x"}, "Hi"],
                    "root",
                    "multimodal_text",
                ),
                n2=A,
            )
        },
        ONE_TURN,
        problem="1 of the type 'image_asset_pointer'",
    ),
    Variation(
        "a text that is an object",
        {"c.json": export(n1=node("user", [{"content_type": "text", "text": "Hi"}], "root"), n2=A)},
        ONE_TURN,
    ),
    Variation(
        "thoughts",
        {
            "c.json": export(
                "3",
                n1=HI,
                n2={
                    "parent": "1",
                    "message": {
                        "author": {"role": "assistant"},
                        "recipient": "all",
                        "content": {
                            "content_type": "thoughts",
                            "thoughts": [{"summary": "x", "content": "price"}],
                        },
                    },
                },
                n3=node("assistant", "A.", "2"),
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a call of a tool",
        {
            "c.json": export(
                "4",
                n1=HI,
                n2={
                    "parent": "1",
                    "message": {
                        "author": {"role": "assistant"},
                        "recipient": "python",
                        "content": {
                            "content_type": "code",
                            "language": "python",
                            "text": "print(1)",
                        },
                    },
                },
                n3={
                    "parent": "2",
                    "message": {
                        "author": {"role": "tool", "name": "python"},
                        "content": {"content_type": "execution_output", "text": "1"},
                    },
                },
                n4=node("assistant", "A.", "3"),
            )
        },
        ONE_TURN,
        calls=["print(1)"],
        results=["1"],
    ),
    Variation(
        "a page that was quoted",
        {
            "c.json": export(
                "3",
                n1=HI,
                n2={
                    "parent": "1",
                    "message": {
                        "author": {"role": "tool"},
                        "content": {"content_type": "tether_browsing_display", "result": "price"},
                    },
                },
                n3=node("assistant", "A.", "2"),
            )
        },
        ONE_TURN,
        results=["price"],
    ),
    Variation(
        "parts that are null",
        {
            "c.json": export(
                "3", n1=HI, n2=node("assistant", [None], "1"), n3=node("assistant", "A.", "2")
            )
        },
        ONE_TURN,
    ),
    Variation(
        "two conversations",
        {"c.json": export(n1=HI, n2=A) + export(n1=HI, n2=node("assistant", "B.", "1"))},
        [ONE_TURN[0], [("Hi", "B.")]],
    ),
    Variation(
        "an unfinished conversation",
        {"c.json": export(n1=HI, n2=A) + export("1", n1=HI)},
        ONE_TURN,
        problem="the assistant says nothing",
    ),
    Variation(
        "the same conversation in two exports",
        {
            "a.json": export("2" * 36, **{"1": HI, "2" * 36: A}),
            "b.json": export(
                "4" * 36,
                **{
                    "1": HI,
                    "2" * 36: A,
                    "3": node("user", "More?", "2" * 36),
                    "4" * 36: node("assistant", "B.", "3"),
                },
            ),
        },
        TWO_TURNS,
        problem="its only turn is in",
    ),
    Variation(
        "an error of ChatGPT",
        {
            "c.json": export(
                "3",
                n1=HI,
                n2={
                    "parent": "1",
                    "message": {
                        "author": {"role": "assistant"},
                        "recipient": "all",
                        "content": {"content_type": "system_error", "name": "x", "text": "429"},
                    },
                },
                n3=node("assistant", "A.", "2"),
            )
        },
        ONE_TURN,
    ),
)
