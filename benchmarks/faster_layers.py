"""Measures how much faster a decode step is with other forms of a model's layers, in bfloat16.

- packed: weights laid out once for the processor's own kernels (oneDNN), which is what ships
- int8: 8-bit weights, activations quantised on the fly (PyTorch's `quantize_dynamic`)
- compiled: a layer's norms and feed-forward part, fused by `torch.compile`, which needs a C++
  compiler

Each is timed in alternation with PyTorch's plain layers: all products of a step for the first two,
the compiled part for the last. A whole step is timed as it ships and with plain layers.

    python benchmarks/faster_layers.py --out benchmarks/results/faster_layers.json
"""

from __future__ import annotations

import os

# as the command line does, before torch
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")

import argparse
import copy
import json
import statistics
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from decode_step import step
from stamp import measured_on, write_json
from torch import Tensor, nn

import holdfast
from holdfast.models.packed_layers import PackedLinear

ROWS = (1, 16, 48)
Work = Callable[[], object]


def seconds(work: Work) -> float:
    """The time that some work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def ratios(plain: Work, other: Work, repetitions: int) -> dict[str, float]:
    """The speedup of `other` over `plain`, with quartiles."""
    for work in (plain, other):  # warm up
        work()
    return quartiles(seconds(plain) / seconds(other) for _ in range(repetitions))


def quartiles(ratios: Iterable[float]) -> dict[str, float]:
    """The median and the quartiles of ratios."""
    low, median, high = statistics.quantiles(ratios)
    return {"median": median, "low": low, "high": high}


def packed(linear: nn.Linear) -> Callable[[Tensor], Tensor]:
    """A layer with its weights laid out for oneDNN."""
    weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight)
    return lambda x: torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")


def in_int8(linear: nn.Linear) -> Callable[[Tensor], Tensor]:
    """A layer with 8-bit weights."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = nn.Sequential(copy.deepcopy(linear).float())
        (quantised,) = torch.ao.quantization.quantize_dynamic(module, {nn.Linear}, torch.qint8)
    return lambda x: quantised(x.float()).to(x.dtype)


def products(model, rows: int, form: Callable, repetitions: int) -> dict[str, float]:
    """The speedup of all products of a step, if its layers have another form.

    Args:
        form: makes the other form of a layer.
    """
    linears = [module for module in model.modules() if isinstance(module, nn.Linear)]
    inputs = [torch.randn(rows, layer.in_features, dtype=layer.weight.dtype) for layer in linears]
    others = [form(layer) for layer in linears]

    def run(layers) -> Work:
        return lambda: [layer(x) for layer, x in zip(layers, inputs, strict=True)]

    return ratios(run(linears), run(others), repetitions)


def with_plain_layers(loaded):
    """The model with PyTorch's own layers."""
    for module in loaded.hf_model.modules():
        if isinstance(module, PackedLinear):
            module.unpack()
    return loaded


def compiled(model, rows: int, repetitions: int) -> dict[str, float]:
    """The speedup of every layer's norms and feed-forward part."""
    layers = model.model.layers

    def feed_forward(layer: nn.Module, x: Tensor) -> Tensor:
        return x + layer.mlp(layer.post_attention_layernorm(layer.input_layernorm(x)))

    x = torch.randn(rows, 1, model.config.hidden_size, dtype=model.dtype)
    fused = torch.compile(feed_forward)
    return ratios(
        lambda: [feed_forward(layer, x) for layer in layers],
        lambda: [fused(layer, x) for layer in layers],
        repetitions,
    )


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="qwen-0.5b")
    parser.add_argument("--repetitions", type=int, default=21)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    shipped = holdfast.load(arguments.model, dtype="bfloat16")
    plain = with_plain_layers(holdfast.load(arguments.model, dtype="bfloat16"))
    torch.set_num_threads(arguments.threads)
    model = plain.hf_model
    rows = []
    for count in ROWS:
        row = {
            "rows": count,
            "packed": products(model, count, packed, arguments.repetitions),
            "int8": products(model, count, in_int8, arguments.repetitions),
            "compiled": compiled(model, count, arguments.repetitions),
            "packed_step": quartiles(
                step(plain, count, "none") / step(shipped, count, "none")
                for _ in range(arguments.repetitions // 4)
            ),
        }
        print(json.dumps(row), flush=True)
        rows.append(row)
    record = {
        "benchmark": "faster_layers",
        "model": arguments.model,
        "measured_on": measured_on(shipped),
        "threads": arguments.threads,
        "rows": rows,
    }
    if arguments.out:
        write_json(record, arguments.out)


if __name__ == "__main__":
    main()
