"""How the mass on the system prompt decays, in numbers with intervals (Li et al. 2024, section 4).

The paper sees a plateau within turns and a drop between them; attention spread uniformly over the
tokens that a layer sees would decay hyperbolically, regardless of turns. A head is compared with
uniform attention in its own layer, the average over heads with the mean of uniform attention over
the layers that attend. Both are measured on the logarithm of the mass, on which losing a given
share counts the same at every level.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from holdfast.analysis.statistics import SCORES, bounds_of, estimate, paired_difference
from holdfast.drift.attention_traces import TurnTrace
from holdfast.errors import UsageError
from holdfast.records import Conversation

Dialog = dict[int, TurnTrace]  # the agent's turns, by round
_Level = Callable[[TurnTrace], np.ndarray]  # takes a turn and returns its masses, [step]

# masses are stored as float16, whose smallest number is near this; logarithms of less mean nothing
_MIN_MASS = 1e-8
_RESAMPLES = 2_000  # of a correlation


class Changes(NamedTuple):
    """The summed changes of a dialog's log mass, and its mean slope per token."""

    within_turns: float
    between_turns: float
    slope: float


def describe(
    name: str, records: Sequence[Conversation], dialogs: Sequence[Dialog]
) -> dict[str, Any]:
    """All measurements of a model's self-chats, as JSON values."""
    return {
        "model": name,
        "method": records[0].method,
        **decay(dialogs),
        "behaviour": behaviour(records),
    }


def decay(dialogs: Sequence[Dialog]) -> dict[str, Any]:
    """All measurements of the masses, for the average head and the head whose mass falls most."""
    dialogs = [dialog for dialog in dialogs if dialog]
    if len(dialogs) < 2:
        raise UsageError(
            f"{len(dialogs)} dialogs have a mass on a system prompt, and an interval needs two; use"
            " more conversations."
        )
    rounds = max(number for dialog in dialogs for number in dialog)
    whole = [dialog for dialog in dialogs if set(dialog) == set(range(1, rounds + 1))]
    if not whole:
        raise UsageError(
            f"None of the {len(dialogs)} dialogs has a mass in each of {rounds} rounds; use more"
            " conversations."
        )
    first, last = (  # [layer, head]
        np.mean([np.asarray(dialog[number].mass).mean(2) for dialog in whole], 0)
        for number in (1, rounds)
    )
    drop = first - last
    layer, column = np.unravel_index(drop.argmax(), drop.shape)
    shown = int(layer), int(column)

    def of_head(turn: TurnTrace) -> np.ndarray:
        return np.asarray(turn.mass[shown])

    def uniform_of_head(turn: TurnTrace) -> np.ndarray:
        return np.asarray(turn.uniform[shown[0]])

    return {
        "dialogs": len(dialogs),
        "whole_dialogs": len(whole),
        "rounds": rounds,
        "shown_head": list(shown),
        "heads": {"first_round": first.round(5).tolist(), "drop": drop.round(5).tolist()},
        "curves": {
            "average": _curves(dialogs, rounds, _average_mass),
            "head": _curves(dialogs, rounds, of_head),
            "uniform": _curves(dialogs, rounds, _uniform_mass),
        },
        "average": _measured(dialogs, whole, rounds, _average_mass, _uniform_mass),
        "head": _measured(dialogs, whole, rounds, of_head, uniform_of_head),
    }


def _measured(
    dialogs: Sequence[Dialog],
    whole: Sequence[Dialog],
    rounds: int,
    level: _Level,
    uniform_level: _Level,
) -> dict[str, Any]:
    """The mean mass by round, and the changes of its logarithm in whole dialogs."""
    real = np.array([_changes(dialog, rounds, level) for dialog in whole])
    uniform = np.array([_changes(dialog, rounds, uniform_level) for dialog in whole])
    mass = [
        estimate(
            np.array([level(dialog[number]).mean() for dialog in dialogs if number in dialog]),
            SCORES,
        )
        for number in range(1, rounds + 1)
    ]
    changes = {
        what: {
            "real": asdict(estimate(real[:, column], None)),
            "uniform": asdict(estimate(uniform[:, column], None)),
            "difference": asdict(paired_difference(real[:, column], uniform[:, column], None)),
        }
        for column, what in enumerate(Changes._fields)
    }
    return {"mass": [asdict(value) for value in mass], **changes}


