"""Processor time and memory per token: stock llama.cpp, steered llama.cpp, Holdfast's own engine.

    python plugins/holdfast-llama/benchmarks/speed.py [--out speed.json] [--kind Q8_0] [--rows 8]
    python plugins/holdfast-llama/benchmarks/speed.py --model qwen-0.5b --rows 1 --rows 16

Each way forwards the same number of tokens. All run in one process and take turns, a step each, so
that other work on the machine slows all of them alike. Processor time counts all threads of the
process. SmolLM2 runs from files of several kinds: its own is Q4_1, and the others are written from
it. Any other model runs from its own file.
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
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

ENVIRONMENT = {"OMP_WAIT_POLICY": "PASSIVE", "HF_HUB_OFFLINE": "1"}
os.environ.update({name: value for name, value in ENVIRONMENT.items() if name not in os.environ})

ROOT = Path(__file__).parents[3]
SMOLLM2 = "smollm2"
# how the matrices of a file are stored
SMOLLM2_KIND = "Q4_1"  # of SmolLM2's own file
SMOLLM2_KINDS = (SMOLLM2_KIND, "Q8_0", "BF16")
OTHER_KIND = "Q4_K_M"  # of the files of other models
BATCH_SIZES = (1, 8, 32)  # rows
PROMPT = 496  # tokens
SPAN = 64  # tokens of the prompt that are steered towards
STEPS = 48  # decoding steps


class Setup(NamedTuple):
    """How llama.cpp forwards rows.

    Attributes:
        steers: whether the context is one that can steer.
        flash: whether attention is flash attention.
        spec: the methods of every row.
        trace: whether the mass on the span is recorded.
    """

    steers: bool = True
    flash: bool = False
    spec: str = "none"
    trace: bool = False


PLAIN = "llama.cpp, flash attention"
STOPPED = "stopped after each layer's weights"  # for our callback, which then does nothing
BOOST_TRACED = "boost, traced"
SETUPS = {
    PLAIN: Setup(steers=False, flash=True),
    "llama.cpp, without it": Setup(steers=False),
    "nothing steered": Setup(),
    STOPPED: Setup(trace=True),
    "traced": Setup(trace=True),
    "boost": Setup(spec="boost:factor=4"),
    BOOST_TRACED: Setup(spec="boost:factor=4", trace=True),
    "split-softmax": Setup(spec="split-softmax:exponent=0.5"),
    "boost, 10 heads": Setup(spec="boost:factor=4,heads={heads}"),
}
OURS = "holdfast, bfloat16"
MEMORY = (PLAIN, BOOST_TRACED, OURS)  # the ways whose memory is measured too
MEMORY_ROWS = 8


def model_file(name: str, kind: str, folder: Path) -> Path:
    """Returns a model's own file, or one of SmolLM2 with its matrices as `kind`.

    Args:
        folder: where files are written, unless they exist.
    """
    from holdfast.models.checkpoint import REAL_MODELS, real_models_folder

    source = real_models_folder() / REAL_MODELS[name]
    if name != SMOLLM2 or kind == SMOLLM2_KIND:
        return source
    path = folder / f"smollm2-{kind}.gguf"
    if not path.exists():
        convert(source, kind, path)
    return path


def convert(source: Path, kind: str, path: Path) -> None:
    """Writes the model of a GGUF file with its matrices as `kind`."""
    import gguf

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


class LlamaCpp:
    """A batch in llama.cpp, in one of `SETUPS`."""

    def __init__(self, name: str, model: Any, rows: int, threads: int):
        from holdfast_llama.native import NativeContext

        from holdfast.methods import parse

        setup = SETUPS[name]
        heads = "/".join(f"{layer}.{layer % 9}" for layer in range(0, 30, 3))
        self.methods = parse(setup.spec.format(heads=heads))
        self.trace = setup.trace
        self.rows = rows
        columns = PROMPT + STEPS + 4
        self.context = NativeContext(
            model, rows, columns, threads, steers=setup.steers, flash=setup.flash
        )
        if name == STOPPED:
            weights = self.context.weights
            weights._rewrite = lambda address, layer: weights._reached.add(layer)

    def row(self, stream: int, start: int) -> Any:
        """Returns a row of the batch whose next token is at the position `start`."""
        from holdfast_llama.steered_rows import SteeredRow

        span = [4 <= position < 4 + SPAN for position in range(PROMPT)]
        return SteeredRow(stream, start, span, self.methods, self.trace)

    def prefill(self) -> int:
        """Forwards the prompt of the first row; returns the number of its tokens."""
        self.context.decode([self.row(0, 0)], [tokens_of(0)])
        return PROMPT

    def fill_other_rows(self) -> None:
        """Copies the keys and values of the first row to the others."""
        saved = self.context.save(0)
        for stream in range(1, self.rows):
            self.context.restore(stream, saved)

    def step(self, number: int) -> None:
        """Forwards a token of each row."""
        rows = [self.row(stream, PROMPT + number) for stream in range(self.rows)]
        self.context.decode(rows, [[1000 + stream + number] for stream in range(self.rows)])


class OurEngine:
    """A batch in Holdfast's own engine, with the same number of tokens, drawn greedily."""

    def __init__(self, model: Any, rows: int, spec: str = "boost:factor=4"):
        from holdfast.methods import parse

        self.model = model
        self.rows = rows
        self.methods = parse(spec)

    def prefill(self) -> int:
        """Forwards the prompts of all rows; returns the number of their tokens."""
        from holdfast.generation.sampling import Sampling
        from holdfast.generation.scheduler import Scheduler
        from holdfast.generation.token_requests import TokenPrompt, TokenRequest
        from holdfast.methods import compile_methods

        self.scheduler = Scheduler(self.model.runner, frozenset(), self.rows)  # no row ends early
        span = tuple(4 <= position < 4 + SPAN for position in range(PROMPT))
        for number in range(self.rows):
            prompt = TokenPrompt(tuple(tokens_of(number)), span, compile_methods(self.methods))
            self.scheduler.submit(
                TokenRequest((prompt,), sampling=Sampling(0, max_new_tokens=STEPS + 2))
            )
        self.scheduler.step()
        return self.rows * PROMPT

    def fill_other_rows(self) -> None:
        """Does nothing, as `prefill` forwards the prompts of all rows."""

    def step(self, number: int) -> None:
        """Forwards a token of each row."""
        self.scheduler.step()


