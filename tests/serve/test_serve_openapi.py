"""The server behaves as its OpenAPI document describes."""

import itertools
import time
from collections.abc import Iterator

import hypothesis
import pytest
import schemathesis
from refused_requests import LIMITS
from schemathesis.specs.openapi.checks import positive_data_acceptance
from served import RunningServer, served
from tiny import model


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with served(model(), LIMITS) as running:
        yield running


POSTED = ("/v1/chat/completions", "/v1/responses", "/v1/completions", "/tokenize")
READ = (
    "/v1/models",
    "/v1/models/{name}",
    "/v1/steering",
    "/version",
    "/health",
    "/ready",
    "/metrics",
)
PATHS = [*(("post", path) for path in POSTED), *(("get", path) for path in READ)]

# a request without a body cannot be invalid
NEVER = {(*place, schemathesis.GenerationMode.NEGATIVE) for place in PATHS if place[0] == "get"}


@pytest.fixture(scope="module")
def openapi(url):
    return schemathesis.openapi.from_url(f"{url}/openapi.json")


def test_every_path_of_the_document_is_tried(openapi):
    described = openapi.raw_schema["paths"]
    assert {(method, path) for path in described for method in described[path]} == set(PATHS)


TRIED = [(*place, m) for place, m in itertools.product(PATHS, schemathesis.GenerationMode)]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path", "mode"), [case for case in TRIED if case not in NEVER])
def test_the_server_behaves_as_its_document_describes(openapi, method, path, mode):
    operation = openapi[path][method]

    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    @hypothesis.settings(
        max_examples=40,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    def check(case):
        start = time.monotonic()
        # fields that are valid may still conflict
        case.call_and_validate(excluded_checks=[positive_data_acceptance])
        assert time.monotonic() - start < LIMITS.seconds

    check()
