"""Steering methods that act on attention or logits do what their papers say."""

import dataclasses
import math
import random

import method_examples
import oracles
import pytest
import torch
from fast_set import only_fast

from holdfast import methods
from holdfast.attention.layer_shifts import MethodGroup, MethodSequence
from holdfast.errors import UsageError
from holdfast.methods import Boost, MethodKind, Pasta, SplitSoftmax, Spotlight

ROUNDING = 1e-6  # a few float32 roundings, relative to the log-odds, absolute for weights
EXPONENTS = (0.001, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999)


LOG_ODDS = [*method_examples.of_kind(MethodKind.LOG_ODDS), *map(SplitSoftmax, EXPONENTS)]
LOG_ODDS += [Pasta(0.3, None, "scale"), Boost(3), Boost(1e6), Spotlight(0.1), Spotlight(0.9)]


# Split-softmax


@pytest.mark.parametrize("dtype", only_fast([torch.float32, torch.float64], torch.float32))
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_split_softmax_is_exact_over_the_whole_range(exponent, dtype):
    log_odds = torch.linspace(-80, 80, 641, dtype=dtype).view(1, 1, -1)
    shifted = SplitSoftmax(exponent).shift(log_odds, 0)
    expected = [oracles.split_softmax_log_odds(x, exponent) for x in log_odds.flatten().tolist()]
    assert shifted.dtype == dtype
    assert shifted.flatten().tolist() == pytest.approx(expected, rel=ROUNDING, abs=ROUNDING)


@pytest.mark.parametrize("exponent", [0, 1e-40, 1e-12, 0.5, 0.999999])
def test_split_softmax_is_finite_never_lowers_and_keeps_order(exponent):
    ranges = torch.linspace(-1e4, 1e4, 4001), torch.linspace(-90, 90, 4001)
    log_odds = torch.cat(ranges).sort().values.view(1, 1, -1)
    shifted = SplitSoftmax(exponent).shift(log_odds, 0)
    assert shifted.isfinite().all()
    # rounding of the last bit, relative to the size of the log-odds
    slack = log_odds.abs().clamp(min=1) * ROUNDING
    assert (shifted >= log_odds - slack).all()
    assert (shifted.diff() >= -slack[..., 1:]).all()


def test_exponent_zero_gives_the_span_all_mass():
    shifted = SplitSoftmax(0).shift(torch.tensor([[[-80.0, 0.0, 80.0]]]), 0)
    assert shifted.sigmoid().tolist() == [[[1.0, 1.0, 1.0]]]


# Heads


def test_heads_that_do_not_exist_are_named():
    with pytest.raises(UsageError, match="no head 9"):
        SplitSoftmax(0.5, {(0, 9)}).shift(torch.zeros(1, 4, 1), 0)


@pytest.mark.parametrize("heads", [set(), {3}, {(0, -1)}, {(0, 1.0)}, 3, {(1, 2, 3)}])
def test_heads_that_are_not_pairs_are_refused(heads):
    with pytest.raises(UsageError, match="heads"):
        SplitSoftmax(0.5, heads)


@pytest.mark.parametrize("method", [*LOG_ODDS, SplitSoftmax(0), SplitSoftmax(1e-40)])
def test_infinite_log_odds_stay_and_only_chosen_heads_move(method):
    one_group = torch.tensor([[[-math.inf, math.inf]]])
    assert torch.equal(method.shift(one_group, 0), one_group)
    log_odds = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0)) - 4
    before, on_heads = log_odds.clone(), dataclasses.replace(method, heads={(3, 1), (5, 0)})
    moved = _in_layer(on_heads, 3).shift(log_odds)
    unmoved = _in_layer(on_heads, 4).shift(log_odds)
    assert torch.equal(unmoved, log_odds) and torch.equal(log_odds, before)
    assert torch.equal(moved[:, 1], method.shift(log_odds, 3)[:, 1])
    assert not torch.equal(moved[:, 1], log_odds[:, 1])
    assert torch.equal(moved[:, [0, 2, 3]], log_odds[:, [0, 2, 3]])


