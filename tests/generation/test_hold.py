"""`hold`: floors per head from a rehearsed first reply, and which requests wait for it."""

import asyncio
import gc
import math

import pytest
import torch
from fast_set import only_fast
from method_examples import Broken
from tiny import DEVICE, LONG, chat, model, outcomes

import holdfast
from holdfast import Boost, Hold, Request, Sampling, Spotlight
from holdfast.chat.prompt import render
from holdfast.errors import ModelError, ParameterOutOfRange, PromptError, UsageError
from holdfast.methods import Floors, HeadSet, parse, read_methods, spec_of
from holdfast.models.connecting import connect

SYSTEM = "talk about cheese"
TALK = chat(SYSTEM, "hello there", "the river runs", "and then?")


def first_masses(tiny, messages=TALK, tokens=24, methods=(), per_token=False):
    """The mass on the span in a greedy reply to the first turn, [layer, head], float64."""
    request = Request(messages[:2], methods, Sampling(0.0, 1.0, tokens), trace=True)
    mass = tiny.generate_batch([request])[0].trace.mass[..., :tokens]
    return mass if per_token else mass.double().mean(-1)


def floors_by_hand(mass, fraction=1.0):
    def log_odds(m):
        return math.log(m * fraction) - math.log1p(-m * fraction)

    return Floors(tuple(tuple(map(log_odds, row)) for row in mass.tolist()))


# The method


def test_hold_can_be_spelled_without_parameters():
    assert parse("hold") == (Hold(),) and spec_of([Hold()]) == "hold"
    assert parse("hold:fraction=0.5,tokens=8,heads=1.0") == (Hold(0.5, 8, HeadSet({(1, 0)})),)
    with pytest.raises(ParameterOutOfRange, match="fraction"):
        Hold(-0.1)
    with pytest.raises(ParameterOutOfRange, match="tokens"):
        Hold(tokens=0)


def test_floors_raise_what_is_below_them_and_leave_the_rest():
    floors = Floors(((0.5, -math.inf), (-1.0, 2.0)))
    log_odds = torch.tensor([[[-3.0, 1.0, -math.inf], [-3.0, 1.0, -math.inf]]])
    assert floors.shift(log_odds, 0).tolist() == [[[0.5, 1.0, -math.inf], [-3.0, 1.0, -math.inf]]]
    assert floors.shift(log_odds, 1).tolist() == [[[-1.0, 1.0, -math.inf], [2.0, 2.0, -math.inf]]]


def test_impossible_uses_of_hold_are_refused_with_a_reason():
    tiny = model()
    with pytest.raises(UsageError, match=r"hold .*head 9"):
        tiny.generate(TALK, [Hold(heads={(0, 9)})])
    with pytest.raises(PromptError, match=r"^hold reads"):
        tiny.generate(TALK, [Hold()], emphasis=["and then?"])
    ids = torch.tensor([[1, 2, 3]])
    refusal = pytest.raises(UsageError, match=r"^hold becomes .*model\.rehearse")
    with refusal, holdfast.steering(tiny.hf_model, ids > 1, [Hold()]):
        pass
    with pytest.raises(ModelError, match=r"^hold needs"):
        connect("http://127.0.0.1:9/v1", "m").check(read_methods("hold"))


# Replies


@pytest.mark.parametrize("fraction", only_fast([1.0, 0.5], 0.5))
def test_a_reply_equals_the_one_under_the_floors_of_the_rehearsal(fraction):
    tiny = model()
    floors = floors_by_hand(first_masses(tiny), fraction)
    (reply,) = tiny.generate_batch([Request(TALK, Hold(fraction), LONG, 5, trace=True)])
    (expected,) = tiny.generate_batch([Request(TALK, floors, LONG, 5, trace=True)])
    assert reply.token_ids == expected.token_ids
    assert torch.equal(reply.trace.mass, expected.trace.mass)
    least = first_masses(tiny)[..., None] * fraction
    assert (reply.trace.mass.double() >= least - 1e-6).all()
    (free,) = tiny.generate_batch([Request(TALK, (), LONG, 5, trace=True)])
    assert (free.trace.mass.double() < least - 1e-3).any()  # the floors have something to do


def test_a_fraction_of_0_changes_nothing():
    tiny = model()
    request = Request(TALK, Hold(0.0), LONG, 5)
    assert tiny.generate_batch([request])[0].token_ids == tiny.generate(TALK, (), LONG, 5).token_ids


def test_the_rehearsal_applies_the_other_methods_of_the_list():
    tiny = model()
    floors = floors_by_hand(first_masses(tiny, methods=(Boost(3.0),)))
    (reply,) = tiny.generate_batch([Request(TALK, (Boost(3.0), Hold()), LONG, 5)])
    (expected,) = tiny.generate_batch([Request(TALK, (Boost(3.0), floors), LONG, 5)])
    assert reply.token_ids == expected.token_ids


