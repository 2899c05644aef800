"""`vllm:MODEL`: the benchmark in vLLM's engine, against the same runs of the local model."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from functools import cache

import pytest
from conftest import CACHE, CHATS, OURS, STOCK, model, use_backend

from holdfast import drift
from holdfast.cli import main
from holdfast.errors import ModelError, PromptError, UsageError
from holdfast.generation.sampling import Sampling
from holdfast.methods import Ability
from holdfast.models.engine_plugins import load_in_engine
from holdfast.models.requests import Request
from holdfast.records import read_run
from holdfast.records.traces import read_traces

MASS_TOLERANCE = 2e-5  # of a head, against the local model's
METHODS = (
    "none",
    "boost:factor=4",
    "split-softmax:exponent=0.5,heads=1.2/2.3/3.0",
    "pasta:alpha=0.05",
    "repetition:probability=0.5+spotlight:target=0.2",
)


@cache
def in_vllm(backend=OURS, **options):
    use_backend(backend)
    standard = {"kv_cache_memory_bytes": CACHE, "enforce_eager": True}
    return load_in_engine("vllm:default", dtype="float32", **{**standard, **options})


def records_of(chat_model, folder, settings, methods):
    """The records of a run, by method and conversation."""
    running = drift.Running(traces=True)
    run = drift.run(chat_model, "starter", folder, settings, methods, running=running)
    return {(record.method, record.conversation): record.to_json() for record in run.records}


def without_mass(record):
    """The requests and replies, without their mass."""
    return [
        {key: value for key, value in row.items() if key != "mass"}
        for part in ("turns", "probes")
        for row in record[part]
    ]


@pytest.mark.parametrize(("temperature", "methods"), [(0.0, METHODS[:2]), (1.0, METHODS)])
def test_a_run_gives_the_local_records(tmp_path, temperature, methods):
    """Draws depend on the conversation and its rounds, not on the engine."""
    settings = drift.Settings(
        rounds=3, conversations=2, sampling=Sampling(temperature, max_new_tokens=40)
    )
    local_records = records_of(model(), tmp_path / "local", settings, methods)
    vllm_records = records_of(in_vllm(), tmp_path / "vllm", settings, methods)
    assert local_records.keys() == vllm_records.keys() and len(local_records) == 2 * len(methods)
    for key, record in local_records.items():
        assert without_mass(record) == without_mass(vllm_records[key]), key
        for local, far in zip(record["turns"], vllm_records[key]["turns"], strict=True):
            assert (local["mass"] is None) == (far["mass"] is None)
        local_traces = read_traces(tmp_path / "local", *key)
        vllm_traces = read_traces(tmp_path / "vllm", *key)
        assert local_traces.keys() == vllm_traces.keys() == {1, 2, 3}
        for number, turn in local_traces.items():
            vllm_turn = vllm_traces[number]
            assert turn.mass.shape == vllm_turn.mass.shape == (4, 8, turn.uniform.shape[-1])
            rounding = 2**-10 * abs(turn.mass).max()  # stored as float16
            assert abs(turn.mass - vllm_turn.mass).max() < MASS_TOLERANCE + rounding
            assert abs(turn.uniform - vllm_turn.uniform).max() < 1e-6


def test_forks_share_what_the_engine_has_cached(tmp_path):
    settings = drift.Settings(rounds=3, conversations=3, sampling=Sampling(max_new_tokens=40))
    run = drift.run(in_vllm(), "starter", tmp_path, settings, ["boost:factor=4"])
    forwarded = sum(record.tokens.forwarded for record in run.conversations)
    least = sum(record.tokens.least for record in run.conversations)
    prompts = sum(len(record.turns) + len(record.probes) for record in run.conversations)
    assert least < forwarded < least + 32 * prompts  # each recomputes at most a page of 32 tokens


def test_the_command_with_the_engine_in_its_own_process(tmp_path):
    """An engine that ends also destroys vLLM's process groups, so not in this process."""
    command = ["drift", "--model", "vllm:default", "--conversations", "2", "--rounds", "2"]
    command += ["--max-new-tokens", "30", "--out", str(tmp_path), "--method", "boost:factor=4"]
    for option in (f"kv_cache_memory_bytes={CACHE}", "enforce_eager=true", "max_model_len=1024"):
        command += ["--engine", option]
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", *command],
        env={**os.environ, "VLLM_ENABLE_V1_MULTIPROCESSING": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    assert "boost:factor=4" in done.stdout
    run = read_run(tmp_path)
    identity = run.manifest.identity.to_json()
    assert identity["model"] == "vllm:default"
    assert identity["runtime"]["vllm"] and identity["runtime"]["context"] == 1024
    assert identity["model_fingerprint"] == in_vllm().fingerprint
    assert all(turn.mass for record in run.conversations for turn in record.turns[1::2])
    assert (tmp_path / "report.html").stat().st_size > 10_000


STALLED = """
import os, signal, psutil
from holdfast.errors import ModelError
from holdfast.models.engine_plugins import load_in_engine

if __name__ == "__main__":
    model = load_in_engine("vllm:default", enforce_eager=True, max_model_len=512)
    config = model.llm.llm_engine.vllm_config.cache_config
    print("cache", config.kv_cache_memory_bytes)
    chat = [{"role": "user", "content": "Hello."}]
    model.generate(chat)
    (core,) = [c for c in psutil.Process().children() if c.children()]
    workers = core.children()
    for worker in workers:
        os.kill(worker.pid, signal.SIGSTOP)
    try:
        model.generate(chat)
    except ModelError as error:
        print("refused", error)
    for worker in workers:
        os.kill(worker.pid, signal.SIGKILL)
    os._exit(0)
"""


def test_a_worker_that_stops_answering_is_an_error_that_says_what_to_do(tmp_path):
    script = tmp_path / "stalled.py"
    script.write_text(STALLED)
    seconds = {"VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": "8"}
    done = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "VLLM_ENABLE_V1_MULTIPROCESSING": "1", **seconds},
        capture_output=True,
        text=True,
        timeout=300,
    )
    printed = done.stdout + done.stderr[-2000:]
    # 48 rows of 512 tokens, in 4 layers of 4 key heads of 32, in float32
    size = 48 * 512 * 2 * 4 * 4 * 32 * 4
    assert f"cache {size}" in done.stdout, printed
    assert "for 8 seconds" in done.stdout and "repeat the command" in printed, printed


