"""The commands, with a model in llama.cpp: a drift run, a trace, a server under load."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from conftest import CHATS, METHODS
from holdfast_llama.model import load

from holdfast import drift
from holdfast.chat.templates import render_text
from holdfast.cli import main
from holdfast.generation.sampling import Sampling
from holdfast.models.checkpoint import REAL_MODELS, real_models_folder
from holdfast.models.requests import Request
from holdfast.records import read_run

REQUESTS = 1000


def test_a_drift_run_gives_the_local_records(in_llama, local_model, tmp_path):
    settings = drift.Settings(
        rounds=3, conversations=2, sampling=Sampling(temperature=1.0, max_new_tokens=40)
    )
    specs = ["none", "boost:factor=4", "repetition:probability=0.5+spotlight:target=0.2"]

    def turns_and_probes(model, name):
        run = drift.run(model, "starter", tmp_path / name, settings, specs)
        return {
            (record.method, record.conversation): without_mass(record.to_json())
            for record in run.records
        }

    local = turns_and_probes(local_model, "local")
    assert turns_and_probes(in_llama(), "llama") == local and len(local) == 6


def without_mass(record):
    """The turns and probes of a record, without their mass."""
    return [
        {name: value for name, value in row.items() if name != "mass"}
        for row in (*record["turns"], *record["probes"])
    ]


def test_the_commands_run(file_of, tmp_path, capsys):
    model = ["--model", f"llama:{file_of('Q8_0')}", "--engine", "context=1024"]
    small = ["--conversations", "2", "--rounds", "2"]
    run = ["drift", *model, *small, "--max-new-tokens", "30", "--out", str(tmp_path / "drift")]
    assert main([*run, "--method", "none", "--method", "boost:factor=4"]) == 0
    assert "boost:factor=4" in capsys.readouterr().out
    identity = read_run(tmp_path / "drift").manifest.identity.to_json()
    assert identity["runtime"]["llama-cpp-python"] and identity["runtime"]["context"] == 1024
    assert main([*run, "--method", "none", "--method", "boost:factor=4"]) == 0, "it is resumed"
    assert main(["trace", *model, *small, "--out", str(tmp_path / "trace")]) == 0
    assert "mass" in capsys.readouterr().out
    generate = ["generate", *model, "--system", CHATS[0][0]["content"], "--method", "hold"]
    assert main([*generate, "--max-new-tokens", "12", "--user", "Tell me about gardens."]) == 0
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("kind", (signal.SIGINT, signal.SIGTERM))
def test_a_steered_run_ends_on_a_signal(file_of, tmp_path, kind):
    """A signal usually arrives while llama.cpp computes, when exceptions are lost."""
    command = [sys.executable, "-m", "holdfast", "drift", "--model", f"llama:{file_of('Q8_0')}"]
    command += ["--method", "boost:factor=4", "--conversations", "200", "--out", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        for line in run.stderr:
            if "replies (" in line:
                break
        time.sleep(1)
        run.send_signal(kind)
        _, stderr = run.communicate(timeout=60)
    assert run.returncode == 128 + kind and "finished" in stderr and "holdfast drift" in stderr


@contextmanager
def served(*options):
    command = [sys.executable, "-m", "holdfast", "serve", "--port", "0", *options]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            for line in server.stdout:
                if match := re.search(r"at (http://\S+)", line):
                    break
            await_health(match[1])
            yield match[1]
        finally:
            server.terminate()
            server.communicate(timeout=60)
    assert server.returncode == 0


def await_health(url):
    for _ in range(300):
        try:
            return urllib.request.urlopen(f"{url}/health", timeout=10).close()
        except urllib.error.URLError:
            time.sleep(0.2)
    raise TimeoutError(url)


def ask(url, body):
    request = urllib.request.Request(
        f"{url}/v1/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.loads(answer.read())


def test_a_server_gives_each_of_many_mixed_requests_its_own_reply(file_of, in_llama):
    """One server, 24 requests at a time: each reply is the one that its request gets alone."""
    specs = [*METHODS, "none", "none", "guidance:scale=1.5"]
    requests = []
    for number in range(60):
        sampling = Sampling(1.0, 0.9, 4 + number % 9)
        requests.append(
            Request(CHATS[number % 3], specs[number % len(specs)], sampling, seed=number)
        )
    session = in_llama("F32").session()
    alone = [session.generate_batch([request])[0].text for request in requests]
    file = file_of("F32")
    bodies = [
        {
            "model": str(file),  # the name that was given, not the one of the engine
            "messages": list(request.messages),
            "steering": specs[number % len(specs)],
            "temperature": 1.0,
            "top_p": 0.9,
            "max_tokens": request.sampling.max_new_tokens,
            "seed": request.seed,
        }
        for number, request in enumerate(requests)
    ]
    options = [f"--engine={option}" for option in ("llama", "context=1024", "cache=f32")]
    order = [(7 * number) % 60 for number in range(REQUESTS)]
    server = served("--model", str(file), "--default-method", "boost:factor=2", *options)
    with server as url, ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda number: ask(url, bodies[number]), order))
    texts = [answer["choices"][0]["message"]["content"] for answer in answers]
    wrong = [number for number, text in zip(order, texts, strict=True) if text != alone[number]]
    assert len(texts) == REQUESTS and not wrong


# With the real model, if `python -m holdfast.models.install` installed it

REAL = real_models_folder() / REAL_MODELS["smollm2"]


@pytest.fixture(scope="module")
def smollm2():
    if not REAL.exists():
        pytest.skip("python -m holdfast.models.install installs it")
    return load("smollm2", batch_size=2, context=1024)


def test_the_template_gives_the_same_tokens_as_llama_cpp(smollm2):
    """Chats rendered and tokenized by transformers have the tokens that llama.cpp gives them."""
    dialog = [
        {"role": "system", "content": "Always reply in French. Your name is Zoë; you're 42."},
        {"role": "user", "content": "Hello!  What's 17 * 23?\n\n- café\n- 你好 🙂"},
        {"role": "assistant", "content": "Bonjour ! C'est 391."},
        {"role": "user", "content": "def f(x):\n\treturn x**2  # why?"},
    ]
    for messages in (*CHATS, dialog, dialog[1:]):
        text = render_text(messages, smollm2.tokenizer)
        (reply,) = smollm2.generate_batch(
            [Request(messages, sampling=Sampling(0, max_new_tokens=1))]
        )
        assert list(reply.prompt_ids) == smollm2.runner.pool.model.tokenize(text)


def test_boost_raises_the_mass_in_every_layer_of_a_real_model(smollm2):
    messages = [
        {"role": "system", "content": "Always reply in French."},
        {"role": "user", "content": "How are you?"},
    ]
    sampling = Sampling(0, max_new_tokens=8)
    masses = []
    for method in ("none", "boost:factor=4"):
        (reply,) = smollm2.generate_batch([Request(messages, method, sampling, trace=True)])
        masses.append(reply.trace.mass[:, :, 0])
    assert (masses[1].mean(1) > masses[0].mean(1)).all()
