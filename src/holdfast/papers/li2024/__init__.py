"""Figures 3 to 9 of Li et al. 2024, on any model, with the paper's claims judged."""

from collections.abc import Iterator
from pathlib import Path

from holdfast.papers.findings import Figure, publish
from holdfast.papers.li2024.attention_figures import figure_4, figure_7, figure_8
from holdfast.papers.li2024.li2024_setup import SCALES, Li2024Setup, check
from holdfast.papers.li2024.stability_figures import figure_3, figure_9
from holdfast.papers.li2024.trade_off_figures import figures_5_and_6


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
    return publish(make_figures(setup), title, facts, setup.out, setup.notify)


def make_figures(setup: Li2024Setup) -> Iterator[Figure]:
    """Makes every figure, each with the runs that it needs."""
    yield figure_3(setup)
    yield figure_4(setup)
    yield from figures_5_and_6(setup)
    yield figure_7(setup)
    yield figure_8(setup)
    yield figure_9(setup)
