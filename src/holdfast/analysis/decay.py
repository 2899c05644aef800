"""How the mass on the system prompt decays, in numbers with intervals (Li et al. 2024, section 4).

The paper sees a plateau within turns and a drop between them; attention spread uniformly over the
tokens that a layer sees would decay hyperbolically, regardless of turns. A head is compared with
uniform attention in its own layer, the average over heads with the mean of uniform attention over
the layers that attend. Both are measured on the logarithm of the mass, on which losing a given
share counts the same at every level.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from pydantic import Field

from holdfast.analysis.statistics import (
    SCORES,
    Estimate,
    bounds_of,
    estimate,
    paired_difference,
    resampled_means,
)
from holdfast.errors import UsageError
from holdfast.records import Conversation
from holdfast.records.model import List, Number, Optional, RecordModel
from holdfast.records.traces import TurnTrace

Dialog = Mapping[int, TurnTrace]  # the agent's turns, by round
Rows = List[List[float]]
_Level = Callable[[TurnTrace], np.ndarray]  # takes a turn and returns its masses, [step]

# masses are stored as float16, which rounds what is smaller to 0, whose logarithm means nothing
_MIN_MASS = 2.0**-24
_MIN_GROUPS = 3  # two means always lie on a line


class Change(RecordModel):
    """A change of the logarithm of the mass, and what it would be under uniform attention."""

    real: Estimate
    uniform: Estimate
    difference: Estimate  # real - uniform, paired by dialog


class Decay(RecordModel):
    """The decay of one mass: that of a head, or the average over all heads."""

    mass: List[Estimate]  # the mean over a turn, by round
    within_turns: Change  # summed over the turns of a dialog
    between_turns: Change  # summed, from the end of a turn to the start of the next
    slope: Change  # per token within a turn, averaged over turns


class Heads(RecordModel):
    """The mean masses of all heads, [layer][head]."""

    first_round: Rows
    drop: Rows  # from the first round to the last


class Curves(RecordModel):
    """Mean masses by generated token, [round][step]."""

    average: Rows  # over heads
    head: Rows  # of the shown head
    uniform: Rows  # uniform attention, averaged over layers


class MassDecay(RecordModel):
    """How the mass on the system prompt decays in the self-chats of a model."""

    dialogs: Number
    whole_dialogs: Number  # those with a mass in every round
    rounds: Number
    shown_head: tuple[int, int] = Field(strict=False)  # the one whose mass falls most
    heads: Heads
    curves: Curves
    average: Decay
    head: Decay  # of the shown head


class Correlation(RecordModel):
    """Pearson's r of mass and score, with its 95% interval; None where there is none."""

    n: Number  # of groups that are resampled
    r: float | None
    low: float | None
    high: float | None
    why: Optional[str] = None  # there is none

    @property
    def estimate(self) -> Estimate:
        return Estimate(self.n, self.r, None, self.low, self.high)


class Behaviour(RecordModel):
    """Correlations of a probe's mean mass with its score."""

    all: Correlation
    within_rounds: Correlation  # less the mean of its round
    within_dialogs: Correlation  # less the mean of its dialog
    between_dialogs: Correlation  # of the means of dialogs
    probes: Rows  # a row for each: round, mass, score


class Trace(MassDecay):
    """All measurements of a model's traced self-chats, as in `trace.json`."""

    model: str
    method: str
    behaviour: Behaviour


def describe(name: str, records: Sequence[Conversation], dialogs: Sequence[Dialog]) -> Trace:
    """All measurements of a model's self-chats."""
    return Trace(
        **dict(decay(dialogs)),
        model=name,
        method=records[0].method,
        behaviour=behaviour(records),
    )


def decay(dialogs: Sequence[Dialog]) -> MassDecay:
    """All measurements of the masses, for the average head and the head whose mass falls most.

    Raises:
        UsageError: fewer than two dialogs have a mass, or none has one in each round.
    """
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
    layer, head = (int(index) for index in np.unravel_index(drop.argmax(), drop.shape))

    def head_mass(turn: TurnTrace) -> np.ndarray:
        return np.asarray(turn.mass[layer, head])

    def head_uniform(turn: TurnTrace) -> np.ndarray:
        return np.asarray(turn.uniform[layer])

    return MassDecay(
        dialogs=len(dialogs),
        whole_dialogs=len(whole),
        rounds=rounds,
        shown_head=(layer, head),
        heads=Heads(first_round=first.round(5).tolist(), drop=drop.round(5).tolist()),
        curves=Curves(
            average=_curves(dialogs, rounds, _average_mass),
            head=_curves(dialogs, rounds, head_mass),
            uniform=_curves(dialogs, rounds, _average_uniform),
        ),
        average=_decay_of(dialogs, whole, rounds, _average_mass, _average_uniform),
        head=_decay_of(dialogs, whole, rounds, head_mass, head_uniform),
    )


