"""Faults and slow measures on the way cost an edit, a check or a score, but never the request."""

import asyncio
import json
import sys
import threading
import time
import types

import httpx2
import openai
import pytest
import yaml
from checked_replies import BROKEN, CHECKED, KEPT, ask, text_of
from fake_upstream import (
    EVERY,
    SUITE,
    FakeUpstream,
    counts,
    through,
    user,
    wait_until,
)

import holdfast
from holdfast.drift.suite_file import parse_suite
from holdfast.proxy import forwarding, measure_threads
from holdfast.proxy.chat_edits import EditOutcome
from holdfast.proxy.reply_scores import WhyUnscored
from holdfast.proxy.suite_middleware import SuiteChat
from holdfast.proxy.tally import Tally

SECRETS = ("a", "secret")


def fail(*_, **__):
    raise KeyError(" ".join(SECRETS))


# Faults of ours


def test_a_fault_while_a_request_is_edited_costs_only_the_edit(suite, monkeypatch, caplog):
    monkeypatch.setattr(SuiteChat, "edit", fail)
    with through(KEPT, suite, EVERY) as (upstream, proxy):
        assert text_of(ask(proxy.url)) == "Fine, Tony"
        proxy.settle()
        metrics = httpx2.get(f"{proxy.url}/metrics").text
    assert upstream.requests[0].json["messages"] == user("Hi.")
    assert proxy.counts.requests == {EditOutcome.FAILED: 1}
    assert 'holdfast_proxy_chat_requests_total{outcome="failed"} 1.0' in metrics
    assert "KeyError" in caplog.text and " ".join(SECRETS) not in caplog.text


@pytest.mark.parametrize("name", ["broken_rules", "edit_again"])
def test_a_fault_while_a_reply_is_checked_costs_only_the_retry(suite, monkeypatch, caplog, name):
    monkeypatch.setattr(SuiteChat, name, fail)
    with through(BROKEN, suite, CHECKED) as (upstream, proxy):
        assert text_of(ask(proxy.url)) == "Fine, sir"
        assert counts(proxy)["signs", 1] == (0, 1)
    assert len(upstream.requests) == 1
    assert "KeyError" in caplog.text and " ".join(SECRETS) not in caplog.text


@pytest.mark.parametrize("kind", [openai.OpenAI, openai.AsyncOpenAI])
@pytest.mark.parametrize("name", ["edit", "broken_rules", "edit_again", "score"])
def test_a_fault_in_a_wrapped_client_costs_no_reply(suite, monkeypatch, caplog, kind, name):
    monkeypatch.setattr(SuiteChat, name, fail)
    tally = Tally()
    with FakeUpstream(BROKEN) as upstream:
        wrapped = holdfast.wrap(
            kind(base_url=f"{upstream.url}/v1", api_key="k"),
            suite=suite,
            method=EVERY if name == "score" else CHECKED,
            tally=tally,
        )
        reply = wrapped.chat.completions.create(model="m", messages=user("Hi."))
        reply = asyncio.run(reply) if kind is openai.AsyncOpenAI else reply
    assert reply.choices[0].message.content == "Fine, sir" and len(upstream.requests) == 1
    unscored = {WhyUnscored.UNREADABLE: 1} if name == "score" else {}
    assert tally.counts().unscored == unscored
    assert "KeyError" in caplog.text and " ".join(SECRETS) not in caplog.text


def test_a_fault_while_a_reply_is_scored_is_counted(suite, monkeypatch):
    monkeypatch.setattr(SuiteChat, "score", fail)
    with through(KEPT, suite) as (_, proxy):
        assert text_of(ask(proxy.url)) == "Fine, Tony"
        proxy.settle()
    assert proxy.counts.unscored == {WhyUnscored.UNREADABLE: 1}


def test_a_request_of_a_wrapped_client_that_is_sent_in_parts_is_not_edited(suite):
    tally = Tally()
    body = json.dumps({"model": "m", "messages": user("Hi.")}).encode()
    with FakeUpstream(KEPT) as upstream:
        inner = openai.OpenAI(base_url=f"{upstream.url}/v1", api_key="k", max_retries=0)
        wrapped = holdfast.wrap(inner, suite=suite, method=EVERY, tally=tally)
        reply = wrapped._client.post(f"{upstream.url}/v1/chat/completions", content=iter([body]))
    assert reply.status_code == 200 and upstream.requests[0].body == body
    assert tally.counts().requests == {EditOutcome.UNREADABLE: 1}


# Measures of the user's


