"""Whether a turn of the agent foretells that the next probe of its conversation is lost: by a low
attention mass on the system prompt, by a high divergence from a fresh dialog, or by both together.

A sign is worth its area under the ROC curve: how often, of two turns of which one is followed by a
lost probe and the other by one that is kept, it is stronger at the first; a tie counts half, and
0.5 is chance. Over all turns a sign may know no more than how old the dialog is; within rounds,
only turns of one round are compared.

Both together are a logistic regression of the logarithms of the two. It is cross-fitted: what it
tells of a conversation was fitted on others. Turns of round 1 play no part, as their divergence is
0 by its definition.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.analysis.rules import KEPT
from holdfast.analysis.series import probe_means, turn_values
from holdfast.analysis.statistics import Estimate, bounds_of

_RESAMPLES = 2_000
_CELLS = 2_000_000  # resampling weights of turns held at once
_FOLDS = 10
_PENALTY = 1.0  # on standardised weights, so that they stay finite where a sign never errs
_STEEPEST = 500.0  # log-odds, whose exponential is a number
# below these a logarithm means nothing: of a mass as it is recorded, and of a divergence in nats
_LEAST = {"mass": 1e-6, "divergence": 1e-4}
BOTH = "both"


@dataclass(frozen=True)
class Area:
    """The area under the ROC curve of one sign, or how much larger it is than another's.

    Args:
        sign: "mass", "divergence" or "both".
        over_all: of all turns.
        within_rounds: of turns that are compared with others of their round alone.
    """

    sign: str
    over_all: Estimate
    within_rounds: Estimate


@dataclass(frozen=True)
class Foretelling:
    """How well turns foretell lost probes; intervals are over conversations.

    Args:
        conversations, turns: how many are compared.
        lost: how many of the turns are followed by a probe that scores below `rules.KEPT`.
        areas: of each sign that was measured.
        gains: of the others beyond that of the mass; () where one of them was not measured.
    """

    conversations: int
    turns: int
    lost: int
    areas: tuple[Area, ...]
    gains: tuple[Area, ...]


def from_json(told: dict[str, Any]) -> Foretelling:
    """What `dataclasses.asdict` has made JSON values of."""

    def areas(name: str) -> tuple[Area, ...]:
        return tuple(
            Area(area["sign"], Estimate(**area["over_all"]), Estimate(**area["within_rounds"]))
            for area in told[name]
        )

    counts = {name: told[name] for name in ("conversations", "turns", "lost")}
    return Foretelling(**counts, areas=areas("areas"), gains=areas("gains"))


@dataclass(frozen=True)
class _Turns:
    """Turns that are followed by a probe, each an element.

    Args:
        owner: the row of their conversation, from 0 without gaps.
        number: their rounds.
        lost: whether the next probe is.
        signs: by name, the stronger the larger.
    """

    owner: np.ndarray
    number: np.ndarray
    lost: np.ndarray
    signs: dict[str, np.ndarray]


def foretelling_of(
    records: Sequence[dict[str, Any]], *, after_round: bool = False
) -> Foretelling | None:
    """As `foretell`, of the records of one method."""
    rounds = max((turn["round"] for record in records for turn in record["turns"]), default=0)
    probed = max((probe["round"] for record in records for probe in record["probes"]), default=0)
    rounds = max(rounds, probed)
    return foretell(
        probe_means(records, rounds, lambda probe: probe["kind"] == "stability"),
        turn_values(records, rounds, "mass"),
        turn_values(records, rounds, "divergence"),
        after_round=after_round,
    )


def foretell(
    stability: np.ndarray, mass: np.ndarray, divergence: np.ndarray, *, after_round: bool
) -> Foretelling | None:
    """How well mass and divergence of a turn foretell that the next probe is lost.

    Args:
        stability: [conversation, round], of the probes of each round; NaN where there were none.
        mass, divergence: of the agent's turns, likewise.
        after_round: whether a round's probes follow its turn; else those of the next round do.

    Returns:
        None where no divergence was measured, or fewer than two conversations have one.
    """
    matrices = np.ascontiguousarray([stability, mass, divergence], dtype=float)
    return _foretell(matrices.tobytes(), matrices.shape, after_round)


@functools.lru_cache(maxsize=32)
def _foretell(data: bytes, shape: tuple[int, ...], after_round: bool) -> Foretelling | None:
    """As `foretell`, of matrices given as their bytes: terminal, page and summary ask for the same
    ones.
    """
    stability, mass, divergence = np.frombuffer(data, dtype=float).reshape(shape)
    turns = _turns(stability, mass, divergence, after_round)
    count = len(set(turns.owner.tolist()))
    if count < 2:
        return None
    resampled = {sign: _resampled(turns, sign, count) for sign in turns.signs}
    gains = [sign for sign in turns.signs if sign != "mass"] if BOTH in turns.signs else []
    return Foretelling(
        count,
        len(turns.lost),
        int(turns.lost.sum()),
        tuple(_area(sign, areas, count) for sign, areas in resampled.items()),
        tuple(_area(sign, resampled[sign] - resampled["mass"], count) for sign in gains),
    )


def _turns(
    stability: np.ndarray, mass: np.ndarray, divergence: np.ndarray, after_round: bool
) -> _Turns:
    """The turns from round 2 on that have all that is measured at any, and a probe behind them."""
    following = np.full(stability.shape, np.nan)
    lag = 0 if after_round else 1
    following[:, : stability.shape[1] - lag] = stability[:, lag:]
    measured = {
        name: values
        for name, values in (("mass", mass), ("divergence", divergence))
        if name == "divergence" or not np.isnan(values[:, 1:]).all()
    }
    use = ~np.isnan(following)
    use[:, :1] = False
    for values in measured.values():
        use &= ~np.isnan(values)
    conversations, columns = np.nonzero(use)
    owner = np.unique(conversations, return_inverse=True)[1]
    lost = following[use] < KEPT
    signs = {name: values[use] for name, values in measured.items()}
    if "mass" in signs:
        logs = [np.log(np.maximum(signs[name], _LEAST[name])) for name in signs]
        signs |= {"mass": -signs["mass"], BOTH: _cross_fitted(np.stack(logs, 1), lost, owner)}
    return _Turns(owner, columns + 1, lost, signs)


def _cross_fitted(features: np.ndarray, lost: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """How far each turn lies, [turn], in the direction of `features`, [turn, feature], in which a
    regression on other conversations finds more lost probes.

    Of its weights the direction alone is taken. Their constant and their length differ from fold to
    fold with what happens to be lost in the others, so that they would tell, the wrong way round,
    what is lost in the fold itself.
    """
    told = np.zeros(len(lost))
    if not len(lost):
        return told
    scale = features.std(0)
    standard = (features - features.mean(0)) / np.where(scale > 0, scale, 1.0)
    design = np.column_stack([np.ones(len(standard)), standard])
    for fold in range(_FOLDS):
        held_out = owner % _FOLDS == fold
        if held_out.any() and not held_out.all():
            weights = _logistic(design[~held_out], lost[~held_out])[1:]
            length = np.linalg.norm(weights)
            told[held_out] = standard[held_out] @ weights / (length if length > 0 else 1.0)
    return told


def _logistic(design: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """The weights of a logistic regression with a quadratic penalty, by Newton's method.

    Args:
        design: [turn, 1 and the features].
        lost: [turn].
    """
    weights = np.zeros(design.shape[1])
    penalty = _PENALTY * np.eye(len(weights))
    for _ in range(50):
        chances = 1 / (1 + np.exp(np.clip(-design @ weights, -_STEEPEST, _STEEPEST)))
        slope = design.T @ (lost - chances) - _PENALTY * weights
        curve = (design * (chances * (1 - chances))[:, None]).T @ design + penalty
        step = np.linalg.solve(curve, slope)
        weights = weights + step
        if abs(step).max() < 1e-8:
            break
    return weights


def _resampled(turns: _Turns, sign: str, count: int) -> np.ndarray:
    """The area over all and within rounds, [resample, 2]; the first resample has every conversation
    once. NaN where a resample has no turn of either kind.
    """
    generator = np.random.default_rng([0, count])
    block = max(1, _CELLS // max(1, len(turns.lost)))
    areas, left = [], _RESAMPLES
    weights = np.ones((1, count))
    while True:
        areas.append(_areas(turns, turns.signs[sign], weights))
        if not left:
            return np.concatenate(areas)
        size = min(block, left)
        left -= size
        weights = generator.multinomial(count, np.full(count, 1 / count), size=size).astype(float)


def _areas(turns: _Turns, sign: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """As `_resampled`, of conversations that count `weights`, [resample, conversation], times."""
    every = np.ones(len(sign), dtype=bool)
    rounds = [turns.number == number for number in np.unique(turns.number)]
    columns = []
    for strata in ([every], rounds):
        won = pairs = np.zeros(len(weights))
        for stratum in strata:
            some, of_these = _pairs(
                sign[stratum], turns.lost[stratum], turns.owner[stratum], weights
            )
            won, pairs = won + some, pairs + of_these
        columns.append(np.divide(won, pairs, out=np.full(len(won), np.nan), where=pairs > 0))
    return np.stack(columns, 1)


def _pairs(
    sign: np.ndarray, lost: np.ndarray, owner: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of pairs of a lost and a kept one, how many have the stronger sign at the lost one, and how
    many there are, [resample].

    Args:
        sign, lost, owner: [turn], at least one.
        weights: [resample, conversation].
    """
    order = np.argsort(sign, kind="stable")
    values, is_lost, of_turns = sign[order], lost[order], weights[:, owner[order]]
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    lost_here = np.add.reduceat(of_turns * is_lost, starts, axis=1)
    kept_here = np.add.reduceat(of_turns * ~is_lost, starts, axis=1)
    kept_below = kept_here.cumsum(1) - kept_here
    won = (lost_here * (kept_below + kept_here / 2)).sum(1)
    return won, lost_here.sum(1) * kept_here.sum(1)


def _area(sign: str, resampled: np.ndarray, count: int) -> Area:
    """Of [resample, over all and within rounds]."""
    over_all, within = (_estimate(column, count) for column in resampled.T)
    return Area(sign, over_all, within)


def _estimate(resampled: np.ndarray, count: int) -> Estimate:
    """Of [resample], the first of which is of the conversations as they are."""
    if np.isnan(resampled[0]):
        return Estimate(count, None, None, None, None)
    low, high = bounds_of(resampled[1:])
    return Estimate(count, float(resampled[0]), None, low, high)
