"""The factors of attention weights against the steering table of `holdfast.methods`."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import METHODS
from holdfast_llama.weights import LayerMoves

from holdfast.methods import parse
from holdfast.methods.compiled import compile_methods, head_tables
from holdfast.methods.table import layer_table

SPECS = (
    *(method for method in METHODS if method != "hold"),
    "boost:factor=1e6",
    "split-softmax:exponent=0",
    "spotlight:target=0.999",
)


@pytest.mark.parametrize("layer", range(4))
def test_factors_give_the_mass_of_the_table(layer):
    """Masses from 1e-30 to 1 - 1e-7, the limit of float32, next to a row without methods."""
    rows = tuple(compile_methods(parse(spec)) for spec in ("none", *SPECS))
    table = layer_table(head_tables(rows), layer, 8)
    masses = np.array([1e-30, 1e-12, 1e-5, 0.01, 0.3, 0.5, 0.9, 0.999, 1 - 1e-7])
    mass = np.broadcast_to(masses, (len(rows), 8, len(masses)))
    complement = 1 - mass
    outside, inside = LayerMoves.of(table, len(rows), 8).factors(mass, complement)
    log_odds = torch.from_numpy(np.log(mass) - np.log(complement))
    assert inside * mass == pytest.approx(table.mass(log_odds).numpy(), rel=1e-6)
    rest_mass = table.log_rest(log_odds).exp().numpy()
    assert outside * complement == pytest.approx(rest_mass, rel=1e-6, abs=1e-30)
    assert (inside[0] == 1).all() and (outside[0] == 1).all()


def test_a_query_that_sees_no_span_or_only_the_span_is_not_steered():
    compiled = compile_methods(parse("boost:factor=4+spotlight:target=0.5"))
    moves = LayerMoves.of(layer_table([compiled.table], 0, 1), 1, 1)
    mass = np.array([[[0.0, 1.0]]], np.float32)
    outside, inside = moves.factors(mass, 1 - mass)
    assert (outside == 1).all() and (inside == 1).all()
