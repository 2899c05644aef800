"""Measures how the mass on the system prompt decays (Li et al. 2024, section 4).

The paper sees a plateau within turns and a drop between them; attention spread uniformly over the
tokens that a layer sees would decay hyperbolically, regardless of turns. A head is compared with
uniform attention in its own layer, the average over heads with the mean of uniform attention over
the layers that attend. Both are measured on the logarithm of the mass, on which losing a given
share counts the same at every level.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import Field

from holdfast.analysis.mass_and_score import Behaviour, Rows, correlate_mass_and_score
from holdfast.analysis.statistics import SCORES, Estimate, estimate, paired_difference
from holdfast.errors import UsageError
from holdfast.plurals import count_of
from holdfast.records import Conversation
from holdfast.records.model import List, Number, RecordModel
from holdfast.records.traces import TurnTrace

Dialog = Mapping[int, TurnTrace]  # the agent's turns, by round
_Level = Callable[[TurnTrace], np.ndarray]  # takes a turn and returns its masses, [step]

# masses are stored as float16: smaller ones become 0, which has no logarithm
_MIN_MASS = 2.0**-24


class _Changes(NamedTuple):
    """The changes of the log mass in one dialog."""

    within_turns: float  # the sum over turns
    between_turns: float  # the sum over pairs of consecutive turns
    slope: float  # the mean slope per token; NaN if every turn has fewer than three


class _Line(NamedTuple):
    """The least-squares line through the log masses of a turn."""

    start: float
    end: float


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


class Trace(RecordModel):
    """How the mass on the system prompt decays in a model's self-chats, as in `trace.json`."""

    dialogs: Number
    whole_dialogs: Number  # those with a mass in every round
    rounds: Number
    # (layer, head) whose mass falls most in every second dialog with all rounds
    shown_head: tuple[int, int] = Field(strict=False)
    heads: Heads
    curves: Curves
    average: Decay
    head: Decay  # of the shown head, in the other dialogs with all rounds
    model: str
    method: str
    behaviour: Behaviour


def describe(name: str, records: Sequence[Conversation], dialogs: Sequence[Dialog]) -> Trace:
    """Measures a model's self-chats, for the average over all heads and for the head whose mass
    falls most.

    That head is chosen on half of the dialogs and measured on the others. With fewer than four
    dialogs, it is both chosen and measured on all of them.

    Args:
        name: the name of the model.
        records: its conversations.
        dialogs: their traces, in the same order.

    Raises:
        UsageError: the dialogs have one round, or fewer than two have a mass in each.
    """
    dialogs = [dialog for dialog in dialogs if dialog]
    rounds = max((number for dialog in dialogs for number in dialog), default=0)
    whole = [dialog for dialog in dialogs if set(dialog) == set(range(1, rounds + 1))]
    _check_counts(len(dialogs), len(whole), rounds)
    # a head that is chosen by its fall has to be measured on other dialogs
    choosing, measuring = (whole[::2], whole[1::2]) if len(whole) >= 4 else (whole, whole)
    layer, head = _head_that_falls_most(choosing, rounds)

    def head_mass(turn: TurnTrace) -> np.ndarray:
        return np.asarray(turn.mass[layer, head])

    def head_uniform(turn: TurnTrace) -> np.ndarray:
        return np.asarray(turn.uniform[layer])

    return Trace(
        dialogs=len(dialogs),
        whole_dialogs=len(whole),
        rounds=rounds,
        shown_head=(layer, head),
        heads=Heads(
            first_round=_head_masses(whole, 1).round(5).tolist(),
            drop=(_head_masses(whole, 1) - _head_masses(whole, rounds)).round(5).tolist(),
        ),
        curves=Curves(
            average=_curves(dialogs, rounds, _average_mass),
            head=_curves(dialogs, rounds, head_mass),
            uniform=_curves(dialogs, rounds, _average_uniform),
        ),
        average=_decay_of(dialogs, whole, rounds, _average_mass, _average_uniform),
        head=_decay_of(measuring, measuring, rounds, head_mass, head_uniform),
        model=name,
        method=records[0].method,
        behaviour=correlate_mass_and_score(records),
    )


def _head_masses(dialogs: Sequence[Dialog], number: int) -> np.ndarray:
    """Returns the mean mass of each head in a round, [layer, head]."""
    masses = [np.asarray(dialog[number].mass).mean(2) for dialog in dialogs]
    return np.asarray(np.mean(masses, 0))


