"""Rules for exit codes: 2 if what the command line names is not there, or is of another kind; 5 if
a server is not available.
"""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from chat_server import completion
from paths import ROOT

from holdfast.cli import main
from holdfast.cli.shared import exit_codes

RECORDED = ROOT / "tests/data/recorded/schema-3"


def usage_error(words: list[str], capsys) -> str:
    """The one line that a command says when it exits with 2."""
    assert main(words) == 2, words
    return capsys.readouterr().err.splitlines()[-1]


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", ["runs", "checking"])
def test_the_documentation_has_every_exit_code(page):
    text = (ROOT / f"docs/{page}.md").read_text()
    table = re.search(r"(?m)^\| (?:exit )?code \|.*\n((?:\|.*\n)+)", text)[1]
    codes = " ".join(re.findall(r"(?m)^\| ([\d, ]+) \|", table))
    documented = [int(code) for code in re.findall(r"\d+", codes)]
    assert documented == sorted(v for v in vars(exit_codes).values() if isinstance(v, int))


# 2: models that are not there

NO_MODEL = ("./no-such-folder", "no-such-owner/no-such-model")
USE_A_MODEL = (
    "drift --suite starter",
    "check starter",
    "check starter --smoke",
    "calibrate --suite starter",
    "precedent",
    "generate --user hello",
    "try",
)


@pytest.mark.parametrize("model", NO_MODEL)
@pytest.mark.parametrize("command", USE_A_MODEL)
def test_a_missing_model_exits_with_2(command, model, capsys):
    assert repr(model) in usage_error([*command.split(), "--model", model], capsys)


TAKE_A_MODEL = (
    *USE_A_MODEL,
    "chat",
    "drift --user-model {model} --model",
    "fit seka --out a.safetensors",
    "geometry",
    "logs talks.jsonl --suite bots",
    "profile --task json",
    "reproduce li2024",
    "reproduce zhang2024",
    "serve",
    "suite init AGENTS.md",
    "tasks",
    "trace",
    "trace --compare {model} --model",
)

# commands in one process, each with a model that is not there; the last line lists slow imports
REFUSE_WITHOUT_TORCH = """
import sys
from holdfast.cli import main
for line in sys.stdin.read().splitlines():
    print(main(line.split()), line)
print([name for name in ("torch", "transformers") if name in sys.modules])
"""


