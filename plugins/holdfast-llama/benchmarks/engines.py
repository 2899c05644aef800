"""The drift loop and a single chat, on one GGUF file: Holdfast's own engine and llama.cpp.

    python plugins/holdfast-llama/benchmarks/engines.py --out llama_engines.json
    python plugins/holdfast-llama/benchmarks/engines.py --conversations 4 --rounds 2 --repetitions 1
    python plugins/holdfast-llama/benchmarks/engines.py --server /path/to/llama-server

In each repetition the engines take turns, each in a process of its own, whose peak of memory is
then that engine's. All have the same seeds and the same limit of tokens per reply. Replies differ
by rounding, and so in length, so the time per token is reported beside the time. With --server,
llama.cpp's own server is another engine, with 16 slots, asked through its API; its processor time
and memory are those of the server's process.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("GOMP_SPINCOUNT", "10000")  # as the command line does, before torch

ROOT = Path(__file__).parents[3]
# the engines
OURS = "torch"
PLUGIN = "llama"
SERVER = "llama-server"
SLOTS = 16  # of llama.cpp's server
SLOT_TOKENS = 4096  # that a slot has room for
SETTINGS = ("model", "suite", "conversations", "rounds", "max_new_tokens", "threads", "seed")
CHAT = [
    {"role": "system", "content": "You are a helpful assistant. Answer in three sentences."},
    {"role": "user", "content": "How do I keep a small garden alive through a dry summer?"},
]


class Server(NamedTuple):
    """A running server of llama.cpp."""

    pid: int
    url: str  # of its API


class Cost(NamedTuple):
    """The time that an act took."""

    seconds: float  # on the clock
    cpu_seconds: float  # of processor time, of all threads


def load(engine: str, model: str, threads: int, url: str) -> Any:
    """Loads the model in an engine.

    Args:
        url: the address of llama.cpp's server, if that is the engine.
    """
    import torch

    torch.set_num_threads(threads)
    if engine == SERVER:
        from holdfast.models.connecting import connect

        return connect(url, concurrency=SLOTS, timeout=600)
    if engine == PLUGIN:
        from holdfast_llama.model import load as load_llama

        return load_llama(model, threads=threads)
    import holdfast

    return holdfast.load(model)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Runs the loop and one chat with an engine in this process; returns what they took."""
    from holdfast import drift

    warnings.simplefilter("ignore")  # of sizes
    started = time.perf_counter()
    model = load(arguments.only, arguments.model, arguments.threads, arguments.url)
    seconds_to_load = time.perf_counter() - started
    suite = drift.load_suite(arguments.suite)
    texts, loop = costs(lambda: play_dialogs(model, suite, arguments), arguments.pid)
    tokens = count_tokens(texts, arguments.model)
    reply, chat = costs(lambda: answer_chat(model, arguments.max_new_tokens), arguments.pid)
    chat_tokens = count_tokens([reply], arguments.model)
    return {
        "engine": arguments.only,
        "seconds_to_load": round(seconds_to_load, 2),
        "seconds": round(loop.seconds, 2),
        "cpu_seconds": round(loop.cpu_seconds, 2),
        "tokens": tokens,
        "ms_per_token": round(1000 * loop.seconds / tokens, 3),
        "cpu_ms_per_token": round(1000 * loop.cpu_seconds / tokens, 3),
        "chat_ms_per_token": round(1000 * chat.seconds / chat_tokens, 3),
        "chat_cpu_ms_per_token": round(1000 * chat.cpu_seconds / chat_tokens, 3),
        "peak_mb": peak_of(arguments.pid),
    }


def costs(act: Callable[[], Any], pid: int | None) -> tuple[Any, Cost]:
    """Returns the result of an act, and what it took of the time of a process (see `cpu_of`)."""
    cpu_before = cpu_of(pid)
    started = time.perf_counter()
    result = act()
    seconds = time.perf_counter() - started
    return result, Cost(seconds, cpu_of(pid) - cpu_before)


def play_dialogs(model: Any, suite: Any, arguments: argparse.Namespace) -> list[str]:
    """Makes a drift run; returns the texts that the model wrote in it."""
    import holdfast
    from holdfast import drift

    settings = drift.Settings(
        rounds=arguments.rounds,
        conversations=arguments.conversations,
        seed=arguments.seed,
        user_prompt="suite",
        sampling=holdfast.Sampling(temperature=0.7, max_new_tokens=arguments.max_new_tokens),
    )
    with tempfile.TemporaryDirectory() as folder:
        records = drift.run(model, suite, folder, settings).records
    texts = [turn.text for record in records for turn in record.turns[1:]]
    return texts + [probe.reply for record in records for probe in record.probes]


def answer_chat(model: Any, max_new_tokens: int) -> str:
    """Returns the reply to a chat, which is alone in its batch."""
    import holdfast
    from holdfast.models.requests import Request

    greedy = holdfast.Sampling(0, max_new_tokens=max_new_tokens)
    (reply,) = model.generate_batch([Request(CHAT, sampling=greedy)])
    return reply.text


