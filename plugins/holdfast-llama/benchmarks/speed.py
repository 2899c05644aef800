"""Processor time and memory per token: stock llama.cpp, steered llama.cpp, Holdfast's own engine.

    python plugins/holdfast-llama/benchmarks/speed.py [--out speed.json] [--kind Q8_0] [--rows 8]
    python plugins/holdfast-llama/benchmarks/speed.py --model qwen-0.5b --rows 1 --rows 16

All ways run as many tokens in one process, a step of each in turn, so what else the machine does
falls on all of them. Processor time counts all threads of the process. The file of SmolLM2 is
Q4_1; the others are written from it. Another model runs from its own file.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

ENVIRONMENT = {"OMP_WAIT_POLICY": "PASSIVE", "HF_HUB_OFFLINE": "1"}
os.environ.update({name: value for name, value in ENVIRONMENT.items() if name not in os.environ})

ROOT = Path(__file__).parents[3]
SMOLLM2 = "smollm2"
KINDS = ("Q4_1", "Q8_0", "BF16")
OWN_KIND = "Q4_K_M"  # of the files of other models
ROWS = (1, 8, 32)
PROMPT, STEPS, SPAN = 496, 48, 64  # tokens of a prompt, decoding steps, tokens of the span
WAYS = {
    "llama.cpp, flash attention": (False, True, "none", False),
    "llama.cpp, without it": (False, False, "none", False),
    "nothing steered": (True, False, "none", False),
    "stopped after each layer's weights": (True, False, "none", True),
    "traced": (True, False, "none", True),
    "boost": (True, False, "boost:factor=4", False),
    "boost, traced": (True, False, "boost:factor=4", True),
    "split-softmax": (True, False, "split-softmax:exponent=0.5", False),
    "boost, 10 heads": (True, False, "boost:factor=4,heads={heads}", False),
}
STOPPED = "stopped after each layer's weights"  # by our callback, which then does nothing
OURS = "holdfast, bfloat16"
MEMORY = ("llama.cpp, flash attention", "boost, traced", OURS)
MEMORY_ROWS = 8


def file_of(name: str, kind: str, folder: Path) -> Path:
    """A model's own file, or SmolLM2 with its matrices as `kind`."""
    import gguf

    from holdfast.models.checkpoint import REAL_MODELS, real_models_folder

    source = real_models_folder() / REAL_MODELS[name]
    if name != SMOLLM2:
        return source
    path = folder / f"smollm2-{kind}.gguf"
    if kind == "Q4_1":
        return source
    if path.exists():
        return path
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(path, "llama")
    for key, field in reader.fields.items():
        if not key.startswith("GGUF.") and key != "general.architecture":
            types = field.types
            writer.add_key_value(
                key, field.contents(), types[0], types[-1] if len(types) > 1 else None
            )
    for tensor in reader.tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        type_ = gguf.GGMLQuantizationType[kind if values.ndim > 1 else "F32"]
        writer.add_tensor(tensor.name, gguf.quantize(values, type_), raw_dtype=type_)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


class Way:
    """One way to forward rows: a prompt each, then a token each at a time."""

    def __init__(self, name: str, model: Any, rows: int, threads: int):
        from holdfast_llama.native import NativeContext

        from holdfast.methods import parse

        steers, flash, spec, trace = WAYS[name]
        heads = "/".join(f"{layer}.{layer % 9}" for layer in range(0, 30, 3))
        self.methods = parse(spec.format(heads=heads))
        self.trace = trace
        self.rows = rows
        columns = PROMPT + STEPS + 4
        self.context = NativeContext(model, rows, columns, threads, steers=steers, flash=flash)
        if name == STOPPED:
            weights = self.context.weights
            weights._rewrite = lambda address, layer: weights._reached.add(layer)

    def row(self, stream: int, start: int) -> Any:
        from holdfast_llama.steered_rows import SteeredRow

        span = [4 <= place < 4 + SPAN for place in range(PROMPT)]
        return SteeredRow(stream, start, span, self.methods, self.trace)

    def prefill(self) -> int:
        """Forwards the prompt of one row, and copies it to the others; returns its tokens."""
        self.context.decode([self.row(0, 0)], [tokens_of(0)])
        return PROMPT

    def spread(self) -> None:
        saved = self.context.save(0)
        for stream in range(1, self.rows):
            self.context.restore(stream, saved)

    def step(self, number: int) -> None:
        rows = [self.row(stream, PROMPT + number) for stream in range(self.rows)]
        self.context.decode(rows, [[1000 + stream + number] for stream in range(self.rows)])


