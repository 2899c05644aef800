"""The measures of an agent's actions, each on calls whose score is obvious."""

import pytest
from agent_turns import ran

from holdfast.errors import UsageError
from holdfast.measures import build
from holdfast.measures.turns import AssistantTurn as Turn
from holdfast.measures.turns import ToolCall, When


def score_turn(spec, turn: Turn) -> float | None:
    score = build(spec).score_turn(turn)
    return None if score is None else score.value


EDIT = Turn("", (ToolCall("Edit", {"file_path": "/app/migrations/0001.sql"}),))
LOOKUP = Turn("", (ToolCall("lookup_price", {"sku": "A-1", "count": 2}),))
NO_PUSH = {"name": "command_not_run", "command": r"git push .*--force"}
TESTED = {"name": "runs_before", "first": "make test", "then": "git commit"}
COMMIT = {"name": "commit_message", "pattern": r"^(feat|fix)(\(.+\))?: \S"}
HEREDOC = "git commit -m \"$(cat <<'EOF'\nfix: the total\n\nMore.\nEOF\n)\""


SCHEMA = {"arguments_schema": {"required": ["sku"]}}
CASES = [
    ({"name": "tool_called", "tool": "lookup_*"}, LOOKUP, 1),
    ({"name": "tool_called", "tool": "search"}, LOOKUP, 0),
    ({"name": "tool_called", "tool": "lookup_price", "arguments": {"sku": "^A"}}, LOOKUP, 1),
    ({"name": "tool_called", "tool": "lookup_price", "arguments": {"sku": "^B"}}, LOOKUP, 0),
    ({"name": "tool_called", "tool": "lookup_price", "arguments": {"no": "."}}, LOOKUP, 0),
    ({"name": "tool_called", "tool": "lookup_price", **SCHEMA}, LOOKUP, 1),
    ({"name": "tool_called", "tool": "*", "arguments_schema": {"required": ["name"]}}, LOOKUP, 0),
    ({"name": "tool_called", "tool": "lookup_price"}, Turn("Hello."), 0),
    ({"name": "tool_not_called", "tool": "lookup_price"}, LOOKUP, 0),
    ({"name": "tool_not_called", "tool": "delete_all"}, LOOKUP, 1),
    ({"name": "tool_not_called", "tool": "delete_all"}, Turn("Hello."), None),
    (NO_PUSH, ran("git push origin main"), 1),
    (NO_PUSH, ran("git status && git push origin main --force"), 0),
    (NO_PUSH, EDIT, None),
    ({"name": "command_run", "command": "make test"}, ran("ls", "make test"), 1),
    ({"name": "command_run", "command": "make test"}, Turn("Tested."), 0),
    ({"name": "file_not_touched", "path": "migrations/*"}, EDIT, 0),
    ({"name": "file_not_touched", "path": "migrations/"}, EDIT, 0),
    ({"name": "file_not_touched", "path": "docs/"}, ran("cd docs; rm -rf old"), 0),
    ({"name": "file_not_touched", "path": "doc/"}, ran("echo x > docs/a.md"), 1),
    ({"name": "file_not_touched", "path": "docs/*"}, EDIT, 1),
    ({"name": "file_not_touched", "path": "docs/*"}, ran("cat docs/a.md"), None),
    ({"name": "file_not_touched", "path": "docs/*"}, ran("echo x > docs/a.md"), 0),
    ({"name": "file_not_touched", "path": "docs/*"}, ran("cd docs; rm -rf docs/old"), 0),
    ({"name": "file_not_touched", "path": "docs/*"}, ran("echo x > /tmp/docs/a.md"), 1),
    ({"name": "file_not_touched", "path": "docs/*"}, ran("echo x > /tmp/app/docs/a.md"), 0),
    ({"name": "file_not_touched", "path": "*.md"}, ran("echo x > /tmp/a.md"), 1),
    ({"name": "file_not_touched", "path": "*.md"}, ran("echo x > /tmp/app/a.md"), 0),
    ({"name": "file_not_touched", "path": "/tmp/*"}, ran("echo x > /tmp/a.md"), 0),
    (TESTED, ran("make test", "git commit -m x"), 1),
    (TESTED, ran("git commit -m x"), 0),
    (TESTED, ran("make test", "git commit -m x", "git commit -m y"), 0),
    (TESTED, Turn("", ran("git commit -m x").calls, ran("make test").calls), 1),
    (TESTED, Turn("", ran("git commit -m y").calls, ran("make test", "git commit").calls), 0),
    (TESTED, ran("make test"), None),
    (COMMIT, ran("git commit -m 'fix(cart): total'"), 1),
    (COMMIT, ran('git commit -am "Fixed it"'), 0),
    (COMMIT, ran("git commit --message='feat: x'", "git add . && git commit -m wip"), 0.5),
    (COMMIT, ran(HEREDOC), 1),
    (COMMIT, ran("git log"), None),
]


