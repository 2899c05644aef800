"""`holdfast logs --label`: the turns it draws, the keys, and the labels that it keeps."""

import json
import os
import sys
from dataclasses import replace

import numpy as np
import pytest
from logged_dialogs import PROBED, SHORT, asked_and_answered, chats, cities, lines_of

from holdfast.analysis import measure_tests
from holdfast.analysis.rule_scores import label_of
from holdfast.cli import main
from holdfast.cli.logs import log_labels
from holdfast.cli.logs.log_labels import label_turns
from holdfast.drift import load_suite
from holdfast.errors import RecordsError
from holdfast.logs import scan_logs
from holdfast.logs.label_agreement import agreements
from holdfast.logs.label_file import LabelFile, LabelKey, line_of
from holdfast.logs.label_sampling import MAX_TURNS, label_tasks, sample_turns
from holdfast.logs.rereading import LogSource
from holdfast.measures.turns import ToolCall, UserAnswer

LONG = "It rains in Rome. " * 60  # longer than a record keeps


GATE = r"""
cases:
  - id: shop
    system_prompt: Test before you commit.
    rules:
      - id: gate
        measure: {name: runs_before, first: 'make test(?!-)', then: 'git( -C \S+)? commit'}
"""


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "luna.yaml").write_text(PROBED)
    return load_suite(str(tmp_path / "luna.yaml"), probed=False)


@pytest.fixture
def logs(tmp_path):
    call = {"id": "c1", "type": "function"}
    call["function"] = {"name": "weather", "arguments": '{"city": "Rome"}'}
    user, answer = asked_and_answered("Which city?", LONG)
    call_message = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "Rain."}
    long = {"messages": [user, call_message, result, answer]}
    path = tmp_path / "a.jsonl"
    path.write_text(lines_of([*cities(60), *chats(2, lambda n: 3), long]))
    return path


@pytest.fixture
def run(tmp_path, logs, suite):
    return scan_logs([logs], suite, tmp_path / "run")


def _keys(text):
    keys = iter(text)
    return lambda: next(keys, "")


def _lines(labels):
    return [json.loads(line) for line in labels.path.read_text().splitlines()]


def test_half_of_the_sampled_turns_of_each_rule_are_broken(run):
    turns_drawn = sample_turns(run, 0)
    assert turns_drawn == sample_turns(run, 0) != sample_turns(run, 1)
    assert len(turns_drawn) == len(set(turns_drawn))
    scores = run.log_scores
    columns = (scores.dialog, scores.turn, scores.rule, scores.score)
    rules = list(map(label_of, scores.rules))
    is_kept = {(d, t, rules[r]): s >= 0.5 for d, t, r, s in zip(*columns, strict=True)}
    of_city = [is_kept[turn] for turn in turns_drawn if turn.rule == "luna/city"]
    assert len(of_city) == MAX_TURNS and sum(of_city) == MAX_TURNS // 2
    assert np.diff(of_city).any() and sorted(of_city) != of_city  # neither comes first
    of_job = [is_kept[turn] for turn in turns_drawn if turn.rule == "luna/job"]
    assert len(of_job) == MAX_TURNS and not any(of_job)  # there is none that is kept


def test_labels_are_lines_that_a_suite_is_tested_on(run, suite, logs, tmp_path):
    tasks = label_tasks(run, sample_turns(run, 0, max_turns=200), suite, LogSource([logs]))
    assert len(tasks) == len(run.log_scores.score)
    labels = LabelFile(run.folder)
    (long,) = (t for t in tasks if t.rule == "luna/city" and t.turn.done.text == LONG)
    (short,) = [t for t in tasks if t.rule == "luna/city" and "line 1," in t.source]
    label_turns([long, short], labels, _keys("yn"))
    first, second = _lines(labels)
    assert first == {
        "rule": "luna/city",
        "label": "follows",
        "source": f"{logs}, line 63, turn 1",
        "reply": LONG,
        "calls": [{"tool": "weather", "arguments": {"city": "Rome"}}],
        "user": "Which city?",
    }
    assert (second["label"], second["reply"]) == ("breaks", "I do not know. Why?")
    turns = measure_tests.read_labelled_turns(labels.path, suite)
    (city,) = (
        test for test in measure_tests.run_measure_tests(suite, turns) if test.rule == "luna/city"
    )
    assert city.turns == 2 and not city.disagreements
    first, _ = turns["luna/city"].values()
    assert first.turn.calls == long.turn.done.calls


