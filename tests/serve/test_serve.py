"""The server as its clients see it: OpenAI's own, LangChain and plain HTTP."""

import asyncio
import json
import socket
import time
from dataclasses import replace

import httpx2
import openai
import pytest
from served import FRENCH, default_model, served

import holdfast
from holdfast.models.fingerprint import Fingerprint
from holdfast.models.loading import load
from holdfast.models.offered_steering import SteeringAnswer
from holdfast.serve.limits import RequestLimits


def offline(messages, methods="none", seed=0, tokens=40, **sampling) -> str:
    """The model's reply without a server."""
    sampling = holdfast.Sampling(max_new_tokens=tokens, **{"top_p": 1.0, **sampling})
    return default_model().generate(messages, methods, sampling, seed).text


def ask(client, messages=FRENCH, **fields):
    return client.chat.completions.create(
        model="default", messages=messages, **{"max_tokens": 40, "seed": 1, **fields}
    )


# Replies


def test_replies_are_those_of_the_model_without_a_server(client):
    reply = ask(client)
    assert reply.choices[0].message.content == offline(FRENCH, seed=1)
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage.prompt_tokens > 10 and reply.usage.completion_tokens > 3
    assert reply.model_extra["holdfast"]["applied"] is False


def test_a_request_reads_the_weights_once(client, monkeypatch):
    calls, current = [], Fingerprint.current

    def count_call(self):
        calls.append(self)
        return current(self)

    monkeypatch.setattr(Fingerprint, "current", count_call)
    reply = ask(client)
    assert reply.system_fingerprint == f"fp_{default_model().fingerprint[:12]}"
    of_server = [identity for identity in calls if identity is not default_model().identity]
    assert len(of_server) == 1


def test_several_choices_use_consecutive_seeds(client):
    reply = ask(client, n=3, extra_body={"steering": "boost:factor=2"})
    texts = [choice.message.content for choice in reply.choices]
    assert texts == [offline(FRENCH, "boost:factor=2", seed) for seed in (1, 2, 3)]
    steered = {"steering": "boost:factor=2", "applied": True, "span": [[2, 7]], "round": 1}
    assert reply.model_extra["holdfast"] == steered


@pytest.mark.slow
def test_a_response_says_which_messages_were_edited_or_why_none_was(client):
    def applied(steering: str, **fields):
        return ask(client, extra_body={"steering": steering}, **fields).model_extra["holdfast"]

    half, user = "repetition:probability=0.5", len(FRENCH) - 1
    draws = [applied(half, seed=seed) for seed in range(4)]
    assert {draw["applied"] for draw in draws} == {True, False}
    for seed, draw in enumerate(draws):
        repeats = offline(FRENCH, half, seed) != offline(FRENCH, "none", seed)
        assert draw["applied"] is repeats and draw["edited"] == [[user] if repeats else []]
        assert repeats or half in draw["why"]
    answers = [applied(f"{half}+boost:factor=2", seed=seed) for seed in range(4)]
    assert all(answer["applied"] and "why" not in answer for answer in answers)
    assert [answer["edited"] for answer in answers] == [draw["edited"] for draw in draws]
    several = applied(half, seed=0, n=4)
    assert several["applied"] and several["edited"] == [draw["edited"][0] for draw in draws]


def test_the_assistants_message_is_continued_or_refused(url):
    def post(path, **fields):
        return httpx2.post(f"{url}{path}", json=fields, timeout=60)

    greedy = {"temperature": 0, "max_tokens": 12}
    whole = post("/v1/chat/completions", messages=FRENCH, **greedy).json()
    text = whole["choices"][0]["message"]["content"]
    messages = [*FRENCH, {"role": "assistant", "content": text[:6]}]
    for path in ("/v1/chat/completions", "/tokenize"):
        refusal = post(path, messages=messages)
        assert refusal.status_code == 400 and refusal.json()["error"]["param"] == "messages"
        assert '"continue_final_message": true' in refusal.json()["error"]["message"]
        odd = post(path, messages=FRENCH, continue_final_message=True)
        assert odd.status_code == 400 and odd.json()["error"]["param"] == "messages"
        for has_both in (True, False):
            fields = {"continue_final_message": has_both, "add_generation_prompt": has_both}
            odd = post(path, messages=messages if has_both else FRENCH, **fields)
            assert odd.json()["error"]["param"] == "add_generation_prompt"
    options = {"continue_final_message": True, "add_generation_prompt": False}
    continued = post("/v1/chat/completions", messages=messages, **greedy, **options)
    assert continued.status_code == 200
    before = post("/tokenize", messages=FRENCH).json()["tokens"]
    assert post("/tokenize", messages=messages, **options).json()["tokens"][: len(before)] == before


