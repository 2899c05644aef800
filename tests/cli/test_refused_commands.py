"""Values that commands refuse in one sentence, before they load a model."""

import json
import shlex
from pathlib import Path

import pytest
from command_lines import command_parsers
from refusals import error_of

from holdfast.cli import main
from holdfast.cli.shared.argument_parser import collects
from holdfast.errors import UsageError

# Command lines


@pytest.mark.parametrize(
    ("line", "expected"),
    (
        ("--verison", "There is no option '--verison'; did you mean '--version'?"),
        ("--rounds 3", "--rounds comes before a command; give options after it, as in"),
        ("drfit", "There is no command 'drfit'; did you mean 'drift'?"),
        ("generate -model default --user a", "has no option -model; did you mean --model?"),
        ("generate --user -hello", "--user needs a value; see `holdfast generate --help`."),
        ("report -out=page.html run", "has no option -out; did you mean --out?"),
        ("generate --user a --temperature 9", "takes --temperature from 0 to 2, not 9."),
        (
            "generate --user a --max-new-tokens 99999999999",
            "takes --max-new-tokens as a whole number from 1 to 1048576, not 99999999999.",
        ),
        ("generate --user a --top-p 90", "--top-p above 0 to 1, not 90; did you mean 0.9?"),
        (
            "generate --system a --user b --method split-softmax:exponent=7",
            "split-softmax takes exponent from 0 to 1, not 7.",
        ),
        ("serve --max-tokens 1e9", "--max-tokens takes a whole number, not '1e9'"),
        (
            "serve --port 0 --max-tokens 999999999",
            "--max-tokens as a whole number from 1 to 1048576, not",
        ),
        (
            "drift --model 127.0.0.1:9101/v1",
            "--model 127.0.0.1:9101/v1 is neither a folder here nor a URL; did you mean --model"
            " http://127.0.0.1:9101/v1?",
        ),
        ("check bot --model localhost:8000", "did you mean --model http://localhost:8000?"),
        (
            "generate --user a --model gpt-4o",
            "did you mean --model https://api.openai.com/v1 --endpoint-model gpt-4o?",
        ),
        (
            "generate --user a --model claude-sonnet-4-5",
            "did you mean --model https://api.anthropic.com/v1 --endpoint-model claude-sonnet-4-5"
            " --api-key-env ANTHROPIC_API_KEY?",
        ),
        (
            "drift --user-model gpt-4o",
            "mean --user-model https://api.openai.com/v1 --user-endpoint-model gpt-4o?",
        ),
        (
            "serve --port 0 --model gpt-4o",
            "--model gpt-4o is not a folder, and this command takes no",
        ),
        ("serve --port 0 --allow-origin example.org", "such as https://example.org."),
        ("serve --port 0 --allow-origin https://example.org/", "such as https://example.org."),
        ("drift --suite bot --suite=starter", "--suite is given twice, with bot and starter;"),
        ("drift --rounds 2 --rounds 2", "--rounds is given twice, with 2; give it once."),
        ("check bot --out a --out b", "--out is given twice, with a and b; give it once."),
        ("report a --out b --out c", "--out is given twice, with b and c; give it once."),
        ("serve --port 1 --port 2", "--port is given twice, with 1 and 2; give it once."),
        ("drift --ray --ray auto", "--ray is given twice, with no value and auto; give it once."),
        ("drift luna.yaml", "take 'luna.yaml' by itself; did you mean --suite luna.yaml?"),
        ("drift --method none boost:factor=4", "; repeat the option: --method boost:factor=4."),
        ("generate Hola", "take 'Hola' by itself; did you mean --user Hola?"),
        ("generate --user Hi there", "'there' by itself; put quotes around --user 'Hi there'."),
        ("check", "`holdfast check` needs SUITE; see `holdfast check --help`."),
        ("check starter --budget 0", "check takes --budget as a whole number from 1 upwards"),
        ("calibrate --ask-at 20", "calibrate takes --ask-at up to 9, with 8 rounds before it"),
        ("reproduce li2025", "PAPER takes li2024 or zhang2024, not 'li2025'; see `holdfast"),
        ("export runs/x", "needs --csv or --parquet; see"),
        ("export runs/x --csv a --parquet b", "--parquet excludes --csv; see `holdfast export"),
        ("serve --port 99999", "serve takes --port as a whole number from 0 to 65535, not 99999."),
        ("generate --messages no.json", "--messages no.json cannot be read (No such file or dir"),
        ("serve --prefix-memory lots", "--prefix-memory needs a number of bytes, such as 2G"),
        ("fit seka", "`holdfast fit` needs --out; see `holdfast fit --help`."),
        ("profile --task json --task json", "are called 'json', and so would their folders be"),
        ("generate --user a --method boost:factor=2", "boost:factor=2 works on the system"),
        ("generate --user 'a b' --emphasis b", "there is no method; add --method, such as"),
        ("generate --method hold --method adacad", "join them: --method hold+adacad"),
        ("generate --messages chat.json --user b", "leave out --system and --user."),
        ("drift --concurrency 4", "--concurrency 4 is for a model behind a URL, which default"),
        ("reproduce li2024 --concurrency 4", "behind a URL, which default is not; give a URL as "),
        ("logs a.jsonl --suite a.yaml --concurrency 4", "behind a URL; give a URL as --model, or"),
        ("drift --user-model http://x/v1 --endpoint-model far", "write --user-endpoint-model far"),
        ("drift --user-api-key-env KEY", "--user-api-key-env KEY is for a user model behind a URL"),
        ("drift --model vllm:x --device cpu", "--device cpu is for models that Holdfast places"),
        ("drift --model http://x/v1 --ray auto", "give --model URL,URL."),
        ("drift --price-in 1", "--price-in 1 only applies with --dry-run"),
        ("drift --dry-run --price-out -1", "--price-out takes a price from 0 upwards, not -1"),
    ),
)
def test_every_command_refuses_in_one_sentence(capsys, monkeypatch, tmp_path, line, expected):
    monkeypatch.chdir(tmp_path)
    message = error_of(capsys, shlex.split(line), 2)
    assert expected in message and message.count("\n") == 1


