"""A plug-in that is not fully in place refuses to steer: no request runs unsteered unnoticed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from conftest import CHATS, MODEL, STOCK, answer, engine, sampling
from vllm.exceptions import GracefulHTTPError

PROGRAM = """
from vllm import LLM, SamplingParams
llm = LLM({model!r}, dtype="float32", max_model_len=256, enforce_eager=True,
          kv_cache_memory_bytes=2**26)
def run(extra):
    return llm.chat([{chat!r}], SamplingParams(max_tokens=2, extra_args=extra), use_tqdm=False)
run(None)
print("PLAIN ANSWERED")
run({{"holdfast": "boost:factor=2"}})
print("STEERED ANSWERED")
"""


def run(tmp_path, **environment):
    program = PROGRAM.format(model=MODEL, chat=CHATS[0])
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_plugin_that_cannot_be_imported_aborts_the_start(tmp_path):
    """vLLM logs the failed import; the processor's entry point then aborts the start."""
    package = tmp_path / "holdfast_vllm"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('a broken installation')\n")
    done = run(tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode != 0
    assert "a broken installation" in done.stderr
    assert "ANSWERED" not in done.stdout


def test_steered_requests_are_refused_if_the_plugin_is_not_enabled(tmp_path):
    done = run(tmp_path, VLLM_PLUGINS="another")
    assert "PLAIN ANSWERED" in done.stdout
    assert "STEERED ANSWERED" not in done.stdout
    assert "VLLM_PLUGINS" in done.stderr


def test_steered_requests_are_refused_under_another_backend():
    llm = engine(STOCK)
    assert answer(llm, [CHATS[0]], [sampling(None)])
    with pytest.raises(GracefulHTTPError, match="attention backend"):
        answer(llm, [CHATS[0]], [sampling({"holdfast": "boost:factor=2"})])


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("speculative_config", object(), "speculative decoding"),
        ("kv_transfer_config", object(), "another server"),
    ],
)
def test_engines_that_cannot_be_steered_are_refused(monkeypatch, name, value, words):
    from holdfast_vllm.admission import check_engine

    from holdfast.errors import UsageError

    config = engine().llm_engine.vllm_config
    check_engine(config)
    monkeypatch.setattr(config, name, value, raising=False)
    with pytest.raises(UsageError, match=words):
        check_engine(config)


def test_lists_of_methods_that_the_cuda_backend_cannot_take_are_refused():
    from holdfast_vllm.admission import check_device

    from holdfast.errors import UsageError
    from holdfast.methods import parse

    check_device(parse("boost:factor=2+split-softmax:exponent=0.5"), on_cuda=True)
    for spec in ("split-softmax:exponent=0.5+boost:factor=2", "boost:factor=2+pasta:alpha=0.1"):
        check_device(parse(spec), on_cuda=False)
        with pytest.raises(UsageError, match="numbers per head"):
            check_device(parse(spec), on_cuda=True)
