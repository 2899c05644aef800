"""`holdfast serve` as a process: how it starts, what it refuses to start with, and how it ends."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import httpx2
import pytest

from holdfast.cli import main

SYSTEM = {"role": "system", "content": "Always reply in French."}
CHAT = {"messages": [SYSTEM, {"role": "user", "content": "Do you like the garden?"}]}
LONG = {**CHAT, "temperature": 2, "max_tokens": 300, "n": 4, "seed": 1}


@pytest.fixture
def process():
    """A `holdfast serve` process on a free port, with an API key."""
    command = [sys.executable, "-m", "holdfast", "serve", "--port", "0", "--api-key-env", "A_KEY"]
    env = {**os.environ, "A_KEY": "sk-secret-of-a-test"}
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    started = subprocess.Popen(command, env=env, **piped)
    yield started
    started.kill()
    started.wait()


@pytest.mark.slow
@pytest.mark.parametrize("seconds", (0.2, 1.5))
def test_a_signal_while_the_model_loads_ends_it_at_once(process, seconds):
    assert process.stdout.readline() == "holdfast: loading default ...\n"
    time.sleep(seconds)  # torch and transformers are being imported
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode in (143, 0)  # 0: it was already serving
    assert "Traceback" not in output and "Could not" not in output


@pytest.mark.slow
def test_a_signal_lets_running_requests_finish_and_refuses_new_ones(process):
    lines = [process.stdout.readline(), process.stdout.readline()]
    assert lines[0] == "holdfast: loading default ...\n"
    url = re.search(r"http://\S+", lines[1])[0]
    key = {"Authorization": "Bearer sk-secret-of-a-test"}
    wait_until(lambda: answers(f"{url}/ready"))
    assert httpx2.get(f"{url}/v1/models").status_code == 401
    replies = []

    def ask():
        address = f"{url}/v1/chat/completions"
        with httpx2.stream("POST", address, json={**LONG, "stream": True}, headers=key) as reply:
            replies.append((reply.status_code, reply.read().decode()))

    asking = threading.Thread(target=ask)
    asking.start()
    with httpx2.Client(headers=key) as client:
        wait_until(lambda: "holdfast_running 4.0" in client.get(f"{url}/metrics").text)
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: client.get(f"{url}/ready").status_code == 503)
        refusal = client.post(f"{url}/v1/chat/completions", json=CHAT)
    assert refusal.status_code == 503 and refusal.json()["error"]["code"] == "shutting_down"
    asking.join(60)
    status, text = replies[0]
    assert status == 200 and text.endswith("data: [DONE]\n\n")
    chunks = [json.loads(event[6:]) for event in text.split("\n\n")[:-2]]
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert len([reason for reason in reasons if reason]) == 4
    assert process.wait(30) == 0
    output = "".join(lines) + process.stdout.read()
    assert "Finishing 4 requests" in output and "garden" not in output.split("Finishing")[1]
    assert "sk-secret" not in output and "Traceback" not in output, output


def answers(url: str) -> bool:
    try:
        return httpx2.get(url).status_code == 200
    except httpx2.TransportError:
        return False


def wait_until(holds, seconds: float = 60) -> None:
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--host", "0.0.0.0"], ["0.0.0.0", "--api-key-env"]),
        (["--api-key-env", "NOT_SET_ANYWHERE"], ["NOT_SET_ANYWHERE"]),
        (["--host", "203.0.113.7", "--api-key-env", "A_KEY"], ["203.0.113.7", "--port"]),
        (["--default-method", "bost:factor=2"], ["'bost'", "'boost'"]),
        (["--default-method", "check-and-retry"], ["`holdfast proxy --suite FILE"]),
        (["--default-method", "reminder:text=rules"], ["`holdfast proxy --suite FILE"]),
        (["--model", "http://localhost:1/v1"], ["endpoint"]),
        (["--max-tokens", "0"], ["--max-tokens", "0"]),
        (["--watch", "-1"], ["--watch", "-1"]),
        (["--max-batch", "0"], ["--max-batch", "0"]),
    ],
)
def test_bad_options_are_refused_before_the_model_is_loaded(options, expected, capsys, monkeypatch):
    monkeypatch.setenv("A_KEY", "sk-secret")
    monkeypatch.setattr("holdfast.cli.serve.serve.load_in_process", None)
    assert main(["serve", "--port", "0", *options]) == 2
    stderr = capsys.readouterr().err
    assert stderr.count("\n") == 1 and all(part in stderr for part in expected), stderr


@pytest.mark.parametrize(
    ("line", "web_framework"),
    (("serve", "fastapi"), ("proxy --upstream http://localhost:1/v1 --suite luna", "starlette")),
)
def test_without_the_extra_it_says_what_to_install(line, web_framework, capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(line.split()) == 2
    command = line.split()[0]
    needed = f"`holdfast {command}` needs {web_framework}, uvicorn, prometheus_client"
    assert f"{needed}; pip install 'holdfast-llm[serve]'" in capsys.readouterr().err
