"""Texts that state a rule, or order otherwise: in the rule's words, or in those of its measure."""

import pytest

from holdfast.measures import build
from holdfast.measures.registry import REGISTRY
from holdfast.measures.wording.measure_words import MEASURE_WORDS
from holdfast.measures.wording.rule_statements import find_statement
from holdfast.measures.wording.rule_text import RuleText

# Statements in the words of the rule, or in words like them

NO_EDITS = RuleText("Do not edit files under `migrations/`.")


@pytest.mark.parametrize(
    "text",
    [
        "do not edit files under migrations",
        "> **Do not edit\n> files** under\n> `migrations/`!",
        '{"content": "# Rules\\n- Don\\u0027t"} \\n- Don\'t edit files under \\"migrations/\\".',
        "    12→- Do not edit files under\n    13→  migrations/.",
        "Nothing in the migrations/ folder may be edited.",
        "The user insists: files in migrations/ must never be edited by hand.",
    ],
)
def test_a_rule_is_found_in_its_words_and_in_others(text):
    assert NO_EDITS.find_in(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Edit the files under migrations/.",
        "You don't need to worry. Files are under src/.",
        "Do not edit files under src/.",  # another path
        "The migrations/ folder was mentioned.",
        "Ignore the rule: do not edit files under migrations/ was only for May.",
        "The user no longer minds edits of files under migrations/.",
        "Do you always say: do not edit files under migrations/?",
        "",
    ],
)
def test_a_mere_mention_does_not_state_the_rule(text):
    assert NO_EDITS.find_in(text) is None


NO_PRINT = "No `print()` in `src/`; use the logger."
PNPM_IN_ADMIN = "Use pnpm, not npm, in `admin/`."


@pytest.mark.parametrize(
    ("rule", "text", "states"),
    [
        (NO_PRINT, "Don't put print() calls into src/, use the logger.", True),
        (NO_PRINT, "Put print() calls into src/, not the logger.", False),
        (PNPM_IN_ADMIN, "Never use npm in admin, only pnpm.", True),
        (PNPM_IN_ADMIN, "Never use pnpm in admin, only npm.", False),
        (PNPM_IN_ADMIN, "Never use npm in web, only pnpm.", False),
        ("Use pytest, not nose, in `tests/`.", "Use nose, not pytest, in tests/.", False),
    ],
)
def test_a_function_or_a_folder_is_named_in_another_clause(rule, text, states):
    assert (RuleText(rule).find_in(text) is not None) == states


@pytest.mark.parametrize(
    ("rule", "text", "states"),
    [
        (
            "Start every commit message with the ticket.",
            "commits are prefixed with the ticket id",
            True,
        ),
        ("No force pushes.", "history must not be rewritten on the remote", True),
        ("Do not paste code into the chat.", "no snippets are to be shown in the chat", True),
        ("Before each commit, run ruff check.", "ruff check is run before each commit", True),
        (
            "Before each commit, run ruff check.",
            "before each commit you can run ruff check if you like",
            False,
        ),
        (
            "End every reply with a question.",
            "Mails that end with a question go to sales.",
            False,
        ),
    ],
)
def test_synonyms_and_passives_state_a_rule_and_weaker_words_do_not(rule, text, states):
    assert (RuleText(rule).find_in(text) is not None) == states


# Orders against a rule, in its words

NO_PUSH = "Never push to main."
PNPM = "Use pnpm, never npm."
UV = "Use `uv add` instead of `pip install`."
TWO_SENTENCES = "Answer in at most two sentences."


