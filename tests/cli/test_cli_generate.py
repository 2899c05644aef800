"""`holdfast generate`, what commands say about the model they load, and mistyped commands."""

import io
import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from paths import ROOT
from scripted_model import ScriptedModel

from holdfast.cli import main
from holdfast.cli.main_parser import read_command
from holdfast.cli.shared import local_loading, model_loading

RECORDED = ROOT / "tests" / "data" / "recorded" / "schema-3"


def generate(folder: Path, *options: str) -> list[str]:
    return ["generate", "--model", str(folder), "--max-new-tokens", "8", *options]


def test_asterisks_without_the_marks_option_are_reported(folder, capsys):
    assert main(generate(folder, "--user", "hello *there*")) == 0
    assert "--marks" in capsys.readouterr().err
    assert main(generate(folder, "--user", "2 * 3")) == 0
    assert capsys.readouterr().err == f"holdfast: loading {folder} ...\n"


def test_a_chat_is_read_from_a_file_or_from_the_standard_input(
    folder, tmp_path, capsys, monkeypatch
):
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello there"}]
    assert main(generate(folder, "--system", "Be brief.", "--user", "hello there")) == 0
    expected = capsys.readouterr().out
    (tmp_path / "list.json").write_text(json.dumps(chat))
    (tmp_path / "request.json").write_text(json.dumps({"model": "x", "messages": chat}))
    for name in ("list.json", "request.json"):
        assert main(generate(folder, "--messages", str(tmp_path / name))) == 0
        assert capsys.readouterr().out == expected
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(chat)))
    assert main(generate(folder, "--messages", "-")) == 0
    assert capsys.readouterr().out == expected
    monkeypatch.setattr("sys.stdin", io.StringIO("hello there\n"))
    assert main(generate(folder, "--system", "Be brief.")) == 0
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_message_is_refused_before_a_model_is_loaded(folder, tmp_path, capsys, text):
    assert main(generate(folder, "--user", text)) == 2
    error = capsys.readouterr().err
    assert "--user" in error and repr(text) in error and "loading" not in error
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "hello"}]')
    assert main(generate(folder, "--messages", str(tmp_path / "chat.json"), "--user", text)) == 2
    assert "leave out" in capsys.readouterr().err


@pytest.mark.parametrize("text", ("[", "{}", "3", '[{"role": "user"}]', "[" * 100_000))
def test_a_file_that_is_not_a_chat_gets_one_sentence(folder, tmp_path, capsys, text):
    (tmp_path / "chat.json").write_text(text)
    assert main(generate(folder, "--messages", str(tmp_path / "chat.json"))) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_warning_is_printed_as_a_sentence(folder, capsys, monkeypatch):
    def warn(*_):
        warnings.warn("mind this.", stacklevel=1)

    monkeypatch.setattr("holdfast.cli.serve.generate._refuse_without_effect", warn)
    assert main(generate(folder, "--user", "hello")) == 0
    assert capsys.readouterr().err.startswith("holdfast: mind this.\n")


def test_device_map_dtype_and_batch_size_reach_the_model(folder, capsys, monkeypatch):
    from holdfast.models import loading

    loaded, load = [], loading.load
    monkeypatch.setattr(loading, "load", lambda *a, **k: loaded.append(load(*a, **k)) or loaded[-1])
    options = ["--device-map", "auto", "--dtype", "bfloat16", "--batch-size", "3"]
    assert main(generate(folder, "--user", "hello", *options)) == 0
    assert capsys.readouterr().out
    (model,) = loaded
    assert (str(model.hf_model.dtype), model.batch_size) == ("torch.bfloat16", 3)

    assert main(generate(folder, "--user", "hello", "--device-map", "atuo")) == 2
    assert "'atuo'; did you mean" in capsys.readouterr().err
    placement = ["--device-map", "auto", "--device", "cpu"]
    assert main(generate(folder, "--user", "hello", *placement)) == 2
    assert "not both" in capsys.readouterr().err


def test_options_of_endpoints_may_be_for_a_model_other_than_the_first(monkeypatch):
    loaded = []
    monkeypatch.setattr(
        model_loading, "_load_checked", lambda arguments: loaded.append(arguments.model)
    )
    for words in (
        ["drift", "--user-model", "http://localhost:9/v1", "--api-key-env", "A_KEY"],
        ["reproduce", "li2024", "--endpoint", "http://localhost:9/v1", "--endpoint-model", "far"],
        ["trace", "--model", "http://localhost:9/v1", "--timeout", "5"],
        ["drift", "--concurrency", "8"],  # the default
    ):
        model_loading.load_model(read_command(words)[1])
    assert loaded == ["default", "default", "http://localhost:9/v1", "default"]
    loaded.clear()
    model_loading.load_both(read_command(["drift", "--user-model", "http://localhost:9/v1"])[1])
    assert loaded == ["http://localhost:9/v1", "default"]  # the address is tried first