@pytest.mark.parametrize("command", ["trace", "geometry"])
@pytest.mark.parametrize("option", ["--rounds", "--conversations"])
def test_a_refused_count_names_the_command_itself(command, option, capsys):
    assert main([command, option, "0"]) == 2
    assert f"{command} takes {option} as a whole number" in capsys.readouterr().err


def test_no_option_with_one_value_can_be_given_twice():
    for parser in command_parsers().values():
        for action in parser._actions:
            if not action.option_strings or action.nargs == 0 or collects(action):
                continue
            option, value = action.option_strings[0], str((action.choices or ["1"])[0])
            with pytest.raises(UsageError, match=f"^{option} .*twice, with {value};"):
                parser.parse_args([option, value, option, value])


# Before the model is loaded


@pytest.mark.parametrize(
    ("line", "expected"),
    (
        ("serve --port 0 --max-batch 0", "--max-batch as a whole number from 1 upwards, not 0"),
        ("serve --port 0 --chat-template no.jinja", "'no.jinja' cannot be read"),
        ("generate --user a --chat-template no.jinja", "'no.jinja' cannot be read"),
        ("fit seka --out a.safetensors --batch-size 0", "--batch-size as a whole number from 1"),
        ("chat --temperature -1", "--temperature from 0"),
        ("chat --top-p 2", "--top-p above 0 to 1, not 2"),
        ("chat --max-new-tokens 0", "--max-new-tokens as a whole number from 1"),
        ("chat --messages asked.json", "asked.json ends with a user's message"),
        ("try --max-new-tokens 0", "--max-new-tokens as a whole number from 1"),
        ("try --seed -1", "--seed as a whole number from 0"),
        ("drift --user-endpoint-model far", "--user-model is not given"),
        ("drift --user-model ./no", "There is no folder"),
        ("trace --compare ./no", "There is no folder"),
        ("trace --compare default", "--compare default is the same model as the first"),
        ("reproduce li2024 --base ./no", "There is no folder"),
        ("reproduce li2024 --seed -1", "--seed as a whole number from 0"),
        ("reproduce li2024 --capability chess", "'chess'"),
        ("reproduce li2024 --endpoint http://x/v1 --concurrency 0", "--concurrency as a whole"),
        ("reproduce zhang2024 --task jason", "'jason'; did you mean 'json'?"),
        ("reproduce zhang2024 --data nowhere.csv", "nowhere.csv"),
        ("reproduce zhang2024 --task bios --data one.json", "samples for the task bios, not"),
    ),
)
def test_an_impossible_value_is_refused_before_the_model_is_loaded(
    capsys, monkeypatch, tmp_path, line, expected
):
    monkeypatch.chdir(tmp_path)
    Path("asked.json").write_text('[{"role": "user", "content": "Hello?"}]')
    biography = {"raw": "Ann is a nurse. She likes tea.", "title": "nurse", "start_pos": 16}
    Path("one.json").write_text(json.dumps([biography]))
    assert main(shlex.split(line)) == 2
    stderr = capsys.readouterr().err
    assert expected in stderr and "loading" not in stderr


# Devices and types of numbers

# a command line of each command that loads a model
LOADS_A_MODEL = {
    "calibrate": "calibrate",
    "chat": "chat",
    "check": "check starter --min-stability 0.5",
    "drift": "drift",
    "fit": "fit seka --out a.safetensors",
    "generate": "generate --user a",
    "geometry": "geometry",
    "precedent": "precedent",
    "profile": "profile --task json",
    "reproduce": "reproduce li2024",
    "serve": "serve --port 0",
    "tasks": "tasks",
    "trace": "trace",
    "try": "try",
}


@pytest.mark.parametrize("option", ["--dtype foo", "--device foo", "--device meta"])
@pytest.mark.parametrize("command", LOADS_A_MODEL)
def test_a_place_where_no_model_can_be_loaded_is_refused_at_once(
    capsys, monkeypatch, tmp_path, command, option
):
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(f"{LOADS_A_MODEL[command]} {option}")) == 2
    stderr = capsys.readouterr().err
    assert f"{option.split()[1]!r}" in stderr and "loading" not in stderr


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("drift --model vllm:X --dtype foo", "'foo'"),
        ("drift --model llama:X --dtype float16", "give a file of that type"),
        ("drift --ray auto --dtype foo", "'foo'"),
        ("drift --ray auto --device foo", "'foo'"),
    ],
)
def test_an_impossible_place_elsewhere_is_refused_at_once(
    capsys, monkeypatch, tmp_path, line, expected
):
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(line)) == 2
    stderr = capsys.readouterr().err
    assert expected in stderr and "loading" not in stderr


def test_every_command_that_loads_a_model_is_among_those_tried():
    assert LOADS_A_MODEL.keys() == {
        name
        for name, parser in command_parsers().items()
        if "--dtype" in parser._option_string_actions
    }
