"""Exports of ChatGPT: variations, branches, and what was spoken, cited or cut."""

from typing import Any

from log_variations import ONE_TURN, TWO_TURNS, Variation, variations
from read_dialogs import dialog_in, read_lines, turns_of


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


# Branches


def slogans(current):
    def node(name, parent, role, text):
        content = {"content_type": "text", "parts": [text]}
        message = {"author": {"role": role}, "content": content, "metadata": {}}
        return {"id": name, "parent": parent, "message": message}

    nodes = [
        {"id": "root", "parent": None, "message": None},
        node("u1", "root", "user", "A slogan."),
        node("a1", "u1", "assistant", "One. Two."),
        node("a2", "u1", "assistant", "Buy now."),
    ]
    return {"current_node": current, "mapping": {item["id"]: item for item in nodes}}


def test_the_branch_that_an_export_shows_is_read(tmp_path):
    turns, (problem,), _ = read_lines(tmp_path, slogans("a1"))
    assert turns == [("A slogan.", "One. Two.")] and "1 message of abandoned" in problem


# What was spoken, cited or cut


def conversation(*messages: dict) -> list:
    names = [str(number) for number in range(len(messages))]
    nodes = {
        name: {"id": name, "parent": str(number - 1) if number else None, "message": message}
        for number, (name, message) in enumerate(zip(names, messages, strict=True))
    }
    return [{"title": "t", "mapping": nodes, "current_node": names[-1]}]


def turn(role: str, *parts: Any, kind: str = "text", **fields) -> dict:
    content = {"content_type": kind, "parts": list(parts)}
    return {"author": {"role": role}, "content": content, "recipient": "all", **fields}


def test_what_was_spoken_to_chatgpt_was_said(tmp_path):
    user_speech = {"content_type": "audio_transcription", "text": "What does it cost?"}
    assistant_speech = {"content_type": "audio_transcription", "text": "Ten."}
    sound = {"content_type": "audio_asset_pointer"}
    log = conversation(
        turn("user", user_speech, sound, kind="multimodal_text"),
        turn("assistant", assistant_speech, sound, kind="multimodal_text"),
    )
    assert turns_of(dialog_in(tmp_path, "conversations.json", log)) == [
        ("What does it cost?", "Ten.")
    ]


def test_an_answer_of_chatgpt_that_was_cut_has_no_end(tmp_path):
    ends = {"metadata": {"finish_details": {"type": "max_tokens"}}}
    dialog = dialog_in(
        tmp_path,
        "conversations.json",
        conversation(turn("user", "Hi"), turn("assistant", "It", **ends)),
    )
    assert [turn.done.is_cut for turn in dialog.turns] == [True]


def test_custom_instructions_of_chatgpt_were_in_the_context(tmp_path):
    content = {"content_type": "user_editable_context", "user_instructions": "Answer in German."}
    hidden = {"is_visually_hidden_from_conversation": True}
    custom = {"author": {"role": "user"}, "content": content, "metadata": hidden}
    log = conversation(custom, turn("user", "Hi"), turn("assistant", "A."))
    dialog = dialog_in(tmp_path, "conversations.json", log)
    assert turns_of(dialog) == [("Hi", "A.")]
    assert dialog.transcript.path[0].text == "Answer in German."


def test_the_mark_of_a_citation_is_no_text(tmp_path):
    cited = "It is ten. \ue200cite\ue202turn0search0\ue201"
    log = conversation(turn("user", "Hi"), turn("assistant", cited))
    assert turns_of(dialog_in(tmp_path, "conversations.json", log)) == [("Hi", "It is ten.")]
