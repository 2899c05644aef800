"""Shared fixtures, and the order of test files: the slowest first (`make test`)."""

import contextlib
import functools
import gc

import pytest
from chat_server import KEY, Server

# of `make test-all`, then of `make test`
SLOWEST = (
    "test_zhang2024.py test_drift.py test_serve_refusals.py test_rotary.py test_modern.py"
    " test_attention.py test_logs.py test_endpoint.py test_proxy_replies.py test_cli.py"
    " test_imports.py test_check_outages.py test_serve.py test_unscored.py test_proxy_requests.py"
    " test_endpoint_drift.py test_shared.py test_engine.py test_playground.py"
    " test_serve_constraints.py test_shards.py test_report_browser.py test_profiling.py"
    " test_proxy_retries.py test_approved.py test_replies_fixture.py test_report.py test_hold.py"
).split()


def pytest_collection_modifyitems(items):
    """Puts the slowest files first; the others keep their order."""
    ranks = {name: rank for rank, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: ranks.get(item.path.name, len(ranks)))


def pytest_collection_finish():
    """Keeps all that was imported out of the garbage collections that some tests ask for."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure():
    gc.unfreeze()


@pytest.fixture(scope="session", autouse=True)
def one_tls_context():
    """Clients share one context: each would spend 25 ms on certificates, and no server has any."""
    import httpcore2

    with pytest.MonkeyPatch.context() as patch:
        context = functools.cache(httpcore2.default_ssl_context)
        patch.setattr(httpcore2, "default_ssl_context", context)
        yield


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The tiny chat model on disk, which no test may change."""
    from tiny import model, tokenizer

    path = tmp_path_factory.mktemp("model")
    model().hf_model.save_pretrained(path)
    tokenizer().save_pretrained(path)
    return path


@pytest.fixture
def serve(monkeypatch):
    """serve(answer, *server_arguments, **options) -> (model, server)."""
    import holdfast

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with contextlib.ExitStack() as servers:

        def start(answer, *server_arguments, **options):
            server = servers.enter_context(Server(answer, *server_arguments))
            options = {"max_retries": 0, "timeout": 10, **options}
            return holdfast.connect(server.url, "tiny", **options), server

        yield start


@pytest.fixture
def suite(tmp_path):
    """The path of the suite that the tests of the proxy use."""
    from fake_upstream import SUITE

    path = tmp_path / "bot.yaml"
    path.write_text(SUITE)
    return str(path)
