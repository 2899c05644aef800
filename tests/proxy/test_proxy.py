"""`holdfast proxy`: what is kept, counted and shown."""

import asyncio
import json
import threading

import httpx2
import openai
import pytest
from fake_upstream import (
    EVERY,
    KEY,
    SUITE,
    SYSTEM,
    FakeUpstream,
    client,
    completion,
    counts,
    proxied,
    reply_json,
    response,
    through,
    user,
    wait_until,
)

from holdfast.logs import read_logs
from holdfast.proxy.reply_scores import WhyUnscored


def test_no_text_and_no_key_is_logged(suite, caplog, capfd):
    with caplog.at_level("DEBUG", "holdfast"), FakeUpstream(reply_json(completion())) as upstream:
        with proxied(upstream.url, suite, EVERY) as proxy:
            client(proxy).chat.completions.create(model="m", messages=user("A secret."))
            proxy.settle()
            responses = httpx2.get(f"{proxy.url}/metrics").text
            responses += httpx2.get(f"{proxy.url}/holdfast/live.json").text
        upstream.answer = lambda request, writer: False
        with proxied(upstream.url, suite, EVERY) as proxy, pytest.raises(openai.APIError):
            client(proxy).chat.completions.create(model="m", messages=user("A secret."))
    captured = capfd.readouterr()
    for text in (responses, caplog.text, captured.out, captured.err):
        assert KEY not in text and "secret" not in text


def test_a_log_of_chats_is_one_that_logs_reads(suite, tmp_path):
    path = tmp_path / "chats.jsonl"
    with through(reply_json(completion("Fine, Tony")), suite, EVERY, log=path) as (upstream, proxy):
        client(proxy).chat.completions.create(model="m", messages=user("Hi."))
        proxy.settle()
        upstream.answer = reply_json(json.dumps(response("Yes, Tony")).encode())
        client(proxy).responses.create(model="m", instructions=SYSTEM, input="Hi.")
        proxy.settle()
    text = path.read_text()
    assert KEY not in text
    first, second = map(json.loads, text.splitlines())
    assert first["added"] == second["added"] == ["[Reminder: Be brief.]\n\n"]
    for line, reply in (first, "Fine, Tony"), (second, "Yes, Tony"):
        path.write_text(json.dumps(line))
        (dialog,) = read_logs(path).dialogs
        assert dialog.system == SYSTEM
        assert [(turn.user, turn.done.text) for turn in dialog.turns] == [("Hi.", reply)]


def test_a_trailing_slash_redirects_to_the_page(suite):
    with through(reply_json(completion()), suite) as (upstream, proxy):
        page = httpx2.get(f"{proxy.url}/holdfast/", follow_redirects=True)
        assert str(page.url) == f"{proxy.url}/holdfast" and page.status_code == 200
        assert not upstream.requests


def test_metrics_and_page_count_kept_rules_and_reminders(suite):
    with through(reply_json(completion()), suite, EVERY) as (upstream, proxy):
        client(proxy).chat.completions.create(model="m", messages=user("Hi."))
        proxy.settle()
        metrics = httpx2.get(f"{proxy.url}/metrics").text
        live = httpx2.get(f"{proxy.url}/holdfast/live.json").json()
        page = httpx2.get(f"{proxy.url}/holdfast")
        linked = [f"{proxy.url}/holdfast/{name}" for name in ("colours.css", "live.js", "live.css")]
        assert all(httpx2.get(url).status_code == 200 for url in linked)
    labels = 'case="brief",outcome="kept",rule="signs",turn="1"'
    assert f"holdfast_proxy_rules_total{{{labels}}} 1.0" in metrics
    assert "holdfast_proxy_reminders_total 1.0" in metrics
    assert "holdfast_proxy_added_tokens_total 6.0" in metrics
    assert 'holdfast_proxy_chat_requests_total{outcome="edited"} 1.0' in metrics
    assert 'holdfast_proxy_requests_total{api="/chat/completions",status="200"} 1.0' in metrics
    assert live["reminders"] == 1 and live["requests"] == {"edited": 1} and live["open"] == 0
    assert {(row["rule"], row["kept"], row["scored"]) for row in live["rules"]} == {
        ("signs", 1, 1),
        ("short", 0, 1),
    }
    assert page.headers["content-security-policy"] and "live.js" in page.text
    assert len(upstream.requests) == 1


