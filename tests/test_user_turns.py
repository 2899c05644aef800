"""Scripted user messages: sent in place of a user model's, whatever the agent answers."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from synthetic_run import as_json
from test_drift import QUICK, SUITE, Scripted, without_time
from tiny import model

from holdfast import drift
from holdfast.cli import main
from holdfast.drift.pairing import draw, resolve_settings
from holdfast.drift.recorded_dialogs import read_user_turns
from holdfast.drift.remaining import count_replies
from holdfast.errors import RecordsError, UsageError
from holdfast.records import read_run

SCRIPTS = [[f"{name}{number}" for number in (1, 2, 3, 4)] for name in "abc"]


@pytest.fixture
def scripts(tmp_path):
    path = tmp_path / "scripts.jsonl"
    path.write_text("\n".join(map(json.dumps, SCRIPTS)) + "\n")
    return path


def cast(scripts):
    return drift.Cast(user_turns=scripts)


def test_the_agent_answers_each_message_and_probes_fork(tmp_path, scripts):
    scripted = Scripted()
    settings = replace(QUICK, conversations=1)
    record = as_json(drift.run(scripted, SUITE, tmp_path / "run", settings, cast=cast(scripts)))[0]
    said = SCRIPTS[record["scripted"]["line"] - 1]
    turns = record["turns"]
    assert [turn["text"] for turn in turns[::2]] == said[:3]
    assert {turn["stop_reason"] for turn in turns[::2]} == {"scripted"}
    assert {turn["speaker"] for turn in turns[1::2]} == {"agent"}
    prompt = record["agent"]["system_prompt"]
    views = [[message["content"] for message in request.messages] for request in scripted.requests]
    probes = [probe["question"] for probe in record["probes"]]
    b1, b2 = turns[1]["text"], turns[3]["text"]
    assert [prompt, said[0], b1, said[1]] in views  # the agent's second turn
    assert [prompt, probes[0]] in views  # round 1: the unloaded model
    assert [prompt, said[0], b1, said[1], b2, probes[2]] in views  # in place of the third message
    assert len(views) == 6 == count_replies(SUITE, settings, read_user_turns(scripts), [0])
    assert {probe["kind"] for probe in record["probes"]} == {"stability"}  # nobody to adopt from
    assert record["user"]["system_prompt"] == ""


def test_every_script_is_used_before_one_is_used_again(scripts):
    user_turns = read_user_turns(scripts)
    settings = resolve_settings(SUITE, replace(QUICK, conversations=9), user_turns)
    lines = [draw(SUITE, settings, user_turns, number).script.line for number in range(9)]
    assert Counter(lines) == {1: 3, 2: 3, 3: 3}
    assert all(set(lines[lap : lap + 3]) == {1, 2, 3} for lap in (0, 3, 6))
    other = replace(settings, seed=5)
    assert lines != [draw(SUITE, other, user_turns, number).script.line for number in range(9)]


@pytest.mark.parametrize("probe_at", ["in-place", "after-round"])
def test_interrupted_and_resumed_equals_uninterrupted(tmp_path, scripts, probe_at):
    settings = replace(QUICK, conversations=4, probe_at=probe_at, batch=1)
    whole = drift.run(model(), SUITE, tmp_path / "whole", settings, cast=cast(scripts))
    less = replace(settings, conversations=2)
    drift.run(model(), SUITE, tmp_path / "parts", less, cast=cast(scripts))
    file = tmp_path / "parts" / "records.jsonl"
    first, *_ = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first + b'{"method": "no')  # killed while it wrote the second
    parts = drift.run(model(), SUITE, tmp_path / "parts", settings, cast=cast(scripts))
    assert without_time(parts) == without_time(whole)


def test_another_file_is_another_run(tmp_path, scripts):
    drift.run(Scripted(), SUITE, tmp_path / "run", QUICK, cast=cast(scripts))
    scripts.write_text(json.dumps(["d1", "d2", "d3"]))
    with pytest.raises(RecordsError, match="user turns"):
        drift.run(Scripted(), SUITE, tmp_path / "run", QUICK, cast=cast(scripts))


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("", "holds no dialog"),
        ("[1, 2]", r"Line 1 of .* is \[1, 2\], not a list of user messages"),
        ('["a"]\n["b", " "]', r'Line 2 of .* is \["b", " "\]'),
        ("[", "Line 1 of .* is not JSON"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path, content, named):
    path = tmp_path / "bad.jsonl"
    path.write_text(content)
    with pytest.raises(UsageError, match=named):
        read_user_turns(path)


def test_too_few_messages_are_refused(tmp_path, scripts):
    named = "Line 1 of scripts.jsonl has 4 messages.*5 rounds.*--rounds 4"
    with pytest.raises(UsageError, match=named):
        drift.run(Scripted(), SUITE, tmp_path / "run", replace(QUICK, rounds=5), cast=cast(scripts))


def test_conflicting_sources_of_user_turns_are_refused(tmp_path, scripts):
    both = drift.Cast(dialogs="logs.jsonl", user_turns=scripts)
    with pytest.raises(UsageError, match=r"--dialogs logs.jsonl .*scripts.jsonl"):
        drift.run(Scripted(), SUITE, tmp_path / "run", QUICK, cast=both)
    with pytest.raises(UsageError, match=r"--user-prompt empty.*scripts.jsonl"):
        resolve_settings(SUITE, replace(QUICK, user_prompt="empty"), read_user_turns(scripts))


def test_the_command_reports_where_the_user_turns_come_from(tmp_path, scripts, capsys):
    out = tmp_path / "run"
    options = ["--rounds", "2", "--conversations", "2", "--max-new-tokens", "8", "--out", str(out)]
    main(["drift", "--user-turns", str(scripts), *options])
    assert "2 rounds: 8 replies" in capsys.readouterr().err
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "of scripts.jsonl" in page and "from a script" in page
    assert page.count("<dt>Adoption") == 1, "not beside the first figure, as it is not measured"
    assert '"isGiven":true' in page
    identity = json.loads((out / "summary.json").read_text(encoding="utf-8"))["identity"]
    assert identity["user_turns"]["name"] == "scripts.jsonl"
    assert identity["settings"]["user_prompt"] == "scripted"


@pytest.mark.slow
def test_calibrate_and_check_take_user_turns_too(tmp_path, scripts, capsys):
    sizes = ["--rounds", "2", "--max-new-tokens", "8", "--user-turns", str(scripts)]
    folder = tmp_path / "calibration"
    options = ["--prompts", "upper-1,upper-2", "--draws", "2", "--ask-at", "2"]
    more = ["--questions", "4", "--sweep", "boost:factor=2", "--out", str(folder)]
    main(["calibrate", *options, *more, *sizes])
    stability = read_run(folder / "stability")
    assert stability.manifest.identity.to_json()["user_turns"]["name"] == "scripts.jsonl"
    texts = {turn["text"] for record in as_json(stability) for turn in record["turns"][::2]}
    assert texts <= {text for script in SCRIPTS for text in script}
    main(["check", "bot", "--budget", "1", "--out", str(tmp_path / "check"), *sizes])
    assert as_json(read_run(tmp_path / "check"))[0]["scripted"]["line"] in (1, 2, 3)
    scripts.write_text(json.dumps(["d1", "d2"]))
    assert main(["calibrate", *options, *more, *sizes]) == 2
    error = capsys.readouterr().err
    assert "'scripts.jsonl' have changed" in error, error


def test_what_a_message_puts_the_rules_under_is_recorded_and_exported(tmp_path):
    path = tmp_path / "tagged.jsonl"
    script = [
        {"text": "a1", "pressure": "none"},
        {"text": "a2", "pressure": "push"},
        "a3",
        {"text": "a4", "pressure": "paste"},
    ]
    path.write_text(json.dumps(script))
    settings = replace(QUICK, conversations=1, rounds=4)
    run = drift.run(Scripted(), SUITE, tmp_path / "run", settings, cast=cast(path))
    (record,) = run.conversations
    users = [turn for turn in record.turns if turn.speaker == "user"]
    assert [turn.text for turn in users] == ["a1", "a2", "a3", "a4"]
    assert [turn.pressure for turn in users] == ["none", "push", None, "paste"]
    assert "pressure" not in record.turns[1].to_json()
    columns = run.to_columns()
    by_round = dict(zip(columns["round"], columns["pressure"], strict=True))
    assert by_round == {1: None, 2: "none", 3: "push", 4: None}  # each in place of its message
    after = replace(settings, probe_at="after-round")
    run = drift.run(Scripted(), SUITE, tmp_path / "after", after, cast=cast(path))
    columns = run.to_columns()
    by_round = dict(zip(columns["round"], columns["pressure"], strict=True))
    assert by_round == {1: "none", 2: "push", 3: None, 4: "paste"}


def test_an_unknown_pressure_is_refused(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text('["a", {"text": "b", "pressure": "pushy"}]')
    with pytest.raises(UsageError) as raised:
        read_user_turns(path)
    assert (raised.value.option, raised.value.value) == ("pressure", "pushy")
    assert "push" in raised.value.allowed
    for line in ('[{"text": " "}]', '[{"txt": "a"}]', '[{"text": "a", "more": 1}]', '[["a"]]'):
        path.write_text(line)
        with pytest.raises(UsageError) as raised:
            read_user_turns(path)
        assert raised.value.value == json.loads(line)


def test_the_kind_and_polarity_of_a_rule_are_recorded_and_exported(tmp_path):
    kinds = replace(SUITE, cases=(replace(SUITE.cases[0], kind="closing", polarity="gate"),))
    run = drift.run(Scripted(), kinds, tmp_path / "run", replace(QUICK, conversations=1))
    assert {probe.rule_kind for probe in run.conversations[0].probes} == {"closing"}
    columns = run.to_columns()
    assert set(columns["rule_kind"]) == {"closing"} and set(columns["polarity"]) == {"gate"}
