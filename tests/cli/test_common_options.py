"""Options that several commands have mean the same, with the same default and help."""

import pytest
from command_lines import command_parsers
from paths import ROOT

from holdfast.cli import main
from holdfast.cli.command_list import GROUPS, command_named
from holdfast.cli.main_parser import read_command
from holdfast.cli.shared.command import Arg, file_to_write
from holdfast.cli.shared.command_parser import JSON
from holdfast.proxy.chat_log import ChatLog

# The same in every command

SHARED = (
    *("model", "suite", "method", "rounds", "conversations", "temperature", "max_new_tokens"),
    *("seed", "out", "report"),
)
WRITES_A_FILE = "writes a file and no run"
IN_PROCESS = "runs the model in this process, so that no endpoint or engine will do"
# {(option, command): why the option differs there from that of most commands}
EXCEPTIONS = {
    ("model", "fit"): IN_PROCESS,
    ("model", "serve"): IN_PROCESS,
    ("model", "logs"): "asks a model only if one is given",
    ("model", "suite"): "asks a model only if one is given",
    ("suite", "check"): "must be given: there is nothing to check without it",
    ("suite", "logs"): "must be given, and its probes play no part",
    ("suite", "proxy"): "must be given, and its probes play no part",
    ("suite", "remind"): "must be given, and its probes play no part",
    ("suite", "serve"): "offers prompts in the playground, and none must be given",
    ("suite", "reproduce"): "plays a part in one of the two papers",
    ("method", "check"): "one verdict per prompt has one method",
    ("method", "trace"): "one figure has one method",
    ("method", "chat"): "one reply has one method",
    ("method", "generate"): "one reply has one method",
    ("method", "proxy"): "changes requests, so only prompt methods will do",
    ("method", "tasks"): "steers towards an emphasised part, and not to a system prompt",
    ("method", "profile"): "steers each head by itself, by that of the paper",
    ("method", "fit"): "names the kind of what is learnt",
    ("conversations", "precedent"): "counts pairs of histories",
    ("conversations", "geometry"): "reads every hidden state again, which takes longer",
    ("conversations", "calibrate"): "is counted per setting, and is an alternative to --draws",
    ("max_new_tokens", "precedent"): "histories are of short replies, of which each is a choice",
    ("seed", "logs"): "draws only which turns a person labels",
    ("out", "logs"): "has neither a model nor a seed to name its folder by",
    ("out", "try"): "is named by the prompt, too",
    ("out", "suite"): WRITES_A_FILE,
    ("out", "fit"): WRITES_A_FILE,
    ("out", "report"): WRITES_A_FILE,
    ("out", "compare"): WRITES_A_FILE,
    ("out", "join"): "must be given: it is the folder of the whole run",
    ("out", "map"): "writes figures of runs that are there",
}
COMMANDS = {name: command_named(name) for group in GROUPS.values() for name in group}


def description_of(name, command):
    """An option of a command: its values, its default and its help."""
    field = COMMANDS[command].options.model_fields[name]
    arg = next((part for part in field.metadata if isinstance(part, Arg)), Arg())
    text = " ".join((field.description or "").split())
    return str(field.annotation), repr(field.default), text, sorted(map(str, arg.keywords.items()))


def with_option(name):
    return [command for command in COMMANDS if name in COMMANDS[command].options.model_fields]


@pytest.mark.parametrize("name", SHARED)
def test_an_option_is_the_same_in_every_command(name):
    usual = [command for command in with_option(name) if (name, command) not in EXCEPTIONS]
    assert len(usual) > 1
    assert len({str(description_of(name, command)) for command in usual}) == 1, usual
    assert description_of(name, usual[0])[2], "it has a help text"


@pytest.mark.parametrize(("name", "command"), EXCEPTIONS)
def test_an_option_listed_as_different_is_different(name, command):
    usual = [c for c in with_option(name) if (name, c) not in EXCEPTIONS]
    assert description_of(name, command) != description_of(name, usual[0])
    assert description_of(name, command)[2], "it has a help text"


def test_the_single_method_option_is_alike_in_all_commands():
    single = ("check", "trace", "chat", "generate")
    assert len({str(description_of("method", command)) for command in single}) == 1


def test_every_command_but_the_harness_takes_json():
    texts = {
        name: [action.help for action in command._actions if action.dest == JSON]
        for name, command in command_parsers().items()
    }
    assert texts.pop("lm-eval") == []  # its words are the harness's
    assert len({text for (text,) in texts.values()}) == 1


# The default of --temperature


@pytest.mark.parametrize(
    ("words", "temperature", "tokens"),
    [
        ("drift --model smollm2", 0.7, 400),
        ("drift --model http://127.0.0.1:8000/v1", 0.7, 400),
        ("drift", 1.0, 400),
        ("check own.yaml --model smollm2", 0.7, 400),
        ("calibrate --model smollm2", 0.7, 400),
        ("drift --model smollm2 --temperature 1 --max-new-tokens 9", 1.0, 9),
        ("drift --temperature 0", 0.0, 400),
    ],
)
def test_models_that_people_use_are_sampled_at_a_temperature_of_their_own(
    words, temperature, tokens
):
    _, arguments = read_command(words.split())
    sampling = arguments.sampling_for(arguments.model)
    assert (sampling.temperature, sampling.max_new_tokens) == (temperature, tokens)
    assert getattr(arguments, "conversations", None) in (None, 40)


# Folders of files to write

# options that name a file to read; every other option of a file names one to write
FILES_TO_READ = {
    *("prompt", "messages", "files", "data", "dialogs", "turns", "loaded", "fitted"),
    *("suite", "user_turns", "chat_template", "capability"),
}
SETTINGS_OF_REMIND = "settings"  # of `remind`, which writes it only on request


def test_every_option_that_writes_a_file_says_which_folders_it_creates():
    written = {
        (name, action.dest): action.type
        for name, command in command_parsers().items()
        for action in command._actions
        if "FILE" in str(action.metavar) and action.dest not in (*FILES_TO_READ, SETTINGS_OF_REMIND)
    }
    assert {kind for kind in written.values()} == {file_to_write}, written
    assert len(written) > 15 and ("export", "csv") in written and ("proxy", "log") in written


RECORDED = ROOT / "tests" / "data/recorded/schema-3"


def test_a_folder_that_is_created_for_a_file_is_named(tmp_path, capsys):
    words = ["export", str(RECORDED / "drift"), "--csv", str(tmp_path / "new/deep/run.csv")]
    assert main(words) == 0
    assert f"created the folder {tmp_path / 'new/deep'} for run.csv." in capsys.readouterr().err
    assert (tmp_path / "new/deep/run.csv").is_file()
    assert main(words) == 0
    assert not capsys.readouterr().err


def test_a_folder_that_is_not_created_in_the_end_is_not_named(tmp_path, capsys):
    file = tmp_path / "new" / "run.csv"
    assert main(["export", str(tmp_path / "no-run"), "--csv", str(file)]) == 2
    assert "created the folder" not in capsys.readouterr().err
    assert not file.parent.exists()


def test_a_log_of_the_proxy_gets_its_folder(tmp_path):
    ChatLog(tmp_path / "new" / "chats.jsonl")
    assert (tmp_path / "new" / "chats.jsonl").is_file()
