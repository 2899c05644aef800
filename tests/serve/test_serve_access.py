"""Bodies, sizes, keys, hosts and headers that the server accepts or refuses."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace

import httpx2
import pytest
from refused_requests import BRIEF, HELLO, LIMITS, error_of, post
from served import RunningServer, served
from tiny import model

from holdfast.serve.access import AccessRules
from holdfast.serve.limits import RequestLimits


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with served(model(), LIMITS) as running:
        yield running


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[1]", "an object, not a list"),
        (b'{"messages": NaN}', "not nan"),
        (b"[" * 40_000, "nested too deeply"),
        (b'{"n": ' + b"9" * 6_000 + b"}", "not JSON"),
        (b"\xff\xfe", "not JSON"),
    ],
)
def test_a_body_that_is_not_a_json_object_is_refused(url, content, expected):
    kind = {"Content-Type": "application/json"}
    answer = httpx2.post(f"{url}/v1/chat/completions", content=content, headers=kind)
    assert answer.status_code == 400 and expected in error_of(answer)["message"]


def test_bad_sizes_content_types_methods_and_paths_are_refused(url):
    address = f"{url}/v1/chat/completions"
    assert post(url, messages=[{"role": "user", "content": "a" * 16_500_000}]).status_code == 413

    def chunks():
        for _ in range(17_000):
            yield b" " * 1_000

    kind = {"Content-Type": "application/json"}
    assert httpx2.post(address, content=chunks(), headers=kind).status_code == 413
    assert post(url, messages=HELLO * 21).status_code == 400
    form = httpx2.post(address, content=b"{}", headers={"Content-Type": "text/plain"})
    assert form.status_code == 415 and error_of(form)["code"] == "unsupported_media_type"
    assert httpx2.get(address).status_code == 405
    assert error_of(httpx2.get(f"{url}/../../etc/passwd"))["type"] == "not_found_error"


def test_a_reply_that_takes_too_long_ends_with_an_error():
    slow = RequestLimits(tokens=400, seconds=0.05)
    endless = replace(model(), stop_ids=frozenset())
    with served(endless, slow) as running:
        body = {"messages": BRIEF, "max_tokens": 400, "temperature": 2}
        answer = post(running.url, **body)
        assert answer.status_code == 504 and error_of(answer)["code"] == "timeout"
        assert answer.headers["x-should-retry"] == "false"
        streamed = post(running.url, **body, stream=True).text.split("\n\n")
        last = json.loads(streamed[-2].removeprefix("data: "))
        assert last["error"]["code"] == "timeout"
        limit = time.monotonic() + 20
        while running.service.engine.open:
            assert time.monotonic() < limit
            time.sleep(0.01)


def test_the_api_key_is_required_and_compared_as_a_whole():
    with served(model(), LIMITS, gate=AccessRules("sk-right")) as running:
        address = f"{running.url}/v1/models"
        for header in ({}, {"Authorization": "Bearer sk-wrong"}, {"Authorization": "sk-right"}):
            answer = httpx2.get(address, headers=header)
            assert answer.status_code == 401 and error_of(answer)["code"] == "invalid_api_key"
            assert answer.headers["WWW-Authenticate"] == "Bearer"
        right = {"Authorization": "Bearer sk-right"}
        assert httpx2.get(address, headers=right).status_code == 200
        for path in ("/metrics", "/openapi.json", "/version", "/v1/steering", "/nowhere"):
            assert httpx2.get(running.url + path).status_code == 401
        assert httpx2.post(f"{running.url}/tokenize", json={}).status_code == 401
        for path in ("/health", "/", "/page/main.js"):  # the page asks its user for the key
            assert httpx2.get(running.url + path).status_code == 200
        assert "sk-" not in httpx2.get(f"{running.url}/metrics", headers=right).text


def test_a_server_without_a_key_answers_only_to_its_own_host_names():
    gate = AccessRules(hosts=("localhost", "127.0.0.1", "::1"))
    with served(model(), LIMITS, gate=gate) as running:
        for host, status in (
            *((host, 200) for host in ("localhost:8000", "127.0.0.1", "[::1]:8000")),
            *((host, 421) for host in ("evil.example", "127.0.0.1.evil.example:80", "")),
        ):
            answer = httpx2.get(f"{running.url}/health", headers={"Host": host})
            assert answer.status_code == status, host


def test_security_headers_are_sent_and_only_listed_sites_are_allowed(url):
    answer = httpx2.get(f"{url}/health", headers={"Origin": "https://evil.example"})
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in answer.headers and "server" not in answer.headers
    with served(model(), LIMITS, origins=["https://good.example"]) as running:
        for origin, allowed in (("https://good.example", True), ("https://evil.example", False)):
            preflight = {"Origin": origin, "Access-Control-Request-Method": "POST"}
            answer = httpx2.options(f"{running.url}/v1/chat/completions", headers=preflight)
            assert (answer.headers.get("access-control-allow-origin") == origin) is allowed
            answer = httpx2.get(f"{running.url}/health", headers={"Origin": origin})
            assert (answer.headers.get("access-control-allow-origin") == origin) is allowed
