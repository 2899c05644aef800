"""`holdfast drift` as a user sees it: output, the folder of a run, exit codes, and refusals."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from command_lines import changed, heed_interrupts
from fast_set import only_fast
from refusals import error_of, refusal_in

from holdfast.cli import main
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


@pytest.fixture
def suite(tmp_path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(SUITE)
    return path


def drift(folder, suite, out, *options: str) -> list[str]:
    words = f"drift --model {folder} --suite {suite} --rounds 2 --conversations 2"
    command = [*words.split(), "--max-new-tokens", "8", "--out", str(out)]
    return changed(command, *options)


# Output


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


@pytest.mark.parametrize("option", ["--help", "--help-all"])
@pytest.mark.parametrize("command", ["check", "drift", "logs", "try"])
def test_help_is_printed_to_stdout(capsys, command, option):
    with contextlib.suppress(SystemExit):
        main([command, option])
    output = capsys.readouterr()
    assert output.out.startswith(f"usage: holdfast {command}") and not output.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here is always full")
@pytest.mark.parametrize("command", only_fast(["methods", "measures"], "methods"))
def test_output_to_a_full_disk_ends_in_one_sentence(command):
    with open("/dev/full", "w") as full:
        words = [sys.executable, "-m", "holdfast", command]
        ended = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr.startswith("holdfast: ") and "disk is full" in ended.stderr
    assert ended.stderr.count("\n") == 1


# The folder of an earlier run


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


# Interruptions

STOPS = [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]


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


# The user of a single bot

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


# Refusals


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


def test_folders_without_usable_weights_are_refused(folder, suite, tmp_path, capsys):
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "config.json" in error_of(capsys, drift(empty, suite, tmp_path / "run"), 2)
    (empty / "config.json").write_text((folder / "config.json").read_text())
    assert "no weights" in error_of(capsys, drift(empty, suite, tmp_path / "run"), 2)
    torch.save({}, empty / "pytorch_model.bin")
    message = error_of(capsys, drift(empty, suite, tmp_path / "run"), 1)
    assert "pytorch_model.bin" in message and "safetensors" in message


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