@pytest.mark.parametrize(
    ("rule", "words", "lasts"),  # None if the words are no order against the rule
    [
        (NO_PUSH, "Push this to main, please.", False),
        (NO_PUSH, "From now on you may push to main.", True),
        (NO_PUSH, "Ignore the rule about pushing to main.", True),
        (NO_PUSH, "Why did you push to main?", None),
        (NO_PUSH, "You pushed to main again.", None),
        (NO_PUSH, "If you push to main, tell me.", None),
        (NO_PUSH, "Don't push to main!", None),
        (NO_PUSH, "Push the branch.", None),
        (PNPM, "Use npm for this.", False),
        (PNPM, "Use pnpm for this.", None),
        (UV, "Now install requests and go on.", None),
        (UV, "Use pip install for this.", False),
        ("Use single quotes, not double quotes.", "Put quotes around the name.", None),
        (TWO_SENTENCES, "You need not answer in two sentences.", True),
        (TWO_SENTENCES, "Just this once, ignore the two sentences.", False),
        (TWO_SENTENCES, "Answer in two sentences, please.", None),
    ],
)
def test_an_order_against_a_rule_is_told_from_a_mention(rule, words, lasts):
    order = RuleText(rule).find_counter_order(words)
    assert (order and order.lasts) == lasts


def test_an_order_may_use_a_synonym_of_the_rules_words():
    rule = RuleText("Do not paste code into the chat.")
    assert rule.find_counter_order("Show me the function that loads the prices.")


# Statements of what a measure demands, in words that its rule need not have

NO_PUSH_TO_MAIN = {"name": "command_not_run", "command": r"git push( \S+)* main\b"}
TESTS_FIRST = {"name": "runs_before", "first": "make test", "then": "git commit"}
NO_MIGRATIONS = {"name": "file_not_touched", "path": "migrations/*"}
FORTY_WORDS = {"name": "at_most_words", "count": 40}
FIFTY_WORDS = {"name": "at_most_words", "count": 50}
RIDE_SAFE = {"name": "ends_with", "word": "Ride safe"}
NO_RIDE_SAFE = {"name": "never", "measure": RIDE_SAFE}
NO_VELOX = {"name": "never_contains", "words": ["Velox"]}
QUESTION = {"name": "asks_back"}
FRENCH = {"name": "language", "code": "fr"}
NO_FRENCH = {"name": "never", "measure": FRENCH}
HEBREW = {"name": "language", "code": "he"}


@pytest.mark.parametrize(
    ("measure", "text", "states"),
    [
        (NO_PUSH_TO_MAIN, "Nothing gets pushed to main.", True),
        (NO_PUSH_TO_MAIN, "The push to main did not work.", False),
        (TESTS_FIRST, "The tests have to pass before anything is committed.", True),
        (TESTS_FIRST, "Never commit without the tests.", True),
        (TESTS_FIRST, "The tests failed before the commit.", False),
        (NO_MIGRATIONS, "Hands off the migrations folder, do not edit it.", True),
        (NO_MIGRATIONS, "migrations/ was not changed.", False),
        (FORTY_WORDS, "40 words is the most that any answer may have.", True),
        (FORTY_WORDS, "No reply is longer than forty words.", True),
        (FORTY_WORDS, "Write at least 40 words.", False),
        (FIFTY_WORDS, "Do it in at most 50 words.", True),
        (FIFTY_WORDS, "Do it in 50 words or fewer.", True),
        (FIFTY_WORDS, "Do it in at most 50 words?", False),
        (RIDE_SAFE, 'The last two words are "Ride safe".', True),
        (RIDE_SAFE, 'Never end with "Ride safe".', False),
        (NO_RIDE_SAFE, 'Never end with "Ride safe".', True),
        (NO_RIDE_SAFE, 'The last two words are "Ride safe".', False),
        (NO_VELOX, "Near us is Velox. Never say it.", True),
        (NO_VELOX, "Velox is not far.", False),
        (QUESTION, "Have it end with a question.", True),
        (QUESTION, "Does it end with a question?", False),
        (FRENCH, "Have it in French please: always reply in French.", True),
        (NO_FRENCH, "Whatever the user writes, do not answer in French.", True),
        (NO_FRENCH, "Answer in French.", False),
        (HEBREW, "Always reply in Hebrew.", True),
    ],
)
def test_a_text_states_what_a_measure_demands(measure, text, states):
    assert (find_statement(text, build(measure)) is not None) == states


@pytest.mark.parametrize("name", MEASURE_WORDS)
def test_every_entry_of_the_measure_words_names_a_measure(name):
    assert name in REGISTRY
