"""Histories of aider: variations, several sessions in a file, and quotations."""

from agent_files import AIDER_HISTORY
from log_variations import ONE_TURN, TWO_TURNS, Variation, variations
from read_dialogs import calls_of, dialog_in, files_changed, turns_of, write_document

from holdfast.logs import read_logs

AIDER = "# aider chat started at 2026-05-01 10:00:00\n\n> Aider v0.86.1  \n\n"

test_histories_of_aider = variations(
    Variation(
        "a session",
        {".aider.chat.history.md": AIDER + "#### Hi  \n\nA.\n\n> Tokens: 1k sent  \n"},
        ONE_TURN,
    ),
    Variation(
        "a message of several lines",
        {".aider.chat.history.md": AIDER + "#### H  \n#### i  \n\nA.\n"},
        [[("H\ni", "A.")]],
    ),
    Variation(
        "a heading in a reply",
        {".aider.chat.history.md": AIDER + "#### Hi  \n\n## Price\n\nA.\n"},
        [[("Hi", "## Price\n\nA.")]],
    ),
    Variation(
        "commands of aider's",
        {
            ".aider.chat.history.md": AIDER
            + "#### /add price.py  \n\n> Added  \n\n#### Hi  \n\nA.\n"
        },
        ONE_TURN,
    ),
    Variation("a question", {".aider.chat.history.md": AIDER + "#### /ask Hi  \n\nA.\n"}, ONE_TURN),
    Variation(
        "line breaks of Windows",
        {".aider.chat.history.md": (AIDER + "#### Hi  \n\nA.\n").replace("\n", "\r\n")},
        ONE_TURN,
    ),
    Variation(
        "two sessions",
        {".aider.chat.history.md": (f"{AIDER}#### Hi  \n\nA.\n\n{AIDER}#### More?  \n\nB.\n")},
        [ONE_TURN[0], [("More?", "B.")]],
    ),
    Variation(
        "an interruption",
        {
            ".aider.chat.history.md": (
                f"{AIDER}#### Hi  \n\nA.\n\n> ^C KeyboardInterrupt  \n\n#### More?  \n\nB.\n"
            )
        },
        TWO_TURNS,
    ),
    Variation(
        "code with marks of aider's",
        {".aider.chat.history.md": (f"{AIDER}#### Hi  \n\n```\n> x\n```\n")},
        [[("Hi", "```\n> x\n```")]],
    ),
    Variation(
        "words behind a command, which aider repeats",
        {".aider.chat.history.md": (f"{AIDER}#### /code Hi  \n\n#### Hi  \n\nA.\n")},
        ONE_TURN,
    ),
    Variation(
        "a plan that the architect hands on",
        {
            ".aider.chat.history.md": (
                f"{AIDER}#### Hi  \n\nDo x:\n\n- y\n\n> Tokens: 1k sent  \n\n"
                "#### Do x:  \n####   \n#### - y  \n\nA.\n\n> Applied edit to a.py  \n"
            )
        },
        [[("Hi", "Do x:\n\n- y\n\nA.")]],
        calls=["a.py"],
    ),
    Variation(
        "a plan with reasoning before it",
        {
            ".aider.chat.history.md": (
                f"{AIDER}#### Hi  \n\n<thinking-content-7b>\nB\n</thinking-content-7b>\n\nDo x.\n\n"
                "#### Do x.  \n\nA.\n"
            )
        },
        [[("Hi", "Do x.\n\nA.")]],
    ),
    Variation(
        "a question that aider asked",
        {
            ".aider.chat.history.md": (
                f"{AIDER}#### Hi  \n\nA.\n\n> a.py  \n\n"
                "#### Add file to the chat? (Y)es/(N)o/(A)ll [Yes]: all  \n\nB.\n"
            )
        },
        [[("Hi", "A.\n\nB.")]],
    ),
    Variation(
        "a message that was sent again after an interruption",
        {
            ".aider.chat.history.md": (
                f"{AIDER}#### Hi  \n\n> ^C KeyboardInterrupt  \n\n#### Hi  \n\nA.\n"
            )
        },
        [[("Hi\n\nHi", "A.")]],
    ),
    Variation(
        "words behind a command, sent again after an interruption",
        {
            ".aider.chat.history.md": (
                f"{AIDER}#### /code Hi  \n\n#### Hi  \n\n"
                "> ^C KeyboardInterrupt  \n\n#### Hi  \n\nA.\n"
            )
        },
        [[("Hi\n\nHi", "A.")]],
    ),
    Variation(
        "a message about a question of aider's",
        {".aider.chat.history.md": (f"{AIDER}#### What does (Y)es/(N)o [Yes]: mean?  \n\nA.\n")},
        [[("What does (Y)es/(N)o [Yes]: mean?", "A.")]],
    ),
    Variation(
        "a heading of the fourth level in a reply",
        {".aider.chat.history.md": (f"{AIDER}#### Hi  \n\nA.\n\n#### With npm:\n\nB.\n")},
        [[("Hi", "A.\n\n#### With npm:\n\nB.")]],
    ),
    Variation(
        "a quotation, with line breaks of Windows",
        {
            ".aider.chat.history.md": (
                f"{AIDER}#### Hi  \n\nA.\n> B.\n\n> Tokens: 1k sent  \n"
            ).replace("\n", "\r\n")
        },
        [[("Hi", "A.\n> B.")]],
    ),
    Variation(
        "a session without a message",
        {".aider.chat.history.md": (f"{AIDER}{AIDER}#### Hi  \n\nA.\n")},
        ONE_TURN,
        problem="the assistant says nothing",
    ),
)


def test_aiders_history_file_is_split_into_dialogs(tmp_path):
    logs = read_logs([write_document(tmp_path, AIDER_HISTORY, ".aider.chat.history.md")])
    first, second = logs.dialogs
    assert not logs.problems and logs.formats == {"aider": 2}
    code = "I rename it:\n\n```\n# a comment\n> a quotation\n```"
    users = ["/add cart.py\nRename the cart.\nTwice.", "Why?"]
    assert [turn.done.text for turn in first.turns] == [code, "Because."]
    assert first.turns[1].user == users[1]
    assert files_changed(first.turns[0].done.calls) == ["cart.py"]
    assert [(turn.user, turn.done.text) for turn in second.turns] == [("Hi.", "Hello.")]


def test_a_quotation_in_a_reply_is_the_models_in_aiders_history(tmp_path):
    log = (
        "# aider chat started at 2026-05-01 10:00:00\n\n> Aider v0.80  \n\n#### Hi  \n\n"
        "It says:\n\n> Ten.\n\nSo ten.\n\n> Tokens: 1k sent  \n> Applied edit to a.py  \n"
    )
    dialog = dialog_in(tmp_path, ".aider.chat.history.md", log)
    assert turns_of(dialog) == [("Hi", "It says:\n\n> Ten.\n\nSo ten.")]
    assert calls_of(dialog) == [("edit", {"path": "a.py"})]
