"""The command line as a user sees it: output, exit codes, and error messages for bad input."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml
from command_lines import changed, command_parsers, heed_interrupts
from fast_set import only_fast
from paths import ROOT
from refusals import refusal_in

from holdfast import measures, methods
from holdfast.cli import main
from holdfast.cli.look_up.docs import pages
from holdfast.cli.look_up.measures import measure_example, measure_lines
from holdfast.cli.look_up.methods import method_lines
from holdfast.cli.shared.argument_parser import collects
from holdfast.errors import UnknownName, UsageError
from holdfast.measures.registry import REGISTRY
from holdfast.records import read_run

SUITE = """
name: mine
starters: [hello there]
cases:
  - {id: a, category: x, system_prompt: Talk about bread., probe: What is it?,
     measure: {regex: bread}}
  - {id: b, category: x, system_prompt: Talk about rain., probe: What is it?,
     measure: {name: contains, words: [rain]}}
"""
STOPS = [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]


@pytest.fixture
def suite(tmp_path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(SUITE)
    return path


def drift(folder, suite, out, *options: str) -> list[str]:
    words = f"drift --model {folder} --suite {suite} --rounds 2 --conversations 2"
    command = [*words.split(), "--max-new-tokens", "8", "--out", str(out)]
    return changed(command, *options)


def error_of(capsys, argv: list[str], code: int) -> str:
    """The error message of a command that exits with `code`."""
    try:
        assert main(argv) == code
    except SystemExit as leaving:  # argparse's own refusals
        assert leaving.code == code
    message = refusal_in(capsys)
    assert "Traceback" not in message
    return message


def test_drift_writes_records_a_table_and_a_page_and_resumes(folder, suite, tmp_path, capsys):
    methods = ("--method", "none", "--method", "split-softmax:exponent=0.5")
    command = drift(folder, suite, tmp_path / "run", *methods)
    assert main(command) == 0
    first = capsys.readouterr().out
    assert "split-softmax:exponent=0.5" in first
    page = Path(first.split("Report: ")[1].strip())
    assert page.read_text().lower().startswith("<!doctype html>")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["results"][0]["conversations"] == 2
    before = (tmp_path / "run" / "records.jsonl").read_bytes()
    assert len(read_run(tmp_path / "run").records) == 4 and main(command) == 0
    assert (tmp_path / "run" / "records.jsonl").read_bytes() == before
    capsys.readouterr()
    report_command = ["report", str(tmp_path / "run"), "--out", str(tmp_path / "again.html")]
    assert main(report_command) == 0
    output, page = (text.split("Report: ") for text in (capsys.readouterr().out, first))
    assert output[0] == page[0]
    assert (tmp_path / "again.html").exists()
    page = tmp_path / "run" / "report.html"
    page.unlink()
    assert main(report_command[:2]) == 0
    assert f"Report: {page}" in capsys.readouterr().out and page.exists()


@pytest.mark.slow
def test_dialogs_that_fill_the_context_are_reported(folder, suite, tmp_path, capsys):
    assert main(drift(folder, suite, tmp_path / "run", "--max-new-tokens", "600")) == 0
    assert "model's context)" in capsys.readouterr().out


def test_measures_and_methods_are_listed(capsys):
    assert main(["measures"]) == 0
    output = capsys.readouterr().out
    first, *published = output.split("\n\n")
    assert "at_most_sentences(count, prose=false)" in first and "released_" not in first
    assert [part.split("_")[0] for part in published[1:]] == ["ifeval", "released"]
    assert "relation: at least|" in output and "colours" in published[0]
    assert main(["methods"]) == 0
    assert "upper_case" in output and "language(code)" in output
    assert "split-softmax(exponent, heads)" in capsys.readouterr().out


def test_a_named_method_is_described_in_full(capsys):
    assert main(["methods", "boost"]) == 0
    output = capsys.readouterr().out
    (factor,) = re.findall(r"^  factor .*", output, re.M)
    assert "from 1 upwards" in factor and "must be given" in factor and "changes nothing" in factor
    assert "example: --method boost:factor=4\n" in output
    assert "source: InstABoost, arXiv 2506.13734" in output and "Args" not in output
    assert main(["methods", "hold"]) == 0
    hold = capsys.readouterr().out
    assert re.search(r"^  tokens .* 1 .* 24 ", hold, re.M)
    assert "example: --method hold\n" in hold
    with pytest.raises(UnknownName) as excinfo:
        method_lines("bost")
    assert (excinfo.value.kind, excinfo.value.suggestion) == ("method", "boost")


def test_the_pages_of_the_documentation_are_listed_and_printed(capsys):
    assert main(["docs"]) == 0
    listing = capsys.readouterr().out
    assert re.search("^logs +Logs of", listing, re.M)
    names = [line.split()[0] for line in listing.splitlines()]
    assert names[:2] == ["index", "quickstart"] and sorted(names) == sorted(pages())
    for name in ("logs", "logs.md"):
        assert main(["docs", name]) == 0
        assert capsys.readouterr().out == ROOT.joinpath("docs/logs.md").read_text()
    assert main(["docs", "serve"]) == 2
    assert "'serving'" in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name, _, _ in methods.catalogue()])
def test_the_example_of_a_method_can_be_parsed(name):
    (line,) = [line for line in method_lines(name) if line.startswith("example: --method ")]
    (spec,) = shlex.split(line)[2:]
    if ".safetensors" not in spec:  # else it needs a file of `holdfast fit`
        (method,) = methods.parse(spec)
        assert method.name == name


def test_a_named_measure_is_described_in_full(capsys):
    assert main(["measures", "contains"]) == 0
    output = capsys.readouterr().out
    assert re.search(r"^  words .* must be given$", output, re.M)
    assert re.search(r"^  whole .* true$", output, re.M)
    assert 'measure: {name: contains, words: ["sea", "boat"]}\n' in output
    assert main(["measures", "judge"]) == 0
    assert "example: measure: {judge: " in capsys.readouterr().out
    with pytest.raises(UnknownName) as excinfo:
        measure_lines("contain")
    assert (excinfo.value.kind, excinfo.value.suggestion) == ("measure", "contains")


def test_every_measure_is_explained():
    for name in REGISTRY:
        *_, example, source = (
            line for line in measure_lines(name) if not line.startswith("the opposite: ")
        )
        assert example.startswith("example: measure: ") and source.startswith("source: ")
    rows = [line.split() for line in measure_lines("runs_after")]
    assert ["after", "a", "regular", "expression", "null"] in rows


def test_the_opposite_of_every_measure_of_texts_can_be_built():
    opposites = {
        name: yaml.safe_load(line.removeprefix("the opposite: "))["measure"]
        for name in REGISTRY
        for line in measure_lines(name)
        if line.startswith("the opposite: ")
    }
    assert "contains" in opposites and not {"never", "runs_after"} & opposites.keys()
    for spec in opposites.values():
        measures.build(spec)


@pytest.mark.parametrize("command", ["trace", "geometry"])
@pytest.mark.parametrize("option", ["--rounds", "--conversations"])
def test_a_refused_count_names_the_command_itself(command, option, capsys):
    assert main([command, option, "0"]) == 2
    assert f"{command} takes {option} as a whole number" in capsys.readouterr().err


def test_the_example_of_a_measure_can_be_built():
    for name in REGISTRY:
        assert measures.build(yaml.safe_load(measure_example(name))).name == name


@pytest.mark.parametrize(
    ("argv", "code", "expected"),
    (
        (["--rounds", "0"], 2, ["takes --rounds as a whole number from 1 upwards, not 0."]),
        (["--rounds", "six"], 2, ["--rounds takes a whole number, not 'six'; see `holdfast drift"]),
        (["--context", "stopp"], 2, ["slide, summarise or compact, not 'stopp'"]),
        (["--method"], 2, ["--method needs a value; see `holdfast drift --help`."]),
        (["--batch-size", "0"], 2, ["takes --batch-size as a whole number", "not 0."]),
        (["--replicas", "2"], 2, ["--replicas 2 is for a run on Ray; give --ray too"]),
        (["--method", "split-softmax:exponent=1.5"], 2, ["exponent", "1.5", "0 to 1"]),
        (["--device", "nowhere"], 2, ["nowhere", "cpu"]),
        (["--suite", "nothing.yaml"], 2, ["nothing.yaml"]),
        (["--model", "no/such-model"], 2, ["no/such-model", "hub"]),
        (["--model", "./nowhere"], 2, ["./nowhere", "folder"]),
        (["--model", "http://localhost:1/v1"], 5, ["http://localhost:1/v1", "server"]),
        (["--frobnicate"], 2, ["no option --frobnicate; see `holdfast drift --help`."]),
        (["--pears=all"], 2, ["`holdfast drift` has no option --pears; did you mean --pairs?"]),
        (["--no-open"], 2, ["no option --no-open; see `holdfast drift --help`."]),
        (["--output", "x"], 2, ["no option --output; did you mean --out?"]),
        (["more"], 2, ["`holdfast drift` does not take 'more' by itself; see `holdfast drift"]),
        (["--out", "luna.yaml"], 2, ["luna.yaml ends in .yaml", "did you mean --suite luna.yaml?"]),
        (["--out", __file__], 2, [f"{__file__} is a file", "name one, such as --out runs/mine."]),
    ),
)
def test_bad_input_gets_one_sentence(folder, suite, tmp_path, capsys, argv, code, expected):
    message = error_of(capsys, drift(folder, suite, tmp_path / "run", *argv), code)
    assert all(part in message for part in expected), message
    assert message.count("\n") == 1


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


# a command line of each command that loads a model
LOADING = {
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
@pytest.mark.parametrize("command", LOADING)
def test_a_place_where_no_model_can_be_loaded_is_refused_at_once(
    capsys, monkeypatch, tmp_path, command, option
):
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(f"{LOADING[command]} {option}")) == 2
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
    assert LOADING.keys() == {
        name
        for name, parser in command_parsers().items()
        if "--dtype" in parser._option_string_actions
    }


def test_no_option_with_one_value_can_be_given_twice():
    for parser in command_parsers().values():
        for action in parser._actions:
            if not action.option_strings or action.nargs == 0 or collects(action):
                continue
            option, value = action.option_strings[0], str((action.choices or ["1"])[0])
            with pytest.raises(UsageError, match=f"^{option} .*twice, with {value};"):
                parser.parse_args([option, value, option, value])


def test_folders_without_usable_weights_are_refused(folder, suite, tmp_path, capsys):
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "config.json" in error_of(capsys, drift(empty, suite, tmp_path / "run"), 2)
    (empty / "config.json").write_text((folder / "config.json").read_text())
    assert "no weights" in error_of(capsys, drift(empty, suite, tmp_path / "run"), 2)
    torch.save({}, empty / "pytorch_model.bin")
    message = error_of(capsys, drift(empty, suite, tmp_path / "run"), 1)
    assert "pytorch_model.bin" in message and "safetensors" in message


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["drift", "check", "check --smoke"])
@pytest.mark.parametrize(("signal_sent", "code", "expected"), STOPS)
def test_ctrl_c_and_sigterm_leave_a_run_that_can_be_resumed(
    folder, suite, tmp_path, signal_sent, code, expected, measure
):
    if measure == "drift":
        words = ["drift", "--suite", str(suite), "--conversations", "400"]
    else:
        words = [*measure.split(), str(suite), "--budget", "400", "--min-stability", "0.5"]
    words += ["--model", str(folder), "--rounds", "2", "--max-new-tokens", "8", "--batch", "1"]
    words += ["--out", str(tmp_path / "run")]
    command = [sys.executable, "-m", "holdfast", *words]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    piped = {"stderr": subprocess.PIPE, "text": True, "preexec_fn": heed_interrupts}
    child = subprocess.Popen(command, env=env, **piped)
    lines, deadline = tmp_path / "run" / "records.jsonl", time.monotonic() + 120
    while time.monotonic() < deadline and not (lines.exists() and lines.stat().st_size):
        time.sleep(0.05)
    child.send_signal(signal_sent)
    _, stderr = child.communicate(timeout=60)
    assert child.returncode == code
    assert f"holdfast: {expected}; " in stderr and f" {tmp_path / 'run'}, " in stderr
    assert f"`{shlex.join(['holdfast', *command[3:]])}`" in stderr and "Traceback" not in stderr
    assert 0 < len(read_run(tmp_path / "run").records) < 400


BOT = """
name: bot
starters: [hello there]
cases:
  - id: tony
    system_prompt: Talk about bread and rain.
    rules:
      - {id: bread, probe: What is it?, measure: {regex: bread}}
      - {id: rain, probe: How is it?, measure: {python: own_rules.rain}}