def test_stop_strings_end_a_reply_and_are_left_out_of_it(client):
    whole = offline(FRENCH, seed=1)
    for stop in (whole[5], whole[4:9], whole[-6:]):
        expected = whole[: whole.index(stop)]
        reply = ask(client, stop=stop)
        assert reply.choices[0].message.content == expected
        assert reply.choices[0].finish_reason == "stop"
        chunks = ask(client, stop=stop, stream=True)
        assert "".join(c.choices[0].delta.content or "" for c in chunks) == expected


def test_log_probabilities_are_those_of_the_reply(client):
    options = {"logprobs": True, "top_logprobs": 3, "extra_body": {"steering": "boost:factor=4"}}
    choice = ask(client, **options).choices[0]
    entries = choice.logprobs.content
    assert "".join(entry.token for entry in entries) == choice.message.content
    for entry in entries:
        likeliest = [top.logprob for top in entry.top_logprobs]
        assert len(likeliest) == 3 and likeliest == sorted(likeliest, reverse=True)
        assert entry.logprob <= likeliest[0] + 1e-4 and entry.logprob <= 0
        assert bytes(entry.bytes).decode() == entry.token
    score = default_model().score(FRENCH, [choice.message.content], "boost:factor=4")
    logprob = sum(entry.logprob for entry in entries)
    assert logprob == pytest.approx(score.log_probabilities[0], abs=1e-2)
    streamed = []
    for chunk in ask(client, **options, stream=True):
        piece = chunk.choices[0]
        if piece.delta.content:
            assert "".join(e.token for e in piece.logprobs.content) == piece.delta.content
            streamed += [entry.logprob for entry in piece.logprobs.content]
    assert streamed == pytest.approx([entry.logprob for entry in entries], abs=1e-4)
    with pytest.raises(openai.BadRequestError, match="needs logprobs"):
        ask(client, top_logprobs=2)
    options = {"logprobs": 2, "max_tokens": 4, "temperature": 0}
    plain = client.completions.create(model="default", prompt=PLAIN, **options).choices[0]
    assert len(plain.logprobs.tokens) == len(plain.logprobs.token_logprobs) == 4
    assert plain.logprobs.text_offset[0] == 0 and "".join(plain.logprobs.tokens) == plain.text


def test_a_trace_has_the_mass_of_every_token(client):
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


# Other routes and clients


def test_an_unknown_field_is_refused_by_name(client):
    with pytest.raises(openai.BadRequestError) as excinfo:
        ask(client, extra_body={"temprature": 1})
    assert excinfo.value.param == "temprature" and "'temperature'" in str(excinfo.value)


def test_health_models_steering_and_metrics_are_served(url):
    assert httpx2.get(f"{url}/health").json() == {"status": "ok"}
    assert httpx2.get(f"{url}/ready").status_code == 200
    assert httpx2.get(f"{url}/v1/models").json()["data"][0]["id"] == "default"
    description = httpx2.get(f"{url}/v1/steering").json()
    assert {"boost", "hold"} <= {method["name"] for method in description["methods"]}
    assert (description["layers"], description["heads"], description["default"]) == (4, 8, "none")
    assert SteeringAnswer.model_validate(description).as_json() == description
    assert "holdfast_prompt_mass" in httpx2.get(f"{url}/metrics").text
    json.dumps(httpx2.get(f"{url}/openapi.json").json())


def test_a_model_is_described_by_its_name_as_openai_does(client):
    (model_entry,) = client.models.list().data
    assert client.models.retrieve("default") == model_entry
    with pytest.raises(openai.NotFoundError, match="There is no model 'Qwen/Qwen3' here"):
        client.models.retrieve("Qwen/Qwen3")


def test_langchain_gets_the_same_replies(url):
    from langchain_openai import ChatOpenAI

    options = {"model": "default", "max_tokens": 40, "seed": 1, "top_p": 1}
    steered = {"steering": "boost:factor=2"}
    chat = ChatOpenAI(base_url=f"{url}/v1", api_key="none", **options, extra_body=steered)
    talk = [("system", FRENCH[0]["content"]), ("user", FRENCH[1]["content"])]
    expected = offline(FRENCH, "boost:factor=2", seed=1)
    assert chat.invoke(talk).content == expected
    assert "".join(chunk.content for chunk in chat.stream(talk)) == expected


# as this model's template writes it
PLAIN = "<|begin|><|user|>Do you like the garden? I like my garden.<|end|><|assistant|>"


