"""Models in an engine from another package, without that package installed."""

from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest
from short_drift import SUITE

from holdfast.cli import main
from holdfast.errors import ModelError, UsageError
from holdfast.methods import Ability
from holdfast.models.capabilities import ENDPOINT_ABILITIES
from holdfast.models.engine_plugins import load_in_engine, read_options
from holdfast.models.model_names import engine_in
from holdfast.papers.li2024 import geometry
from holdfast.papers.zhang2024.profiling import profile
from holdfast.study import attention_decay
from holdfast.study.fitting.fit import fit


def test_an_engine_is_named_before_a_colon():
    assert engine_in("vllm:default") == engine_in("vllm:/a/folder:b") == "vllm"
    assert engine_in("sglang:default") == "sglang"
    for name in ("default", "vllm", "vllm:", "owner/name", "http://localhost", "C:/model"):
        assert engine_in(name) == ""


def test_a_folder_with_a_colon_is_not_an_engine(tmp_path, monkeypatch):
    (tmp_path / "my:model").mkdir()
    monkeypatch.chdir(tmp_path)
    assert engine_in("my:model") == "" and engine_in("my:other") == "my"


@pytest.mark.parametrize(
    ("installed", "name", "message"),
    [
        ((), "vllm:tiny", r"'vllm:tiny' needs the engine 'vllm'.*\(installed: none\); pip insta"),
        (("vllm",), "vlm:tiny", r"'vlm'.*\(installed: vllm\); did you mean vllm:tiny"),
    ],
)
def test_an_engine_that_is_not_installed_is_refused(monkeypatch, installed, name, message):
    points = [EntryPoint(name, "tests.none:load", "holdfast.models") for name in installed]
    monkeypatch.setattr("holdfast.models.engine_plugins.entry_points", lambda **_: points)
    with pytest.raises(ModelError, match=message):
        load_in_engine(name)


def test_any_engine_is_found_by_its_entry_point(monkeypatch):
    loaded = SimpleNamespace(name="sglang", load=lambda: lambda name, **options: (name, options))
    monkeypatch.setattr("holdfast.models.engine_plugins.entry_points", lambda **_: [loaded])
    assert load_in_engine("sglang:tiny", dtype="float32") == ("tiny", {"dtype": "float32"})


def test_an_engine_gets_only_options_that_it_declares(monkeypatch):
    """It need not refuse the others itself, nor ignore those that were not given."""
    loaded = SimpleNamespace(name="echo", load=lambda: lambda name, *, volume=1: (name, volume))
    monkeypatch.setattr("holdfast.models.engine_plugins.entry_points", lambda **_: [loaded])
    standard = {"dtype": None, "batch_size": None, "trust_remote_code": False}
    assert load_in_engine("echo:tiny", **standard) == ("tiny", 1)
    assert load_in_engine("echo:tiny", **standard, volume=0) == ("tiny", 0)
    options = [("dtype", "float32"), ("batch_size", 8), ("pitch", 0), ("pitch", False)]
    for name, value in options:
        with pytest.raises(UsageError) as excinfo:
            load_in_engine("echo:tiny", **{**standard, name: value})
        assert (excinfo.value.option, excinfo.value.value) == (name, value)
        assert excinfo.value.allowed == ["volume"]


def test_engine_options_are_parsed_or_refused():
    texts = ["max_model_len=4096", "enforce_eager=true", "x=[1, 2]", "y=CUSTOM"]
    options = {"max_model_len": 4096, "enforce_eager": True, "x": [1, 2], "y": "CUSTOM"}
    assert read_options(texts) == options
    for wrong in (["max_model_len"], ["=3"], ["max-model-len=3"], ["x=1", "x=2"]):
        with pytest.raises(UsageError, match=repr(wrong[-1])):
            read_options(wrong)


class InEngine:
    """A model in vLLM as studies see it: it steers attention but shows no layers."""

    name = fingerprint = "vllm:tiny"
    capabilities = ENDPOINT_ABILITIES | {Ability.LOG_ODDS}

    def check(self, methods):
        """Accepts every method."""

    def session(self):
        raise AssertionError("it is refused before it is used")


STUDIES = [
    lambda out: attention_decay.check_traceable(InEngine()),
    lambda out: geometry.study(InEngine(), SUITE, out),
    lambda out: profile(InEngine(), (), out),
    lambda out: fit("seka", InEngine(), out / "x.safetensors"),
]


@pytest.mark.parametrize("study", STUDIES, ids=["trace", "geometry", "profile", "fit"])
def test_a_study_says_what_a_model_lacks_and_not_what_it_is(study, tmp_path):
    with pytest.raises(ModelError, match=r"^vllm:tiny does not") as excinfo:
        study(tmp_path)
    assert "endpoint" not in str(excinfo.value)


def test_a_command_that_loads_a_model_here_refuses_one_in_an_engine(capsys):
    assert main(["fit", "seka", "--out", "x.safetensors", "--model", "vllm:tiny"]) == 2
    assert "vllm:tiny" in capsys.readouterr().err


def test_an_engine_is_served_if_its_sessions_share_prefixes_here(monkeypatch, capsys):
    """Any other is refused before anything is loaded."""
    loads = {
        "vllm": lambda name, **options: pytest.fail("it was loaded"),
        "llama": lambda name, *, prefix_memory=None, **options: (name, prefix_memory),
    }
    points = [SimpleNamespace(name=n, load=lambda load=load: load) for n, load in loads.items()]
    monkeypatch.setattr("holdfast.models.engine_plugins.entry_points", lambda **_: points)
    assert main(["serve", "--port", "0", "--model", "vllm:tiny"]) == 2
    assert "vllm:tiny" in capsys.readouterr().err
    assert load_in_engine("llama:tiny", to_serve=True, prefix_memory=9) == ("tiny", 9)
