"""The cost of steered attention, against plain SDPA: Llama shapes with random weights, on the GPU
if there is one, otherwise on the CPU.

All variants alternate in this process, so that each ratio compares measurements close in time; the
median over repetitions is reported with its quartiles. "eager formula" is what other tools usually
do: the attention matrix, a formula on it, and a second product; "pastalib" is the package of that
name, on the same heads as our PASTA, with the eager attention it needs.

    pip install --no-deps pastalib==0.1.3     # without it, its column is left out
    python benchmarks/attention.py --out benchmarks/results/attention.json
    python benchmarks/attention.py --shape 8b --dtypes bfloat16 --out FILE.json     # with a GPU
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import torch
from growth import memory
from ratios import ratios
from stamp import measured_on, write_json
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import (
    AttentionInterface,
    AttentionMaskInterface,
    AutoModelForCausalLM,
    DynamicCache,
    LlamaConfig,
    LlamaForCausalLM,
)
from transformers.masking_utils import sdpa_mask

from holdfast import Boost, Pasta, SplitSoftmax
from holdfast.attention import IMPLEMENTATION, BatchSteering, steer_pass
from holdfast.methods import compile_methods

try:
    from pastalib import pasta as pastalib
except ImportError:
    pastalib = None

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SPAN = slice(5, 155)  # 150 tokens after the first few of a template
SHAPES = {
    "130m": {
        "hidden_size": 768,
        "intermediate_size": 2048,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "num_key_value_heads": 4,
        "vocab_size": 32000,
    },
    "8b": {  # Llama 3
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
    },
}
EXPONENT = 0.5
EAGER = 2  # repetitions after which the slow variants are skipped
MAX_PASS_SECONDS = 20.0  # seconds of a plain pass; a workload that takes longer is skipped
DECODE = [(batch, context) for batch in (1, 8) for context in (512, 2048)]
PREFILL = [1024, 4096]


def build(shape: str, dtype: torch.dtype) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(**SHAPES[shape], max_position_embeddings=8192)
    with DEVICE:
        return AutoModelForCausalLM.from_config(config, dtype=dtype).eval()


def ten_percent(model: LlamaForCausalLM) -> Pasta:
    """PASTA on a tenth of the heads, drawn once."""
    layers = model.config.num_hidden_layers
    width = model.config.num_attention_heads
    heads = [(layer, head) for layer in range(layers) for head in range(width)]
    return Pasta(0.01, frozenset(random.Random(0).sample(heads, len(heads) // 10)))


def clock() -> float:
    """Returns the time in seconds, after waiting for the device to finish."""
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def eager_formula(module, query, key, value, mask, scaling=None, **kwargs):
    """Split-softmax on the attention matrix."""
    repeats = query.shape[1] // key.shape[1]
    key = key.repeat_interleave(repeats, 1)
    value = value.repeat_interleave(repeats, 1)
    scores = query @ key.mT * scaling
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    elif query.shape[2] > 1:
        scores = scores.masked_fill(
            ~torch.ones_like(scores[0, 0], dtype=torch.bool).tril(), -torch.inf
        )
    weights = scores.softmax(-1, dtype=torch.float32)
    span = torch.zeros(weights.shape[-1], dtype=torch.bool, device=weights.device)
    span[SPAN] = True
    pi = (weights * span).sum(-1, keepdim=True).clamp(1e-6, 1 - 1e-6)
    weights = torch.where(
        span, weights * pi ** (EXPONENT - 1), weights * (1 - pi**EXPONENT) / (1 - pi)
    ).to(query.dtype)
    return (weights @ value).transpose(1, 2).contiguous(), None


def variants(model, rows: int, prompt: int) -> dict:
    """Maps names to (attention implementation, context manager of one pass)."""
    span = torch.zeros(rows, prompt, dtype=torch.bool, device=DEVICE)
    span[:, SPAN] = True

    def with_(*methods, trace=False):
        # one for all passes, as the decode loop has
        compiled = [compile_methods(methods)] * rows
        spec = BatchSteering(span, compiled, trace, [prompt] * rows, covers_pass=False)
        return lambda: steer_pass(spec)

    ways = {
        "plain": ("sdpa", nullcontext),
        "unsteered": (IMPLEMENTATION, nullcontext),
        "split-softmax": (IMPLEMENTATION, with_(SplitSoftmax(EXPONENT))),
        "pasta, 10% of heads": (IMPLEMENTATION, with_(ten_percent(model))),
        "boost": (IMPLEMENTATION, with_(Boost(4))),
        "trace": (IMPLEMENTATION, with_(trace=True)),
        "eager formula": ("eager formula", nullcontext),
    }
    if DEVICE.type == "cuda":
        backends = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
        ways["plain without cuDNN"] = ("sdpa", lambda: sdpa_kernel(backends))
    if pastalib is not None:
        chosen: dict[int, list[int]] = {}
        for layer, head in sorted(ten_percent(model).heads):
            chosen.setdefault(layer, []).append(head)
        other = pastalib.PASTA(model, None, chosen, alpha=0.01)
        text = "".join(
            "b" if SPAN.start <= index < SPAN.stop else "a" for index in range(prompt)
        )  # one letter per token
        span_text = text[SPAN]
        offsets = [(index, index + 1) for index in range(prompt)]
        inputs = {"input_ids": torch.empty(rows, prompt)}
        ways["pastalib, 10% of heads"] = (
            "eager",
            lambda: other.apply_steering(
                model, [text] * rows, [span_text] * rows, inputs, [offsets] * rows
            ),
        )
    return ways


@torch.inference_mode()
def decode(model, rows: int, context: int, repetitions: int, burst: int) -> dict:
    """Seconds per pass of one token after `context` tokens: `burst` passes of each variant at a
    time, in a new random order each repetition. On a GPU the context grows with each repetition, as
    in a reply: cuDNN, which SDPA may choose there, plans a kernel for every new number of keys.
    """
    model.set_attn_implementation("sdpa")
    size = model.config.head_dim
    groups = model.config.num_key_value_heads
    ways = variants(model, rows, context)
    if DEVICE.type == "cuda":
        del ways["unsteered"]  # it would find what "plain" has planned
    torch.manual_seed(1)
    stored = [
        torch.randn(2, rows, groups, context + 512, size, device=DEVICE, dtype=model.dtype)
        for _ in range(model.config.num_hidden_layers)
    ]
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    token = torch.ones(rows, 1, dtype=torch.long, device=DEVICE)
    for repetition in range(-1, repetitions):
        for name in random.sample(list(ways), len(ways)):
            implementation, steer = ways[name]
            if implementation.startswith("eager") and repetition > EAGER:
                continue
            model.set_attn_implementation(implementation)
            grown = burst * (repetition + 1) if DEVICE.type == "cuda" else 0
            cache = _Growing(stored, context + grown)
            started = clock()
            for _ in range(burst):
                with steer():
                    model(input_ids=token, past_key_values=cache, use_cache=True, logits_to_keep=1)
            if repetition >= 0:
                seconds[name].append((clock() - started) / burst)
    return seconds


class _Growing(DynamicCache):
    """Writes keys and values into preallocated memory, as the decode loop's cache does, so that
    copying does not hide costs.
    """

    def __init__(self, stored, length: int):
        super().__init__()
        self.stored = stored
        self.length = length

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
        if layer_idx == len(self.stored) - 1:
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
    ids = ids.to(DEVICE)
    model.set_attn_implementation("sdpa")
    started = clock()
    model(input_ids=ids, use_cache=True, logits_to_keep=1)
    if clock() - started > MAX_PASS_SECONDS:
        return None
    for repetition in range(-1, repetitions):
        for name in random.sample(list(ways), len(ways)):
            implementation, steer = ways[name]
            if implementation.startswith("eager") and repetition > EAGER:
                continue
            model.set_attn_implementation(implementation)
            started = clock()
            with steer():
                model(input_ids=ids, use_cache=True, logits_to_keep=1)
            if repetition >= 0:
                seconds[name].append(clock() - started)
    return seconds


def peak_of(model, shape: str, name: str, length: int) -> int:
    """Returns the peak memory of one prefill in bytes: of the GPU, or else of a new process."""
    if DEVICE.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        run_once(model, name, length)
        return torch.cuda.max_memory_allocated()
    dtype = str(model.dtype).removeprefix("torch.")
    command = [sys.executable, __file__, "--peak", name, "--dtypes", dtype, "--shape", shape]
    done = subprocess.run(
        [*command, "--length", str(length)], stdout=subprocess.PIPE, text=True, check=True
    )
    return int(done.stdout.split()[-1])


@torch.inference_mode()
def run_once(model, name: str, length: int) -> None:
    implementation, steer = variants(model, 1, length)[name]
    model.set_attn_implementation(implementation)
    ids = torch.ones(1, length, dtype=torch.long, device=DEVICE)
    with steer():
        model(input_ids=ids, use_cache=True, logits_to_keep=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--shape", choices=SHAPES, default="130m")
    parser.add_argument("--repetitions", type=int, default=60)
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--only", choices=["decode", "prefill", "memory"])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    parser.add_argument("--length", type=int, default=4096, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    AttentionInterface.register("eager formula", eager_formula)
    AttentionMaskInterface.register("eager formula", sdpa_mask)
    if arguments.peak:
        model = build(arguments.shape, getattr(torch, arguments.dtypes[0]))
        run_once(model, arguments.peak, arguments.length)
        # getrusage would report the parent process's peak
        print(memory("VmHWM"))
        return
    result = {
        "benchmark": "attention",
        "threads": arguments.threads,
        "measured_on": measured_on(),
        "shape": "Llama, {num_hidden_layers} layers, {num_attention_heads} heads,"
        " {num_key_value_heads} key-value heads, width {hidden_size}".format(
            **SHAPES[arguments.shape]
        ),
        "span": 150,
        "rows": [],
    }
    for row in _rows(arguments):
        result["rows"].append(row)
        if arguments.out:
            write_json(result, arguments.out)


def _rows(arguments):
    for name in arguments.dtypes:
        model = build(arguments.shape, getattr(torch, name))
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
                    f"left out: {name}, prefill {length}, over {MAX_PASS_SECONDS:.0f} s a pass",
                    flush=True,
                )
                continue
            yield ratios(f"{name}, prefill {length}", seconds)
        if arguments.only in (None, "memory"):
            ways = [way for way in variants(model, 1, 4096) if way != "unsteered"]
            peaks = {way: peak_of(model, arguments.shape, way, 4096) for way in ways}
            row = {
                "work": f"{name}, peak memory, prefill 4096",
                "bytes": peaks,
                "ratios": {k: v / peaks["plain"] for k, v in peaks.items()},
            }
            print(row["work"], {k: round(v, 3) for k, v in row["ratios"].items()}, flush=True)
            yield row


if __name__ == "__main__":
    main()
