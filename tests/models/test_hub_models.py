"""Models named as on the hub: names that are refused, an unreachable hub, and the cache."""

import shutil
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from holdfast.errors import ModelError, NoSuchModel
from holdfast.models.checkpoint import Source, require_on_hub
from holdfast.models.loading import load


@pytest.fixture
def folder(folder, tmp_path) -> Path:
    """A copy of the tiny model to break."""
    return Path(shutil.copytree(folder, tmp_path / "model"))


def refusal(name: str | Path, error: type[Exception] = ModelError, **options) -> str:
    with pytest.raises(error) as excinfo:
        load(str(name), **options)
    message = str(excinfo.value)
    assert "\n" not in message and len(message) < 500 and message[-1] in ".?", message
    return message


@pytest.mark.parametrize("name", ("bad name!!", "a/b/c", " ", "a--b", "-a", "x" * 5000))
def test_a_name_that_the_hub_cannot_have_is_refused(name):
    message = refusal(name)
    assert name[:90] in message and "owner/name" in message


@pytest.mark.parametrize("offline", (True, False))
def test_a_model_that_cannot_be_found_is_named(monkeypatch, offline):
    import huggingface_hub.constants
    import transformers

    def unreachable(*_, **__):
        raise OSError("We couldn't connect to 'https://huggingface.co'")

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", unreachable)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", offline)
    monkeypatch.setattr("holdfast.models.loading.hub_silence", str)
    message = refusal("no/such-model")
    assert "'no/such-model'" in message and ("HF_HUB_OFFLINE" in message) == offline


@pytest.fixture
def unreachable_hub(monkeypatch, tmp_path):
    """A hub at a closed port, and an empty cache."""
    import huggingface_hub.constants

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", url)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))


def test_an_unreachable_hub_is_reported_once(unreachable_hub, caplog, capfd):
    started = time.monotonic()
    message = refusal("some/model")
    assert time.monotonic() - started < 15  # the client's own retries take a minute
    assert "hub" in message and "'some/model'" in message
    assert "refused" in message.lower()
    assert "Retrying" not in caplog.text + "".join(capfd.readouterr())


@pytest.mark.slow
def test_a_model_in_the_cache_is_loaded_without_the_hub(folder, unreachable_hub, tmp_path):
    repo = tmp_path / "cache" / "models--some--model"
    shutil.copytree(folder, repo / "snapshots" / "0123")
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text("0123")
    with pytest.warns(UserWarning, match=r"'some/model' .*cache") as warned:
        assert load("some/model", device="cpu").name == "some/model"
    assert sum("cache" in str(warning.message) for warning in warned) == 1


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """hub(status, code): a stand-in for the hub, which gives this answer about every file."""
    import huggingface_hub.constants as constants

    servers = []

    def start(status, code):
        class Hub(BaseHTTPRequestHandler):
            def do_HEAD(self):
                self.send_response(status)
                self.send_header("X-Error-Code", code)
                self.send_header("X-Error-Message", "gated" if code == "GatedRepo" else code)
                self.send_header("ETag", "1")
                self.send_header("X-Repo-Commit", "0123")
                self.send_header("Content-Length", "2")
                self.end_headers()

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        files = "{repo_id}/resolve/{revision}/{filename}"
        url = f"http://127.0.0.1:{server.server_port}/{files}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url)

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "code", "error", "words"),
    [
        (404, "RepoNotFound", NoSuchModel, "the hub has no model of this name"),
        (401, "RepoNotFound", NoSuchModel, "the hub has no model of this name"),
        (404, "EntryNotFound", NoSuchModel, "has no config.json"),
        (403, "GatedRepo", ModelError, "hf auth login"),
    ],
)
def test_a_name_that_the_hub_refuses_is_refused_before_anything_is_loaded(
    hub, status, code, error, words
):
    hub(status, code)
    with pytest.raises(error, match="some/model") as caught:
        require_on_hub(Source("some/model", "some/model"))
    assert words in str(caught.value)


@pytest.mark.parametrize("status", [200, 503])
def test_a_name_that_the_hub_knows_or_cannot_answer_for_is_left_to_the_loader(hub, status):
    hub(status, "")
    require_on_hub(Source("some/model", "some/model"))  # raises nothing


def test_a_gated_model_says_how_to_log_in(monkeypatch):
    import transformers

    def gated(*_, **__):
        raise OSError("You are trying to access a gated repo.\nMake sure to have access to it")

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", gated)
    assert "hf auth login" in refusal("some/model")
