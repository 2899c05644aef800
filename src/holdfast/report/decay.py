"""How the mass on the system prompt decays, in numbers with intervals (Li et al. 2024, section 4).

Within a turn the paper sees a plateau, between turns a drop; attention spread evenly over all
tokens in sight would decay hyperbolically and know nothing of turns. Both are measured here on the
logarithm of the mass, in which a share lost counts the same at every height."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from holdfast.drift.traces import TurnTrace
from holdfast.errors import UsageError
from holdfast.report.statistics import Estimate, bounds_of, estimate, paired_difference
from holdfast.report.verdicts import LEAST, tell, with_interval
from holdfast.study.decay import Dialog, Head

_RESAMPLES = 2_000
_WHERE = (
    ("all", "over all"),
    ("within_rounds", "within rounds"),
    ("within_dialogs", "within dialogs"),
    ("between_dialogs", "between dialogs"),
)
# masses are kept as float16, whose least number is near it; below it a logarithm means nothing
_LEAST = 1e-8


def describe(
    name: str,
    records: Sequence[dict[str, Any]],
    dialogs: Sequence[Dialog],
    head: Head | None = None,
) -> dict[str, Any]:
    """All that is said of a model's self-chats, as JSON values; `head` is shown by itself, None
    takes the one whose mass falls most.
    """
    return {
        "model": name,
        "method": records[0]["method"],
        **decay(dialogs, head),
        "behaviour": behaviour(records),
    }


def decay(dialogs: Sequence[Dialog], head: Head | None = None) -> dict[str, Any]:
    """All that is said of the masses; every interval is over dialogs, of which those without a
    prompt or a mass are left out.

    Raises:
        UsageError: fewer than two dialogs are left.
    """
    dialogs = [dialog for dialog in dialogs if dialog]
    if len(dialogs) < 2:
        raise UsageError(
            f"{len(dialogs)} dialogs have a mass on a system prompt, and an interval needs two; use"
            " more conversations."
        )
    rounds = max(number for dialog in dialogs for number in dialog)
    whole = [dialog for dialog in dialogs if set(dialog) == set(range(1, rounds + 1))]
    first, last = (
        np.mean([_mean(dialog[number]) for dialog in whole], 0) for number in (1, rounds)
    )
    chosen = head or tuple(
        int(part) for part in np.unravel_index((first - last).argmax(), first.shape)
    )
    found: dict[str, Any] = {
        "dialogs": len(dialogs),
        "whole_dialogs": len(whole),
        "rounds": rounds,
        "shown_head": list(chosen),
        "head_was_given": head is not None,
        "heads": {"first_round": first.round(5).tolist(), "drop": (first - last).round(5).tolist()},
        "curves": {
            "average": _curves(dialogs, rounds, None),
            "head": _curves(dialogs, rounds, chosen),
            "uniform": _null_curves(dialogs, rounds),
        },
    }
    for name, picked in (("average", None), ("head", chosen)):
        real = np.array(
            [
                _changes([_series(dialog[number], picked) for number in range(1, rounds + 1)])
                for dialog in whole
            ]
        )
        null = np.array(
            [
                _changes([_even(dialog[number]) for number in range(1, rounds + 1)])
                for dialog in whole
            ]
        )
        found[name] = {
            "mass": [
                _json(
                    estimate(
                        np.array(
                            [
                                _series(dialog[number], picked).mean()
                                for dialog in dialogs
                                if number in dialog
                            ]
                        )
                    )
                )
                for number in range(1, rounds + 1)
            ],
            **{
                what: {
                    "real": _json(estimate(real[:, index])),
                    "uniform": _json(estimate(null[:, index])),
                    "difference": _json(paired_difference(real[:, index], null[:, index])),
                }
                for index, what in enumerate(("within_turns", "between_turns", "slope"))
            },
        }
    return found


def _even(turn: TurnTrace) -> np.ndarray:
    """The mass if attention were uniform, [step]."""
    return np.asarray(turn.uniform)


def _mean(turn: TurnTrace) -> np.ndarray:
    """[layer, head], over the tokens of a turn."""
    return np.asarray(turn.mass).mean(2)


def _series(turn: TurnTrace, head: Head | None) -> np.ndarray:
    """The mass of one head, or of the average head, [step]."""
    mass = np.asarray(turn.mass)
    return mass.mean((0, 1)) if head is None else mass[head]


def _changes(turns: Sequence[np.ndarray]) -> tuple[float, float, float]:
    """Of the logarithm of the mass over a dialog: its change within turns and between them, both
    summed, and its mean slope per token.

    A least-squares line through each turn says where it starts and ends. The query of a turn's
    first token is the template's, which attends like no other, so it is left out."""
    ends, slopes = [], []
    for turn in turns:
        level = np.log(np.maximum(turn[1:] if len(turn) > 1 else turn, _LEAST))
        slope, start = (
            np.polyfit(np.arange(len(level)), level, 1) if len(level) > 1 else (0.0, level[0])
        )
        ends.append((start, start + slope * (len(level) - 1)))
        if len(level) > 1:
            slopes.append(slope)
    within = sum(end - start for start, end in ends)
    between = sum(after[0] - before[1] for before, after in itertools.pairwise(ends))
    return float(within), float(between), float(np.mean(slopes)) if slopes else 0.0


def _curves(dialogs: Sequence[Dialog], rounds: int, head: Head | None) -> list[list[float]]:
    return _averages(
        [
            [_series(dialog[number], head) for dialog in dialogs if number in dialog]
            for number in range(1, rounds + 1)
        ]
    )


