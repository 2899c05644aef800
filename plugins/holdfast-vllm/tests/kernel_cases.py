"""Cases of `tests/attention/test_triton.py`; by hand: TRITON_INTERPRET=1 python -m pytest FILE."""

from __future__ import annotations

import math

import oracles
import pytest
import torch
from holdfast_vllm.kernel import (
    NONE_GENERATED,
    KernelQueries,
    KernelTable,
    QueryRun,
    steer_outputs,
)

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
TOLERANCE = {torch.float32: 3e-6, torch.bfloat16: 3e-2}
PAGE = 16


def paged(contexts, groups, size, dtype, draw):
    """Keys and values of contexts in shuffled pages of one cache for both, as vLLM has it."""
    count = sum(-(-length // PAGE) for length in contexts)
    order = torch.randperm(count + 2, generator=draw).tolist()
    cache = torch.randn(count + 2, groups, PAGE, 2 * size, generator=draw).to(dtype).to(DEVICE)
    table = torch.zeros(len(contexts), max(-(-n // PAGE) for n in contexts), dtype=torch.int32)
    for row, length in enumerate(contexts):
        for page in range(-(-length // PAGE)):
            table[row, page] = order.pop()
    keys, values = cache.transpose(1, 2).split(size, dim=-1)
    return keys, values, table.to(DEVICE)


def entries(rows, heads):
    """Entries of each kind in turn: neutral, a bias, a power, a floor, all three, and extremes."""
    table = torch.tensor(
        [[0, 1, -math.inf], [1.4, 1, -math.inf], [0, 0.4, -math.inf], [0, 1, 0.5], [1, 0.6, -1],
         [30, 1, -math.inf], [0, 0, -math.inf]]
    )  # fmt: skip
    row_entries = table[torch.arange(rows * heads) % len(table)].reshape(rows, heads, 3)
    return KernelTable(*(part.contiguous().to(DEVICE) for part in row_entries.unbind(-1)))


def attended(query, keys, values, pages, length, scaling):
    """Scores [head, key] of one query and its values, in float64."""
    places = torch.arange(length)
    page_slots = pages[places // PAGE].long(), places % PAGE
    key = keys[page_slots].double().cpu()
    value = values[page_slots].double().cpu()
    repeats = query.shape[0] // key.shape[1]
    key, value = (part.repeat_interleave(repeats, 1) for part in (key, value))
    return torch.einsum("hd,khd->hk", query.double().cpu(), key) * scaling, value


def literal(scores, values, span, entry):
    """The output of one head by the formula, and the mass on `span`'s second set."""
    in_span, in_prompt_span = span
    weights = oracles.softmax(scores.tolist())
    if all(in_span) or not any(in_span):
        moved = weights
    else:
        pi = math.fsum(weight for weight, inside in zip(weights, in_span, strict=True) if inside)
        log_odds = oracles.steering_table(math.log(pi) - math.log1p(-pi), *entry)
        raised = 1 / (1 + math.exp(-log_odds))
        moved = [
            weight * (raised / pi if inside else (1 - raised) / (1 - pi))
            for weight, inside in zip(weights, in_span, strict=True)
        ]
    mass = math.fsum(weight for weight, inside in zip(moved, in_prompt_span, strict=True) if inside)
    return torch.tensor(moved, dtype=torch.double) @ values, mass


RUNS = [  # context, queries, ranges, first generated token that counts
    (41, 41, ((3, 21),), NONE_GENERATED),  # a whole prompt, the span over two pages
    (50, 1, ((0, 2), (15, 33), (40, 41)), NONE_GENERATED),  # a step, three parts
    (37, 1, ((5, 9),), 30),  # a step that counts generated tokens
    (60, 13, ((20, 52),), NONE_GENERATED),  # a chunk in the middle of the span
    (25, 6, ((30, 40),), NONE_GENERATED),  # a chunk before the span: nothing moves
    (33, 9, ((1, 4),), 29),  # computed again after a preemption
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("heads", "groups", "size"), [(4, 2, 32), (6, 1, 24), (3, 3, 64)])
def test_outputs_match_the_formula(heads, groups, size, dtype):
    draw = torch.Generator().manual_seed(heads)
    contexts = [context for context, *_ in RUNS]
    keys, values, pages = paged(contexts, groups, size, dtype, draw)
    total = sum(count for _, count, *_ in RUNS) + 2  # two queries of unsteered rows
    query = torch.randn(total, heads, size, generator=draw).to(dtype).to(DEVICE)
    scaling = size**-0.5
    starts = []
    first = 1
    for _, count, *_ in RUNS:
        starts.append(first)
        first += count
    output = torch.zeros_like(query)
    lse = torch.zeros(heads, total, device=DEVICE)
    expected = {}
    masses = {}
    table = entries(len(RUNS), heads)
    for number, (context, count, ranges, generated) in enumerate(RUNS):
        for index in range(count):
            at = starts[number] + index
            length = context - count + index + 1
            scores, value = attended(query[at], keys, values, pages[number], length, scaling)
            lse[:, at] = scores.logsumexp(-1).float()
            output[at] = torch.einsum("hk,khd->hd", scores.softmax(-1), value).to(dtype)
            in_prompt_span = [any(a <= key < b for a, b in ranges) for key in range(length)]
            in_span = [inside or key >= generated for key, inside in enumerate(in_prompt_span)]
            for head in range(heads):
                entry = [part[number, head].item() for part in
                         (table.bias, table.exponent, table.floor)]  # fmt: skip
                result, mass = literal(
                    scores[head], value[:, head], (in_span, in_prompt_span), entry
                )
                expected[at, head], masses[number, head] = result, mass
    untouched = output[[0, total - 1]].clone()
    runs = [
        QueryRun(number, starts[number], count, context - count, ranges, generated)
        for number, (context, count, ranges, generated) in enumerate(RUNS)
    ]
    queries = KernelQueries.of(runs, heads // groups, DEVICE)
    mass = torch.zeros(len(RUNS), heads, device=DEVICE)
    steer_outputs(output, lse, query, keys, values, pages, queries, table, scaling, mass)
    for (at, head), result in expected.items():
        close = {"rtol": 0, "atol": TOLERANCE[dtype] * 2}
        torch.testing.assert_close(output[at, head].double().cpu(), result, **close)
    for (number, head), value in masses.items():
        assert mass[number, head].item() == pytest.approx(value, abs=5e-6)
    assert torch.equal(output[[0, total - 1]], untouched)


def test_a_key_with_all_the_weight_outside_the_span_causes_no_cancellation():
    """An attention sink before the span: its score is 60 above all others."""
    draw = torch.Generator().manual_seed(1)
    keys, values, pages = paged([40], 1, 32, torch.float32, draw)
    query = torch.ones(1, 1, 32, device=DEVICE)
    keys[pages[0, 0].long(), 0] = 60 / 32**0.5
    scores, value = attended(query[0], keys, values, pages[0], 40, 32**-0.5)
    output = torch.einsum("hk,khd->hd", scores.softmax(-1), value).float()[None].to(DEVICE)
    lse = scores.logsumexp(-1).float()[:, None].to(DEVICE)
    queries = KernelQueries.of([QueryRun(0, 0, 1, 39, ((4, 20),))], 1, DEVICE)
    numbers = 0.0, 1.0, math.log(0.3 / 0.7)
    table = KernelTable(*(torch.tensor([[number]], device=DEVICE) for number in numbers))
    steer_outputs(output, lse, query, keys, values, pages, queries, table, 32**-0.5)
    in_span = [4 <= key < 20 for key in range(40)]
    expected, _ = literal(scores[0], value[:, 0], (in_span, in_span), numbers)
    torch.testing.assert_close(output[0, 0].double().cpu(), expected, rtol=0, atol=1e-5)
