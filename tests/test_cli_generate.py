"""`holdfast generate` and the command line without or with a mistyped command."""

from __future__ import annotations

import io
import json

import pytest
from tiny import model, tokenizer

from holdfast.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("model")
    model().hf_model.save_pretrained(path)
    tokenizer().save_pretrained(path)
    return str(path)


def generate(folder: str, *more: str) -> list[str]:
    return ["generate", "--model", folder, "--max-new-tokens", "8", *more]


def test_alone_it_prints_the_help(capsys):
    assert main([]) == 0
    assert "holdfast drift" in capsys.readouterr().out


def test_a_mistyped_command_gets_its_neighbour(capsys):
    assert main(["drfit"]) == 2
    assert (
        capsys.readouterr().err == "holdfast: There is no command 'drfit'; did you mean 'drift'?\n"
    )


@pytest.mark.parametrize(
    ("more", "expected"),
    (
        (["--user", "hello", "--method", "boost:factor=2"], ["boost:factor=2", "--system"]),
        (["--user", "hello there", "--emphasis", "there"], ["--method"]),
        (["--user", "hello *there*", "--marks"], ["--method"]),
        (
            [
                "--system",
                "a",
                "--user",
                "b",
                "--method",
                "boost:factor=2",
                "--method",
                "spotlight:target=0.3",
            ],
            ["boost:factor=2+spotlight:target=0.3"],
        ),
        (["--messages", "chat.json", "--user", "b"], ["--messages", "--user"]),
        (["--messages", "nowhere.json"], ["nowhere.json", "JSON"]),
    ),
)
def test_what_would_change_nothing_is_refused(folder, capsys, more, expected):
    assert main(generate(folder, *more)) == 2
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1 and all(part in printed for part in expected), printed


def test_asterisks_without_marks_are_told(folder, capsys):
    assert main(generate(folder, "--user", "hello *there*")) == 0
    assert "--marks" in capsys.readouterr().err
    assert main(generate(folder, "--user", "2 * 3")) == 0
    assert capsys.readouterr().err == ""


def test_a_chat_from_a_file_or_from_the_standard_input(folder, tmp_path, capsys, monkeypatch):
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


@pytest.mark.parametrize("text", ("[", "{}", "3", '[{"role": "user"}]', "[" * 100_000))
def test_a_file_that_is_no_chat_gets_one_sentence(folder, tmp_path, capsys, text):
    (tmp_path / "chat.json").write_text(text)
    assert main(generate(folder, "--messages", str(tmp_path / "chat.json"))) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_warning_is_a_sentence(folder, capsys, monkeypatch):
    import warnings

    from holdfast.cli import generate as command

    monkeypatch.setattr(
        command, "_check_effect", lambda *_: warnings.warn("mind this.", stacklevel=1)
    )
    assert main(generate(folder, "--user", "hello")) == 0
    assert capsys.readouterr().err == "holdfast: mind this.\n"


def test_device_map_dtype_and_batch_size_reach_the_model(folder, capsys, monkeypatch):
    from holdfast.models import loading

    loaded, load = [], loading.load
    monkeypatch.setattr(loading, "load", lambda *a, **k: loaded.append(load(*a, **k)) or loaded[-1])
    options = ["--device-map", "auto", "--dtype", "bfloat16", "--batch-size", "3"]
    assert main(generate(folder, "--user", "hello", *options)) == 0
    assert capsys.readouterr().out
    (chosen,) = loaded
    assert (str(chosen.hf_model.dtype), chosen.batch_size) == ("torch.bfloat16", 3)

    assert main(generate(folder, "--user", "hello", "--device-map", "atuo")) == 2
    assert "no device map 'atuo'; did you mean 'auto'" in capsys.readouterr().err
    both = ["--device-map", "auto", "--device", "cpu"]
    assert main(generate(folder, "--user", "hello", *both)) == 2
    assert "not both" in capsys.readouterr().err
