"""Chats of SillyTavern: variations, and versions of a message."""

from typing import Any

from agent_sessions import write
from log_variations import ONE_TURN, Variation, lines, variations
from read_dialogs import read_file

from holdfast.transcripts import read_transcripts


def message(name: str, is_user: bool, words: str, **fields: Any) -> dict:
    return {
        "name": name,
        "is_user": is_user,
        "is_system": False,
        "mes": words,
        "send_date": "t",
        "extra": {},
        **fields,
    }


HEAD = {"user_name": "Ada", "character_name": "Luna", "create_date": "t", "chat_metadata": {}}
HI, A = message("Ada", True, "Hi"), message("Luna", False, "A.")

test_chats_of_sillytavern = variations(
    Variation("a chat", {"x.jsonl": lines(HEAD, HI, A)}, ONE_TURN, format="sillytavern"),
    Variation(
        "a greeting",
        {"x.jsonl": lines(HEAD, message("Luna", False, "Hello."), HI, A)},
        [[("", "Hello."), ("Hi", "A.")]],
    ),
    Variation(
        "swipes",
        {"x.jsonl": lines(HEAD, HI, {**A, "swipes": ["B.", "A."], "swipe_id": 1})},
        ONE_TURN,
        problem="1 other version",
    ),
    Variation(
        "reasoning", {"x.jsonl": lines(HEAD, HI, {**A, "extra": {"reasoning": "price"}})}, ONE_TURN
    ),
    Variation(
        "a note of the program",
        {
            "x.jsonl": lines(
                HEAD, HI, {**message("SillyTavern System", False, "price"), "is_system": True}, A
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a small notice of an extension's",
        {
            "x.jsonl": lines(
                HEAD,
                HI,
                {**message("Tool", False, "price", extra={"isSmallSys": True}), "is_system": True},
                A,
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a message that was hidden",
        {"x.jsonl": lines(HEAD, {**HI, "is_system": True}, A)},
        ONE_TURN,
    ),
    Variation(
        "a narrator",
        {"x.jsonl": lines(HEAD, message("x", False, "price", extra={"type": "narrator"}), HI, A)},
        ONE_TURN,
        seen=["price"],
    ),
    Variation(
        "a last line that was cut",
        {"x.jsonl": lines(HEAD, HI, A, '{"name": "Ad')},
        ONE_TURN,
        problem="line 4:",
    ),
    Variation(
        "two chats of SillyTavern",
        {
            "x.jsonl": lines(
                HEAD, HI, A, HEAD, message("Ada", True, "More?"), message("Luna", False, "B.")
            )
        },
        [ONE_TURN[0], [("More?", "B.")]],
    ),
)


def test_only_the_selected_version_of_a_message_is_read(tmp_path):
    def line(words, is_user=False, **fields):
        return {"name": "x", "is_user": is_user, "is_system": False, "mes": words, **fields}

    path = write(
        tmp_path,
        {"chat_metadata": {}, "user_name": "unused", "character_name": "unused"},
        line("Welcome."),
        line("Hi.", is_user=True),
        line("Two.", swipe_id=1, swipes=["One.", "Two.", "Three."]),
        line("Hidden later.", is_system=True),
        line("Rain falls.", extra={"type": "narrator"}),
        {**line("A notice.", extra={"type": "comment"}), "is_system": True},
        line("Bye.", is_user=True),
        line("Bye!"),
    )
    turns, (problem,), _ = read_file(path)
    assert turns == [("", "Welcome."), ("Hi.", "Two.\n\nHidden later."), ("Bye.", "Bye!")]
    assert "2 other versions" in problem
    (file,) = read_transcripts(path)
    assert {"One.", "Three."} <= {event.text for event in file.transcripts[0].events}