def test_only_chosen_heads_are_held():
    tiny = model()
    mass = first_masses(tiny)
    spotlights = tuple(Spotlight(mass[pair].item(), {pair}) for pair in ((0, 1), (2, 3)))
    (reply,) = tiny.generate_batch([Request(TALK, Hold(heads={(0, 1), (2, 3)}), LONG, 5)])
    (expected,) = tiny.generate_batch([Request(TALK, spotlights, LONG, 5)])
    assert reply.token_ids == expected.token_ids


def test_a_chat_without_a_message_of_the_user_is_continued_under_hold():
    messages = (TALK[0], {"role": "assistant", "content": "the river"})
    request = Request(messages, Hold(), LONG, continue_final_message=True)
    assert model().generate_batch([request])[0].token_ids


# Scores and blocks


def test_given_replies_are_scored_under_the_floors():
    tiny = model()
    floors = floors_by_hand(first_masses(tiny))
    score = tiny.score(TALK, ["bread", "music and rain"], [Hold()])
    expected = tiny.score(TALK, ["bread", "music and rain"], [floors])
    assert score.log_probabilities == expected.log_probabilities
    assert score.greedy == expected.greedy


def test_chats_scored_together_stay_steered_when_rehearsals_are_forgotten(monkeypatch):
    tiny = model()
    chats = [TALK, chat(SYSTEM, "a different first turn", "the river runs", "and then?")]
    requests = [Request(messages, [Hold()]) for messages in chats]
    replies = [["bread", "music"]] * 2
    alone = [tiny.session().score_batch([request], [["bread", "music"]])[0] for request in requests]
    monkeypatch.setattr("holdfast.models.rehearsals._MAX_CACHED", 1)
    batched = tiny.session().score_batch(requests, replies)
    for score, other_score in zip(alone, batched, strict=True):
        assert score.log_probabilities == pytest.approx(other_score.log_probabilities, abs=1e-4)
    plain = tiny.session().score_batch([Request(messages) for messages in chats], replies)
    assert plain[0].log_probabilities != pytest.approx(batched[0].log_probabilities, abs=1e-4)


def test_rehearsed_methods_steer_a_block():
    tiny = model()
    methods = tiny.rehearse(TALK, [Hold()])
    assert methods == (Hold().resolve(first_masses(tiny, per_token=True)),)
    prompt = render(TALK, tiny.tokenizer)
    ids = torch.tensor([prompt.token_ids], device=DEVICE)
    span = torch.tensor([prompt.span_mask], device=DEVICE)
    with holdfast.steering(tiny.hf_model, span, methods):
        logits = tiny.hf_model(ids).logits[0, -1]
    expected = tiny.generate(TALK, [Hold()], Sampling(0.0, 1.0, 1)).token_ids
    assert expected in ((logits.argmax().item(),), ())


# Requests that share a rehearsal, or pay for it


def submitted_rows(monkeypatch, session):
    """Records the rows that a session submits, in order."""
    rows = []
    submit = session.stepped.scheduler.submit

    def count(row):
        rows.append(row)
        return submit(row)

    monkeypatch.setattr(session.stepped.scheduler, "submit", count)
    return rows


def test_requests_with_the_same_first_turn_share_one_rehearsal(monkeypatch):
    session = model().session()
    rows = submitted_rows(monkeypatch, session)
    longer = (*TALK, {"role": "assistant", "content": "so"}, {"role": "user", "content": "well?"})
    requests = [Request(talk, Hold(), LONG, 3) for talk in (TALK, longer, TALK[:2])]
    replies = session.generate_batch(requests)
    assert len(rows) == 4  # one rehearsal and three replies
    repeat = session.generate_batch(requests[:1])[0]
    assert repeat.token_ids == replies[0].token_ids and len(rows) == 5
    other_request = Request(chat(SYSTEM, "good day"), Hold(), LONG, 3)
    session.generate_batch([other_request])
    assert len(rows) == 7  # another first turn is another rehearsal


def test_first_turns_that_differ_in_another_field_have_rehearsals_of_their_own(monkeypatch):
    session = model().session()
    rows = submitted_rows(monkeypatch, session)
    for name in ("Ann", "Bob"):
        before = ({"role": "assistant", "content": "so", "name": name},)
        session.generate_batch([Request((TALK[0], *before, *TALK[1:]), Hold(), LONG)])
    assert len(rows) == 4


def test_the_request_that_caused_a_rehearsal_pays_for_it():
    tiny = model()
    session = tiny.session()
    first, second = [session.generate_batch([Request(TALK, Hold(), LONG, 5)])[0] for _ in range(2)]
    assert first.token_ids == second.token_ids
    rehearsal = Request(TALK[:2], (), Sampling(0.0, 1.0, 24), trace=True)
    assert first.forwarded - second.forwarded == tiny.generate_batch([rehearsal])[0].forwarded


def test_a_scored_chat_pays_for_its_rehearsal():
    session = model().session()
    first, second = (session.score_batch([Request(TALK, Hold())], [["bread"]])[0] for _ in range(2))
    rehearsal = Request(TALK[:2], (), Sampling(0.0, 1.0, 24), trace=True)
    assert first.forwarded - second.forwarded == model().generate_batch([rehearsal])[0].forwarded


