"""The table and the page of `holdfast tasks`: every metric of every task under every prompt and
method.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.analysis.summary import NAME, json_text, spread, summarise
from holdfast.analysis.tasks import (
    LEAST_FLUENCY,
    ZERO_SHOT,
    Average,
    Result,
    averages,
    compared,
    read_results,
)
from holdfast.records import RunData
from holdfast.report.downloads import json_file, table_files
from holdfast.report.endings import failure_lines
from holdfast.report.page import Table, render_study
from holdfast.report.wording import aligned, plain, signed


def table(run: RunData) -> str:
    """Every metric with its 95 % interval, the paired differences from zero-shot, fluency and
    consistency, and what is excluded.

    Raises:
        RecordsError: as `analysis.tasks.read_results`.
    """
    results = read_results(run)
    settings = run.manifest["identity"]["settings"]
    lines: list[str] = []
    for task in dict.fromkeys(result.task for result in results):
        lines += [*_block([result for result in results if result.task == task], settings), ""]
    if rows := average_lines(results):
        lines += ["Average of the tasks:", *(f"  {row}" for row in rows)]
    lines += [f"{what.capitalize()}: {line}." for what, line in failure_lines(run.failures)]
    if any(len(result.numbers) < 2 for result in results):
        lines.append(
            "No intervals with fewer than two samples: one cannot show how much they vary."
        )
    return "\n".join(lines).rstrip() + "\n"


def _block(results: Sequence[Result], settings: dict[str, Any]) -> list[str]:
    """One task: a row per variant."""
    names = list(dict.fromkeys(name for result in results for name in result.scores))
    judged = any(result.replies for result in results)
    rows = [("", *names, *(("fluency", "consistency") if judged else ()))]
    rows += [(_label(result), *cells(result, names, judged)) for result in results]
    count = max(len(result.numbers) for result in results)
    title = (
        f"{results[0].task}: {count} {settings['split']} samples, {settings['instruction']}"
        " instruction"
    )
    return [title, *aligned(rows, "  "), *(f"  {note}" for note in notes(results))]


def cells(result: Result, metrics: Sequence[str], judged: bool = True) -> tuple[str, ...]:
    """A result's metrics with their intervals; where judged, its fluency and consistency too."""
    scores = result.estimates()
    shown = [plain(scores[metric]) if metric in scores else "–" for metric in metrics]
    if judged:
        shown += [_number(result.fluency), _number(result.consistency)]
    return tuple(shown)


def notes(results: Sequence[Result]) -> list[str]:
    """Notes on one task's results, a line each."""
    lines = [note for result in results for note in _quality(result)]
    for result, differences in compared(results):
        parts = ", ".join(f"{name} {signed(value)}" for name, value in differences.items())
        lines.append(f"{result.variant} minus {ZERO_SHOT}: {parts}")
    return lines


def _quality(result: Result) -> list[str]:
    lines = []
    if len(result.draws) > 1:
        ranges = ", ".join(_range(result, metric) for metric in result.scores)
        lines.append(f"{result.variant}: by draw of the demonstrations, {ranges}")
    if result.excluded:
        lines.append(
            f"{result.variant}: excluded from comparisons, for its mean fluency of"
            f" {result.fluency:.2f} is under {LEAST_FLUENCY}"
        )
    if result.low or result.short:
        lines.append(
            f"{result.variant}: of {result.replies} replies, {result.low} have a fluency under"
            f" {LEAST_FLUENCY}, and {result.short} are too short to have one"
        )
    return lines


def _range(result: Result, metric: str) -> str:
    means = [draw[metric] for draw in result.draws]
    return f"{metric} {min(means):.2f} to {max(means):.2f}"


def average_lines(results: Sequence[Result]) -> list[str]:
    """Each variant's average over the tasks; none for a single task."""
    return [_average_line(average) for average in averages(results)]


def _average_line(average: Average) -> str:
    if average.score is None:
        why = "excluded" if average.finished else "not finished"
        return f"{average.variant}: none, for a task of it is {why}"
    line = f"{average.variant}: {plain(average.score)}"
    if average.less_zero_shot is not None:
        line += f", minus {ZERO_SHOT} {signed(average.less_zero_shot)}"
    return line


def _label(result: Result) -> str:
    return f"{result.variant} ({len(result.draws)} draws)" if result.draws else result.variant


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def tasks_page(run: RunData) -> str:
    """The HTML of the page of a run of tasks."""
    results = read_results(run)
    settings = run.manifest["identity"]["settings"]
    by_task: dict[str, list[Result]] = {}
    for result in results:
        by_task.setdefault(result.task, []).append(result)
    counts = sorted({len(result.numbers) for result in results})
    samples = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    variants = ", ".join(dict.fromkeys(result.variant for result in results))
    numbers: list[tuple[Any, ...]] = [
        ("task", "variant", "metric", "n", "mean", "low", "high", "sd")
    ]
    for result in results:
        numbers += [
            (result.task, result.variant, metric, *spread(item).values())
            for metric, item in result.estimates().items()
        ]
    return render_study(
        "tasks",
        f"{', '.join(by_task)} under {variants}, on {samples} samples each.",
        {run.folder.name: run},
        (
            f"{samples} {settings['split']} samples per task",
            f"{settings['instruction']} instruction",
        ),
        tasks=[
            {"name": name, "notes": notes(there), "table": _page_table(name, there)}
            for name, there in by_task.items()
        ],
        average=average_lines(results),
        downloads=[
            *table_files("scores", "every metric of every task", numbers),
            json_file(NAME, "what the run found, as in its folder", json_text(summarise(run))),
        ],
    )


def _page_table(task: str, results: Sequence[Result]) -> Table:
    metrics = list(dict.fromkeys(metric for result in results for metric in result.scores))
    rows = [("prompt or method", *metrics, "fluency", "consistency")]
    rows += [(result.variant, *cells(result, metrics)) for result in results]
    return Table(f"{task}: means with 95 % intervals", rows)
