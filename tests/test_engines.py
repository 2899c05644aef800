"""Models in an engine of another package, where it is not installed; where it is, the plug-in's
tests run it.
"""

import pytest

from holdfast.cli import main
from holdfast.errors import ModelError, UsageError
from holdfast.models.engines import engine_in, load_in_engine, read_options


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
