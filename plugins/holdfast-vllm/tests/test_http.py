"""A real server in separate processes, with OpenAI's client."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
from conftest import (
    CACHE,
    CHATS,
    FLOAT32_TOLERANCE,
    MIN_MOVED,
    MODEL,
    compare_logprobs,
    model,
    reference,
    span_of,
)

import holdfast
from holdfast import drift
from holdfast.errors import ModelError
from holdfast.generation.sampling import Sampling
from holdfast.methods import Ability, parse
from holdfast.models.requests import Request

START_SECONDS = 240  # on a busy machine
SERVER = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
OPTIONS = ["--model", MODEL, "--served-model-name", "default", "--dtype", "float32"]
OPTIONS += ["--max-model-len", "1024", "--enforce-eager", "--kv-cache-memory-bytes", str(CACHE)]


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    port = free_port()
    log = tmp_path_factory.mktemp("server") / "log"
    with log.open("w") as output:
        server = subprocess.Popen(
            [*SERVER, *OPTIONS, "--host", "127.0.0.1", "--port", str(port)],
            stdout=output,
            stderr=output,
            env={**os.environ, "VLLM_LOGGING_LEVEL": "INFO"},
        )
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert server.poll() is None, log.read_text()[-3000:]
            try:
                urllib.request.urlopen(f"{address}/health", timeout=5)
                break
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(1)
        else:
            pytest.fail(log.read_text()[-3000:])
        yield address
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture
def client(url):
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


def ask(client, messages, extra=None, **options):
    body = {"vllm_xargs": extra} if extra else {}
    standard = {"max_tokens": 12, "temperature": 0, "logprobs": True, "top_logprobs": 0}
    return client.chat.completions.create(
        model="default", messages=messages, **{**standard, **options},
        extra_body={"ignore_eos": True, "return_token_ids": True, **body},
    )  # fmt: skip


def get_json(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


def compare_reply(reply, messages, spec):
    """Compares the log-probabilities of a reply with those of Holdfast's own engine."""
    prompt_ids = prompt_of(messages)
    ids = [*prompt_ids, *reply.token_ids]
    values = [entry.logprob for entry in reply.logprobs.content]
    logprobs = dict(zip(range(len(prompt_ids), len(ids)), values, strict=True))
    span = span_of(messages) if spec != "none" else ()
    return compare_logprobs(logprobs, ids, len(prompt_ids), span, spec)


def prompt_of(messages):
    from holdfast.chat.prompt import render

    return list(render(messages, model().tokenizer).token_ids)


def test_the_server_reports_that_it_is_live(url):
    state = get_json(f"{url}/holdfast")
    assert state["live"] is True
    assert set(state["methods"]) == {"split-softmax", "pasta", "boost", "spotlight"}
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
        assert "\nholdfast_live 1.0\n" in answer.read().decode()


def test_concurrent_requests_are_each_steered_by_their_own_method(client):
    specs = ["split-softmax:exponent=0.4", "boost:factor=4", "none", "pasta:alpha=0.05"]
    pairs = [(CHATS[n % 3], specs[n % 4]) for n in range(5)]

    def answer(messages, spec):
        return ask(client, messages, {"holdfast": spec} if spec != "none" else None)

    with ThreadPoolExecutor(5) as threads:
        replies = list(threads.map(answer, *zip(*pairs, strict=True)))
    for reply, (messages, spec) in zip(replies, pairs, strict=True):
        differences = compare_reply(reply.choices[0], messages, spec)
        assert differences.from_holdfast < FLOAT32_TOLERANCE
        assert spec == "none" or differences.by_steering > MIN_MOVED / 4


