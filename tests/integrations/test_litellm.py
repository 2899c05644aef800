"""The callback of LiteLLM, in its own calls and in its router, against a fake server."""

import asyncio
import json
import os

import pytest
from fake_upstream import (
    SUITE,
    SYSTEM,
    FakeUpstream,
    chunks,
    completion,
    in_turn,
    reply_events,
    reply_json,
)

from holdfast.proxy.chat_edits import EditOutcome
from holdfast.proxy.reply_scores import WhyUnscored
from holdfast.proxy.tally import Tally

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else importing it asks the network
litellm = pytest.importorskip("litellm")
from litellm.types.utils import CallTypes  # noqa: E402

from holdfast.integrations.litellm_hook import SuiteHook  # noqa: E402

CHAT = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Hi."}]
REMINDED = [CHAT[0], {"role": "user", "content": "[Reminder: Be brief.]\n\nHi."}]
EVERY = 'reminder:every=1,text="Be brief."'


@pytest.fixture(scope="module")
def run():
    """Runs a coroutine; all in one event loop, in which LiteLLM calls back."""
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture
def tally(tmp_path, monkeypatch):
    path, tally = tmp_path / "bot.yaml", Tally()
    path.write_text(SUITE)
    monkeypatch.setattr(litellm, "callbacks", [SuiteHook(path, EVERY, tally=tally)])
    return tally


def scored(tally):
    return {row.cell.rule: (row.kept, row.scored) for row in tally.counts().rules}


async def until(holds) -> None:
    for _ in range(1000):  # LiteLLM calls back from a queue of its own
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it was not called back")


def call(url, **options):
    return litellm.acompletion(
        model="openai/m", api_base=f"{url}/v1", api_key="k", messages=CHAT, num_retries=0, **options
    )


def refuse(request, writer):
    writer.whole("401 No", b'{"error": {"message": "no"}}', "Content-Type: application/json")


def test_a_chat_is_edited_and_its_reply_scored(tally, run):
    async def ask(url):
        reply = await call(url)
        await until(lambda: tally.counts().rules)
        return reply

    with FakeUpstream(reply_json(completion("Fine. Tony"))) as upstream:
        reply = run(ask(upstream.url))
    assert reply.choices[0].message.content == "Fine. Tony"
    assert upstream.requests[0].json["messages"] == REMINDED and CHAT[1]["content"] == "Hi."
    assert scored(tally) == {"signs": (1, 1), "short": (0, 1)}
    assert tally.counts().requests == {EditOutcome.EDITED: 1} and tally.counts().reminders == 1


def test_a_stream_is_scored_once_it_is_over(tally, run):
    async def ask(url):
        stream = await call(url, stream=True)
        text = "".join([part.choices[0].delta.content or "" async for part in stream])
        await until(lambda: tally.counts().rules)
        return text

    with FakeUpstream(reply_events(*chunks("Fine, ", "Tony"))) as upstream:
        assert run(ask(upstream.url)) == "Fine, Tony"
    assert upstream.requests[0].json["messages"] == REMINDED
    assert scored(tally) == {"signs": (1, 1), "short": (1, 1)}


def test_a_refused_call_is_counted(tally, run):
    async def ask(url):
        with pytest.raises(litellm.AuthenticationError):
            await call(url)
        await until(lambda: tally.counts().unscored)

    with FakeUpstream(refuse) as upstream:
        run(ask(upstream.url))
    assert tally.counts().unscored == {WhyUnscored.FAILED: 1} and not tally.counts().rules


def test_the_router_edits_each_attempt_once(tally, run):
    answers = iter([completion(None), completion("Fine, Tony")])

    def answer(request, writer):
        body = next(answers)
        status = "200 OK" if json.loads(body)["choices"][0]["message"]["content"] else "500 No"
        writer.whole(status, body, "Content-Type: application/json")

    async def ask(url):
        served = {"model": "openai/m", "api_base": f"{url}/v1", "api_key": "k", "max_retries": 0}
        router = litellm.Router(
            [{"model_name": "bot", "litellm_params": served}], num_retries=1, retry_after=0
        )
        await router.acompletion(model="bot", messages=CHAT)
        await until(lambda: tally.counts().rules)

    with FakeUpstream(answer) as upstream:
        run(ask(upstream.url))
    assert [request.json["messages"] for request in upstream.requests] == [REMINDED, REMINDED]
    assert scored(tally)["signs"] == (1, 1)


def test_fallbacks_are_edited_once(tally, run):
    async def ask(url):
        await call(url, fallbacks=["openai/other"])
        await until(lambda: tally.counts().rules)

    with FakeUpstream(reply_json(completion("Fine, Tony"))) as upstream:
        run(ask(upstream.url))
    assert upstream.requests[0].json["messages"] == REMINDED
    assert tally.counts().requests == {EditOutcome.EDITED: 1} and scored(tally)["signs"] == (1, 1)


def test_a_chat_that_the_hook_cannot_see_is_counted(tally, run):
    async def ask(url):
        await litellm.acompletion("openai/m", CHAT, api_base=f"{url}/v1", api_key="k")

    with FakeUpstream(reply_json(completion("Fine, Tony"))) as upstream:
        run(ask(upstream.url))
    assert upstream.requests[0].json["messages"] == CHAT
    assert tally.counts().requests == {EditOutcome.UNREADABLE: 1}


