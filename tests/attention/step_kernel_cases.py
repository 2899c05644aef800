"""Cases of `test_triton.py`: a decode step in one kernel, and the steering table on a GPU, against
the papers' formulas.
"""

import math

import oracles
import pytest
import torch
import triton
import triton.language as tl
from attention_by_papers import (
    BFLOAT16,
    FLOAT32,
    KEEP,
    SPLIT,
    SPOT,
    attend_by_papers,
    max_difference,
)
from tiny import DEVICE

from holdfast.attention import BatchSteering, Starts
from holdfast.attention.fused_kernels import LayerInputs
from holdfast.attention.gpu_step import attend_step
from holdfast.attention.gpu_table import move_log_odds
from holdfast.attention.pass_columns import SpanColumns
from holdfast.methods import compile_methods


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("masked", ["not", "boolean", "additive"])
@pytest.mark.parametrize("keys", [40, 600], ids=["one part", "two parts"])
@pytest.mark.parametrize(("heads", "groups", "size"), [(4, 2, 24), (6, 1, 32)])
@pytest.mark.parametrize("firsts", [(0, 0, 0), (3, 0, 5)], ids=["whole", "windowed"])
def test_a_step_matches_the_papers(dtype, masked, keys, heads, groups, size, firsts):
    torch.manual_seed(heads)
    sizes = (3, heads, 1, size), (3, groups, keys, size), (3, groups, keys, size)
    q, k, v = (torch.randn(shape).to(DEVICE, dtype) for shape in sizes)
    visible = torch.ones(3, 1, 1, keys, dtype=torch.bool, device=DEVICE)
    if masked != "not":
        visible[0, ..., :7] = visible[2, ..., keys - 9 :] = False
    mask = None if masked == "not" else visible
    if masked == "additive":
        mask = torch.zeros_like(visible, dtype=dtype).masked_fill(~visible, torch.finfo(dtype).min)
    span = torch.zeros(3, keys + 5, dtype=torch.bool, device=DEVICE)
    span[0, 5:20] = span[1, 8 : keys - 8] = span[2, 6] = True
    prompts, methods = (keys - 5, keys - 4, keys // 2), [(SPLIT,), (KEEP,), (SPOT,)]
    spec = BatchSteering(span, list(map(compile_methods, methods)), prompt_columns=prompts)
    first = torch.tensor(firsts, device=DEVICE)[:, None]
    starts = Starts(keys, firsts, first) if any(firsts) else 0
    inputs = LayerInputs(q, k, v, mask, False, size**-0.5)
    columns = SpanColumns(span, spec.included_from, starts, 1)
    output, mass = attend_step(inputs, columns, spec.layer_shift(0, q), traced=True)
    plain, _ = attend_step(inputs)
    in_span = span.gather(1, first + torch.arange(keys, device=DEVICE))
    prompts = [prompt - begin for prompt, begin in zip(prompts, firsts, strict=True)]
    expected, masses = attend_by_papers(q, k, v, visible, in_span, methods, prompts, size**-0.5)
    unmoved, _ = attend_by_papers(q, k, v, visible, in_span, [()] * 3, prompts, size**-0.5)
    rounding = FLOAT32 if dtype == torch.float32 else BFLOAT16
    assert max_difference(output.transpose(1, 2), expected) < rounding
    assert max_difference(plain.transpose(1, 2), unmoved) < rounding
    assert max_difference(mass, masses[..., 0]) < FLOAT32


@triton.jit
def _move(log_odds, bias, exponent, floor, out, COUNT: tl.constexpr):
    place = tl.arange(0, COUNT)
    shifted = move_log_odds(
        tl.load(log_odds + place),
        tl.load(bias + place),
        tl.load(exponent + place),
        tl.load(floor + place),
    )
    tl.store(out + place, shifted)


@pytest.mark.parametrize("exponent", [0.0, 1e-6, 0.01, 0.3, 0.5, 0.99, 1.0, 2.0])
def test_the_table_moves_log_odds_as_the_formula_does(exponent):
    x = torch.linspace(-80, 80, 128)
    for bias, floor in ((0.0, -math.inf), (30.0, -5.0), (-30.0, -math.inf), (0.7, 1e4)):
        numbers = [torch.full_like(x, number) for number in (bias, exponent, floor)]
        out = torch.empty_like(x, device=DEVICE)
        _move[(1,)](x.to(DEVICE), *(part.to(DEVICE) for part in numbers), out, COUNT=128)
        for before, after in zip(x.tolist(), out.tolist(), strict=True):
            exact = oracles.steering_table(before, *(float(part[0]) for part in numbers))
            if exact > 85:  # both say that all mass is on the span, to float32
                assert after > 85
            else:  # the sum x + bias is rounded, and so is the exponent
                assert after == pytest.approx(exact, rel=5e-7, abs=4e-6)
    assert exponent != 1 or torch.equal(_shifted(x, exponent), x)


def _shifted(x, exponent):
    out = torch.empty_like(x, device=DEVICE)
    numbers = (torch.full_like(x, number, device=DEVICE) for number in (0, exponent, -math.inf))
    _move[(1,)](x.to(DEVICE), *numbers, out, COUNT=x.numel())
    return out.cpu()