def test_a_list_that_is_refused_once_it_is_resolved_is_refused_every_time(monkeypatch):
    tiny = model()

    def check(self, methods):
        if any(isinstance(method, Floors) for method in methods):
            raise UsageError("no floors here")

    monkeypatch.setattr(type(tiny), "check", check)
    session = tiny.session()
    for _ in range(2):
        with pytest.raises(UsageError, match="no floors here"):
            session.generate_batch([Request(TALK, Hold(), LONG)])


# Rehearsals that are cancelled or fail


async def tokens_of(stream):
    return [event async for event in stream]


def test_cancelling_a_request_that_waits_for_a_rehearsal_leaves_the_others():
    tiny = model()
    requests = [Request(TALK, Hold(), LONG, seed) for seed in (1, 2)]

    async def cancel_the_first():
        async with tiny.session() as engine:
            streams = [engine.stream(request, top_logprobs=2) for request in requests]
            tasks = [asyncio.create_task(tokens_of(stream)) for stream in streams]
            while not engine.running:
                await asyncio.sleep(0)
            assert engine.running == 1  # the rehearsal, for which both wait
            tasks[0].cancel()
            *tokens, reply = await tasks[1]
            return tasks[0].cancelled(), tokens, reply, engine.running

    async def alone():
        async with tiny.session() as engine:
            return (await tokens_of(engine.stream(requests[1])))[-1]

    cancelled, tokens, reply, running = asyncio.run(cancel_the_first())
    expected = asyncio.run(alone())
    assert cancelled and running == 0
    assert reply.token_ids == expected.token_ids == tuple(token.token_id for token in tokens)
    assert reply.forwarded == expected.forwarded  # the one that is left is charged
    assert {len(token.top) for token in tokens} == {2}


def test_a_rehearsal_that_nobody_waits_for_any_more_is_cancelled(caplog):
    tiny = model()

    async def leave():
        async with tiny.session() as engine:
            tasks = [
                asyncio.create_task(engine.generate(Request(TALK, Hold(tokens=10_000), LONG, seed)))
                for seed in (1, 2)
            ]
            while not engine.running:
                await asyncio.sleep(0)
            tasks[0].cancel()
            await asyncio.sleep(0)
            assert engine.running == 1  # the other still waits for it
            tasks[1].cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert engine.running == 0
            # the next chat that needs it starts it anew
            return await engine.generate(Request(TALK, Hold(), LONG, 1))

    reply = asyncio.run(leave())
    assert reply.token_ids == tiny.generate(TALK, Hold(), LONG, 1).token_ids
    gc.collect()  # asyncio reports a lost error when its task is deleted
    assert not caplog.records


def test_every_chat_names_itself_when_a_shared_rehearsal_fails():
    async def ask_both():
        async with model().session() as engine:
            replies = [
                engine.generate(Request(TALK, (Broken(), Hold()), LONG, name=name))
                for name in ("Chat 1", "Chat 2")
            ]
            return await asyncio.gather(*replies, return_exceptions=True)

    first, second = asyncio.run(ask_both())
    assert first is not second
    assert [error.__notes__ for error in (first, second)] == [["Chat 1"], ["Chat 2"]]


def test_a_failed_rehearsal_fails_only_the_chat_that_waits_for_it():
    tiny = model()
    requests = [Request(TALK, (Broken(), Hold()), LONG), Request(TALK, Hold(), LONG)]
    error, reply = outcomes(tiny.session(), requests)
    assert isinstance(error, ValueError) and "a bug" in str(error)
    assert reply.token_ids


# Chats without a span


def test_a_study_dialog_without_a_span_is_answered_unsteered():
    tiny = model()
    plain = chat("", "hello there")
    (reply,) = outcomes(tiny.session(), [Request(plain, Hold(), LONG, 5)])
    assert reply.text == tiny.generate(plain, (), LONG, 5).text


def test_a_batch_refuses_a_method_without_a_span_and_names_the_request():
    tiny = model()
    talks = chat("talk about cheese", "hello"), chat("", "hello")
    requests = [Request(talk, "boost:factor=2") for talk in talks]
    message = r"^Request 2 of 2: boost:factor=2 needs a system prompt"
    for owner in (tiny, tiny.session()):
        with pytest.raises(UsageError, match=message):
            owner.generate_batch(requests)
    with pytest.raises(UsageError, match=r"^boost:factor=2 needs"):
        tiny.generate_batch(requests[1:])
    assert len(tiny.generate_batch([requests[0], Request(chat("", "hello"))])) == 2


@pytest.mark.parametrize("method", (Hold(), "boost:factor=4"))
def test_a_single_reply_is_refused_if_a_method_has_no_span_to_steer(method):
    tiny = model()
    for bare in (chat("", "hello there"), chat("", "hello there")[-1:]):
        with pytest.raises(UsageError) as excinfo:
            tiny.generate(bare, [method], LONG)
        assert "emphasis" in excinfo.value.allowed
        with pytest.raises(UsageError) as excinfo:
            tiny.stream(Request(bare, method, LONG), print)
        assert "emphasis" in excinfo.value.allowed
        assert tiny.generate(bare, [method], LONG, emphasis=["hello"]).token_ids is not None
