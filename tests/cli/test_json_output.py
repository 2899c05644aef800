"""`--json`: one JSON document on stdout from every command, for errors too."""

import io
import json
import subprocess
import sys

import approved
import pytest
from fast_set import only_fast

from holdfast.cli import main
from holdfast.cli.command_list import GROUPS


@pytest.fixture(scope="module")
def working_folder():
    with approved.working_folder() as folder:
        (folder / "rules.md").write_text("- Never use emojis.\n- Be kind.\n")
        main(["suite", "init", "rules.md", "--out", "rules.yaml"])
        yield folder


# Errors

NAMES = [name for group in GROUPS.values() for name in group]

# a mistake in the call of each command
MISTAKES = {
    "try": "try --minutes 0",
    "drift": "drift --rounds two",
    "check": "check nowhere.yaml",
    "logs": "logs nowhere.jsonl --suite starter",
    "suite": "suite init nowhere.md",
    "report": "report nowhere",
    "compare": "compare nowhere elsewhere",
    "map": "map nowhere",
    "export": "export nowhere --csv run.csv",
    "join": "join nowhere --out run",
    "precedent": "precedent --method bost",
    "trace": "trace --method bost",
    "geometry": "geometry --suite nowhere.yaml",
    "calibrate": "calibrate --sweep boost:factor=1..0",
    "profile": "profile --method none",
    "fit": "fit nothing --out x.safetensors",
    "chat": "chat --method bost",
    "generate": "generate --user Hi --method bost",
    "serve": "serve --port 99999",
    "proxy": "proxy --upstream http://127.0.0.1:9 --port 99999 --suite luna",
    "remind": "remind --suite nowhere.yaml --install",
    "reproduce": "reproduce li2025",
    "tasks": "tasks --task jsn",
    "methods": "methods bost",
    "measures": "measures contain",
    "docs": "docs nowhere",
    "completion": "completion csh",
}


def test_every_command_but_the_harness_has_the_option():
    assert set(NAMES) == {*MISTAKES, "lm-eval"}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_json_with_the_same_exit_code(name, working_folder, capsys):
    words = MISTAKES[name].split()
    assert main(words) == 2
    capsys.readouterr()
    assert main([*words, "--json"]) == 2
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert list(document) == ["error"]
    assert document["error"] in captured.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--json", "holdfast try --json"),
        ("--help --json", "leave out --json"),
        ("--version --json", "leave out --json"),
        ("drift --help --json", "leave out --json"),
    ],
)
def test_without_results_the_document_says_so(words, message, capsys):
    assert main(words.split()) == 2
    assert message in json.loads(capsys.readouterr().out)["error"]


def test_an_exit_with_an_error_is_not_taken_for_the_help(monkeypatch):
    def fail(*_):
        raise SystemExit(1)

    monkeypatch.setattr("holdfast.cli.entry_point._run", fail)
    with pytest.raises(SystemExit) as excinfo:
        main(["serve", "--json"])
    assert excinfo.value.code == 1


# Results

RUN = "recorded/schema-3/drift"

# calls that succeed at once, and a field of their document
RESULTS = [
    ("suite init rules.md", "suite"),
    ("report recorded/schema-3/drift --out page.html", "summaries"),
    (f"export {RUN} --csv run.csv", "files"),
    ("logs talks.jsonl --suite bot.yaml --out scored", "summary"),
    ("methods boost", "text"),
    ("measures contains", "text"),
    ("docs", "quickstart"),
    ("docs suites", "text"),
    ("completion bash", "script"),
    ("remind --suite rules.yaml --install", "hooks"),
]


@pytest.mark.parametrize(("command", "field"), RESULTS)
def test_results_are_one_document(command, field, working_folder, capsys):
    assert main([*command.split(), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[field]


def test_lists_are_printed_as_json(capsys):
    for command in ("methods", "measures"):
        assert main([command, "--json"]) == 0
        entries = json.loads(capsys.readouterr().out)
        assert all({"name", "arguments", "summary"} == entry.keys() for entry in entries)


def test_generate_prints_its_reply_as_json(tmp_path, folder, capsys):
    words = ["generate", "--model", str(folder), "--user", "Hi", "--max-new-tokens", "4"]
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document.keys() == {"text", "stop_reason", "model"} and document["stop_reason"]


def test_a_chat_ends_with_its_dialog(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("Hello\n"))
    assert main(["chat", "--model", str(folder), "--max-new-tokens", "4", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [message["role"] for message in document["messages"]] == ["user", "assistant"]


def test_a_run_and_its_dry_run_print_json(tmp_path, folder, capsys):
    words = f"drift --model {folder} --suite core --rounds 2 --conversations 2 --max-new-tokens 4"
    words = [*words.split(), "--out", str(tmp_path / "run"), "--json"]
    assert main([*words, "--dry-run"]) == 0
    estimate = json.loads(capsys.readouterr().out)
    assert estimate["measured"] == 1 and estimate["requests"] > 0
    assert main(words) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["summary"]["command"] == "drift" and document["next"].startswith("Next")
    assert document["summary"] == json.loads((tmp_path / "run" / "summary.json").read_text())


# small calls of the commands that measure a model, and their exit codes
MEASURING = [
    ("check luna --budget 2 --rounds 2 --max-new-tokens 4 --min-stability 0.5", 3),
    ("tasks --task json --samples 2", 0),
    ("trace --suite core --rounds 2 --conversations 2 --temperature 1", 0),
    ("geometry --suite core --rounds 2 --conversations 2", 0),
    ("drift --suite core --rounds 2 --conversations 2 --max-new-tokens 4", 0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "code"), MEASURING)
def test_runs_print_their_summary_as_json(command, code, folder, tmp_path, capsys):
    words = [*command.split(), "--model", str(folder), "--out", str(tmp_path / "run"), "--json"]
    assert main(words) == code
    document = json.loads(capsys.readouterr().out)
    assert document["folder"] == str(tmp_path / "run") and document["page"].endswith(".html")
    summary = document["summary"]
    assert summary["check"] if words[0] == "check" else summary["command"] == words[0]


# A closed pipe


@pytest.mark.parametrize(
    "words", only_fast([["--json", "docs"], ["docs", "logs"]], ["--json", "docs"])
)
def test_a_reader_that_has_gone_leaves_no_traceback(words):
    command = subprocess.Popen(
        [sys.executable, "-m", "holdfast", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    command.stdout.close()  # before anything is written
    error = command.stderr.read().decode()
    assert command.wait() == 1
    assert "Traceback" not in error and "lost sys.stderr" not in error and "Broken" not in error
