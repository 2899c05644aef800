"""The choice of the engine for a GGUF file, with a stand-in for holdfast-llama."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from gguf_files import write_gguf

from holdfast.cli import main
from holdfast.cli.main_parser import read_command
from holdfast.cli.shared import model_loading
from holdfast.errors import ModelError, UsageError
from holdfast.methods import Ability, parse
from holdfast.models.capabilities import ENDPOINT_ABILITIES
from holdfast.models.engine_choice import (
    ENGINES,
    EngineNeeds,
    Machine,
    choose_engine,
    read_engine,
)
from holdfast.models.gguf import read_gguf

LARGE = Machine(memory=64_000_000_000, itemsize=2)
SMALL = replace(LARGE, memory=1_000_000)
LOADED = []


def load(name, dtype=None, *, batch_size=None, prefix_memory=None, **options):
    LOADED.append((name, batch_size, options))
    raise UsageError("The stand-in for llama.cpp has no model.")


load.capabilities = ENDPOINT_ABILITIES | {Ability.LOG_ODDS}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_gguf(path)
    return path


@pytest.fixture
def with_llama(monkeypatch):
    points = [SimpleNamespace(name="llama", load=lambda: load)]
    monkeypatch.setattr("holdfast.models.engine_plugins.entry_points", lambda **_: points)
    LOADED.clear()


@pytest.fixture
def without_llama(monkeypatch):
    monkeypatch.setattr("holdfast.models.engine_plugins.entry_points", lambda **_: [])


def choose(file, engine="auto", needs=None, machine=LARGE):
    return choose_engine("tiny", read_gguf(str(file)), engine, needs or EngineNeeds(), machine)


@pytest.mark.parametrize(
    ("work", "machine", "engine", "why"),
    [
        ("chat", LARGE, "llama", "a single chat"),
        ("loop", LARGE, "torch", "many replies"),
        ("server", LARGE, "llama", "one client at a time"),
        ("loop", SMALL, "llama", "1 MB"),
        ("chat", replace(LARGE, gpu_memory=24_000_000_000), "torch", "GPU"),
        ("loop", replace(SMALL, gpu_memory=24_000_000_000), "torch", "GPU"),
        ("loop", replace(LARGE, gpu_memory=1_000_000), "llama", "this GPU has 1 MB"),
    ],
)
def test_the_engine_is_chosen_by_the_work_and_the_memory(
    with_llama, file, work, machine, engine, why
):
    choice = choose(file, needs=EngineNeeds(work), machine=machine)
    assert choice.engine == engine and why in choice.sentence
    assert choice.sentence.count("\n") == 0 and "--engine" in choice.sentence


@pytest.mark.parametrize(
    ("needs", "names"),
    [
        (EngineNeeds("chat", options={"--dtype": "float32"}), "--dtype float32"),
        (EngineNeeds("chat", abilities=frozenset({Ability.LAYERS})), Ability.LAYERS.value),
        (EngineNeeds("chat", [parse("boost:factor=2"), parse("guidance:scale=1.5")]), "guidance"),
    ],
)
def test_what_llama_cpp_cannot_do_runs_in_torch_or_is_refused(with_llama, file, needs, names):
    choice = choose(file, needs=needs, machine=SMALL)
    assert choice.engine == "torch" and names in choice.sentence
    with pytest.raises(UsageError, match="--engine llama") as excinfo:
        choose(file, "llama", needs)
    assert names in str(excinfo.value)


def test_attention_methods_are_left_to_llama_cpp(with_llama, file):
    assert choose(file, needs=EngineNeeds("chat", [parse("boost:factor=2")])).engine == "llama"


def test_an_engine_given_by_the_user_is_used_without_a_message(with_llama, file):
    for engine in ("torch", "llama"):
        choice = choose(file, engine, machine=SMALL)
        assert (choice.engine, choice.sentence) == (engine, "")


def test_without_the_plug_in_torch_is_used(without_llama, file):
    assert choose(file).engine == "torch" and not choose(file).sentence
    short = choose(file, machine=SMALL)
    assert short.engine == "torch" and "pip install" in short.sentence
    with pytest.raises(ModelError, match="pip install"):
        choose(file, "llama")


def test_only_a_gguf_file_runs_in_llama_cpp(with_llama):
    assert choose_engine("default", None, "auto", EngineNeeds(), LARGE).engine == "torch"
    with pytest.raises(UsageError, match=r"default .* no GGUF"):
        choose_engine("default", None, "llama", EngineNeeds(), LARGE)


def test_engine_names_are_told_apart_from_engine_options():
    assert read_engine(None) == ("auto", [])
    for engine in ENGINES:
        assert read_engine(["context=2048", engine]) == (engine, ["context=2048"])
    for wrong in (["lama"], ["torch", "llama"]):
        with pytest.raises(UsageError, match=wrong[-1]):
            read_engine(wrong)


CHAT = ["--user", "Hello!", "--max-new-tokens", "2"]


def test_a_command_says_what_it_chose_and_loads_that(with_llama, file, capsys, monkeypatch):
    monkeypatch.setattr(Machine, "current", lambda: LARGE)
    assert main(["generate", "--model", str(file), *CHAT, "--engine", "context=64"]) == 2
    stderr = capsys.readouterr().err
    assert f"{file} runs in llama.cpp" in stderr
    assert stderr.index("runs in llama.cpp") < stderr.index("loading")
    assert [(str(file), 2, {"trust_remote_code": False, "context": 64})] == LOADED
    assert main(["generate", "--model", str(file), *CHAT, "--engine", "torch"]) == 0
    assert "llama.cpp" not in capsys.readouterr().err and len(LOADED) == 1
    assert main(["generate", "--model", str(file), *CHAT, "--dtype", "float32"]) == 0
    assert "as --dtype float32 is" in capsys.readouterr().err and len(LOADED) == 1


def test_serve_chooses_the_engine_as_other_commands_do(with_llama, file, capsys, monkeypatch):
    monkeypatch.setattr(Machine, "current", lambda: SMALL)
    assert main(["serve", "--port", "0", "--model", str(file), "--max-batch", "4"]) == 2
    assert f"{file} runs in llama.cpp" in capsys.readouterr().err
    assert [(str(file), 4, {"trust_remote_code": False})] == LOADED


@pytest.mark.parametrize(
    "wrong",
    [
        ["--model", "default", "--engine", "llama"],
        ["--model", "default", "--engine", "context=64"],
        ["--model", "llama:FILE", "--engine", "torch"],
        ["--model", "FILE", "--engine", "torch", "--engine", "context=64"],
        ["--model", "FILE", "--engine", "llama", "--dtype", "float32"],
        ["--model", "FILE", "--engine", "lama"],
    ],
)
def test_impossible_engine_choices_are_refused(with_llama, file, wrong, capsys):
    arguments = [word.replace("FILE", str(file)) for word in wrong]
    assert main(["generate", *arguments, *CHAT]) == 2
    assert arguments[-1] in capsys.readouterr().err and not LOADED


def user_model_of(*words):
    arguments = read_command(["drift", "--user-model", *words])[1]
    return model_loading.load_user_model(arguments)


def test_an_engine_given_by_the_user_runs_the_user_model_too(with_llama, file, monkeypatch, capsys):
    monkeypatch.setattr(Machine, "current", lambda: SMALL)
    with pytest.raises(UsageError, match="stand-in"):
        user_model_of(str(file))
    assert len(LOADED) == 1 and "runs in llama.cpp" in capsys.readouterr().err
    ours = user_model_of(str(file), "--engine", "torch")
    assert ours.name == str(file) and "llama.cpp" not in capsys.readouterr().err
    with pytest.raises(UsageError, match="stand-in"):  # options are for the agent's model
        user_model_of(str(file), "--engine", "llama", "--engine", "context=64")
    assert "context" not in LOADED[-1][2]


def test_an_engine_is_chosen_for_a_user_model_only_if_there_is_a_choice(with_llama, file):
    assert user_model_of("default", "--engine", "llama").name == "default"
    with pytest.raises(UsageError, match="stand-in"):
        llama_model = f"llama:{file}"
        user_model_of(llama_model, "--engine", "torch", "--engine", "context=64")
    assert LOADED[-1][2]["context"] == 64


def test_the_agents_methods_do_not_choose_the_engine_of_the_user_model(
    with_llama, file, monkeypatch, capsys
):
    monkeypatch.setattr(Machine, "current", lambda: SMALL)
    with pytest.raises(UsageError, match="stand-in"):
        user_model_of(str(file), "--method", "guidance:scale=1.5")
    assert "guidance" not in capsys.readouterr().err and len(LOADED) == 1


def test_replicas_of_a_model_in_an_engine_are_refused(with_llama, capsys):
    arguments = ["--model", "llama:tiny.gguf", "--replicas", "2"]
    assert main(["drift", *arguments]) == 2
    stderr = capsys.readouterr().err
    assert "--replicas 2 is for models that Holdfast places" in stderr and not LOADED
