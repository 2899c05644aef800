"""Figures 3 to 9 of Li et al. 2024, on any model, with the paper's claims judged."""

from pathlib import Path

from holdfast.papers.findings import publish
from holdfast.papers.li2024.figures_3_to_9 import SCALES, Li2024Setup, check, make_figures


def reproduce(setup: Li2024Setup) -> Path:
    """Makes every figure, resuming earlier runs, and writes the page; returns its path."""
    check(setup)
    facts = [
        f"model {setup.model.name}",
        f"suite {setup.suite.name}",
        f"{setup.scale.conversations} conversations of {setup.scale.rounds} rounds",
        f"seed {setup.seed}",
    ]
    title = "Measuring and controlling instruction (in)stability, on your model"
    return publish(make_figures(setup), title, facts, setup.out, setup.tell)
