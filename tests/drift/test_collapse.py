"""Conversations that collapse: what counts as repetition, and where a run says so."""

import json
import re
import warnings
from dataclasses import replace

import pytest
import yaml
from paths import ROOT
from scripted_model import ScriptedModel
from short_drift import QUICK, SUITE
from synthetic_run import as_json, conversation_of, write_run

from holdfast import drift
from holdfast.analysis.collapse import (
    collapsed_from,
    count_turns,
    is_notable,
    model_turns,
    without_collapsed,
)
from holdfast.analysis.drift_results import results_of
from holdfast.analysis.series import read_series
from holdfast.analysis.summary import summarise
from holdfast.cli import main
from holdfast.drift.dialog_records import agent_of, participant_of
from holdfast.drift.truncation_monitor import TruncationMonitor
from holdfast.drift.turn_repetition import with_repetition
from holdfast.measures.repeated_turns import loops, repetitions
from holdfast.models.requests import Reply
from holdfast.records import Repeated, read_run, to_line
from holdfast.records.conversation import MOSTLY_REPEATED
from holdfast.report.collapse_section import collapse_cures, collapse_lines, collapse_section
from holdfast.report.next_step import next_step
from holdfast.report.terminal import table

# bots of every kind, labelled turn by turn before the detector knew what prompts ask for
BOTS = yaml.safe_load((ROOT / "tests" / "data" / "collapse_labelled.yaml").read_text("utf-8"))


def record_of(chat):
    """A labelled conversation as `drift` records it."""
    rules = tuple(
        drift.Rule(rule["id"], ("?",), rule["measure"], tuple(rule.get("follows", ())))
        for rule in chat["rules"]
    )
    agent = drift.Case(chat["id"], None, chat["prompt"], rules=rules)
    turns = [
        {"round": number, "speaker": speaker, "text": text, "stop_reason": stop}
        for number, pair in enumerate(chat["turns"], start=1)
        for speaker, text, stop in zip(("user", "agent"), pair, ("scripted", "stop"), strict=True)
    ]
    record = conversation_of(agent=agent_of(agent), user=participant_of(None), turns=turns)
    turns_with_repeats = tuple(with_repetition(record.turns, {"agent": agent}))
    return record.model_copy(update={"turns": turns_with_repeats})


def with_repeats(run, own_share):
    """The run with other shares of repetition from the speaker's own turns, by record."""
    records = []
    for record in run.conversations:
        shares = Repeated(own=own_share(record), other=0.0, loops=0.0)
        update = {"repeats": shares, "repeats_unprompted": shares}
        turns = tuple(turn.model_copy(update=update) for turn in record.turns)
        records.append(record.model_copy(update={"turns": turns}))
    return replace(run, records=tuple(records))


# Turns that repeat

KINDS = ("own", "other", "loops")
# nine self-chats of SmolLM2-135M-Instruct, labelled by a reader before the code was run
SELF_CHATS = json.loads((ROOT / "tests" / "data" / "smollm2_turns.json").read_text("utf-8"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_agrees_on_what_repeats(kind):
    agreed = []
    for dialog in SELF_CHATS:
        measured_turns = repetitions([(turn["speaker"], turn["text"]) for turn in dialog])
        pairs = list(zip(dialog, measured_turns, strict=True))[1:]  # the starter is given
        agreed += [
            turn[kind] == (getattr(repeats, kind) >= MOSTLY_REPEATED) for turn, repeats in pairs
        ]
    assert len(agreed) == 59
    assert sum(agreed) >= 57  # own 57, other 58, loops 57


def test_shares_count_the_words_in_runs_of_four():
    first = "I like to walk by the river."
    copying_turn = repetitions([("user", first), ("agent", "I like to walk, and then I sleep.")])[1]
    assert (copying_turn.own, copying_turn.other) == (0.0, 0.5)  # four words of eight
    turns = [("user", first), ("agent", "No."), ("user", "Yes: i LIKE to walk by the river!")]
    assert repetitions(turns)[2].own == 0.875
    assert repetitions(turns)[2].other == 0.0
    # counted against one earlier turn, not against all together
    two = [("user", "one two three four"), ("user", "five six seven eight")]
    assert repetitions([*two, ("user", "one two three four five six seven eight")])[2].own == 0.5


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("Yes. Yes. Yes.", 0.0),  # too short for a run
        ("We met at the old mill. " * 4, 0.75),
        ("the " * 60, 0.983),
        ("我们在旧磨坊见面，喝了咖啡。" * 3, 0.667),
        ("เราพบกันที่โรงสีเก่า" * 2, 0.5),
        ("😀" * 40, 0.975),
        ("One, two, three; and then the next day we went home, tired but glad.", 0.0),
    ],
)
def test_loops_are_found_in_any_script(text, share):
    assert loops(text) == share