class OurEngine:
    """The same prompts and as many tokens, drawn greedily, in Holdfast's own engine."""

    def __init__(self, model: Any, rows: int, spec: str = "boost:factor=4"):
        from holdfast.methods import parse

        self.model = model
        self.rows = rows
        self.methods = parse(spec)

    def prefill(self) -> int:
        from holdfast.generation.sampling import Sampling
        from holdfast.generation.scheduler import Scheduler
        from holdfast.generation.token_requests import TokenPrompt, TokenRequest
        from holdfast.methods import compile_methods

        self.scheduler = Scheduler(self.model.runner, frozenset(), self.rows)  # no row ends early
        span = tuple(4 <= place < 4 + SPAN for place in range(PROMPT))
        for number in range(self.rows):
            prompt = TokenPrompt(tuple(tokens_of(number)), span, compile_methods(self.methods))
            self.scheduler.submit(
                TokenRequest((prompt,), sampling=Sampling(0, max_new_tokens=STEPS + 2))
            )
        self.scheduler.step()
        return self.rows * PROMPT

    def spread(self) -> None:
        pass

    def step(self, number: int) -> None:
        self.scheduler.step()


def tokens_of(stream: int) -> list[int]:
    return [100 + (7 * place + 31 * stream) % 40_000 for place in range(PROMPT)]


def spent(act: Callable[[], Any]) -> tuple[float, float, Any]:
    """Milliseconds of processor time, of all threads; those on the clock; and the result."""
    start, began = time.process_time(), time.perf_counter()
    result = act()
    clock = time.perf_counter() - began
    return 1000 * (time.process_time() - start), 1000 * clock, result


def measure(
    model_name: str, kind: str, rows: int, threads: int, folder: Path
) -> list[dict[str, Any]]:
    """Milliseconds of processor time per token of each way."""
    from holdfast_llama.native import NativeModel

    model = NativeModel(str(file_of(model_name, kind, folder)))
    # the ten heads are SmolLM2's
    names = [name for name in WAYS if model_name == SMOLLM2 or "heads" not in name]
    ways: dict[str, Any] = {name: Way(name, model, rows, threads) for name in names}
    ways[OURS] = OurEngine(our_model(model_name, threads), rows)
    prefill = {}
    for name, way in ways.items():
        milliseconds, _, tokens = spent(way.prefill)
        prefill[name] = milliseconds / tokens
        way.spread()
    steps: dict[str, list[float]] = {name: [] for name in ways}
    on_clock: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(STEPS):
        for name, way in ways.items():
            processor, clock, _ = spent(partial(way.step, number))
            steps[name].append(processor / rows)
            on_clock[name].append(clock / rows)
    return [
        {
            "file": kind,
            "rows": rows,
            "way": name,
            "prefill_ms": round(prefill[name], 3),
            "decode_ms": round(statistics.median(steps[name]), 3),
            "decode_ms_quartiles": [round(q, 3) for q in statistics.quantiles(steps[name])[::2]],
            "decode_clock_ms": round(statistics.median(on_clock[name]), 3),
        }
        for name in ways
    ]


def our_model(name: str, threads: int) -> Any:
    import warnings

    import torch

    import holdfast

    torch.set_num_threads(threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its size
        return holdfast.load(name, dtype="bfloat16")


def memory(kind: str, rows: int, way: str, threads: int, folder: Path) -> int:
    """Megabytes that a process of its own has at most, with SmolLM2 in this way alone."""
    from holdfast_llama.native import NativeModel

    if way == OURS:
        runs: Any = OurEngine(our_model(SMOLLM2, threads), rows)
    else:
        runs = Way(way, NativeModel(str(file_of(SMOLLM2, kind, folder))), rows, threads)
    runs.prefill()
    runs.spread()
    runs.step(0)
    status = Path(
        "/proc/self/status"
    ).read_text()  # ru_maxrss would count the parent's, from a fork
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) // 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=SMOLLM2, help="smollm2, or another installed model")
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--rows", action="append", type=int)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("runs"), help="for files that are made")
    parser.add_argument("--memory-of", help="one way, in this process")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    import llama_cpp._logger

    llama_cpp._logger.set_verbose(False)
    args.folder.mkdir(parents=True, exist_ok=True)
    kinds = (args.kind or KINDS) if args.model == SMOLLM2 else (OWN_KIND,)
    many = args.rows or ROWS
    if args.memory_of:
        print(memory(kinds[0], many[0], args.memory_of, args.threads, args.folder))
        return
    table = []
    for kind in kinds:
        for rows in many:
            for row in measure(args.model, kind, rows, args.threads, args.folder):
                print(json.dumps(row), flush=True)
                table.append(row)
                is_measured = rows == MEMORY_ROWS and row["way"] in MEMORY
                if not is_measured or args.model != SMOLLM2:
                    continue
                command = [sys.executable, __file__, "--memory-of", row["way"], "--kind", kind]
                command += ["--rows", str(rows), "--threads", str(args.threads)]
                command += ["--folder", str(args.folder)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                row["peak_mb"] = int(done.stdout.split()[-1])
    if args.out:
        sys.path.insert(0, str(ROOT / "benchmarks"))
        from stamp import measured_on

        record = {
            "model": args.model,
            "measured_on": measured_on(),
            "llama-cpp-python": version("llama-cpp-python"),
            "threads": args.threads,
            "prompt": PROMPT,
            "rows": table,
        }
        args.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
