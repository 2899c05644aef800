"""Measures how the mass on the system prompt, pi(t), decays (Li et al. 2024, section 4).

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

from holdfast.analysis.mass_and_score import Behaviour, Matrix, correlate_mass_and_score
from holdfast.analysis.statistics import SCORES, Estimate, estimate, paired_difference
from holdfast.errors import UsageError
from holdfast.plurals import count_of
from holdfast.records import Conversation
from holdfast.records.model import List, Number, RecordModel
from holdfast.records.traces import TurnTrace

TracedTurns = Mapping[int, TurnTrace]  # the agent's turns, by round
_Level = Callable[[TurnTrace], np.ndarray]  # takes a turn and returns its masses, [step]
# masses are stored as float16: smaller ones become 0, which has no logarithm
_MIN_MASS = 2.0**-24


class _DialogChanges(NamedTuple):
    """The changes of the log mass in one dialog."""

    within_turns: float  # the sum over turns
    between_turns: float  # the sum over pairs of consecutive turns
    slope: float  # the mean slope per token; NaN if every turn has fewer than three


class _FittedLine(NamedTuple):
    """The least-squares line through the log masses of a turn."""

    start: float
    end: float
    slope: float | None  # per token; None for a turn of fewer than three


class MassChange(RecordModel):
    """A change of the logarithm of the mass, and what it would be under uniform attention."""

    real: Estimate
    uniform: Estimate
    difference: Estimate  # real - uniform, paired by dialog


class Decay(RecordModel):
    """The decay of one mass: that of a head, or the average over all heads."""

    mass: List[Estimate]  # the mean over a turn, by round
    within_turns: MassChange  # summed over the turns of a dialog
    between_turns: MassChange  # summed, from the end of a turn to the start of the next
    slope: MassChange  # per token within a turn, averaged over turns


class Heads(RecordModel):
    """The mean masses of all heads, [layer][head]."""

    first_round: Matrix
    drop: Matrix  # from the first round to the last


class Curves(RecordModel):
    """Mean masses by generated token, [round][step]."""

    average: Matrix  # over heads
    head: Matrix  # of the shown head
    uniform: Matrix  # uniform attention, averaged over layers


class Trace(RecordModel):
    """How the mass on the system prompt decays in a model's self-chats, as in `trace.json`."""

    dialogs: Number
    whole_dialogs: Number  # those with a mass in every round
    rounds: Number
    # the (layer, head) whose mass falls most; chosen on one half of the dialogs with all rounds
    shown_head: tuple[int, int] = Field(strict=False)
    heads: Heads
    curves: Curves
    average: Decay
    head: Decay  # of the shown head, measured on the other half
    model: str
    method: str
    behaviour: Behaviour


def trace_of(name: str, records: Sequence[Conversation], dialogs: Sequence[TracedTurns]) -> Trace:
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
    whole_dialogs = [dialog for dialog in dialogs if set(dialog) == set(range(1, rounds + 1))]
    _check_counts(len(dialogs), len(whole_dialogs), rounds)
    choosing = measuring = whole_dialogs
    if len(whole_dialogs) >= 4:
        choosing, measuring = whole_dialogs[::2], whole_dialogs[1::2]
    layer, head = _head_that_falls_most(choosing, rounds)

    def head_mass(turn: TurnTrace) -> np.ndarray:
        return np.asarray(turn.mass[layer, head])

    def head_uniform(turn: TurnTrace) -> np.ndarray:
        return np.asarray(turn.uniform[layer])

    return Trace(
        dialogs=len(dialogs),
        whole_dialogs=len(whole_dialogs),
        rounds=rounds,
        shown_head=(layer, head),
        heads=_masses_of_heads(whole_dialogs, rounds),
        curves=Curves(
            average=_mean_curves(dialogs, rounds, _average_mass),
            head=_mean_curves(dialogs, rounds, head_mass),
            uniform=_mean_curves(dialogs, rounds, _average_uniform),
        ),
        average=_decay_of(dialogs, whole_dialogs, rounds, _average_mass, _average_uniform),
        head=_decay_of(measuring, measuring, rounds, head_mass, head_uniform),
        model=name,
        method=records[0].method,
        behaviour=correlate_mass_and_score(records),
    )