def _head_that_falls_most(dialogs: Sequence[Dialog], rounds: int) -> tuple[int, int]:
    drop = _head_masses(dialogs, 1) - _head_masses(dialogs, rounds)
    layer, head = np.unravel_index(drop.argmax(), drop.shape)
    return int(layer), int(head)


def _check_counts(dialogs: int, whole: int, rounds: int) -> None:
    """Refuses dialogs that are too few or too short to measure a decay."""
    if not dialogs:
        raise UsageError(
            "No dialog has a mass on a system prompt, so there is nothing to measure; give the"
            " agent a system prompt.",
            option="suite",
        )
    if rounds == 1:
        raise UsageError(
            "These dialogs have one round, and a decay needs two; use more rounds.",
            option="rounds",
            value=rounds,
        )
    if whole < 2:
        raise UsageError(
            f"Of {count_of(dialogs, 'dialog')} with a mass on a system prompt, {whole} have one in"
            f" each of {count_of(rounds, 'round')}, and an interval needs two; use more"
            " conversations.",
            option="conversations",
            value=whole,
        )


def _decay_of(
    dialogs: Sequence[Dialog],
    whole: Sequence[Dialog],
    rounds: int,
    level: _Level,
    uniform_level: _Level,
) -> Decay:
    """Estimates the mean mass by round, and the changes of its logarithm in whole dialogs."""
    masses = [
        np.array([level(dialog[number]).mean() for dialog in dialogs if number in dialog])
        for number in range(1, rounds + 1)
    ]
    real = [_changes(dialog, rounds, level) for dialog in whole]
    uniform = [_changes(dialog, rounds, uniform_level) for dialog in whole]

    def change(quantity: Callable[[_Changes], float]) -> Change:
        return _change(np.array([*map(quantity, real)]), np.array([*map(quantity, uniform)]))

    return Decay(
        mass=tuple(estimate(values, SCORES) for values in masses),
        within_turns=change(lambda changes: changes.within_turns),
        between_turns=change(lambda changes: changes.between_turns),
        slope=change(lambda changes: changes.slope),
    )


def _change(real: np.ndarray, uniform: np.ndarray) -> Change:
    """Estimates a change from its values, [dialog]."""
    return Change(
        real=estimate(real, None),
        uniform=estimate(uniform, None),
        difference=paired_difference(real, uniform, None),
    )


def _changes(dialog: Dialog, rounds: int, level: _Level) -> _Changes:
    """Measures the changes in a whole dialog, taking each turn's start and end from the
    least-squares line through it.
    """
    lines: list[_Line] = []
    slopes: list[float] = []
    for number in range(1, rounds + 1):
        masses = level(dialog[number])
        if len(masses) > 1:
            # the query of a turn's first token belongs to the template and attends unlike others
            masses = masses[1:]
        masses = np.log(np.maximum(masses, _MIN_MASS))
        slope = 0.0
        start = masses[0]
        if len(masses) > 1:
            slope, start = np.polyfit(np.arange(len(masses)), masses, 1)
            slopes.append(slope)
        lines.append(_Line(start, start + slope * (len(masses) - 1)))
    within = sum(line.end - line.start for line in lines)
    between = sum(after.start - before.end for before, after in itertools.pairwise(lines))
    mean_slope = float(np.mean(slopes)) if slopes else math.nan
    return _Changes(float(within), float(between), mean_slope)


def _curves(dialogs: Sequence[Dialog], rounds: int, level: _Level) -> Rows:
    """Returns, for each round, the mean at every step that at least half of the dialogs reach."""
    curves = []
    for number in range(1, rounds + 1):
        turns = [level(dialog[number]) for dialog in dialogs if number in dialog]
        steps = int(np.median([len(turn) for turn in turns])) if turns else 0
        means = (
            np.mean([turn[step] for turn in turns if len(turn) > step]) for step in range(steps)
        )
        curves.append(tuple(round(float(mean), 6) for mean in means))
    return tuple(curves)


def _average_mass(turn: TurnTrace) -> np.ndarray:
    """Averages the mass over layers and heads, [step]."""
    return np.asarray(turn.mass.mean((0, 1)))


def _average_uniform(turn: TurnTrace) -> np.ndarray:
    """Averages the mass under uniform attention over the layers, [step]."""
    return np.asarray(turn.uniform.mean(0))
