"""How time and memory grow: with conversations, with rounds, and with the length of the context.

Each point is a process of its own, so that its peak memory is its own, and the points of a
repetition run in an order drawn anew. Time is per token that went through the model; memory is the
peak above what the process held once the model was loaded. An exponent is the slope of a straight
line through the logarithms of the points: 0 is constant, 1 is linear.

    python benchmarks/growth.py --out benchmarks/results/growth.json
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from stamp import measured_on

CONVERSATIONS = (8, 16, 32, 64, 128, 256, 512)
ROUNDS = (2, 4, 8, 16, 32)
CONTEXT = (512, 1024, 2048, 4096, 8192, 16384)
POINTS = {"conversations": CONVERSATIONS, "rounds": ROUNDS, "context": CONTEXT}
HELD = {  # what the other two are where one is varied
    "conversations": "2 rounds",
    "rounds": "16 conversations",
    "context": "a prompt of 150 tokens to hold on to, split-softmax 0.5; 8 tokens generated",
}
STEERING = "split-softmax:exponent=0.5"


def memory(name: str) -> int:
    """Bytes of this process: "VmRSS" now, "VmHWM" at most so far."""
    return 1024 * int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0])


def dialogs(conversations: int, rounds: int) -> dict:
    """The default model's drift run: seconds, tokens and peak memory."""
    import holdfast
    from holdfast import drift

    model, suite = holdfast.load(), drift.load_suite("starter")
    model.generate([{"role": "user", "content": "Hello."}])
    settings = drift.Settings(conversations=conversations, rounds=rounds, seed=0)
    held, began = memory("VmRSS"), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        records = drift.run(model, suite, folder, settings).records
    seconds = time.perf_counter() - began
    tokens = sum(record["tokens"]["forwarded"] for record in records)
    return {"seconds": seconds, "tokens": tokens, "bytes": memory("VmHWM") - held}


def context(length: int) -> dict:
    """A steered prompt of so many tokens and a short reply, by a small Llama of random weights."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from holdfast.attention import install
    from holdfast.common.sampling import Sampling
    from holdfast.engine.rows import Row, Stream
    from holdfast.engine.runner import Runner
    from holdfast.engine.scheduler import Scheduler
    from holdfast.methods import read_methods

    torch.manual_seed(0)
    shape = LlamaConfig(
        hidden_size=256,
        intermediate_size=704,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=4,
        vocab_size=2048,
        max_position_embeddings=32768,
    )
    model = LlamaForCausalLM(shape).eval()
    assert install(model)
    ids = torch.randint(6, 2048, (length,), generator=torch.Generator().manual_seed(1)).tolist()
    span = tuple(5 <= place < 155 for place in range(length))
    stream = Stream(tuple(ids), span, read_methods(STEERING))
    scheduler = Scheduler(Runner(model), frozenset(), 1)
    held, began = memory("VmRSS"), time.perf_counter()
    handle = scheduler.submit(Row((stream,), sampling=Sampling(0, 1, 8)))
    scheduler.step()
    prefilled = time.perf_counter()
    while not handle.done:
        scheduler.step()
    ended = time.perf_counter()
    return {
        "seconds": prefilled - began,
        "tokens": length,
        "decode_seconds_per_token": (ended - prefilled) / 7,
        "bytes": memory("VmHWM") - held,
    }


def measure(kind: str, value: int) -> dict:
    """One point, in this process."""
    if kind == "conversations":
        return dialogs(value, 2)
    return dialogs(16, value) if kind == "rounds" else context(value)


def apart(kind: str, value: int) -> dict:
    """One point, in a process of its own."""
    command = [sys.executable, __file__, "--point", kind, str(value)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(ran.stdout.splitlines()[-1])


def exponent(values: list[int], measured: list[float]) -> float:
    """The slope of the measured over the values, both as logarithms."""
    return round(float(np.polyfit(np.log(values), np.log(measured), 1)[0]), 3)


def series(kind: str, repetitions: int, most: int | None) -> dict:
    """All points of one kind, with their exponents."""
    values = [value for value in POINTS[kind] if most is None or value <= most]
    taken: dict[int, list[dict]] = {value: [] for value in values}
    for _ in range(repetitions):
        for value in random.sample(values, len(values)):
            taken[value].append(apart(kind, value))
    points = []
    for value in values:
        each = [run["seconds"] / run["tokens"] for run in taken[value]]
        point = {
            kind: value,
            "tokens": taken[value][0]["tokens"],
            "seconds_per_token": statistics.median(each),
            "range": [min(each), max(each)],
            "bytes": statistics.median(run["bytes"] for run in taken[value]),
        }
        if kind == "context":
            steps = [run["decode_seconds_per_token"] for run in taken[value]]
            point["decode_seconds_per_token"] = statistics.median(steps)
        points.append(point)
        print(kind, value, point, flush=True)
    exponents = {
        name: exponent(values, [point[name] for point in points])
        for name in ("seconds_per_token", "bytes", "decode_seconds_per_token")
        if name in points[0]
    }
    return {"varied": kind, "held": HELD[kind], "points": points, "exponents": exponents}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--only", choices=POINTS)
    parser.add_argument("--most", type=int, help="leave out points above")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--point", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.point:
        print(json.dumps(measure(arguments.point[0], int(arguments.point[1]))))
        return
    import holdfast

    result = {
        "benchmark": "growth",
        "measured_on": measured_on(holdfast.load()),
        "series": [
            series(kind, arguments.repetitions, arguments.most)
            for kind in ([arguments.only] if arguments.only else POINTS)
        ],
    }
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
