"""Ten thousand conversations of a 70 B model on a Ray cluster of 1 to 64 engines, simulated.

Real: the shares that Ray's actors are given (`holdfast.integrations.ray.actor.Shares`), the head's
process, which takes every record, writes it and reads the run at the end, and its memory.
Simulated: the engines. A turn of theirs takes what the roofline of scaling.py says of four H100
GPUs, at best and at worst, for so many conversations side by side; records are those that the
default model plays, under other numbers, and come when an engine would have ended them. What Ray
itself takes, and loading the weights, is left out.

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
SIDE_BY_SIDE = (48, 512, 6144)  # conversations of all engines: `drift --batch`, of which 48 is ours
PLAYED = 24  # conversations, whose records stand for all
TOKENS = Path(__file__).parent / "results" / "scaling.json"
(MODEL,) = (model for model in MODELS if model.name == "70 B")
(GPU,) = (gpu for gpu in GPUS if gpu.name.startswith("H100"))


@dataclass(frozen=True)
class Engine:
    """Seconds of a turn: everybody's prompt is read, then everybody's reply drawn."""

    tokens: Tokens
    rounds: int
    bound: Bound

    @property
    def fits(self) -> int:
        """Rows whose keys and values fit beside the weights."""
        free = MEMORY_USED * GPU.memory * MODEL.gpus - MODEL.weight_bytes
        return int(free / (MODEL.token_bytes * self.tokens.context))

    def turn(self, conversations: int) -> float:
        turns = 2 * self.rounds
        together = MODEL.gpus * self.bound.parallel
        flops = GPU.flops * self.bound.flops * together
        bandwidth = GPU.bandwidth * self.bound.bandwidth * together
        read = conversations * self.tokens.prefilled / turns
        seconds = read * MODEL.flops(self.tokens.context / 2) / flops
        left = conversations * self.tokens.replies / turns  # rows; a probe is a row of its own
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
        """When each conversation of a share ends; one joins at the turn after another ended."""
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
    """Each conversation's end, in order, as `RayModel.work` hands them out."""
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
    """`Replicas` whose conversations come when simulated engines end them."""

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
    """What the head's process takes: of time for each record, and of memory."""
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
    """A row for each number of engines and of conversations side by side."""
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
