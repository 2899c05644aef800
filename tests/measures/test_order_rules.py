"""Rules about the order of actions: `runs_after`, `asks_before`; and about a choice: `prefers`."""

import pytest
from agent_turns import UNDECIDED, bash, call, did, judge, ran

from holdfast.measures.turns import AssistantTurn as Turn
from holdfast.measures.turns import ToolCall

# What runs after what


LINTED = {"name": "runs_after", "changed": "*.py", "run": "ruff( |$)"}
TESTED = {"name": "runs_after", "after": "python manage.py migrate", "run": "pytest"}
EDIT = call("Edit", file_path="a.py", old_string="x", new_string="y")
RUNS_AFTER = [
    (LINTED, did(EDIT, bash("ruff check .")), 1),
    (LINTED, did(EDIT, EDIT, bash("uv sync && ruff format")), 1),
    (LINTED, did(bash("ruff check ."), EDIT), 0),
    (LINTED, did(EDIT, bash("ruff check ."), EDIT), 0),
    (LINTED, did(EDIT, bash("echo ruff")), 0),
    (LINTED, did(bash("ruff check .")), None),
    (LINTED, did(call("Edit", file_path="a.md", old_string="x", new_string="y")), None),
    (LINTED, ran("echo 'x = 1' > a.py; ruff check a.py"), 1),
    (LINTED, ran("ruff check a.py; echo 'x = 1' > a.py"), 0),
    (LINTED, ran("ruff check --fix > log.py"), None),
    (LINTED, ran("git apply x.patch"), UNDECIDED),
    (LINTED, ran("git apply x.patch", "ruff check"), None),
    ({**LINTED, "run": "mcp__ide__getDiagnostics"}, did(EDIT, call("mcp__ide__getDiagnostics")), 1),
    (TESTED, ran("python manage.py migrate && pytest -q"), 1),
    (TESTED, ran("pytest -q && python manage.py migrate"), 0),
    (TESTED, ran("sudo -u www python manage.py migrate", "ls"), 0),
    (TESTED, ran("pytest"), None),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "turn", "score"), RUNS_AFTER)
def test_what_runs_after_a_change_or_a_command(rule, turn, score):
    assert judge(rule, turn) == score


# What is asked before


PUSH = bash("git push")
ASKED = {"name": "asks_before", "command": "git push", "asking": r"\bpush", "ordered": r"\bpush\b"}
WRITES_MIGRATION = call("Write", file_path="migrations/1", content="x")
ASK_FIRST = {"name": "asks_before", "changed": "migrations/*", "asking": "migration"}


def after(previous: str, user: str, *calls: ToolCall) -> Turn:
    return Turn("", calls, user=user, previous=previous)


ASKS_BEFORE = [
    (ASKED, after("Done. Shall I push it?", "Yes.", PUSH), 1),
    (ASKED, after("Shall I **push**? (yes/no)\n\n1. Yes\n2. No", "1", PUSH), 1),
    (ASKED, after("The push is ready. All tests pass. OK to go ahead?", "ok", PUSH), 1),
    (ASKED, after("Soll ich das pushen? \n", "Ja", PUSH), 1),
    (ASKED, after("", "Commit and PUSH it.", PUSH), 1),
    (ASKED, after("Shall I push it?", "No, wait.", PUSH), 0),
    (ASKED, after("Shall I push it?", "Don\u2019t.", PUSH), 0),
    (ASKED, after("Shall I push it?", "Nothing against it.", PUSH), 1),
    (ASKED, after("Shall I push it? I think so. I will do it now.", "Thanks.", PUSH), 0),
    (ASKED, after("Shall I run the tests?", "Yes.", PUSH), 0),
    (ASKED, after("I will push it.", "OK.", PUSH), 0),
    (ASKED, after("May I push?\n\nBy the way, what is the port?", "8080", PUSH), 0),
    (ASKED, after("", "Fix the total.", PUSH), 0),
    (ASKED, after("Shall I push it?", "Yes.", bash("cd x && sudo git -C app push")), 1),
    (ASKED, after("Shall I push it?", "Yes.", bash("git status")), None),
    (ASKED, after("", "", PUSH), UNDECIDED),
    # asking in the turn itself is no question that anyone could have answered
    (ASKED, Turn("Shall I push it?", (PUSH,), user="Fix it.", previous="Done."), 0),
    (ASKED, after("", "Fix it.", call("AskUserQuestion", questions=[{"question": "Push?"}]), PUSH),
     UNDECIDED),
    (ASKED, after("", "Fix it.", call("AskUserQuestion", questions=[{"question": "Port?"}]), PUSH),
     0),
    (ASKED, after("", "Fix it.", PUSH, call("AskUserQuestion", questions=[{"question": "Push?"}])),
     0),
    (ASK_FIRST, after("Add a migration?", "y", WRITES_MIGRATION), 1),
    (ASK_FIRST, after("Done.", "y", WRITES_MIGRATION), 0),
    (ASK_FIRST, after("Done.", "y", call("Write", file_path="a.py", content="x")), None),
    (ASK_FIRST, after("Done.", "y", bash("git apply x.patch")), UNDECIDED),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "turn", "score"), ASKS_BEFORE)
def test_what_is_asked_before_an_action(rule, turn, score):
    assert judge(rule, turn) == score


def ordered(words: str) -> Turn:
    return Turn("", (bash("git push"),), user=words, previous="Done.")


NO_PUSH = {"name": "asks_before", "command": "git push", "asking": "push", "ordered": r"\bpush\b"}


ORDERED = [
    (NO_PUSH, ordered("Commit and push it."), 1),
    (NO_PUSH, ordered("Push, don't wait."), 1),
    (NO_PUSH, ordered("Don't forget to push."), 1),
    (NO_PUSH, ordered("Do not push yet."), 0),
    (NO_PUSH, ordered("Commit, but don't push"), 0),
    (NO_PUSH, ordered("Bitte nicht push machen"), 0),
]


@pytest.mark.parametrize(("rule", "turn", "score"), ORDERED)
def test_an_order_of_the_user_stands_for_an_answer(rule, turn, score):
    assert judge(rule, turn) == score


# What is preferred


PNPM = {"name": "prefers", "use": r"pnpm\b", "rather_than": r"(npm|yarn)\b"}
GREP = {"name": "prefers", "use": r"Grep\b", "rather_than": r"(grep|rg)\b"}
PREFERRED = [
    (PNPM, ran("pnpm install"), 1),
    (PNPM, ran("npm install"), 0),
    (PNPM, ran("cd web && CI=1 npm --prefix x run build"), 0),
    (PNPM, ran("pnpm i", "npm i", "npm test"), pytest.approx(1 / 3)),
    (PNPM, ran("echo npm install"), None),
    (GREP, did(call("Grep", pattern="x")), 1),
    (GREP, ran("git diff | grep x"), 0),
    (GREP, did(call("Read", file_path="a.py")), None),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "turn", "score"), PREFERRED)
def test_the_command_or_tool_that_is_preferred(rule, turn, score):
    assert judge(rule, turn) == score
