"""How a run scales over the nodes of a Ray cluster: the same conversations without and with Ray.

- here: this process, with one thread
- here, half: the same with half of the conversations, which is what two nodes could reach at best:
  a step of half as many rows takes more than half of the time
- here, half, twice at once: that, while another process without Ray does the same; the two share
  the machine's memory bandwidth, as two nodes do
- N nodes: a cluster of nodes with one processor each, and an actor with one thread on every node

A repetition runs all of them, in alternating order, so that they see the same conditions. Starting
the nodes and actors, and loading the model, are not part of a run's time. Nodes, actors and this
process share one machine, so the cost of a network is not measured; requests and replies are a few
kilobytes. More nodes than the machine has processors show where scaling ends.

    python benchmarks/on_ray.py --model qwen-0.5b --conversations 96 --rounds 1 --nodes 1 2 4
        --repetitions 1 --out benchmarks/results/ray_qwen.json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch
from stamp import measured_on, write_json

import holdfast
from holdfast import drift
from holdfast.integrations.ray import Specification, connect
from holdfast.models.protocol import ChatModel
from holdfast.records import Run

HERE = "here"
HALF = "here, half"
TWICE = "here, half, twice at once"


def main() -> None:
    import ray
    from ray.cluster_utils import Cluster

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--conversations", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--as-other", action="store_true", help="as the process of 'twice at once'")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = holdfast.load(arguments.model)
    torch.set_num_threads(1)
    if arguments.as_other:
        play_on_signal(model, arguments)
        return
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  as of this process; 15 is Ray's own
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    began = time.perf_counter()
    cluster = Cluster(True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(max(arguments.nodes)):
        cluster.add_node(num_cpus=1)
    ray.init(cluster.address, logging_level="ERROR", log_to_driver=False)
    cluster_seconds = time.perf_counter() - began

    def on_nodes(count: int) -> Callable[[], AbstractContextManager[ChatModel]]:
        specification = Specification(arguments.model, device="cpu")
        return lambda: connect(specification, cluster.address, count, processors=1)

    ways: dict[str, Callable[[], AbstractContextManager[ChatModel]]] = {
        HERE: lambda: nullcontext(model)
    }
    ways |= {name_of(count): on_nodes(count) for count in arguments.nodes}
    rows = []
    starts: dict[str, list[float]] = {}
    num_different = 0
    for number in range(arguments.repetitions):
        names = list(ways)[:: 1 if number % 2 == 0 else -1]
        seconds_by_way = {}
        texts_by_way = {}
        for name in names:
            began = time.perf_counter()
            with ways[name]() as engine:
                play(engine, arguments.model, 2, 1)  # warm up
                starts.setdefault(name, []).append(time.perf_counter() - began)
                began = time.perf_counter()
                run = play(engine, arguments.model, arguments.conversations, arguments.rounds)
                seconds_by_way[name] = time.perf_counter() - began
                if name == HERE:
                    seconds_by_way[HALF] = play_half(engine, arguments)
                    seconds_by_way[TWICE] = play_half_twice(engine, arguments)
            texts_by_way[name] = texts_of(run)
        for texts in texts_by_way.values():
            different = sum(texts[key] != texts_by_way[HERE][key] for key in texts)
            num_different = max(num_different, different)
        rows.append(
            {name: seconds_by_way[name] for name in dict.fromkeys((HERE, HALF, TWICE, *ways))}
        )
        print(json.dumps(rows[-1]), flush=True)
        others = [name for name in rows[0] if name != HERE]
        ratios = {name: [row[name] / row[HERE] for row in rows] for name in others}
        record = {
            "benchmark": "ray",
            "model": arguments.model,
            "measured_on": measured_on(model),
            "ray": ray.__version__,
            "conversations": arguments.conversations,
            "rounds": arguments.rounds,
            "cluster_seconds": cluster_seconds,
            "start_seconds": {name: statistics.median(values) for name, values in starts.items()},
            "repetitions": rows,
            "ratios": {
                name: {
                    "median": statistics.median(values),
                    "low": min(values),
                    "high": max(values),
                }
                for name, values in ratios.items()
            },
            "conversations_that_differ": num_different,
        }
        if arguments.out:
            write_json(record, arguments.out)
    print(json.dumps(record["ratios"]))


def name_of(count: int) -> str:
    return f"{count} node{'s' if count > 1 else ''}"


def play(engine: ChatModel, name: str, conversations: int, rounds: int) -> Run:
    """A drift run: self-chat on the default model, scripted user turns on real ones."""
    small = name == "default"
    sampling = holdfast.Sampling() if small else holdfast.Sampling(0.7, max_new_tokens=60)
    settings = drift.Settings(rounds, conversations, seed=0, sampling=sampling)
    cast = drift.Cast(user_turns=None if small else "everyday")
    suite = drift.load_suite("starter" if small else "everyday")
    with tempfile.TemporaryDirectory() as folder:
        run = drift.run(engine, suite, Path(folder), settings, cast=cast)
        run.records  # noqa: B018  read before the folder goes
    return run


def play_half(engine: ChatModel, arguments: argparse.Namespace) -> float:
    """Seconds for half of the conversations."""
    began = time.perf_counter()
    play(engine, arguments.model, arguments.conversations // 2, arguments.rounds)
    return time.perf_counter() - began


def play_half_twice(engine: ChatModel, arguments: argparse.Namespace) -> float:
    """Seconds until half of the conversations are done here and in another process."""
    command = [sys.executable, __file__, "--as-other", "--model", arguments.model]
    command += ["--conversations", str(arguments.conversations), "--rounds", str(arguments.rounds)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin and other.stdout
        other.stdout.readline()  # it is ready
        began = time.perf_counter()
        print(file=other.stdin, flush=True)
        play_half(engine, arguments)
        other.stdout.readline()  # it has ended
        return time.perf_counter() - began


def play_on_signal(engine: ChatModel, arguments: argparse.Namespace) -> None:
    """The other process of `play_half_twice`."""
    play(engine, arguments.model, 2, 1)  # warm up
    print("ready", flush=True)
    sys.stdin.readline()
    play_half(engine, arguments)
    print("done", flush=True)


def texts_of(run: Run) -> dict[int, list[str]]:
    """A run's texts, by conversation."""
    return {row.conversation: [turn.text for turn in row.turns] for row in run.records}


if __name__ == "__main__":
    main()
