"""Measures whether `--canary` distinguishes a server that cuts off the prompt from a model that
forgets it.

SmolLM2-135M-Instruct runs behind `holdfast serve`; between it and `holdfast drift` is a server that
shortens chats that do not fit, as some do: if one has more than LIMIT tokens, it silently passes on
only the last messages, up to half of the limit. The same conversations are also run without it.

    python benchmarks/truncation.py --out benchmarks/results/truncation_smollm2.json
"""

from __future__ import annotations

import argparse
import contextlib
import http.server
import json
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

from stamp import measured_on, write_json

import holdfast
from holdfast import drift
from holdfast.analysis.series import read_series
from holdfast.analysis.summary import summarise
from holdfast.models.connecting import connect
from holdfast.records import Conversation
from holdfast.report.context_section import truncation_lines

ROOT = Path(__file__).parent.parent
LIMIT = 400  # tokens of a chat
SETTINGS = drift.Settings(
    rounds=8,
    conversations=16,
    pairs="balanced",
    adoption=False,
    canary=True,
    sampling=holdfast.Sampling(temperature=0.7, top_p=0.9, max_new_tokens=60),
)


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """Runs `holdfast serve` with SmolLM2; yields its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "holdfast", "serve", "--model", "smollm2"]
    command += ["--dtype", "bfloat16", "--port", str(port)]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(240):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{url}/health", timeout=1).close()
                break
            time.sleep(0.5)
        else:
            raise SystemExit(f"{' '.join(command)} did not answer within two minutes.")
        yield url
    finally:
        server.terminate()
        server.wait()


Chat = list[dict[str, str]]


def shorten(messages: Chat, limit: int | None, tokenizer) -> Chat:
    """The last messages of a chat over the limit, up to half of it; any other chat as it is."""

    def length() -> int:
        return len(tokenizer.apply_chat_template(messages, return_dict=False))

    if limit is not None and length() > limit:
        while len(messages) > 1 and length() > limit // 2:
            messages = messages[1:]
    return messages


@contextlib.contextmanager
def shortening_proxy(upstream: str, limit: int | None) -> Iterator[str]:
    """Runs a server that passes on chats, and shortens those over the limit; yields its address."""
    tokenizer = holdfast.load("smollm2", dtype="bfloat16").tokenizer

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body["messages"] = shorten(body["messages"], limit, tokenizer)
            self._pass_on("/chat/completions", json.dumps(body).encode())

        def do_GET(self) -> None:
            if self.path.endswith("/models"):
                self._pass_on("/models", None)
            else:
                self._answer(404, b"{}")

        def _pass_on(self, path: str, data: bytes | None) -> None:
            headers = {"Content-Type": "application/json"}
            request = urllib.request.Request(f"{upstream}/v1{path}", data, headers)
            with urllib.request.urlopen(request, timeout=600) as answer:
                fields = json.loads(answer.read())
                fields.pop("holdfast", None)  # an ordinary server would not report steering
                self._answer(answer.status, json.dumps(fields).encode())

        def _answer(self, status: int, text: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{proxy.server_port}/v1"
    finally:
        proxy.shutdown()
        proxy.server_close()


def measure(url: str, limit: int | None, folder: Path) -> dict:
    """Runs the conversations behind a proxy with this limit; returns a row of the record."""
    suite = drift.load_suite(str(ROOT / "examples" / "small-model.yaml"))
    with shortening_proxy(url, limit) as address:
        model = connect(address, concurrency=16, timeout=600)
        cast = drift.Cast(user_turns="everyday")
        run = drift.run(model, suite, folder, SETTINGS, cast=cast)
    (series,) = read_series(run)
    (result,) = summarise(run).to_json()["results"]
    return {
        "limit": limit,
        "stability_by_round": [score["mean"] for score in result["by_round"]["stability"]],
        "canary_by_round": [
            canary_score(run.conversations, number) for number in range(1, SETTINGS.rounds + 1)
        ],
        "truncation": result["truncation"],
        "sentences": truncation_lines([series]),
    }


def canary_score(records: Sequence[Conversation], number: int) -> float:
    """The mean score of the canaries of a round."""
    probes = [probe for record in records for probe in record.probes]
    scores = [probe.score for probe in probes if probe.kind == "canary" and probe.round == number]
    return round(sum(scores) / len(scores), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=Path("runs/truncation"))
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows = []
    with serving() as url:
        for limit in (LIMIT, None):
            row = measure(url, limit, arguments.runs / f"limit-{limit}")
            rows.append(row)
            print(json.dumps(row, indent=1), flush=True)
    if arguments.out:
        record = {"benchmark": "truncation", "measured_on": measured_on(), "runs": rows}
        write_json(record, arguments.out)


if __name__ == "__main__":
    main()