def _null_curves(dialogs: Sequence[Dialog], rounds: int) -> list[list[float]]:
    return _averages(
        [
            [_even(dialog[number]) for dialog in dialogs if number in dialog]
            for number in range(1, rounds + 1)
        ]
    )


def _averages(by_round: Sequence[Sequence[np.ndarray]]) -> list[list[float]]:
    """Per round, the mean at each step that at least half of the dialogs reach."""
    curves = []
    for turns in by_round:
        steps = int(np.median([len(turn) for turn in turns])) if turns else 0
        curves.append(
            [
                round(float(np.mean([turn[step] for turn in turns if len(turn) > step])), 6)
                for step in range(steps)
            ]
        )
    return curves


def behaviour(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Correlations of a probe's mean mass with its stability score: over all probes, within rounds,
    within and between dialogs.
    """
    probes = [
        [
            (probe["round"], probe["mass"], probe["score"])
            for probe in record["probes"]
            if probe["kind"] == "stability" and probe["mass"] is not None
        ]
        for record in records
    ]
    probes = [one for one in probes if one]
    table = [np.array(one, dtype=float) for one in probes]
    every = np.concatenate(table)
    centre = {number: every[every[:, 0] == number, 1:].mean(0) for number in np.unique(every[:, 0])}
    within = [one[:, 1:] - np.array([centre[number] for number in one[:, 0]]) for one in table]
    own = [one[:, 1:] - one[:, 1:].mean(0) for one in table]
    rng = np.random.default_rng(0)
    return {
        "all": _correlation([one[:, 1:] for one in table], rng),
        "within_rounds": _correlation(within, rng),
        "within_dialogs": _correlation(own, rng),
        "between_dialogs": _correlation([one[:, 1:].mean(0, keepdims=True) for one in table], rng),
        "probes": every.round(6).tolist(),
    }


def _correlation(groups: Sequence[np.ndarray], rng: np.random.Generator) -> dict[str, Any]:
    """Pearson's r of [n, 2] with a 95 % bootstrap interval over groups; without one where a column
    is constant.
    """
    every = np.concatenate(groups)
    if len(groups) < 2 or (every.std(0) < 1e-12).any():
        return {
            "n": len(groups),
            "r": None,
            "low": None,
            "high": None,
            "why": "mass or score is the same everywhere",
        }
    sums = np.array(
        [[len(g), *g.sum(0), *(g**2).sum(0), (g[:, 0] * g[:, 1]).sum()] for g in groups]
    )
    weights = rng.multinomial(len(groups), np.full(len(groups), 1 / len(groups)), size=_RESAMPLES)
    resampled = _r(weights @ sums)
    low, high = bounds_of(resampled)
    return {
        "n": len(groups),
        "r": float(_r(sums.sum(0, keepdims=True))[0]),
        "low": low,
        "high": high,
    }


def _r(sums: np.ndarray) -> np.ndarray:
    """Pearson's r of each row of sums; NaN where a column of that resample is constant but for
    rounding.
    """
    n, x, y, xx, yy, xy = sums.T
    spread_x, spread_y = n * xx - x**2, n * yy - y**2
    varies = (spread_x > 1e-12 * n * xx) & (spread_y > 1e-12 * n * yy)
    return np.clip((n * xy - x * y) / np.sqrt(np.where(varies, spread_x * spread_y, np.nan)), -1, 1)


def _json(one: Estimate) -> dict[str, Any]:
    return asdict(one)


def spelled(one: dict[str, Any]) -> str:
    """+0.123 [+0.100, +0.145]."""
    if one.get("low") is None:
        return "not measurable"
    return with_interval(_estimate(one), lambda value: f"{value:+.3f}")


def judged(one: dict[str, Any], above: str, below: str) -> str:
    """+0.123 [+0.100, +0.145], rises; or, cannot tell."""
    return f"{spelled(one)}, {tell(_estimate(one)).word(above, below)}"


def _estimate(one: dict[str, Any]) -> Estimate:
    """A change or a correlation as it stands in the JSON."""
    value = one["mean"] if "mean" in one else one["r"]
    return Estimate(one["n"], value, None, one["low"], one["high"], one.get("moved"))


def lines(found: dict[str, Any]) -> list[str]:
    """What was found, a line each."""
    layer, head = found["shown_head"]
    told = []
    for name, title in (
        ("average", "all heads"),
        (
            "head",
            f"head {layer}.{head}"
            + ("" if found["head_was_given"] else ", whose mass falls most in these dialogs"),
        ),
    ):
        row = found[name]
        told.append(
            f"{found['model']}, {title}: mass {row['mass'][0]['mean']:.3f} in round 1,"
            f" {row['mass'][-1]['mean']:.3f} in round {found['rounds']}. Log of the mass between"
            f" turns {judged(row['between_turns']['real'], 'rises', 'falls')} (even attention"
            f" {spelled(row['between_turns']['uniform'])}); within turns"
            f" {judged(row['within_turns']['real'], 'rises', 'falls')} (even attention"
            f" {spelled(row['within_turns']['uniform'])})."
        )
    mass = found["behaviour"]
    parts = [
        f"{where} r = {judged(mass[name], 'they rise together', 'one falls as the other rises')}"
        for name, where in _WHERE
    ]
    told.append(f"Mass and score of the probes: {'; '.join(parts)}.")
    if found["whole_dialogs"] < LEAST:
        told.append(
            f"{found['whole_dialogs']} whole dialogs are an example and not a measurement, "
            f"which takes {LEAST}."
        )
    return told
