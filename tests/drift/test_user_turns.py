"""Scripted user messages: sent in place of a user model's, whatever the agent answers."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from fast_set import only_fast
from scripted_model import Scripted
from short_drift import QUICK, SUITE, without_time
from synthetic_run import as_json
from tiny import model

from holdfast import drift
from holdfast.cli import main
from holdfast.cli.main_parser import read_command
from holdfast.cli.shared.user_messages import load_user_turns
from holdfast.drift.pairing import draw_conversation
from holdfast.drift.remaining import count_replies
from holdfast.drift.resolved_settings import resolve_settings
from holdfast.drift.user_scripts import read_user_turns
from holdfast.errors import RecordsError, UsageError
from holdfast.records import read_run
from holdfast.records.identity import ConversationsIdentity

# a1 to a4, b1 to b4, c1 to c4: each script has four messages
SCRIPTS = [[f"{name}{number}" for number in (1, 2, 3, 4)] for name in "abc"]


@pytest.fixture
def scripts(tmp_path):
    path = tmp_path / "scripts.jsonl"
    path.write_text("\n".join(map(json.dumps, SCRIPTS)) + "\n")
    return path


def cast(scripts):
    """The participants of a run whose user messages are from the scripts."""
    return drift.Cast(user_turns=scripts)


# Conversations


def test_the_agent_answers_each_message_and_probes_fork(tmp_path, scripts):
    scripted = Scripted()
    settings = replace(QUICK, conversations=1)
    (record,) = as_json(drift.run(scripted, SUITE, tmp_path / "run", settings, cast=cast(scripts)))
    lines = SCRIPTS[record["scripted"]["line"] - 1]
    turns = record["turns"]
    assert [turn["text"] for turn in turns[::2]] == lines[:3]
    assert {turn["stop_reason"] for turn in turns[::2]} == {"scripted"}
    assert {turn["speaker"] for turn in turns[1::2]} == {"agent"}
    prompt = record["agent"]["system_prompt"]
    views = [[message["content"] for message in request.messages] for request in scripted.requests]
    probes = [probe["question"] for probe in record["probes"]]
    first_answer, second_answer = turns[1]["text"], turns[3]["text"]
    # the agent's second turn
    assert [prompt, lines[0], first_answer, lines[1]] in views
    # the probe of round 1 comes before any message, that of round 3 in place of the third
    assert [prompt, probes[0]] in views
    assert [prompt, lines[0], first_answer, lines[1], second_answer, probes[2]] in views
    assert len(views) == 6 == count_replies(SUITE, settings, [0], cast(scripts))
    assert {probe["kind"] for probe in record["probes"]} == {"stability"}  # nobody to adopt from
    assert record["user"]["system_prompt"] == ""


def test_every_script_is_used_before_one_is_used_again(scripts):
    scripted = cast(scripts)
    settings = resolve_settings(SUITE, replace(QUICK, conversations=9), scripted)

    def lines_with(settings):
        conversations = [draw_conversation(SUITE, settings, n, scripted) for n in range(9)]
        return [conversation.script.line for conversation in conversations]

    lines = lines_with(settings)
    assert Counter(lines) == {1: 3, 2: 3, 3: 3}
    assert all(set(lines[lap : lap + 3]) == {1, 2, 3} for lap in (0, 3, 6))
    assert lines != lines_with(replace(settings, seed=5))


# Runs


@pytest.mark.parametrize("probe_at", only_fast(["in-place", "after-round"], "in-place"))
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


def test_a_cast_reads_its_file_once(scripts):
    read_at_once = cast(scripts)
    assert read_at_once.user_turns == read_user_turns(scripts) and read_at_once.dialogs is None
    scripts.unlink()
    assert [line.text for line in read_at_once.user_turns.scripts[0].messages] == SCRIPTS[0]
    assert replace(read_at_once, user_model=None) == read_at_once


# The pressure of a message


def pressure_by_round(run):
    columns = run.to_columns()
    return dict(zip(columns["round"], columns["pressure"], strict=True))


def test_the_pressure_of_a_message_is_recorded_and_exported(tmp_path):
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
    # a probe in place of a message comes after the message of the round before
    assert pressure_by_round(run) == {1: None, 2: "none", 3: "push", 4: None}
    after = replace(settings, probe_at="after-round")
    run = drift.run(Scripted(), SUITE, tmp_path / "after", after, cast=cast(path))
    assert pressure_by_round(run) == {1: "none", 2: "push", 3: None, 4: "paste"}


def test_an_unknown_pressure_is_refused(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text('["a", {"text": "b", "pressure": "pushy"}]')
    with pytest.raises(UsageError) as excinfo:
        read_user_turns(path)
    assert (excinfo.value.option, excinfo.value.value) == ("pressure", "pushy")
    assert "push" in excinfo.value.allowed
    for line in ('[{"text": " "}]', '[{"txt": "a"}]', '[{"text": "a", "more": 1}]', '[["a"]]'):
        path.write_text(line)
        with pytest.raises(UsageError) as excinfo:
            read_user_turns(path)
        assert excinfo.value.value == json.loads(line)


# Refusals


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no dialog"),
        ("[1, 2]", r"Line 1 of .* is \[1, 2\], not a list of user messages"),
        ('["a"]\n["b", " "]', r'Line 2 of .* is \["b", " "\]'),
        ("[", "Line 1 of .* is not JSON"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path, content, message):
    path = tmp_path / "bad.jsonl"
    path.write_text(content)
    with pytest.raises(UsageError, match=message):
        read_user_turns(path)


def test_too_few_messages_are_refused(tmp_path, scripts):
    message = "Line 1 of scripts.jsonl has 4 messages.*5 rounds.*rounds=4"
    with pytest.raises(UsageError, match=message):
        drift.run(Scripted(), SUITE, tmp_path / "run", replace(QUICK, rounds=5), cast=cast(scripts))


def test_conflicting_sources_of_user_turns_are_refused(tmp_path, scripts):
    with pytest.raises(UsageError, match=r"dialogs='logs.jsonl' .*scripts.jsonl"):
        drift.Cast(dialogs="logs.jsonl", user_turns=scripts)
    with pytest.raises(UsageError, match=r"user_prompt='empty'.*scripts.jsonl"):
        resolve_settings(SUITE, replace(QUICK, user_prompt="empty"), cast(scripts))


# Commands


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
    sweep = ["--questions", "4", "--sweep", "boost:factor=2", "--out", str(folder)]
    main(["calibrate", *options, *sweep, *sizes])
    stability = read_run(folder / "stability")
    assert stability.manifest.identity.to_json()["user_turns"]["name"] == "scripts.jsonl"
    texts = {turn["text"] for record in as_json(stability) for turn in record["turns"][::2]}
    assert texts <= {text for script in SCRIPTS for text in script}
    main(["check", "bot", "--budget", "1", "--out", str(tmp_path / "check"), *sizes])
    assert as_json(read_run(tmp_path / "check"))[0]["scripted"]["line"] in (1, 2, 3)
    scripts.write_text(json.dumps(["d1", "d2"]))
    assert main(["calibrate", *options, *sweep, *sizes]) == 2
    error = capsys.readouterr().err
    assert "'scripts.jsonl' have changed" in error, error


# A suite of one's own, which gets bundled scripts unless an option says who the user is

OWN_SUITE = """name: own
cases:
  - id: tony
    system_prompt: Sign every message with Tony.
    probes: [What is on the menu?]
    measure: {name: ends_with, word: Tony}
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--suite own.yaml", "everyday.jsonl"),
        ("--suite own.yaml --rounds 12", "work.jsonl"),
        ("--suite own.yaml --rounds 32", "long.jsonl"),
        ("--suite own.yaml --rounds 33", None),
        ("--suite own.yaml --user-turns work", "work.jsonl"),
        ("--suite own.yaml --user-turns none", None),
        ("--suite own.yaml --user-model default", None),
        ("--suite own.yaml --persona Ada", None),
        ("--suite own.yaml --user-prompt empty", None),
        ("--suite own.yaml --pairs all", None),
        ("--suite own.yaml --dialogs logs.jsonl", None),
        ("--suite personas.yaml", None),
        ("--suite luna", None),
    ],
)
def test_a_suite_of_ones_own_gets_scripted_messages(tmp_path, monkeypatch, words, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.yaml").write_text(OWN_SUITE)
    (tmp_path / "personas.yaml").write_text(OWN_SUITE + "personas: [You are Ada.]\n")
    _, arguments = read_command(["drift", *words.split()])
    turns = load_user_turns(arguments, drift.load_suite(arguments.suite))
    assert (turns and turns.name) == expected


def test_usual_user_messages_are_named(tmp_path, folder, capsys):
    (tmp_path / "own.yaml").write_text(OWN_SUITE)
    words = f"drift --model {folder} --suite {tmp_path / 'own.yaml'} --rounds 1 --conversations 1"
    command = [*words.split(), "--max-new-tokens", "4", "--out", str(tmp_path / "run")]
    assert main(command) == 1  # its one reply is cut
    assert "those of --user-turns everyday, as the suite is your own" in capsys.readouterr().err
    assert read_run(tmp_path / "run").identity_as(ConversationsIdentity).user_turns.name == (
        "everyday.jsonl"
    )


@pytest.mark.slow
def test_a_check_says_that_the_earlier_conversations_were_held_otherwise(tmp_path, folder, capsys):
    suite, before, now = (tmp_path / name for name in ("own.yaml", "before", "now"))
    suite.write_text(OWN_SUITE.replace("ends_with, word: Tony", "contains, words: [Tony]"))
    words = f"--model {folder} --rounds 1 --max-new-tokens 4"
    defaults_of_0_3 = "--temperature 1 --user-turns none --conversations 1"
    drift_command = f"drift --suite {suite} {words} {defaults_of_0_3} --out {before}"
    assert main(drift_command.split()) == 0
    main(f"check {suite} {words} --against {before} --budget 1 --out {now}".split())
    stderr = capsys.readouterr().err
    assert "(--temperature 1.0 there, 0.7 here; --user-turns none there, everyday.jsonl" in stderr
