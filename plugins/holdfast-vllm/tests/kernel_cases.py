"""Cases of `tests/attention/test_triton.py`; by hand: TRITON_INTERPRET=1 python -m pytest FILE."""

from __future__ import annotations

import math
from typing import NamedTuple

import oracles
import pytest
import torch
from holdfast_vllm.kernel import KernelQueries, KernelTable, QueryRun, steer_outputs

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
    """Scores [head, key] of one query, and the values [head, key, size], in float64."""
    places = torch.arange(length)
    page_slots = pages[places // PAGE].long(), places % PAGE
    key = keys[page_slots].double().cpu()
    value = values[page_slots].double().cpu()
    repeats = query.shape[0] // key.shape[1]
    key, value = (part.repeat_interleave(repeats, 1) for part in (key, value))
    scores = torch.einsum("hd,khd->hk", query.double().cpu(), key) * scaling
    return scores, value.transpose(0, 1)


def steered_weights(scores, in_span, entry):
    """The weights [key] of one head by the formula, from its scores [key]."""
    weights = oracles.softmax(scores.tolist())
    if all(in_span) or not any(in_span):
        return torch.tensor(weights, dtype=torch.double)
    pi = math.fsum(weight for weight, inside in zip(weights, in_span, strict=True) if inside)
    log_odds = oracles.steering_table(math.log(pi) - math.log1p(-pi), *entry)
    raised = 1 / (1 + math.exp(-log_odds))
    factors = (raised / pi if inside else (1 - raised) / (1 - pi) for inside in in_span)
    moved = [weight * factor for weight, factor in zip(weights, factors, strict=True)]
    return torch.tensor(moved, dtype=torch.double)


# one after the other, with an unsteered query before the first and after the last
RUNS = (
    # a whole prompt, the span over two pages
    QueryRun(0, first_query=1, num_queries=41, position=0, span=((3, 21),)),
    # a step, a span of three parts
    QueryRun(1, first_query=42, num_queries=1, position=49, span=((0, 2), (15, 33), (40, 41))),
    # a step that counts generated tokens
    QueryRun(2, first_query=43, num_queries=1, position=36, span=((5, 9),), first_generated=30),
    # a chunk in the middle of the span
    QueryRun(3, first_query=44, num_queries=13, position=47, span=((20, 52),)),
    # a chunk before the span: nothing moves
    QueryRun(4, first_query=57, num_queries=6, position=19, span=((30, 40),)),
    # computed again after a preemption
    QueryRun(5, first_query=63, num_queries=9, position=24, span=((1, 4),), first_generated=29),
)
NUM_QUERIES = 73


class Expected(NamedTuple):
    """The steered output of the runs, by the formula."""

    outputs: dict[tuple[int, int], torch.Tensor]  # by query and head
    masses: dict[tuple[int, int], float]  # on the prompt's span at a run's end, by run and head


def expect(all_scores, all_values, table):
    """Steers the queries of the runs by the formula, given the scores and values of each."""
    outputs = {}
    masses = {}
    for run in RUNS:
        for query in range(run.first_query, run.first_query + run.num_queries):
            scores, values = all_scores[query], all_values[query]
            in_prompt_span = [
                any(first <= key < end for first, end in run.span) for key in range(scores.shape[1])
            ]
            in_span = [
                inside or key >= run.first_generated for key, inside in enumerate(in_prompt_span)
            ]
            for head in range(len(scores)):
                columns = (table.bias, table.exponent, table.floor)
                entry = [column[run.row, head].item() for column in columns]
                weights = steered_weights(scores[head], in_span, entry)
                outputs[query, head] = weights @ values[head]
                masses[run.row, head] = weights[torch.tensor(in_prompt_span)].sum().item()
    return Expected(outputs, masses)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("heads", "groups", "size"), [(4, 2, 32), (6, 1, 24), (3, 3, 64)])
def test_outputs_match_the_formula(heads, groups, size, dtype):
    draw = torch.Generator().manual_seed(heads)
    contexts = [run.position + run.num_queries for run in RUNS]
    keys, values, pages = paged(contexts, groups, size, dtype, draw)
    query = torch.randn(NUM_QUERIES, heads, size, generator=draw).to(dtype).to(DEVICE)
    scaling = size**-0.5
    # stock attention, which the kernel is given
    output = torch.zeros_like(query)
    lse = torch.zeros(heads, NUM_QUERIES, device=DEVICE)
    all_scores = {}
    all_values = {}
    for run in RUNS:
        for index in range(run.num_queries):
            at = run.first_query + index
            length = run.position + index + 1
            scores, value = attended(query[at], keys, values, pages[run.row], length, scaling)
            output[at] = torch.einsum("hk,hkd->hd", scores.softmax(-1), value).to(dtype)
            lse[:, at] = scores.logsumexp(-1).float()
            all_scores[at], all_values[at] = scores, value
    table = entries(len(RUNS), heads)
    expected = expect(all_scores, all_values, table)
    untouched = output[[0, NUM_QUERIES - 1]].clone()
    queries = KernelQueries.of(RUNS, heads // groups, DEVICE)
    mass = torch.zeros(len(RUNS), heads, device=DEVICE)
    steer_outputs(output, lse, query, keys, values, pages, queries, table, scaling, mass)
    for (at, head), result in expected.outputs.items():
        close = {"rtol": 0, "atol": TOLERANCE[dtype] * 2}
        torch.testing.assert_close(output[at, head].double().cpu(), result, **close)
    for (row, head), value in expected.masses.items():
        assert mass[row, head].item() == pytest.approx(value, abs=5e-6)
    assert torch.equal(output[[0, NUM_QUERIES - 1]], untouched)


def test_a_key_with_all_the_weight_outside_the_span_causes_no_cancellation():
    """An attention sink before the span: its score is 60 above all others."""
    draw = torch.Generator().manual_seed(1)
    keys, values, pages = paged([40], 1, 32, torch.float32, draw)
    query = torch.ones(1, 1, 32, device=DEVICE)
    keys[pages[0, 0].long(), 0] = 60 / 32**0.5
    scores, value = attended(query[0], keys, values, pages[0], 40, 32**-0.5)
    output = torch.einsum("hk,hkd->hd", scores.softmax(-1), value).float()[None].to(DEVICE)
    lse = scores.logsumexp(-1).float()[:, None].to(DEVICE)
    queries = KernelQueries.of([QueryRun(0, 0, 1, 39, ((4, 20),))], 1, DEVICE)
    numbers = 0.0, 1.0, math.log(0.3 / 0.7)
    table = KernelTable(*(torch.tensor([[number]], device=DEVICE) for number in numbers))
    steer_outputs(output, lse, query, keys, values, pages, queries, table, 32**-0.5)
    in_span = [4 <= key < 20 for key in range(40)]
    expected = steered_weights(scores[0], in_span, numbers) @ value[0]
    torch.testing.assert_close(output[0, 0].double().cpu(), expected, rtol=0, atol=1e-5)
