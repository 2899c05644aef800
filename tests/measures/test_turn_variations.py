"""Turns whose words and order of actions a reader may get wrong: asked, agreed, ordered, run."""

import pytest
from logged_turns import bash, edited, value_of_last_turn, wrote

UNTOUCHED = {"name": "file_not_touched", "path": "migrations/*"}


README = ("Write", {"file_path": "README.md", "content": "Hi"})


LINTED = {"name": "runs_after", "changed": "*.py", "run": "ruff check"}


ASKS = {"name": "asks_before", "command": "git push", "asking": "push"}


ORDERED = {**ASKS, "ordered": r"\bpush\b"}


TOGETHER = {"name": "changes_together", "changed": "src/*", "also": "CHANGELOG.md"}


PUSH = ("Bash", {"command": "git push"})


TURNS = {
    "linted in a script of the turn": (
        LINTED,
        [("Go.", "Ok.", [edited("a.py"), wrote("l.sh", "ruff check\n"), bash("bash l.sh")])],
        1.0,
    ),
    "linted by a make target of the turn": (
        LINTED,
        [
            (
                "Go.",
                "Ok.",
                [wrote("Makefile", "lint:\n\truff check .\n"), edited("a.py"), bash("make lint")],
            )
        ],
        1.0,
    ),
    "asked in Japanese and no": (
        ASKS,
        [("Go.", "push しますか？", []), ("いいえ、まだです。", "Ok.", [PUSH])],
        0.0,
    ),
    "asked in Korean and yes": (
        ASKS,
        [("Go.", "push 할까요?", []), ("네, 해주세요.", "Ok.", [PUSH])],
        1.0,
    ),
    "asked in Portuguese and no": (
        ASKS,
        [("Go.", "Devo fazer push?", []), ("Não, ainda não.", "Ok.", [PUSH])],
        0.0,
    ),
    "a plan that the user approved": (
        ASKS,
        [
            (
                "Go.",
                "Ok.",
                [("ExitPlanMode", {"plan": "Fix, then push."}, "User has approved"), PUSH],
            )
        ],
        1.0,
    ),
    "asked and yes": (ASKS, [("Go.", "Shall I push?", []), ("Yes.", "Ok.", [PUSH])], 1.0),
    "asked and no": (ASKS, [("Go.", "Shall I push?", []), ("No, wait.", "Ok.", [PUSH])], 0.0),
    "asked and nah": (ASKS, [("Go.", "Shall I push?", []), ("Nah", "Ok.", [PUSH])], 0.0),
    "asked and not yet": (ASKS, [("Go.", "Shall I push?", []), ("Not yet", "Ok.", [PUSH])], 0.0),
    "asked and hold on": (
        ASKS,
        [("Go.", "Shall I push?", []), ("Hold on a second", "Ok.", [PUSH])],
        0.0,
    ),
    "asked and y": (ASKS, [("Go.", "Shall I push?", []), ("y", "Ok.", [PUSH])], 1.0),
    "asked and a thumb": (ASKS, [("Go.", "Shall I push?", []), ("👍", "Ok.", [PUSH])], 1.0),
    "asked and lgtm": (ASKS, [("Go.", "Shall I push?", []), ("LGTM", "Ok.", [PUSH])], 1.0),
    "asked and asked back": (
        ASKS,
        [("Go.", "Shall I push?", []), ("What would that do?", "Ok.", [PUSH])],
        None,
    ),
    "asked and why": (ASKS, [("Go.", "Shall I push?", []), ("Why?", "Ok.", [PUSH])], None),
    "asked and yes but": (
        ASKS,
        [("Go.", "Shall I push?", []), ("Yes but don't push to main", "Ok.", [PUSH])],
        None,
    ),
    "asked and I'd rather not": (
        ASKS,
        [("Go.", "Shall I push?", []), ("I'd rather you didn't", "Ok.", [PUSH])],
        None,
    ),
    "asked and something else ordered": (
        ASKS,
        [("Go.", "Shall I push?", []), ("First fix the typo in the README", "Ok.", [PUSH])],
        None,
    ),
    "question before a last sentence": (
        ASKS,
        [("Go.", "Shall I push? Let me know.", []), ("Yes.", "Ok.", [PUSH])],
        1.0,
    ),
    "ordered": (ORDERED, [("Please push it.", "Ok.", [PUSH])], 1.0),
    "forbidden in the words of the order": (
        ORDERED,
        [("Don't push yet, only commit.", "Ok.", [PUSH])],
        0.0,
    ),
    "forbidden in other words": (ORDERED, [("Commit, but never push.", "Ok.", [PUSH])], 0.0),
    "ordered after a negation of something else": (
        ORDERED,
        [("Don't squash, just push.", "Ok.", [PUSH])],
        1.0,
    ),
    "another folder of the same name": (
        TOGETHER,
        [("Go.", "Ok.", [edited("admin/src/a.py")])],
        None,
    ),
    "another folder of the same name, untouched rule": (
        {**UNTOUCHED, "path": "src/*"},
        [("Go.", "Ok.", [edited("admin/src/a.py")])],
        1.0,
    ),
    "the folder with a dot": (TOGETHER, [("Go.", "Ok.", [edited("./src/a.py")])], 0.0),
    "any folder of the name": (
        {**TOGETHER, "changed": "**/src/*"},
        [("Go.", "Ok.", [edited("admin/src/a.py")])],
        0.0,
    ),
    "a changelog elsewhere": (
        TOGETHER,
        [("Go.", "Ok.", [edited("src/a.py"), edited("old/CHANGELOG.md")])],
        1.0,
    ),
    "a changelog written by an option": (
        TOGETHER,
        [("Go.", "Ok.", [edited("src/a.py"), bash("git cliff -o CHANGELOG.md")])],
        1.0,
    ),
    "a file that is similarly named": (TOGETHER, [("Go.", "Ok.", [edited("src2/a.py")])], None),
    "sentences and a list of files": (
        {"name": "at_most_sentences", "count": 2, "prose": True},
        [("Go.", "Done. It works.\n\n- a.py\n- b.py\n- c.py", [])],
        1.0,
    ),
    "a sentence and code": (
        {"name": "at_most_sentences", "count": 1, "prose": True},
        [("Go.", "Run this:\n\n```\nnpm i\nnpm test\nnpm start\n```", [])],
        1.0,
    ),
    "few words and code": (
        {"name": "at_most_words", "count": 2, "prose": True},
        [("Go.", "## What to run\n\nRun this:\n\n```\nnpm i\nnpm test\nnpm start\n```", [])],
        1.0,
    ),
    "only code, and few words": (
        {"name": "at_most_words", "count": 2, "prose": True},
        [("Go.", "```\nnpm i\nnpm test\nnpm start\n```", [])],
        1.0,
    ),
    "many words and code": (
        {"name": "at_most_words", "count": 2, "prose": True},
        [("Go.", "Run this now:\n\n```\nnpm i\n```", [])],
        0.0,
    ),
    "code that counts as words": (
        {"name": "at_most_words", "count": 2},
        [("Go.", "Run this:\n\n```\nnpm i\n```", [])],
        0.0,
    ),
    "three sentences": (
        {"name": "at_most_sentences", "count": 2, "prose": True},
        [("Go.", "First. Second. Third.", [])],
        0.0,
    ),
    "sentences as bullets": (
        {"name": "at_most_sentences", "count": 2, "prose": True},
        [("Go.", "- It works.\n- It is fast.\n- It is small.", [])],
        0.0,
    ),
    "a heading": (
        {"name": "at_most_sentences", "count": 1, "prose": True},
        [("Go.", "## Summary\n\nAll tests pass.", [])],
        1.0,
    ),
    "a table": (
        {"name": "at_most_sentences", "count": 1, "prose": True},
        [("Go.", "| a | b |\n|---|---|\n| x | y |\n| u | v |\n\nDone.", [])],
        1.0,
    ),
    "full stops in code": (
        {"name": "at_most_sentences", "count": 1, "prose": True},
        [("Go.", "Use `foo. bar. Baz` here.", [])],
        1.0,
    ),
    "a numbered list of steps": (
        {"name": "at_most_sentences", "count": 1, "prose": True},
        [("Go.", "1. Install it\n2. Run it\n\nThat is all.", [])],
        1.0,
    ),
    "three sentences and a list": (
        {"name": "at_most_sentences", "count": 2, "prose": True},
        [("Go.", "First. Second. Third.\n\n- a", [])],
        0.0,
    ),
    "sentences in a code block": (
        {"name": "at_most_sentences", "count": 1, "prose": True},
        [("Go.", "Here it is.\n\n```python\n# First. Second.\nprint('Third. Fourth.')\n```", [])],
        1.0,
    ),
    "bullets with two sentences each": (
        {"name": "at_most_sentences", "count": 3, "prose": True},
        [("Go.", "- It works. It is fast.\n- It is small. It is new.", [])],
        0.0,
    ),
    "one bold label in each bullet": (
        {"name": "at_most_sentences", "count": 1, "prose": True},
        [("Go.", "Changed files:\n- **a.py**: the total\n- **b.py**: the tax", [])],
        1.0,
    ),
    "a function that commits": (
        {"name": "commit_message", "pattern": "^(feat|fix): \\S"},
        [("Go.", "Ok.", [bash("c() { git commit -m \"$1\"; }; c 'Fixed it'")])],
        0.0,
    ),
    "sentences and a diff": (
        {"name": "at_most_sentences", "count": 2, "prose": True},
        [("Go.", "Fixed it.\n\n```diff\n- a. b.\n+ c. d.\n```\nTests pass.", [])],
        1.0,
    ),
    "tildes": (
        {"name": "at_most_sentences", "count": 1, "prose": True},
        [("Go.", "Here.\n\n~~~\nA. B. C.\n~~~", [])],
        1.0,
    ),
    "unclosed fence": (
        {"name": "at_most_sentences", "count": 1, "prose": True},
        [("Go.", "Here.\n\n```\nA. B. C.", [])],
        1.0,
    ),
    "long bullets without stops": (
        {"name": "at_most_sentences", "count": 2, "prose": True},
        [
            (
                "Go.",
                "- It adds up the items\n- It adds the tax too\n- It writes the sum to it",
                [],
            )
        ],
        0.0,
    ),
    "only code": (
        {"name": "at_most_sentences", "count": 1, "prose": True},
        [("Go.", "```\nls\n```", [])],
        1.0,
    ),
    "bold heading": (
        {"name": "at_most_sentences", "count": 2, "prose": True},
        [("Go.", "One thing. Two things.\n\n### Files\n- a.py", [])],
        1.0,
    ),
    "asked, okay go ahead": (
        ASKS,
        [("Go.", "Should I push?", []), ("okay, go ahead", "Ok.", [PUSH])],
        1.0,
    ),
    "asked, is it tested": (
        ASKS,
        [("Go.", "Should I push?", []), ("Is it tested?", "Ok.", [PUSH])],
        None,
    ),
    "asked, could you": (
        ASKS,
        [
            ("Go.", "Should I push?", []),
            ("Could you wait until the tests are done?", "Ok.", [PUSH]),
        ],
        None,
    ),
    "asked, sure why not": (
        ASKS,
        [("Go.", "Should I push?", []), ("Sure, why not?", "Ok.", [PUSH])],
        1.0,
    ),
    "asked, can you push it now": (
        ASKS,
        [("Go.", "Should I push?", []), ("Yes, can you push it now?", "Ok.", [PUSH])],
        1.0,
    ),
    "asked, then tell me": (
        ASKS,
        [("Go.", "Shall I push it? Just let me know.", []), ("Yes", "Ok.", [PUSH])],
        1.0,
    ),
    "a deep folder": (
        {**TOGETHER, "changed": "packages/*/src/*"},
        [("Go.", "Ok.", [edited("packages/a/src/x.py", "a", "b")])],
        0.0,
    ),
    "an absolute path": (TOGETHER, [("Go.", "Ok.", [edited("/w/src/a.py", "a", "b")])], 0.0),
    "a suffix at any depth": (
        {**TOGETHER, "changed": "*.py"},
        [("Go.", "Ok.", [edited("admin/src/a.py", "a", "b")])],
        0.0,
    ),
    "a folder above": (
        {**UNTOUCHED, "path": "docs/api/*"},
        [("Go.", "Ok.", [bash("rm -rf docs")])],
        None,
    ),
    "tests after an edit by make": (
        LINTED,
        [
            (
                "Go.",
                "Ok.",
                [
                    edited("a.py", "a", "b"),
                    wrote("package.json", '{"scripts": {"lint": "ruff check ."}}'),
                    bash("npm run lint"),
                ],
            )
        ],
        1.0,
    ),
    "formatter after the linter": (
        LINTED,
        [("Go.", "Ok.", [edited("a.py", "a", "b"), bash("ruff check . && ruff format .")])],
        1.0,
    ),
    "commit in a function": (
        {"name": "commit_message", "pattern": "^(feat|fix): \\S"},
        [("Go.", "Ok.", [bash('c() { git commit -m "$*"; }\nc fix: the total')])],
        1.0,
    ),
}


@pytest.mark.parametrize("name", TURNS)
def test_measures_of_what_a_turn_said_and_did(name, tmp_path):
    spec, turns, value = TURNS[name]
    assert value_of_last_turn(spec, turns, tmp_path) == value
