"""The steered attention of the vLLM plug-in against the papers' formulas, without vLLM."""

import oracles
import pytest
import torch
from holdfast_vllm.masses import Masses
from holdfast_vllm.moved_weights import RankHeads, move_weights, on_rank, shift_of, touches
from holdfast_vllm.moves import VisibleKeys, members, needs_three
from holdfast_vllm.wire import Admitted

from holdfast.methods import compile_methods, parse

HEADS, KEYS, PROMPT = 3, 12, 8
RANGES = ((1, 3), (5, 6))
FLOAT32 = 2e-6  # of weights in [0, 1]
CASES = (
    "split-softmax:exponent=0.4",
    "boost:factor=3",
    "spotlight:target=0.6",
    "pasta:alpha=0.1",
    "pasta:alpha=0.1,generated=scale",
    "boost:factor=3+pasta:alpha=0.1",
    "split-softmax:exponent=0.4+boost:factor=3",
    "none",
)


def by_the_papers(spec, weights, span, generated):
    for method in parse(spec):
        weights = oracles.ORACLES[method.name](method, weights, span, generated)
    return weights


def admit(spec, trace=""):
    return Admitted(compile_methods(parse(spec)).attention, RANGES, PROMPT, trace)


def move_rows(rows, scores, positions, records_mass):
    three = any(needs_three(row) for row in rows)
    visible_keys = VisibleKeys(members(rows, KEYS, three), positions)
    shift = shift_of(tuple(row.methods for row in rows), 0, HEADS, three)
    return move_weights(scores, visible_keys, shift, records_mass)


@pytest.mark.parametrize("records_mass", [False, True])
@pytest.mark.parametrize("spec", CASES)
def test_weights_match_the_paper(spec, records_mass):
    """Queries before, in and after the span, and of generated tokens, in two rows."""
    generator = torch.Generator().manual_seed(0)
    scores = 3 * torch.randn(2, HEADS, 5, KEYS, generator=generator)
    positions = torch.tensor([[0, 2, 4, 8, 11], [1, 3, 6, 9, 10]])
    row = admit(spec, "traced" if records_mass else "")
    weights, mass = move_rows([row, row], scores, positions, records_mass)
    span = [any(first <= key < last for first, last in RANGES) for key in range(KEYS)]
    generated = [key >= PROMPT for key in range(KEYS)]
    for place in torch.cartesian_prod(torch.arange(2), torch.arange(HEADS), torch.arange(5)):
        number, head, query = place.tolist()
        count = positions[number, query].item() + 1
        before = oracles.softmax(scores[number, head, query, :count].tolist())
        span_row, replied = span[:count], generated[:count]
        expected = by_the_papers(spec, before, span_row, replied) if any(span_row) else before
        result = weights[number, head, query]
        torch.testing.assert_close(result[:count], torch.tensor(expected), rtol=0, atol=FLOAT32)
        assert not result[count:].any()
        if records_mass:
            on_span = sum(
                weight for weight, inside in zip(expected, span_row, strict=True) if inside
            )
            assert mass[number, head, query].item() == pytest.approx(on_span, abs=FLOAT32)


def test_rows_with_different_methods_match_each_row_alone():
    scores = torch.randn(3, HEADS, 1, KEYS)
    positions = torch.full((3, 1), KEYS - 1)
    specs = ["boost:factor=3", "none", "spotlight:target=0.6"]
    batched, _ = move_rows([admit(spec) for spec in specs], scores, positions, False)
    for number, spec in enumerate(specs):
        alone, _ = move_rows([admit(spec)], scores[number, None], positions[:1], False)
        torch.testing.assert_close(batched[number], alone[0], rtol=0, atol=FLOAT32)


def test_a_method_reaches_its_floor_even_if_the_span_has_almost_no_weight():
    """Scores so low that the span's weights are 0 in float32."""
    scores = torch.zeros(1, HEADS, 1, KEYS)
    scores[..., [1, 2, 5]] = -300.0
    positions = torch.tensor([[KEYS - 1]])
    weights, mass = move_rows([admit("spotlight:target=0.6")], scores, positions, True)
    torch.testing.assert_close(mass, torch.full_like(mass, 0.6))
    torch.testing.assert_close(weights[..., [1, 2, 5]], torch.full((1, HEADS, 1, 3), 0.2))


def test_a_rank_gets_only_its_own_heads():
    methods = admit("boost:factor=2,heads=0.1/0.5/2.6+spotlight:target=0.2").methods
    first, second = (on_rank(methods, RankHeads(rank * 4, 4)) for rank in (0, 1))
    assert first[0].heads == {(0, 1)} and second[0].heads == {(0, 1), (2, 2)}
    assert first[1] == second[1] == methods[1]
    (only,) = admit("boost:factor=2,heads=0.1").methods
    assert on_rank((only,), RankHeads(4, 4)) == ()
    assert touches([(only,)], 0) and not touches([(only,)], 1)


def test_masses_are_averaged_by_token_and_by_layer():
    masses = Masses()
    for token in (0.2, 0.4):
        for layer in (3, 4):
            masses.record("a", layer, torch.tensor([token, token + 0.1 * layer]))
    record = masses.read("a")
    assert record["mass"] == pytest.approx([0.375, 0.575])
    assert record["layers"] == pytest.approx([0.45, 0.5])
    assert masses.read("b") is None
