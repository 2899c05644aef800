"""A decode step of a real model against the machine's limits, and the memory of a drift run.

- floor: the time of a step, divided by the longer of two: reading the weights at the measured
  memory bandwidth, or computing the products at the measured speed of a large one.
- steered: a step in which a method moves every head of every row, divided by one without a method;
  the two alternate.
- share: the share of processor time in a drift run that is spent neither in products nor in
  attention, by torch's profiler.
- memory: the peak of a drift run in excess of the loaded model and the language identifier that the
  suite's rules use, divided by the largest size of the keys and values in use at one time, of rows
  and kept dialogs; and the parts of that peak: the keys and values of rows, those of kept dialogs,
  and everything else, such as activations and the products that oneDNN has compiled.

On a GPU, the first two.

    python benchmarks/decode_step.py --only time --out benchmarks/results/decode_step_qwen.json
    python benchmarks/decode_step.py --only memory --out benchmarks/results/run_memory_qwen.json
"""

from __future__ import annotations

import os

# as the command line does, before torch
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from growth import memory, settled_memory
from stamp import measured_on, write_json

import holdfast
from holdfast import drift
from holdfast.generation.decoder import Decoder
from holdfast.generation.sampling import Sampling
from holdfast.generation.scheduler import Scheduler
from holdfast.generation.token_requests import TokenPrompt, TokenRequest
from holdfast.measures.language import identifier
from holdfast.methods import compile_methods, parse
from holdfast.models.thread_cache import ThreadCache

ROWS = (16, 48)
PROMPT = 300  # tokens of each row's prompt
SPAN = 40  # tokens at its beginning
TEXT = Path(__file__).parents[1] / "src/holdfast/assets/user_turns/everyday.jsonl"
STEPS = 24  # timed in one repetition
METHODS = ("split-softmax:exponent=0.7", "boost:factor=4")
PRODUCTS = ("mm", "addmm", "bmm", "mkldnn_linear", "_linear_pointwise", "baddbmm")
ATTENTION = ("scaled_dot_product", "flash_attention")
DRIFT_RUN = {"conversations": 32, "rounds": 8}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="qwen-0.5b")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--only", choices=("time", "memory"), help="of a run; default: both")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--part", choices=("memory",), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = holdfast.load(arguments.model)
    torch.set_num_threads(arguments.threads)
    if arguments.part:
        print(json.dumps(memory_use(model)))
        return
    record = {
        "benchmark": "decode_step",
        "model": arguments.model,
        "threads": arguments.threads,
        "dtype": str(model.hf_model.dtype).removeprefix("torch."),
        "measured_on": measured_on(model),
    }
    on_cpu = model.hf_model.device.type == "cpu"
    if arguments.only != "memory":
        record["prompt"] = PROMPT
        record["steps"] = [timed(model, rows, arguments.repetitions) for rows in arguments.rows]
        if on_cpu:
            record["share"] = share_outside(model)
    if on_cpu and arguments.only != "time":
        command = [sys.executable, __file__, "--model", arguments.model, "--part", "memory"]
        printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        record["memory"] = json.loads(printed.splitlines()[-1])
        print(json.dumps(record["memory"]))
    if arguments.out:
        write_json(record, arguments.out)


def timed(model, rows: int, repetitions: int) -> dict:
    """Times steps of `rows` rows without a method and with each one, in turn, and their floor."""
    seconds_by_method: dict[str, list[float]] = {name: [] for name in ("none", *METHODS)}
    bandwidth = measured_bandwidth(model.hf_model.device)
    speed = measured_speed(model.hf_model.device, model.hf_model.dtype)
    for _ in range(repetitions):
        for name, seconds in seconds_by_method.items():
            seconds.append(step(model, rows, name))
    weights = weights_of(model.hf_model)
    parameters = sum(weight.numel() for weight in weights)
    size = sum(weight.nbytes for weight in weights)
    floor = max(size / bandwidth, 2 * parameters * rows / speed)
    row = {
        "rows": rows,
        "seconds": statistics.median(seconds_by_method["none"]),
        "bytes_per_second": bandwidth,
        "operations_per_second": speed,
        "floor_seconds": floor,
        "over_floor": statistics.median(seconds_by_method["none"]) / floor,
        "steered": {
            name: statistics.median(
                steered / plain
                for steered, plain in zip(
                    seconds_by_method[name], seconds_by_method["none"], strict=True
                )
            )
            for name in METHODS
        },
    }
    print(json.dumps(row), flush=True)
    return row


def weights_of(hf_model) -> list[torch.Tensor]:
    """Returns the weights that a step reads; a weight shared with the output layer counts once."""
    tied = hf_model.config.get_text_config().tie_word_embeddings
    state = hf_model.state_dict()
    return [weight for name, weight in state.items() if not (tied and name == "lm_head.weight")]


