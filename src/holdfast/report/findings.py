"""What a run found, as numbers with their names and as sentences; page, figures and terminal all
draw on these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.report.scores import NO_FIX, Series, category_of, same_pairs
from holdfast.report.statistics import (
    Estimate,
    change,
    estimate,
    estimate_columns,
    paired_difference,
    row_means,
)
from holdfast.report.verdicts import LEAST, tell, with_interval


@dataclass(frozen=True)
class Comparison:
    """A series against its baseline on the conversations both have; every estimate is of series
    minus baseline.
    """

    series: Series
    baseline: Series
    n: int
    stability_last: Estimate
    stability_mean: Estimate
    adoption_last: Estimate
    adoption_mean: Estimate


@dataclass(frozen=True)
class PromptRow:
    """One system prompt as the agent's (stability) and as the user's (adoption) in one series."""

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


def compare(series: Series, baseline: Series) -> Comparison | None:
    """The paired difference; None where the two did not hold the same conversations."""
    pair = same_pairs(series, baseline)
    if pair is None:
        return None
    one, other = pair
    last = min(one.rounds, other.rounds)

    def differences(kind: str) -> tuple[Estimate, Estimate]:
        a, b = one.values(kind)[:, :last], other.values(kind)[:, :last]
        missing = np.isnan(a) | np.isnan(b)  # rounds that one of the two did not reach
        a, b = np.where(missing, np.nan, a), np.where(missing, np.nan, b)
        return paired_difference(a[:, -1], b[:, -1]), paired_difference(row_means(a), row_means(b))

    return Comparison(
        series, baseline, len(one.records), *differences("stability"), *differences("adoption")
    )


def baseline_of(series: Sequence[Series], item: Series) -> Series | None:
    """What a series is compared with: no fix (else the first method) of its run; that of the first
    run for a run's own first.
    """
    own = next(other for other in series if other.run == item.run)
    if own is not item:
        return own
    return series[0] if series[0] is not item else None


def by_category(item: Series, kind: str) -> dict[str, list[Estimate]]:
    """Estimates per round for each category, in order of first appearance in sorted
    conversations.
    """
    names = [category_of(record, kind) for record in item.records]
    values = item.values(kind)
    found = {}
    for name in sorted({name for name in names if name is not None}):
        keep = np.array([other == name for other in names])
        if not np.isnan(values[keep]).all():
            found[name] = estimate_columns(values[keep])
    return found


def by_prompt(item: Series) -> list[PromptRow]:
    """A row per system prompt the agent had, least stable (mean over all rounds) first."""
    taken = _last_adoption(item)
    rows = []
    for prompt_id in dict.fromkeys(record["agent"]["id"] for record in item.records):
        keep = np.array([record["agent"]["id"] == prompt_id for record in item.records])
        values = item.stability[keep]
        rounds = [round.mean for round in _means(values)]
        measured = [value for value in rounds if value is not None]
        if not measured:
            continue
        agent = item.records[int(np.flatnonzero(keep)[0])]["agent"]
        adopted = taken.get(prompt_id, [])
        rows.append(
            PromptRow(
                prompt_id,
                agent["category"] or "",
                agent["system_prompt"],
                int(keep.sum()),
                tuple(rounds),
                measured[0],
                measured[-1],
                float(np.nanmean(row_means(values))),
                float(np.mean(adopted)) if adopted else None,
                len(adopted),
            )
        )
    return sorted(rows, key=lambda row: (row.mean, row.last, row.id))


def _last_adoption(item: Series) -> dict[str, list[float]]:
    """For each prompt the user had, the adoption at the last round of every conversation with
    it.
    """
    found: dict[str, list[float]] = {}
    for record, value in zip(item.records, item.adoption[:, -1], strict=True):
        if not np.isnan(value):
            found.setdefault(record["user"]["id"], []).append(float(value))
    return found


def headline(series: Sequence[Series]) -> str:
    """One sentence: what the first series did from its first to its last round, and what it took
    on.
    """
    item = series[0]
    who = "Without a fix the agent" if item.method == NO_FIX else f"With {item.method} the agent"
    rounds = estimate_columns(item.stability)
    first, last = rounds[0], rounds[-1]
    if last.mean is None or first.mean is None:
        return f"{who} was not probed in every round, so nothing can be said yet."
    few = _example(last.n)
    if item.rounds == 1:
        return f"{who} passes {with_interval(last, percent)} of its probes at round 1{few}."
    told = _moved(item, "stability", first.mean, last.mean)
    sentence = f"{who} passes {percent(last.mean)} of its probes at round {item.rounds}, {told}"
    taken = estimate_columns(item.adoption)
    if taken[-1].mean is not None and taken[0].mean is not None:
        told = _moved(item, "adoption", taken[0].mean, taken[-1].mean)
        sentence += f"; of the other’s it passes {percent(taken[-1].mean)}, {told}"
    return f"{sentence}{few}."


def _moved(item: Series, kind: str, first: float, last: float) -> str:
    """How the last round compares with the first: said to differ where it can be told, with the
    interval.
    """
    moved = change(item.values(kind))
    told = tell(moved)
    if told.sign:
        return (
            f"{'up' if told.sign > 0 else 'down'} from {percent(first)} at round 1"
            f" ({points(moved)})"
        )
    return f"{percent(first)} at round 1: {cannot_tell(moved, 'a change')}"


def cannot_tell(item: Estimate, what: str) -> str:
    """'this run cannot tell a change (-2 points [-9, +5])'; the difference is left out where there
    are too few.
    """
    if item.n < LEAST:
        return f"too few to tell {what}"
    return f"this run cannot tell {what} ({points(item)})"


def _example(n: int) -> str:
    if n >= LEAST:
        return ""
    return (
        f"; {n} conversation{'' if n == 1 else 's'} only, an example and not a measurement (that"
        f" takes {LEAST})"
    )


def second_line(series: Sequence[Series]) -> str | None:
    """One sentence on the best fix on the same conversations; None where nothing was compared."""
    compared = [
        c
        for s in series
        if s.run == series[0].run and s is not series[0] and (c := compare(s, series[0]))
    ]
    compared = [c for c in compared if c.stability_mean.mean is not None]
    if not compared:
        return None
    best = max(compared, key=lambda c: c.stability_mean.mean or 0.0)
    at = estimate_columns(best.series.stability)[-1].mean
    gain = best.stability_last
    name = best.series.method
    if len(compared) > 1:
        name += f", the highest of {len(compared)} on average over all rounds,"
    if gain.mean is None or at is None:
        return None
    passes = f"With {name} it passes {percent(at)} at round {best.series.rounds}"
    told = tell(gain)
    if not told.sign:
        return f"{passes}; on the same {gain.n} conversations, {cannot_tell(gain, 'a difference')}."
    return (
        f"{passes}: {told.word('more', 'less')}, by {points(gain)} on the same {gain.n}"
        " conversations."
    )


def percent(value: float) -> str:
    """'66 %'."""
    return f"{100 * value:.0f} %"


def points(item: Estimate) -> str:
    """'-32 points [-39, -26]', of a difference of shares."""
    text = with_interval(item, lambda value: f"{100 * value:+.0f}" if value else "0")
    number, space, rest = text.partition(" ")
    return f"{number} points{space}{rest}"


def plain(item: Estimate) -> str:
    """'0.74 [0.69, 0.79]'; without the interval where there is none."""
    return with_interval(item, lambda value: f"{value:.2f}")


def signed(item: Estimate) -> str:
    """'+0.09 [+0.02, +0.15]'; without the interval where there is none."""
    return with_interval(item, signed_number)


def overall_change(item: Series, kind: str) -> Estimate:
    """The paired change from the first round to the last."""
    return change(item.values(kind))


def overall_mean(item: Series, kind: str) -> Estimate:
    """The mean over all rounds, conversation by conversation (the overall stability of Li et al.
    2024, section 6.3).
    """
    return estimate(row_means(item.values(kind)))


def signed_number(value: float) -> str:
    """'+0.09', '-0.09' or '0.00'."""
    return f"{value:+.2f}" if round(value, 2) else "0.00"


def _means(values: np.ndarray) -> list[Estimate]:
    """Column means without the cost of an interval."""
    return [
        Estimate(len(seen), float(seen.mean()) if len(seen) else None, None, None, None)
        for seen in (column[~np.isnan(column)] for column in values.T)
    ]
