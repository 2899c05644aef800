"""Tables and figures of Zhang et al. 2024 (PASTA), on any model, with the paper's claims judged.

plan.py       what is reproduced, how much of it, and what cannot be
study.py      what the tables share: profiles, choices, answers
results.py    answers -> differences, claims, cells
tables.py, figures.py
drawing.py    the figures' images
child.py      a small model trained a little further, for Table 13
"""

from __future__ import annotations

from pathlib import Path

from holdfast.reproduce.page import write_findings, write_page
from holdfast.reproduce.zhang2024.figures import figure_2, figure_3
from holdfast.reproduce.zhang2024.plan import SCALES, Scale, Task, check, scale_of
from holdfast.reproduce.zhang2024.study import Study
from holdfast.reproduce.zhang2024.tables import (
    table_1,
    table_4,
    table_5,
    table_7,
    table_11,
    table_13,
    table_14,
)

__all__ = ["SCALES", "Scale", "Task", "check", "reproduce", "scale_of"]


def reproduce(task: Task) -> Path:
    """Profiles the heads, runs every table and figure, resuming what is there, and writes
    `index.html` and `findings.json`; returns the page's path.

    Raises:
        ModelError: an endpoint, or a model whose attention cannot be steered.
        RecordsError: `task.out` holds runs of another model, data or scale.
    """
    check(task)
    study = Study(task)
    figures = []
    for make in (
        table_1,
        table_4,
        table_5,
        table_7,
        table_11,
        table_13,
        table_14,
        figure_2,
        figure_3,
    ):
        figures.append(figure := make(study))
        for claim in figure.claims:
            task.tell(f"{figure.name}: {claim.verdict}. {claim.text} {claim.evidence}")
    scale = task.scale
    facts = [
        f"model {task.model.name}",
        f"data {' and '.join(task.data)}",
        (
            f"{scale.profiled} training, {scale.validated} validation and {scale.tested} test"
            " samples of each task"
        ),
        f"seed {task.seed}",
    ]
    write_findings(figures, task.out)
    return write_page(
        figures, "Tell your model where to attend, on your model", facts, task.out / "index.html"
    )