def step(model, rows: int, method: str) -> float:
    """Median seconds of a step in which every row reads one token."""
    scheduler = Scheduler(model.runner, frozenset(), rows)
    methods = tuple(parse(method))
    sampling = Sampling(0.7, max_new_tokens=STEPS + 8)
    text = model.tokenizer(TEXT.read_text())["input_ids"]
    for number in range(rows):
        ids = text[number * SPAN :][:PROMPT]
        span = (True,) * SPAN + (False,) * (PROMPT - SPAN)
        prompt = TokenPrompt(tuple(ids), span, compile_methods(methods))
        scheduler.submit(TokenRequest((prompt,), sampling=sampling, seed=number))
    scheduler.step()  # the prefill
    scheduler.step()
    seconds = []
    for _ in range(STEPS):
        began = time.perf_counter()
        scheduler.step()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def fastest(work: Callable[[], object], times: int = 7) -> float:
    """Seconds of the fastest repetition."""
    work()
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def measured_bandwidth(device: torch.device) -> float:
    """Bytes read from memory per second."""
    numbers = torch.ones(2**27, device=device)
    return numbers.nbytes / fastest(lambda: numbers.sum().item())


def measured_speed(device: torch.device, dtype: torch.dtype) -> float:
    """Floating-point operations per second of a large product."""
    size = 2048 if device.type == "cpu" else 8192
    matrix = torch.randn(size, size, device=device).to(dtype)
    return 2 * size**3 / fastest(lambda: (matrix @ matrix)[0, 0].item())


def run_drift(model, conversations: int, rounds: int) -> None:
    """Runs scripted conversations in a temporary folder."""
    sampling = Sampling(temperature=0.7, max_new_tokens=60)
    settings = drift.Settings(rounds, conversations, seed=1, sampling=sampling)
    cast = drift.Cast(user_turns="everyday")
    with tempfile.TemporaryDirectory() as folder:
        drift.run(model, "everyday", folder, settings, cast=cast)


def share_outside(model) -> dict:
    """The shares of processor time in a drift run."""
    from torch.profiler import ProfilerActivity, profile

    run_drift(model, 2, 1)
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        started = time.perf_counter()
        processor_started = time.process_time()
        run_drift(model, 16, 2)
        seconds = time.perf_counter() - started
        processor_seconds = time.process_time() - processor_started
    spent = {"products": 0.0, "attention": 0.0}
    for event in profiled.key_averages():
        kind = event.key.removeprefix("aten::").removeprefix("mkldnn::")
        if kind in PRODUCTS:
            spent["products"] += event.self_cpu_time_total / 1e6
        elif any(name in kind for name in ATTENTION):
            spent["attention"] += event.self_cpu_time_total / 1e6
    shares = {name: part / seconds for name, part in spent.items()}
    shares["elsewhere"] = 1 - sum(shares.values())
    shares |= {"seconds": seconds, "processor_seconds": processor_seconds}
    print(json.dumps(shares), flush=True)
    return shares


def memory_use(model) -> dict:
    """A drift run's peak memory and its parts, and the largest size of the keys and values in use
    at once.
    """
    identifier()  # of languages, which would take its memory when it first scores a reply
    run_drift(model, 2, 1)
    before = settled_memory()
    size_of_token = bytes_per_token(model)
    use = MemoryUse()
    decode_of = Decoder.decode
    keep_of = ThreadCache.keep

    def counted_decode(self):
        use.rows = sum(self.slots.lengths) * size_of_token
        use.live = max(use.live, use.rows + use.kept)
        ended = decode_of(self)
        resident = memory("VmRSS") - before
        if resident > use.highest:
            use.highest = resident
            rest = resident - use.rows - use.kept
            use.parts = {"rows": use.rows, "dialogs": use.kept, "rest": rest}
        return ended

    def counted_keep(self, thread, every):
        keep_of(self, thread, every)
        use.kept = self.size
        use.live = max(use.live, use.rows + use.kept)

    Decoder.decode = counted_decode
    ThreadCache.keep = counted_keep
    run_drift(model, **DRIFT_RUN)
    peak = memory("VmHWM") - before
    measured = {"peak_bytes": peak, "live_bytes": use.live, "ratio": peak / use.live}
    return DRIFT_RUN | measured | {"parts_of_highest_step": use.parts}


@dataclass
class MemoryUse:
    """Bytes of keys and values during a run.

    Attributes:
        rows: of running rows.
        kept: of kept dialogs.
        live: the most of both at once.
        highest: the most resident memory after a step, in excess of the loaded model.
        parts: what it consisted of.
    """

    rows: int = 0
    kept: int = 0
    live: int = 0
    highest: int = 0
    parts: dict[str, int] = field(default_factory=dict)


def bytes_per_token(model) -> int:
    """Bytes of a token's keys and values."""
    config = model.hf_model.config
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    numbers = 2 * config.num_hidden_layers * config.num_key_value_heads * size
    return numbers * model.hf_model.dtype.itemsize


if __name__ == "__main__":
    main()