def test_batched_and_streamed_replies_match_the_local_model():
    request = Request(CHATS[0], "boost:factor=4", Sampling(max_new_tokens=40), 2**70, trace=True)
    replies = in_vllm().generate_batch([request, Request(CHATS[1], seed=3)])
    (expected,) = model().generate_batch([request])
    assert (replies[0].text, replies[0].token_ids) == (expected.text, expected.token_ids)
    assert replies[0].stop_reason == expected.stop_reason
    assert replies[0].prompt_ids == expected.prompt_ids
    assert abs(replies[0].trace.mass - expected.trace.mass).max() < MASS_TOLERANCE
    pieces = []
    streamed = in_vllm().stream(request, pieces.append)
    assert streamed.text == expected.text == "".join(pieces) and len(pieces) > 1


def test_a_chat_that_fills_the_context_gets_no_reply():
    chat = [{"role": "user", "content": "word " * 5000}]
    with pytest.raises(PromptError, match="4096 tokens"):
        in_vllm().generate(chat)
    reply = asyncio.run(in_vllm().session().generate(Request(chat)))
    assert reply.stop_reason == "context" and reply.text == ""


def test_unsupported_methods_are_refused_by_name(tmp_path):
    vllm = in_vllm()
    for spec, words in (
        ("guidance:scale=1.5", "guidance:scale=1.5 needs a second stream"),
        ("boost:factor=2,heads=9.0", "layer 9"),
    ):
        with pytest.raises((ModelError, UsageError)) as excinfo:
            vllm.generate(CHATS[0], spec)
        assert words in str(excinfo.value)


def test_without_our_backend_attention_is_not_offered():
    stock = in_vllm(STOCK)
    assert Ability.LOG_ODDS not in stock.capabilities
    with pytest.raises(ModelError, match="attention backend"):
        stock.generate(CHATS[0], "boost:factor=4")
    short = Sampling(max_new_tokens=20)
    assert stock.generate(CHATS[0], (), short, 5) == model().generate(CHATS[0], (), short, 5)


def test_an_engine_that_does_not_start_is_reported(capsys):
    use_backend(OURS)
    assert main(["drift", "--model", "vllm:./nowhere"]) == 1
    assert "'./nowhere'" in capsys.readouterr().err