def test_a_turn_before_is_labelled_again_and_the_last_label_counts(run, suite, logs):
    tasks = label_tasks(run, sample_turns(run, 0), suite, LogSource([logs]))[:3]
    labels = LabelFile(run.folder)
    label_turns(tasks, labels, _keys("yxbnsq"))  # x is no key; after b the first one is n
    assert [line["label"] for line in _lines(labels)] == ["follows", "breaks"]
    assert dict(labels.items()) == {LabelKey.of_task(tasks[0]): "breaks"}
    (turns,) = measure_tests.read_labelled_turns(labels.path, suite).values()
    assert [labelled.follows for labelled in turns.values()] == [False]


def test_a_rule_is_skipped_and_another_key_is_named(run, suite, logs, capsys):
    tasks = label_tasks(run, sample_turns(run, 0), suite, LogSource([logs]))
    first, second, *_ = dict.fromkeys(task.rule for task in tasks)
    labels = LabelFile(run.folder)
    label_turns(tasks, labels, _keys("yrnxq"))
    assert [key.rule for key, _ in labels.items()] == [first, second]
    output = capsys.readouterr().out
    assert f"the rest of {first} is skipped" in output
    assert "'x' is not one of these keys" in output
    assert "r skip the rule" in output


def test_what_is_labelled_is_shown_in_words(tmp_path, capsys):
    (tmp_path / "rules.yaml").write_text(GATE)
    call = {"name": "Bash", "arguments": json.dumps({"command": "git commit -m x"})}
    messages = [
        {"role": "user", "content": "Commit."},
        {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": call}]},
    ]
    (tmp_path / "a.jsonl").write_text(lines_of([{"messages": messages}]))
    suite = load_suite(str(tmp_path / "rules.yaml"), probed=False)
    run = scan_logs([tmp_path / "a.jsonl"], suite, tmp_path / "run")
    tasks = label_tasks(run, sample_turns(run, 0), suite, LogSource([tmp_path / "a.jsonl"]))
    label_turns(tasks, LabelFile(run.folder), _keys("q"))
    output = capsys.readouterr().out
    assert "[measured by] runs_before: first `make test`, then `git commit`\n" in output
    assert "[call] Bash command: git commit -m x\n" in output and "{" not in output


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"name": "commit_message", "pattern": r"\A.{1,60}\Z"},
            r"commit_message: pattern \A.{1,60}\Z",
        ),
        (
            {"name": "command_not_run", "command": r"git push(?!\S)"},
            "command_not_run: command `git push`",
        ),
    ],
)
def test_a_pattern_without_words_is_shown_as_it_is(spec, text):
    """Else a person could not see that only the length is tested."""
    assert log_labels._measure_text(spec) == text


def test_the_answers_that_a_score_rests_on_are_shown(run, suite, logs, capsys):
    (task,) = label_tasks(run, sample_turns(run, 0), suite, LogSource([logs]))[:1]
    questions = [{"question": "Shall I push?"}, {"question": "Which port?"}]
    answers = (UserAnswer("Shall I push?", "Not yet."), UserAnswer("Which port?", "8080"))
    call = ToolCall("AskUserQuestion", {"questions": questions}, answers=answers)
    turn = replace(task.turn, done=replace(task.turn.done, calls=(call,)))
    label_turns([replace(task, turn=turn)], LabelFile(run.folder), _keys("q"))
    output = capsys.readouterr().out
    assert "[answer] Shall I push? Not yet.\n[answer] Which port? 8080\n" in output


def test_labelling_goes_on_after_a_torn_line(run, suite, logs, capsys):
    tasks = label_tasks(run, sample_turns(run, 0), suite, LogSource([logs]))[:4]
    label_turns(tasks, LabelFile(run.folder), _keys("yn"))  # the input ends, as with q
    path = run.folder / "labels.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    capsys.readouterr()
    labels = LabelFile(run.folder)
    label_turns(tasks, labels, _keys("nnn"))
    assert capsys.readouterr().out.count(" of 3: ") == 3
    assert [line["source"] for line in _lines(labels)] == [task.source for task in tasks]
    assert [label for _, label in labels.items()] == ["follows", "breaks", "breaks", "breaks"]


@pytest.mark.parametrize(
    "line",
    [
        '{"rule": "luna", "label": "maybe"}',
        '{"rule": ["a"], "label": "follows", "source": "s"}',
    ],
)
def test_a_line_that_is_no_label_is_named(run, line):
    (run.folder / "labels.jsonl").write_text(line + "\n")
    with pytest.raises(RecordsError) as excinfo:
        LabelFile(run.folder)
    assert excinfo.value.value == 1


def test_the_score_is_not_shown(run, suite, logs, capsys):
    (task,) = label_tasks(run, sample_turns(run, 0), suite, LogSource([logs]))[:1]
    label_turns([task], LabelFile(run.folder), _keys("s"))
    output = capsys.readouterr().out
    assert task.text in output and task.turn.user in output
    turn = sample_turns(run, 0)[0]
    (probe,) = (
        probe
        for probe in run.dialogs[turn.dialog].probes
        if probe.round == turn.turn and turn.rule == f"luna/{probe.rule}"
    )
    assert probe.reason and probe.reason not in output


