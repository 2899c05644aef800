"""Reads a calibration from the folders of its two runs.

One run, `stability`, has the replies under every setting, and the other, `capability`, the answers
to questions:

    stability/, capability/ -> Calibration(candidates=(none, boost:factor=2, boost:factor=4), ...)
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from holdfast.analysis.broken_replies import broken_share
from holdfast.analysis.calibration_results import LETTERS, Calibration, Candidate, SweepName
from holdfast.analysis.series import NO_FIX, Series, read_series
from holdfast.analysis.statistics import row_means, shared_means
from holdfast.errors import RecordsError, option
from holdfast.records import CapabilityConversation, Run, read_run
from holdfast.records.identity import CalibrationIdentity

FOLDERS = ("stability", "capability")  # the two runs of a calibration


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
