"""Measures the server under load: lost and mixed-up replies, memory, and speed.

Three measurements of a model, by default the bundled one, each of a server in a process of its own:

- soak: requests with mixed steering from 64 clients, some of which disconnect mid-reply. Each reply
  is compared with that of `model.generate_batch` to the same request ("twin" in the record), in
  float64, where rounding decides no token; the number of differing replies in float32 is reported
  too.
- memory: the server's resident memory after a first share of the requests and at the end, with
  little room for cached dialogs, so that the cache is full by then.
- speed: requests per second, and seconds to the first piece of text and between pieces, against
  `transformers serve`, plain and with its continuous batching, and against llama.cpp's own server
  on a GGUF file. All get the same unsteered requests, in alternation; idle servers are stopped
  (SIGSTOP) meanwhile. Replies are sampled, so the ratio is of tokens per second; with --long, the
  requests ask for texts that are longer than a reply may be, so that all servers write as much.

    pip install 'holdfast-llm[serve,benchmarks]'
    python benchmarks/serve.py --out benchmarks/results/serve.json
    python benchmarks/serve.py --model qwen-0.5b --dtype bfloat16 --requests 0 --per-phase 32
        --long --engines torch llama --peers transformers_continuous
        --llama-server /path/to/llama-server --out benchmarks/results/serve_qwen.json
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import httpx2
import psutil
from serve_clients import (
    TOKENS,
    ClientRequest,
    ClientResponse,
    random_requests,
    send_all,
    without_disconnecting,
)
from stamp import measured_on, write_json

import holdfast
from holdfast.models.checkpoint import find_source
from holdfast.models.local import LocalModel

CLIENTS = (1, 4, 16)
SOAK_CLIENTS = 64
DISCONNECTING = 0.15  # share of the soak's clients that disconnect
CACHE_BYTES = 64 * 2**20  # of keys and values that our server keeps for its dialogs
OURS = "holdfast"
OURS_ON_LLAMA = "holdfast_llama"  # with llama.cpp's kernels
OUR_NAMES = {"torch": OURS, "llama": OURS_ON_LLAMA}
PLAIN = "transformers"
CONTINUOUS = "transformers_continuous"
PEERS = (PLAIN, CONTINUOUS)
LLAMA = "llama_server"
SLOT_TOKENS = 2048  # of each of llama.cpp's slots, one per client


@dataclass(frozen=True)
class Server:
    """A running server.

    Args:
        process: the server's process.
        url: without `/v1`.
        health: the path that answers 200 when it is ready.
        model: the name under which it serves the model.
        log: what it printed.
    """

    process: subprocess.Popen
    url: str
    health: str
    model: str
    log: TextIO

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is not None:
            print(f"Ended with {self.process.returncode}:\n{self.last_lines()}", file=sys.stderr)
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def wait_until_ready(self) -> None:
        """Waits for up to two minutes; ends the benchmark if the server is not ready then."""
        for _ in range(600):
            if self.process.poll() is not None:
                break
            try:
                if httpx2.get(self.url + self.health).status_code == 200:
                    return
            except httpx2.TransportError:
                pass
            time.sleep(0.2)
        sys.exit(f"{self.process.args} is not ready:\n{self.last_lines()}")

    def pause(self) -> None:
        """Stops the process, so that it takes no processor time while it has nothing to do."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def last_lines(self) -> str:
        """The end of the server's output."""
        self.log.seek(0)
        return self.log.read()[-2000:]

    @property
    def resident(self) -> int:
        """Resident bytes of the server and its child processes."""
        process = psutil.Process(self.process.pid)
        return sum(part.memory_info().rss for part in [process, *process.children(recursive=True)])


def free_port() -> int:
    """A port that no server listens on."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def start(command: Sequence[str], health: str, model: str) -> Server:
    """Starts a server, with its default number of threads, and waits until it answers."""
    port = free_port()
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    environment.pop("OMP_NUM_THREADS", None)
    log = tempfile.TemporaryFile("w+")  # noqa: SIM115  (closed with the process that writes it)
    process = subprocess.Popen(
        [*command, "--port", str(port)], env=environment, stdout=log, stderr=subprocess.STDOUT
    )
    server = Server(process, f"http://127.0.0.1:{port}", health, model, log)
    server.wait_until_ready()
    return server


def serve_ours(model: str, *, dtype: str, engine: str = "torch") -> Server:
    """Starts `holdfast serve`."""
    command = [sys.executable, "-m", "holdfast", "serve", "--model", model, "--engine", engine]
    if engine == "torch":
        command += ["--dtype", dtype]
    command += ["--queue", "256", "--prefix-memory", str(CACHE_BYTES)]
    return start(command, "/ready", model)


def serve_peer(path: str, peer: str, *, dtype: str) -> Server:
    """Starts `transformers serve` on a checkpoint; `peer` is one of `PEERS`."""
    command = [str(Path(sys.executable).with_name("transformers")), "serve", path]
    command += ["--device", "cpu", "--dtype", dtype]
    if peer == CONTINUOUS:
        # by default it takes most of the memory for keys and values, of which it needs little
        command += ["--continuous-batching", "--cb-max-memory-percent", "0.3"]
    return start(command, "/health", path)


def serve_llama(binary: str, model: str) -> Server:
    """Starts llama.cpp's server on a GGUF file."""
    command = [binary, "--model", find_source(model).location, "--jinja", "--threads", "2"]
    slots = max(CLIENTS)
    command += ["--parallel", str(slots), "--ctx-size", str(slots * SLOT_TOKENS)]
    return start(command, "/health", model)


