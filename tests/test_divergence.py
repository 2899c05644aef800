"""Divergence of replies from a fresh dialog: against two plain forwards, token by token, through
every way to hold conversations.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from oracles import divergence
from test_dialogs import said, write
from test_drift import QUICK, SUITE, exact, texts, without_time
from test_modern import STATES
from test_scoring import METHODS, plain_logits, read_plainly
from tiny import chat, model

from holdfast import Directer, Gate, Guidance, Hold, Request, Sampling, SplitSoftmax, connect, drift
from holdfast.chat.prompt import render
from holdfast.cli import main
from holdfast.drift.dialog import Dialog
from holdfast.drift.pairing import draw_pairing
from holdfast.drift.selfchat import opening
from holdfast.engine import divergence as engine
from holdfast.errors import ModelError, RecordsError, UsageError
from holdfast.models.given_replies import GivenReplies
from holdfast.models.requests import Compared, Reply
from holdfast.records import open_run, read_run

# the engine takes logarithms in float32, of logits whose passes differ in splits and paddings
TOLERANCE = 2e-5
DIALOG = chat("be the garden", "the river", "runs slowly past", "where do people talk?")
FRESH = (DIALOG[0], DIALOG[-1])
MEASURED = replace(QUICK, divergence=True)


def nats_by_hand(here, there, count):
    return [
        divergence(one.tolist(), other.tolist()) for one, other in zip(here, there, strict=True)
    ][:count]


def expected(tiny, request, reference, reply, ended=True):
    ids = reply.token_ids
    here, there = (
        read_plainly(tiny, each.messages, each.methods, ids, each.editing_seed)
        for each in (request, reference)
    )
    return nats_by_hand(here, there, len(ids) + ended)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("block", (3, engine.BLOCK))
def test_divergences_are_those_of_two_plain_forwards(name, block, monkeypatch):
    monkeypatch.setattr(engine, "BLOCK", block)
    tiny, methods = exact(), METHODS[name]
    session, compared = tiny.session(), []
    for number, length in enumerate((1, 4, 11)):
        request = Request(
            DIALOG,
            methods,
            Sampling(max_new_tokens=length),
            number,
            conversation_seed=3,
            thread=number,
            keep=True,
        )
        reply = session.generate_batch([request])[0]
        reference = replace(request, messages=FRESH, thread=None, keep=False)
        compared.append(Compared(request, reference, reply))
    told = session.diverge(compared)
    for each, found in zip(compared, told, strict=True):
        by_hand = expected(tiny, each.request, each.reference, each.reply, each.ended)
        assert found.nats == pytest.approx(by_hand, abs=TOLERANCE)
        assert found.mean == pytest.approx(sum(by_hand) / len(by_hand), abs=TOLERANCE)
        assert name == "none" or max(by_hand) > 100 * TOLERANCE
    assert max(map(max, (each.nats for each in told))) > 1e-2, "the dialog changes what is said"


def test_what_a_rehearsal_settles_is_settled_by_the_first_turn_of_the_dialog():
    tiny = exact()
    session = tiny.session()
    request = Request(DIALOG, (Hold(),), Sampling(max_new_tokens=6), thread="t", keep=True)
    reply = session.generate_batch([request])[0]
    reference = replace(request, messages=FRESH, thread=None, keep=False)
    compared = Compared(request, reference, reply)
    (found,) = session.diverge([compared])
    settled = session.rehearse(request).methods
    chats = (replace(each, methods=settled) for each in (request, reference))
    assert found.nats == pytest.approx(expected(tiny, *chats, reply, compared.ended), abs=TOLERANCE)


@pytest.mark.parametrize(
    "kind", ("gemma2", "qwen3_next", "lfm2", "mamba"), ids=("windows", "states", "conv", "alone")
)
def test_models_with_windows_and_states(kind, monkeypatch):
    monkeypatch.setattr(engine, "BLOCK", 4)
    options = {"gemma2": {"sliding_window": 16, "query_pre_attn_scalar": 12}, **STATES}[kind]
    tiny = model(kind, **options)
    session, compared = tiny.session(), []
    for number in range(2):
        request = Request(DIALOG, (), Sampling(max_new_tokens=6 + number), thread=number, keep=True)
        reply = session.generate_batch([request])[0]
        reference = replace(request, messages=FRESH, thread=None, keep=False)
        compared.append(Compared(request, reference, reply))
    for each, found in zip(compared, session.diverge(compared), strict=True):
        by_hand = expected(tiny, each.request, each.reference, each.reply, each.ended)
        assert found.nats == pytest.approx(by_hand, abs=1e-3) and max(by_hand) > 1e-2


def test_what_a_thread_has_computed_is_not_forwarded_again():
    session = model().session()
    request = Request(DIALOG, (), Sampling(max_new_tokens=9), thread="t", keep=True)
    reply = session.generate_batch([request])[0]
    reference = replace(request, messages=FRESH, thread=None, keep=False)
    compared = Compared(request, reference, reply)
    (found,) = session.diverge([compared])
    last = len(model().tokenizer("where do people talk?</s><assistant>").input_ids)
    read = len(found.nats) - 1
    assert found.forwarded == (1 + read) + (last + read), "behind the dialog, and <sys>...<user>"
    (afresh,) = model().session().diverge([compared])
    assert afresh.nats == pytest.approx(found.nats, abs=TOLERANCE)
    assert afresh.forwarded > found.forwarded


def test_alike_chats_are_not_forwarded_and_an_empty_reply_has_its_end():
    session = model().session()
    request, other = Request(DIALOG), Request(FRESH)
    ids = (300, 301)
    same, cut, end, nothing, too_long = session.diverge(
        [
            Compared(request, request, Reply("", ids, "stop")),
            Compared(request, other, Reply("", ids, "length")),
            Compared(request, other, Reply("", (), "stop")),
            Compared(request, other, Reply("", (), "length")),
            Compared(request, other, Reply("", ids * 300, "stop")),
        ]
    )
    assert (same.nats, same.forwarded) == ((0.0, 0.0, 0.0), 0)
    assert len(cut.nats) == 2 and len(end.nats) == 1 and end.nats[0] == pytest.approx(cut.nats[0])
    assert nothing is None and too_long is None


# --- In a run


@pytest.fixture
def watched(monkeypatch):
    """What sessions were asked to compare, and what they told."""
    seen, diverge = [], GivenReplies.diverge

    def watch(self, compared):
        told = diverge(self, compared)
        seen.append((self.model, compared, told))
        return told

    monkeypatch.setattr(GivenReplies, "diverge", watch)
    return seen


def divergences(run):
    return [
        [turn["divergence"] for turn in record["turns"] if turn["speaker"] == "agent"]
        for record in sorted(run.records, key=lambda record: record["conversation"])
    ]


def test_turns_are_compared_in_the_tokens_they_were_written_in(tmp_path, watched):
    plain = drift.run(model(), SUITE, tmp_path / "plain", QUICK)
    run = drift.run(model(), SUITE, tmp_path / "run", MEASURED)
    assert texts(run) == texts(plain), "measuring changes no reply"
    assert len(watched) == QUICK.conversations
    for tiny, compared, told in watched:
        assert len(compared) == QUICK.rounds and told[0].nats == (0.0,) * len(told[0].nats)
        for each, found in zip(compared[1:], told[1:], strict=True):
            reply, fresh = each.reply, render(each.reference.messages, tiny.tokenizer)
            system, last = each.reference.messages
            assert (system, last) == (each.request.messages[0], each.request.messages[-1])
            here = plain_logits(tiny, reply.prompt_ids, (), reply.token_ids)
            there = plain_logits(tiny, fresh.token_ids, (), reply.token_ids)
            by_hand = nats_by_hand(here, there, len(found.nats))
            assert found.nats == pytest.approx(by_hand, abs=TOLERANCE)
    by_first = {each[0].request.thread[1]: told for _, each, told in watched}
    for number, record in enumerate(divergences(run)):
        assert record == [round(each.mean, 6) for each in by_first[number]]
    tokens = [record["tokens"] for record in run.records]
    assert all(0 < each["divergence"] < each["forwarded"] for each in tokens)


def test_two_models_and_a_resumed_run_measure_the_same(tmp_path):
    settings = replace(MEASURED, conversations=6, batch=6)
    whole = drift.run(exact(), SUITE, tmp_path / "whole", settings)
    both = drift.run(
        exact(), SUITE, tmp_path / "both", settings, cast=drift.Cast(user_model=exact())
    )
    drift.run(exact(), SUITE, tmp_path / "resumed", replace(settings, conversations=2))
    resumed = drift.run(exact(), SUITE, tmp_path / "resumed", settings)
    assert max(map(max, divergences(whole))) > 0
    assert divergences(whole) == divergences(both)
    assert without_time(whole) == without_time(resumed)
    with pytest.raises(RecordsError, match=r"its divergence is"):
        drift.run(exact(), SUITE, tmp_path / "whole", replace(settings, divergence=False))


def test_recorded_dialogs_are_compared_too(tmp_path, watched):
    lines = [
        said("hello", "bread is good", "and rain?", "r" * 40, "more?", "no", system="Be kind."),
        said("hello", "bread is good", "w " * 400, "x", "and now?", "music"),
    ]
    logs = write(tmp_path / "logs.jsonl", *lines)
    run = drift.run(exact(), SUITE, tmp_path / "run", MEASURED, cast=drift.Cast(dialogs=logs))
    first, second = divergences(run)
    assert first[0] == second[0] == 0 and min(first[1:]) > 0
    assert second[1:] == [None, None], "they do not fit into the context"
    (tiny, compared, told), _ = sorted(watched, key=lambda seen: seen[1][0].request.thread[1])
    reply = compared[1].reply
    assert reply.token_ids is None and reply.text == "r" * 40
    ids = tuple(tiny.tokenizer(reply.text, add_special_tokens=False)["input_ids"])
    own = replace(compared[1], reply=replace(reply, token_ids=ids))
    by_hand = expected(tiny, own.request, own.reference, own.reply)
    assert told[1].nats == pytest.approx(by_hand, abs=TOLERANCE)
    window = replace(MEASURED, context="slide", window=1)
    alike = drift.run(exact(), SUITE, tmp_path / "window", window, cast=drift.Cast(dialogs=logs))
    assert divergences(alike)[0] == [0, 0, 0], "only the last message was ever shown"


def test_what_has_no_divergence_is_refused_before_anything_is_written(tmp_path, capsys):
    endpoint = connect("http://localhost:1/v1", "far", "NO_SUCH_KEY")
    with pytest.raises(
        ModelError, match=r"far does not tell its distributions.*leave out --divergence"
    ):
        drift.run(endpoint, SUITE, tmp_path / "run", MEASURED)
    for again in (Gate((SplitSoftmax(0.5),), 0.1), Directer(100.0)):
        with pytest.raises(UsageError, match=f"{again.name} draws tokens again"):
            drift.run(model(), SUITE, tmp_path / "run", MEASURED, [(again,)])
    with pytest.raises(UsageError, match=r"plausibility=0\.1 never draws"):
        drift.run(model(), SUITE, tmp_path / "run", MEASURED, [(Guidance(1.5, 0.1),)])
    with pytest.raises(UsageError, match="holdfast drift"):
        opening(Dialog(draw_pairing(SUITE, MEASURED, 0)), (), MEASURED)
    assert not (tmp_path / "run").exists()


def test_a_divergence_that_is_no_number_is_refused_with_its_line(tmp_path):
    run = drift.run(model(), SUITE, tmp_path / "run", replace(MEASURED, conversations=1))
    record = run.records[0]
    record["turns"][1]["divergence"] = -0.5
    with open_run(tmp_path / "other", {**run.manifest["identity"]}, {"command": "drift"}) as other:
        other.append(record)
    with pytest.raises(RecordsError, match=r"turns\.1\.divergence -0\.5, which"):
        read_run(tmp_path / "other")


def test_the_command_records_shows_and_exports_it(tmp_path):
    out = tmp_path / "run"
    command = ["drift", "--conversations", "4", "--rounds", "3", "--divergence", "--out", str(out)]
    assert main(command) == 0
    summary = json.loads((out / "summary.json").read_text())["results"][0]
    first, *_, last = summary["by_round"]["divergence"]
    assert first["mean"] == 0 < last["mean"]
    page = (out / "report.html").read_text()
    assert 'id="divergence"' in page and "Divergence from a fresh dialog" in page
    assert (out / "report_figures" / "divergence.svg").exists()
    columns = read_run(out).frame(dict)
    by_round = dict(zip(columns["round"], columns["turn_divergence"], strict=True))
    assert by_round[1] == 0 and by_round[3] > 0
