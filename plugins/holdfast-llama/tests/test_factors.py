"""The factors of attention weights, in numpy, against the steering table of `holdfast.methods`.

A query has the mass m on the span and 1 - m on the rest. The methods of its row turn these into m'
and 1 - m', so the factors must be m' / m for the span and (1 - m') / (1 - m) for the rest.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import METHODS
from holdfast_llama.layer_moves import LayerMoves

from holdfast.methods import parse
from holdfast.methods.compiled import compile_methods, head_tables
from holdfast.methods.table import layer_table

LAYERS = 4
HEADS = 8
SPECS = (
    *(method for method in METHODS if method != "hold"),
    "boost:factor=1e6",
    "split-softmax:exponent=0",
    "spotlight:target=0.999",
)
# the last one is the largest that float32 tells from 1
MASSES = np.array([1e-30, 1e-12, 1e-5, 0.01, 0.3, 0.5, 0.9, 0.999, 1 - 1e-7])


@pytest.mark.parametrize("layer", range(LAYERS))
def test_factors_give_the_mass_of_the_table(layer):
    """The first row has no method, and a factor of 1 everywhere."""
    rows = tuple(compile_methods(parse(spec)) for spec in ("none", *SPECS))
    table = layer_table(head_tables(rows), layer, HEADS)
    mass = np.broadcast_to(MASSES, (len(rows), HEADS, len(MASSES)))  # [row, head, query]
    rest = 1 - mass
    factors = LayerMoves.of(table, len(rows), HEADS).factors(mass, rest)
    log_odds = torch.from_numpy(np.log(mass) - np.log(rest))
    new_mass = table.mass(log_odds).numpy()
    new_rest = table.log_rest(log_odds).exp().numpy()
    assert factors.span * mass == pytest.approx(new_mass, rel=1e-6)
    assert factors.rest * rest == pytest.approx(new_rest, rel=1e-6, abs=1e-30)
    assert (factors.span[0] == 1).all() and (factors.rest[0] == 1).all()


def test_a_query_that_sees_no_span_or_only_the_span_is_not_steered():
    compiled = compile_methods(parse("boost:factor=4+spotlight:target=0.5"))
    moves = LayerMoves.of(layer_table([compiled.table], layer=0, heads=1), rows=1, heads=1)
    mass = np.array([[[0.0, 1.0]]], np.float32)
    factors = moves.factors(mass, 1 - mass)
    assert (factors.rest == 1).all() and (factors.span == 1).all()
