"""Measures the time that `holdfast proxy` adds to a stream, against a direct connection in turn.

The upstream is a server in another process that answers after a fixed time and then sends a piece
of text every tenth of a second. Every client opens its own connection and sends a chat of a few
turns, which the proxy edits (`reminder:every=2`) and whose reply it scores. In a block, all streams
begin within two seconds and are then open at the same time.

- "direct", "proxied": milliseconds from the request to the first piece of text
- "faults": a block in which one stream in four fails upstream: with an error, by closing in the
  middle of a reply or before it, or by never answering. It counts the streams with the same result
  as over a direct connection.

    python benchmarks/proxy.py --out benchmarks/results/proxy.json
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

from stamp import measured_on, write_record

FIRST_SECONDS = 0.3  # until the upstream sends the first piece of text
INTERVAL_SECONDS = 0.1  # between pieces
PIECES = 50
BEGIN_WITHIN = 2.0  # seconds in which all streams of a block begin
PATIENCE = 3.0  # seconds after which a client leaves if it has received nothing
METHOD = "reminder:every=2"
SYSTEM = "Reply in one sentence and sign as Tony."
SUITE = f"""
cases:
  - id: brief
    system_prompt: {SYSTEM}
    rules:
      - id: signs
        text: Sign as Tony.
        measure: {{regex: "Tony$"}}
      - id: short
        text: Reply in one sentence.
        measure: one_sentence
"""
HEALTHY = "healthy"
FAULTS = ("error", "closes-before", "closes-within", "silent")


def event(text: str | None) -> bytes:
    """A server-sent event of a chat completion, with a piece of its text or its end."""
    choice = {"index": 0, "delta": {"content": text}} if text else {"index": 0, "delta": {}}
    choice["finish_reason"] = None if text else "stop"
    return b"data: " + json.dumps({"id": "chat", "choices": [choice]}).encode() + b"\n\n"


def chunk(data: bytes) -> bytes:
    """A part of a body in HTTP's chunked encoding; an empty one ends the body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def serve_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers the requests of one connection to the upstream."""
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length:")[2].partition("\r\n")[0] or 0)
            body = await reader.readexactly(length)
            fault = json.loads(body)["user"] if body else HEALTHY
            if not await write_answer(writer, fault):
                break
    writer.close()


async def write_answer(writer: asyncio.StreamWriter, fault: str) -> bool:
    """Writes one answer, with a fault or `HEALTHY`; returns whether the connection stays open."""
    await asyncio.sleep(FIRST_SECONDS)
    if fault == "closes-before":
        return False
    if fault == "silent":
        await asyncio.sleep(3600)
    if fault == "error":
        refusal = b'{"error": {"message": "The model is loading."}}'
        head = f"HTTP/1.1 503 No\r\ncontent-length: {len(refusal)}\r\n\r\n"
        writer.write(head.encode() + refusal)
        return True
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
    writer.write(b"transfer-encoding: chunked\r\n\r\n")
    for number in range(PIECES):
        if fault == "closes-within" and number == PIECES // 2:
            return False
        writer.write(chunk(event(f"word{number} ")))
        await writer.drain()
        await asyncio.sleep(INTERVAL_SECONDS)
    writer.write(
        chunk(event("Tony")) + chunk(event(None)) + chunk(b"data: [DONE]\n\n") + chunk(b"")
    )
    await writer.drain()
    return True


async def serve_upstream(port: int) -> None:
    """Runs the upstream until the process ends."""
    server = await asyncio.start_server(serve_connection, "127.0.0.1", port, backlog=1024)
    async with server:
        await server.serve_forever()