def test_text_is_continued_without_a_template(client):
    tokenizer = default_model().tokenizer
    text = PLAIN
    options = {"model": "default", "max_tokens": 12, "temperature": 0}
    greedy = holdfast.Sampling(temperature=0, max_new_tokens=12)
    plain = holdfast.Request([{"role": "user", "content": text}], sampling=greedy, plain=True)
    expected = default_model().generate_batch([plain])[0]
    assert expected.prompt_ids == tuple(tokenizer(text).input_ids)
    completion = client.completions.create(prompt=[text, list(expected.prompt_ids)], **options)
    assert expected.text and [choice.text for choice in completion.choices] == [expected.text] * 2
    assert completion.usage.prompt_tokens == 2 * len(expected.prompt_ids)
    fields = {"steering": "boost:factor=9", "emphasis": [["garden", 2]]}
    steered = client.completions.create(prompt=text, extra_body=fields, **options)
    assert steered.model_extra["holdfast"]["applied"]
    with pytest.raises(openai.BadRequestError, match="there is neither"):
        client.completions.create(prompt=text, extra_body={"steering": "boost:factor=9"}, **options)
    fields = {"steering": "repetition:probability=1", "emphasis": ["Do you like"]}
    with pytest.raises(openai.BadRequestError, match="repetition") as excinfo:
        client.completions.create(prompt=text, extra_body=fields, **options)
    assert excinfo.value.param == "steering"


# Streams and many requests


def test_a_stream_gives_the_same_reply(client):
    chunks = list(ask(client, stream=True, n=2, stream_options={"include_usage": True}))
    streamed = ["", ""]
    for chunk in chunks[:-1]:
        (choice,) = chunk.choices
        streamed[choice.index] += choice.delta.content or ""
        assert chunk.usage is None
    assert streamed == [offline(FRENCH, seed=seed) for seed in (1, 2)]
    assert chunks[0].model_extra["holdfast"]["round"] == 1
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens > 6


def test_concurrent_requests_with_different_methods_do_not_affect_each_other(url):
    methods = ["none", "boost:factor=4", "split-softmax:exponent=0.5", "guidance:scale=1.5"]
    combinations = [(method, seed) for seed in range(4) for method in methods]

    async def ask_all() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:
            replies = await asyncio.gather(
                *(ask(client, seed=seed, extra_body={"steering": m}) for m, seed in combinations)
            )
        return [reply.choices[0].message.content for reply in replies]

    answers = asyncio.run(ask_all())
    sampling = holdfast.Sampling(top_p=1.0, max_new_tokens=40)
    twins = [holdfast.Request(FRENCH, method, sampling, seed) for method, seed in combinations]
    assert answers == [reply.text for reply in default_model().generate_batch(twins)]


def test_requests_of_disconnected_clients_are_cancelled():
    endless = replace(load("default"), stop_ids=frozenset())
    with served(endless, RequestLimits(tokens=400), queue=8) as server:
        for stream in (False, True):
            leave(server.url, stream)
        disconnected = 'holdfast_requests_total{path="/v1/chat/completions",status="499"}'
        assert metric(server.url, disconnected) == 2


def leave(url: str, stream: bool) -> None:
    """Requests four replies, disconnects during generation, and waits until they are gone."""
    body = {"messages": FRENCH, "max_tokens": 400, "seed": 5, "n": 4, "stream": stream}
    text = json.dumps(body)
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
    with socket.create_connection(url.removeprefix("http://").split(":")) as connection:
        connection.sendall((head + text).encode())
        wait_until(lambda: metric(url, "holdfast_running") == 4)
    wait_until(lambda: metric(url, "holdfast_running") == 0)
    wait_until(lambda: metric(url, "holdfast_open") == 0)


def wait_until(holds, seconds: float = 30) -> None:
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.01)


def metric(url: str, name: str) -> float:
    lines = httpx2.get(f"{url}/metrics").text.splitlines()
    return next((float(line.split()[-1]) for line in lines if line.startswith(name + " ")), 0.0)


@pytest.mark.slow
def test_a_full_queue_answers_429_with_a_time_to_retry(url):
    body = {"messages": FRENCH, "max_tokens": 400, "temperature": 2}

    async def crowd() -> list[httpx2.Response]:
        async with httpx2.AsyncClient(timeout=120) as asking:
            address = f"{url}/v1/chat/completions"
            return await asyncio.gather(
                *(asking.post(address, json=body | {"n": 16, "seed": k}) for k in range(16))
            )

    replies = asyncio.run(crowd())
    assert {reply.status_code for reply in replies} == {200, 429}
    refusal = next(reply for reply in replies if reply.status_code == 429)
    assert int(refusal.headers["Retry-After"]) >= 1
    assert refusal.json()["error"]["code"] == "queue_full"
