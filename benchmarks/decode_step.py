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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

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
from holdfast.models.local import LocalModel
from holdfast.models.thread_cache import ThreadCache

ROWS = (16, 48)
PROMPT = 300  # tokens of each row's prompt
SPAN = 40  # tokens at its beginning
TEXT = Path(__file__).parents[1] / "src/holdfast/assets/user_turns/everyday.jsonl"
STEPS = 24  # timed in one repetition
METHODS = ("split-softmax:exponent=0.7", "boost:factor=4")
# operations as torch's profiler names them, without "aten::" or "mkldnn::"
PRODUCTS = ("mm", "addmm", "bmm", "mkldnn_linear", "_linear_pointwise", "baddbmm")
ATTENTION = ("scaled_dot_product", "flash_attention")
DRIFT_RUN = {"conversations": 32, "rounds": 8}


# The time of a step


def measure_steps(model: LocalModel, rows: int, repetitions: int) -> dict:
    """Times steps of `rows` rows without a method and with each one, in turn, and their floor."""
    bandwidth = measured_bandwidth(model.hf_model.device)
    speed = measured_speed(model.hf_model.device, model.hf_model.dtype)
    seconds_by_method: dict[str, list[float]] = {name: [] for name in ("none", *METHODS)}
    for _ in range(repetitions):
        for name, seconds in seconds_by_method.items():
            seconds.append(step(model, rows, name))
    plain = seconds_by_method["none"]
    weights = weights_of(model.hf_model)
    num_bytes = sum(weight.nbytes for weight in weights)
    num_operations = 2 * rows * sum(weight.numel() for weight in weights)
    floor = max(num_bytes / bandwidth, num_operations / speed)
    row = {
        "rows": rows,
        "seconds": statistics.median(plain),
        "bytes_per_second": bandwidth,
        "operations_per_second": speed,
        "floor_seconds": floor,
        "over_floor": statistics.median(plain) / floor,
        "steered": {name: median_ratio(seconds_by_method[name], plain) for name in METHODS},
    }
    print(json.dumps(row), flush=True)
    return row


def median_ratio(steered: list[float], plain: list[float]) -> float:
    """The median of ratios between times of the same repetition."""
    return statistics.median(a / b for a, b in zip(steered, plain, strict=True))


def step(model: LocalModel, rows: int, method: str) -> float:
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


def weights_of(hf_model) -> list[torch.Tensor]:
    """Returns the weights that a step reads; a weight shared with the output layer counts once."""
    tied = hf_model.config.get_text_config().tie_word_embeddings
    state = hf_model.state_dict()
    return [weight for name, weight in state.items() if not (tied and name == "lm_head.weight")]


def measured_bandwidth(device: torch.device) -> float:
    """Bytes read from memory per second."""
    numbers = torch.ones(2**27, device=device)
    return numbers.nbytes / fastest(lambda: numbers.sum().item())


def measured_speed(device: torch.device, dtype: torch.dtype) -> float:
    """Floating-point operations per second of a large product."""
    size = 2048 if device.type == "cpu" else 8192
    matrix = torch.randn(size, size, device=device).to(dtype)
    return 2 * size**3 / fastest(lambda: (matrix @ matrix)[0, 0].item())


def fastest(work: Callable[[], object], times: int = 7) -> float:
    """Seconds of the fastest repetition, after one that warms up."""
    work()
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


# The shares of a drift run's time


def run_drift(model: LocalModel, conversations: int, rounds: int) -> None:
    """Runs scripted conversations in a temporary folder."""
    sampling = Sampling(temperature=0.7, max_new_tokens=60)
    settings = drift.Settings(rounds, conversations, seed=1, sampling=sampling)
    cast = drift.Cast(user_turns="everyday")
    with tempfile.TemporaryDirectory() as folder:
        drift.run(model, "everyday", folder, settings, cast=cast)


