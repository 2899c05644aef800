"""Simulates 10,000 conversations of a 70 B model on a Ray cluster of 1 to 64 engines.

Real: the shares that Ray's actors are given (`holdfast.integrations.ray.actor.Shares`); the head's
process, which receives and writes every record and reads the run at the end; and its memory.
Simulated: the engines. One of their turns takes as long as the roofline of scaling.py gives for
four H100 GPUs, in the best and the worst case, for that many concurrent conversations; records are
those of the default model under new numbers, and arrive when an engine would have finished them.
Ray's own overhead and loading the weights are left out.

    python benchmarks/cluster.py --out benchmarks/results/cluster.json
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from growth import memory
from scaling import BOUNDS, GPUS, MEMORY_USED, MODELS, Bound, Tokens
from stamp import measured_on

import holdfast
from holdfast import drift
from holdfast.integrations.ray.actor import Shares
from holdfast.models.replicas import Listener, Local, Work

ENGINES = (1, 2, 4, 8, 16, 32, 64)
REPLY_TOKENS = "150"
SIDE_BY_SIDE = (48, 512, 6144)  # concurrent conversations of all engines (`--batch`; default: 48)
PLAYED = 24  # conversations whose records are used for all
TOKENS = Path(__file__).parent / "results" / "scaling.json"
(MODEL,) = (model for model in MODELS if model.name == "70 B")
(GPU,) = (gpu for gpu in GPUS if gpu.name.startswith("H100"))


@dataclass(frozen=True)
class Engine:
    """Models the seconds of a turn: all prompts are prefilled, then all replies are decoded."""

    tokens: Tokens
    rounds: int
    bound: Bound

    @property
    def fits(self) -> int:
        """How many rows' keys and values fit beside the weights."""
        free = MEMORY_USED * GPU.memory * MODEL.gpus - MODEL.weight_bytes
        return int(free / (MODEL.token_bytes * self.tokens.context))

    def turn(self, conversations: int) -> float:
        turns = 2 * self.rounds
        together = MODEL.gpus * self.bound.parallel
        flops = GPU.flops * self.bound.flops * together
        bandwidth = GPU.bandwidth * self.bound.bandwidth * together
        read = conversations * self.tokens.prefilled / turns
        seconds = read * MODEL.flops(self.tokens.context / 2) / flops
        left = conversations * self.tokens.replies / turns  # rows; each probe is a separate row
        while left > 0:
            rows = min(left, self.fits)
            row_bytes = MODEL.token_bytes * self.tokens.context
            step = max(
                (MODEL.weight_bytes + rows * row_bytes) / bandwidth,
                rows * MODEL.flops(self.tokens.context) / flops,
            )
            seconds += step * self.tokens.generated / self.tokens.replies
            left -= rows
        return seconds

    def ends(self, share: Sequence[int], side_by_side: int, now: float) -> Iterator[tuple]:
        """When each conversation of a share ends; a waiting one joins a turn after another ends."""
        waiting, running = deque(share), dict[int, int]()
        while waiting or running:
            while waiting and len(running) < side_by_side:
                number = waiting.popleft()
                running[number] = 2 * self.rounds
            now += self.turn(len(running))
            for number in list(running):
                running[number] -= 1
                if not running[number]:
                    del running[number]
                    yield now, number


