"""Simulates 10,000 conversations of a 70 B model on a Ray cluster of 1 to 64 engines.

Measured: the time and memory of the command's own process, which holds the conversations, scores
their probes and writes every record, with an engine that returns recorded replies at once.

Simulated: the engines. A turn takes them as long as the roofline model of scaling.py says for four
H100 GPUs, in the best and the worst case, with that many concurrent conversations. As on Ray, a
conversation begins as soon as another has ended, on the engine that has the fewest. Ray's own
overhead and loading the weights are left out.

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
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from growth import memory
from scaling import BOUNDS, GPUS, MEMORY_USED, MODELS, Bound, Tokens
from stamp import measured_on, write_json

import holdfast
from holdfast import Reply, Request, drift
from holdfast.models.protocol import Engine

ENGINES = (1, 2, 4, 8, 16, 32, 64)
REPLY_TOKENS = "150"
SIDE_BY_SIDE = (48, 512, 6144)  # concurrent conversations of all engines (`--batch`; default: 48)
RECORDED = 24  # conversations whose replies are used for all
TOKENS = Path(__file__).parent / "results" / "scaling.json"
(MODEL,) = (model for model in MODELS if model.name == "70 B")
(GPU,) = (gpu for gpu in GPUS if gpu.name.startswith("H100"))


# The engines, simulated


@dataclass(frozen=True)
class EngineSpeed:
    """How long a turn takes an engine: all prompts are prefilled, then all replies are decoded."""

    tokens: Tokens
    rounds: int
    bound: Bound

    @property
    def max_rows(self) -> int:
        """How many rows' keys and values fit beside the weights."""
        free = MEMORY_USED * GPU.memory * MODEL.gpus - MODEL.weight_bytes
        return int(free / (MODEL.token_bytes * self.tokens.context))

    def seconds_of_turn(self, conversations: int) -> float:
        """The seconds of one turn of this many conversations."""
        tokens = self.tokens
        turns = 2 * self.rounds
        effective_gpus = MODEL.gpus * self.bound.parallel
        flops = GPU.flops * self.bound.flops * effective_gpus
        bandwidth = GPU.bandwidth * self.bound.bandwidth * effective_gpus
        num_prefilled = conversations * tokens.prefilled / turns
        seconds = num_prefilled * MODEL.flops(tokens.context / 2) / flops
        row_bytes = MODEL.token_bytes * tokens.context
        tokens_per_reply = tokens.generated / tokens.replies
        remaining_rows = conversations * tokens.replies / turns  # each probe is a separate row
        while remaining_rows > 0:
            rows = min(remaining_rows, self.max_rows)
            step_seconds = max(
                (MODEL.weight_bytes + rows * row_bytes) / bandwidth,
                rows * MODEL.flops(tokens.context) / flops,
            )
            seconds += step_seconds * tokens_per_reply
            remaining_rows -= rows
        return seconds


@dataclass
class EngineLoad:
    """The conversations of one engine, each as the number of its turns that are left."""

    running: list[int] = field(default_factory=list)  # whose turn is being computed
    waiting: list[int] = field(default_factory=list)  # which join the next turn

    def __len__(self) -> int:
        return len(self.running) + len(self.waiting)


def ending_times(
    num_engines: int, conversations: int, batch: int, speed: EngineSpeed
) -> Iterator[float]:
    """Yields when each conversation ends, in order; `batch` of them run at once on all engines."""
    unstarted = iter(range(conversations))
    loads = [EngineLoad() for _ in range(num_engines)]
    turn_ends: list[tuple[float, int]] = []  # a heap of when turns end, and on which engine

    def begin_conversation(now: float) -> None:
        """Starts the next conversation, if there is one, on the engine that has the fewest."""
        if next(unstarted, None) is None:
            return
        index = min(range(num_engines), key=lambda index: len(loads[index]))
        loads[index].waiting.append(2 * speed.rounds)
        if not loads[index].running:
            begin_turn(index, now)

    def begin_turn(index: int, now: float) -> None:
        """Starts a turn of all conversations of an engine, if it has any."""
        load = loads[index]
        load.running += load.waiting
        load.waiting.clear()
        if load.running:
            heapq.heappush(turn_ends, (now + speed.seconds_of_turn(len(load.running)), index))

    for _ in range(batch):
        begin_conversation(0.0)
    while turn_ends:
        now, index = heapq.heappop(turn_ends)
        turns_left = [turns - 1 for turns in loads[index].running]
        loads[index].running = [turns for turns in turns_left if turns]
        begin_turn(index, now)
        for _ in range(turns_left.count(0)):
            yield now
            begin_conversation(now)


