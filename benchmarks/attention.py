"""Measures the cost of steered attention against plain SDPA: Llama shapes with random weights, on
the GPU if there is one, otherwise on the CPU.

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
import itertools
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

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
EXPONENT = 0.5  # of split-softmax
WARM_UP = -1  # the repetition that is not measured
EAGER_REPETITIONS = 2  # after which the slow variants are skipped
MAX_PASS_SECONDS = 20.0  # of a plain pass; a workload that takes longer is skipped
DECODE_BATCHES = (1, 8)
DECODE_CONTEXTS = (512, 2048)  # tokens
DECODE_BURST = 4  # passes of a variant at a time
PREFILL_LENGTHS = (1024, 4096)  # tokens
MEMORY_LENGTH = 4096  # tokens of the prefill whose peak memory is measured


class Variant(NamedTuple):
    """A way to compute attention."""

    implementation: str  # its name for transformers
    steer: Callable[[], AbstractContextManager]  # steers the pass inside the block

    @property
    def is_slow(self) -> bool:
        """Whether it computes the attention matrix."""
        return self.implementation.startswith("eager")


def build(shape: str, dtype: torch.dtype) -> LlamaForCausalLM:
    """A model of this shape with random weights."""
    torch.manual_seed(0)
    config = LlamaConfig(**SHAPES[shape], max_position_embeddings=8192)
    with DEVICE:
        return AutoModelForCausalLM.from_config(config, dtype=dtype).eval()


def pasta_on_some_heads(model: LlamaForCausalLM) -> Pasta:
    """PASTA on a tenth of the heads, drawn once."""
    layers = model.config.num_hidden_layers
    heads_per_layer = model.config.num_attention_heads
    heads = [(layer, head) for layer in range(layers) for head in range(heads_per_layer)]
    return Pasta(0.01, frozenset(random.Random(0).sample(heads, len(heads) // 10)))


def seconds_now() -> float:
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


def variants(model, rows: int, prompt: int) -> dict[str, Variant]:
    """The variants to compare, by name, for a prompt of so many tokens in each row."""
    span = torch.zeros(rows, prompt, dtype=torch.bool, device=DEVICE)
    span[:, SPAN] = True

    def steered(*methods, trace=False) -> Variant:
        # one for all passes, as the decode loop has
        compiled = [compile_methods(methods)] * rows
        steering = BatchSteering(span, compiled, trace, [prompt] * rows, covers_pass=False)
        return Variant(IMPLEMENTATION, lambda: steer_pass(steering))

    by_name = {
        "plain": Variant("sdpa", nullcontext),
        "unsteered": Variant(IMPLEMENTATION, nullcontext),
        "split-softmax": steered(SplitSoftmax(EXPONENT)),
        "pasta, 10% of heads": steered(pasta_on_some_heads(model)),
        "boost": steered(Boost(4)),
        "trace": steered(trace=True),
        "eager formula": Variant("eager formula", nullcontext),
    }
    if DEVICE.type == "cuda":
        backends = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
        by_name["plain without cuDNN"] = Variant("sdpa", lambda: sdpa_kernel(backends))
    if pastalib is not None:
        by_name["pastalib, 10% of heads"] = pastalib_variant(model, rows, prompt)
    return by_name


def pastalib_variant(model, rows: int, prompt: int) -> Variant:
    """The package pastalib on the heads of `pasta_on_some_heads`, with a text of one letter per
    token.
    """
    heads_by_layer: dict[int, list[int]] = {}
    for layer, head in sorted(pasta_on_some_heads(model).heads):
        heads_by_layer.setdefault(layer, []).append(head)
    pasta = pastalib.PASTA(model, None, heads_by_layer, alpha=0.01)
    text = "".join("b" if SPAN.start <= index < SPAN.stop else "a" for index in range(prompt))
    offsets = [(index, index + 1) for index in range(prompt)]
    inputs = {"input_ids": torch.empty(rows, prompt)}
    return Variant(
        "eager",
        lambda: pasta.apply_steering(
            model, [text] * rows, [text[SPAN]] * rows, inputs, [offsets] * rows
        ),
    )


def alternate(by_name: dict[str, Variant], repetitions: int) -> Iterator[tuple[int, str]]:
    """Yields each repetition, `WARM_UP` first, with the name of each variant in a new order.

    Slow variants are left out after the first few repetitions.
    """
    for repetition in range(WARM_UP, repetitions):
        for name in random.sample(list(by_name), len(by_name)):
            if not by_name[name].is_slow or repetition <= EAGER_REPETITIONS:
                yield repetition, name


@torch.inference_mode()
def decode(model, rows: int, context: int, repetitions: int) -> dict[str, list[float]]:
    """Seconds per pass of one token after `context` tokens, by variant: `DECODE_BURST` passes of
    each at a time, in a new random order each repetition.

    On a GPU the context grows with each repetition, as in a reply: cuDNN, which SDPA may choose
    there, plans a kernel for every new number of keys.
    """
    model.set_attn_implementation("sdpa")
    head_size = model.config.head_dim
    key_heads = model.config.num_key_value_heads
    by_name = variants(model, rows, context)
    if DEVICE.type == "cuda":
        del by_name["unsteered"]  # it would find what "plain" has planned
    torch.manual_seed(1)
    stored = [
        torch.randn(2, rows, key_heads, context + 512, head_size, device=DEVICE, dtype=model.dtype)
        for _ in range(model.config.num_hidden_layers)
    ]
    seconds: dict[str, list[float]] = {name: [] for name in by_name}
    token = torch.ones(rows, 1, dtype=torch.long, device=DEVICE)
    for repetition, name in alternate(by_name, repetitions):
        variant = by_name[name]
        model.set_attn_implementation(variant.implementation)
        grown = DECODE_BURST * (repetition + 1) if DEVICE.type == "cuda" else 0
        cache = PreallocatedCache(stored, context + grown)
        started = seconds_now()
        for _ in range(DECODE_BURST):
            with variant.steer():
                model(input_ids=token, past_key_values=cache, use_cache=True, logits_to_keep=1)
        if repetition != WARM_UP:
            seconds[name].append((seconds_now() - started) / DECODE_BURST)
    return seconds


class PreallocatedCache(DynamicCache):
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
def prefill(model, length: int, repetitions: int) -> dict[str, list[float]] | None:
    """Seconds per pass over a whole prompt, by variant; None if a plain pass takes too long, as in
    bfloat16 on a processor without hardware support for it.
    """
    by_name = variants(model, 1, length)
    seconds: dict[str, list[float]] = {name: [] for name in by_name}
    ids = torch.randint(3, 32000, (1, length), generator=torch.Generator().manual_seed(2))
    ids = ids.to(DEVICE)
    model.set_attn_implementation("sdpa")
    started = seconds_now()
    model(input_ids=ids, use_cache=True, logits_to_keep=1)
    if seconds_now() - started > MAX_PASS_SECONDS:
        return None
    for repetition, name in alternate(by_name, repetitions):
        variant = by_name[name]
        model.set_attn_implementation(variant.implementation)
        started = seconds_now()
        with variant.steer():
            model(input_ids=ids, use_cache=True, logits_to_keep=1)
        if repetition != WARM_UP:
            seconds[name].append(seconds_now() - started)
    return seconds


def peak_memory(model, shape: str, name: str, length: int) -> int:
    """Returns the peak memory of one prefill of a variant in bytes: of the GPU, or else of a new
    process.
    """
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
    """Makes one prefill of a variant."""
    variant = variants(model, 1, length)[name]
    model.set_attn_implementation(variant.implementation)
    ids = torch.ones(1, length, dtype=torch.long, device=DEVICE)
    with variant.steer():
        model(input_ids=ids, use_cache=True, logits_to_keep=1)


def measure(arguments: argparse.Namespace) -> Iterator[dict]:
    """Yields the rows of the record, as soon as each is measured."""
    for dtype in arguments.dtypes:
        model = build(arguments.shape, getattr(torch, dtype))
        if arguments.only in (None, "decode"):
            yield from decode_rows(model, dtype, arguments.repetitions)
        if arguments.only in (None, "prefill"):
            yield from prefill_rows(model, dtype, arguments.repetitions)
        if arguments.only in (None, "memory"):
            yield memory_row(model, dtype, arguments.shape)


def decode_rows(model, dtype: str, repetitions: int) -> Iterator[dict]:
    """Yields a row for each batch size and context."""
    for batch, context in itertools.product(DECODE_BATCHES, DECODE_CONTEXTS):
        seconds = decode(model, batch, context, repetitions)
        yield ratios(f"{dtype}, decode, batch {batch}, context {context}", seconds)


def prefill_rows(model, dtype: str, repetitions: int) -> Iterator[dict]:
    """Yields a row for each length of the prompt that does not take too long."""
    for length in PREFILL_LENGTHS:
        seconds = prefill(model, length, max(3, repetitions * 512 // length))
        if seconds is None:
            limit = f"over {MAX_PASS_SECONDS:.0f} s a pass"
            print(f"left out: {dtype}, prefill {length}, {limit}", flush=True)
        else:
            yield ratios(f"{dtype}, prefill {length}", seconds)


def memory_row(model, dtype: str, shape: str) -> dict:
    """Measures the peak memory of a prefill under each variant, and its ratio to the plain one."""
    peaks = {
        name: peak_memory(model, shape, name, MEMORY_LENGTH)
        for name in variants(model, 1, MEMORY_LENGTH)
        if name != "unsteered"
    }
    row = {
        "work": f"{dtype}, peak memory, prefill {MEMORY_LENGTH}",
        "bytes": peaks,
        "ratios": {name: peak / peaks["plain"] for name, peak in peaks.items()},
    }
    rounded = {name: round(ratio, 3) for name, ratio in row["ratios"].items()}
    print(row["work"], rounded, flush=True)
    return row


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
    record = {
        "benchmark": "attention",
        "threads": arguments.threads,
        "measured_on": measured_on(),
        "shape": "Llama, {num_hidden_layers} layers, {num_attention_heads} heads,"
        " {num_key_value_heads} key-value heads, width {hidden_size}".format(
            **SHAPES[arguments.shape]
        ),
        "span": SPAN.stop - SPAN.start,
        "rows": [],
    }
    for row in measure(arguments):
        record["rows"].append(row)
        if arguments.out:
            write_json(record, arguments.out)


if __name__ == "__main__":
    main()
