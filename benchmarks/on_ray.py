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
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from stamp import measured_on, write_json

import holdfast
from holdfast import drift
from holdfast.integrations.ray import Specification, connect
from holdfast.models.protocol import ChatModel
from holdfast.records import Run

if TYPE_CHECKING:
    from ray.cluster_utils import Cluster

# the settings without Ray
HERE = "here"
HALF = "here, half"
TWICE = "here, half, twice at once"

# opens the model of a setting
OpenModel = Callable[[], AbstractContextManager[ChatModel]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--conversations", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--as-other", action="store_true", help="as the process of 'twice at once'")
    arguments = parser.parse_args()
    model = holdfast.load(arguments.model)
    torch.set_num_threads(1)
    if arguments.as_other:
        play_on_signal(model, arguments)
    else:
        measure_settings(model, arguments)


def measure_settings(model: ChatModel, arguments: argparse.Namespace) -> None:
    """Runs all settings in each repetition, and writes the record after each."""
    started = time.perf_counter()
    cluster = start_cluster(max(arguments.nodes))
    cluster_seconds = time.perf_counter() - started
    settings: dict[str, OpenModel] = {HERE: lambda: nullcontext(model)}
    for count in arguments.nodes:
        settings[name_of(count)] = partial(connect_nodes, arguments.model, cluster.address, count)
    conditions = {
        "benchmark": "ray",
        "model": arguments.model,
        "measured_on": measured_on(model),
        "ray": version("ray"),
        "conversations": arguments.conversations,
        "rounds": arguments.rounds,
        "cluster_seconds": cluster_seconds,
    }
    repetitions: list[Repetition] = []
    for number in range(arguments.repetitions):
        names = list(settings) if number % 2 == 0 else list(reversed(settings))
        repetitions.append(repeat({name: settings[name] for name in names}, arguments))
        results = results_of(repetitions, arguments.nodes)
        print(json.dumps(results["repetitions"][-1]), flush=True)
        if arguments.out:
            write_json({**conditions, **results}, arguments.out)
    print(json.dumps(results["ratios"]))


def start_cluster(nodes: int) -> Cluster:
    """Starts a cluster of nodes with one processor each, and connects to it."""
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  as of this process; 15 is Ray's own
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(nodes):
        cluster.add_node(num_cpus=1)
    ray.init(cluster.address, logging_level="ERROR", log_to_driver=False)
    return cluster


def connect_nodes(name: str, address: str, count: int) -> AbstractContextManager[ChatModel]:
    """Starts an actor with the named model on this many nodes."""
    return connect(Specification(name, device="cpu"), address, count, processors=1)


@dataclass(frozen=True)
class Repetition:
    """One run in each setting.

    Attributes:
        seconds: of the run, by setting.
        start_seconds: until the model was ready, by setting.
        num_different: how many conversations differ from those without Ray, at most.
    """

    seconds: dict[str, float]
    start_seconds: dict[str, float]
    num_different: int


def repeat(settings: Mapping[str, OpenModel], arguments: argparse.Namespace) -> Repetition:
    """Runs the same conversations in every setting, in their order."""
    seconds: dict[str, float] = {}
    start_seconds = {}
    texts_by_setting = {}
    for name, open_model in settings.items():
        started = time.perf_counter()
        with open_model() as model:
            play(model, arguments.model, 2, 1)  # warm up
            start_seconds[name] = time.perf_counter() - started
            started = time.perf_counter()
            run = play(model, arguments.model, arguments.conversations, arguments.rounds)
            seconds[name] = time.perf_counter() - started
            if name == HERE:
                seconds[HALF] = play_half(model, arguments)
                seconds[TWICE] = play_half_twice(model, arguments)
        texts_by_setting[name] = texts_of(run)
    expected = texts_by_setting[HERE]
    num_different = max(
        sum(texts[number] != expected[number] for number in texts)
        for texts in texts_by_setting.values()
    )
    return Repetition(seconds, start_seconds, num_different)


def results_of(repetitions: Sequence[Repetition], nodes: Sequence[int]) -> dict:
    """The part of the record about the repetitions so far."""
    node_settings = [name_of(count) for count in nodes]
    columns = (HERE, HALF, TWICE, *node_settings)
    rows = [{name: repetition.seconds[name] for name in columns} for repetition in repetitions]
    return {
        "start_seconds": {
            name: statistics.median(repetition.start_seconds[name] for repetition in repetitions)
            for name in (HERE, *node_settings)
        },
        "repetitions": rows,
        "ratios": ratios_of(rows),
        "conversations_that_differ": max(repetition.num_different for repetition in repetitions),
    }


def ratios_of(rows: Sequence[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """By setting, the time of a run divided by that without Ray, over the repetitions."""
    ratios = {}
    for name in rows[0]:
        if name != HERE:
            values = [row[name] / row[HERE] for row in rows]
            ratios[name] = {
                "median": statistics.median(values),
                "low": min(values),
                "high": max(values),
            }
    return ratios


def name_of(count: int) -> str:
    """The name of a setting: '2 nodes'."""
    return f"{count} node{'s' if count > 1 else ''}"


def play(model: ChatModel, name: str, conversations: int, rounds: int) -> Run:
    """A drift run: self-chat on the default model, scripted user turns on real ones."""
    small = name == "default"
    sampling = holdfast.Sampling() if small else holdfast.Sampling(0.7, max_new_tokens=60)
    settings = drift.Settings(rounds, conversations, seed=0, sampling=sampling)
    cast = drift.Cast(user_turns=None if small else "everyday")
    suite = drift.load_suite("starter" if small else "everyday")
    with tempfile.TemporaryDirectory() as folder:
        run = drift.run(model, suite, Path(folder), settings, cast=cast)
        run.records  # noqa: B018  read before the folder goes
    return run


def play_half(model: ChatModel, arguments: argparse.Namespace) -> float:
    """Seconds for half of the conversations."""
    started = time.perf_counter()
    play(model, arguments.model, arguments.conversations // 2, arguments.rounds)
    return time.perf_counter() - started


def play_half_twice(model: ChatModel, arguments: argparse.Namespace) -> float:
    """Seconds until half of the conversations are done here and in another process."""
    command = [sys.executable, __file__, "--as-other", "--model", arguments.model]
    command += ["--conversations", str(arguments.conversations), "--rounds", str(arguments.rounds)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin and other.stdout
        other.stdout.readline()  # it is ready
        started = time.perf_counter()
        print(file=other.stdin, flush=True)
        play_half(model, arguments)
        other.stdout.readline()  # it has ended
        return time.perf_counter() - started


def play_on_signal(model: ChatModel, arguments: argparse.Namespace) -> None:
    """The other process of `play_half_twice`."""
    play(model, arguments.model, 2, 1)  # warm up
    print("ready", flush=True)
    sys.stdin.readline()
    play_half(model, arguments)
    print("done", flush=True)


def texts_of(run: Run) -> dict[int, list[str]]:
    """A run's texts, by conversation."""
    return {row.conversation: [turn.text for turn in row.turns] for row in run.records}


if __name__ == "__main__":
    main()
