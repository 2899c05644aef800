"""Models in an engine of another package, where it is not installed; where it is, the plug-in's
tests run it.
"""

import pytest
from test_drift import SUITE

from holdfast.cli import main
from holdfast.errors import ModelError, UsageError
from holdfast.methods import Ability
from holdfast.models.capabilities import ENDPOINT
from holdfast.models.engines import engine_in, load_in_engine, read_options
from holdfast.papers.li2024 import geometry
from holdfast.papers.zhang2024.profiling import profile
from holdfast.study import decay
from holdfast.study.fitting.run import fit


def test_an_engine_is_named_before_a_colon():
    assert engine_in("vllm:default") == engine_in("vllm:/a/folder:b") == "vllm"
    for other in (
        "default",
        "vllm",
        "owner/name",
        "http://localhost",
        "C:/model",
        "sglang:default",
    ):
        assert engine_in(other) == ""


def test_an_engine_that_is_not_installed(monkeypatch):
    monkeypatch.setattr("holdfast.models.engines.entry_points", lambda **_: ())
    with pytest.raises(ModelError, match="'vllm:tiny' needs holdfast-vllm, which is not installed"):
        load_in_engine("vllm:tiny")


def test_an_engines_options():
    given = ["max_model_len=4096", "enforce_eager=true", "attention_backend=CUSTOM", "x=[1, 2]"]
    assert read_options(given) == {
        "max_model_len": 4096,
        "enforce_eager": True,
        "attention_backend": "CUSTOM",
        "x": [1, 2],
    }
    for wrong in (["max_model_len"], ["=3"], ["max-model-len=3"], ["x=1", "x=2"]):
        with pytest.raises(UsageError, match=repr(wrong[-1])):
            read_options(wrong)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--model", "vllm:default", "--device", "cpu"],
            "--device cpu is for models that",
        ),
        (["--model", "vllm:default", "--device-map", "auto"], "--device-map auto is for models"),
        (["--engine", "max_model_len=9"], "--engine max_model_len=9 is for a model in an engine"),
    ],
)
def test_options_that_do_not_go_with_a_model(options, words, capsys, tmp_path):
    assert main(["drift", *options, "--out", str(tmp_path / "run")]) == 2
    assert words in capsys.readouterr().err


class InEngine:
    """What studies can know of a model in vLLM: it steers attention, and shows no layers."""

    name = fingerprint = "vllm:tiny"
    offers = ENDPOINT | {Ability.LOG_ODDS}


@pytest.mark.parametrize(
    "study",
    [
        lambda out: decay.check(InEngine()),
        lambda out: geometry.study(InEngine(), SUITE, out),
        lambda out: profile(InEngine(), (), out),
        lambda out: fit("seka", InEngine(), out / "x.safetensors"),
    ],
    ids=["trace", "geometry", "profile", "fit"],
)
def test_a_study_says_what_a_model_lacks_and_not_what_it_is(study, tmp_path):
    with pytest.raises(ModelError, match=r"vllm:tiny does not show its .*loaded here") as caught:
        study(tmp_path)
    assert "endpoint" not in str(caught.value)


@pytest.mark.parametrize("words", [["fit", "seka", "--out", "x.safetensors"], ["serve"]])
def test_a_command_that_loads_a_model_here_refuses_one_in_an_engine(words, capsys):
    assert main([*words, "--model", "vllm:tiny"]) == 2
    assert "vllm:tiny runs in vllm, and this command needs a model" in capsys.readouterr().err
