"""The cost of steered attention: a Llama shape of 130 M parameters with random weights, against
plain SDPA, on the CPU.

All variants alternate in this process, so that each ratio compares measurements close in time; the
median over repetitions is reported with its quartiles. "eager formula" is what other tools usually
do: the attention matrix, a formula on it, and a second product; "pastalib" is the package of that
name, on the same heads as our PASTA, with the eager attention it needs.

    pip install --no-deps pastalib==0.1.3     # without it, its column is left out
    python benchmarks/attention.py --out benchmarks/results/attention.json

"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import torch
from ratios import ratios
from stamp import measured_on
from transformers import (
    AttentionInterface,
    AttentionMaskInterface,
    DynamicCache,
    LlamaConfig,
    LlamaForCausalLM,
)
from transformers.masking_utils import sdpa_mask

from holdfast import Pasta, SplitSoftmax
from holdfast.attention import IMPLEMENTATION, SteeringSpec, steered

try:
    from pastalib import pasta as pastalib
except ImportError:
    pastalib = None

SPAN = slice(5, 155)  # 150 tokens after the first few of a template
LAYERS = HEADS = 12
EXPONENT = 0.5
EAGER = 2  # repetitions after which the slow variants are skipped
LONGEST = 20.0  # seconds of a plain pass; a workload that takes longer is skipped
DECODE = [(batch, context) for batch in (1, 8) for context in (512, 2048)]
PREFILL = [1024, 4096]


def build(dtype: torch.dtype) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=768,
        intermediate_size=2048,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=4,
        vocab_size=32000,
        max_position_embeddings=8192,
    )
    return LlamaForCausalLM(config).to(dtype).eval()


def ten_percent() -> Pasta:
    """PASTA on 14 of the 144 heads, drawn once."""
    heads = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
    return Pasta(0.01, frozenset(random.Random(0).sample(heads, 14)))


def eager_formula(module, query, key, value, mask, scaling=None, **kwargs):
    """Split-softmax on the attention matrix."""
    repeats = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(repeats, 1), value.repeat_interleave(repeats, 1)
    scores = query @ key.mT * scaling
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    elif query.shape[2] > 1:
        scores = scores.masked_fill(
            ~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -torch.inf
        )
    weights = scores.softmax(-1, dtype=torch.float32)
    span = torch.zeros(weights.shape[-1], dtype=torch.bool)
    span[SPAN] = True
    pi = (weights * span).sum(-1, keepdim=True).clamp(1e-6, 1 - 1e-6)
    weights = torch.where(
        span, weights * pi ** (EXPONENT - 1), weights * (1 - pi**EXPONENT) / (1 - pi)
    ).to(query.dtype)
    return (weights @ value).transpose(1, 2).contiguous(), None


def variants(model, rows: int, prompt: int) -> dict:
    """Maps names to (attention implementation, function from the number of columns to the context
    manager of one pass).
    """
    span = torch.zeros(rows, prompt + 512, dtype=torch.bool)
    span[:, SPAN] = True

    def with_(*methods, trace=False):
        return lambda columns: steered(
            SteeringSpec(
                span[:, :columns], [methods] * rows, trace, prompt=[min(prompt, columns)] * rows
            )
        )

    ways = {
        "plain": ("sdpa", lambda columns: nullcontext()),
        "unsteered": (IMPLEMENTATION, lambda columns: nullcontext()),
        "split-softmax": (IMPLEMENTATION, with_(SplitSoftmax(EXPONENT))),
        "pasta, 10% of heads": (IMPLEMENTATION, with_(ten_percent())),
        "trace": (IMPLEMENTATION, with_(trace=True)),
        "eager formula": ("eager formula", lambda columns: nullcontext()),
    }
    if pastalib is not None:
        chosen: dict[int, list[int]] = {}
        for layer, head in sorted(ten_percent().heads):
            chosen.setdefault(layer, []).append(head)
        other = pastalib.PASTA(model, None, chosen, alpha=0.01)
        text = "".join(
            "b" if SPAN.start <= index < SPAN.stop else "a" for index in range(prompt)
        )  # one letter per token
        held, offsets = text[SPAN], [(index, index + 1) for index in range(prompt)]
        inputs = {"input_ids": torch.empty(rows, prompt)}
        ways["pastalib, 10% of heads"] = (
            "eager",
            lambda columns: other.apply_steering(
                model, [text] * rows, [held] * rows, inputs, [offsets] * rows
            ),
        )
    return ways


@torch.inference_mode()
def decode(model, rows: int, context: int, repetitions: int, burst: int) -> dict:
    """Seconds per pass of one token after `context` tokens: `burst` passes of each variant at a
    time, in a new random order each repetition.
    """
    model.set_attn_implementation("sdpa")
    size, ways = model.config.head_dim, variants(model, rows, context)
    torch.manual_seed(1)
    stored = [
        [torch.randn(rows, 4, context + 512, size).to(model.dtype) for _ in range(2)]
        for _ in range(LAYERS)
    ]
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    token = torch.ones(rows, 1, dtype=torch.long)
    for repetition in range(-1, repetitions):
        for name in random.sample(list(ways), len(ways)):
            implementation, steer = ways[name]
            if implementation.startswith("eager") and repetition > EAGER:
                continue
            model.set_attn_implementation(implementation)
            cache = _Growing(stored, context)
            started = time.perf_counter()
            for step in range(burst):
                columns = context + step + 1
                with steer(columns):
                    model(input_ids=token, past_key_values=cache, use_cache=True, logits_to_keep=1)
            if repetition >= 0:
                seconds[name].append((time.perf_counter() - started) / burst)
    return seconds


class _Growing(DynamicCache):
    """Writes keys and values into preallocated memory, as the decode loop's cache does, so that
    copying does not hide costs.
    """

    def __init__(self, stored, length: int):
        super().__init__()
        self.stored, self.length = stored, length

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.length

    def get_query_offset(self, layer_idx: int = 0) -> int:
        return self.length

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        return self.length + query_length, 0

    def update(self, key_states, value_states, layer_idx, *args, **kwargs):
        last = self.length + key_states.shape[2]
        for store, new in zip(self.stored[layer_idx], (key_states, value_states), strict=True):
            store[:, :, self.length : last] = new
        if layer_idx == LAYERS - 1:
            self.length = last
        return tuple(store[:, :, :last] for store in self.stored[layer_idx])


@torch.inference_mode()
def prefill(model, length: int, repetitions: int) -> dict | None:
    """Seconds per pass over a whole prompt; None if a plain pass takes too long, as in bfloat16 on
    a processor without hardware support for it.
    """
    ways = variants(model, 1, length)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    ids = torch.randint(3, 32000, (1, length), generator=torch.Generator().manual_seed(2))
    model.set_attn_implementation("sdpa")
    started = time.perf_counter()
    model(input_ids=ids, use_cache=True, logits_to_keep=1)
    if time.perf_counter() - started > LONGEST:
        return None
    for repetition in range(-1, repetitions):
        for name in random.sample(list(ways), len(ways)):
            implementation, steer = ways[name]
            if implementation.startswith("eager") and repetition > EAGER:
                continue
            model.set_attn_implementation(implementation)
            started = time.perf_counter()
            with steer(length):
                model(input_ids=ids, use_cache=True, logits_to_keep=1)
            if repetition >= 0:
                seconds[name].append(time.perf_counter() - started)
    return seconds


def peak_of(name: str, dtype: torch.dtype, length: int) -> int:
    """Peak resident bytes of a process that prefills once."""
    command = [
        sys.executable,
        __file__,
        "--peak",
        name,
        "--dtype",
        str(dtype).removeprefix("torch."),
        "--length",
        str(length),
    ]
    return int(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]
    )


@torch.inference_mode()
def print_peak(name: str, dtype: torch.dtype, length: int) -> None:
    model = build(dtype)
    implementation, steer = variants(model, 1, length)[name]
    model.set_attn_implementation(implementation)
    with steer(length):
        model(input_ids=torch.ones(1, length, dtype=torch.long), use_cache=True, logits_to_keep=1)
    high = (
        Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
    )  # getrusage would report the parent process's peak
    print(int(high) * 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=60)
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--only", choices=["decode", "prefill", "memory"])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    parser.add_argument("--dtype", default="float32", help=argparse.SUPPRESS)
    parser.add_argument("--length", type=int, default=4096, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    AttentionInterface.register("eager formula", eager_formula)
    AttentionMaskInterface.register("eager formula", sdpa_mask)
    if arguments.peak:
        return print_peak(arguments.peak, getattr(torch, arguments.dtype), arguments.length)
    result = {
        "benchmark": "attention",
        "threads": arguments.threads,
        "measured_on": measured_on(),
        "shape": "Llama, 12 layers, 12 heads, 4 key-value heads, width 768",
        "span": 150,
        "rows": [],
    }
    for row in _rows(arguments):
        result["rows"].append(row)
        if arguments.out:
            arguments.out.write_text(json.dumps(result, indent=1) + "\n")


def _rows(arguments):
    for name in arguments.dtypes:
        dtype = getattr(torch, name)
        model = None if arguments.only == "memory" else build(dtype)
        for batch, context in DECODE if arguments.only in (None, "decode") else ():
            yield ratios(
                f"{name}, decode, batch {batch}, context {context}",
                decode(model, batch, context, arguments.repetitions, 4),
            )
        for length in PREFILL if arguments.only in (None, "prefill") else ():
            repetitions = max(3, arguments.repetitions * 512 // length)
            seconds = prefill(model, length, repetitions)
            if seconds is None:
                print(
                    f"left out: {name}, prefill {length}, over {LONGEST:.0f} s a pass", flush=True
                )
                continue
            yield ratios(f"{name}, prefill {length}", seconds)
        if arguments.only in (None, "memory"):
            ways = [name for name in variants(build(torch.float32), 1, 4096) if name != "unsteered"]
            peaks = {way: peak_of(way, dtype, 4096) for way in ways}
            row = {
                "work": f"{name}, peak memory, prefill 4096",
                "bytes": peaks,
                "ratios": {k: v / peaks["plain"] for k, v in peaks.items()},
            }
            print(row["work"], {k: round(v, 3) for k, v in row["ratios"].items()}, flush=True)
            yield row


if __name__ == "__main__":
    main()
