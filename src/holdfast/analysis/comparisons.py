"""The series of a drift run beside one another: methods on the same pairs, categories, prompts, and
the numbers of every figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.analysis.series import KINDS, MEASURED, Series, category_of, judge_of, same_pairs
from holdfast.analysis.statistics import (
    Estimate,
    change,
    estimate,
    estimate_columns,
    paired_difference,
    row_means,
)

HEAD = ("run", "method", "measure", "category", "round", "n", "mean", "low", "high", "sd")


@dataclass(frozen=True)
class Comparison:
    """A series against its baseline on the n conversations both have; every estimate is of series
    minus baseline.
    """

    series: Series
    baseline: Series
    n: int
    stability_last: Estimate
    stability_mean: Estimate
    adoption_last: Estimate
    adoption_mean: Estimate

    @property
    def estimates(self) -> tuple[Estimate, Estimate, Estimate, Estimate]:
        """Stability at the last round and over all, then adoption."""
        return self.stability_last, self.stability_mean, self.adoption_last, self.adoption_mean


@dataclass(frozen=True)
class PromptRow:
    """One system prompt as the agent's (stability) and as the user's (adoption) in one series.

    Attributes:
        id, category, text: of the prompt.
        n: conversations in which the agent had it.
        by_round: mean stability, None where it was not measured.
        first, last: those of the first and the last round that was measured.
        mean: over all rounds.
        adopted: mean adoption at the last round where the user had it; None where nobody did.
        n_adopted: conversations of that mean.
        judge: the model that scores it; "" where its scores are functions of the text.
    """

    id: str
    category: str
    text: str
    n: int
    by_round: tuple[float | None, ...]
    first: float
    last: float
    mean: float
    adopted: float | None
    n_adopted: int
    judge: str


def compare(series: Series, baseline: Series) -> Comparison | None:
    """The paired difference; None where the two did not hold the same conversations."""
    pair = same_pairs(series, baseline)
    if pair is None:
        return None
    fixed, plain = pair
    return Comparison(
        series,
        baseline,
        len(fixed.records),
        *_differences(fixed, plain, "stability"),
        *_differences(fixed, plain, "adoption"),
    )


def _differences(fixed: Series, plain: Series, kind: str) -> tuple[Estimate, Estimate]:
    return paired_rounds(fixed.values(kind), plain.values(kind), plain.prompts)


def paired_rounds(
    ours: np.ndarray, theirs: np.ndarray, prompts: Sequence[str] | None = None
) -> tuple[Estimate, Estimate]:
    """The differences of two [conversation, round] at the last round and over all, in the rounds
    that both reached; prompts as for `statistics.estimate`.
    """
    last = min(ours.shape[1], theirs.shape[1])
    ours, theirs = ours[:, :last], theirs[:, :last]
    missing = np.isnan(ours) | np.isnan(theirs)
    ours, theirs = np.where(missing, np.nan, ours), np.where(missing, np.nan, theirs)
    return (
        paired_difference(ours[:, -1], theirs[:, -1], prompts),
        paired_difference(row_means(ours), row_means(theirs), prompts),
    )


def baseline_of(series: Sequence[Series], item: Series) -> Series | None:
    """The series that another is compared with: no fix (else the first method) of its run; that
    of the first run for a run's own first.
    """
    first_of_run = next(other for other in series if other.run == item.run)
    if first_of_run is not item:
        return first_of_run
    return series[0] if series[0] is not item else None


def fixes(series: Sequence[Series]) -> list[Comparison]:
    """Every other method of the first run against its first, those with a stability to compare."""
    same_run = [item for item in series[1:] if item.run == series[0].run]
    compared = [compare(item, series[0]) for item in same_run]
    return [pair for pair in compared if pair and pair.stability_mean.mean is not None]


def by_category(item: Series, kind: str) -> dict[str, list[Estimate]]:
    """Estimates per round for each category, in alphabetical order."""
    names = [category_of(record, kind) for record in item.records]
    values = item.values(kind)
    estimates = {}
    for name in sorted({name for name in names if name is not None}):
        keep = np.array([other == name for other in names])
        if not np.isnan(values[keep]).all():
            estimates[name] = estimate_columns(values[keep])
    return estimates


def by_prompt(item: Series) -> list[PromptRow]:
    """A row per system prompt the agent had, least stable (mean over all rounds) first."""
    taken = _last_adoption(item)
    agents = {record["agent"]["id"]: record["agent"] for record in reversed(item.records)}
    ids = np.array([record["agent"]["id"] for record in item.records])
    rows = [
        _prompt_row(agents[name], item.rows(ids == name), taken.get(name, []))
        for name in dict.fromkeys(ids.tolist())
    ]
    return sorted(filter(None, rows), key=lambda row: (row.mean, row.last, row.id))


def _prompt_row(agent: dict[str, Any], item: Series, adopted: Sequence[float]) -> PromptRow | None:
    """The row of a prompt's conversations; None where none was measured."""
    stability = item.stability
    rounds = [_mean(column) for column in stability.T]
    measured = [mean for mean in rounds if mean is not None]
    if not measured:
        return None
    return PromptRow(
        id=agent["id"],
        category=agent["category"] or "",
        text=agent["system_prompt"],
        n=len(stability),
        by_round=tuple(rounds),
        first=measured[0],
        last=measured[-1],
        mean=float(np.nanmean(row_means(stability))),
        adopted=_mean(np.array(adopted)),
        n_adopted=len(adopted),
        judge=judge_of(item.records),
    )


def _mean(values: np.ndarray) -> float | None:
    """Of [n], those that are measured."""
    measured = values[~np.isnan(values)]
    return float(measured.mean()) if len(measured) else None


def _last_adoption(item: Series) -> dict[str, list[float]]:
    """For each prompt the user had, the adoption at the last round of every conversation with
    it.
    """
    by_prompt: dict[str, list[float]] = {}
    for record, value in zip(item.records, item.adoption[:, -1], strict=True):
        if not np.isnan(value):
            by_prompt.setdefault(record["user"]["id"], []).append(float(value))
    return by_prompt


def overall_change(item: Series, kind: str) -> Estimate:
    """The paired change from the first round to the last."""
    return change(item.values(kind), prompts=item.prompts)


def overall_mean(item: Series, kind: str) -> Estimate:
    """The mean over all rounds, conversation by conversation (the overall stability of Li et al.
    2024, section 6.3).
    """
    return estimate(row_means(item.values(kind)))


def figure_rows(series: Sequence[Series]) -> list[tuple[Any, ...]]:
    """Every point of every figure under `HEAD`; the category is empty where all are taken
    together.
    """
    rows: list[tuple[Any, ...]] = [HEAD]
    for item in series:
        for kind in MEASURED:
            if item.measured(kind):
                rows += _points(item, kind, "", estimate_columns(item.values(kind)))
        for kind in KINDS:
            for name, points in by_category(item, kind).items():
                rows += _points(item, kind, name, points)
    return rows


def _points(
    item: Series, kind: str, category: str, points: Sequence[Estimate]
) -> Iterator[tuple[Any, ...]]:
    for number, point in enumerate(points, start=1):
        if point.mean is not None:
            numbers = (point.mean, point.low, point.high, point.sd)
            shown = (None if value is None else round(value, 6) for value in numbers)
            yield (item.run, item.method, kind, category, number, point.n, *shown)