def test_a_second_yes_repeats_nothing():
    assert not any(item.broken for item in repetitions([("user", "Yes."), ("agent", "Yes.")] * 3))


# Turns that are broken, though the prompt does not ask for them


def test_a_reader_agrees_on_which_turns_have_broken_down():
    agreed = wrong_before = 0
    for chat in BOTS:
        for turn in model_turns(record := record_of(chat)):
            is_broken = turn.round in chat["broken"]
            agreed += turn.repetition.broken == is_broken
            (turn_read,) = (
                item for item in record.turns if (item.round, item.speaker) == (turn.round, "agent")
            )
            wrong_before += turn_read.repeats.broken != is_broken
    assert sum(len(chat["turns"]) for chat in BOTS) == 114
    assert agreed == 114
    assert wrong_before == 39  # what repeats in any way is another question


def test_obedience_is_not_reported_as_a_collapse(tmp_path):
    """An earlier run, which recorded repetition without regard to the prompt, is read so too."""
    chat = next(chat for chat in BOTS if chat["id"] == "refuses-in-the-words-of-the-prompt")
    record = record_of(chat)
    turns = [turn.model_copy(update={"repeats_unprompted": None}) for turn in record.turns]
    counts = count_turns([record.model_copy(update={"turns": tuple(turns)})])
    assert counts.broken == 0 and not counts.collapsed_from_round and not is_notable(counts)


def test_a_bot_that_refuses_as_told_is_not_said_to_break_down(tmp_path):
    class Refuses(ScriptedModel):
        def text(self, request):
            return "I can only help with bicycles."

    case = drift.Case(
        "shop",
        None,
        'Answer everything with "I can only help with bicycles."',
        ("What is 2 + 2?",),
        {"regex": "only help with bicycles"},
    )
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps([f"Question {number}?" for number in range(6)]) + "\n")
    settings = replace(QUICK, rounds=6, conversations=24)
    suite = drift.Suite("shop", (case,), ("hi",))
    cast = drift.Cast(user_turns=script)
    run = drift.run(Refuses(), suite, tmp_path / "run", settings, cast=cast)
    series = read_series(run)
    assert collapse_lines(results_of(run)) == [] and collapse_section(series) is None
    assert "repeat" not in table(run) and "broke" not in table(run)


# Conversations that have collapsed


@pytest.mark.parametrize("chat", BOTS, ids=lambda chat: chat["id"])
def test_a_reader_agrees_on_which_conversations_have_collapsed(chat):
    assert collapsed_from(model_turns(record_of(chat))) == chat["collapsed_from"]


