"""Logged turns that were cut at the token limit are not judged by rules that need the end."""

import json
from xml.etree import ElementTree

import pytest
from logged_dialogs import CUT_SUITE

from holdfast.cli import main
from holdfast.records import read_run

ANSWER = "Well, the first thing that"
QUESTION = {"role": "user", "content": "How?"}

FORMS = {
    "a message": {
        "messages": [
            QUESTION,
            {"role": "assistant", "content": ANSWER, "finish_reason": "length"},
        ]
    },
    "Anthropic's message": [
        QUESTION,
        {"role": "assistant", "content": ANSWER, "stop_reason": "max_tokens"},
    ],
    "a LangChain message": [
        QUESTION,
        {"type": "ai", "content": ANSWER, "response_metadata": {"finish_reason": "length"}},
    ],
    "the Responses API": {
        "input": "How?",
        "output": [{"type": "message", "role": "assistant", "content": ANSWER}],
        "incomplete_details": {"reason": "max_output_tokens"},
    },
    "Gemini's API": {
        "contents": [{"role": "user", "parts": [{"text": "How?"}]}],
        "response": {
            "candidates": [
                {
                    "content": {"role": "model", "parts": [{"text": ANSWER}]},
                    "finishReason": "MAX_TOKENS",
                }
            ]
        },
    },
    "a run": {
        "method": "none",
        "conversation": 0,
        "agent": {"system_prompt": ""},
        "turns": [
            {"speaker": "user", "text": "How?", "stop_reason": "scripted"},
            {"speaker": "agent", "text": ANSWER, "stop_reason": "length"},
        ],
        "probes": [],
    },
}


def suite_of(tmp_path):
    path = tmp_path / "suite.yaml"
    path.write_text(CUT_SUITE)
    return path


def score(tmp_path, dialogs, *args):
    logs = tmp_path / "logs.jsonl"
    logs.write_text("".join(json.dumps(dialog) + "\n" for dialog in dialogs))
    out = tmp_path / "run"
    code = main(["logs", str(logs), "--suite", str(suite_of(tmp_path)), "--out", str(out), *args])
    return code, read_run(out)


@pytest.mark.parametrize("dialog", FORMS.values(), ids=FORMS)
def test_a_cut_turn_is_judged_only_by_rules_that_its_end_cannot_mend(tmp_path, capsys, dialog):
    code, run = score(tmp_path, [dialog])
    (record,) = run.records
    assert code == 0
    assert [(probe.rule, probe.score) for probe in record.probes] == [("brief", 0.0)]
    assert [(probe.rule, probe.why) for probe in record.unscored] == [("bye", "cut")]
    output = capsys.readouterr().out
    sentence = "Not judged: 1 score of turns that were cut"
    assert sentence in output and "no turn" not in output
    assert sentence in (tmp_path / "run" / "report.html").read_text()


CUT = {"messages": [QUESTION, {"role": "assistant", "content": "Well,", "finish_reason": "length"}]}
WHOLE = {"messages": [QUESTION, {"role": "assistant", "content": "Bye"}]}


def outcomes(folder):
    """The verdict of each rule in summary.json, and the XML element of each test in JUnit."""
    results = json.loads((folder / "run" / "summary.json").read_text())["results"]
    tests = ElementTree.parse(folder / "logs.xml").iter("testcase")
    return (
        {rule["rule"]: rule["verdict"] for rule in results["rules"]},
        {test.get("name"): test[0].tag for test in tests},
    )


def test_a_rule_that_was_judged_on_no_turn_has_not_passed_its_bar(tmp_path, capsys):
    junit = ["--junit", str(tmp_path / "logs.xml")]
    assert score(tmp_path, [CUT] * 60, "--min-adherence", "0.5", *junit)[0] == 3
    verdicts, tests = outcomes(tmp_path)
    assert set(verdicts.values()) == {"undecided"} and set(tests.values()) == {"error"}
    assert "2 undecided" in capsys.readouterr().out
    (tmp_path / "again").mkdir()
    assert score(tmp_path / "again", [WHOLE] * 60, "--min-adherence", "0.5")[0] == 0


def test_a_rule_that_was_judged_on_no_turn_is_undecided_beside_one_that_fails(tmp_path, capsys):
    junit = ["--junit", str(tmp_path / "logs.xml")]
    dialogs = [FORMS["a message"]] * 60
    assert score(tmp_path, dialogs, "--min-adherence", "0.5", *junit)[0] == 1
    verdicts, tests = outcomes(tmp_path)
    assert verdicts == {"bot/bye": "undecided", "bot/brief": "fail"}
    assert tests == {"bye": "error", "brief": "failure"}
    output = capsys.readouterr().out
    assert "1 fail, 1 undecided" in output and "bot/brief" in output.splitlines()[0]


def test_a_rule_that_was_judged_on_no_turn_is_not_compared(tmp_path, capsys):
    (before := tmp_path / "before").mkdir()
    _, earlier = score(before, [WHOLE] * 60)
    junit = ["--junit", str(tmp_path / "logs.xml")]
    assert score(tmp_path, [CUT] * 60, "--against", str(earlier.folder), *junit)[0] == 3
    verdicts, tests = outcomes(tmp_path)
    assert set(verdicts.values()) == {"undecided"} and set(tests.values()) == {"error"}
    assert "Not compared: bot/bye, bot/brief" in capsys.readouterr().out


def call_of(messages, answer, end):
    """A line of the proxy's log: a request, and the answer to it."""
    reply = {"message": {"role": "assistant", "content": answer}, "finish_reason": end}
    return {"messages": messages, "choices": [reply]}


def test_a_cut_turn_stays_cut_in_the_calls_that_repeat_it(tmp_path):
    cut = {"role": "assistant", "content": "Well,"}
    turn = {"role": "user", "content": "And then?"}
    calls = [
        call_of([QUESTION], "Well,", "length"),
        call_of([QUESTION, cut, turn], "So, bye", "stop"),
        call_of(
            [QUESTION, cut, turn, {"role": "assistant", "content": "So, bye"}, turn], "Bye", "stop"
        ),
    ]
    _, run = score(tmp_path, calls)
    (record,) = run.records
    assert [(probe.round, probe.rule) for probe in record.unscored] == [(1, "bye"), (1, "brief")]
    assert {probe.round for probe in record.probes} == {2, 3}


def test_a_turn_that_ended_is_judged(tmp_path):
    ended = {
        "messages": [QUESTION, {"role": "assistant", "content": ANSWER, "finish_reason": "stop"}]
    }
    _, run = score(tmp_path, [ended])
    assert [probe.score for probe in run.records[0].probes] == [0.0, 0.0]
    assert not run.records[0].unscored
