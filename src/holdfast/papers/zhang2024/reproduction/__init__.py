"""Tables and figures of Zhang et al. 2024 (PASTA), on any model, with the paper's claims judged."""

from pathlib import Path

from holdfast.analysis.profile import read_profile
from holdfast.papers.findings import publish
from holdfast.papers.zhang2024.reproduction.figure_2 import figure_2
from holdfast.papers.zhang2024.reproduction.figure_3 import figure_3
from holdfast.papers.zhang2024.reproduction.paper_tables import (
    table_1,
    table_4,
    table_5,
    table_7,
    table_11,
    table_14,
)
from holdfast.papers.zhang2024.reproduction.reproduction_setup import (
    SCALES,
    TASKS,
    Zhang2024Scale,
    Zhang2024Setup,
    check,
    check_samples,
)
from holdfast.papers.zhang2024.reproduction.study import Study
from holdfast.report.profile_report import write_profile


def reproduce(setup: Zhang2024Setup) -> Path:
    """Profiles heads and makes every table and figure, resuming earlier runs.

    Returns:
        The path of the page.
    """
    check(setup)
    study = Study(setup)
    for name in study.rankings:
        folder = study.profile_folder(name)
        write_profile(read_profile(folder), folder)
    scale = setup.scale
    training = ", ".join(f"{scale.profile_samples_of(name)} {name}" for name in setup.tasks)
    facts = [
        f"model {setup.model.name}",
        f"data {' and '.join(setup.data)}",
        (
            f"{scale.validation_samples} validation and {scale.test_samples} test samples of each"
            f" task; training samples: {training}"
        ),
        f"seed {setup.seed}",
    ]
    makers = (table_1, table_4, table_5, table_7, table_11, table_14, figure_2, figure_3)
    figures = (make(study) for make in makers)
    title = "Tell your model where to attend, on your model"
    return publish(figures, title, facts, setup.out, setup.notify)
