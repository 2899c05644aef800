"""Which engine runs a GGUF file, with a stand-in for holdfast-llama."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from test_gguf import write

from holdfast.cli import main, read_command
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
    write(path)
    return path


@pytest.fixture
def installed(monkeypatch):
    points = [SimpleNamespace(name="llama", load=lambda: load)]
    monkeypatch.setattr("holdfast.models.engine_plugins.entry_points", lambda **_: points)
    LOADED.clear()


@pytest.fixture
def missing(monkeypatch):
    monkeypatch.setattr("holdfast.models.engine_plugins.entry_points", lambda **_: [])


def chosen(file, engine="auto", wanted=None, machine=LARGE):
    return choose_engine("tiny", read_gguf(str(file)), engine, wanted or EngineNeeds(), machine)


@pytest.mark.parametrize(
    ("work", "machine", "engine", "why"),
    [
        ("chat", LARGE, "llama", "a single chat"),
        ("loop", LARGE, "torch", "many replies"),
        ("server", LARGE, "llama", "a few clients"),
        ("loop", SMALL, "llama", "1 MB"),
        ("chat", replace(LARGE, gpu_memory=24_000_000_000), "torch", "GPU"),
        ("loop", replace(SMALL, gpu_memory=24_000_000_000), "torch", "GPU"),
        ("loop", replace(LARGE, gpu_memory=1_000_000), "llama", "this GPU has 1 MB"),
    ],
)
def test_the_work_and_the_memory_choose(installed, file, work, machine, engine, why):
    choice = chosen(file, wanted=EngineNeeds(work), machine=machine)
    assert choice.engine == engine and why in choice.sentence
    assert choice.sentence.count("\n") == 0 and "--engine" in choice.sentence


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (EngineNeeds("chat", options={"--dtype": "float32"}), "--dtype float32"),
        (EngineNeeds("chat", abilities=frozenset({Ability.LAYERS})), Ability.LAYERS.value),
        (EngineNeeds("chat", [parse("boost:factor=2"), parse("guidance:scale=1.5")]), "guidance"),
    ],
)
def test_what_llama_cpp_cannot_do_is_done_by_ours_or_refused(installed, file, wanted, names):
    choice = chosen(file, wanted=wanted, machine=SMALL)
    assert choice.engine == "torch" and names in choice.sentence
    with pytest.raises(UsageError, match="--engine llama") as caught:
        chosen(file, "llama", wanted)
    assert names in str(caught.value)


def test_attention_methods_are_left_to_llama_cpp(installed, file):
    assert chosen(file, wanted=EngineNeeds("chat", [parse("boost:factor=2")])).engine == "llama"


def test_the_engine_chosen_by_hand_is_taken_without_a_sentence(installed, file):
    for engine in ("torch", "llama"):
        choice = chosen(file, engine, machine=SMALL)
        assert (choice.engine, choice.sentence) == (engine, "")


def test_without_the_plug_in_ours_is_taken(missing, file):
    assert chosen(file).engine == "torch" and not chosen(file).sentence
    short = chosen(file, machine=SMALL)
    assert short.engine == "torch" and "pip install" in short.sentence
    with pytest.raises(ModelError, match="pip install"):
        chosen(file, "llama")


def test_only_a_gguf_file_runs_in_llama_cpp(installed):
    assert choose_engine("default", None, "auto", EngineNeeds(), LARGE).engine == "torch"
    with pytest.raises(UsageError, match=r"default .* no GGUF"):
        choose_engine("default", None, "llama", EngineNeeds(), LARGE)


def test_engines_are_told_from_options():
    assert read_engine(None) == ("auto", [])
    for engine in ENGINES:
        assert read_engine(["context=2048", engine]) == (engine, ["context=2048"])
    for wrong in (["lama"], ["torch", "llama"]):
        with pytest.raises(UsageError, match=wrong[-1]):
            read_engine(wrong)


CHAT = ["--user", "Hello!", "--max-new-tokens", "2"]


def test_a_command_says_what_it_chose_and_loads_that(installed, file, capsys, monkeypatch):
    monkeypatch.setattr(Machine, "current", lambda: LARGE)
    assert main(["generate", "--model", str(file), *CHAT, "--engine", "context=64"]) == 2
    said = capsys.readouterr().err
    assert f"{file} runs in llama.cpp" in said
    assert said.index("runs in llama.cpp") < said.index("loading")
    assert [(str(file), 2, {"trust_remote_code": False, "context": 64})] == LOADED
    assert main(["generate", "--model", str(file), *CHAT, "--engine", "torch"]) == 0
    assert "llama.cpp" not in capsys.readouterr().err and len(LOADED) == 1
    assert main(["generate", "--model", str(file), *CHAT, "--dtype", "float32"]) == 0
    assert "as --dtype float32 is" in capsys.readouterr().err and len(LOADED) == 1


def test_a_server_is_chosen_for_like_a_command(installed, file, capsys, monkeypatch):
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
def test_choices_that_cannot_be_are_refused(installed, file, wrong, capsys):
    given = [word.replace("FILE", str(file)) for word in wrong]
    assert main(["generate", *given, *CHAT]) == 2
    assert given[-1] in capsys.readouterr().err and not LOADED


def user_model_of(*words):
    arguments = read_command(["drift", "--user-model", *words])[1]
    return model_loading.load_user_model(arguments)


def test_the_engine_chosen_by_hand_runs_the_user_model_too(installed, file, monkeypatch, capsys):
    monkeypatch.setattr(Machine, "current", lambda: SMALL)
    with pytest.raises(UsageError, match="stand-in"):
        user_model_of(str(file))
    assert len(LOADED) == 1 and "runs in llama.cpp" in capsys.readouterr().err
    ours = user_model_of(str(file), "--engine", "torch")
    assert ours.name == str(file) and "llama.cpp" not in capsys.readouterr().err
    with pytest.raises(UsageError, match="stand-in"):  # options are for the agent's model
        user_model_of(str(file), "--engine", "llama", "--engine", "context=64")
    assert "context" not in LOADED[-1][2]


def test_an_engine_is_chosen_for_a_user_model_only_if_there_is_a_choice(installed, file):
    assert user_model_of("default", "--engine", "llama").name == "default"
    with pytest.raises(UsageError, match="stand-in"):
        named = f"llama:{file}"
        user_model_of(named, "--engine", "torch", "--engine", "context=64")
    assert LOADED[-1][2]["context"] == 64


def test_the_agents_methods_do_not_choose_the_engine_of_the_user_model(
    installed, file, monkeypatch, capsys
):
    monkeypatch.setattr(Machine, "current", lambda: SMALL)
    with pytest.raises(UsageError, match="stand-in"):
        user_model_of(str(file), "--method", "guidance:scale=1.5")
    assert "guidance" not in capsys.readouterr().err and len(LOADED) == 1


def test_replicas_of_a_model_in_an_engine_are_refused(installed, capsys):
    given = ["--model", "llama:tiny.gguf", "--replicas", "2"]
    assert main(["drift", *given]) == 2
    told = capsys.readouterr().err
    assert "--replicas 2 is for models that Holdfast places" in told and not LOADED