def count_tokens(texts: list[str], model: str) -> int:
    """The number of generated tokens: those of the texts, and one end token each."""
    tokenizer = tokenizer_of(model)
    return sum(len(tokenizer(text, add_special_tokens=False).input_ids) + 1 for text in texts)


@cache
def tokenizer_of(model: str) -> Any:
    """The file's tokenizer, as transformers reads it."""
    from holdfast.models.checkpoint import find_source
    from holdfast.models.gguf_tokenizer import read_tokenizer

    gguf = find_source(model).gguf
    assert gguf is not None, f"{model} is no GGUF file"
    return read_tokenizer(gguf)


def cpu_of(pid: int | None) -> float:
    """Seconds of processor time that a process has taken, of all its threads; None: this one."""
    if pid is None:
        return time.process_time()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_of(pid: int | None) -> int:
    """Megabytes that a process had at most."""
    status = Path(f"/proc/{pid or 'self'}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) // 1024


@contextmanager
def running_server(binary: str, model: str, threads: int) -> Iterator[Server]:
    """Runs llama.cpp's server on the file within this context."""
    from holdfast.models.checkpoint import find_source

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [binary, "-m", find_source(model).location, "--port", str(port), "--jinja"]
    command += ["-np", str(SLOTS), "-c", str(SLOTS * SLOT_TOKENS), "-t", str(threads)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            await_health(f"http://127.0.0.1:{port}/health", process)
            yield Server(process.pid, f"http://127.0.0.1:{port}/v1")
        finally:
            process.terminate()


def await_health(url: str, process: subprocess.Popen) -> None:
    """Waits up to 2 minutes for a server to answer."""
    for _ in range(600):
        try:
            return urllib.request.urlopen(url, timeout=10).close()
        except (urllib.error.URLError, ConnectionError):
            if process.poll() is not None:
                raise RuntimeError(f"The server ended with {process.returncode}.") from None
            time.sleep(0.2)
    raise TimeoutError(url)


def measure_in_process(engine: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Measures an engine in a process of its own; returns what the loop and the chat took."""
    command = [sys.executable, __file__, *sys.argv[1:], "--only", engine]
    if engine != SERVER:
        return result_of(command)
    with running_server(arguments.server, arguments.model, arguments.threads) as server:
        return result_of([*command, "--pid", str(server.pid), "--url", server.url])


def result_of(command: list[str]) -> dict[str, Any]:
    """Runs a command; returns the JSON that it prints as its last line."""
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def summary(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Returns the medians of each engine over the repetitions.

    Its times per token are also divided by those of our engine in the same repetition.
    """
    numbers = [name for name, value in rows[0].items() if isinstance(value, (int, float))]
    engines = dict.fromkeys(row["engine"] for row in rows)
    rows_of = {engine: [row for row in rows if row["engine"] == engine] for engine in engines}
    medians: dict[str, dict[str, float]] = {}
    for engine, engine_rows in rows_of.items():
        medians[engine] = {
            name: statistics.median(row[name] for row in engine_rows) for name in numbers
        }
        for name in ("ms_per_token", "cpu_ms_per_token", "chat_ms_per_token"):
            pairs = zip(engine_rows, rows_of[OURS], strict=True)
            ratios = [row[name] / ours[name] for row, ours in pairs]
            medians[engine][f"{name}_over_ours"] = round(statistics.median(ratios), 3)
    return medians


def read_arguments() -> argparse.Namespace:
    """Reads the command line, and the options that `measure_in_process` adds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="qwen-0.5b", help="a GGUF file, or its name")
    parser.add_argument("--suite", default="bots")
    parser.add_argument("--conversations", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--max-new-tokens", type=int, default=60)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--server", help="llama.cpp's llama-server, as another engine")
    parser.add_argument("--without-plugin", action="store_true", help="only ours and the server")
    parser.add_argument("--out", type=Path)
    for internal in ("--only", "--url"):
        parser.add_argument(internal, help=argparse.SUPPRESS)
    parser.add_argument("--pid", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def repeat(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Runs every engine once in each repetition; returns the rows of all."""
    engines: list[str] = [OURS, *([] if arguments.without_plugin else [PLUGIN])]
    engines += [SERVER] if arguments.server else []
    rows: list[dict[str, Any]] = []
    for number in range(arguments.repetitions):
        for engine in engines[:: -1 if number % 2 else 1]:  # neither is always the first
            rows.append({"repetition": number, **measure_in_process(engine, arguments)})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


def main() -> None:
    arguments = read_arguments()
    if arguments.only:
        print(json.dumps(measure(arguments)))
        return
    rows = repeat(arguments)
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from stamp import measured_on, write_record

    record = {
        "benchmark": "llama_engines",
        "measured_on": measured_on(),
        "llama-cpp-python": version("llama-cpp-python"),
        **{name: getattr(arguments, name) for name in SETTINGS},
        "medians": summary(rows),
        "rows": rows,
    }
    write_record(record, arguments.out)


if __name__ == "__main__":
    main()