@dataclass(frozen=True)
class Stream:
    """A stream as its client received it."""

    fault: str
    first: float | None  # seconds to the first piece of text
    status: int  # 0: none
    text: str  # the pieces of the reply, joined
    ended: bool  # whether the reply's last event came

    def is_like_direct(self) -> bool:
        """Whether the result is the same as over a direct connection.

        Where a direct connection ends without an answer, the proxy answers that it got none.
        """
        words = [f"word{number} " for number in range(PIECES)]
        if self.fault == HEALTHY:
            return self.ended and self.text == "".join(words) + "Tony"
        if self.fault == "closes-within":
            return not self.ended and self.text == "".join(words[: PIECES // 2])
        if self.fault == "silent":
            return self.status in (0, 504) and not self.text
        statuses = {"error": (503,), "closes-before": (0, 502)}[self.fault]
        return self.status in statuses and not self.text


def request(number: int, fault: str) -> bytes:
    """A chat of four rounds, as a client sends it."""
    messages = [{"role": "system", "content": SYSTEM}]
    for turn in range(4):
        question = f"Question {turn} of chat {number}: " + "what follows from that, then? " * 10
        messages.append({"role": "user", "content": question})
        messages.append({"role": "assistant", "content": "It depends on a number of things. Tony"})
    messages.append({"role": "user", "content": "Go on."})
    body = json.dumps({"model": "m", "messages": messages, "stream": True, "user": fault}).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def receive_stream(port: int, number: int, fault: str, wait: float) -> Stream:
    """Sends one client's request after a while, and receives the stream."""
    await asyncio.sleep(wait)
    first = None
    status = 0
    text = ""
    ended = False
    sent = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request(number, fault))
        async for line in _lines(reader):
            if line.startswith(b"HTTP/"):
                status = int(line.split()[1])
            elif line.startswith(b"data: {"):
                (choice,) = json.loads(line[6:])["choices"]
                if first is None:
                    first = time.perf_counter() - sent
                text += choice["delta"].get("content") or ""
                ended = ended or choice["finish_reason"] == "stop"
    except (ConnectionError, TimeoutError, asyncio.IncompleteReadError):
        pass
    writer.close()
    return Stream(fault, first, status, text, ended)


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while line := await asyncio.wait_for(reader.readline(), PATIENCE):
        yield line


def run_block(port: int, streams: int, seed: int, *, faulty: bool = False) -> list[Stream]:
    """Runs streams that are open at the same time; if `faulty`, one in four fails upstream."""
    draw = random.Random(seed)
    faults = [HEALTHY] * streams
    if faulty:
        for number in range(0, streams, 4):
            faults[number] = FAULTS[number // 4 % len(FAULTS)]
    waits = [draw.random() * BEGIN_WITHIN for _ in range(streams)]

    async def receive_all() -> list[Stream]:
        clients = enumerate(zip(faults, waits, strict=True))
        tasks = [receive_stream(port, number, fault, wait) for number, (fault, wait) in clients]
        return await asyncio.gather(*tasks)

    return asyncio.run(receive_all())


def free_port() -> int:
    """A port that no server listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@contextlib.contextmanager
def running(command: list[str], port: int) -> Iterator[None]:
    """Runs a server in a separate process; enters once it accepts connections."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with (
                contextlib.suppress(ConnectionError),
                socket.create_connection(("127.0.0.1", port)),
            ):
                break
            time.sleep(0.1)
        else:
            raise SystemExit(f"{' '.join(command)} does not accept connections.")
        yield
    finally:
        process.terminate()
        process.wait()


def measure(streams: int, repeats: int) -> dict:
    """Measures the numbers of the record."""
    ports = {"direct": free_port(), "proxied": free_port()}
    with running_servers(ports["direct"], ports["proxied"]):
        for port in ports.values():
            run_block(port, 20, 0)  # first requests import and connect
        rows = []
        for repeat in range(repeats):
            names = list(ports) if repeat % 2 else list(reversed(ports))
            blocks = {name: run_block(ports[name], streams, repeat) for name in names}
            row = {name: {**_times(block), **_as_direct(block)} for name, block in blocks.items()}
            rows.append(row)
            print(rows[-1], flush=True)
        faulty = {
            name: run_block(port, streams, repeats, faulty=True) for name, port in ports.items()
        }
    return {
        "streams": streams,
        "method": METHOD,
        "added_ms": _added(rows, "median_ms"),
        "added_p95_ms": _added(rows, "p95_ms"),
        "rows": rows,
        "faults": {name: _as_direct(block) for name, block in faulty.items()},
    }


@contextlib.contextmanager
def running_servers(upstream: int, proxy: int) -> Iterator[None]:
    """Runs the upstream and the proxy before it, at these ports."""
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder) / "suite.yaml"
        suite.write_text(SUITE)
        command = [sys.executable, "-m", "holdfast", "proxy", "--suite", str(suite)]
        command += ["--upstream", f"http://127.0.0.1:{upstream}"]
        command += ["--method", METHOD, "--port", str(proxy)]
        with (
            running([sys.executable, __file__, "--upstream", str(upstream)], upstream),
            running(command, proxy),
        ):
            yield


def _added(rows: list[dict], name: str) -> dict:
    """How much the proxy adds to a time of a direct connection, over the repetitions."""
    added = [row["proxied"][name] - row["direct"][name] for row in rows]
    return {
        "median": round(statistics.median(added), 2),
        "range": [round(min(added), 2), round(max(added), 2)],
    }


def _times(streams: list[Stream]) -> dict:
    """The median and 95th percentile of the milliseconds to the first piece of text."""
    firsts = [1000 * stream.first for stream in streams if stream.first is not None]
    p95 = statistics.quantiles(firsts, n=20)[-1]
    return {"median_ms": round(statistics.median(firsts), 2), "p95_ms": round(p95, 2)}


def _as_direct(streams: list[Stream]) -> dict:
    """By fault, how many streams there are, and how many end as over a direct connection."""
    counts = {}
    for fault in sorted({stream.fault for stream in streams}):
        of_fault = [stream for stream in streams if stream.fault == fault]
        counts[fault] = {
            "streams": len(of_fault),
            "as_direct": sum(stream.is_like_direct() for stream in of_fault),
        }
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--upstream", type=int, metavar="PORT", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.upstream is not None:
        return asyncio.run(serve_upstream(arguments.upstream))
    record = {**measure(arguments.streams, arguments.repeats), "measured_on": measured_on()}
    write_record(record, arguments.out)


if __name__ == "__main__":
    main()
