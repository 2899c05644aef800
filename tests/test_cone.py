"""The theory's pieces against their definitions, closed forms and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from holdfast.errors import ParameterOutOfRange, UsageError
from holdfast.papers.li2024 import cone as geometry

RESIDUAL = 1e-7  # of float64 products in two layers and of the least-squares solver


def one(seed: int, dimension=12, rank=4, angle=0.6, eps=0.3):
    rng = np.random.default_rng(seed)
    return geometry.random_cone(dimension, rank, angle, eps, rng), rng


def test_the_simplified_transformer_is_equations_one_to_four_spelled_out():
    cone, rng = one(0, dimension=5, rank=3)
    model, tokens = geometry.random_transformer(cone, 2, 3, rng), cone.sample(4, rng)
    hidden = [token.copy() for token in tokens]
    for layer in range(2):
        before = [h.copy() for h in hidden]
        for i in range(4):
            for head in range(3):
                scores = [
                    before[j] @ model.query_key[layer, head] @ before[i] for j in range(i + 1)
                ]
                weights = np.exp(scores) / np.exp(scores).sum()
                for j in range(i + 1):
                    hidden[i] = hidden[i] + weights[j] * (
                        model.output_value[layer, head] @ before[j]
                    )
    assert np.allclose(model.outputs(tokens), hidden, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_theorem_5_1_generated_tokens_stay_in_the_hull_and_in_the_widened_cone(seed):
    cone, rng = one(seed)
    model, tokens = geometry.random_transformer(cone, 2, 2, rng), cone.sample(5, rng)
    inside, beside = cone.excess(
        np.concatenate([cone.sample(500, rng) @ head.T for head in model.output_value[0]])
    )
    assert inside.max() < 1e-9 and beside.max() < 1e-9  # the assumption holds
    longer = model.generate(tokens, 12)
    for count in range(5, 17):
        assert geometry.hull_residual(longer[count], model.images(longer[:count])) < RESIDUAL
    angles, outside = cone.widened().excess(longer[5:])
    assert angles.max() < 1e-9 and outside.max() < 1e-9


def test_the_checks_of_the_theorem_can_fail():
    cone, rng = one(1)
    tokens = cone.sample(5, rng)
    away = -tokens.sum(0)
    assert geometry.hull_residual(away, tokens) > 0.5
    assert cone.excess(away[None])[0][0] > 1
    broken = geometry.SimplifiedTransformer(-3 * np.eye(12)[None, None], np.zeros((1, 1, 12, 12)))
    assert geometry.hull_residual(broken.generate(tokens, 1)[-1], tokens) > 0.5


def test_the_widened_cone_is_as_narrow_as_the_theorem_says():
    """Two vectors on opposite borders of the cone whose sum reaches eps~: no smaller eps would
    do.
    """
    cone, _ = one(2)
    side = np.linalg.svd(cone.basis.T @ cone.axis[:, None])[0][:, 1]
    across, beside = cone.basis @ side, np.linalg.svd(cone.basis)[0][:, -1]
    border = [
        math.cos(cone.angle) * cone.axis + sign * math.sin(cone.angle) * across for sign in (1, -1)
    ]
    summed = sum(math.sqrt(1 - cone.eps**2) * u + cone.eps * beside for u in border)
    assert cone.excess(summed[None])[1][0] > 0.01
    assert abs(cone.widened().excess(summed[None])[1][0]) < 1e-12
    assert geometry.widened_eps(0.3, 1e-9) == pytest.approx(0.3)


def test_wendels_probability_is_exact_and_the_simulation_agrees():
    assert [geometry.hemisphere_probability(n, 2) for n in (1, 2, 3, 4)] == [
        1,
        1,
        3 / 4,
        1 / 2,
    ]  # n / 2**(n - 1) in the plane
    rng = np.random.default_rng(0)
    for points, dimension in ((5, 3), (9, 3), (12, 5)):
        exact, trials = 1 - geometry.hemisphere_probability(points, dimension), 1500
        seen = geometry.simulate_spanning(points, dimension, trials, rng)
        assert abs(seen - exact) < 4 * math.sqrt(exact * (1 - exact) / trials)


@pytest.mark.parametrize("eta", (0.5, 0.05, 1e-6))
def test_proposition_a_1_bounds_wendels_probability(eta):
    for dimension in (1, 2, 8, 64, 300):
        points = geometry.enough_points(dimension, eta)
        assert points >= 4 * dimension + 2 * math.log(1 / eta) > points - 1
        assert geometry.hemisphere_probability(points, dimension) <= eta


def test_cone_volumes_agree_with_random_directions():
    rng = np.random.default_rng(1)
    for dimension, rank, angle, eps in (
        (3, 3, 0.7, 0.0),
        (4, 2, 0.8, 0.5),
        (6, 3, 1.2, 0.6),
        (5, 1, 0.3, 0.7),
    ):
        cone = geometry.random_cone(dimension, rank, angle, eps, rng)
        inside, beside = cone.excess(rng.standard_normal((200_000, dimension)))
        seen = np.mean((inside <= 0) & ((beside <= 0) | (rank == dimension)))
        assert seen == pytest.approx(
            geometry.cone_volume(dimension, rank, angle, eps), abs=4 * math.sqrt(0.25 / 200_000)
        )


def test_proposition_a_2_the_volume_grows_at_the_rate_of_the_difference_of_ranks():
    eps = np.geomspace(1e-4, 1e-2, 9)
    for before, after in ((2, 5), (3, 4), (4, 12)):
        assert geometry.volume_rate(16, before, after, 0.7, eps) == pytest.approx(
            after - before, abs=0.02
        )


def test_dimension_and_angle_of_known_clouds():
    rng = np.random.default_rng(2)
    assert geometry.effective_dimension(np.eye(7)) == pytest.approx(7)
    assert geometry.effective_dimension(
        np.outer(rng.random(9) + 1, rng.random(5))
    ) == pytest.approx(1)
    assert geometry.effective_dimension(rng.standard_normal((20_000, 6))) == pytest.approx(
        6, rel=0.01
    )
    ring = [
        (math.cos(t), math.sin(t), 2.0) for t in np.linspace(0, 2 * math.pi, 40, endpoint=False)
    ]
    assert geometry.opening_angle(np.array(ring)) == pytest.approx(math.atan(0.5))


def test_cones_that_cannot_be_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(UsageError, match="rank from 1 to 3, not 4"):
        geometry.random_cone(3, 4, 0.5, 0.1, rng)
    with pytest.raises(ParameterOutOfRange, match=r"angle.*2\.0"):
        geometry.random_cone(3, 2, 2.0, 0.1, rng)
    with pytest.raises(ParameterOutOfRange, match=r"eta.*0"):
        geometry.enough_points(3, 0)