def _changes(dialog: Dialog, rounds: int, level: _Level) -> Changes:
    """The changes in a whole dialog; a least-squares line gives each turn's start and end."""
    # the query of a turn's first token belongs to the template and attends unlike any other
    ends, slopes = [], []
    for number in range(1, rounds + 1):
        masses = level(dialog[number])
        masses = np.log(np.maximum(masses[1:] if len(masses) > 1 else masses, _MIN_MASS))
        slope, start = 0.0, masses[0]
        if len(masses) > 1:
            slope, start = np.polyfit(np.arange(len(masses)), masses, 1)
            slopes.append(slope)
        ends.append((start, start + slope * (len(masses) - 1)))
    within = sum(end - start for start, end in ends)
    between = sum(after[0] - before[1] for before, after in itertools.pairwise(ends))
    return Changes(float(within), float(between), float(np.mean(slopes)) if slopes else 0.0)


def _curves(dialogs: Sequence[Dialog], rounds: int, level: _Level) -> list[list[float]]:
    """Per round, the mean at each step that at least half of the dialogs reach."""
    curves = []
    for number in range(1, rounds + 1):
        turns = [level(dialog[number]) for dialog in dialogs if number in dialog]
        steps = int(np.median([len(turn) for turn in turns])) if turns else 0
        means = (np.mean([turn[at] for turn in turns if len(turn) > at]) for at in range(steps))
        curves.append([round(float(mean), 6) for mean in means])
    return curves


def _average_mass(turn: TurnTrace) -> np.ndarray:
    """The mass averaged over layers and heads, [step]."""
    return np.asarray(turn.mass.mean((0, 1)))


def _uniform_mass(turn: TurnTrace) -> np.ndarray:
    """The mass if attention were uniform, averaged over the layers, [step]."""
    return np.asarray(turn.uniform.mean(0))


def behaviour(records: Sequence[Conversation]) -> dict[str, Any]:
    """Correlations of a probe's mean mass with its score: overall, within and between dialogs."""
    dialogs = [probes for record in records if len(probes := _probes(record))]
    every = np.concatenate([np.empty((0, 3)), *dialogs])
    round_means = {number: every[every[:, 0] == number, 1:].mean(0) for number in set(every[:, 0])}
    values = [probes[:, 1:] for probes in dialogs]
    in_rounds = [
        probes[:, 1:] - np.array([round_means[number] for number in probes[:, 0]])
        for probes in dialogs
    ]
    rng = np.random.default_rng(0)
    return {
        "all": _correlation(values, rng),
        "within_rounds": _correlation(in_rounds, rng),
        "within_dialogs": _correlation([pairs - pairs.mean(0) for pairs in values], rng),
        "between_dialogs": _correlation([pairs.mean(0, keepdims=True) for pairs in values], rng),
        "probes": every.round(6).tolist(),
    }


def _probes(record: Conversation) -> np.ndarray:
    rows = [
        (probe.round, probe.mass, probe.score)
        for probe in record.probes
        if probe.kind == "stability" and probe.mass is not None
    ]
    return np.array(rows, dtype=float)


def _correlation(groups: Sequence[np.ndarray], rng: np.random.Generator) -> dict[str, Any]:
    """Pearson's r of [n, 2] with a 95% bootstrap interval over groups."""
    why = "fewer than two groups of probes have a mass" if len(groups) < 2 else ""
    if not why and (np.concatenate(groups).std(0) < 1e-12).any():
        why = "mass or score is the same everywhere"
    if why:
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
    """Pearson's r of each row of sums; NaN where a column is constant up to rounding."""
    n, x, y, xx, yy, xy = sums.T
    spread_x, spread_y = n * xx - x**2, n * yy - y**2
    varies = (spread_x > 1e-12 * n * xx) & (spread_y > 1e-12 * n * yy)
    root = np.sqrt(np.where(varies, spread_x * spread_y, np.nan))
    r: np.ndarray = np.clip((n * xy - x * y) / root, -1, 1)
    return r