def test_agreement_counts_turns_by_how_they_are_scored(run, suite, logs):
    tasks = label_tasks(run, sample_turns(run, 0), suite, LogSource([logs]))
    city = [task for task in tasks if task.rule == "luna/city"]
    labels = LabelFile(run.folder)
    for number, task in enumerate(city):
        follows = "Rome" in task.turn.done.text or number == 0  # one mistake at most
        labels.add(task, "follows" if follows else "breaks")
    wrong = "Rome" not in city[0].turn.done.text
    labels.path.write_text(
        labels.path.read_text()
        + json.dumps({**line_of(city[0], "follows"), "source": "gone.jsonl, line 1, turn 1"})
        + "\n"
    )
    (row,) = agreements(run, LabelFile(run.folder))
    assert row.rule == "luna/city" and row.unknown == 1
    assert row.agreement.n == MAX_TURNS
    assert row.agreement.mean == pytest.approx(1 - wrong / MAX_TURNS)
    assert row.agreement.low < row.agreement.mean and row.kept.mean == 1
    assert row.broken.n == row.kept.n == MAX_TURNS // 2


def test_logs_that_changed_are_not_taken_for_those_that_were_scored(run, suite, logs):
    lines = logs.read_text().splitlines(keepends=True)
    lines[0] = lines[0].replace("I do not know", "I did not know")
    logs.write_text("".join(lines))
    turns_drawn = sample_turns(run, 0, max_turns=200)
    tasks = label_tasks(run, turns_drawn, suite, LogSource([logs]))
    first = [turn for turn in turns_drawn if turn.dialog == 0]
    assert first and len(tasks) == len(turns_drawn) - len(first)
    assert not any(task.source.startswith(f"{logs}, line 1,") for task in tasks)


def test_dialogs_of_one_session_are_told_apart(tmp_path, suite):
    def span(start, question, answer):
        user_message, reply = (
            {"role": role, "parts": [{"type": "text", "content": text}]}
            for role, text in (("user", question), ("assistant", answer))
        )
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.conversation.id": "c",
            "gen_ai.input.messages": json.dumps([user_message]),
            "gen_ai.output.messages": json.dumps([reply]),
        }
        return {"start_time": start, "attributes": attributes}

    path = tmp_path / "spans.jsonl"
    path.write_text(
        lines_of([span("1", "Which city?", "Rome."), span("2", "What city?", "No idea.")])
    )
    run = scan_logs([path], suite, tmp_path / "run")
    assert len({record.source for record in run.dialogs}) == 1 < len(run.dialogs)
    tasks = label_tasks(run, sample_turns(run, 0), suite, LogSource([path]))
    turns = {(task.turn.user, task.turn.done.text) for task in tasks if task.rule == "luna/city"}
    assert turns == {("Which city?", "Rome."), ("What city?", "No idea.")}
    labels = LabelFile(run.folder)
    label_turns([task for task in tasks if task.rule == "luna/city"], labels, _keys("yy"))
    assert len(_lines(labels)) == len([*labels.items()]) == 2


def test_the_command_needs_a_terminal(tmp_path, logs, capsys, monkeypatch):
    arguments = ["logs", str(logs), "--suite", str(tmp_path / "luna.yaml"), "--label"]
    arguments += ["--out", str(tmp_path / "labelled")]
    (tmp_path / "luna.yaml").write_text(PROBED)
    with open(os.devnull) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert main(arguments) == 2
    assert "--label" in capsys.readouterr().err and not (tmp_path / "labelled").exists()


def test_the_command_asks_and_prints_the_agreement(tmp_path, logs, capsys, monkeypatch):
    pty = pytest.importorskip("pty")
    (tmp_path / "short.yaml").write_text(SHORT)
    arguments = ["logs", str(logs), "--suite", str(tmp_path / "short.yaml"), "--label"]
    arguments += ["--out", str(tmp_path / "labelled"), "--seed", "3"]
    keyboard, terminal = pty.openpty()
    os.write(keyboard, b"yynq")
    with os.fdopen(terminal) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert main(arguments) == 0
    os.close(keyboard)
    output = capsys.readouterr().out
    lines = (tmp_path / "labelled" / "labels.jsonl").read_text().splitlines()
    labels = [json.loads(line) for line in lines]
    assert [label["label"] for label in labels] == ["follows", "follows", "breaks"]
    (row,) = (line for line in output.splitlines() if line.startswith("short "))
    assert row.split()[1] == "3" and "agreement" in output
    assert main([*arguments, "--min-adherence", "0.9"]) == 2
