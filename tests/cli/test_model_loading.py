"""The models that commands load, and what is refused before that."""

import subprocess
import sys

import pytest
from paths import ROOT

from holdfast.cli import main
from holdfast.cli.main_parser import read_command
from holdfast.cli.shared import local_loading, model_loading

# Which models are loaded


def test_loading_is_announced_before_it_starts(monkeypatch, capsys):
    monkeypatch.setattr(
        local_loading, "load_local", lambda arguments, **options: capsys.readouterr().err
    )
    for words in (["drift"], ["trace"], ["profile"]):
        assert model_loading.load_model(read_command(words)[1]) == "holdfast: loading default ...\n"


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


# Refused before a model is loaded


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


RECORDED = ROOT / "tests" / "data" / "recorded" / "schema-3"


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


@pytest.mark.parametrize("command", ["generate --user hello", "chat"])
@pytest.mark.parametrize("method", ["check-and-retry", "boost:factor=2+repair"])
def test_a_method_that_needs_a_suite_is_refused_before_the_model_loads(
    command, method, monkeypatch, capsys
):
    monkeypatch.setattr(model_loading, "_load_checked", None)
    assert main([*command.split(), "--method", method]) == 2
    stderr = capsys.readouterr().err
    assert stderr.count("\n") == 1 and "`holdfast proxy --suite FILE --method" in stderr