def test_the_page_lists_rules_in_the_order_of_the_suite(tmp_path):
    """The order in which their first replies arrived does not matter."""
    path = tmp_path / "bot.yaml"
    path.write_text(SUITE.replace("id: signs", "id: signs\n        when: {user: Sign}"))
    with through(reply_json(completion()), str(path)) as (_, proxy):
        for text in ("Hi.", "Sign it."):
            client(proxy).chat.completions.create(model="m", messages=user(text))
        proxy.settle()
        live = httpx2.get(f"{proxy.url}/holdfast/live.json").json()
    assert [row["rule"] for row in live["rules"]] == ["signs", "short"]


def test_the_page_and_the_metrics_say_which_rules_are_scored(tmp_path):
    path = tmp_path / "bot.yaml"
    path.write_text(SUITE.replace("id: signs", "id: signs\n        probes: [Hi.]"))
    with through(reply_json(completion()), str(path)) as (_, proxy):
        live = httpx2.get(f"{proxy.url}/holdfast/live.json").json()
        metrics = httpx2.get(f"{proxy.url}/metrics").text
    assert (live["scored_rules"], live["suite_rules"]) == (1, 2)
    assert live["which_are_scored"].startswith(
        "1 of 2 rules is scored. Rules without `when:` are not scored"
    )
    assert live["which_are_scored"].endswith(": brief/signs.")
    name = "holdfast_proxy_suite_rules"
    assert f'{name}{{case="brief",not_scored="no_when",rule="signs"}} 1.0' in metrics
    assert f'{name}{{case="brief",not_scored="",rule="short"}} 1.0' in metrics


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (completion("Fine. T", "length"), WhyUnscored.CUT),
        (completion(""), WhyUnscored.EMPTY),
    ],
)
def test_the_reason_why_a_reply_has_no_scores_is_counted(tmp_path, body, reason):
    path = tmp_path / "bot.yaml"
    path.write_text(SUITE.replace('{regex: "Tony$"}', "{name: ends_with, word: Tony}"))
    path.write_text(path.read_text().replace("measure: one_sentence", "measure: {regex: y$}"))
    with through(reply_json(body), str(path)) as (_, proxy):
        client(proxy).chat.completions.create(model="m", messages=user("Hi."))
        assert counts(proxy) == {} and proxy.tally.counts().unscored == {reason: 1}


def test_a_reply_that_no_rule_applies_to_is_counted_as_such(tmp_path):
    path = tmp_path / "bot.yaml"
    path.write_text(SUITE.replace("        text: ", "        when: {user: fish}\n        text: "))
    with through(reply_json(completion()), str(path)) as (_, proxy):
        client(proxy).chat.completions.create(model="m", messages=user("Hi."))
        assert counts(proxy) == {} and proxy.tally.counts().unscored == {WhyUnscored.NO_RULE: 1}


def test_another_sites_name_is_refused(suite):
    with through(reply_json(b"{}"), suite) as (upstream, proxy):
        reply = httpx2.get(f"{proxy.url}/v1/models", headers={"Host": "evil.example"})
        assert reply.status_code == 421 and not upstream.requests


def test_headers_that_connection_names_stay_on_their_connection(suite):
    headers = {"Connection": "X-Hop", "X-Hop": "1", "X-Kept": "2"}
    with through(reply_json(completion()), suite) as (upstream, proxy):
        url = f"{proxy.url}/v1/chat/completions"
        httpx2.post(url, json={"messages": user("Hi.")}, headers=headers)
    (request,) = upstream.requests
    assert request.header("x-hop") is None and request.header("x-kept") == "2"


def test_draining_waits_for_a_request_that_began_after_another_ended(suite):
    may_end = threading.Event()

    def answer(request, writer):
        if b"slow" in request.body:
            may_end.wait(20)
        reply_json(completion())(request, writer)

    with through(answer, suite) as (_, proxy):
        url = f"{proxy.url}/v1/chat/completions"
        httpx2.post(url, json={"messages": user("Hi.")})
        wait_until(lambda: proxy.forwarding.open == 0)
        slow = threading.Thread(
            target=httpx2.post, args=(url,), kwargs={"json": {"messages": user("slow")}}
        )
        slow.start()
        wait_until(lambda: proxy.forwarding.open == 1)

        async def drain():
            draining = asyncio.ensure_future(proxy.forwarding.drain())
            await asyncio.wait([draining], timeout=0.2)
            assert not draining.done()
            draining.cancel()

        asyncio.run(drain())
        may_end.set()
        slow.join()