def tokens_of(stream: int) -> list[int]:
    """Returns the prompt of a row; no two rows have the same."""
    return [100 + (7 * position + 31 * stream) % 40_000 for position in range(PROMPT)]


class Cost(NamedTuple):
    """The time that an act took, in milliseconds."""

    processor: float  # of all threads
    clock: float


def costs(act: Callable[[], Any]) -> tuple[Any, Cost]:
    """Returns the result of an act, and what it took."""
    processor_before = time.process_time()
    clock_before = time.perf_counter()
    result = act()
    clock = time.perf_counter() - clock_before
    return result, Cost(1000 * (time.process_time() - processor_before), 1000 * clock)


def measure(
    model_name: str, kind: str, rows: int, threads: int, folder: Path
) -> list[dict[str, Any]]:
    """Measures each way in a batch; returns the milliseconds per token of each."""
    from holdfast_llama.native import NativeModel

    model = NativeModel(str(model_file(model_name, kind, folder)))
    # the ten heads are SmolLM2's
    names = [name for name in SETUPS if model_name == SMOLLM2 or "heads" not in name]
    ways: dict[str, Any] = {name: LlamaCpp(name, model, rows, threads) for name in names}
    ways[OURS] = OurEngine(our_model(model_name, threads), rows)
    prefill_ms = {}
    for name, way in ways.items():
        tokens, cost = costs(way.prefill)
        prefill_ms[name] = cost.processor / tokens
        way.fill_other_rows()
    steps: dict[str, list[Cost]] = {name: [] for name in ways}
    for number in range(STEPS):
        for name, way in ways.items():
            _, cost = costs(partial(way.step, number))
            steps[name].append(cost)
    return [
        {"file": kind, "rows": rows, "way": name, "prefill_ms": round(prefill_ms[name], 3)}
        | decoding_numbers(steps[name], rows)
        for name in ways
    ]


