"""Reads a calibration: the stability and cost of every candidate."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from holdfast.analysis.broken_replies import broken_share
from holdfast.analysis.resampling import Limits
from holdfast.analysis.series import NO_FIX, Series, read_series
from holdfast.analysis.statistics import (
    NOTHING,
    Estimate,
    estimate,
    paired_difference,
    row_means,
    shared_means,
)
from holdfast.analysis.verdicts import CONTRADICTED, SUPPORTED, too_few, within
from holdfast.errors import RecordsError, option
from holdfast.records import CapabilityConversation, Run, read_run
from holdfast.records.identity import CalibrationIdentity

LETTERS = "ABCD"  # labels of the choices of a question that is answered in writing
MAX_ADDED_BROKEN = 5  # percentage points of additional broken replies that a method may cause
FOLDERS = ("stability", "capability")  # the two runs of a calibration


@dataclass(frozen=True, eq=False)
class Candidate:
    """One method at one strength (a setting); arrays are by conversation, in a common order."""

    method: str  # its spec string; "none" for the unmodified model
    sweep: int | None  # the number of the sweep it belongs to; None for "none"
    value: str  # the parameter's value, as written; "" for "none"
    by_round: np.ndarray  # stability, [conversation, round]
    stability: np.ndarray  # its mean over rounds
    capability: np.ndarray  # 100 times the share answered right, or a text's log-prob per token
    tokens: int  # tokens that were forwarded to measure capability
    broken: np.ndarray | None = None  # share of the agent's replies that are broken
    # minus the log-probability per token of the last reply, under the unmodified model
    nats: np.ndarray | None = None
    # the stability with the method and with "none", [conversation, round] each, on the probes that
    # were judged in the same round of both; None if these are all
    shared_by_round: tuple[np.ndarray, np.ndarray] | None = None


class SweepName(NamedTuple):
    """The method of a sweep, and the parameter that it varies."""

    method: str
    parameter: str


@dataclass(frozen=True, eq=False)
class Calibration:
    """The results of a calibration."""

    candidates: tuple[Candidate, ...]  # "none" first
    names: tuple[SweepName, ...]  # by the number of the sweep
    # [conversation], True in the half that is reported on, False in the half to choose on
    report: np.ndarray
    about: CalibrationIdentity  # the identity of the run
    questions: int = 0  # how many are asked under every setting
    chance: float | None = None  # points scored by guessing; None for a text

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

    def gain(self, candidate: Candidate, keep: np.ndarray | slice = slice(None)) -> Estimate:
        """Estimates the stability gained over "none", paired by conversation."""
        stability, none = self.compared(candidate)
        return paired_difference(stability[keep], none[keep])

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

    def mean_gain(self, candidate: Candidate, keep: np.ndarray | slice = slice(None)) -> float:
        """Returns the mean stability gained over "none", by which candidates are ranked.

        Minus infinity if no conversation has a score with both.
        """
        mean = self.gain(candidate, keep).mean
        return -math.inf if mean is None else mean

    def drop(self, candidate: Candidate, keep: np.ndarray | slice = slice(None)) -> Estimate:
        """Estimates the points of capability lost against "none", on the same questions."""
        return paired_difference(
            self.none.capability[keep], candidate.capability[keep], self.drop_limits
        )

    def added_broken(
        self, candidate: Candidate, keep: np.ndarray | slice = slice(None)
    ) -> Estimate:
        """Estimates the percentage points of broken replies beyond those of "none", paired by
        conversation.
        """
        if candidate.broken is None or self.none.broken is None:
            return NOTHING
        return paired_difference(
            100 * candidate.broken[keep], 100 * self.none.broken[keep], (-100.0, 100.0)
        )

    def breaks_replies(self, candidate: Candidate, keep: np.ndarray | slice = slice(None)) -> bool:
        """Whether broken replies clearly increase by more than `MAX_ADDED_BROKEN` points."""
        increase = self.added_broken(candidate, keep)
        return within(increase, -math.inf, MAX_ADDED_BROKEN) == CONTRADICTED

    def mean_drop(self, candidate: Candidate, keep: np.ndarray | slice = slice(None)) -> float:
        """Returns the mean points lost, 0 for "none"; NaN if nothing was asked."""
        if candidate is self.none:
            return 0.0
        mean = self.drop(candidate, keep).mean
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


class _Setting(NamedTuple):
    """A method at one strength."""

    method: str
    sweep: int | None
    value: str


def half_of(number: int, pairs: int) -> int:
    """Returns the half of a conversation: 0 to choose on, 1 to report on.

    The draws of a pair alternate between the halves.
    """
    return (number % pairs + number // pairs) % 2


def read_calibration(folder: Path | str) -> Calibration:
    """Reads the calibration whose two runs are in a folder.

    Raises:
        RecordsError: the calibration is not finished, or one half of its conversations has no reply
            that can be scored under some method.
    """
    stability, capability = (read_run(Path(folder) / name) for name in FOLDERS)
    about = capability.identity_as(CalibrationIdentity)
    count = about.settings.conversations or 0
    all_series = {series.method: series for series in read_series(stability)}
    answers: dict[str, dict[int, CapabilityConversation]] = {}
    for record in capability.capability_conversations:
        answers.setdefault(record.method, {})[record.conversation] = record
    num_failed = Counter(failure.method for failure in capability.failures)
    settings = _settings(about)
    unfinished = _first_unfinished(settings, count, all_series, answers, num_failed)
    if unfinished is not None:
        raise RecordsError(
            f"The calibration in {folder} is not finished ({unfinished} is missing or incomplete);"
            " repeat its command to continue."
        )
    candidates = [
        _candidate(setting, all_series, answers[setting.method], count) for setting in settings
    ]
    pairs = len({(record.agent.id, record.user.id) for record in stability.conversations})
    report = np.array([half_of(number, pairs) == 1 for number in range(count)])
    _require_scores(candidates, report)
    return Calibration(
        candidates=tuple(candidates),
        names=tuple(SweepName(sweep.name, sweep.parameter) for sweep in about.sweeps),
        report=report,
        about=about,
        questions=sum(len(record.probes) for record in answers[NO_FIX].values()),
        chance=None if about.is_text else _chance(capability),
    )


def _first_unfinished(
    settings: Sequence[_Setting],
    count: int,
    all_series: Mapping[str, Series],
    answers: Mapping[str, Mapping[int, CapabilityConversation]],
    num_failed: Counter[str],
) -> str | None:
    """Returns the first method that lacks conversations or questions; None if all are finished.

    Args:
        count: how many conversations each method has if it is finished.
        answers: the conversations whose questions were answered, by method.
        num_failed: how many conversations have a failed question, by method.
    """
    # a failed question counts as asked, but a method without any answer is missing
    num_asked = {method: len(records) + num_failed[method] for method, records in answers.items()}
    num_expected = max(1, min(count, num_asked.get(NO_FIX, 0)))
    for setting in settings:
        series = all_series.get(setting.method)
        if series is None or len(series.records) < count:
            return setting.method
        if num_asked.get(setting.method, 0) < num_expected:
            return setting.method
    return None


def _candidate(
    setting: _Setting,
    all_series: Mapping[str, Series],
    answers: Mapping[int, CapabilityConversation],
    count: int,
) -> Candidate:
    series = all_series[setting.method]
    # the conversations of a finished calibration are the same, in the same order
    none = all_series[NO_FIX]
    return Candidate(
        method=setting.method,
        sweep=setting.sweep,
        value=setting.value,
        by_round=series.stability,
        stability=row_means(series.stability),
        capability=_read_by_conversation(answers, count, _points),
        tokens=sum(record.tokens.forwarded for record in answers.values()),
        broken=np.array([broken_share(record) for record in series.records]),
        nats=_read_by_conversation(answers, count, _nats),
        shared_by_round=shared_means(series.scores("stability"), none.scores("stability")),
    )


def _require_scores(candidates: Sequence[Candidate], report: np.ndarray) -> None:
    """Refuses a calibration in which some method has no score in one of the halves."""
    for candidate in candidates:
        stability, _ = candidate.shared_by_round or (candidate.by_round, None)
        has_score = ~np.isnan(stability).all(axis=1)
        if not all((has_score & half).any() for half in (report, ~report) if half.any()):
            raise RecordsError(
                f"No reply with the method {candidate.method} can be scored in one half of the"
                " conversations, so there is nothing to choose by: the replies are empty, or cut"
                f" off where a rule needs their end; raise {option('max_new_tokens')}, or give more"
                f" {option('draws')}."
            )


def _chance(capability_run: Run) -> float:
    """Returns the points scored by guessing.

    A question without log-probabilities is answered in writing, and has four choices.
    """
    choices = [
        len(probe.log_probabilities or LETTERS)
        for record in capability_run.capability_conversations
        for probe in record.probes
    ]
    return round(100 * float(np.mean([1 / count for count in choices])), 6) if choices else 0.0


def _settings(about: CalibrationIdentity) -> list[_Setting]:
    """Returns every setting, "none" first; a method in two sweeps belongs to the later one."""
    settings = {NO_FIX: _Setting(NO_FIX, None, "")}
    for number, sweep in enumerate(about.sweeps):
        for method, value in zip(sweep.methods, sweep.values, strict=True):
            settings[method] = _Setting(method, number, value)
    return list(settings.values())


def _read_by_conversation(
    records: Mapping[int, CapabilityConversation],
    count: int,
    quantity: Callable[[CapabilityConversation], float],
) -> np.ndarray:
    """Reads one number from each record, [conversation]; NaN where there is no record."""
    return np.array(
        [quantity(records[number]) if number in records else np.nan for number in range(count)]
    )


def _points(record: CapabilityConversation) -> float:
    """Returns 100 times the mean score of a conversation's questions."""
    return 100 * float(np.mean([probe.score for probe in record.probes]))


def _nats(record: CapabilityConversation) -> float:
    """Returns minus the log-probability per token of the last reply; NaN if it was not scored."""
    reply = record.last_reply
    return -reply.log_probability / reply.tokens if reply else np.nan
