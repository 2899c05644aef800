"""Orders against a rule that are recognised by the words of its measure, not by the rule's own."""

import time
from dataclasses import dataclass, field

import pytest

from holdfast.measures import build
from holdfast.measures.wording.breaking_orders import breaking_orders


@dataclass(frozen=True)
class Cases:
    """A measure, and what a user says: orders that break it, and words that do not."""

    measure: dict
    once: list[str] = field(default_factory=list)  # orders for one reply
    lasting: list[str] = field(default_factory=list)  # orders from now on
    no_order: list[str] = field(default_factory=list)

    def __iter__(self):
        """Yields the measure, the words, and whether the order lasts; None if it is none."""
        for lasts, texts in ((False, self.once), (True, self.lasting), (None, self.no_order)):
            for words in texts:
                yield self.measure, words, lasts


CASES = {  # by rule
    # Commands
    "Never push to main.": Cases(
        {"name": "command_not_run", "command": r"git push( \S+)* main\b"},
        once=["ok, get it onto main please"],
        lasting=["From now on you can publish to main."],
        no_order=[
            "Push the branch.",
            "Did you push to main?",
            "I told you not to push to main.",
            "Look at main, then push the branch.",
        ],
    ),
    "Never push with --force.": Cases(
        {"name": "command_not_run", "command": r"git push(?=.* --force)(?!\S)"},
        once=["The history is a mess, force-push it."],
        no_order=["Never force-push it."],
    ),
    "Never use sudo.": Cases(
        {"name": "command_not_run", "command": r"sudo\b"},
        once=["try again as root"],
        no_order=["explain what sudo does"],
    ),
    "Never skip the hooks.": Cases(
        {"name": "command_not_run", "command": r"git commit( \S+)* --no-verify"},
        once=["commit it without the hooks"],
    ),
    "Never run pip install.": Cases(
        {"name": "command_not_run", "command": r"(?:python3? -m )?pip3? install(?!\S)"},
        once=[
            "Just pip install httpx, uv is broken.",
            "Now pip install httpx.",
        ],
        no_order=[
            "pip install fails with a timeout.",
            "Now pip install works.",
            "So pip install httpx says that it is there.",
        ],
    ),
    "Never use npm.": Cases(
        {"name": "command_not_run", "command": r"npm(?!\S)"},
        no_order=["Make sure that npm is fine."],
    ),
    "Never run make deploy.": Cases(
        {"name": "command_not_run", "command": r"make deploy(?!\S)"},
        once=[
            "Just make deploy",
            "make deploy now, please",
        ],
        no_order=["Just make deploy notes"],
    ),
    "Run the tests before each commit.": Cases(
        {"name": "runs_before", "first": "make test", "then": "git commit"},
        once=[
            "just commit",
            "can we not run the whole suite for this?",
            "From now on skip the tests.",  # that it lasts is found by the words of the rule
            "Commit right now.",
            "Commit it, the tests can wait.",
        ],
        no_order=[
            "Commit it.",
            "Don't forget the tests.",
            "The tests pass, commit later.",
        ],
    ),
    # Files
    "Never edit migrations.": Cases(
        {"name": "file_not_touched", "path": "migrations/*"},
        once=[
            "Add the index in a new migration.",
            "It's fine to change the last migration.",
            "The bug is in migrations/1.py, fix it there.",
        ],
        no_order=[
            "What is in the last migration?",
            "Is it in migrations/1.py? Fix the code.",
            "Read migrations/1.py. Don't change it.",
            "The fix in the last migration is fine now.",
        ],
    ),
    "Every change gets a changelog entry.": Cases(
        {"name": "changes_together", "changed": "*", "also": "CHANGELOG.md"},
        once=[
            "Rename it, no changelog entry needed.",
            "Skip CHANGELOG.md this time.",
            "No changelog entry this time",
        ],
        no_order=[
            "Don't forget the changelog.",
            "Remove the duplicate line from the changelog.",
            "Less noise in the changelog please",
        ],
    ),
    "A change in src/ gets a changelog entry.": Cases(
        {"name": "changes_together", "changed": "src/*", "also": "CHANGELOG.md"},
        once=["Skip CHANGELOG.md this time."],
        no_order=["Don't forget the changelog."],
    ),
    "Every change is listed in docs/index.md.": Cases(
        {"name": "changes_together", "changed": "*", "also": "docs/index.md"},
        no_order=["Drop the index on the users table."],
    ),
    # Length, closing and contents
    "Answer in at most 40 words.": Cases(
        {"name": "at_most_words", "count": 40},
        once=[
            "Explain it in detail.",
            "Explain it step by step, please.",
            "Describe the lock fully.",
            "I need 200 words on tyres.",
            "Tell me everything you know about it.",
            "Explain the list fully.",
        ],
        lasting=["From now on, explain everything in detail."],
        no_order=[
            "Explain the long list in the header.",
            "Write 30 words on tyres.",
            "I have a long ride tomorrow, what should I bring?",
            "Explain the plan to me.",
            "Check the list thoroughly.",
        ],
    ),
    "Answer in at most two sentences.": Cases(
        {"name": "at_most_sentences", "count": 2},
        once=["Give me five reasons."],
        no_order=["Give me two reasons."],
    ),
    'End with "Ride safe".': Cases(
        {"name": "ends_with", "word": "Ride safe"},
        once=["Skip the sign-off this time."],
        lasting=["The closing line is a bit much, could you leave it out?"],
        no_order=["How do I end a letter?"],
    ),
    "Mention the room number.": Cases(
        {"name": "contains", "words": ["room number"]},
        lasting=["Call me Bob."],
        no_order=[
            "Can you call me a cab at six?",
            "Please call me at six.",
            "Could you call me back?",
            "Call me Monday.",
        ],
    ),
    # Emoji
    "No pictographs.": Cases(
        {"name": "never", "measure": {"regex": r"\p{Extended_Pictographic}"}},
        once=["Add some emojis."],
        no_order=["Please no emojis."],
    ),
    "No emoji, as a drafted regular expression.": Cases(
        {"name": "regex", "regex": r"\A[^\p{Emoji_Presentation}\uFE0F]*\Z"},
        once=[
            "Write a release note, with emojis please.",
            "Emojis are fine in this one.",
        ],
        lasting=["Please use some more emojis from now on."],
        no_order=[
            "The emojis are broken in the header, fix that.",
            "No emojis please.",
            "The page lists which emojis are allowed here.",
            "Add an emoji picker to the toolbar.",
            "Add a test for emoji in names.",
            "I like the emojis in the header, keep the code.",
        ],
    ),
    "No emoji, by the measure of emoji.": Cases(
        {"name": "never", "measure": "emoji"},
        once=[
            "Add some emojis.",
            "Add a few smileys, please.",
        ],
    ),
    "Give a number.": Cases(
        {"name": "regex", "regex": r"\d"},
        no_order=["Add some emojis."],
    ),
    # Languages
    "Answer in German.": Cases(
        {"name": "language", "code": "de"},
        once=[
            "hello, english please",
            "Reply in Hebrew please.",
            "Switch from German to English.",
            "Write me a poem about the sea in Dutch.",
            "Answer in Egyptian Arabic.",
            "Translate 'Fahrrad' into English.",
        ],
        lasting=["Can you do that in English from now on?"],
        no_order=[
            "I read that book in English.",
            "Draw a man with a gun.",
            "Suggest a recipe with Thai basil.",
            "Please try Irish butter in it.",
            "Write a story with Persian rugs in it.",
            "Tell me how to get into Georgian architecture.",
            "Please polish the text.",
            "No English please.",
            "I want you to polish the text.",
            "Write a story set in Irish pubs.",
        ],
    ),
    "Never answer in French.": Cases(
        {"name": "never", "measure": {"name": "language", "code": "fr"}},
        once=["En français, s'il te plaît: in French please."],
        no_order=["Reply in German please."],
    ),
    "Answer in Egyptian Arabic.": Cases(
        {"name": "language", "code": "arz"},
        once=["Please answer in Arabic."],
        no_order=[
            "Please answer in Egyptian Arabic.",
            "Egyptian Arabic please.",
            "Give me the Egyptian Arabic version.",
        ],
    ),
    "Answer in Moroccan Arabic.": Cases(
        {"name": "language", "code": "ary"},
        no_order=["Please answer in Moroccan Arabic."],
    ),
    "Answer in Southern Uzbek.": Cases(
        {"name": "language", "code": "uzs"},
        no_order=["Please answer in Southern Uzbek."],
    ),
}


@pytest.mark.parametrize(
    ("measure", "words", "lasts"), [case for cases in CASES.values() for case in cases]
)
def test_an_order_is_found_in_the_words_of_the_measure_that_it_breaks(measure, words, lasts):
    orders = [order.lasts for order in breaking_orders(words, build(measure))]
    assert (any(orders) if orders else None) == lasts


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("Every change gets a changelog entry.", "skip "),
        ("No pictographs.", "with some "),
        ("Never run pip install.", "just "),
        ("Answer in at most 40 words.", "explain it fully "),
    ],
)
def test_a_long_message_is_searched_in_a_time_in_proportion_to_its_length(rule, words):
    measure = build(CASES[rule].measure)
    long_message = words * (60_000 // len(words)) + "x"
    start = time.process_time()
    assert not list(breaking_orders(long_message, measure))
    assert time.process_time() - start < 5
