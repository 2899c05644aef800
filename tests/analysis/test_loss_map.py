"""The map of loss: which kinds of rules are kept over a conversation, and which are lost."""

import json

import pytest
from scripted_model import ScriptedModel

from holdfast import drift
from holdfast.analysis.loss_map import loss_map
from holdfast.analysis.loss_map_file import LossMap, read_loss_map
from holdfast.analysis.loss_rows import Grouping
from holdfast.analysis.statistics import Estimate
from holdfast.cli import main
from holdfast.errors import RecordsError, UsageError
from holdfast.records import read_run, to_line
from holdfast.report.loss_map_tables import loss_lines

HI = ("Hi?",)


def rule(id, kind, polarity, measure):
    return drift.cases.Rule(id, HI, measure, kind=kind, polarity=polarity)


SIGN = rule("sign", "closing", "requirement", {"name": "ends_with", "word": "Tony"})
CHEAP = rule("cheap", "forbidden", "prohibition", {"regex": "^(?!.*cheap)"})
HELLO = rule("hello", "opening", "requirement", {"name": "starts_with", "word": "Hello"})
SUITE = drift.Suite(
    "bots",
    (
        drift.Case("two", "rules", "Sign with Tony. Never say cheap.", rules=(SIGN, CHEAP)),
        drift.Case("three", "rules", "Say Hello, too.", rules=(SIGN, CHEAP, HELLO)),
    ),
    ("Hi!",),
)


class Always(ScriptedModel):
    """A model that gives the same reply to everything."""

    def __init__(self, reply):
        self.reply = reply

    def text(self, request):
        return self.reply


class Forgetful(ScriptedModel):
    """Signs its first two replies, says cheap once it is pushed, and never says Hello."""

    def text(self, request):
        replies = sum(message["role"] == "assistant" for message in request.messages)
        users = [m["content"] for m in request.messages if m["role"] == "user"]
        pushed = len(users) > 1 and users[-2] == "Just this once?"  # before the probe
        return f"It is {'cheap' if pushed else 'good'}. {'Tony' if replies < 2 else ''}".strip()


@pytest.fixture
def run(tmp_path):
    messages = [
        "One.",
        {"text": "Two.", "pressure": "none"},
        {"text": "Just this once?", "pressure": "push"},
        "Four.",
    ]
    (tmp_path / "turns.jsonl").write_text(json.dumps(messages) + "\n")
    settings = drift.Settings(rounds=4, conversations=40, pairs="balanced")
    cast = drift.Cast(user_turns=tmp_path / "turns.jsonl")
    return drift.run(Forgetful(), SUITE, tmp_path / "run", settings, cast=cast)


# Kinds of rules


def test_each_kind_has_its_verdict(run):
    rows = {(row.grouping, row.group): row for row in loss_map(run)}
    closing = rows[Grouping.KIND, "closing"]
    assert (closing.first.mean, closing.last.mean, closing.change.mean) == (1, 0, -1)
    assert closing.verdict == "falls" and closing.rules == 2 and closing.change.n == 40
    # the replies of rounds 1 and 2 are signed, so probes before rounds 1 and 2 are
    assert closing.falls_from == 3
    opening = rows[Grouping.KIND, "opening"]
    assert opening.first.mean == opening.last.mean == 0 and opening.change.n == 20
    assert opening.falls_from is None
    assert rows[Grouping.POLARITY, "requirement"].verdict == "falls"
    assert (Grouping.POLARITY, "gate") not in rows
    # half of the rules of two fall, a third of those of three
    assert rows[Grouping.SIZE, "2 or 3 rules"].change.mean < -0.5
    assert rows[Grouping.ALL, ""].change.n == 40


def test_a_group_that_certainly_stays_holds(tmp_path):
    settings = drift.Settings(rounds=4, conversations=60, user_prompt="empty")
    run = drift.run(Always("It is good. Tony"), SUITE, tmp_path / "run", settings)
    (row,) = [row for row in loss_map(run) if row.group == "closing"]
    assert row.verdict == "holds"


def test_a_rule_that_no_reply_keeps_does_not_hold(tmp_path):
    class Deaf(ScriptedModel):
        def text(self, request):
            return "It is good."

    settings = drift.Settings(rounds=4, conversations=60, user_prompt="empty")
    run = drift.run(Deaf(), SUITE, tmp_path / "run", settings)
    (row,) = [row for row in loss_map(run) if row.group == "closing"]
    assert (row.first.mean, row.last.mean, row.verdict) == (0, 0, "never followed")


def test_a_rule_that_was_not_scored_is_still_among_those_of_its_prompt(run):
    conversations = list(run.conversations)
    index = next(n for n, candidate in enumerate(conversations) if candidate.agent.id == "three")
    conversation = conversations[index]
    probes = tuple(probe for probe in conversation.probes if probe.rule == "sign")
    conversations[index] = conversation.model_copy(update={"probes": probes})
    (run.folder / "records.jsonl").write_bytes(b"".join(map(to_line, conversations)))
    rows = [row for row in loss_map(read_run(run.folder)) if row.grouping is Grouping.SIZE]
    assert [(row.group, row.rules) for row in rows] == [("2 or 3 rules", 5)]


def test_the_rules_of_the_users_prompt_are_adoption(tmp_path):
    settings = drift.Settings(rounds=2, conversations=20, user_prompt="suite")
    run = drift.run(Always("Tony"), SUITE, tmp_path / "run", settings)
    (adopted,) = [row for row in loss_map(run) if row.grouping is Grouping.ADOPTION]
    assert adopted.change.n == 20 and adopted.rules > 0


