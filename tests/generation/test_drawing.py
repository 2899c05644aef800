"""The draw of a token from its logits, against the definition of the nucleus in float64."""

import math

import pytest
import torch
from fast_set import only_fast

from holdfast import Sampling
from holdfast.errors import ModelError
from holdfast.generation.drawing import draw, draw_or_error, uniforms

# The nucleus

NUCLEI = ((1.0, 0.9), (0.2, 0.5), (1.7, 0.99), (2.0, 1.0))


@pytest.mark.parametrize(("temperature", "top_p"), NUCLEI)
def test_the_sampler_draws_from_the_nucleus_as_defined(temperature, top_p):
    """Against the definition in float64: the fewest likeliest tokens that reach top_p."""
    torch.manual_seed(3)
    logits, rows = torch.randn(1, 900) * 3, 4000
    numbers = [uniforms(seed, 1)[0] for seed in range(rows)]
    tokens = draw(logits.expand(rows, -1), [Sampling(temperature, top_p, 1)] * rows, numbers)
    shares = torch.bincount(torch.tensor(tokens), minlength=900) / rows
    probabilities, order = (logits[0].double() / temperature).softmax(-1).sort(descending=True)
    size = int((probabilities.cumsum(-1) < top_p).sum()) + 1
    expected = torch.zeros(900, dtype=torch.double)
    expected[order[:size]] = probabilities[:size] / probabilities[:size].sum()
    assert not shares[expected == 0].any()
    assert (shares - expected).abs().max() < 4 * (expected.max() / rows) ** 0.5 + 1e-3


def by_inversion(shares, order, top_p, numbers):
    """The tokens at these places of the cumulated nucleus; shares are sorted, float64."""
    before = shares.cumsum(-1) - shares
    cumulated = shares.masked_fill(before >= top_p, 0.0).cumsum(-1)
    at = torch.tensor(numbers, dtype=torch.float64)[:, None] * cumulated[:, -1:]
    ranks = (cumulated <= at).sum(-1, keepdim=True)
    return order.gather(-1, ranks)[:, 0].tolist()


@pytest.mark.parametrize("size", [1, 63, 64, 65, 4097, 20_000])
def test_a_draw_inverts_the_cumulated_nucleus(size):
    """In float64, by probability and then by id; whatever blocks the vocabulary is searched in."""
    torch.manual_seed(size)
    logits, numbers = torch.randn(32, size) * 3, torch.rand(32).tolist()
    logits[:8] = logits[:8].sort(descending=True).values  # the likeliest side by side
    logits[8:16, : size - 1] = -math.inf  # as a grammar forbids tokens
    logits[12:16, : size // 9] = 0.0
    for temperature, top_p in ((1.0, 0.9), (0.5, 1.0), (1.5, 0.4)):
        tokens = draw(logits, [Sampling(temperature, top_p)] * 32, numbers)
        exact = (logits.double() / temperature).softmax(-1)
        probabilities, order = exact.sort(descending=True, stable=True)
        assert tokens == by_inversion(probabilities, order, top_p, numbers)


@pytest.mark.parametrize("top_p", [0.5, 0.9, 0.999, 1.0])
@pytest.mark.parametrize("spread", only_fast([0.0, 1.0, 3.0], 1.0))
def test_a_wide_nucleus_of_a_large_vocabulary_is_drawn_as_if_it_were_sorted(top_p, spread):
    """Against a stable sort of the same float32 probabilities, many of which tie."""
    torch.manual_seed(5)
    logits = (torch.randn(6, 151_936) * spread).to(torch.bfloat16)
    numbers = [0.0, *torch.rand(4).tolist(), 0.999]
    tokens = draw(logits, [Sampling(1.0, top_p)] * 6, numbers)
    rows = logits.float()
    probabilities = (rows - rows.amax(-1, keepdim=True)).softmax(-1)
    shares, order = probabilities.double().sort(descending=True, stable=True)
    assert tokens == by_inversion(shares, order, top_p, numbers)


# Rows of one batch


def test_tied_tokens_are_drawn_the_same_whatever_the_other_rows():
    """Logits in bfloat16 often tie; a row with a wide nucleus makes the sampler search further."""
    torch.manual_seed(4)
    logits = (torch.randn(40, 3000) * 2).to(torch.bfloat16)
    samplings = [Sampling(1.0, 0.5), Sampling(0.0), Sampling(1.0, 0.1), Sampling(1.0, 0.99)] * 10
    numbers = torch.rand(40).tolist()
    batched = draw(logits, samplings, numbers)
    for row, token in enumerate(batched):
        row_only = slice(row, row + 1)
        assert draw(logits[row_only], samplings[row_only], numbers[row_only]) == [token]
    assert batched[1::4] == [int((row == row.max()).nonzero()[0]) for row in logits[1::4]]


def test_logits_that_are_not_finite_end_only_their_row():
    logits = torch.stack([torch.full((9,), value) for value in (math.nan, 0.0, -math.inf, 1.0)])
    tokens = draw_or_error(logits, [Sampling()] * 4, [0.5] * 4)
    for index in (0, 2):
        with pytest.raises(ModelError, match=r"not finite.*float32"):
            raise tokens[index]
    assert tokens[1] == tokens[3] == 4
