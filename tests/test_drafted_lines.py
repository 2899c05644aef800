"""Lines of rules files beside the measures that are drafted from them, or none."""

import pytest

from holdfast.drafting.drafts import Undrafted
from holdfast.drafting.line_rules import draft
from holdfast.drafting.rules_file import read_statements
from holdfast.measures import build
from holdfast.measures.turns import AssistantTurn, ToolCall


def measures_of(text: str, of_bot: bool = False) -> list[dict]:
    """The measures of all rules that a text drafts."""
    results = [draft(statement, of_bot) for statement in read_statements(text)]
    return [rule.measure for rules in results if not isinstance(rules, Undrafted) for rule in rules]


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("Never run `forever start app.js`", r"forever start app\.js"),
        ("Do not use `npm forever list`", "npm forever list"),
        ("Never run `make manually clean`", "make manually clean"),
        ("Never run `terraform apply directly to prod`", "terraform apply directly to prod"),
        ("Never run `clever deploy`", "clever deploy"),
        ("Never run `forever start`", "forever start"),
        ("Never manually run `npm version`", "npm version"),
        ("Never ever directly run `npm version`", "npm version"),
    ],
)
def test_adverbs_are_left_out_only_before_the_verb(line, command):
    assert measures_of(line) == [
        {"name": "command_not_run", "command": rf"{command}(?!\S)"},
    ]


def test_an_item_two_levels_below_titles_is_about_something_else():
    is_about_titles = "## PR titles\n\n- Use Conventional Commits.\n"
    assert [spec["name"] for spec in measures_of(is_about_titles)] == ["pull_request"]
    deeper = "## PR titles\n\n### Commits of a branch\n\n- Use Conventional Commits.\n"
    assert all(spec["name"] != "pull_request" for spec in measures_of(deeper))
    shape = "### PR Title Format\n\n`<type>: <title>`\n\n- Title must start with lowercase letter\n"
    assert "pull_request" in [spec["name"] for spec in measures_of(shape)]


@pytest.mark.parametrize(
    ("command", "is_a_merge_into_main"),
    [
        ("git checkout main && git merge feature", True),
        ("gh pr merge 7", True),
        ("git merge main", False),
        ("git merge origin/main", False),
        ("git merge main-menu", True),
    ],
)
def test_a_merge_into_main_needs_the_users_word(command, is_a_merge_into_main):
    (spec,) = measures_of("Never merge to `main` yourself — wait for approval.")
    turn = AssistantTurn("", (ToolCall("Bash", {"command": command}),), user="Fix it.")
    judgement = build(spec).judge_turn(turn)
    assert (judgement is not None and judgement.value == 0) == is_a_merge_into_main


@pytest.mark.parametrize(
    "line",
    [
        "Never push yourself — wait for approval.",
        "Never push yourself (wait for approval).",
        "Never push yourself; ask.",
    ],
)
def test_an_approval_that_is_waited_for_is_a_gate_in_any_punctuation(line):
    (spec,) = measures_of(line)
    assert spec["name"] == "asks_before"