def simulated(conversations: int, tokens: Tokens, rounds: int, per_record: float) -> list[dict]:
    """Simulates each number of engines and of concurrent conversations, one row each.

    Args:
        per_record: how many seconds the command's process needs for a conversation.
    """
    rows = []
    for bound, batch, num_engines in itertools.product(BOUNDS, SIDE_BY_SIDE, ENGINES):
        speed = EngineSpeed(tokens, rounds, bound)
        engines_done = head_done = 0.0
        for now in ending_times(num_engines, conversations, batch, speed):
            head_done = max(head_done, now) + per_record
            engines_done = now
        row = {"bound": bound.name, "side_by_side": batch, "engines": num_engines}
        rows.append(row | {"engines_done": engines_done, "head_done": head_done})
        print(json.dumps(rows[-1]), flush=True)
    return rows


# The command's process, measured


class RecordingEngine:
    """The engine of a model, which collects its replies."""

    def __init__(self, engine: Engine, replies: list[Reply]):
        self.engine = engine
        self.replies = replies

    async def __aenter__(self) -> RecordingEngine:
        await self.engine.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.engine.__aexit__(*error)

    async def generate(self, request: Request) -> Reply:
        reply = await self.engine.generate(request)
        self.replies.append(reply)
        return reply

    def forget(self, thread: Hashable) -> None:
        self.engine.forget(thread)


class RecordedEngine:
    """An engine that returns recorded replies at once, whatever the request."""

    def __init__(self, replies: Sequence[Reply]):
        self.replies = itertools.cycle(replies)

    async def __aenter__(self) -> RecordedEngine:
        return self

    async def __aexit__(self, *error: object) -> None:
        pass

    async def generate(self, request: Request) -> Reply:
        await asyncio.sleep(0)
        return next(self.replies)

    def forget(self, thread: Hashable) -> None:
        pass


@dataclass(frozen=True)
class ModelWithEngine:
    """A model whose requests another engine answers."""

    model: holdfast.LocalModel
    engine: Engine

    independent: ClassVar[bool] = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def session(self) -> Engine:
        return self.engine


def record_replies(model: holdfast.LocalModel, conversations: int, rounds: int) -> list[Reply]:
    """Runs a few conversations; returns their replies."""
    replies: list[Reply] = []
    recording = ModelWithEngine(model, RecordingEngine(model.session(), replies))
    with tempfile.TemporaryDirectory() as folder:
        settings = drift.Settings(rounds, conversations)
        drift.run(recording, drift.load_suite("core"), folder, settings)
    return replies


def measure_process(conversations: int, rounds: int) -> dict:
    """Measures the command's process: time per conversation, and memory."""
    model = holdfast.load("default")
    suite = drift.load_suite("core")
    recorded = ModelWithEngine(model, RecordedEngine(record_replies(model, RECORDED, rounds)))
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conversations", type=int, default=10_000)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    counted = json.loads(TOKENS.read_text())
    tokens = Tokens(**counted["tokens"][REPLY_TOKENS])
    rounds = counted["rounds"]
    head = measure_process(arguments.conversations, rounds)
    print(json.dumps(head), flush=True)
    record = {
        "benchmark": "cluster",
        "measured_on": measured_on(holdfast.load("default")),
        "model": MODEL.name,
        "gpus": f"{MODEL.gpus} x {GPU.name}",
        "reply_tokens": int(REPLY_TOKENS),
        "fits": EngineSpeed(tokens, rounds, BOUNDS[0]).max_rows,
        "head": head,
        "simulated": simulated(arguments.conversations, tokens, rounds, head["seconds_per_record"]),
    }
    if arguments.out:
        write_json(record, arguments.out)


if __name__ == "__main__":
    main()