@pytest.mark.parametrize(
    ("call_type", "is_counted"),
    [("aresponses", True), ("anthropic_messages", True), ("aembedding", False)],
)
def test_a_chat_in_another_api_is_counted(tally, run, call_type, is_counted):
    (hook,) = litellm.callbacks
    call = hook.async_pre_call_deployment_hook({"input": "Hi."}, CallTypes(call_type))
    assert run(call) is None
    assert tally.counts().requests == ({EditOutcome.OTHER_API: 1} if is_counted else {})


# Replies that are drawn again

BROKEN, KEPT = reply_json(completion("Fine, sir")), reply_json(completion("Fine, Tony"))
WORSE = reply_json(completion("Fine. Yes, sir"))  # breaks both rules
SIGN = [CHAT[0], {"role": "user", "content": "[Reminder: Sign as Tony.]\n\nHi."}]


@pytest.fixture
def checking(tmp_path, monkeypatch):
    path, tally = tmp_path / "bot.yaml", Tally()
    path.write_text(SUITE)
    hook = SuiteHook(path, "check-and-retry:n=2", tally=tally)
    monkeypatch.setattr(litellm, "callbacks", [hook])
    return tally


def replied(checking, run, answers, **options):
    """Returns the text of the reply to a call, and the messages of all requests."""

    async def ask(url):
        reply = await call(url, **options)
        await until(lambda: checking.counts().rules)
        return reply.choices[0].message.content

    with FakeUpstream(in_turn(*answers)) as upstream:
        text = run(ask(upstream.url))
    return text, [request.json["messages"] for request in upstream.requests]


def test_a_reply_that_breaks_a_rule_is_drawn_again(checking, run):
    answers = (BROKEN, KEPT)
    assert replied(checking, run, answers, temperature=1) == ("Fine, Tony", [CHAT, SIGN])
    # only the reply that the caller got is scored
    assert scored(checking) == {"signs": (1, 1), "short": (1, 1)}
    assert (checking.counts().retries, checking.counts().failed_retries) == (1, 0)
    assert checking.counts().requests == {EditOutcome.UNCHANGED: 1}


def test_a_reply_that_keeps_all_rules_is_returned_at_once(checking, run):
    assert replied(checking, run, (KEPT,)) == ("Fine, Tony", [CHAT])


@pytest.mark.parametrize(
    "answers",
    [(WORSE, BROKEN, WORSE), (BROKEN, refuse), (BROKEN, reply_json(completion("")))],
    ids=["the fewest broken", "refused", "empty"],
)
def test_the_best_draw_is_returned_if_none_keeps_all_rules(checking, run, answers):
    text, requests = replied(checking, run, answers)
    assert text == "Fine, sir" and len(requests) == len(answers)
    assert scored(checking) == {"signs": (0, 1), "short": (1, 1)}
    assert checking.counts().failed_retries == (len(answers) == 2)


def test_retries_are_edited_too(tmp_path, monkeypatch, run):
    path, tally = tmp_path / "bot.yaml", Tally()
    path.write_text(SUITE)
    hook = SuiteHook(path, f"{EVERY}+check-and-retry:n=1", tally=tally)
    monkeypatch.setattr(litellm, "callbacks", [hook])
    _, (first, second) = replied(tally, run, (BROKEN, KEPT))
    assert first == REMINDED
    assert second[-1]["content"] == "[Reminder: Be brief.]\n\n[Reminder: Sign as Tony.]\n\nHi."


def test_a_reply_through_the_router_is_drawn_again(checking, run):
    async def ask(url):
        served = {"model": "openai/m", "api_base": f"{url}/v1", "api_key": "k", "max_retries": 0}
        router = litellm.Router([{"model_name": "bot", "litellm_params": served}], num_retries=0)
        reply = await router.acompletion(model="bot", messages=CHAT, metadata={"tag": "mine"})
        await until(lambda: checking.counts().rules)
        return reply.choices[0].message.content

    with FakeUpstream(in_turn(BROKEN, KEPT)) as upstream:
        assert run(ask(upstream.url)) == "Fine, Tony"
    assert [request.json["messages"] for request in upstream.requests] == [CHAT, SIGN]
    assert "metadata" not in upstream.requests[1].json


def test_litellm_stores_only_the_best_reply(checking, run, monkeypatch):
    cache = litellm.Cache(type="local")
    monkeypatch.setattr(litellm, "cache", cache)

    async def ask(url):
        await call(url, caching=True)
        await until(lambda: "Fine, Tony" in str(cache.cache.cache_dict))

    with FakeUpstream(in_turn(BROKEN, KEPT)) as upstream:
        run(ask(upstream.url))
    assert len(upstream.requests) == 2 and "Fine, sir" not in str(cache.cache.cache_dict)


def test_what_no_hook_can_check_is_counted_and_said_once(checking, run, caplog):
    async def ask(url):
        for _ in range(2):
            stream = await call(url, stream=True)
            assert "sir" in "".join([p.choices[0].delta.content or "" async for p in stream])
        await litellm.acompletion("openai/m", messages=CHAT, api_base=f"{url}/v1", api_key="k")
        await until(lambda: sum(row.scored for row in checking.counts().rules) == 6)

    events = reply_events(*chunks("Fine, ", "sir"))
    with FakeUpstream(in_turn(events, events, BROKEN)) as upstream:
        run(ask(upstream.url))
    assert len(upstream.requests) == 3 and checking.counts().unchecked == 3
    assert [record.message.count("pass unchecked") for record in caplog.records].count(1) == 1


def test_several_choices_pass_unchecked(checking, run):
    text, requests = replied(checking, run, (BROKEN,), n=2)
    assert text == "Fine, sir" and len(requests) == 1 and checking.counts().unchecked == 1