"""


@pytest.fixture
def bot(tmp_path) -> Path:
    (tmp_path / "own_rules.py").write_text("def rain(text):\n    return float('rain' in text)\n")
    path = tmp_path / "bot.yaml"
    path.write_text(BOT)
    return path


def test_a_single_bot_talks_with_a_user_model_without_a_prompt(folder, bot, tmp_path, capsys):
    options = "--allow-code", "--user-turns", "none"
    assert main(drift(folder, bot, tmp_path / "run", *options)) == 0
    captured = capsys.readouterr()
    assert "'bot'" in captured.err and "--persona" in captured.err
    assert "Rule by rule, stability:" in captured.out
    assert {record.user.id for record in read_run(tmp_path / "run").records} == {None}


def test_the_user_model_plays_the_personas_of_the_command_line(folder, bot, tmp_path, capsys):
    options = "--allow-code", "--pairs", "balanced", "--persona", "You are Ada."
    persona = "--persona", "You are Max."
    assert main(drift(folder, bot, tmp_path / "run", *options, *persona)) == 0
    run = read_run(tmp_path / "run")
    records = sorted(run.records, key=lambda record: record.conversation)
    users = [record.user.system_prompt for record in records]
    assert users == ["You are Ada.", "You are Max."]
    assert run.manifest.identity.to_json()["settings"]["pairs"] == "balanced"
    assert "talks without one" not in capsys.readouterr().err


@pytest.mark.slow
def test_all_pairs_that_end_half_way_are_reported(folder, suite, tmp_path, capsys):
    command = drift(folder, suite, tmp_path / "run", "--pairs", "all")
    assert main(changed(command, "--conversations", "3")) == 0
    expected = "--pairs all goes through 2 pairs prompt after prompt, and --conversations 3"
    assert expected in capsys.readouterr().err
    whole = ("--conversations", "4", "--out", str(tmp_path / "whole"))
    assert main(changed(command, *whole)) == 0
    assert "--pairs all" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--persona", "Ada.", "--user-prompt", "empty"), "and so does --user-prompt empty; give"),
        (("--persona", " "), "--persona '' is empty"),
        (("--user-prompt", "persona"), "has no personas"),
        (("--user-prompt", "suite"), "has only 1 system prompt"),
    ],
)
def test_a_user_model_that_makes_no_sense_is_refused(bot, tmp_path, capsys, options, message):
    command = drift(tmp_path / "nowhere", bot, tmp_path / "run", "--allow-code", *options)
    assert message in error_of(capsys, command, 2)
    assert not (tmp_path / "run").exists()


def test_a_template_without_a_system_role_names_the_option(folder, tmp_path, capsys):
    strict = tmp_path / "strict"
    shutil.copytree(folder, strict)
    template = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
        "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    )
    (strict / "chat_template.jinja").write_text(template)
    settings = json.loads((strict / "tokenizer_config.json").read_text())
    settings.pop("chat_template", None)
    (strict / "tokenizer_config.json").write_text(json.dumps(settings))
    argv = ["generate", "--model", str(strict), "--system", "Be brief.", "--user", "hello"]
    assert "(--system-as first-user)" in error_of(capsys, argv, 1)


@pytest.mark.slow
def test_an_edited_suite_is_refused_in_the_folder_of_the_earlier_one(
    folder, suite, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    command = drift(folder, suite, tmp_path)
    at = command.index("--out")
    command = [*command[:at], *command[at + 2 :]]
    assert main(command) == main(command) == 0  # the second finds the first finished
    text = Path(suite).read_text()
    Path(suite).write_text(f"# no rule is another\n{text}")
    assert main(command) == 0 and len(list((tmp_path / "runs").iterdir())) == 1
    Path(suite).write_text(text.replace("system_prompt: ", "system_prompt: Be kind. ", 1))
    capsys.readouterr()
    assert main(command) == 2 and "--out" in refusal_in(capsys)
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_a_changed_setting_of_a_resumed_run_is_named(folder, suite, tmp_path, capsys):
    command = drift(folder, suite, tmp_path / "run")
    assert main(command) == 0
    capsys.readouterr()
    for options, sentence in (
        (["--dtype", "bfloat16"], 'dtype is "float32" there and "bfloat16" here; choose'),
        (["--temperature", "0.5"], "temperature is 0.7 there and 0.5 here; choose"),
        (["--system-as", "first-user"], 'system_as is "role" there and "first-user" here'),
    ):
        assert sentence in error_of(capsys, [*command, *options], 2)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here is always full")
@pytest.mark.parametrize("command", only_fast(["methods", "measures"], "methods"))
def test_output_to_a_full_disk_ends_in_one_sentence(command):
    with open("/dev/full", "w") as full:
        words = [sys.executable, "-m", "holdfast", command]
        ended = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr.startswith("holdfast: ") and "disk is full" in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("option", ["--help", "--help-all"])
@pytest.mark.parametrize("command", ["check", "drift", "logs", "try"])
def test_help_is_printed_to_stdout(capsys, command, option):
    with contextlib.suppress(SystemExit):
        main([command, option])
    output = capsys.readouterr()
    assert output.out.startswith(f"usage: holdfast {command}") and not output.err
