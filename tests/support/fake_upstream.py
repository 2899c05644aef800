"""A server on loopback that answers with exactly the bytes that a test gives, and a proxy to it."""

import contextlib
import json
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openai
from served import PromptServer

from holdfast.drift.suites import load_suite
from holdfast.methods import parse, spec_of
from holdfast.proxy.forwarding import Forwarding
from holdfast.proxy.proxy_app import PageTitle, proxy_app, uvicorn_config
from holdfast.proxy.proxy_metrics import ProxyMetrics
from holdfast.proxy.relay import ChatRelay
from holdfast.proxy.suite_middleware import SuiteMiddleware
from holdfast.proxy.tally import Tally, TallyCounts
from holdfast.proxy.upstream import Upstream
from holdfast.serve.server import bind

SUITE = """
cases:
  - id: brief
    system_prompt: Reply in one sentence and sign as Tony.
    rules:
      - id: signs
        text: Sign as Tony.
        measure: {regex: "Tony$"}
      - id: short
        text: Reply in one sentence.
        measure: one_sentence
"""
SYSTEM = "Reply in one sentence and sign as Tony."
KEY = "sk-test-0123456789abcdef"
EVERY = 'reminder:every=1,text="Be brief."'


@dataclass
class ReceivedRequest:
    """A request as it arrived."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


Answer = Callable[[ReceivedRequest, "Writer"], None]


class Writer:
    """Writes an answer to the connection, piece by piece."""

    def __init__(self, handler: socketserver.StreamRequestHandler):
        self._file, self.connection = handler.wfile, handler.connection

    def raw(self, data: bytes) -> None:
        self._file.write(data)
        self._file.flush()

    def head(self, status: str, *headers: str) -> None:
        self.raw("\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode())

    def whole(self, status: str, body: bytes, *headers: str) -> None:
        self.head(status, *headers, f"Content-Length: {len(body)}")
        self.raw(body)

    def chunk(self, data: bytes) -> None:
        self.raw(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def client_is_gone(self, seconds: float = 10) -> bool:
        """Waits for the client to close the connection."""
        self.connection.settimeout(seconds)
        try:
            return self.connection.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False


class FakeUpstream:
    """Answers every request by `answer(request, writer)`; if that is False, the connection ends."""

    def __init__(self, answer: Answer):
        self.requests: list[ReceivedRequest] = []
        self.answer = answer
        upstream = self

        class Handler(socketserver.StreamRequestHandler):
            disable_nagle_algorithm = True

            def handle(self):
                with contextlib.suppress(ConnectionError):
                    while (request := _read(self.rfile)) is not None:
                        upstream.requests.append(request)
                        if upstream.answer(request, Writer(self)) is False:
                            return

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 256  # connections that wait to be accepted; others may be reset


def _read(file) -> ReceivedRequest | None:
    line = file.readline().decode().strip()
    if not line:
        return None
    headers = []
    while header := file.readline().decode("latin-1").strip():
        name, _, value = header.partition(":")
        headers.append((name, value.strip()))
    request = ReceivedRequest(line, headers, b"")
    if request.header("transfer-encoding") == "chunked":
        while size := int(file.readline(), 16):
            request.body += file.read(size)
            file.readline()
        file.readline()
    else:
        request.body = file.read(int(request.header("content-length") or 0))
    return request


@dataclass
class Proxied:
    """A running proxy."""

    url: str
    tally: Tally
    forwarding: Forwarding = field(repr=False)

    @property
    def counts(self) -> TallyCounts:
        """The counts so far."""
        return self.tally.counts()

    def settle(self) -> None:
        """Waits until no request is open and every reply is scored."""
        wait_until(lambda: not self.forwarding.open and not self.forwarding.scoring.waiting)


@contextlib.contextmanager
def proxied(
    upstream: str,
    suite: str,
    method: str = "none",
    *,
    timeout: float = 10,
    log: Path | None = None,
) -> Iterator[Proxied]:
    """Runs a proxy in a thread of the test's process."""
    middleware = SuiteMiddleware(load_suite(suite, probed=False), parse(method))
    tally = Tally()
    metrics = ProxyMetrics(tally, middleware.rules)
    forwarding = Forwarding(Upstream(upstream, timeout), ChatRelay(middleware, tally, log), metrics)
    title = PageTitle(upstream, spec_of(parse(method)), "bot")
    app = proxy_app(forwarding, metrics, middleware, tally, title, ("127.0.0.1",))
    bound = bind("127.0.0.1", 0)
    server = PromptServer(uvicorn_config(app))
    thread = threading.Thread(target=server.run, args=([bound],))
    thread.start()
    wait_until(lambda: server.started or not thread.is_alive())
    try:
        yield Proxied(f"http://127.0.0.1:{bound.getsockname()[1]}", tally, forwarding)
    finally:
        server.should_exit = True
        thread.join()
        forwarding.close()


@contextlib.contextmanager
def through(
    answer: Answer, suite: str, method: str = "none", **options: Any
) -> Iterator[tuple[FakeUpstream, Proxied]]:
    """A fake upstream, and a proxy to it."""
    with FakeUpstream(answer) as upstream, proxied(upstream.url, suite, method, **options) as proxy:
        yield upstream, proxy


def wait_until(holds: Callable[[], bool], seconds: float = 20) -> None:
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.005)


def completion(text: str | None = "Fine. Tony", finish="stop", **message) -> bytes:
    """A chat completion."""
    choice = {"index": 0, "finish_reason": finish}
    choice["message"] = {"role": "assistant", "content": text, **message}
    return json.dumps({"id": "c1", "object": "chat.completion", "choices": [choice]}).encode()


def chunks(*pieces: str, finish: str | None = "stop") -> list[bytes]:
    """The events of a streamed chat completion."""
    deltas = [({"content": piece}, None) for piece in pieces]
    deltas += [({}, finish)] if finish else []
    events = [
        {
            "id": "c1",
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        }
        for delta, reason in deltas
    ]
    done = [b"data: [DONE]\n\n"] if finish else []
    return [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events] + done


def response(text="Fine. Tony", status="completed", **fields) -> dict:
    """An answer of the Responses API."""
    message = {
        "type": "message",
        "role": "assistant",
        "id": "m1",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }
    return {"id": "r1", "object": "response", "status": status, "output": [message], **fields}


def reply_json(body: bytes) -> Answer:
    """Answers every request with this JSON."""
    return lambda request, writer: writer.whole("200 OK", body, "Content-Type: application/json")


def reply_events(*events: bytes) -> Answer:
    """Answers every request with these events."""

    def answer(request, writer):
        writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        for event in events:
            writer.chunk(event)
        writer.raw(b"0\r\n\r\n")

    return answer


def in_turn(*answers: Answer) -> Answer:
    """Answers each request by the next of these."""
    remaining = iter(answers)
    return lambda request, writer: next(remaining)(request, writer)


def client(proxy, **options) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{proxy.url}/v1", api_key=KEY, max_retries=0, **options)


def user(text, *before):
    return [{"role": "system", "content": SYSTEM}, *before, {"role": "user", "content": text}]


def counts(proxy):
    """The replies that kept each rule at each turn, and all that were scored by it."""
    proxy.settle()
    return {(row.cell.rule, row.cell.turn): (row.kept, row.scored) for row in proxy.counts.rules}
