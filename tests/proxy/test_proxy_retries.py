"""`check-and-retry` in `holdfast proxy`: replies that break a rule are drawn again."""

import threading
import time

import httpx2
import openai
import pytest
import yaml
from checked_replies import BROKEN, CHAT, KEPT, REMINDED, WORSE, ask, refuse, text_of
from fake_upstream import (
    SUITE,
    SYSTEM,
    FakeUpstream,
    chunks,
    completion,
    in_turn,
    proxied,
    reply_events,
    reply_json,
    response,
    through,
    wait_until,
)

from holdfast.proxy import retry_attempts, upstream_answer
from holdfast.proxy.reply_scores import WhyUnscored


@pytest.fixture(autouse=True)
def short_delays(monkeypatch):
    monkeypatch.setattr(retry_attempts, "_FIRST_DELAY", 0.001)


def test_a_reply_that_breaks_a_rule_is_drawn_again(suite):
    with through(in_turn(BROKEN, KEPT), suite, "check-and-retry:n=2") as (upstream, proxy):
        assert text_of(ask(proxy.url, seed=3)) == "Fine, Tony"
        proxy.settle()
        metrics = httpx2.get(f"{proxy.url}/metrics").text
    first, second = upstream.requests
    assert first.json["messages"] == CHAT and second.json == {"messages": REMINDED, "seed": 3}
    # only the reply that the client got is scored
    rules = {row.cell.rule: (row.kept, row.scored) for row in proxy.counts.rules}
    assert rules == {"signs": (1, 1), "short": (1, 1)}
    assert proxy.counts.retries == 1 and proxy.counts.reminders == 0
    # at four bytes each: the 42 bytes of the chat again, and the 27 of the reminder
    assert proxy.counts.added_tokens == 11 + 7
    assert "holdfast_proxy_retries_total 1.0" in metrics


def test_a_reply_that_keeps_all_rules_is_sent_on(suite):
    with through(KEPT, suite, "check-and-retry") as (upstream, proxy):
        reply = ask(proxy.url)
    assert reply.content == completion("Fine, Tony") and len(upstream.requests) == 1
    assert proxy.counts.retries == 0


def test_messages_are_edited_in_a_retry_too(suite):
    spec = 'reminder:every=1,text="Be brief."+check-and-retry:n=1'
    with through(in_turn(BROKEN, KEPT), suite, spec) as (upstream, proxy):
        ask(proxy.url)
    first, second = (request.json["messages"][-1]["content"] for request in upstream.requests)
    assert first == "[Reminder: Be brief.]\n\nHi."
    assert second == "[Reminder: Be brief.]\n\n[Reminder: Sign as Tony.]\n\nHi."


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ((WORSE, BROKEN, WORSE), "Fine, sir"),
        ((BROKEN, WORSE, reply_json(completion("Well, sir"))), "Fine, sir"),
        ((BROKEN, refuse), "Fine, sir"),
        ((BROKEN, reply_json(completion(""))), "Fine, sir"),
        ((BROKEN, reply_json(b"<html>")), "Fine, sir"),
    ],
    ids=["the fewest broken", "the earliest", "refused", "empty", "unreadable"],
)
def test_the_best_draw_is_sent_if_none_keeps_all_rules(suite, answers, text):
    with through(in_turn(*answers), suite, "check-and-retry:n=2") as (upstream, proxy):
        reply = ask(proxy.url)
    assert reply.status_code == 200 and text_of(reply) == text
    assert len(upstream.requests) == len(answers)
    assert proxy.counts.failed_retries == (len(answers) == 2)  # all others gave a reply


# Streams and the Responses API


def test_a_stream_is_held_back_until_it_is_checked(suite):
    answers = in_turn(reply_events(*chunks("Fine, ", "sir")), reply_events(*chunks("Oh, ", "Tony")))
    with (
        FakeUpstream(answers) as upstream,
        proxied(upstream.url, suite, "check-and-retry") as proxy,
    ):
        client = openai.OpenAI(base_url=f"{proxy.url}/v1", api_key="k", max_retries=0)
        stream = client.chat.completions.create(model="m", messages=CHAT, stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "Oh, Tony"


def test_a_reply_of_the_responses_api_is_drawn_again(suite):
    answers = in_turn(
        *(
            reply_json(httpx2.Response(200, json=response(text)).content)
            for text in ("Fine, sir", "Fine, Tony")
        )
    )
    with (
        FakeUpstream(answers) as upstream,
        proxied(upstream.url, suite, "check-and-retry") as proxy,
    ):
        body = {"instructions": SYSTEM, "input": "Hi."}
        reply = httpx2.post(f"{proxy.url}/v1/responses", json=body).json()
    assert reply["output"][0]["content"][0]["text"] == "Fine, Tony"
    assert upstream.requests[1].json == {**body, "input": REMINDED[1]["content"]}


def test_reasoning_is_not_checked(suite):
    answer = reply_json(completion("<think>I plan. I plan more.</think>Fine, Tony"))
    with through(answer, suite, "check-and-retry") as (upstream, proxy):
        ask(proxy.url)
    assert len(upstream.requests) == 1 and proxy.counts.retries == 0


# What is passed on unchecked


def test_half_a_surrogate_pair_is_sent_again_as_it_came(suite):
    body = b'{"messages": [{"role": "user", "content": "Hi \\ud83d"}]}'
    with through(in_turn(BROKEN, KEPT), suite, "check-and-retry") as (upstream, proxy):
        reply = httpx2.post(f"{proxy.url}/v1/chat/completions", content=body)
    assert text_of(reply) == "Fine, Tony"
    assert b"Tony.]\\n\\nHi \\ud83d" in upstream.requests[1].body


@pytest.mark.parametrize("choices", ["5", '["x"]', "[null]"])
def test_malformed_choices_are_sent_on_unchanged(suite, choices):
    body = f'{{"choices": {choices}}}'.encode()
    with through(reply_json(body), suite, "check-and-retry") as (_, proxy):
        assert ask(proxy.url).content == body


CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    "answer",
    [refuse, reply_json(completion("", "tool_calls", tool_calls=[CALL])), reply_json(b"[")],
    ids=["refused", "calls a tool", "unreadable"],
)
def test_what_is_no_reply_is_sent_on_as_it_is(suite, answer):
    with FakeUpstream(answer) as upstream:
        direct = ask(upstream.url)
        with proxied(upstream.url, suite, "check-and-retry") as proxy:
            through = ask(proxy.url)
    assert (through.status_code, through.content) == (direct.status_code, direct.content)
    assert len(upstream.requests) == 2 and proxy.counts.retries == 0


