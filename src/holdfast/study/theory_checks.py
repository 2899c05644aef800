"""The theory of drift on random instances (Li et al. 2024, section 5 and appendix A)."""

from __future__ import annotations

import math

import numpy as np

from holdfast.study import cone as theory

_DIMENSION, _RANK, _ANGLE, _EPS = 24, 6, 0.6, 0.3  # of the cones of Theorem 5.1
_PROMPT = 8  # tokens
_ETA = 0.05  # Proposition A.1 promises 1 - eta


def check_theorem(instances: int, generated: int, seed: int) -> dict[str, float]:
    """Theorem 5.1 on random cones and transformers: the worst of each quantity it bounds, over so
    many generated tokens of each instance.
    """
    widened = theory.widened_eps(_EPS, _ANGLE)
    residuals, outside, angles = [], [], []
    for instance in range(instances):
        rng = np.random.default_rng([seed, instance])
        cone = theory.random_cone(_DIMENSION, _RANK, _ANGLE, _EPS, rng)
        transformer = theory.random_transformer(cone, 2, 2, rng)
        tokens = transformer.generate(cone.sample(_PROMPT, rng), generated)
        residuals += [
            theory.hull_residual(tokens[place], transformer.images(tokens[:place]))
            for place in range(_PROMPT, len(tokens))
        ]
        beyond_angle, beyond_eps = cone.widened().excess(tokens[_PROMPT:])
        angles.append(float(beyond_angle.max()))
        outside.append(float(beyond_eps.max()) + widened)
    return {
        "tokens": instances * generated,
        "hull_residual": max(0.0, *residuals),
        "outside": max(0.0, *outside),
        "angle_excess": max(-math.inf, *angles),
        "widened_eps": widened,
    }


def check_spanning(trials: int, seed: int) -> list[dict[str, float]]:
    """Proposition A.1 at its own bound and halfway to it, against Wendel's exact probability and
    so many simulations.
    """
    rows: list[dict[str, float]] = []
    for dimension in (2, 4, 8, 16):
        enough = theory.enough_points(dimension, _ETA)
        for points in (2 * dimension, enough):
            rng = np.random.default_rng([seed, dimension, points])
            rows.append(
                {
                    "dimension": dimension,
                    "points": points,
                    "promised": 1 - _ETA if points == enough else 0.0,
                    "wendel": 1 - theory.hemisphere_probability(points, dimension),
                    "simulated": theory.simulate_spanning(points, dimension, trials, rng),
                }
            )
    return rows


def check_rate() -> list[dict[str, float]]:
    """Proposition A.2 in 64 dimensions: the slope of the volume ratio over eps, both as
    logarithms.
    """
    eps = np.geomspace(1e-4, 1e-2, 9)
    return [
        {
            "before": before,
            "after": after,
            "promised": after - before,
            "slope": theory.volume_rate(64, before, after, 0.7, eps),
        }
        for before, after in ((4, 6), (4, 12), (8, 32))
    ]