def _masses_of_heads(dialogs: Sequence[TracedTurns], rounds: int) -> Heads:
    first = _head_masses(dialogs, 1)
    drop = _head_drops(dialogs, rounds)
    return Heads(first_round=first.round(5).tolist(), drop=drop.round(5).tolist())


def _head_that_falls_most(dialogs: Sequence[TracedTurns], rounds: int) -> tuple[int, int]:
    drop = _head_drops(dialogs, rounds)
    layer, head = np.unravel_index(drop.argmax(), drop.shape)
    return int(layer), int(head)


def _head_drops(dialogs: Sequence[TracedTurns], rounds: int) -> np.ndarray:
    """Returns the fall of each head's mass from the first round to the last, [layer, head]."""
    return np.asarray(_head_masses(dialogs, 1) - _head_masses(dialogs, rounds))


def _head_masses(dialogs: Sequence[TracedTurns], number: int) -> np.ndarray:
    """Returns the mean mass of each head in a round, [layer, head]."""
    masses = [np.asarray(dialog[number].mass).mean(2) for dialog in dialogs]
    return np.asarray(np.mean(masses, 0))


def _check_counts(dialogs: int, whole_dialogs: int, rounds: int) -> None:
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
    if whole_dialogs < 2:
        raise UsageError(
            f"Of {count_of(dialogs, 'dialog')} with a mass on a system prompt, {whole_dialogs} have"
            f" one in each of {count_of(rounds, 'round')}, and an interval needs two; use more"
            " conversations.",
            option="conversations",
            value=whole_dialogs,
        )


def _decay_of(
    dialogs: Sequence[TracedTurns],
    whole_dialogs: Sequence[TracedTurns],
    rounds: int,
    level: _Level,
    uniform_level: _Level,
) -> Decay:
    """Estimates the mean mass by round, and the changes of its logarithm in whole dialogs."""
    masses = [
        np.array([level(dialog[number]).mean() for dialog in dialogs if number in dialog])
        for number in range(1, rounds + 1)
    ]
    real = [_changes_in_dialog(dialog, rounds, level) for dialog in whole_dialogs]
    uniform = [_changes_in_dialog(dialog, rounds, uniform_level) for dialog in whole_dialogs]

    def estimate_of(quantity: Callable[[_DialogChanges], float]) -> MassChange:
        return _estimate_change(
            np.array([*map(quantity, real)]), np.array([*map(quantity, uniform)])
        )

    return Decay(
        mass=tuple(estimate(values, SCORES) for values in masses),
        within_turns=estimate_of(lambda changes: changes.within_turns),
        between_turns=estimate_of(lambda changes: changes.between_turns),
        slope=estimate_of(lambda changes: changes.slope),
    )


def _estimate_change(real: np.ndarray, uniform: np.ndarray) -> MassChange:
    """Estimates a change from its values, [dialog]."""
    return MassChange(
        real=estimate(real, None),
        uniform=estimate(uniform, None),
        difference=paired_difference(real, uniform, None),
    )


def _changes_in_dialog(dialog: TracedTurns, rounds: int, level: _Level) -> _DialogChanges:
    """Measures the changes in a whole dialog, taking each turn's start and end from the
    least-squares line through it.
    """
    lines = [_fit_line(level(dialog[number])) for number in range(1, rounds + 1)]
    slopes = [line.slope for line in lines if line.slope is not None]
    within = sum(line.end - line.start for line in lines)
    between = sum(after.start - before.end for before, after in itertools.pairwise(lines))
    mean_slope = float(np.mean(slopes)) if slopes else math.nan
    return _DialogChanges(float(within), float(between), mean_slope)


def _fit_line(masses: np.ndarray) -> _FittedLine:
    """Fits a line to the logarithms of the masses of a turn, [step]."""
    if len(masses) > 1:
        # the query of a turn's first token belongs to the template and attends unlike others
        masses = masses[1:]
    logs = np.log(np.maximum(masses, _MIN_MASS))
    if len(logs) == 1:
        return _FittedLine(logs[0], logs[0], None)
    slope, start = np.polyfit(np.arange(len(logs)), logs, 1)
    return _FittedLine(start, start + slope * (len(logs) - 1), slope)


def _mean_curves(dialogs: Sequence[TracedTurns], rounds: int, level: _Level) -> Matrix:
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