def test_the_user_model_may_be_local_beside_an_endpoint(monkeypatch):
    monkeypatch.setattr(model_loading, "_load_checked", lambda arguments: arguments.model)
    words = ["drift", "--model", "http://localhost:9/v1", "--concurrency", "4"]
    arguments = read_command([*words, "--user-model", "default"])[1]
    assert model_loading.load_user_model(arguments) == "default"


@pytest.mark.slow
def test_a_folder_without_a_model_is_refused_before_torch_is_imported(tmp_path):
    code = (
        "import sys; from holdfast.cli import main\nassert main(sys.argv[1:]) in (1, 2)\n"
        "assert 'torch' not in sys.modules"
    )
    for folder, message in (
        (tmp_path, "has no config.json"),
        (tmp_path / "no", "There is no folder"),
    ):
        words = [sys.executable, "-c", code, "drift", "--model", str(folder), "--out", "x"]
        result = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
        assert result.returncode == 0 and message in result.stderr, result.stderr
        assert "loading" not in result.stderr


def test_a_folder_of_another_run_is_refused_before_torch_is_imported(tmp_path):
    code = (
        "import sys; from holdfast.cli import main\n"
        "codes = [main(line.split()) for line in sys.argv[1:]]\n"
        "assert codes == [2, 2, 2, 2, 2]\n"
        "assert 'torch' not in sys.modules"
    )
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    commands = [
        f"drift --suite starter --out {RECORDED / 'drift'}",
        f"check starter --out {RECORDED / 'drift'}",
        f"tasks --out {RECORDED / 'drift'}",
        f"tasks --samples 3 --out {RECORDED / 'tasks'}",
        f"drift --out {tmp_path / 'notes'}",
    ]
    words = [sys.executable, "-c", code, *commands]
    result = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    message = result.stderr.splitlines()
    assert len(message) == 5 and "loading" not in result.stderr
    assert "rounds is 2" in message[0] and "samples is" in message[3]
    assert "`holdfast drift`" in message[2] and "`holdfast tasks`" in message[2]
    assert "'mine.txt'" in message[4]


@pytest.mark.parametrize("command", ["trace", "geometry", "profile --task json", "calibrate"])
def test_a_study_refuses_the_folder_of_another_command_before_a_model_loads(command, capsys):
    assert main([*command.split(), "--out", str(RECORDED / "drift")]) == 2
    message, name = capsys.readouterr().err, command.split()[0]
    assert "`holdfast drift`" in message and f"`holdfast {name}`" in message
    assert "loading" not in message


def test_loading_is_announced_before_it_starts(monkeypatch, capsys):
    monkeypatch.setattr(
        local_loading, "load_local", lambda arguments, **options: capsys.readouterr().err
    )
    for words in (["drift"], ["trace"], ["profile"]):
        assert model_loading.load_model(read_command(words)[1]) == "holdfast: loading default ...\n"


@pytest.mark.parametrize("command", ["generate --user hello", "chat"])
@pytest.mark.parametrize("method", ["check-and-retry", "boost:factor=2+repair"])
def test_a_method_that_needs_a_suite_is_refused_before_the_model_loads(
    command, method, monkeypatch, capsys
):
    monkeypatch.setattr(model_loading, "_load_checked", None)
    assert main([*command.split(), "--method", method]) == 2
    stderr = capsys.readouterr().err
    assert stderr.count("\n") == 1 and "`holdfast proxy --suite FILE --method" in stderr


def test_a_limit_above_the_context_is_reported(folder, capsys):
    command = ["generate", "--model", str(folder), "--user", "hello", "--temperature", "0"]
    assert main([*command, "--max-new-tokens", "100000"]) == 0
    message = capsys.readouterr().err
    assert "--max-new-tokens 100000" in message
    assert main([*command, "--max-new-tokens", "9"]) == 0
    assert "--max-new-tokens" not in capsys.readouterr().err


def test_a_file_with_the_role_developer_has_a_system_prompt(folder, tmp_path, capsys):
    texts = []
    for role in ("developer", "system"):
        path = tmp_path / f"{role}.json"
        chat = [{"role": role, "content": "Be brief."}, {"role": "user", "content": "hello there"}]
        path.write_text(json.dumps(chat))
        command = generate(folder, "--messages", str(path), "--method", "boost:factor=2")
        assert main(command) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]


def test_a_last_message_of_the_assistant_is_continued_only_if_asked(folder, tmp_path, capsys):
    chat = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "bread"}]
    path = tmp_path / "begun.json"
    path.write_text(json.dumps(chat))
    command = generate(folder, "--messages", str(path))
    assert main(command) == 2
    assert "--continue-final-message" in capsys.readouterr().err
    assert main([*command, "--continue-final-message"]) == 0


def test_an_engine_that_only_generates_shows_its_reply_whole(monkeypatch, capsys):
    class Echo(ScriptedModel):
        def text(self, request):
            return request.messages[-1]["content"]

    monkeypatch.setattr("holdfast.cli.serve.generate.load_model", lambda arguments: Echo())
    assert main(["generate", "--user", "Hello there"]) == 0
    assert capsys.readouterr().out == "Hello there\n"
