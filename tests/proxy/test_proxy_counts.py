"""Chats that `holdfast proxy` passes on unedited, unchecked or unscored are counted."""

import json

import httpx2
import openai
import pytest
from checked_replies import BROKEN, CHECKED, ask, text_of
from fake_upstream import (
    EVERY,
    SYSTEM,
    FakeUpstream,
    client,
    reply_json,
    response,
    through,
)

import holdfast
from holdfast.proxy.chat_edits import EditOutcome
from holdfast.proxy.reply_scores import WhyUnscored
from holdfast.proxy.tally import Tally


@pytest.mark.parametrize(
    "path",
    [
        "/v1/messages",
        "/v1/completions",
        "/v1beta/models/m:generateContent",
        "/v1beta/models/m:streamGenerateContent",
        "/api/chat",
        "/api/generate",
    ],
)
def test_a_chat_in_another_api_is_counted(suite, path):
    body = (
        b'{"model": "m", "system": "Be brief.", "messages": [{"role": "user", "content": "Hi."}]}'
    )
    with through(reply_json(b'{"ok": true}'), suite, EVERY) as (upstream, proxy):
        assert httpx2.post(proxy.url + path, content=body).json() == {"ok": True}
        metrics = httpx2.get(f"{proxy.url}/metrics").text
    assert upstream.requests[0].body == body
    assert 'holdfast_proxy_chat_requests_total{outcome="other_api"} 1.0' in metrics


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/threads/t1/messages", "/v1/batches"])
def test_a_request_that_is_no_chat_is_not_counted_as_one(suite, path):
    with through(reply_json(b"{}"), suite, EVERY) as (_, proxy):
        httpx2.post(proxy.url + path, content=b"{}")
        httpx2.get(f"{proxy.url}/v1/messages")
        assert not proxy.counts.requests


def test_a_wrapped_client_counts_chats_in_another_api(suite):
    tally = Tally()
    with FakeUpstream(reply_json(b'{"choices": []}')) as upstream:
        inner = openai.OpenAI(base_url=f"{upstream.url}/v1", api_key="k", max_retries=0)
        wrapped = holdfast.wrap(inner, suite=suite, method=EVERY, tally=tally)
        wrapped.completions.create(model="m", prompt="Hi.")
    assert tally.counts().requests == {EditOutcome.OTHER_API: 1}


def test_a_reply_that_is_made_in_the_background_is_counted_as_such(suite):
    answer = reply_json(json.dumps(response("") | {"status": "queued", "output": []}).encode())
    with through(answer, suite, CHECKED) as (_, proxy):
        client(proxy).responses.create(model="m", instructions=SYSTEM, input="Hi.", background=True)
        proxy.settle()
    assert proxy.counts.unscored == {WhyUnscored.BACKGROUND: 1} and proxy.counts.unchecked == 1


def test_a_refused_request_for_a_reply_in_the_background_failed(suite):
    def refuse(request, writer):
        writer.whole("400 No", b'{"error": {"message": "no"}}', "Content-Type: application/json")

    with through(refuse, suite) as (_, proxy):
        httpx2.post(f"{proxy.url}/v1/responses", json={"input": "Hi.", "background": True})
        proxy.settle()
    assert proxy.counts.unscored == {WhyUnscored.FAILED: 1}


def test_a_request_that_refers_to_stored_items_continues_a_stored_dialog(suite):
    items = [{"type": "item_reference", "id": "m1"}, {"role": "user", "content": "More."}]
    with through(reply_json(json.dumps(response()).encode()), suite, EVERY) as (upstream, proxy):
        client(proxy).responses.create(model="m", instructions=SYSTEM, input=items)
        assert proxy.counts.requests == {EditOutcome.STORED: 1}
    assert upstream.requests[0].json["input"] == items


def test_a_chat_without_a_message_of_the_user_is_not_checked(suite):
    """A retry would have no message to put the reminder into."""
    with through(BROKEN, suite, CHECKED) as (upstream, proxy):
        assert (
            text_of(ask(proxy.url, messages=[{"role": "system", "content": SYSTEM}])) == "Fine, sir"
        )
        proxy.settle()
    assert len(upstream.requests) == 1
    assert (proxy.counts.retries, proxy.counts.unchecked) == (0, 1)