def time_shares(model: LocalModel) -> dict:
    """The shares of processor time in a drift run: products, attention, and everything else."""
    from torch.profiler import ProfilerActivity, profile

    run_drift(model, 2, 1)  # warms up
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        started = time.perf_counter()
        processor_started = time.process_time()
        run_drift(model, 16, 2)
        seconds = time.perf_counter() - started
        processor_seconds = time.process_time() - processor_started
    spent = {"products": 0.0, "attention": 0.0}
    for event in profiled.key_averages():
        operation = event.key.removeprefix("aten::").removeprefix("mkldnn::")
        if operation in PRODUCTS:
            spent["products"] += event.self_cpu_time_total / 1e6
        elif any(name in operation for name in ATTENTION):
            spent["attention"] += event.self_cpu_time_total / 1e6
    shares = {name: part / seconds for name, part in spent.items()}
    shares["elsewhere"] = 1 - sum(shares.values())
    shares |= {"seconds": seconds, "processor_seconds": processor_seconds}
    print(json.dumps(shares), flush=True)
    return shares


# The memory of a drift run


@dataclass
class MemoryUse:
    """The memory of a drift run, in bytes; updated while it runs.

    Attributes:
        before: resident memory before the run.
        bytes_per_token: size of a token's keys and values.
        rows: keys and values of running rows, at present.
        kept: keys and values of kept dialogs, at present.
        max_live: the most of both at once.
        max_resident: the most resident memory after a step, in excess of `before`.
        parts: what `max_resident` consisted of.
    """

    before: int
    bytes_per_token: int
    rows: int = 0
    kept: int = 0
    max_live: int = 0
    max_resident: int = 0
    parts: dict[str, int] = field(default_factory=dict)

    def update(self, *, rows: int | None = None, kept: int | None = None) -> None:
        """Records how many bytes rows or kept dialogs have now."""
        self.rows = self.rows if rows is None else rows
        self.kept = self.kept if kept is None else kept
        self.max_live = max(self.max_live, self.rows + self.kept)

    def end_step(self) -> None:
        """Records the resident memory after a step."""
        resident = memory("VmRSS") - self.before
        if resident > self.max_resident:
            self.max_resident = resident
            rest = resident - self.rows - self.kept
            self.parts = {"rows": self.rows, "dialogs": self.kept, "rest": rest}


@contextmanager
def recorded(use: MemoryUse) -> Iterator[None]:
    """Within this context, decoding steps and kept dialogs update a `MemoryUse`."""
    decode = Decoder.decode
    keep = ThreadCache.keep

    def recorded_decode(self):
        use.update(rows=sum(self.slots.lengths) * use.bytes_per_token)
        ended = decode(self)
        use.end_step()
        return ended

    def recorded_keep(self, thread, every):
        keep(self, thread, every)
        use.update(kept=self.size)

    with (
        mock.patch.object(Decoder, "decode", recorded_decode),
        mock.patch.object(ThreadCache, "keep", recorded_keep),
    ):
        yield


def measure_memory(model: LocalModel) -> dict:
    """A drift run's peak memory and its parts, and the largest size of the keys and values in use
    at once.
    """
    identifier()  # of languages, which would take its memory when it first scores a reply
    run_drift(model, 2, 1)  # warms up
    use = MemoryUse(before=settled_memory(), bytes_per_token=bytes_per_token(model))
    with recorded(use):
        run_drift(model, **DRIFT_RUN)
    peak = memory("VmHWM") - use.before
    return {
        **DRIFT_RUN,
        "peak_bytes": peak,
        "live_bytes": use.max_live,
        "ratio": peak / use.max_live,
        "parts_of_highest_step": use.parts,
    }


def bytes_per_token(model: LocalModel) -> int:
    """Bytes of a token's keys and values."""
    config = model.hf_model.config
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    numbers = 2 * config.num_hidden_layers * config.num_key_value_heads * size
    return numbers * model.hf_model.dtype.itemsize


def measure_memory_in_subprocess(model_name: str) -> dict:
    """Measures the memory in a new process, whose peak is that of the run."""
    command = [sys.executable, __file__, "--model", model_name, "--part", "memory"]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.loads(printed.splitlines()[-1])


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
    model = holdfast.load(arguments.model)
    torch.set_num_threads(arguments.threads)
    if arguments.part:
        print(json.dumps(measure_memory(model)))
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
        record["steps"] = [
            measure_steps(model, rows, arguments.repetitions) for rows in arguments.rows
        ]
        if on_cpu:
            record["share"] = time_shares(model)
    if on_cpu and arguments.only != "time":
        record["memory"] = measure_memory_in_subprocess(arguments.model)
        print(json.dumps(record["memory"]))
    if arguments.out:
        write_json(record, arguments.out)


if __name__ == "__main__":
    main()
