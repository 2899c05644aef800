"""Throughput of vLLM: stock, with the plug-in and nothing steered, and with everything steered.

    python plugins/holdfast-vllm/benchmarks/throughput.py --out throughput.json

The model has 8 B parameters with random weights, in bfloat16, so that nothing has to be downloaded.
It runs on a GPU, in several batches and contexts. Each engine has a process and the whole GPU to
itself; the three take turns, as often as `--repetitions` says. A batch whose keys and values do not
fit is left out, and the record says so.

`--rehearse` runs the same at a tiny shape, on any device.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
VARIANTS = ("plain", "nothing steered", "everything steered")
METHOD = "split-softmax:exponent=0.5"
LARGE = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 32768,
}
TINY = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 512,
    "max_position_embeddings": 512,
}


@dataclass(frozen=True)
class Case:
    """A batch.

    Args:
        rows: requests that run together.
        context: tokens of each prompt.
        tokens: of each reply: enough for steps in which all rows draw, although prompts are read in
            chunks.
        span: tokens of each prompt that are emphasised.
    """

    rows: int
    context: int
    tokens: int = 192
    span: int = 256


CASES = tuple(Case(rows, context) for context in (2048, 16384) for rows in (1, 32, 256))
REHEARSED = (Case(1, 96, 8, 16), Case(3, 96, 8, 16))


def write_shape(folder: Path, sizes: dict[str, int]) -> dict[str, Any]:
    """Writes the configuration of a model of these sizes, without weights; returns it."""
    shape = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "rope_theta": 500000.0,
        "torch_dtype": "bfloat16",
        **sizes,
    }
    (folder / "config.json").write_text(json.dumps(shape))
    return shape


def start_engine(folder: str, variant: str, cases: tuple[Case, ...]) -> Any:
    """Starts an engine with random weights of the shape that `folder` holds."""
    import torch
    from vllm import LLM

    cuda = torch.cuda.is_available()
    backend = "FLASH_ATTN" if variant == "plain" else "CUSTOM"
    without_cuda = {"kv_cache_memory_bytes": 2**26, "enforce_eager": True}  # a rehearsal only
    return LLM(
        folder,
        load_format="dummy",
        skip_tokenizer_init=True,
        dtype="bfloat16",
        max_model_len=max(case.context + case.tokens for case in cases) + 16,
        max_num_seqs=max(case.rows for case in cases),
        enable_prefix_caching=False,
        **({"attention_backend": backend} if cuda else without_cuda),
    )


def fits(llm: Any, case: Case) -> bool:
    """Whether the keys and values of a whole batch fit the engine's cache."""
    config = llm.llm_engine.vllm_config.cache_config
    pages = -(-(case.context + case.tokens + 1) // config.block_size)
    return case.rows * pages < config.num_gpu_blocks


def run(llm: Any, case: Case, spec: str | None) -> dict[str, float]:
    """Runs a batch.

    Returns the seconds until every row has its first token, and those of a step in which every row
    draws a token (the median).
    """
    from vllm import SamplingParams
    from vllm.inputs import tokens_input

    extra = {"holdfast": spec, "holdfast_span": [4, 4 + case.span]} if spec else None
    sampling = SamplingParams(
        temperature=0,
        max_tokens=1 + case.tokens,
        ignore_eos=True,
        detokenize=False,
        extra_args=extra,
    )
    engine = llm.llm_engine
    vocabulary = engine.model_config.hf_config.vocab_size
    for row in range(case.rows):
        prompt = [(row * 7919 + position * 104729) % vocabulary for position in range(case.context)]
        engine.add_request(str(row), tokens_input(prompt), sampling)
    start = before = time.perf_counter()
    first_seconds = 0.0
    step_seconds: list[float] = []  # of the steps that read no prompt
    num_drawn = 0  # rows that drew a token in the step before
    while engine.has_unfinished_requests():
        outputs = engine.step()
        now = time.perf_counter()
        if len(outputs) == case.rows:
            first_seconds = first_seconds or now - start
            if num_drawn == case.rows:
                step_seconds.append(now - before)
        before = now
        num_drawn = len(outputs)
    return {"first_seconds": first_seconds, "step_seconds": statistics.median(step_seconds)}


def measure(folder: str, variant: str, cases: tuple[Case, ...]) -> None:
    """Measures an engine in this process, and prints a line for each case."""
    llm = start_engine(folder, variant, cases)
    for case in cases:
        if not fits(llm, case):
            print(json.dumps({"case": asdict(case), "left_out": "does not fit the cache"}))
            continue
        spec = METHOD if variant == "everything steered" else None
        run(llm, case, spec)  # warms up
        print(json.dumps({"case": asdict(case), **run(llm, case, spec)}), flush=True)


def measure_in_process(folder: str, variant: str, rehearse: bool) -> list[dict[str, Any]]:
    """Measures an engine in a process of its own; returns the line of each case."""
    command = [sys.executable, __file__, "--work", folder, "--variant", variant]
    environment = {
        **os.environ,
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_LOGGING_LEVEL": "WARNING",
        # stock vLLM has one backend on a CPU, which the plug-in would replace
        **({"VLLM_PLUGINS": "none"} if variant == "plain" else {}),
    }
    done = subprocess.run(
        [*command, *(["--rehearse"] if rehearse else [])],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"case"')]


def sum_up(case: Case, lines_by_variant: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Makes a row of the record: each variant's medians, and their ratio to stock vLLM."""
    row: dict[str, Any] = {**asdict(case)}
    for variant, lines in lines_by_variant.items():
        if "left_out" in lines[0]:
            return {**row, "left_out": lines[0]["left_out"]}
        row[variant] = {
            name: statistics.median(line[name] for line in lines)
            for name in ("first_seconds", "step_seconds")
        }
        step_seconds = row[variant]["step_seconds"]
        row[variant]["tokens_per_second"] = round(case.rows / step_seconds, 1)
        row[variant]["of_plain"] = round(row["plain"]["step_seconds"] / step_seconds, 4)
    print(f"{case.rows} rows, context {case.context}", row, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--rehearse", action="store_true", help="a tiny shape, on any device")
    parser.add_argument("--out", type=Path)
    # for the processes that this starts
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--variant", choices=VARIANTS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    cases = REHEARSED if args.rehearse else CASES
    if args.work:
        return measure(args.work, args.variant, cases)
    with tempfile.TemporaryDirectory() as folder:
        shape = write_shape(Path(folder), TINY if args.rehearse else LARGE)
        runs: dict[str, list[list[dict[str, Any]]]] = {variant: [] for variant in VARIANTS}
        for _ in range(args.repetitions):
            for variant in VARIANTS:
                runs[variant].append(measure_in_process(folder, variant, args.rehearse))
    rows = [
        sum_up(case, {variant: [run[number] for run in runs[variant]] for variant in VARIANTS})
        for number, case in enumerate(cases)
    ]
    if args.out:
        sys.path.insert(0, str(ROOT / "benchmarks"))
        from stamp import measured_on

        record = {"measured_on": measured_on(), "shape": shape, "method": METHOD, "rows": rows}
        args.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
