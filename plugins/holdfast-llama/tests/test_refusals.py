"""Models and methods that cannot be used are refused in one sentence, at the start."""

from __future__ import annotations

import asyncio

import llama_cpp
import pytest
from conftest import CHATS
from holdfast_llama import native, weights
from holdfast_llama.model import load

from holdfast.cli import main
from holdfast.errors import HoldfastError, ModelError, PromptError, UsageError
from holdfast.methods import parse
from holdfast.models.engine_plugins import load_in_engine
from holdfast.models.requests import Reply, Request


def refusal(act, kind=HoldfastError) -> str:
    with pytest.raises(kind) as excinfo:
        act()
    words = str(excinfo.value)
    assert "\n" not in words and words.endswith(".")
    return words


@pytest.mark.parametrize("version", ("0.3.4", "0.3.37", "0.4.0"))
def test_another_release_is_refused(monkeypatch, file_of, version):
    monkeypatch.setattr(llama_cpp, "__version__", version)
    native.check_library.cache_clear()
    words = refusal(lambda: load(str(file_of("F32"))), ModelError)
    assert f" 0.3.36, not {version}" in words
    native.check_library.cache_clear()


def test_a_struct_with_a_different_layout_is_refused(monkeypatch, file_of):
    defaults = llama_cpp.llama_context_default_params

    def shifted():
        parameters = defaults()
        parameters.kv_unified = True
        return parameters

    monkeypatch.setattr(llama_cpp, "llama_context_default_params", shifted)
    native.check_library.cache_clear()
    words = refusal(lambda: load(str(file_of("F32"))), ModelError)
    assert "kv_unified is True" in words
    native.check_library.cache_clear()


def test_a_layer_that_is_not_reached_is_refused(monkeypatch, file_of):
    monkeypatch.setattr(weights, "WEIGHTS_NODE", "kq_soft_max_ext")
    words = refusal(lambda: load(str(file_of("F32")), context=512), ModelError)
    assert words.startswith("Layers 0, 1, 2, 3 of 4 ") and "kq_soft_max_ext" in words


def test_bad_options_and_files_are_refused(file_of, tmp_path):
    path = str(file_of("F32"))
    for options, kind, words in (
        ({"cache": "q8_0"}, ModelError, "'q8_0' cannot be steered (its values need flash"),
        ({"cache": "f8"}, ModelError, "no cache of 'f8'; use f32, f16, bf16"),
        ({"dtype": "bfloat16"}, UsageError, "--dtype bfloat16"),
        ({"context": 5000}, UsageError, "trained on 4,096 tokens, fewer than context=5000"),
    ):
        assert words in refusal(lambda options=options: load(path, **options), kind)
    assert "'default'" in refusal(lambda: load("default"))
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(file_of("F32").read_bytes()[:-9])
    assert "is cut off" in refusal(lambda: load(str(cut)))


def test_methods_that_the_model_cannot_apply_are_refused_by_name(in_llama):
    for spec, words in (
        ("boost:factor=2,heads=9.0", "layer 9, but the model has 4 layers of 8 heads"),
        ("hold:heads=0.8", "hold names head 8 in layer 0"),
        ("split-softmax:exponent=0.5+boost:factor=2", "three numbers per head"),
    ):
        assert words in refusal(lambda spec=spec: in_llama().check(parse(spec)))


def test_a_chat_that_fills_the_context_gets_no_reply(in_llama):
    chat = [{"role": "user", "content": "word " * 2000}]
    with pytest.raises(PromptError, match="1024 tokens"):
        in_llama().generate(chat)
    reply = asyncio.run(in_llama().session().generate(Request(chat)))
    assert reply.stop_reason == "context" and reply.text == ""


def test_a_row_whose_pass_fails_does_not_end_the_others(in_llama, monkeypatch):
    steer = weights.AttentionWeights._steer

    def fail(self, *arguments):
        if any(len(set(row.methods)) > 1 for row in self._rows):
            raise ValueError("two methods")
        return steer(self, *arguments)

    monkeypatch.setattr(weights.AttentionWeights, "_steer", fail)
    specs = ("boost:factor=4", "boost:factor=2+spotlight:target=0.1", "none")

    async def answers():
        async with in_llama().session() as engine:
            waiting = [engine.generate(Request(CHATS[0], spec)) for spec in specs]
            return await asyncio.gather(*waiting, return_exceptions=True)

    outcomes = asyncio.run(answers())
    assert [isinstance(outcome, Reply) for outcome in outcomes] == [True, False, True]
    assert isinstance(outcomes[1], ValueError) and "two methods" in str(outcomes[1])


def test_the_command_reports_a_missing_file(capsys):
    assert main(["generate", "--model", "llama:nowhere.gguf", "--user", "Hello"]) == 2
    assert "'nowhere.gguf'" in capsys.readouterr().err
    with pytest.raises(ModelError):
        load_in_engine("llama:nowhere.gguf")
