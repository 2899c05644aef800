"""The server as its clients see it: OpenAI's own, curl, and a real process that is told to end."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from functools import cache

import httpx2
import openai
import pytest
import uvicorn

import holdfast
from holdfast.models.loading import load
from holdfast.serve.app import application
from holdfast.serve.engine_thread import EngineThread
from holdfast.serve.guard import Gate
from holdfast.serve.limits import Limits
from holdfast.serve.metrics import Metrics
from holdfast.serve.server import bind
from holdfast.serve.service import Service

FRENCH = [
    {"role": "system", "content": "Always reply in French."},
    {"role": "user", "content": "Do you like the garden?"},
]


@pytest.fixture(scope="module")
def service() -> Service:
    model = load("default")
    engine = EngineThread(model, queue=8)
    return Service(model, engine, "default", Metrics(engine), Limits(tokens=400), watched=2)


@pytest.fixture(scope="module")
def url(service) -> Iterator[str]:
    """The service on a free port, in a thread."""
    bound = bind("127.0.0.1", 0)
    app = application(service, Gate(), [])
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", ws="none"))
    service.engine.start()
    thread = threading.Thread(target=server.run, args=([bound],))
    thread.start()
    yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    server.should_exit = True
    thread.join()
    service.engine.close()


@pytest.fixture(scope="module")
def client(url) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


@cache
def model():
    return load("default")


def offline(messages, methods="none", seed=0, tokens=40, **sampling) -> str:
    """The reply that the model gives without a server."""
    sampling = holdfast.Sampling(max_new_tokens=tokens, **{"top_p": 1.0, **sampling})
    return model().generate(messages, methods, sampling, seed).text


def ask(client, messages=FRENCH, **more):
    return client.chat.completions.create(
        model="default", messages=messages, **{"max_tokens": 40, "seed": 1, **more}
    )


def test_replies_are_those_of_the_model_without_a_server(client):
    reply = ask(client)
    assert reply.choices[0].message.content == offline(FRENCH, seed=1)
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage.prompt_tokens > 10 and reply.usage.completion_tokens > 3
    assert reply.model_extra["holdfast"]["applied"] is False


def test_several_choices_draw_with_the_seeds_that_follow(client):
    reply = ask(client, n=3, extra_body={"steering": "boost:factor=2"})
    told = [choice.message.content for choice in reply.choices]
    assert told == [offline(FRENCH, "boost:factor=2", seed) for seed in (1, 2, 3)]
    assert reply.model_extra["holdfast"] == {
        "steering": "boost:factor=2",
        "applied": True,
        "span": [[2, 7]],
        "round": 1,
    }


def test_a_stream_tells_the_same_reply(client):
    chunks = list(ask(client, stream=True, n=2, stream_options={"include_usage": True}))
    told = ["", ""]
    for chunk in chunks[:-1]:
        (choice,) = chunk.choices
        told[choice.index] += choice.delta.content or ""
        assert chunk.usage is None
    assert told == [offline(FRENCH, seed=seed) for seed in (1, 2)]
    assert chunks[0].model_extra["holdfast"]["round"] == 1
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens > 6


def test_requests_at_once_with_other_methods_do_not_touch_each_other(url):
    methods = ["none", "boost:factor=4", "split-softmax:exponent=0.5", "guidance:scale=1.5"]
    wanted = [(method, seed) for seed in range(4) for method in methods]

    async def ask_all() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:
            replies = await asyncio.gather(
                *(ask(client, seed=seed, extra_body={"steering": m}) for m, seed in wanted)
            )
        return [reply.choices[0].message.content for reply in replies]

    told = asyncio.run(ask_all())
    assert told == [offline(FRENCH, method, seed) for method, seed in wanted]


def test_stop_strings_end_a_reply_and_are_no_part_of_it(client):
    whole = offline(FRENCH, seed=1)
    for stop in (whole[5], whole[4:9], whole[-6:]):
        expected = whole[: whole.index(stop)]
        reply = ask(client, stop=stop)
        assert reply.choices[0].message.content == expected
        assert reply.choices[0].finish_reason == "stop"
        streamed = "".join(
            c.choices[0].delta.content or "" for c in ask(client, stop=stop, stream=True)
        )
        assert streamed == expected


def test_a_trace_tells_the_mass_of_every_token(client):
    reply = ask(client, extra_body={"steering": "boost:factor=2", "trace": "heads"})
    tokens = reply.choices[0].model_extra["holdfast"]["tokens"]
    assert "".join(token["text"] for token in tokens) == reply.choices[0].message.content
    for token in tokens:
        mean = sum(map(sum, token["heads"])) / 32
        assert abs(mean - token["mass"]) < 1e-3 and 0 < token["uniform"] < 1
    text = ""
    for chunk in ask(client, stream=True, extra_body={"vllm_xargs": {"holdfast_trace": 1}}):
        (choice,) = chunk.choices
        pieces = choice.model_extra["holdfast"]["tokens"]
        assert "".join(piece["text"] for piece in pieces) == (choice.delta.content or "")
        text += choice.delta.content or ""
    assert text == offline(FRENCH, seed=1)


def test_an_unknown_field_is_refused_by_name(client):
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, extra_body={"temprature": 1})
    assert refused.value.param == "temprature" and "'temperature'" in str(refused.value)


def test_health_models_and_steering(url):
    assert httpx2.get(f"{url}/health").json() == {"status": "ok"}
    assert httpx2.get(f"{url}/ready").status_code == 200
    assert httpx2.get(f"{url}/v1/models").json()["data"][0]["id"] == "default"
    told = httpx2.get(f"{url}/v1/steering").json()
    assert {"boost", "gate"} <= {method["name"] for method in told["methods"]}
    assert (told["layers"], told["heads"], told["default"]) == (4, 8, "none")
    assert "holdfast_prompt_mass" in httpx2.get(f"{url}/metrics").text
    json.dumps(httpx2.get(f"{url}/openapi.json").json())