def decoding_numbers(steps: list[Cost], rows: int) -> dict[str, Any]:
    """Sums up the steps of a way, each of which forwards a token of every row."""
    processor = [cost.processor / rows for cost in steps]
    return {
        "decode_ms": round(statistics.median(processor), 3),
        "decode_ms_quartiles": [round(q, 3) for q in statistics.quantiles(processor)[::2]],
        "decode_clock_ms": round(statistics.median(cost.clock / rows for cost in steps), 3),
    }


def our_model(name: str, threads: int) -> Any:
    """Loads a model into Holdfast's own engine."""
    import warnings

    import torch

    import holdfast

    torch.set_num_threads(threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its size
        return holdfast.load(name, dtype="bfloat16")


def memory(kind: str, rows: int, way: str, threads: int, folder: Path) -> int:
    """Runs SmolLM2 in one way; returns the most memory that this process has had, in megabytes."""
    from holdfast_llama.native import NativeModel

    if way == OURS:
        engine: Any = OurEngine(our_model(SMOLLM2, threads), rows)
    else:
        model = NativeModel(str(model_file(SMOLLM2, kind, folder)))
        engine = LlamaCpp(way, model, rows, threads)
    engine.prefill()
    engine.fill_other_rows()
    engine.step(0)
    status = Path("/proc/self/status").read_text()  # ru_maxrss may be the parent's, from a fork
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) // 1024


def memory_in_process(kind: str, rows: int, way: str, args: argparse.Namespace) -> int:
    """Returns `memory`, measured in a process of its own."""
    command = [sys.executable, __file__, "--memory-of", way, "--kind", kind]
    command += ["--rows", str(rows), "--threads", str(args.threads)]
    command += ["--folder", str(args.folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1])


def read_arguments() -> argparse.Namespace:
    """Reads the command line, and the option that `memory_in_process` adds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=SMOLLM2, help="smollm2, or another installed model")
    parser.add_argument("--kind", action="append", choices=SMOLLM2_KINDS, help="of SmolLM2's file")
    parser.add_argument("--rows", action="append", type=int, help="of a batch; repeatable")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("runs"), help="for files of SmolLM2")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def measure_all(
    kinds: Sequence[str], batch_sizes: Sequence[int], args: argparse.Namespace
) -> list[dict[str, Any]]:
    """Measures each kind of file in batches of each size; of some ways the memory too."""
    table: list[dict[str, Any]] = []
    for kind in kinds:
        for rows in batch_sizes:
            for row in measure(args.model, kind, rows, args.threads, args.folder):
                print(json.dumps(row), flush=True)
                table.append(row)
                has_memory = rows == MEMORY_ROWS and row["way"] in MEMORY
                if has_memory and args.model == SMOLLM2:
                    row["peak_mb"] = memory_in_process(kind, rows, row["way"], args)
    return table


def main() -> None:
    args = read_arguments()
    import llama_cpp._logger

    llama_cpp._logger.set_verbose(False)
    args.folder.mkdir(parents=True, exist_ok=True)
    kinds = (args.kind or SMOLLM2_KINDS) if args.model == SMOLLM2 else (OTHER_KIND,)
    batch_sizes = args.rows or BATCH_SIZES
    if args.memory_of:
        print(memory(kinds[0], batch_sizes[0], args.memory_of, args.threads, args.folder))
        return
    table = measure_all(kinds, batch_sizes, args)
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