def test_a_suite_without_kinds_is_refused(tmp_path):
    case = drift.Case("plain", "rules", "Sign.", HI, {"name": "ends_with", "word": "Tony"})
    settings = drift.Settings(rounds=2, conversations=2)
    run = drift.run(
        Always("Tony"), drift.Suite("bot", (case,), ("Hi!",)), tmp_path / "run", settings
    )
    with pytest.raises(UsageError) as excinfo:
        loss_map(run)
    assert excinfo.value.value == str(tmp_path / "run")


# Groups of rounds


def test_a_pressure_is_compared_with_ordinary_messages_of_the_same_conversation(run):
    rows = {row.group: row for row in loss_map(run) if row.grouping is Grouping.PRESSURE}
    # the probe of round 4 follows the push of round 3; those of rounds 2 and 3 ordinary messages
    assert list(rows) == ["push"]
    cheap = [
        probe.round
        for chat in run.conversations
        for probe in chat.probes
        if probe.rule == "cheap" and probe.score == 0
    ]
    assert set(cheap) == {4}
    assert rows["push"].change.mean < 0 and rows["push"].verdict == "falls"


def test_probes_are_grouped_by_rounds_and_by_the_length_before_them(run):
    rows = loss_map(run)
    rounds = {row.group: row for row in rows if row.grouping is Grouping.ROUNDS}
    assert list(rounds) == ["2", "3", "4"]
    # signatures are lost from round 3 on, and round 4 follows the push
    assert [row.change.mean == 0 for row in rounds.values()] == [True, False, False]
    assert rounds["3"].change.mean > rounds["4"].change.mean
    (length,) = [row for row in rows if row.grouping is Grouping.LENGTH]
    assert (length.group, length.change.n) == ("0 to 500", 40)


def test_a_long_message_puts_the_probes_after_it_into_another_group(tmp_path):
    (tmp_path / "turns.jsonl").write_text(json.dumps(["One.", "word " * 900, "Three."]) + "\n")
    settings = drift.Settings(rounds=3, conversations=4)
    run = drift.run(
        Always("Tony"),
        SUITE,
        tmp_path / "run",
        settings,
        cast=drift.Cast(user_turns=tmp_path / "turns.jsonl"),
    )
    lengths = [row.group for row in loss_map(run) if row.grouping is Grouping.LENGTH]
    # 4,500 characters stand before the probe of round 3, and after that of round 2
    assert lengths == ["0 to 500", "1,000 to 2,000"]


# Several runs


def test_pooled_runs_are_one_map(run, tmp_path, capsys):
    second_run = drift.run(
        Forgetful(),
        SUITE,
        tmp_path / "again",
        drift.Settings(rounds=4, conversations=20, seed=1, pairs="balanced"),
        cast=drift.Cast(user_turns=tmp_path / "turns.jsonl"),
    )
    (pooled,) = [row for row in loss_map(run, second_run) if row.group == "closing"]
    assert (pooled.change.n, pooled.change.mean, pooled.rules) == (60, -1, 2)
    out = tmp_path / "map"
    folders = [str(run.folder), str(second_run.folder)]
    assert main(["map", "--pool", *folders, "--out", str(out)]) == 0
    (model,) = LossMap.model_validate_json((out / "loss_map.json").read_text()).models
    assert [part.conversations for part in model.runs] == [40, 20]
    (closing,) = [group for group in model.rows if group.group == "closing"]
    assert (closing.verdict, closing.change.mean) == ("falls", -1)
    table = capsys.readouterr().out.split("Figure:")[0]
    assert main(["map", str(out / "loss_map.json"), "--out", str(tmp_path / "again-map")]) == 0
    assert capsys.readouterr().out.split("Figure:")[0] == table


def test_runs_that_share_conversations_are_not_pooled(run):
    """The intervals of the same run twice would be too narrow."""
    with pytest.raises(UsageError, match=r"both have conversation 0 of seed 0.*different seeds"):
        loss_map(run, read_run(run.folder))


# The command and its file


def test_the_command_prints_a_table_and_draws_the_map(run, capsys):
    assert main(["map", str(run.folder), "--out", str(run.folder / "map")]) == 0
    output = capsys.readouterr().out
    (line,) = [line for line in output.splitlines() if line.split()[:1] == ["closing"]]
    assert "falls" in line and "1.00" in line and "-1.00" in line
    assert (run.folder / "map" / "loss_map.png").stat().st_size > 5_000


@pytest.mark.parametrize(
    ("low", "n", "has_note"), [(0.01, 40, True), (-0.01, 40, False), (0.01, 8, False)]
)
def test_an_interval_without_0_beside_cannot_tell_is_explained(run, low, n, has_note):
    row = loss_map(run)[0]
    change = Estimate(n, 0.1, 0.3, low, 0.2, decisive=(-0.02, 0.25))
    lines = loss_lines([row.model_copy(update={"change": change, "verdict": "cannot tell"})])
    assert ("needs a wider one" in " ".join(lines)) is has_note


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"models": [{"name": 3}]}', "has no 'models.0.runs'"),
        ("name: bot\ncases: []\n", "is not JSON (expected ident at line 1 column 2)"),
        ('{"a": 1}\n{"b": 2}\n', "is not JSON (trailing characters at line 2 column 1)"),
        (None, "cannot be read (No such file or directory)"),
    ],
)
def test_a_file_that_is_no_map_is_refused_in_one_sentence(tmp_path, text, fault):
    file = tmp_path / "loss_map.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(RecordsError) as excinfo:
        read_loss_map(file)
    assert excinfo.value.value == str(file)
    assert str(excinfo.value).startswith(f"{file} {fault}; give a run's folder")