def played(
    engines: int, conversations: Sequence[int], batch: int, engine: Engine
) -> Iterator[tuple[float, int]]:
    """The end of each conversation, in order, with shares assigned as by `RayModel.work`."""
    side_by_side = -(-batch // engines)
    shares = Shares(conversations, side_by_side, engines)
    order, going = itertools.count(), []

    def begin(now: float) -> None:
        if share := shares.next():
            ends = engine.ends(share, side_by_side, now)
            heapq.heappush(going, (*next(ends), next(order), ends))

    for _ in range(engines):
        begin(0.0)
    while going:
        now, number, _, ends = heapq.heappop(going)
        yield now, number
        following = next(ends, None)
        if following is None:
            begin(now)
        else:
            heapq.heappush(going, (*following, next(order), ends))


class Cluster:
    """`Replicas` whose conversations arrive when simulated engines finish them."""

    def __init__(self, model: Any, plan: Callable[[Sequence[int]], Iterator[tuple[float, int]]]):
        self.model, self.plan = model, plan
        self.seconds: list[float] = []  # of the head, for each record
        self.waited = 0.0  # simulated time at which the head is done

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(self.model, *arguments)

    def work(self, work: Work, units: Mapping[int, Any], listener: Listener) -> None:
        kept: list[tuple] = []
        some = {number: units[number] for number in list(units)[:PLAYED]}
        Local(self.model).work(work, some, Listener(lambda number, outcome: kept.append(outcome)))
        for now, number in self.plan(list(units)):
            record, traces = kept[number % len(kept)]
            copy = json.loads(json.dumps(record)) | {"conversation": number}
            began = time.perf_counter()
            listener.outcome(number, (copy, traces))
            listener.over(number)
            self.seconds.append(time.perf_counter() - began)
            self.waited = max(self.waited, now) + self.seconds[-1]


def head(conversations: int, engine: Engine) -> dict:
    """Measures the head's process: time per record, and memory."""
    model, suite = holdfast.load("default"), drift.load_suite("core")
    cluster = Cluster(model, lambda numbers: played(64, numbers, SIDE_BY_SIDE[-1], engine))
    settings = drift.Settings(engine.rounds, conversations)
    with tempfile.TemporaryDirectory() as folder:
        drift.run(model, suite, Path(folder) / "warm", drift.Settings(1, 2))
        before = memory("VmRSS")
        began = time.perf_counter()
        drift.run(cluster, suite, Path(folder) / "run", settings)
        seconds = time.perf_counter() - began
        size = (Path(folder) / "run" / "records.jsonl").stat().st_size
    return {
        "conversations": conversations,
        "seconds_per_record": sum(cluster.seconds) / len(cluster.seconds),
        "records_per_second": len(cluster.seconds) / sum(cluster.seconds),
        "bytes_per_record": size / conversations,
        "peak_bytes_per_record": (memory("VmHWM") - before) / conversations,
        "peak_bytes": memory("VmHWM"),
        "seconds": seconds,
    }


def simulated(conversations: int, tokens: Tokens, rounds: int, per_record: float) -> list[dict]:
    """Simulates each number of engines and of concurrent conversations, one row each."""
    rows = []
    for bound, batch, engines in itertools.product(BOUNDS, SIDE_BY_SIDE, ENGINES):
        engine = Engine(tokens, rounds, bound)
        clock = end = 0.0
        for now, _ in played(engines, range(conversations), batch, engine):
            clock, end = max(clock, now) + per_record, now
        row = {"bound": bound.name, "side_by_side": batch, "engines": engines}
        rows.append(row | {"engines_done": end, "head_done": clock})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conversations", type=int, default=10_000)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    counted = json.loads(TOKENS.read_text())
    tokens, rounds = Tokens(**counted["tokens"][REPLY_TOKENS]), counted["rounds"]
    taken = head(arguments.conversations, Engine(tokens, rounds, BOUNDS[0]))
    print(json.dumps(taken), flush=True)
    record = {
        "benchmark": "cluster",
        "measured_on": measured_on(holdfast.load("default")),
        "model": MODEL.name,
        "gpus": f"{MODEL.gpus} x {GPU.name}",
        "reply_tokens": int(REPLY_TOKENS),
        "fits": Engine(tokens, rounds, BOUNDS[0]).fits,
        "head": taken,
        "simulated": simulated(
            arguments.conversations, tokens, rounds, taken["seconds_per_record"]
        ),
    }
    if arguments.out:
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
