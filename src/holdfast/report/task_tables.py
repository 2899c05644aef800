"""The table and the page of `holdfast tasks`."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.analysis.task_results import (
    MIN_FLUENCY,
    ZERO_SHOT,
    TaskScores,
    average_variants,
    compare_with_zero_shot,
    read_results,
)
from holdfast.plurals import count_of, from_to
from holdfast.records import Run
from holdfast.records.identity import TasksIdentity
from holdfast.report.page import Table, render_study
from holdfast.report.shortfalls import failure_shortfalls
from holdfast.report.wording import aligned, plain, signed


@dataclass(frozen=True)
class TaskSection:
    """The section of the page on one task."""

    name: str
    notes: list[str]
    table: Table


def table(run: Run) -> str:
    """Every metric with its 95% interval, differences from zero-shot, fluency, exclusions."""
    results = read_results(run)
    settings = run.identity_as(TasksIdentity).settings
    lines: list[str] = []
    for task, results_of_task in _group_by_task(results).items():
        has_fluency = any(result.replies for result in results_of_task)
        names = [_name_with_draws(result) for result in results_of_task]
        rows = _score_rows("", names, results_of_task, has_fluency=has_fluency)
        count = max(len(result.numbers) for result in results_of_task)
        lines += [
            f"{task}: {count} {settings.split} samples, {settings.instruction} instruction",
            *aligned(rows, "  "),
            *(f"  {note}" for note in _task_notes(results_of_task)),
            "",
        ]
    if average := _average_lines(results):
        lines += ["Average of the tasks:", *(f"  {line}" for line in average)]
    lines += [shortfall.sentence for shortfall in failure_shortfalls(run.failures)]
    if any(len(result.numbers) < 2 for result in results):
        lines.append(
            "No intervals with fewer than two samples: one cannot show how much they vary."
        )
    return "\n".join(lines).rstrip() + "\n"


def _name_with_draws(result: TaskScores) -> str:
    """The variant, with its number of draws of demonstrations if it has any: few-shot (3 draws)."""
    if not result.draws:
        return result.variant
    return f"{result.variant} ({count_of(len(result.draws), 'draw')})"


def _group_by_task(results: Sequence[TaskScores]) -> dict[str, list[TaskScores]]:
    results_by_task: dict[str, list[TaskScores]] = {}
    for result in results:
        results_by_task.setdefault(result.task, []).append(result)
    return results_by_task


def _score_rows(
    title: str, names: Sequence[str], results: Sequence[TaskScores], *, has_fluency: bool
) -> list[tuple[str, ...]]:
    """A row for each result and a column for each metric; the header comes first.

    Args:
        title: the head of the first column.
        names: the first cell of each result's row.
        has_fluency: whether the last column is the fluency.
    """
    metrics = list(dict.fromkeys(metric for result in results for metric in result.scores))
    rows = [(title, *metrics, "fluency") if has_fluency else (title, *metrics)]
    for name, result in zip(names, results, strict=True):
        scores = result.estimates()
        cells = [plain(scores[metric]) if metric in scores else "–" for metric in metrics]
        if has_fluency:
            cells.append("–" if result.fluency is None else f"{result.fluency:.2f}")
        rows.append((name, *cells))
    return rows


def _task_notes(results: Sequence[TaskScores]) -> list[str]:
    """Notes on one task: draws of demonstrations, fluency, and differences from zero-shot."""
    notes = []
    for result in results:
        if len(result.draws) > 1:
            ranges = []
            for name in result.scores:
                means = [draw[name] for draw in result.draws]
                ranges.append(f"{name} {min(means):.2f} to {max(means):.2f}")
            notes.append(f"{result.variant}: by draw of the demonstrations, {', '.join(ranges)}")
        if result.excluded:
            notes.append(
                f"{result.variant}: excluded from comparisons because its mean fluency,"
                f" {result.fluency:.2f}, is below {MIN_FLUENCY}"
            )
        if result.num_low_fluency or result.num_too_short:
            notes.append(
                f"{result.variant}: of {result.replies} replies, {result.num_low_fluency} have a"
                f" fluency under {MIN_FLUENCY}, and {result.num_too_short} are too short to have"
                " one"
            )
    for result, differences in compare_with_zero_shot(results):
        parts = ", ".join(f"{name} {signed(value)}" for name, value in differences.items())
        notes.append(f"{result.variant} minus {ZERO_SHOT}: {parts}")
    return notes


def _average_lines(results: Sequence[TaskScores]) -> list[str]:
    """Each variant's average over the tasks; [] for a single task."""
    lines = []
    for average in average_variants(results):
        if average.score is None and average.finished:
            lines.append(f"{average.variant}: no average, because a task is excluded")
            continue
        if average.score is None:
            lines.append(f"{average.variant}: no average, because a task is not finished")
            continue
        score = plain(average.score)
        if average.over_zero_shot is None:
            lines.append(f"{average.variant}: {score}")
        else:
            difference = signed(average.over_zero_shot)
            lines.append(f"{average.variant}: {score}, minus {ZERO_SHOT} {difference}")
    return lines


def tasks_page(run: Run) -> str:
    """The HTML of the page of a run of tasks."""
    results = read_results(run)
    settings = run.identity_as(TasksIdentity).settings
    results_by_task = _group_by_task(results)
    counts = sorted({len(result.numbers) for result in results})
    samples = from_to(counts[0], counts[-1])
    variants = ", ".join(dict.fromkeys(result.variant for result in results))
    sections = []
    for name, results_of_task in results_by_task.items():
        variants_of_task = [result.variant for result in results_of_task]
        rows = _score_rows("prompt or method", variants_of_task, results_of_task, has_fluency=True)
        caption = f"{name}: means with 95% intervals"
        sections.append(TaskSection(name, _task_notes(results_of_task), Table(caption, rows)))
    return render_study(
        "tasks",
        f"{', '.join(results_by_task)} under {variants}, on {samples} samples each.",
        {
            "tasks": sections,
            "average": _average_lines(results),
        },
        runs={run.folder.name: run},
        facts=(
            f"{samples} {settings.split} samples per task",
            f"{settings.instruction} instruction",
        ),
    )