def test_two_streamed_replies_are_steered(client):
    spec = "boost:factor=4"
    stream = ask(client, CHATS[0], {"holdfast": spec}, stream=True, n=2, temperature=1.0, seed=3)
    values = {0: [], 1: []}
    tokens = {0: [], 1: []}
    for chunk in stream:
        for choice in chunk.choices:
            values[choice.index] += [
                entry.logprob for entry in (choice.logprobs.content if choice.logprobs else [])
            ]
            tokens[choice.index] += choice.model_extra.get("token_ids") or []
    prompt = prompt_of(CHATS[0])
    for index in (0, 1):
        ids = [*prompt, *tokens[index]]
        assert len(tokens[index]) == len(values[index]) == 12
        expected, _ = reference(ids, len(prompt), span_of(CHATS[0]), spec)
        for number, value in enumerate(values[index]):
            at = len(prompt) + number
            assert abs(value - expected[at - 1, ids[at]].item()) < FLOAT32_TOLERANCE
    assert tokens[0] != tokens[1]


def test_the_mass_of_a_request_is_served(client, url):
    reply = ask(client, CHATS[0], {"holdfast": "boost:factor=4", "holdfast_trace": 1})
    recorded = get_json(f"{url}/holdfast/mass/{reply.id}")
    assert len(recorded["mass"]) == 12
    assert len(recorded["layers"]) == 4
    prompt = prompt_of(CHATS[0])
    ids = [*prompt, *reply.choices[0].token_ids[:-1]]
    _, masses = reference(ids, len(prompt), span_of(CHATS[0]), "boost:factor=4")
    for value, mass in zip(recorded["mass"], masses, strict=True):
        assert value == pytest.approx(mass.mean().item(), abs=1e-5)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get_json(f"{url}/holdfast/mass/nobody")