@pytest.mark.parametrize(("spec", "turn", "value"), CASES)
def test_a_measure_scores_the_actions_of_a_turn(spec, turn, value):
    assert score_turn(spec, turn) == value


def test_a_text_measure_skips_a_turn_without_text():
    assert score_turn("one_sentence", Turn("One.")) == 1
    assert score_turn("one_sentence", EDIT) is None


@pytest.mark.parametrize(
    ("when", "applies"),
    [
        (When(), True),
        (When(user="PRICE"), True),
        (When(reply="one"), True),
        (When(tool="look*"), True),
        (When(role="tool"), True),
        (When(user="price", role="user"), False),
    ],
)
def test_a_rule_applies_to_the_turns_that_meet_all_its_conditions(when, applies):
    turn = Turn("One.", LOOKUP.calls)
    assert when.applies(turn, "What is the price?", "tool") is applies


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"name": "command_not_run", "command": "("}, "'('"),
        ({"name": "tool_called", "tool": "x", "arguments_schema": {"type": "nothing"}}, "nothing"),
        ({"name": "tool_called", "tool": "x", "arguments": {"a": "["}}, "'['"),
        ({"name": "tool_called", "tool": ""}, "tool"),
    ],
)
def test_a_malformed_argument_is_named(spec, message):
    with pytest.raises(UsageError, match=message.replace("(", r"\(").replace("[", r"\[")):
        build(spec)


# Reasons


AFTER = {"name": "runs_after", "changed": "*.py", "run": r"make (?:lint|check)(?!\S)"}
ASKS = {"name": "asks_before", "command": r"git push(?!\S)", "asking": r"(?i)\bpush"}
WRITES = ToolCall("Write", {"file_path": "/app/a.py", "content": "x = 1"})
REASONS = [
    (
        TESTED,
        ran("git commit -m 'csv stuff'"),
        "`git commit -m 'csv stuff'` ran without `make test` before it",
    ),
    (TESTED, ran("make test", "git commit"), "`make test` came before `git commit`"),
    (
        {"name": "runs_before", "first": "npm run test", "then": "git commit"},
        ran("CI=1 npm test > log.txt", 'git commit -m "fix: it\'s done"'),
        '`CI=1 npm test > log.txt` came before `git commit -m "fix: it\'s done"`',
    ),
    (
        {"name": "runs_after", "run": "npm run test", "changed": "*.py"},
        Turn("", (WRITES, *ran("npm t").calls)),
        "`npm t` ran after a change of /app/a.py",
    ),
    (
        {"name": "command_run", "command": "npm run test"},
        ran("cd web && npm test -- --ci"),
        "ran 'npm test -- --ci'",
    ),
    (
        {"name": "command_not_run", "command": "rm"},
        ran('for f in *.log; do rm "$f"; done'),
        "ran 'rm \"$f\"'",
    ),
    (AFTER, Turn("", (WRITES,)), "`make lint/check` did not run after a change of /app/a.py"),
    (
        ASKS,
        Turn("", ran("git push").calls, user="Go on.", previous="Done."),
        "`git push` came without a question to the user before it",
    ),
    (COMMIT, ran("git commit -m wip"), "the message 'wip' does not match the rule's pattern"),
    (
        {"name": "commit_excludes", "paths": ".env"},
        ran("git add .env && git commit -m x"),
        "the commit was made with .env",
    ),
]


@pytest.mark.parametrize(("spec", "turn", "reason"), REASONS)
def test_reasons_are_in_words(spec, turn, reason):
    assert build(spec).score_turn(turn).reason == reason


def test_the_reason_names_the_program_behind_its_wrapper():
    spec = {"name": "prefers", "use": "pnpm", "rather_than": "npm"}
    score = build(spec).score_turn(ran("sudo npm i -g x"))
    assert score is not None and score.reason == "`npm` was used"
