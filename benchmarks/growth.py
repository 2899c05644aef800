"""Measures how time and memory grow with conversations, rounds, and the length of the context.

Each point runs in a separate process, so that peak memory is its own, and the points of a
repetition run in a new random order; the record is written after each repetition. Time is per
forwarded token; memory is the peak in excess of what the process used once the model was loaded,
not counting the peak of loading. An exponent is the slope of a straight line through the logarithms
of the points: 0 is constant, 1 is linear.

    python benchmarks/growth.py --out benchmarks/results/growth_qwen.json
"""

from __future__ import annotations

import argparse
import ctypes
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from stamp import measured_on, write_json

POINTS = {
    "conversations": (4, 8, 16, 32),
    "rounds": (2, 4, 8),
    "context": (512, 1024, 2048, 4096, 8000, 16000),
}
FIXED = {  # the fixed values of the others while one is varied
    "conversations": "2 rounds",
    "rounds": "8 conversations",
    "context": "a prompt of 150 tokens to hold on to, split-softmax 0.5; 8 tokens generated",
}
STEERING = "split-softmax:exponent=0.5"


def memory(name: str) -> int:
    """Memory of this process in bytes: "VmRSS" for now, "VmHWM" for the peak so far."""
    return 1024 * int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0])


def settled_memory() -> int:
    """Returns the current memory of this process in bytes, after two preparations.

    It gives freed memory back to the system, into which the run would otherwise grow unnoticed, and
    resets the peak, which loading may have raised.
    """
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def run_dialogs(name: str, conversations: int, rounds: int) -> dict:
    """Measures the seconds, tokens and peak memory of a drift run."""
    import holdfast
    from holdfast import drift

    model = holdfast.load(name)
    suite = drift.load_suite("everyday")
    model.generate([{"role": "user", "content": "Hello."}])
    sampling = holdfast.Sampling(0.7, max_new_tokens=60)
    settings = drift.Settings(rounds, conversations, seed=0, sampling=sampling)
    cast = drift.Cast(user_turns="everyday")
    before = settled_memory()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        records = drift.run(model, suite, folder, settings, cast=cast).records
    seconds = time.perf_counter() - began
    tokens = sum(record.tokens.forwarded for record in records)
    return {"seconds": seconds, "tokens": tokens, "bytes": memory("VmHWM") - before}


def run_context(name: str, length: int) -> dict:
    """Measures a steered prompt of `length` tokens with a short reply."""
    import torch

    import holdfast
    from holdfast.generation.sampling import Sampling
    from holdfast.generation.scheduler import Scheduler
    from holdfast.generation.token_requests import TokenPrompt, TokenRequest
    from holdfast.methods import compile_methods, read_methods

    runner = holdfast.load(name).runner
    ids = torch.randint(6, 2048, (length,), generator=torch.Generator().manual_seed(1)).tolist()
    span = tuple(5 <= position < 155 for position in range(length))
    prompt = TokenPrompt(tuple(ids), span, compile_methods(read_methods(STEERING)))
    scheduler = Scheduler(runner, frozenset(), 1)
    before = settled_memory()
    began = time.perf_counter()
    handle = scheduler.submit(TokenRequest((prompt,), sampling=Sampling(0, 1, 8)))
    scheduler.step()
    prefilled = time.perf_counter()
    while not handle.done:
        scheduler.step()
    ended = time.perf_counter()
    return {
        "seconds": prefilled - began,
        "tokens": length,
        "decode_seconds_per_token": (ended - prefilled) / 7,
        "bytes": memory("VmHWM") - before,
    }


def measure(name: str, kind: str, value: int) -> dict:
    """Measures one point in this process."""
    if kind == "conversations":
        return run_dialogs(name, value, 2)
    if kind == "rounds":
        return run_dialogs(name, 8, value)
    return run_context(name, value)


def measure_in_subprocess(name: str, kind: str, value: int) -> dict:
    """Measures one point in a separate process."""
    command = [sys.executable, __file__, "--model", name, "--point", kind, str(value)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ran.stdout.splitlines()[-1])


def exponent(values: list[int], measured: list[float]) -> float:
    """The slope of log(measured) over log(values)."""
    return round(float(np.polyfit(np.log(values), np.log(measured), 1)[0]), 3)


def series(name: str, kind: str, runs_by_value: dict[int, list[dict]]) -> dict:
    """All points of one kind, with their exponents."""
    points = []
    for value, runs in runs_by_value.items():
        per_token = [run["seconds"] / run["tokens"] for run in runs]
        point = {
            kind: value,
            "tokens": runs[0]["tokens"],
            "seconds_per_token": statistics.median(per_token),
            "range": [min(per_token), max(per_token)],
            "bytes": statistics.median(run["bytes"] for run in runs),
        }
        if kind == "context":
            steps = [run["decode_seconds_per_token"] for run in runs]
            point["decode_seconds_per_token"] = statistics.median(steps)
        points.append(point)
    exponents = {
        measured: exponent(list(runs_by_value), [point[measured] for point in points])
        for measured in ("seconds_per_token", "bytes", "decode_seconds_per_token")
        if measured in points[0]
    }
    return {"varied": kind, "held": FIXED[kind], "points": points, "exponents": exponents}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="qwen-0.5b")
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--only", choices=POINTS)
    parser.add_argument("--most", type=int, help="leave out points above")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--point", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.point:
        kind, value = arguments.point
        print(json.dumps(measure(arguments.model, kind, int(value))))
        return
    import holdfast

    name = arguments.model
    model = holdfast.load(name)
    result = {"benchmark": "growth", "model": name, "measured_on": measured_on(model)}
    kinds = [arguments.only] if arguments.only else list(POINTS)
    most = min(
        arguments.most or max(map(max, POINTS.values())),
        model.hf_model.config.max_position_embeddings,
    )
    del model
    runs: dict[str, dict[int, list[dict]]] = {
        kind: {value: [] for value in POINTS[kind] if value <= most} for kind in kinds
    }
    points = [(kind, value) for kind in kinds for value in runs[kind]]
    for number in range(1, arguments.repetitions + 1):
        for kind, value in random.sample(points, len(points)):
            runs[kind][value].append(measure_in_subprocess(name, kind, value))
            print(number, kind, value, runs[kind][value][-1], flush=True)
        result["repetitions"] = number
        result["series"] = [series(name, kind, runs[kind]) for kind in kinds]
        if arguments.out:
            write_json(result, arguments.out)


if __name__ == "__main__":
    main()