def _in_layer(method, layer):
    """The method as it acts on a layer of four heads."""
    return MethodSequence([MethodGroup((method,), slice(None))], layer, num_heads=4)


def test_a_custom_method_moves_only_its_heads():
    """Its `shift` has only the formula."""

    class Louder:
        name, heads, span_includes_generated = "louder", frozenset({(3, 1), (5, 0)}), False

        def shift(self, log_odds, layer):
            return log_odds + 1

    log_masses = torch.zeros(2, 4, 3)
    expected = torch.tensor([0.0, 1.0, 0.0, 0.0])[:, None].expand(2, 4, 3)
    on_one_head = _in_layer(Louder(), 3)
    assert torch.equal(on_one_head.shift(log_masses), expected)
    span, generated = on_one_head.shift_log_masses(log_masses, log_masses, log_masses)
    assert torch.equal(span, expected) and torch.equal(generated, log_masses)


# All methods against their oracles


@pytest.mark.parametrize("method", LOG_ODDS, ids=repr)
def test_log_odds_methods_match_the_papers_weights(method):
    draw = random.Random(f"{method}")
    for _ in range(50):
        scores = [draw.gauss(0, 3) for _ in range(24)]
        span, generated = [index < 7 for index in range(24)], [index >= 20 for index in range(24)]
        weights = oracles.softmax(scores)
        expected = oracles.ORACLES[method.name](method, weights, span, generated)
        if isinstance(method, Boost):
            assert expected == pytest.approx(oracles.guide(scores, span, math.log(method.factor)))
        elif isinstance(method, Spotlight):
            assert sum(expected[:7]) == pytest.approx(max(method.target, sum(weights[:7])))
        row = torch.tensor(scores)
        flags = zip(span, generated, strict=True)
        in_span = torch.tensor([s or (g and method.span_includes_generated) for s, g in flags])
        log_odds = row[in_span].logsumexp(0) - row[~in_span].logsumexp(0)
        shifted = method.shift(log_odds.view(1, 1, 1), 0)[0, 0, 0]
        merged = torch.empty(24)
        merged[in_span] = shifted.sigmoid() * row[in_span].softmax(0)
        merged[~in_span] = (-shifted).sigmoid() * row[~in_span].softmax(0)
        assert merged.tolist() == pytest.approx(expected, abs=ROUNDING)


@pytest.mark.parametrize("method", method_examples.of_kind(MethodKind.LOG_ODDS), ids=repr)
def test_what_changes_nothing_in_attention_is_the_identity(method):
    log_odds = torch.tensor([[[-math.inf, -80.0, -1e-3, 0.0, 5.0, 80.0, math.inf]]])
    if (neutral := method_examples.neutral(method)) is not None:
        assert torch.equal(neutral.shift(log_odds, 0), log_odds)


@pytest.mark.parametrize("method", method_examples.of_kind(MethodKind.LOGITS), ids=repr)
def test_logits_are_combined_as_in_the_paper(method):
    first, second = torch.randn(2, 5, 40, generator=torch.Generator().manual_seed(0)) * 4
    rows = zip(first.tolist(), second.tolist(), strict=True)
    expected = [oracles.ORACLES[method.name](method, *row) for row in rows]
    combined = method.combine_logits(first, second).softmax(-1)
    assert torch.allclose(combined, torch.tensor(expected), atol=1e-5)
    if (neutral := method_examples.neutral(method)) is not None:
        assert torch.equal(neutral.combine_logits(first, second), first.log_softmax(-1))


def test_compiled_methods_are_the_same_however_they_are_made():
    parsed = methods.parse("boost:factor=4+repetition:probability=1")
    direct, compiled = methods.CompiledMethods(parsed), methods.compile_methods(parsed)
    assert direct == compiled and direct.kinds == (MethodKind.LOG_ODDS, MethodKind.MESSAGES)
    assert direct.attention == compiled.attention == parsed[:1]
    assert direct.needs_span and direct.requires == compiled.requires
    assert direct.without_edits == methods.compile_methods(parsed[:1])
    with pytest.raises(UsageError):
        methods.CompiledMethods((MethodKind,))
