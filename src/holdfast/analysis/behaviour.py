"""Whether a low mass on the system prompt goes with a lost probe: correlations over conversations.

A correlation is no proof of a cause.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holdfast.analysis.statistics import bounds_of

_RESAMPLES = 2_000


def behaviour(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Correlations of a probe's mean mass with its stability score: over all probes, within rounds,
    within and between dialogs.
    """
    dialogs = [probes for record in records if len(probes := _probes(record))]
    every = np.concatenate(dialogs)
    round_means = {number: every[every[:, 0] == number, 1:].mean(0) for number in set(every[:, 0])}
    values = [probes[:, 1:] for probes in dialogs]
    of_rounds = [np.array([round_means[number] for number in probes[:, 0]]) for probes in dialogs]
    rng = np.random.default_rng(0)
    return {
        "all": _correlation(values, rng),
        "within_rounds": _correlation(_less(values, of_rounds), rng),
        "within_dialogs": _correlation([pairs - pairs.mean(0) for pairs in values], rng),
        "between_dialogs": _correlation([pairs.mean(0, keepdims=True) for pairs in values], rng),
        "probes": every.round(6).tolist(),
    }


def _probes(record: dict[str, Any]) -> np.ndarray:
    """[probe, (round, mass, score)], of the stability probes that have a mass."""
    rows = [
        (probe["round"], probe["mass"], probe["score"])
        for probe in record["probes"]
        if probe["kind"] == "stability" and probe["mass"] is not None
    ]
    return np.array(rows, dtype=float)


def _less(values: Sequence[np.ndarray], means: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [value - mean for value, mean in zip(values, means, strict=True)]


def _correlation(groups: Sequence[np.ndarray], rng: np.random.Generator) -> dict[str, Any]:
    """Pearson's r of [n, 2] with a 95 % bootstrap interval over groups; without one where a column
    is constant.
    """
    every = np.concatenate(groups)
    if len(groups) < 2 or (every.std(0) < 1e-12).any():
        why = "mass or score is the same everywhere"
        return {"n": len(groups), "r": None, "low": None, "high": None, "why": why}
    sums = np.array([_sums(group) for group in groups])
    shares = np.full(len(groups), 1 / len(groups))
    resampled = _r(rng.multinomial(len(groups), shares, size=_RESAMPLES) @ sums)
    low, high = bounds_of(resampled)
    r = float(_r(sums.sum(0, keepdims=True))[0])
    return {"n": len(groups), "r": r, "low": low, "high": high}


def _sums(group: np.ndarray) -> list[float]:
    """n, x, y, xx, yy and xy of [n, 2]."""
    return [len(group), *group.sum(0), *(group**2).sum(0), (group[:, 0] * group[:, 1]).sum()]


def _r(sums: np.ndarray) -> np.ndarray:
    """Pearson's r of each row of sums; NaN where a column of that resample is constant but for
    rounding.
    """
    n, x, y, xx, yy, xy = sums.T
    spread_x, spread_y = n * xx - x**2, n * yy - y**2
    varies = (spread_x > 1e-12 * n * xx) & (spread_y > 1e-12 * n * yy)
    root = np.sqrt(np.where(varies, spread_x * spread_y, np.nan))
    r: np.ndarray = np.clip((n * xy - x * y) / root, -1, 1)
    return r