def send(
    server: Server, requests: Sequence[ClientRequest], clients: int, *, steers: bool
) -> list[ClientResponse]:
    """Sends requests from this many clients, and waits for all responses."""
    return asyncio.run(send_all(server.url, server.model, requests, clients, steers=steers))


def offline_replies(model: LocalModel, requests: Sequence[ClientRequest]) -> list[str]:
    """The replies of `generate_batch` to the same requests."""
    sampling = holdfast.Sampling(1.0, 0.9, TOKENS)
    batch = [
        holdfast.Request(request.messages, request.steering, sampling, request.seed)
        for request in requests
    ]
    return [reply.text for reply in model.generate_batch(batch)]


def compare_with_offline(responses: Sequence[ClientResponse], expected: Sequence[str]) -> dict:
    """How many clients were answered, how many disconnected, and how many of either received
    another text than the offline reply.
    """
    pairs = list(zip(responses, expected, strict=True))
    stayed = [(response, text) for response, text in pairs if not response.disconnected]
    left = [(response, text) for response, text in pairs if response.disconnected]
    return {
        "answered": sum(not response.error for response, _ in stayed),
        "left": len(left),
        "other_than_twin": sum(response.text != text for response, text in stayed),
        "left_other_than_twin": sum(not text.startswith(response.text) for response, text in left),
    }


def soak(name: str, count: int, dtype: str) -> dict:
    """Runs mixed requests of many clients: lost replies, mixed-up replies, and memory."""
    requests = random_requests(count, steered=True, disconnecting=DISCONNECTING)
    first_share = count // 5
    with serve_ours(name, dtype=dtype) as server:
        responses = send(server, requests[:first_share], SOAK_CLIENTS, steers=True)
        early = server.resident
        responses += send(server, requests[first_share:], SOAK_CLIENTS, steers=True)
        late = server.resident
        time.sleep(1)
        ready = httpx2.get(server.url + "/ready").status_code == 200
    expected = offline_replies(holdfast.load(name, dtype=dtype), requests)
    result = {
        "dtype": dtype,
        "requests": count,
        "clients": SOAK_CLIENTS,
        "kept_bytes_at_most": CACHE_BYTES,
        **compare_with_offline(responses, expected),
        "errors": [response.error for response in responses if response.error][:10],
        "busy_answers": sum(response.retries for response in responses),
        "megabytes_after_a_fifth": round(early / 2**20),
        "megabytes_at_the_end": round(late / 2**20),
        "ready_at_the_end": ready,
    }
    print(result, flush=True)
    return result


def throughput(responses: Sequence[ClientResponse], seconds: float, tokenizer) -> dict:
    """Throughput of one phase, and medians and 99th percentiles of a client's waiting times."""
    errors = [response.error for response in responses if response.error]
    if errors:
        sys.exit(f"{len(errors)} of {len(responses)} requests failed: {errors[0]}")
    texts = [response.text for response in responses]
    tokens = sum(len(ids) + 1 for ids in tokenizer(texts, add_special_tokens=False)["input_ids"])
    first = [response.first for response in responses if response.pieces]
    gaps = [
        (response.pieces[-1] - response.pieces[0]) / (len(response.pieces) - 1)
        for response in responses
        if len(response.pieces) > 1
    ]
    return {
        "requests_per_second": len(responses) / seconds,
        "tokens_per_second": tokens / seconds,
        "tokens_per_reply": tokens / len(responses),
        "first_piece_seconds": percentiles(first),
        "piece_seconds": percentiles(gaps),
    }


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """The median and the 99th percentile."""
    ordered = sorted(values)
    return {
        "p50": statistics.median(ordered),
        "p99": ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))],
    }


def checkpoint_of(model, folder: str) -> str:
    """The path from which transformers loads the model; a GGUF file is converted in `folder`."""
    path = model.hf_model.config._name_or_path
    if Path(path).is_dir():
        return path
    model.hf_model.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder


