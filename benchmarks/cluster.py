"""Simulates 10,000 conversations of a 70 B model on a Ray cluster of 1 to 64 engines.

Real: the process of the command, which holds the conversations, scores their probes and writes
every record, with an engine that gives recorded replies at once; and its memory. Simulated: the
engines. One of their turns takes as long as the roofline of scaling.py gives for four H100 GPUs, in
the best and the worst case, for that many concurrent conversations. As on Ray, a conversation
begins as soon as one has ended, on the engine that holds the fewest. Ray's own overhead and loading
the weights are left out.

    python benchmarks/cluster.py --out benchmarks/results/cluster.json
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import itertools
import json
import tempfile
import time
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from growth import memory
from scaling import BOUNDS, GPUS, MEMORY_USED, MODELS, Bound, Tokens
from stamp import measured_on, write_json

import holdfast
from holdfast import Reply, Request, drift

ENGINES = (1, 2, 4, 8, 16, 32, 64)
REPLY_TOKENS = "150"
SIDE_BY_SIDE = (48, 512, 6144)  # concurrent conversations of all engines (`--batch`; default: 48)
PLAYED = 24  # conversations whose replies are used for all
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


def ending_times(engines: int, conversations: int, batch: int, engine: Engine) -> Iterator[float]:
    """When each conversation ends, in order; `batch` of them run at once on all engines."""
    left = iter(range(conversations))
    turns_left: list[list[int]] = [[] for _ in range(engines)]  # of the conversations each holds
    joining: list[list[int]] = [[] for _ in range(engines)]  # with their next turn
    turns_ending: list[tuple[float, int]] = []  # when an engine's turn ends

    def begin(now: float) -> None:
        """Starts the next conversation on the engine that holds the fewest."""
        if next(left, None) is None:
            return
        index = min(range(engines), key=lambda n: len(turns_left[n]) + len(joining[n]))
        joining[index].append(2 * engine.rounds)
        if not turns_left[index]:
            start_turn(index, now)

    def start_turn(index: int, now: float) -> None:
        turns_left[index] += joining[index]
        joining[index].clear()
        if turns_left[index]:
            heapq.heappush(turns_ending, (now + engine.turn(len(turns_left[index])), index))

    for _ in range(batch):
        begin(0.0)
    while turns_ending:
        now, index = heapq.heappop(turns_ending)
        after = [turns - 1 for turns in turns_left[index]]
        turns_left[index] = [turns for turns in after if turns]
        ended = len(after) - len(turns_left[index])
        start_turn(index, now)
        for _ in range(ended):
            yield now
            begin(now)


@dataclass(frozen=True)
class Recorded:
    """A model that returns recorded replies at once."""

    model: holdfast.LocalModel
    replies: Iterator[Reply]

    independent: ClassVar[bool] = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def session(self) -> Recorded:
        return self

    async def __aenter__(self) -> Recorded:
        return self

    async def __aexit__(self, *error: object) -> None:
        pass

    async def generate(self, request: Request) -> Reply:
        await asyncio.sleep(0)
        return next(self.replies)

    def forget(self, thread: Hashable) -> None:
        pass


def replies_of(model: holdfast.LocalModel, conversations: int, rounds: int) -> list[Reply]:
    """The replies of some conversations."""
    replies: list[Reply] = []

    @dataclass(frozen=True)
    class Keeping(Recorded):
        def session(self) -> Any:
            engine = self.model.session()
            generate = engine.generate

            async def keeping(request: Request) -> Reply:
                replies.append(await generate(request))
                return replies[-1]

            engine.generate = keeping
            return engine

    with tempfile.TemporaryDirectory() as folder:
        settings = drift.Settings(rounds, conversations)
        drift.run(Keeping(model, iter(())), drift.load_suite("core"), folder, settings)
    return replies


def head(conversations: int, rounds: int) -> dict:
    """Measures the command's process: time per conversation, and memory."""
    model = holdfast.load("default")
    suite = drift.load_suite("core")
    recorded = Recorded(model, itertools.cycle(replies_of(model, PLAYED, rounds)))
    settings = drift.Settings(rounds, conversations, batch=SIDE_BY_SIDE[-1])
    with tempfile.TemporaryDirectory() as folder:
        before = memory("VmRSS")
        began = time.perf_counter()
        drift.run(recorded, suite, Path(folder) / "run", settings)
        seconds = time.perf_counter() - began
        size = (Path(folder) / "run" / "records.jsonl").stat().st_size
    return {
        "conversations": conversations,
        "seconds_per_record": seconds / conversations,
        "records_per_second": conversations / seconds,
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
        for now in ending_times(engines, conversations, batch, engine):
            clock = max(clock, now) + per_record
            end = now
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
    tokens = Tokens(**counted["tokens"][REPLY_TOKENS])
    rounds = counted["rounds"]
    measured = head(arguments.conversations, rounds)
    print(json.dumps(measured), flush=True)
    record = {
        "benchmark": "cluster",
        "measured_on": measured_on(holdfast.load("default")),
        "model": MODEL.name,
        "gpus": f"{MODEL.gpus} x {GPU.name}",
        "reply_tokens": int(REPLY_TOKENS),
        "fits": Engine(tokens, rounds, BOUNDS[0]).fits,
        "head": measured,
        "simulated": simulated(
            arguments.conversations, tokens, rounds, measured["seconds_per_record"]
        ),
    }
    if arguments.out:
        write_json(record, arguments.out)


if __name__ == "__main__":
    main()
