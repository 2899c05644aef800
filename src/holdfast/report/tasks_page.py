"""The page of `holdfast tasks`."""

from __future__ import annotations

from typing import Any

from holdfast.analysis.summary import NAME, spelled, spread, summarise
from holdfast.analysis.tasks import Result, read_results
from holdfast.records import RunData
from holdfast.report.document import Document, Part, Table, head_facts
from holdfast.report.downloads import json_file, table_files
from holdfast.report.tasks import average_lines, cells, notes

_TERMS = (
    (
        "Sample",
        (
            "One question of a task; every prompt and method is asked the same ones. Intervals are"
            " over samples."
        ),
    ),
    ("Zero-shot", "The task’s prompt on the model as it is; methods steer this prompt."),
    (
        "Fluency",
        (
            "Entropy of a reply’s word pairs and triples; a reply that repeats itself is low, and a"
            " result under 3 is excluded."
        ),
    ),
    ("Consistency", "How like a reply is to texts of the same kind, from 0 to 1."),
)


def tasks_document(run: RunData) -> Document:
    """The page of a run of tasks."""
    results = read_results(run)
    settings = run.manifest["identity"]["settings"]
    names = list(dict.fromkeys(result.task for result in results))
    parts = [
        _part(name, [result for result in results if result.task == name], first=name == names[0])
        for name in names
    ]
    if lines := average_lines(results):
        parts.append(Part("average", "Average of the tasks", tuple(lines)))
    counts = sorted({len(result.numbers) for result in results})
    asked = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    variants = list(dict.fromkeys(result.variant for result in results))
    headline = f"{', '.join(names)} under {', '.join(variants)}, on {asked} samples each."
    files = (
        *table_files("scores", "every metric of every task", _numbers(results)),
        json_file(NAME, "what the run found, as in its folder", spelled(summarise(run))),
    )
    facts = head_facts(
        run,
        f"{asked} {settings['split']} samples per task",
        f"{settings['instruction']} instruction",
    )
    return Document("tasks", headline, (), facts, tuple(parts), files, ((run.folder.name, run),))


def _part(name: str, results: list[Result], first: bool) -> Part:
    metrics = list(dict.fromkeys(metric for result in results for metric in result.scores))
    rows = [("prompt or method", *metrics, "fluency", "consistency")]
    rows += [(result.variant, *cells(result, metrics)) for result in results]
    return Part(
        f"task-{name}",
        name,
        tuple(notes(results)),
        _TERMS if first else (),
        tables=(Table(f"{name}: means with 95 % intervals", tuple(rows)),),
    )


def _numbers(results: list[Result]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = [("task", "variant", "metric", "n", "mean", "low", "high", "sd")]
    for result in results:
        rows += [
            (result.task, result.variant, metric, *spread(item).values())
            for metric, item in result.estimates().items()
        ]
    return rows
