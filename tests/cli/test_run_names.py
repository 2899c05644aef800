"""The folder of a run without --out: its name, and what happens if it has another run."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from chat_server import Server, completion
from refusals import refusal_in

from holdfast.cli import main
from holdfast.cli.measure.drift import DriftArguments
from holdfast.cli.shared.run_names import model_of, run_folder
from holdfast.records import read_run

DRIFT = ["drift", "--rounds", "1", "--conversations", "2", "--max-new-tokens", "4"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("drift", "default", "starter"), "runs/drift-default-starter-0"),
        (
            ("drift", "Qwen/Qwen2.5-0.5B-Instruct", "core"),
            "runs/drift-Qwen2.5_0.5B_Instruct-core-0",
        ),
        (("check", "models/mine/", "bots/my_bot.yaml"), "runs/check-mine-my_bot-0"),
        (("calibrate", "vllm:org/name", "li2024:hub"), "runs/calibrate-name-li2024_hub-0"),
        (("tasks", "smollm2"), "runs/tasks-smollm2-0"),
    ],
)
def test_a_folder_is_named_by_command_model_suite_and_seed(names, expected):
    assert str(run_folder(*names)) == expected


def test_a_model_behind_a_url_is_named_by_its_name_there_and_its_address():
    url = DriftArguments(model="http://there.example:8000/v1")
    assert model_of(url) == "there.example:8000"
    with_name = url.model_copy(update={"endpoint_model": "org/big"})
    assert model_of(with_name) == model_of(url, "org/big") == "org/big@there.example:8000"
    assert str(run_folder("check", model_of(with_name), "bot.yaml")) == (
        "runs/check-big_there.example_8000-bot-0"
    )
    assert model_of(DriftArguments(model="smollm2")) == "smollm2"


def test_a_repeated_command_resumes_and_another_setting_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with Server(lambda body, number: completion("Fine.")) as server:
        words = [*DRIFT, "--model", server.url, "--endpoint-model", "tiny", "--seed", "3"]
        assert main(words) == 0
        folder = f"runs/drift-tiny_127.0.0.1_{urlsplit(server.url).port}-starter-3"
        run = read_run(folder)
        assert len(run.conversations) == 2
        requests = len(server.bodies)
        assert main(words) == 0
        assert len(server.bodies) == requests
        capsys.readouterr()
        assert main([*words, "--temperature", "0.2"]) == 2
    refusal = refusal_in(capsys)
    assert folder in refusal and "temperature" in refusal
    assert "--out" in refusal and "0.2" in refusal
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [Path(folder).name]
