"""A server for the playground that answers at once, and misbehaves on request."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from holdfast import methods
from holdfast.serve.access import SECURITY_HEADERS
from holdfast.serve.playground import page_files

KEY = "open-sesame"
OUT_OF_MEMORY = "The engine ran out of memory."
WORDS = [f" word{number}" for number in range(30)]


class _Handler(BaseHTTPRequestHandler):
    """Obeys `slow`, `refuse` and `break` in a message; while `locked`, it requires the key."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_GET(self):
        files = self.server.files
        if self.path in files:
            return self._send(200, files[self.path].body, files[self.path].media_type)
        if not self._has_key():
            return self._refuse(401, "The API key is missing or wrong.")
        if self.path == "/v1/models":
            return self._json(200, {"data": [{"id": "quick"}]})
        if self.path == "/v1/steering":
            layers, heads = self.server.shape
            info = {"methods": methods.schema(), "layers": layers, "heads": heads}
            return self._json(200, info | {"attention": True})
        return self._refuse(404, "There is nothing at this path.")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append(body)
        if not self._has_key():
            return self._refuse(401, "The API key is missing or wrong.")
        text = body["messages"][-1]["content"]
        if "refuse" in text:
            return self._refuse(400, "boost takes factor as at least 1, not 0.5.")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            self._stream(text, body.get("trace"))
        except OSError:
            self.server.left.set()
        self.close_connection = True

    def _stream(self, text, trace):
        layers, heads = self.server.shape
        for number, word in enumerate(WORDS):
            token = {"text": word, "mass": number / 100, "uniform": 0.1}
            if trace == "heads":
                token["heads"] = [[0.1] * heads] * layers
            choice = {"index": 0, "delta": {"content": word}, "holdfast": {"tokens": [token]}}
            self._event({"choices": [choice]})
            if "break" in text and number == 4:
                return self._event({"error": {"message": OUT_OF_MEMORY}})
            if "slow" in text:
                time.sleep(0.1)
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, value):
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
        self.wfile.flush()

    def _has_key(self):
        return not self.server.locked or self.headers.get("Authorization") == f"Bearer {KEY}"

    def _refuse(self, status, message):
        self._json(status, {"error": {"message": message, "code": None, "param": None}})

    def _json(self, status, value):
        self._send(status, json.dumps(value).encode(), "application/json")

    def _send(self, status, body, media_type):
        self.send_response(status)
        for name, value in SECURITY_HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class QuickServer(ThreadingHTTPServer):
    """Records request bodies and whether a client `left`; `shape` is its layers and heads."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files, self.bodies = page_files(), []
        self.left, self.locked, self.shape = threading.Event(), False, (2, 3)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/"


@contextmanager
def quick_server():
    """Runs the server inside the block."""
    server = QuickServer()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