def assert_refused_without_torch(lines: list[str]) -> None:
    process = subprocess.run(
        [sys.executable, "-c", REFUSE_WITHOUT_TORCH],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    *codes, imported = process.stdout.splitlines()
    assert codes == [f"2 {line}" for line in lines], process.stderr
    assert imported == "[]"


@pytest.mark.parametrize("model", ["nowhere", "./nowhere", "nowhere.gguf", "gpt-4o"])
def test_a_model_that_is_not_there_is_refused_before_torch_is_imported(model, tmp_path):
    (tmp_path / "AGENTS.md").write_text("- Be kind to everyone.\n")
    (tmp_path / "talks.jsonl").write_text("{}\n")
    lines = [
        command.format(model=model) + " default"
        if "{model}" in command
        else f"{command} --model {model}"
        for command in TAKE_A_MODEL
        if not command.startswith("chat") or find_spec("prompt_toolkit")
    ]
    assert_refused_without_torch(lines)


def test_what_fit_refuses_is_refused_before_torch_is_imported():
    assert_refused_without_torch(
        [
            "fit vectr --out a.safetensors",
            "fit vector --out a.pt",
            "fit vector --out a.safetensors --batch-size 0",
            "fit vector --out a.safetensors --dtype foo",
            "fit vector --out a.safetensors --model vllm:tiny",
            "fit seka --out a.safetensors --gguf a.gguf",
        ]
    )


def test_a_folder_without_a_model_exits_with_2(tmp_path, capsys):
    message = usage_error(["drift", "--suite", "starter", "--model", str(tmp_path)], capsys)
    assert "config.json" in message


# 2: runs, suites and options

READ_A_RUN = ("report", "map", "compare {drift}", "check starter --against")


@pytest.mark.parametrize("run", ["nowhere", str(RECORDED / "tasks")])
@pytest.mark.parametrize("command", READ_A_RUN)
def test_a_missing_run_or_one_of_another_command_exits_with_2(command, run, capsys):
    words = command.format(drift=RECORDED / "drift").split()
    assert run in usage_error([*words, run], capsys)


@pytest.mark.parametrize("command", ["drift --suite", "check", "calibrate --suite", "suite test"])
def test_a_missing_suite_exits_with_2(command, capsys):
    message = usage_error([*command.split(), "nowhere.yaml"], capsys)
    assert "nowhere.yaml" in message


def test_a_folder_in_place_of_a_suite_is_called_a_folder(tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    message = usage_error(["drift", "--suite", "mine"], capsys)
    assert message == "holdfast: The suite 'mine' is a folder; give a YAML file."
    (tmp_path / "mine" / "bot.yaml").touch()
    message = usage_error(["check", "mine"], capsys)
    assert message.endswith("is a folder; give one of its files, such as mine/bot.yaml.")


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [("check starter --conversations 5", "--budget"), ("drift --budget 5", "--conversations")],
)
def test_a_wrong_option_suggests_that_of_the_same_command(words, suggestion, capsys):
    assert usage_error(words.split(), capsys).endswith(f"did you mean {suggestion}?")


# 1: damaged runs and withheld replies


def test_a_damaged_run_exits_with_1(tmp_path, capsys):
    folder = Path(shutil.copytree(RECORDED / "drift", tmp_path / "run"))
    (folder / "manifest.json").write_text("{")
    assert main(["report", str(folder)]) == 1
    assert "manifest.json" in capsys.readouterr().err


def test_a_reply_that_is_withheld_is_no_outage(serve, capsys):
    _, server = serve(lambda body, number: completion(None, "content_filter"))
    words = ["generate", "--model", server.url, "--endpoint-model", "tiny"]
    assert main([*words, "--user", "hello"]) == 1
    assert "content filter" in capsys.readouterr().err


# 5: servers

ASK_A_SERVER = (
    *("drift --suite starter", "check starter", "check starter --smoke", "try"),
    *("calibrate --suite starter", "precedent", "generate --user hello", "tasks", "chat"),
)


@pytest.mark.parametrize("command", [f"{command} --model" for command in ASK_A_SERVER])
def test_a_server_that_is_not_available_is_5_for_every_command(command, capsys):
    model_name = ["--endpoint-model", "tiny"]  # asking for its name is retried
    url = "http://127.0.0.1:9/v1"  # the port for discarding, where nothing listens
    assert main([*command.split(), url, *model_name]) == 5
    last_line = capsys.readouterr().err.splitlines()[-1]
    assert last_line == (
        f"holdfast: Cannot reach {url} (Connection refused); check the address and that the server"
        " is running."
    )


@pytest.mark.parametrize(
    "command",
    [
        "drift --suite nowhere.yaml",
        "drift --suite bad.yaml",
        "drift --suite luna --user-turns nowhere.jsonl",
        "drift --suite bot --method repair",
        "check bad.yaml",
        "check starter --against nowhere",
        "calibrate --suite bad.yaml",
        "try --prompt nowhere.txt",
    ],
)
def test_files_are_refused_before_a_server_is_asked(command, tmp_path, capsys):
    (tmp_path / "bad.yaml").write_text("cases:\n  - id: shop\n    system_promt: Hello.\n")
    words = [*command.split(), "--model", "http://127.0.0.1:9/v1"]
    assert main(words) == 2
    assert "connecting" not in capsys.readouterr().err


def test_a_method_that_a_server_cannot_apply_is_2(serve, capsys):
    _, server = serve(lambda body, number: completion("Hello."))
    model = ["--model", server.url, "--endpoint-model", "tiny"]
    assert main(["drift", "--suite", "luna", "--method", "boost:factor=2", *model]) == 2
    assert "boost:factor=2 needs attention" in capsys.readouterr().err


def test_a_wrong_address_is_refused_before_rules_are_shown(tmp_path, capsys):
    (tmp_path / "bot.txt").write_text("Always reply in German.\n")
    words = ["try", "--prompt", "bot.txt", "--endpoint-model", "tiny", "--model"]
    assert main([*words, "http://127.0.0.1:9/v1"]) == 5
    assert main([*words, "http://127.0.0.1:9/v1/chat/completions"]) == 2
    assert capsys.readouterr().out == "" and not (tmp_path / "runs").exists()


def test_a_server_that_is_not_available_is_5_for_the_proxy():
    words = "proxy --suite luna --port 0 --upstream http://127.0.0.1:9/v1"
    assert main(words.split()) == 5
