"""The steering table of a layer as factors of its attention weights.

A query has the mass m on the span and 1 - m on the rest. The table turns these into m' and 1 - m',
so the factors are m' / m for the span and (1 - m') / (1 - m) for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from holdfast.methods.table import LayerTable


class WeightFactors(NamedTuple):
    """Factors for weights on the span and for those on the rest, float32 [row, head, query]."""

    span: np.ndarray
    rest: np.ndarray


@dataclass(frozen=True, eq=False)
class LayerMoves:
    """The steering table of one layer, in numpy, in a form that weight factors are computed from.

    It is in numpy because a layer is steered between two nodes of a graph, where the overhead of
    torch's operations would be noticeable.

    Args:
        steered: bool [row, head, 1], True on the steered heads.
        gain: exp(bias), float64 [row, head, 1] like the next three.
        exponent: the exponent of the mass.
        min_mass, max_rest: sigmoid(floor) and sigmoid(-floor).
        powers, floors: whether any exponent is not 1, and whether there is any floor.
    """

    steered: np.ndarray
    gain: np.ndarray
    exponent: np.ndarray
    min_mass: np.ndarray
    max_rest: np.ndarray
    powers: bool
    floors: bool

    @classmethod
    def of(cls, table: LayerTable, rows: int, heads: int) -> LayerMoves:
        """Converts a table of `holdfast.methods.table`."""
        numbers = np.broadcast_to(table.numbers.numpy(), (3, rows, heads))
        bias, exponent, floor = numbers.astype(np.float64)[..., None]
        with np.errstate(over="ignore"):
            return cls(
                (bias != 0) | (exponent != 1) | (floor > -np.inf),
                np.exp(bias),
                exponent,
                1 / (1 + np.exp(-floor)),
                1 / (1 + np.exp(floor)),
                table.powers,
                table.floors,
            )

    def factors(self, mass: np.ndarray, rest: np.ndarray) -> WeightFactors:
        """Computes the factors of weights whose sums over the span and over the rest are these.

        They are 1 where nothing is steered, or where a query sees only the span or none of it.

        Args:
            mass, rest: the mass on the span and on all other columns, [row, head, query].
        """
        moves = self.steered & (mass > 0) & (rest > 0)
        with np.errstate(all="ignore"):
            odds = mass * self.gain / rest
            new_mass = 1 / (1 + 1 / odds)
            new_rest = 1 / (1 + odds)
            if self.powers:
                log_mass = np.where(new_rest < 0.5, np.log1p(-new_rest), np.log(new_mass))
                log_mass *= self.exponent
                is_raised = self.exponent != 1
                new_mass = np.where(is_raised, np.exp(log_mass), new_mass)
                new_rest = np.where(is_raised, -np.expm1(log_mass), new_rest)
            if self.floors:
                is_low = new_mass < self.min_mass
                new_mass = np.where(is_low, self.min_mass, new_mass)
                new_rest = np.where(is_low, self.max_rest, new_rest)
            rest_factors = np.where(moves, new_rest / rest, 1.0)
            span_factors = np.where(moves, new_mass / mass, 1.0)
            return WeightFactors(span_factors.astype(np.float32), rest_factors.astype(np.float32))
