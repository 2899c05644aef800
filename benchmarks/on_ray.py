"""The cost of replicas on Ray: the same conversations without and with Ray, in turn.

- here: this process, one thread
- on Ray: one actor, and two actors, with a processor each

A repetition runs all three, in alternating order, so that they see the same conditions. The time to
start the actors is reported separately. Nodes, actors and this process share one machine, so the
cost of a network is not measured; requests and replies are a few kilobytes.

    python benchmarks/on_ray.py --out benchmarks/results/ray.json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from stamp import measured_on

import holdfast
from holdfast import drift
from holdfast.integrations.ray import Specification, connect
from holdfast.records import Run

PAIRS = {"ray, 1 actor": "here", "ray, 2 actors": "here"}


def seconds_of(play: Callable[[Path], Run]) -> tuple[float, dict]:
    """A run's duration, and its texts by conversation."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        records = play(Path(folder)).records
        seconds = time.perf_counter() - began
    texts = {row.conversation: [turn.text for turn in row.turns] for row in records}
    return seconds, texts


def main() -> None:
    import ray

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conversations", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = holdfast.load("default")
    suite = drift.load_suite("starter")
    settings = drift.Settings(conversations=arguments.conversations, rounds=arguments.rounds)
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  as of this process; 15 is Ray's own
    began = time.perf_counter()
    ray.init(num_cpus=3, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    cluster = time.perf_counter() - began
    starts = []

    def on_ray(count: int):
        began = time.perf_counter()
        started = connect(Specification("default", device="cpu"), "", count, processors=1)
        started.generate([{"role": "user", "content": "hello"}])
        starts.append({"actors": count, "seconds": time.perf_counter() - began})
        return started

    one_actor = on_ray(1)
    two_actors = on_ray(2)
    ways = {
        "here": lambda out: drift.run(model, suite, out, settings),
        "ray, 1 actor": lambda out: drift.run(one_actor, suite, out, settings),
        "ray, 2 actors": lambda out: drift.run(two_actors, suite, out, settings),
    }
    for play in ways.values():  # warm up
        seconds_of(play)
    rows = []
    differ = 0
    for number in range(arguments.repetitions):
        names = list(ways)[:: 1 if number % 2 == 0 else -1]
        results = {name: seconds_of(ways[name]) for name in names}
        rows.append({name: results[name][0] for name in ways})
        texts = [results[name][1] for name in ways]
        differ = max(differ, *(sum(texts[0][n] != other[n] for n in other) for other in texts))
        print(json.dumps(rows[-1]), flush=True)
    ratios = {name: [row[name] / row[peer] for row in rows] for name, peer in PAIRS.items()}
    result = {
        "benchmark": "ray",
        "measured_on": measured_on(model),
        "ray": ray.__version__,
        "conversations": arguments.conversations,
        "rounds": arguments.rounds,
        "start": {"cluster_seconds": cluster, "actors": starts},
        "repetitions": rows,
        "ratios": {
            name: {"median": statistics.median(values), "low": min(values), "high": max(values)}
            for name, values in ratios.items()
        },
        "conversations_that_differ": differ,
    }
    print(json.dumps(result["ratios"]))
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
