"""Rules of agents: untouched files, malformed arguments, and labelled turns of a suite."""

import json

import pytest
from agent_turns import bash, call, did, judge, ran

from holdfast.cli import main
from holdfast.drift.suite_file import parse_suite
from holdfast.errors import UsageError
from holdfast.measures import build
from holdfast.measures.turns import AssistantTurn as Turn
from holdfast.records import read_run

NO_MIGRATIONS = {"name": "file_not_touched", "path": "migrations/*"}


def after_edit(command: str) -> Turn:
    """A turn after one that changed a file."""
    edit = call("Edit", file_path="/w/migrations/a.sql", old_string="a", new_string="b")
    return Turn("", (bash(command),), earlier=(edit,))


UNTOUCHED = [
    (NO_MIGRATIONS, ran("git mv migrations/a.sql b.sql"), 0),
    (NO_MIGRATIONS, ran("git rm migrations/a.sql"), 0),
    (NO_MIGRATIONS, ran("git checkout main -- migrations/a.sql"), 0),
    (NO_MIGRATIONS, ran("git restore migrations/a.sql"), 0),
    (NO_MIGRATIONS, ran("git restore --staged migrations/a.sql"), None),
    (NO_MIGRATIONS, ran("git checkout main"), None),
    (NO_MIGRATIONS, after_edit("git restore migrations/a.sql"), 1),
    (NO_MIGRATIONS, after_edit("git checkout -- migrations/a.sql"), 1),
    (NO_MIGRATIONS, after_edit("git checkout HEAD -- migrations/a.sql"), 1),
    (NO_MIGRATIONS, after_edit("git checkout main -- migrations/a.sql"), 0),
    (NO_MIGRATIONS, after_edit("git restore --source=main migrations/a.sql"), 0),
    (NO_MIGRATIONS, after_edit("git restore migrations/b.sql"), 0),
    (NO_MIGRATIONS, after_edit("rm migrations/a.sql"), 0),
    (NO_MIGRATIONS, ran("rm -r migrations"), 0),
    (NO_MIGRATIONS, ran("mv migrations old"), 0),
    (NO_MIGRATIONS, ran("rm migrations.md"), 1),
    (NO_MIGRATIONS, ran("cd migrations && echo x > a.sql"), 0),
    (NO_MIGRATIONS, ran("cd /w/app/migrations; rm a.sql"), 0),
    (NO_MIGRATIONS, ran("cd migrations && cd .. && echo x > a.sql"), 1),
    (NO_MIGRATIONS, ran("(cd migrations && ls); echo x > a.sql"), 1),
    (NO_MIGRATIONS, did(call("mcp__fs__move_file", source="migrations/a.sql", destination="b")), 0),
]


@pytest.mark.parametrize(("rule", "turn", "score"), UNTOUCHED)
def test_files_that_commands_and_tools_touch(rule, turn, score):
    assert judge(rule, turn) == score


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"name": "code_written", "pattern": "("}, "'('"),
        ({"name": "code_not_written", "pattern": "a", "files": []}, "files"),
        ({"name": "pull_request"}, "pull_request"),
        ({"name": "pull_request", "base": "["}, "'['"),
        ({"name": "runs_after", "run": "a"}, "runs_after"),
        ({"name": "runs_after", "run": "a", "after": "b", "changed": "c"}, "runs_after"),
        ({"name": "changes_together", "changed": "a", "also": "b", "within": "day"}, "within"),
        ({"name": "asks_before", "asking": "a"}, "asks_before"),
        ({"name": "asks_before", "asking": "a", "command": "b", "agreed": "("}, "'('"),
        ({"name": "commit_includes"}, "commit_includes"),
        ({"name": "commit_excludes", "paths": "a", "trailer": "b"}, "commit_excludes"),
    ],
)
def test_a_malformed_argument_is_named(spec, message):
    with pytest.raises(UsageError) as excinfo:
        build(spec)
    assert message in str(excinfo.value)


# Labelled turns


LABELLED = """
cases:
  - id: repo
    system_prompt: Work.
    rules:
      - id: typed
        measure: {name: code_not_written, pattern: ': any', files: '*.ts'}
        follows:
          - calls: [{tool: Write, arguments: {file_path: a.ts, content: 'let a = 1'}}]
        breaks:
          - calls: [{tool: Edit, arguments: {file_path: a.ts, old_string: a, new_string: 'a: any'}}]
      - id: asks
        measure: {name: asks_before, command: git push, asking: push}
        follows:
          - previous: Shall I push?
            user: Yes.
            calls: [{tool: Bash, arguments: {command: git push}}]
        breaks:
          - {user: Thanks., calls: [{tool: Bash, arguments: {command: git push}}]}
      - id: tested
        measure: {name: runs_before, first: pytest, then: git commit}
        follows:
          - earlier: [{tool: Bash, arguments: {command: pytest}}]
            calls: [{tool: Bash, arguments: {command: git commit}}]
      - id: looks-up
        measure: {name: tool_called, tool: lookup}
        breaks: [The price is 3.]
      - id: short
        measure: one_sentence
        follows: [{reply: Yes.}]
"""


def test_labelled_turns_of_a_suite_test_its_measures():
    suite = parse_suite(LABELLED, "rules.yaml", "rules", probed=False)
    assert len(suite.cases[0].rules) == 5


@pytest.mark.parametrize(
    ("text", "replacement", "message"),
    [
        ("'a: any'", "'a: number'", "'code_not_written'"),  # on the wrong side
        ("file_path: a.ts, content", "file_path: a.md, content", "'code_not_written'"),  # no case
        ("content: 'let a = 1'", "x: y", "a.ts"),  # not shown
        ("tool: Write", "tols: Write", "'tols'"),
        ("previous: Shall I push?", "previous: Done.", "'asks_before'"),
        ("[The price is 3.]", "[{calls: [{tool: lookup}]}]", "'tool_called'"),
        ("{reply: Yes.}", "{reply: Yes. No.}", "'one_sentence'"),
    ],
)
def test_a_labelled_turn_on_the_wrong_side_is_refused(text, replacement, message):
    assert text in LABELLED
    with pytest.raises(UsageError) as excinfo:
        parse_suite(LABELLED.replace(text, replacement), "rules.yaml", "rules", probed=False)
    assert message in str(excinfo.value)


def test_turns_that_do_not_show_what_decides_are_counted_and_not_scored(tmp_path, capsys):
    def dialog(command: str) -> dict:
        function = {"name": "Bash", "arguments": json.dumps({"command": command})}
        calls = [{"id": "1", "type": "function", "function": function}]
        prompt = {"role": "user", "content": "Go."}
        return {"messages": [prompt, {"role": "assistant", "content": "", "tool_calls": calls}]}

    scripts = ["sed -i s/a/b/ a.ts", "echo 'a: any' > a.ts", "ls"]
    logs, rules = tmp_path / "logs.jsonl", tmp_path / "rules.yaml"
    logs.write_text("".join(json.dumps(dialog(script)) + "\n" for script in scripts))
    rules.write_text(LABELLED)
    assert main(["logs", str(logs), "--suite", str(rules), "--out", str(tmp_path / "run")]) == 0
    hidden, visible, answered_turn = read_run(tmp_path / "run").records
    assert [(probe.rule, probe.why) for probe in hidden.unscored] == [("typed", "not shown")]
    assert ("typed", 0.0) in [(probe.rule, probe.score) for probe in visible.probes]
    assert "typed" not in [probe.rule for probe in (*hidden.probes, *answered_turn.answered)]
    output = capsys.readouterr().out
    assert "Not judged: 1 score, as the logs do not show" in output and "cut at" not in output