def collapse_round(pattern):
    """The round from which a dialog has collapsed; each x is a broken turn, two turns a round."""
    turns = []
    for index, mark in enumerate(f".{pattern}"):
        turn = {"speaker": "agent" if index % 2 == 0 and index else "user", "text": ""}
        turn |= {"round": index // 2 + 1, "stop_reason": "stop"}
        shares = {"own": float(mark == "x"), "other": 0.0, "loops": 0.0}
        turns.append({**turn, "repeats": shares, "repeats_unprompted": shares})
    return collapsed_from(model_turns(conversation_of(turns=turns)))


@pytest.mark.parametrize(
    ("pattern", "first"),
    [
        (".......", None),
        (".....xx", None),  # two turns may be chance
        ("....xxx", 3),
        ("x......", None),  # nor does a single one count
        ("x...xxx", 1),  # half of all the turns that follow
        ("x.....xxx", 4),
        (".xxx....", None),  # it recovered
    ],
)
def test_a_conversation_has_collapsed_when_half_of_what_follows_is_broken(pattern, first):
    assert collapse_round(pattern) == first


def test_collapsed_conversations_are_left_out_of_the_second_reading(tmp_path):
    run = read_run(write_run(tmp_path / "run", conversations=6, methods=("none",)))
    run = with_repeats(run, lambda record: float(record.conversation in (1, 4)))
    (item,) = read_series(run)
    counts = count_turns(item.records)
    assert counts.collapsed_from_round == {1: 1, 4: 1}
    assert list(without_collapsed(item, counts).conversations) == [0, 2, 3, 5]
    readings = collapse_section([item]).readings
    assert readings.rows[2][:2] == ("none, without the collapsed", "4, with 2 left out")
    (summary,) = summarise(run).to_json()["results"]
    assert summary["collapse"]["collapsed_from_round"] == {1: 1, 4: 1}
    assert summary["collapse"]["without_collapsed"]["conversations"] == 4


# What a run says


class Parrot(ScriptedModel):
    """Says the same sentence whenever it is asked, and is cut off."""

    async def generate(self, request):
        return Reply("We met at the old mill by the river", None, "length")


@pytest.fixture
def parrot(tmp_path):
    settings = replace(QUICK, rounds=4, conversations=3)
    return drift.run(Parrot(), SUITE, tmp_path / "parrot", settings)


def test_records_contain_the_repetition_of_every_turn(parrot):
    for record in as_json(parrot):
        starter, first, second, *_ = record["turns"]
        assert starter["repeats"] == first["repeats"] == {"own": 0.0, "other": 0.0, "loops": 0.0}
        assert second["repeats"] == {"own": 0.0, "other": 1.0, "loops": 0.0}


def test_a_broken_run_says_so_with_the_cures(parrot, capsys):
    results = results_of(parrot)
    counts, _ = collapse_lines(results)
    assert re.findall(r"\d+%", counts)[:2] == ["100%", "86%"]
    assert "10 tokens" in counts and "3 of 3 conversations" in counts
    assert "without a fix" in collapse_lines(replace(results, series=results.series * 2))[0]
    cures = " ".join(collapse_cures(read_series(parrot)))
    assert all(f"--{cure}" in cures for cure in ("max-new-tokens", "user-model", "user-turns"))
    assert cures in next_step(results).replace("; and ", " ")
    page = parrot.folder / "report.html"
    main(["report", str(parrot.folder), "--out", str(page)])
    assert counts in " ".join(capsys.readouterr().out.split())
    assert "Conversations that collapsed" in page.read_text(encoding="utf-8")


def test_a_healthy_run_has_numbers_but_no_warning(tmp_path):
    run = read_run(write_run(tmp_path / "run", conversations=3, methods=("none",)))
    run = with_repeats(run, lambda record: 0.2)
    series = read_series(run)
    assert collapse_lines(results_of(run)) == [] and collapse_section(series) is None
    (summary,) = summarise(run).to_json()["results"]
    assert summary["collapse"]["broken"] == 0 and summary["collapse"]["without_collapsed"] is None


def test_old_records_are_measured_on_their_texts(parrot):
    counts = [count_turns(item.records) for item in read_series(parrot)]
    file = parrot.folder / "records.jsonl"
    old = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for record in old:
        del record["crc32"]
        for turn in record["turns"]:
            del turn["repeats"]
    file.write_bytes(b"".join(map(to_line, old)))
    assert [count_turns(item.records) for item in read_series(read_run(parrot.folder))] == counts


def test_only_the_replies_of_a_replayed_dialog_count(tmp_path):
    loop = "I have told you that already, my friend."
    messages = [("user", loop), ("assistant", loop), ("user", loop), ("assistant", "Good night!")]
    logs = tmp_path / "logs.jsonl"
    logs.write_text(json.dumps([{"role": role, "content": text} for role, text in messages]))
    run = drift.run(Parrot(), SUITE, tmp_path / "run", QUICK, cast=drift.Cast(dialogs=logs))
    turns = model_turns(run.conversations[0])
    assert [turn.repetition.other for turn in turns] == [1.0, 0.0]
    assert not any(turn.cut for turn in turns)
    assert re.findall(r"\d+%", collapse_lines(results_of(run))[0]) == ["50%"]
    assert collapse_cures(read_series(run)) == []


@pytest.mark.parametrize(
    ("cut_at", "message"),
    [
        ([None, None], "are cut at 400 tokens"),
        ([23, 2], "are cut by the server or at the end of the context"),
        (
            [23, None],
            "are cut at 400 tokens, or earlier by the server or at the end of the context",
        ),
    ],
)
def test_cut_turns_name_the_limit_that_cut_them(tmp_path, cut_at, message):
    run = read_run(write_run(tmp_path / "run", conversations=2, methods=("none",)))
    records = []
    for item, after in zip(run.conversations, cut_at, strict=True):
        update = {"stop_reason": "length", "cut_at": after}
        turns = tuple(turn.model_copy(update=update) for turn in item.turns)
        records.append(item.model_copy(update={"turns": turns}))
    assert f"100% {message}" in collapse_lines(results_of(replace(run, records=tuple(records))))[0]


# Warnings during a run


def test_a_run_warns_once_if_most_of_its_first_replies_are_cut():
    monitor = TruncationMonitor(60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for reason in ("length", "length", "stop"):
            monitor.first_reply(reason, None)
    with pytest.warns(UserWarning, match="3 of the first 4 replies are cut at 60 tokens"):
        monitor.first_reply("length", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monitor.first_reply("length", None)


def test_a_run_whose_server_has_a_limit_of_its_own_names_it():
    monitor = TruncationMonitor(400)
    for _ in range(3):
        monitor.first_reply("length", 256)
    with pytest.warns(UserWarning, match="cut at 256 of 400 tokens, by the server"):
        monitor.first_reply("length", 250)


def test_a_run_whose_replies_end_warns_of_nothing():
    watch = TruncationMonitor(400)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for reason in ("stop", "length", "stop", "length", "stop"):
            watch.first_reply(reason, None)
