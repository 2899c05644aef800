"""Connections of clients that send their requests slowly, or not to the end."""

import socket
import time
from collections.abc import Iterator

import httpx2
import pytest
from served import RunningServer, served
from tiny import model

from holdfast.serve import connections
from holdfast.serve.limits import RequestLimits

LIMITS = RequestLimits(tokens=16, header_seconds=0.3, upload_seconds=0.3)
LINE = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with served(model(), LIMITS) as running:
        yield running


def connected(server: RunningServer) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=10)
    connection.settimeout(0.05)
    return connection


def answer_to_drops(connection: socket.socket, seconds: float, drop: bytes) -> tuple[bytes, float]:
    """The answer to a client that sends a few bytes now and then, and when it was disconnected."""
    start, received = time.monotonic(), b""
    while time.monotonic() - start < seconds:
        try:
            if not (part := connection.recv(4096)):
                break
            received += part
        except TimeoutError:
            pass
        except ConnectionError:
            break
        try:
            connection.sendall(drop)
        except ConnectionError:
            break
    return received, time.monotonic() - start


@pytest.mark.parametrize("data", [b"", b"GET /hea", LINE], ids=["nothing", "a line", "headers"])
def test_headers_that_do_not_arrive_end_the_connection(server, data):
    with connected(server) as connection:
        connection.sendall(data)
        received, seconds = answer_to_drops(connection, 8, b"a: b\r\n" if data == LINE else b"")
    assert 0.2 < seconds < 4
    assert received.startswith(b"HTTP/1.1 408 ")
    assert b"The headers did not arrive within 0.3 s" in received


def test_headers_of_a_second_request_have_the_same_limit(server):
    with connected(server) as connection:
        connection.sendall(LINE + b"\r\n" + LINE)
        received, seconds = answer_to_drops(connection, 8, b"a: b\r\n")
    assert received.startswith(b"HTTP/1.1 200 ") and b"HTTP/1.1 408 " in received
    assert seconds < 4


@pytest.mark.slow
def test_a_body_that_does_not_arrive_is_refused(server):
    with connected(server) as connection:
        connection.sendall(POST % b"/v1/chat/completions" + b"Content-Length: 900\r\n\r\n{")
        received, seconds = answer_to_drops(connection, 8, b" ")
    assert b"408 " in received and b"The body did not arrive within 0.3 s" in received
    assert seconds < 8


@pytest.mark.parametrize("path", [b"/nowhere", b"/health", b"/v1/chat/completions"])
def test_a_body_that_no_route_reads_does_not_hold_the_connection(server, path, monkeypatch):
    monkeypatch.setattr(connections, "_GRACE", 0.3)
    with connected(server) as connection:
        connection.sendall(POST % path + b"Content-Length: 900\r\n\r\n{")
        _, seconds = answer_to_drops(connection, 8, b" ")
    assert seconds < 4


@pytest.mark.slow
def test_an_ordinary_client_may_pause_between_its_requests(server):
    with httpx2.Client(base_url=server.url) as client:
        for _ in range(2):
            assert client.get("/health").status_code == 200
            time.sleep(1.0)  # longer than the limit for headers
        body = {"messages": [{"role": "user", "content": "hello there"}], "max_tokens": 16}
        assert client.post("/v1/chat/completions", json=body).status_code == 200