def start_all(
    stack: ExitStack, model: LocalModel, arguments: argparse.Namespace
) -> dict[str, Server]:
    """Starts our servers and the peers, which the stack ends; pauses each after a few requests."""
    dtype = arguments.dtype
    path = checkpoint_of(model, stack.enter_context(tempfile.TemporaryDirectory()))
    servers: dict[str, Server] = {}
    for engine in arguments.engines:
        ours = serve_ours(arguments.model, dtype=dtype, engine=engine)
        servers[OUR_NAMES[engine]] = stack.enter_context(ours)
    for peer in arguments.peers:
        servers[peer] = stack.enter_context(serve_peer(path, peer, dtype=dtype))
    if arguments.llama_server:
        llama = serve_llama(arguments.llama_server, arguments.model)
        servers[LLAMA] = stack.enter_context(llama)
    for server in servers.values():
        send(server, random_requests(4, steered=False, seed=99), 2, steers=False)
        server.pause()
    return servers


def speed(model: LocalModel, arguments: argparse.Namespace) -> dict:
    """Measures ours and the peers on the same requests, in alternation."""
    with ExitStack() as stack:
        servers = start_all(stack, model, arguments)
        rows = []
        for repetition in range(arguments.repetitions):
            order = list(servers)
            random.Random(repetition).shuffle(order)
            in_order = {name: servers[name] for name in order}
            for clients in CLIENTS:
                count = max(8, arguments.per_phase * clients // max(CLIENTS))
                requests = random_requests(
                    count, steered=False, seed=1 + repetition, long=arguments.long
                )
                row = speed_row(in_order, without_disconnecting(requests), clients, model.tokenizer)
                rows.append(row)
                print(json.dumps(row), flush=True)
    peers = [name for name in servers if name not in OUR_NAMES.values()]
    by_server = {
        ours: {str(clients): medians(rows, clients, ours, peers) for clients in CLIENTS}
        for ours in servers
        if ours not in peers
    }
    return {
        "dtype": arguments.dtype,
        "long_replies": arguments.long,
        "repetitions": arguments.repetitions,
        "rows": rows,
        "medians": by_server,
    }


def speed_row(
    servers: Mapping[str, Server], requests: Sequence[ClientRequest], clients: int, tokenizer
) -> dict:
    """Measures the throughput of one server after the other, on the same requests."""
    row: dict = {"clients": clients, "requests": len(requests)}
    for name, server in servers.items():
        server.resume()
        started = time.perf_counter()
        responses = send(server, requests, clients, steers=name in OUR_NAMES.values())
        row[name] = throughput(responses, time.perf_counter() - started, tokenizer)
        server.pause()
    return row


def medians(rows: Sequence[dict], clients: int, ours: str, peers: Sequence[str]) -> dict:
    """Medians over the repetitions with this many clients: of one of our servers, and divided by
    each peer.
    """
    rows = [row for row in rows if row["clients"] == clients]
    result = {
        "requests_per_second": statistics.median(row[ours]["requests_per_second"] for row in rows)
    }
    for key in ("first_piece_seconds", "piece_seconds"):
        result[key] = {
            percentile: statistics.median(row[ours][key][percentile] for row in rows)
            for percentile in ("p50", "p99")
        }
    for peer in peers:
        result[f"tokens_per_second_over_{peer}"] = statistics.median(
            row[ours]["tokens_per_second"] / row[peer]["tokens_per_second"] for row in rows
        )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--dtype", default="float32", help="in which speed is measured")
    parser.add_argument("--requests", type=int, default=1000, help="of the soak; 0 leaves it out")
    parser.add_argument("--per-phase", type=int, default=48, help="requests at 16 clients")
    parser.add_argument("--long", action="store_true", help="ask for replies of the full length")
    parser.add_argument(
        "--engines", nargs="+", default=["torch"], choices=tuple(OUR_NAMES), help="of our server"
    )
    parser.add_argument("--peers", nargs="*", default=PEERS, choices=PEERS)
    parser.add_argument("--llama-server", help="llama.cpp's binary, as another peer")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    model = holdfast.load(arguments.model, dtype=arguments.dtype)
    soaks = ("float64", "float32") if arguments.requests else ()
    result = {
        "benchmark": "serve",
        "model": arguments.model,
        "measured_on": measured_on(model),
        "soak": [soak(arguments.model, arguments.requests, dtype) for dtype in soaks],
        "speed": speed(model, arguments),
    }
    print(json.dumps(result["speed"]["medians"], indent=1))
    if arguments.out:
        write_json(result, arguments.out)


if __name__ == "__main__":
    main()
