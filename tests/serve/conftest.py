"""Servers, and the client of one, which the tests of a file share.

A file that needs another server has a fixture of the same name.
"""

from collections.abc import Iterator

import openai
import pytest
from served import RunningServer, client_of, served
from tool_models import calling_model

from holdfast.models.loading import load
from holdfast.serve.limits import RequestLimits


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with served(load("default"), RequestLimits(tokens=400), queue=8) as running:
        yield running


@pytest.fixture(scope="module")
def url(server) -> str:
    return server.url


@pytest.fixture(scope="module")
def client(server) -> openai.OpenAI:
    return client_of(server)


@pytest.fixture(scope="module")
def tool_server() -> Iterator[RunningServer]:
    """A server of a tiny model that calls tools."""
    with served(calling_model(), RequestLimits(tokens=400)) as running:
        yield running