def _decay_of(
    dialogs: Sequence[Dialog],
    whole: Sequence[Dialog],
    rounds: int,
    level: _Level,
    uniform_level: _Level,
) -> Decay:
    """The mean mass by round, and the changes of its logarithm in whole dialogs."""
    masses = [
        np.array([level(dialog[number]).mean() for dialog in dialogs if number in dialog])
        for number in range(1, rounds + 1)
    ]
    # [change, dialog]
    real = np.array([_changes(dialog, rounds, level) for dialog in whole]).T
    uniform = np.array([_changes(dialog, rounds, uniform_level) for dialog in whole]).T
    within, between, slope = map(_change, real, uniform)
    return Decay(
        mass=tuple(estimate(values, SCORES) for values in masses),
        within_turns=within,
        between_turns=between,
        slope=slope,
    )


def _change(real: np.ndarray, uniform: np.ndarray) -> Change:
    """The estimates of a change, from its values, [dialog]."""
    return Change(
        real=estimate(real, None),
        uniform=estimate(uniform, None),
        difference=paired_difference(real, uniform, None),
    )


def _changes(dialog: Dialog, rounds: int, level: _Level) -> tuple[float, float, float]:
    """The changes of the log mass in a whole dialog: summed within turns, summed between turns, and
    the mean slope per token, NaN if every turn has fewer than three. A least-squares line gives
    each turn's start and end.
    """
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
    return float(within), float(between), float(np.mean(slopes)) if slopes else math.nan


def _curves(dialogs: Sequence[Dialog], rounds: int, level: _Level) -> Rows:
    """Per round, the mean at each step that at least half of the dialogs reach."""
    curves = []
    for number in range(1, rounds + 1):
        turns = [level(dialog[number]) for dialog in dialogs if number in dialog]
        steps = int(np.median([len(turn) for turn in turns])) if turns else 0
        means = (np.mean([turn[at] for turn in turns if len(turn) > at]) for at in range(steps))
        curves.append(tuple(round(float(mean), 6) for mean in means))
    return tuple(curves)


def _average_mass(turn: TurnTrace) -> np.ndarray:
    """The mass averaged over layers and heads, [step]."""
    return np.asarray(turn.mass.mean((0, 1)))


def _average_uniform(turn: TurnTrace) -> np.ndarray:
    """The mass if attention were uniform, averaged over the layers, [step]."""
    return np.asarray(turn.uniform.mean(0))


def behaviour(records: Sequence[Conversation]) -> Behaviour:
    """Correlations of a probe's mean mass with its score: overall, within and between dialogs."""
    dialogs = [probes for record in records if len(probes := _probes(record))]
    every = np.concatenate([np.empty((0, 3)), *dialogs])
    round_means = {number: every[every[:, 0] == number, 1:].mean(0) for number in set(every[:, 0])}
    values = [probes[:, 1:] for probes in dialogs]
    in_rounds = [
        probes[:, 1:] - np.array([round_means[number] for number in probes[:, 0]])
        for probes in dialogs
    ]
    return Behaviour(
        all=_correlation(values),
        within_rounds=_correlation(in_rounds),
        within_dialogs=_correlation([pairs - pairs.mean(0) for pairs in values]),
        between_dialogs=_correlation([pairs.mean(0, keepdims=True) for pairs in values]),
        probes=every.round(6).tolist(),
    )


def _probes(record: Conversation) -> np.ndarray:
    """The round, the mass and the score of each probe that has a mass, [probe, 3]."""
    rows = [
        (probe.round, probe.mass, probe.score)
        for probe in record.probes
        if probe.kind == "stability" and probe.mass is not None
    ]
    return np.array(rows, dtype=float)


def _correlation(groups: Sequence[np.ndarray]) -> Correlation:
    """Pearson's r of [n, 2] with a 95% bootstrap interval over groups."""
    if len(groups) < _MIN_GROUPS:
        why = "fewer than three groups of probes have a mass"
        return Correlation(n=len(groups), r=None, low=None, high=None, why=why)
    sums = np.array([_sums(group) for group in groups])
    r = float(_r(sums.sum(0, keepdims=True))[0])
    if math.isnan(r):
        why = "mass or score is the same everywhere"
        return Correlation(n=len(groups), r=None, low=None, high=None, why=why)
    low, high = bounds_of(_r(resampled_means(sums)))
    return Correlation(n=len(groups), r=r, low=low, high=high)


def _sums(group: np.ndarray) -> list[float]:
    """n, x, y, xx, yy and xy of [n, 2]; r is the same of their means over groups."""
    return [len(group), *group.sum(0), *(group**2).sum(0), (group[:, 0] * group[:, 1]).sum()]


def _r(sums: np.ndarray) -> np.ndarray:
    """Pearson's r of each row of sums of values around 1; NaN where a column is constant up to
    rounding, of the values or of their sums.
    """
    n, x, y, xx, yy, xy = sums.T
    spread_x, spread_y = n * xx - x**2, n * yy - y**2
    varies = (spread_x > n * (1e-12 * xx + 1e-20 * n)) & (spread_y > n * (1e-12 * yy + 1e-20 * n))
    root = np.sqrt(np.where(varies, spread_x * spread_y, np.nan))
    r: np.ndarray = np.clip((n * xy - x * y) / root, -1, 1)
    return r
