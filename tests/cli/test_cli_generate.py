"""`holdfast generate`: the chat that it reads, its reply, and its notes."""

import io
import json
import warnings
from pathlib import Path

import pytest
from scripted_model import ScriptedModel

from holdfast.cli import main


def generate(folder: Path, *options: str) -> list[str]:
    return ["generate", "--model", str(folder), "--max-new-tokens", "8", *options]


# The chat


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


# The reply and its notes


def test_an_engine_that_only_generates_shows_its_reply_whole(monkeypatch, capsys):
    class Echo(ScriptedModel):
        def text(self, request):
            return request.messages[-1]["content"]

    monkeypatch.setattr("holdfast.cli.serve.generate.load_model", lambda arguments: Echo())
    assert main(["generate", "--user", "Hello there"]) == 0
    assert capsys.readouterr().out == "Hello there\n"


def test_asterisks_without_the_marks_option_are_reported(folder, capsys):
    assert main(generate(folder, "--user", "hello *there*")) == 0
    assert "--marks" in capsys.readouterr().err
    assert main(generate(folder, "--user", "2 * 3")) == 0
    assert capsys.readouterr().err == f"holdfast: loading {folder} ...\n"


def test_a_limit_above_the_context_is_reported(folder, capsys):
    command = ["generate", "--model", str(folder), "--user", "hello", "--temperature", "0"]
    assert main([*command, "--max-new-tokens", "100000"]) == 0
    message = capsys.readouterr().err
    assert "--max-new-tokens 100000" in message
    assert main([*command, "--max-new-tokens", "9"]) == 0
    assert "--max-new-tokens" not in capsys.readouterr().err


def test_a_warning_is_printed_as_a_sentence(folder, capsys, monkeypatch):
    def warn(*_):
        warnings.warn("mind this.", stacklevel=1)

    monkeypatch.setattr("holdfast.cli.serve.generate._refuse_without_effect", warn)
    assert main(generate(folder, "--user", "hello")) == 0
    assert capsys.readouterr().err.startswith("holdfast: mind this.\n")


# The model


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
