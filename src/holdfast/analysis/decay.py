"""How the mass on the system prompt decays, in numbers with intervals (Li et al. 2024, section 4).

Within a turn the paper sees a plateau, between turns a drop; attention spread evenly over the
tokens that a layer sees would decay hyperbolically and know nothing of turns. A head is compared
with even attention in its own layer, the average over heads with its mean over the layers that
attend. Both are measured on the logarithm of the mass, in which a share lost counts the same at
every height.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from holdfast.analysis.behaviour import behaviour
from holdfast.analysis.statistics import estimate, paired_difference
from holdfast.drift.traces import TurnTrace
from holdfast.errors import UsageError
from holdfast.methods.heads import Head

Dialog = dict[int, TurnTrace]  # the agent's turns, by round
_Level = Callable[[TurnTrace], np.ndarray]  # what is read of a turn, [step]

# masses are kept as float16, whose least number is near it; below it a logarithm means nothing
_LEAST = 1e-8


class Changes(NamedTuple):
    """Of the logarithm of the mass over a dialog: its change within turns and between them, both
    summed, and its mean slope per token.
    """

    within_turns: float
    between_turns: float
    slope: float


def describe(
    name: str,
    records: Sequence[dict[str, Any]],
    dialogs: Sequence[Dialog],
    head: Head | None = None,
) -> dict[str, Any]:
    """All that is measured of a model's self-chats, as JSON values; `head` is shown by itself, None
    takes the one whose mass falls most.
    """
    return {
        "model": name,
        "method": records[0]["method"],
        **decay(dialogs, head),
        "behaviour": behaviour(records),
    }


def decay(dialogs: Sequence[Dialog], head: Head | None = None) -> dict[str, Any]:
    """All that is measured of the masses; every interval is over dialogs, of which those without a
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
    first = np.mean([_head_means(dialog[1]) for dialog in whole], 0)
    drop = first - np.mean([_head_means(dialog[rounds]) for dialog in whole], 0)
    shown = head or _largest(drop)
    of_head = _mass_of(shown)
    return {
        "dialogs": len(dialogs),
        "whole_dialogs": len(whole),
        "rounds": rounds,
        "shown_head": list(shown),
        "head_was_given": head is not None,
        "heads": {"first_round": first.round(5).tolist(), "drop": drop.round(5).tolist()},
        "curves": {
            "average": _curves(dialogs, rounds, _average_mass),
            "head": _curves(dialogs, rounds, of_head),
            "uniform": _curves(dialogs, rounds, _uniform_mass),
        },
        "average": _measured(dialogs, whole, rounds, _average_mass, _uniform_mass),
        "head": _measured(dialogs, whole, rounds, of_head, _uniform_of(shown)),
    }


def _measured(
    dialogs: Sequence[Dialog],
    whole: Sequence[Dialog],
    rounds: int,
    level: _Level,
    uniform_level: _Level,
) -> dict[str, Any]:
    """The mean mass of every round, and the changes of its logarithm beside those of uniform
    attention; only whole dialogs have changes.
    """
    real = np.array([_changes(dialog, rounds, level) for dialog in whole])
    uniform = np.array([_changes(dialog, rounds, uniform_level) for dialog in whole])
    mass = [
        estimate(np.array([level(dialog[number]).mean() for dialog in dialogs if number in dialog]))
        for number in range(1, rounds + 1)
    ]
    changes = {
        what: {
            "real": asdict(estimate(real[:, column])),
            "uniform": asdict(estimate(uniform[:, column])),
            "difference": asdict(paired_difference(real[:, column], uniform[:, column])),
        }
        for column, what in enumerate(Changes._fields)
    }
    return {"mass": [asdict(value) for value in mass], **changes}


def _changes(dialog: Dialog, rounds: int, level: _Level) -> Changes:
    """The changes of a whole dialog.

    A least-squares line through each turn says where it starts and ends. The query of a turn's
    first token is the template's, which attends like no other, so it is left out.
    """
    ends, slopes = [], []
    for number in range(1, rounds + 1):
        masses = level(dialog[number])
        masses = np.log(np.maximum(masses[1:] if len(masses) > 1 else masses, _LEAST))
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
    return [
        _curve([level(dialog[number]) for dialog in dialogs if number in dialog])
        for number in range(1, rounds + 1)
    ]


def _curve(turns: Sequence[np.ndarray]) -> list[float]:
    steps = int(np.median([len(turn) for turn in turns])) if turns else 0
    return [
        round(float(np.mean([turn[step] for turn in turns if len(turn) > step])), 6)
        for step in range(steps)
    ]


def _mass_of(head: Head) -> _Level:
    """What reads the mass of one head, [step]."""
    return lambda turn: np.asarray(turn.mass)[head]


def _uniform_of(head: Head) -> _Level:
    """The same if the head's layer attended evenly."""
    return lambda turn: np.asarray(turn.uniform)[head[0]]


def _average_mass(turn: TurnTrace) -> np.ndarray:
    """The mass of the average head, [step]."""
    averaged: np.ndarray = np.asarray(turn.mass).mean((0, 1))
    return averaged


def _uniform_mass(turn: TurnTrace) -> np.ndarray:
    """The mass if attention were uniform, averaged over the layers, [step]."""
    averaged: np.ndarray = np.asarray(turn.uniform).mean(0)
    return averaged


def _head_means(turn: TurnTrace) -> np.ndarray:
    """[layer, head], over the tokens of a turn."""
    means: np.ndarray = np.asarray(turn.mass).mean(2)
    return means


def _largest(values: np.ndarray) -> Head:
    """Where [layer, head] is largest."""
    layer, head = np.unravel_index(values.argmax(), values.shape)
    return int(layer), int(head)
