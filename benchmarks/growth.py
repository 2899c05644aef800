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

POINTS = {  # the values of what is varied
    "conversations": (4, 8, 16, 32),
    "rounds": (2, 4, 8),
    "context": (512, 1024, 2048, 4096, 8000, 16000),  # tokens
}
FIXED = {  # what is the same at all points, in words
    "conversations": "2 rounds",
    "rounds": "8 conversations",
    "context": "a prompt of 150 tokens to hold on to, split-softmax 0.5; 8 tokens generated",
}
# the settings of the points that vary something else
FIXED_ROUNDS = 2
FIXED_CONVERSATIONS = 8
STEERING = "split-softmax:exponent=0.5"
SPAN = range(5, 155)  # tokens of the prompt that are held on to
REPLY_TOKENS = 8


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


# `torch` and `holdfast` are imported inside functions, so that the process that starts the others
# takes little memory beside them


def run_dialogs(model_name: str, conversations: int, rounds: int) -> dict:
    """Measures the seconds, tokens and peak memory of a drift run."""
    import holdfast
    from holdfast import drift

    model = holdfast.load(model_name)
    suite = drift.load_suite("everyday")
    model.generate([{"role": "user", "content": "Hello."}])  # warms up
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


def run_context(model_name: str, length: int) -> dict:
    """Measures the prefill of a steered prompt of `length` tokens, and decoding a short reply."""
    import torch

    import holdfast
    from holdfast.generation.sampling import Sampling
    from holdfast.generation.scheduler import Scheduler
    from holdfast.generation.token_requests import TokenPrompt, TokenRequest
    from holdfast.methods import compile_methods, read_methods

    runner = holdfast.load(model_name).runner
    ids = torch.randint(6, 2048, (length,), generator=torch.Generator().manual_seed(1)).tolist()
    span = tuple(position in SPAN for position in range(length))
    prompt = TokenPrompt(tuple(ids), span, compile_methods(read_methods(STEERING)))
    scheduler = Scheduler(runner, frozenset(), 1)
    sampling = Sampling(temperature=0, max_new_tokens=REPLY_TOKENS)
    before = settled_memory()
    began = time.perf_counter()
    handle = scheduler.submit(TokenRequest((prompt,), sampling=sampling))
    scheduler.step()
    prefilled = time.perf_counter()
    while not handle.done:
        scheduler.step()
    ended = time.perf_counter()
    return {
        "seconds": prefilled - began,
        "tokens": length,
        # the prefill draws the first token
        "decode_seconds_per_token": (ended - prefilled) / (REPLY_TOKENS - 1),
        "bytes": memory("VmHWM") - before,
    }


def measure_point(model_name: str, varied: str, value: int) -> dict:
    """Measures one point in this process.

    Args:
        varied: one of the names in `POINTS`.
    """
    if varied == "conversations":
        return run_dialogs(model_name, value, FIXED_ROUNDS)
    if varied == "rounds":
        return run_dialogs(model_name, FIXED_CONVERSATIONS, value)
    return run_context(model_name, value)


def measure_in_subprocess(model_name: str, varied: str, value: int) -> dict:
    """Measures one point in a separate process."""
    command = [sys.executable, __file__, "--model", model_name, "--point", varied, str(value)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ran.stdout.splitlines()[-1])


def exponent(values: list[int], measured: list[float]) -> float:
    """The slope of log(measured) over log(values)."""
    return round(float(np.polyfit(np.log(values), np.log(measured), 1)[0]), 3)


def series(varied: str, runs_by_value: dict[int, list[dict]]) -> dict:
    """All points at which one thing is varied, with their exponents."""
    points = []
    for value, runs in runs_by_value.items():
        per_token = [run["seconds"] / run["tokens"] for run in runs]
        point = {
            varied: value,
            "tokens": runs[0]["tokens"],
            "seconds_per_token": statistics.median(per_token),
            "range": [min(per_token), max(per_token)],
            "bytes": statistics.median(run["bytes"] for run in runs),
        }
        if varied == "context":
            steps = [run["decode_seconds_per_token"] for run in runs]
            point["decode_seconds_per_token"] = statistics.median(steps)
        points.append(point)
    exponents = {
        measured: exponent(list(runs_by_value), [point[measured] for point in points])
        for measured in ("seconds_per_token", "bytes", "decode_seconds_per_token")
        if measured in points[0]
    }
    return {"varied": varied, "held": FIXED[varied], "points": points, "exponents": exponents}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="qwen-0.5b")
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--only", choices=POINTS)
    parser.add_argument("--most", type=int, help="leave out points with a larger value")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--point", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.point:
        varied, value = arguments.point
        print(json.dumps(measure_point(arguments.model, varied, int(value))))
        return
    import holdfast

    model = holdfast.load(arguments.model)
    record = {"benchmark": "growth", "model": arguments.model, "measured_on": measured_on(model)}
    largest = model.hf_model.config.max_position_embeddings
    if arguments.most:
        largest = min(largest, arguments.most)
    del model
    runs: dict[str, dict[int, list[dict]]] = {
        varied: {value: [] for value in values if value <= largest}
        for varied, values in POINTS.items()
        if arguments.only in (None, varied)
    }
    points = [(varied, value) for varied in runs for value in runs[varied]]
    for number in range(1, arguments.repetitions + 1):
        for varied, value in random.sample(points, len(points)):
            run = measure_in_subprocess(arguments.model, varied, value)
            runs[varied][value].append(run)
            print(number, varied, value, run, flush=True)
        record["repetitions"] = number
        record["series"] = [series(varied, by_value) for varied, by_value in runs.items()]
        if arguments.out:
            write_json(record, arguments.out)


if __name__ == "__main__":
    main()