def test_several_choices_are_not_held_back(suite):
    """Such a reply is not drawn again either, even if all choices but one broke off."""
    stream = chunks("Fine, sir")
    release = threading.Event()

    def answer(request, writer):
        writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        writer.chunk(stream[0])
        assert release.wait(20)
        for event in stream[1:]:
            writer.chunk(event)
        writer.raw(b"0\r\n\r\n")

    with through(answer, suite, "check-and-retry") as (upstream, proxy):
        body = {"messages": CHAT, "stream": True, "n": 2}
        with httpx2.stream("POST", f"{proxy.url}/v1/chat/completions", json=body) as reply:
            parts = reply.iter_raw()
            assert next(parts) == stream[0]
            release.set()
            assert b"".join(parts) == b"".join(stream[1:])
        metrics = httpx2.get(f"{proxy.url}/metrics").text
    assert len(upstream.requests) == 1
    assert proxy.counts.unchecked == 1 and "holdfast_proxy_unchecked_total 1.0" in metrics


def test_a_pattern_that_runs_for_ages_costs_only_its_rule(tmp_path, caplog):
    cases = yaml.safe_load(SUITE)
    slow = {"id": "slow", "text": "Say a or Tony.", "measure": {"regex": "(a|aa)+$|Tony"}}
    cases["cases"][0]["rules"].insert(0, slow)
    path = tmp_path / "slow.yaml"
    path.write_text(yaml.safe_dump(cases))
    hostile = "a" * 5000 + "b"
    turns = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": hostile}]
    spec = "reminder:every=1,text=rules,when=broken+check-and-retry:n=1"
    answers = in_turn(reply_json(completion(hostile)), KEPT)
    with through(answers, str(path), spec) as (upstream, proxy):
        chat = [CHAT[0], *turns * 20, CHAT[1]]
        started = time.process_time()
        assert text_of(ask(proxy.url, messages=chat)) == "Fine, Tony"
        assert time.process_time() - started < 3  # a reply that stands there again is remembered
        proxy.settle()
        assert [row.cell.rule for row in proxy.counts.rules] == ["slow", "signs", "short"]
    contents = [request.json["messages"][-1]["content"] for request in upstream.requests]
    reminder = "[Reminder: Sign as Tony.]\n\n"
    assert contents == [f"{reminder}Hi.", f"{reminder * 2}Hi."]
    assert "brief/slow" in caplog.text and "aaa" not in caplog.text


# Replies that break off, or are too long to hold


def test_an_answer_that_breaks_off_does_so_here(suite):
    def answer(request, writer):
        writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        writer.chunk(chunks("Fine, ")[0])
        return False

    with through(answer, suite, "check-and-retry") as (_, proxy):
        client = openai.OpenAI(base_url=f"{proxy.url}/v1", api_key="k", max_retries=0)
        stream = client.chat.completions.create(model="m", messages=CHAT, stream=True)
        assert next(stream).choices[0].delta.content == "Fine, "
        with pytest.raises((openai.APIConnectionError, httpx2.RemoteProtocolError)):
            list(stream)
        proxy.settle()
    assert proxy.counts.unscored == {WhyUnscored.FAILED: 1}


def test_a_reply_that_is_too_long_to_hold_is_passed_on_as_it_comes(suite, monkeypatch):
    monkeypatch.setattr(upstream_answer, "MAX_SCORED_REPLY_BYTES", 100)
    body = completion(f"{'Oh. ' * 50}Tony")
    with through(reply_json(body), suite, "check-and-retry") as (upstream, proxy):
        reply = ask(proxy.url)
        proxy.settle()
    assert reply.content == body and len(upstream.requests) == 1
    assert proxy.tally.counts().unscored == {WhyUnscored.TOO_LONG: 1}


def test_a_retry_that_is_too_long_to_hold_is_discarded(suite, monkeypatch):
    monkeypatch.setattr(upstream_answer, "MAX_SCORED_REPLY_BYTES", 500)
    answers = in_turn(BROKEN, reply_json(completion(f"{'Oh. ' * 500}Tony")))
    with through(answers, suite, "check-and-retry") as (upstream, proxy):
        assert text_of(ask(proxy.url)) == "Fine, sir"
        proxy.settle()
    assert len(upstream.requests) == 2 and not proxy.tally.counts().unscored
    assert proxy.counts.failed_retries == 1


def test_a_client_that_leaves_while_its_reply_is_held_cancels_it(suite):
    client_states = []

    def answer(request, writer):
        writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        writer.chunk(chunks("Fine")[0])
        client_states.append(writer.client_is_gone())
        return False

    with through(answer, suite, "check-and-retry") as (upstream, proxy):
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.post(f"{proxy.url}/v1/chat/completions", json={"messages": CHAT}, timeout=0.3)
        wait_until(lambda: bool(client_states))
    assert client_states == [True] and len(upstream.requests) == 1
