"""A real HTTP server on loopback that speaks the OpenAI chat protocol, well or badly."""

import contextlib
import http.server
import json
import threading
import time
import traceback

import pytest

from holdfast import methods
from holdfast.errors import ModelError

CHAT = ({"role": "system", "content": "Rhyme."}, {"role": "user", "content": "Hello."})
KEY = "sk-test-0123456789abcdef"
NO_SUCH_ADDRESS = (404, {}, '{"detail": "Not Found"}')


class _Http(http.server.ThreadingHTTPServer):
    request_queue_size = 256  # a connection that finds no place tries again after a second

    def __init__(self, endpoint):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.endpoint = endpoint


class _Handler(http.server.BaseHTTPRequestHandler):
    """Sends what its server's endpoint answers."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # in two packets, an answer would wait for the client's acknowledgement

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, headers, text = self._answer(body)
        if body.get("stream") and status == 200:
            headers, text = {"Content-Type": "text/event-stream", **headers}, streamed(text)
        self._reply(status, headers, text)

    def do_GET(self):
        if self.path == "/v1/steering":
            self._reply(*self.server.endpoint._answer_about_steering())
        else:
            self._reply(*self._answer(None))

    def _answer(self, body):
        return self.server.endpoint._serve(body, self.path, self.headers["Authorization"])

    def _reply(self, status, headers, text):
        content = text.encode()
        with contextlib.suppress(ConnectionError):  # a client that gave up waiting
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            self.wfile.flush()  # here, as the handler's own flush would raise the error

    def log_message(self, *_):
        pass


class Server:
    """A chat endpoint whose `answer(body, number)` returns (status, headers, text) for the
    number-th request.

    `steering(number)` answers the number-th question whether it steers, which does not count as a
    request; an ordinary endpoint has no such address.
    """

    def __init__(self, answer, steering=lambda number: NO_SUCH_ADDRESS):
        self.asked_for_steering, self._steering = 0, steering
        self.bodies, self.keys, self.paths, self.times = [], [], [], []
        self.under_way = self.most_under_way = 0
        self._answer, self._lock = answer, threading.Lock()
        self._http = _Http(self)
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self):
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._http.shutdown()
        self._http.server_close()

    def _answer_about_steering(self):
        self.asked_for_steering += 1
        return self._steering(self.asked_for_steering)

    def _serve(self, body, path, key):
        with self._lock:
            self.bodies.append(body)
            self.paths.append(path)
            self.keys.append(key)
            self.times.append(time.monotonic())
            number = len(self.bodies)
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            return self._answer(body, number)
        finally:
            with self._lock:
                self.under_way -= 1


def completion(text="Arr.", reason="stop", usage=None, **message):
    message = {"role": "assistant", "content": text, **message}
    answer = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
    }
    return 200, {}, json.dumps(answer | ({"usage": usage} if usage else {}))


def streamed(text):
    """A completion as server-sent events, word by word; any other text is returned unchanged."""
    try:
        answer = json.loads(text)
        (choice,) = answer["choices"]
    except (ValueError, KeyError):
        return text
    message, tokens = choice["message"], choice.get("holdfast", {}).get("tokens")
    words = (message["content"] or "").split(" ")
    pieces = [word + " " for word in words[:-1]] + words[-1:]
    data = {name: answer[name] for name in ("holdfast",) if name in answer}
    chunks = []
    for number, piece in enumerate(pieces):
        delta = {**message, "content": piece} if number == 0 else {"content": piece}
        steering = {"holdfast": {"tokens": tokens[number : number + 1]}} if tokens else {}
        chunks.append(({"index": 0, "delta": delta, "finish_reason": None, **steering}, data))
        data = {}
    chunks.append(({"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}, {}))
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "tiny"}
    events = [json.dumps({**head, "choices": [choice], **data}) for choice, data in chunks]
    return "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"])


def refusal(status, message, code=None, headers=None):
    return (
        status,
        headers or {},
        json.dumps({"error": {"message": message, "type": "error", "code": code}}),
    )


def steering(fingerprint="abc", default="none", offered=None):
    """The answer to `GET /v1/steering`."""
    offered = methods.schema() if offered is None else offered
    info = {"methods": offered, "default": default, "fingerprint": fingerprint}
    return lambda number: (200, {}, json.dumps(info))


def as_steered(body, number, masses=(0.25, 0.75)):
    """An answer like that of `holdfast serve`."""
    if body is None:
        return 200, {}, json.dumps({"object": "list", "data": [{"id": "tiny"}]})
    method = body.get("steering", "boost:factor=9")  # the server's default, if none is named
    info = {"steering": method, "applied": method != "none", "span": [[1, 3]], "round": 1}
    status, headers, text = completion("Oui, bien.")
    answer = {**json.loads(text), "holdfast": info}
    if body.get("trace"):
        tokens = [{"text": "Oui", "mass": mass, "uniform": 0.1} for mass in masses]
        answer["choices"][0]["holdfast"] = {"tokens": tokens}
    return status, headers, json.dumps(answer)


def failure_of(model, methods=()):
    """The message of the error; no part of the error may show the key."""
    with pytest.raises(ModelError) as excinfo:
        model.generate(CHAT, methods)
    assert KEY not in "".join(traceback.format_exception(excinfo.value)) + repr(model)
    message = str(excinfo.value)
    assert message.endswith(".") and message.isprintable() and len(message) < 600
    return message
