"""The table of `holdfast tasks`: every metric of every task under every baseline and method.

The unit is the sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.errors import RecordsError
from holdfast.records import RunData
from holdfast.report.findings import plain, signed
from holdfast.report.statistics import Estimate, estimate, paired_difference
from holdfast.tasks.metrics import LEAST_FLUENCY

ZERO_SHOT = "zero-shot"


@dataclass(frozen=True, eq=False)
class Result:
    """One task under one baseline or method.

    Attributes:
        task, variant: their names.
        numbers: [n] the samples.
        scores: per metric, [n], NaN where the sample has no such score; several draws of
            demonstrations are averaged within the sample.
        draws: per draw of demonstrations, the mean of each metric; empty where there are none.
        fluency, consistency: means over the replies that have one; None where none has.
        short: replies too short to have a fluency, of `replies`.
        low: replies whose fluency is under 3.0.
    """

    task: str
    variant: str
    numbers: np.ndarray
    scores: dict[str, np.ndarray]
    draws: tuple[dict[str, float], ...]
    fluency: float | None
    consistency: float | None
    replies: int
    short: int
    low: int

    @property
    def excluded(self) -> bool:
        """Whether the replies are degenerate: their mean fluency is under 3.0, and at least half of
        them are long enough to have one.

        The paper excludes results below 3.0; since its tables hold means of 3.00 and 3.03, a result
        is read as a row of a table."""
        return (
            self.fluency is not None
            and self.fluency < LEAST_FLUENCY
            and 2 * self.short <= self.replies
        )

    def estimates(self) -> dict[str, Estimate]:
        """Per metric, the mean and its interval."""
        return {name: estimate(values) for name, values in self.scores.items()}


def read_results(run: RunData) -> list[Result]:
    """The results of a run, in the order of its tasks and variants.

    Raises:
        RecordsError: no sample is finished yet, or the folder holds a run of another command.
    """
    if run.manifest.get("command") != "tasks":
        raise RecordsError(f"{run.folder} holds no run of `holdfast tasks`; give one that does.")
    if not run.records:
        raise RecordsError(f"{run.folder} has no finished sample yet; repeat its command to go on.")
    identity = run.manifest["identity"]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in run.records:
        groups.setdefault((record["task"], record["variant"]), []).append(record)
    wanted = [
        (task, variant)
        for task in identity["settings"]["tasks"]
        for variant in identity["variants"]
    ]
    return [_result(*key, groups[key]) for key in wanted if key in groups]


def _result(task: str, variant: str, records: Sequence[dict[str, Any]]) -> Result:
    numbers = sorted({record["conversation"] for record in records})
    names = list(dict.fromkeys(name for record in records for name in record["scores"]))
    scores = {name: np.full(len(numbers), np.nan) for name in names}
    place = {number: index for index, number in enumerate(numbers)}
    for name in names:
        found: dict[int, list[float]] = {}
        for record in records:
            if name in record["scores"]:
                found.setdefault(record["conversation"], []).append(record["scores"][name])
        for number, values in found.items():
            scores[name][place[number]] = np.mean(values)
    draws = [
        {
            name: float(
                np.mean(
                    [
                        r["scores"][name]
                        for r in records
                        if r["draw"] == draw and name in r["scores"]
                    ]
                )
            )
            for name in names
        }
        for draw in sorted({record["draw"] for record in records} - {0})
    ]
    judged = [record for record in records if "fluency" in record]
    fluencies = [record["fluency"] for record in judged if record["fluency"] is not None]
    consistencies = [
        record["consistency"] for record in judged if record["consistency"] is not None
    ]
    return Result(
        task,
        variant,
        np.array(numbers),
        scores,
        tuple(draws),
        float(np.mean(fluencies)) if fluencies else None,
        float(np.mean(consistencies)) if consistencies else None,
        len(judged),
        len(judged) - len(fluencies),
        sum(value < LEAST_FLUENCY for value in fluencies),
    )


def average(results: Sequence[Result]) -> tuple[np.ndarray, np.ndarray]:
    """The average over one variant's tasks (the last column of the paper's Table 1), per sample
    number: numbers and values.

    A task counts as the mean of its metrics; the numbers are those that every task has answered.
    """
    numbers = np.array(
        sorted(set.intersection(*(set(result.numbers.tolist()) for result in results))), dtype=int
    )
    rows = []
    for result in results:
        keep = np.isin(result.numbers, numbers)
        rows.append(
            np.nanmean(
                np.array(
                    [
                        values[keep]
                        for values in result.scores.values()
                        if not np.isnan(values).all()
                    ]
                ),
                axis=0,
            )
        )
    return numbers, np.mean(rows, axis=0)


def table(run: RunData) -> str:
    """Every metric with its 95 % interval, the paired differences from zero-shot, fluency and
    consistency, and what is excluded.

    Raises:
        RecordsError: as `read_results`.
    """
    results = read_results(run)
    settings = run.manifest["identity"]["settings"]
    lines: list[str] = []
    for task in dict.fromkeys(result.task for result in results):
        lines += [*_block([result for result in results if result.task == task], settings), ""]
    lines += averages(results)
    if any(len(result.numbers) < 2 for result in results):
        lines.append(
            "No intervals with fewer than two samples: one cannot show how much they vary."
        )
    return "\n".join(lines).rstrip() + "\n"


def _block(results: Sequence[Result], settings: dict[str, Any]) -> list[str]:
    """One task: a row per variant."""
    names = list(dict.fromkeys(name for result in results for name in result.scores))
    judged = any(result.replies for result in results)
    heads = ["", *names, *(["fluency", "consistency"] if judged else [])]
    rows = [heads]
    for result in results:
        found = result.estimates()
        quality = [_number(result.fluency), _number(result.consistency)] if judged else []
        rows.append(
            [
                _label(result),
                *(plain(found[name]) if name in found else "–" for name in names),
                *quality,
            ]
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    count = max(len(result.numbers) for result in results)
    lines = [
        f"{results[0].task}: {count} {settings['split']} samples, {settings['instruction']}"
        " instruction"
    ]
    lines += [
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return [*lines, *notes(results)]


def notes(results: Sequence[Result]) -> list[str]:
    lines = []
    for result in results:
        if len(result.draws) > 1:
            spread = ", ".join(
                f"{name} {min(d[name] for d in result.draws):.2f} to"
                f" {max(d[name] for d in result.draws):.2f}"
                for name in result.scores
            )
            lines.append(f"  {result.variant}: by draw of the demonstrations, {spread}")
        if result.excluded:
            lines.append(
                f"  {result.variant}: excluded from comparisons, for its mean fluency of"
                f" {result.fluency:.2f} is under {LEAST_FLUENCY}"
            )
        if result.low or result.short:
            lines.append(
                f"  {result.variant}: of {result.replies} replies, {result.low} have a fluency"
                f" under {LEAST_FLUENCY}, and {result.short} are too short to have one"
            )
    zero = next((result for result in results if result.variant == ZERO_SHOT), None)
    for result in results:
        if zero is None or result is zero or result.excluded or zero.excluded:
            continue
        parts = []
        for name in result.scores:
            both = np.intersect1d(result.numbers, zero.numbers)
            values, base = (one.scores[name][np.isin(one.numbers, both)] for one in (result, zero))
            parts.append(f"{name} {signed(paired_difference(values, base))}")
        lines.append(f"  {result.variant} minus {ZERO_SHOT}: {', '.join(parts)}")
    return lines


def averages(results: Sequence[Result]) -> list[str]:
    tasks = list(dict.fromkeys(result.task for result in results))
    if len(tasks) < 2:
        return []
    lines = ["Average of the tasks:"]
    means: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for variant in dict.fromkeys(result.variant for result in results):
        mine = [result for result in results if result.variant == variant]
        if len(mine) < len(tasks) or any(result.excluded for result in mine):
            lines.append(
                f"  {variant}: none, for a task of it is"
                f" {'excluded' if len(mine) == len(tasks) else 'not finished'}"
            )
            continue
        means[variant] = numbers, values = average(mine)
        line = f"  {variant}: {plain(estimate(values))}"
        if variant != ZERO_SHOT and ZERO_SHOT in means:
            base_numbers, base = means[ZERO_SHOT]
            both = np.intersect1d(numbers, base_numbers)
            ours, theirs = np.isin(numbers, both), np.isin(base_numbers, both)
            difference = paired_difference(values[ours], base[theirs])
            line += f", minus {ZERO_SHOT} {signed(difference)}"
        lines.append(line)
    return lines


def _label(result: Result) -> str:
    return f"{result.variant} ({len(result.draws)} draws)" if result.draws else result.variant


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