def measure_by(function, monkeypatch):
    """Gives the suite of all proxies another rule, "own", whose measure is this function."""
    module = types.ModuleType("own_measure")
    module.measure = function
    monkeypatch.setitem(sys.modules, "own_measure", module)
    cases = yaml.safe_load(SUITE)
    rule = {"id": "own", "text": "Be good.", "measure": {"python": "own_measure.measure"}}
    cases["cases"][0]["rules"].insert(0, rule)
    text = yaml.safe_dump(cases)
    # the measure is not tried out
    suite = parse_suite(text, "bot.yaml", "bot", probed=False, allow_code=True, check=False)
    monkeypatch.setattr("fake_upstream.load_suite", lambda *_, **__: suite)


@pytest.mark.parametrize("method", [EVERY, CHECKED, "reminder:every=1,text=rules,when=broken"])
def test_a_measure_that_fails_is_counted(monkeypatch, method):
    measure_by(fail, monkeypatch)
    dialog = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Yes, Tony"}]
    with through(KEPT, "bot.yaml", method) as (_, proxy):
        assert text_of(ask(proxy.url, messages=user("More.", *dialog))) == "Fine, Tony"
        assert counts(proxy) == {("signs", 2): (1, 1), ("short", 2): (1, 1)}
        metrics = httpx2.get(f"{proxy.url}/metrics").text
        live = httpx2.get(f"{proxy.url}/holdfast/live.json").json()
    labels = 'case="brief",outcome="measure_failed",rule="own",turn="2"'
    assert f"holdfast_proxy_rules_total{{{labels}}} 1.0" in metrics
    assert live["failed_measures"] == 1


@pytest.fixture
def end_of_slow_measure(monkeypatch):
    """The proxy's suite has a measure that waits for this event."""
    is_over = threading.Event()

    def wait(reply):
        is_over.wait(30)
        return 1.0

    measure_by(wait, monkeypatch)
    yield is_over
    is_over.set()


def test_a_slow_measure_delays_no_reply_for_long(end_of_slow_measure, monkeypatch, caplog):
    monkeypatch.setattr(forwarding, "_MAX_SECONDS", 0.2)
    with through(BROKEN, "bot.yaml", CHECKED) as (upstream, proxy):
        assert text_of(ask(proxy.url)) == "Fine, sir"
        assert proxy.counts.unchecked == 1
        assert len(upstream.requests) == 1 and "more than 0.2 s" in caplog.text
        monkeypatch.setattr(measure_threads, "_MAX_SECONDS", 0)
        assert text_of(ask(proxy.url)) == "Fine, sir"
        wait_until(lambda: proxy.counts.unscored == {WhyUnscored.BUSY: 1})
        end_of_slow_measure.set()
        assert counts(proxy)["own", 1] == (1, 1)


def test_a_slow_measure_costs_the_edit(end_of_slow_measure, monkeypatch):
    monkeypatch.setattr(forwarding, "_MAX_SECONDS", 0.2)
    dialog = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Yes?"}]
    spec = "reminder:every=1,text=rules,when=broken"
    with through(KEPT, "bot.yaml", spec) as (upstream, proxy):
        messages = user("More.", *dialog)
        assert text_of(ask(proxy.url, messages=messages)) == "Fine, Tony"
        assert upstream.requests[0].json["messages"] == messages
        assert proxy.counts.requests == {EditOutcome.FAILED: 1}
        end_of_slow_measure.set()


def test_a_measure_that_never_returns_holds_up_no_end(end_of_slow_measure, monkeypatch, caplog):
    monkeypatch.setattr(measure_threads, "_MAX_SECONDS_AT_END", 0.1)
    with through(KEPT, "bot.yaml") as (_, proxy):
        assert text_of(ask(proxy.url)) == "Fine, Tony"
        wait_until(lambda: proxy.forwarding.scoring.waiting == 1)
        ending = time.monotonic()
    assert time.monotonic() - ending < 5  # the measure takes 30 s
    assert "Not scored: 1 reply" in caplog.text


def test_a_reply_that_waits_at_the_end_is_scored(suite, monkeypatch):
    begin = threading.Event()
    score = SuiteChat.score

    def wait(*arguments):
        begin.wait(20)
        return score(*arguments)

    monkeypatch.setattr(SuiteChat, "score", wait)
    with through(KEPT, suite) as (_, proxy):
        assert text_of(ask(proxy.url)) == "Fine, Tony"
        wait_until(lambda: proxy.forwarding.scoring.waiting == 1)
        threading.Timer(0.1, begin.set).start()
    assert {row.cell.rule: row.scored for row in proxy.counts.rules} == {"signs": 1, "short": 1}
