"""Tables and figures of Zhang et al. 2024 (PASTA), on any model, with the paper's claims judged.

setup.py      what is reproduced, how much of it, and what cannot be
study.py      what the tables share: profiles, choices, answers
results.py    answers -> differences, claims, cells
tables.py, robustness.py, figures.py
drawing.py    the figures' images
child.py      a small model trained a little further, for Table 13
"""

from __future__ import annotations

from pathlib import Path

from holdfast.report.profile import write_profile
from holdfast.reproduce.page import write_findings, write_page
from holdfast.reproduce.zhang2024.figures import figure_2, figure_3
from holdfast.reproduce.zhang2024.robustness import table_4, table_11, table_13, table_14
from holdfast.reproduce.zhang2024.setup import SCALES, TASKS, Scale, Setup, check, scale_of
from holdfast.reproduce.zhang2024.study import Study
from holdfast.reproduce.zhang2024.tables import table_1, table_5, table_7

__all__ = ["SCALES", "TASKS", "Scale", "Setup", "check", "reproduce", "scale_of"]


def reproduce(setup: Setup) -> Path:
    """Profiles the heads, runs every table and figure, resuming what is there, and writes
    `index.html` and `findings.json`; returns the page's path.

    Raises:
        ModelError: a model whose attention cannot be steered.
        RecordsError: `setup.out` holds runs of another model, data or scale.
    """
    check(setup)
    study = Study(setup)
    for name in study.rankings:
        write_profile(study.profile_folder(name))
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
            setup.tell(f"{figure.name}: {claim.verdict}. {claim.text} {claim.evidence}")
    scale = setup.scale
    facts = [
        f"model {setup.model.name}",
        f"data {' and '.join(setup.data)}",
        (
            f"{scale.validated} validation and {scale.tested} test samples of each task; training"
            f" samples: {', '.join(f'{scale.profiled_of(name)} {name}' for name in setup.tasks)}"
        ),
        f"seed {setup.seed}",
    ]
    write_findings(figures, setup.out)
    return write_page(
        figures, "Tell your model where to attend, on your model", facts, setup.out / "index.html"
    )
