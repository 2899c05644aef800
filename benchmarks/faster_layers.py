"""How much faster a decode step would be with other forms of SmolLM2's layers.

- packed: weights laid out once for the processor's own kernels (mkldnn), in bfloat16
- int8: 8-bit weights, activations quantised on the fly (PyTorch's `quantize_dynamic`)
- compiled: a layer's norms and feed-forward part, fused by `torch.compile`, which needs a C++
  compiler

Each is timed in alternation with the shipped form: all products of a step for the first two, the
compiled part for the last. A whole step is timed with the weights packed, except for the output
layer's, which may also be the embeddings.

    python benchmarks/faster_layers.py --out benchmarks/results/faster_layers.json
"""

from __future__ import annotations

import os

os.environ.setdefault("GOMP_SPINCOUNT", "10000")  # as the command line does, before torch

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
from stamp import measured_on
from torch import Tensor, nn

import holdfast

ROWS = (1, 16, 48)
Work = Callable[[], object]


def seconds(work: Work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def ratios(plain: Work, other: Work, repetitions: int) -> dict[str, float]:
    """The speedup of `other` over `plain`, with quartiles."""
    plain(), other()
    return quartiles(seconds(plain) / seconds(other) for _ in range(repetitions))


def quartiles(ratios: Iterable[float]) -> dict[str, float]:
    low, median, high = statistics.quantiles(ratios)
    return {"median": median, "low": low, "high": high}


def packed(linear: nn.Linear) -> Callable[[Tensor], Tensor]:
    weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight)
    return lambda x: torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")


def in_int8(linear: nn.Linear) -> Callable[[Tensor], Tensor]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = nn.Sequential(copy.deepcopy(linear).float())
        (quantised,) = torch.ao.quantization.quantize_dynamic(module, {nn.Linear}, torch.qint8)
    return lambda x: quantised(x.float()).to(x.dtype)


def products(model, rows: int, form: Callable, repetitions: int) -> dict[str, float]:
    """The speedup of all products of a step."""
    linears = [part for part in model.modules() if isinstance(part, nn.Linear)]
    inputs = [torch.randn(rows, part.in_features, dtype=part.weight.dtype) for part in linears]
    others = [form(part) for part in linears]

    def run(forms) -> Work:
        return lambda: [product(x) for product, x in zip(forms, inputs, strict=True)]

    return ratios(run(linears), run(others), repetitions)


class Packed(nn.Module):
    """A layer without its weight as a parameter, which nothing else can read any more."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.form = packed(linear)

    def forward(self, x: Tensor) -> Tensor:
        return self.form(x)


def in_packed_form(loaded):
    """The model with the weights of its layers packed, and the output layer as it was."""
    for name, part in list(loaded.hf_model.model.named_modules()):
        if isinstance(part, nn.Linear):
            loaded.hf_model.model.set_submodule(name, Packed(part))
    return loaded


def compiled(model, rows: int, repetitions: int) -> dict[str, float]:
    """The speedup of every layer's norms and feed-forward part."""
    layers = model.model.layers

    def part(layer: nn.Module, x: Tensor) -> Tensor:
        return x + layer.mlp(layer.post_attention_layernorm(layer.input_layernorm(x)))

    x = torch.randn(rows, 1, model.config.hidden_size, dtype=model.dtype)
    fused = torch.compile(part)
    return ratios(
        lambda: [part(layer, x) for layer in layers],
        lambda: [fused(layer, x) for layer in layers],
        repetitions,
    )


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=21)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    loaded = holdfast.load("smollm2", dtype="bfloat16")
    torch.set_num_threads(arguments.threads)
    model, rows = loaded.hf_model, []
    other = in_packed_form(holdfast.load("smollm2", dtype="bfloat16"))
    torch.set_num_threads(arguments.threads)
    for count in ROWS:
        row = {
            "rows": count,
            "packed": products(model, count, packed, arguments.repetitions),
            "int8": products(model, count, in_int8, arguments.repetitions),
            "compiled": compiled(model, count, arguments.repetitions),
            "packed_step": quartiles(
                step(loaded, count, "none") / step(other, count, "none")
                for _ in range(arguments.repetitions // 4)
            ),
        }
        print(json.dumps(row), flush=True)
        rows.append(row)
    record = {
        "benchmark": "faster_layers",
        "measured_on": measured_on(loaded),
        "threads": arguments.threads,
        "rows": rows,
    }
    if arguments.out:
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
