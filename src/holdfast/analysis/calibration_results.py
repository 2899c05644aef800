"""The results of a calibration: the stability and the cost of every candidate."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from holdfast.analysis.resampling import Limits
from holdfast.analysis.statistics import NOTHING, Estimate, estimate, paired_difference, row_means
from holdfast.analysis.verdicts import CONTRADICTED, SUPPORTED, too_few, within
from holdfast.records.identity import CalibrationIdentity

LETTERS = "ABCD"  # labels of the choices of a question that is answered in writing
MAX_ADDED_BROKEN = 5  # percentage points of additional broken replies that a method may cause

# which conversations to look at: a mask, [conversation] bool, or a slice
Rows = np.ndarray | slice
_ALL = slice(None)


@dataclass(frozen=True, eq=False)
class Candidate:
    """One method at one strength (a setting); arrays are by conversation, in a common order.

    Args:
        method: its spec string; "none" for the unmodified model.
        sweep: the number of the sweep it belongs to; None for "none".
        value: the parameter's value, as written; "" for "none".
        by_round: the stability, [conversation, round].
        stability: its mean over rounds.
        capability: 100 times the share answered right, or a text's log-probability per token.
        tokens: how many tokens were forwarded to measure capability.
        broken: the share of the agent's replies that are broken.
        nats: minus the log-probability per token of the last reply, under the unmodified model.
        shared_by_round: the stability with the method and with "none", [conversation, round] each,
            on the probes that were judged in the same round of both; None if these are all.
    """

    method: str
    sweep: int | None
    value: str
    by_round: np.ndarray
    stability: np.ndarray
    capability: np.ndarray
    tokens: int
    broken: np.ndarray | None = None
    nats: np.ndarray | None = None
    shared_by_round: tuple[np.ndarray, np.ndarray] | None = None


class SweepName(NamedTuple):
    """The method of a sweep, and the parameter that it varies."""

    method: str
    parameter: str


@dataclass(frozen=True, eq=False)
class Calibration:
    """The results of a calibration.

    Where a method takes `rows`, it looks at these conversations only, by default at all.

    Args:
        candidates: "none" first.
        names: by the number of the sweep.
        report: [conversation], True in the half that is reported on, False in the half to choose
            on.
        about: the identity of the run.
        questions: how many are asked under every setting.
        chance: the points scored by guessing; None for a text.
    """

    candidates: tuple[Candidate, ...]
    names: tuple[SweepName, ...]
    report: np.ndarray
    about: CalibrationIdentity
    questions: int = 0
    chance: float | None = None

    @property
    def at_chance(self) -> bool:
        """Whether the model without a method scores no better than chance, as far as enough
        conversations show; False if there are too few of them.
        """
        if self.chance is None:
            return False
        score = self.capability(self.none)
        return not too_few(score) and within(score, self.chance, math.inf) != SUPPORTED

    @property
    def none(self) -> Candidate:
        """The model without a method."""
        return self.candidates[0]

    @property
    def sweeps(self) -> list[list[Candidate]]:
        """The candidates of each sweep, in the order of `names`."""
        return [
            [candidate for candidate in self.candidates if candidate.sweep == number]
            for number in range(len(self.names))
        ]

    def capability(self, candidate: Candidate) -> Estimate:
        """Estimates the points scored; the log-probability of a text has no limits."""
        return estimate(candidate.capability, None if self.about.is_text else (0.0, 100.0))

    def gain(self, candidate: Candidate, rows: Rows = _ALL) -> Estimate:
        """Estimates the stability gained over "none", paired by conversation."""
        stability, none = self.compared(candidate)
        return paired_difference(stability[rows], none[rows])

    def compared(self, candidate: Candidate) -> tuple[np.ndarray, np.ndarray]:
        """Returns the stability of a candidate and of "none", [conversation] each, on what was
        judged in both; NaN where nothing was.
        """
        if candidate.shared_by_round is None:
            return candidate.stability, self.none.stability
        stability, none = candidate.shared_by_round
        return row_means(stability), row_means(none)

    def gain_by_round(self, candidate: Candidate) -> np.ndarray:
        """Returns the stability gained over "none", [conversation, round].

        NaN where nothing was judged in both.
        """
        both = (candidate.by_round, self.none.by_round)
        stability, none = candidate.shared_by_round or both
        gain: np.ndarray = stability - none
        return gain

    def mean_gain(self, candidate: Candidate, rows: Rows = _ALL) -> float:
        """Returns the mean stability gained over "none", by which candidates are ranked.

        Minus infinity if no conversation has a score with both.
        """
        mean = self.gain(candidate, rows).mean
        return -math.inf if mean is None else mean

    def drop(self, candidate: Candidate, rows: Rows = _ALL) -> Estimate:
        """Estimates the points of capability lost against "none", on the same questions."""
        return paired_difference(
            self.none.capability[rows], candidate.capability[rows], self.drop_limits
        )

    def added_broken(self, candidate: Candidate, rows: Rows = _ALL) -> Estimate:
        """Estimates the percentage points of broken replies beyond those of "none", paired by
        conversation.
        """
        if candidate.broken is None or self.none.broken is None:
            return NOTHING
        return paired_difference(
            100 * candidate.broken[rows], 100 * self.none.broken[rows], (-100.0, 100.0)
        )

    def breaks_replies(self, candidate: Candidate, rows: Rows = _ALL) -> bool:
        """Whether broken replies clearly increase by more than `MAX_ADDED_BROKEN` points."""
        increase = self.added_broken(candidate, rows)
        return within(increase, -math.inf, MAX_ADDED_BROKEN) == CONTRADICTED

    def mean_drop(self, candidate: Candidate, rows: Rows = _ALL) -> float:
        """Returns the mean points lost, 0 for "none"; NaN if nothing was asked."""
        if candidate is self.none:
            return 0.0
        mean = self.drop(candidate, rows).mean
        return math.nan if mean is None else mean

    def gains_and_costs(self, candidates: Sequence[Candidate]) -> np.ndarray:
        """Returns the stability gained over "none" and the points lost in each conversation,
        [conversation, 2 * candidate]: first all gains, then all points.
        """
        pairs = [self.compared(candidate) for candidate in candidates]
        gains = [stability - none for stability, none in pairs]
        costs = [self.none.capability - candidate.capability for candidate in candidates]
        return np.column_stack([*gains, *costs])

    def closest(self, sweep: Sequence[Candidate], budget: float) -> Candidate:
        """Returns the candidate of a sweep whose mean points lost are closest to a budget."""
        return min(sweep, key=lambda candidate: abs(self.mean_drop(candidate) - budget))

    @property
    def unit(self) -> str:
        """The unit of a point, in words."""
        return (
            "hundredths of a nat per token (about % of perplexity)"
            if self.about.is_text
            else "percentage points"
        )

    @property
    def drop_limits(self) -> Limits | None:
        """The limits of what another conversation may lose or win: the points of one question.

        Each question is asked in a separate fork, so no conversation loses all of its questions
        while the others lose hardly any. None for a text, whose loss has no limit.
        """
        if self.about.is_text:
            return None
        points_per_question = 100.0 * len(self.none.capability) / max(self.questions, 1)
        limit = min(points_per_question, 100.0)
        return -limit, limit