REFUSED = {
    "bost": ({"holdfast": "bost:factor=2"}, "did you mean 'boost'"),
    "parameter": ({"holdfast": "boost:fact=2"}, "did you mean 'factor'"),
    "range": ({"holdfast": "boost:factor=0.5"}, "0.5"),
    "key": ({"holdfsat": "boost:factor=2"}, "did you mean 'holdfast'"),
    "second key": ({"holdfast": "boost:factor=2", "holdfast_spam": [1, 2]}, "holdfast_span"),
    "key alone": ({"holdfast_text": "Answer"}, "but not 'holdfast'"),
    "out of bounds": ({"holdfast": "boost:factor=2", "holdfast_span": [4, 4000]}, "[4, 4000]"),
    "odd": ({"holdfast": "boost:factor=2", "holdfast_span": [4, 7, 9]}, "[4, 7, 9]"),
    "no match": ({"holdfast": "boost:factor=2", "holdfast_text": "nowhere"}, "0 times"),
    "matches": ({"holdfast": "boost:factor=2", "holdfast_text": "e"}, "times"),
    "heads": ({"holdfast": "boost:factor=2,heads=9.0"}, "layer 9"),
    "file": ({"holdfast": "pasta:alpha=0.1,heads=/etc/passwd.json"}, "names a file"),
    "guidance": ({"holdfast": "guidance:scale=1.5"}, "guidance"),
    "repetition": ({"holdfast": "repetition:probability=0.5"}, "edits messages"),
    "admitted": ({"holdfast_admitted": "x"}, "holdfast_admitted"),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", REFUSED)
def test_invalid_requests_are_refused_with_our_message(client, name, stream):
    extra, words = REFUSED[name]
    with pytest.raises(openai.BadRequestError) as excinfo:
        list(ask(client, CHATS[0], extra, stream=stream))
    assert excinfo.value.status_code == 400
    assert words in excinfo.value.body["message"]


def test_a_chat_without_a_system_prompt_and_two_traces_are_refused(client):
    with pytest.raises(openai.BadRequestError, match="no system prompt"):
        ask(client, CHATS[0][1:], {"holdfast": "boost:factor=2"})
    with pytest.raises(openai.BadRequestError, match="n=1"):
        ask(client, CHATS[0], {"holdfast": "boost:factor=2", "holdfast_trace": 1}, n=2)


def test_plain_completions_take_a_text(client):
    reply = client.completions.create(
        model="default", prompt="Once upon a time in a garden", max_tokens=4, temperature=0,
        extra_body={"vllm_xargs": {"holdfast": "boost:factor=4", "holdfast_text": "garden"}},
    )  # fmt: skip
    assert reply.usage.completion_tokens >= 1
    with pytest.raises(openai.BadRequestError, match="not a chat"):
        client.completions.create(
            model="default", prompt="Once", max_tokens=4,
            extra_body={"vllm_xargs": {"holdfast": "boost:factor=4"}},
        )  # fmt: skip


def test_connect_asks_what_the_server_offers(url):
    remote = holdfast.connect(f"{url}/v1")
    remote.check(parse("boost:factor=2+repetition:probability=0.5"))
    assert (
        Ability.LOG_ODDS in remote.capabilities and Ability.SECOND_STREAM not in remote.capabilities
    )
    digest = get_json(f"{url}/v1/steering")["fingerprint"]
    assert remote.fingerprint == f"default Holdfast vllm {digest}"
    with pytest.raises(ModelError, match=r"guidance:scale=2 .*second stream"):
        remote.generate(CHATS[0], "guidance:scale=2")
    with pytest.raises(ModelError, match=r"refused .* layer 9"):
        remote.generate(CHATS[0], "boost:factor=2,heads=9.0")


def test_requests_over_the_wire_are_answered_as_locally(url):
    """Any seed, a trace, emphasis and the place of the system prompt reach the server."""
    short = Sampling(max_new_tokens=30)
    requests = [
        Request(CHATS[0], "boost:factor=4", short, 2**70, trace=True),
        Request(CHATS[0], (), short, 5, trace=True),
        Request(CHATS[1], "boost:factor=9", short, 7, emphasis=["What is new"]),
        Request(CHATS[1], "spotlight:target=0.4", short, 8, system_as="first-user"),
        Request(CHATS[1][1:], (), short, 9),
    ]
    remote = holdfast.connect(f"{url}/v1")
    replies = remote.generate_batch(requests)
    expected = model().generate_batch(requests)
    for reply, local_reply in zip(replies, expected, strict=True):
        assert (reply.text, reply.stop_reason) == (local_reply.text, local_reply.stop_reason)
        assert reply.token_masses == pytest.approx(local_reply.token_masses, abs=1e-5)
    assert replies[0].token_masses and not replies[2].token_masses
    pieces = []
    streamed = remote.stream(requests[0], pieces.append)
    assert streamed.text == replies[0].text == "".join(pieces)
    assert streamed.masses == pytest.approx(replies[0].masses, abs=1e-5)


MEASURED = {"mass": None, "prompt_tokens": None}  # within a tolerance; only from servers


def test_drift_over_the_wire_gives_the_local_records(url, tmp_path):
    settings = drift.Settings(rounds=2, conversations=3, sampling=Sampling(max_new_tokens=40))
    specs = ["none", "boost:factor=4", "repetition:probability=0.5+pasta:alpha=0.05"]

    def records_of(source, name):
        run = drift.run(source, "starter", tmp_path / name, settings, specs)
        return {(record.method, record.conversation): record.to_json() for record in run.records}

    local_records = records_of(model(), "local")
    server_records = records_of(holdfast.connect(f"{url}/v1"), "server")
    assert local_records.keys() == server_records.keys() and len(local_records) == 9
    for key, record in local_records.items():
        for part in ("turns", "probes"):
            for local, far in zip(record[part], server_records[key][part], strict=True):
                assert {**local, **MEASURED} == {**far, **MEASURED}, key
                assert local["mass"] == pytest.approx(far["mass"], abs=1e-5)


def test_a_seeded_draw_refuses_other_sampling_options(client):
    for options, words in (({"top_k": 5}, "top_k=5"), ({"min_p": 0.1}, "min_p=0.1")):
        with pytest.raises(openai.BadRequestError, match=words):
            client.chat.completions.create(
                model="default", messages=CHATS[0], max_tokens=4,
                extra_body={"vllm_xargs": {"holdfast_seed": 3}, **options},
            )  # fmt: skip
    with pytest.raises(openai.BadRequestError, match="holdfast_seed works only with n=1"):
        ask(client, CHATS[0], {"holdfast_seed": 3}, n=2)
