"""Figures 3 to 9 of Li et al. 2024, on any model, with the paper's claims judged.

setup.py       what is reproduced, how much of it, and what cannot be
behaviour.py   Figures 3 and 9: stability and adoption in self-chats
attention.py   Figures 4, 7 and 8: attention to the prompt, and the norms of embeddings
methods.py     Figures 5 and 6: what each method gives and costs
"""

from __future__ import annotations

from pathlib import Path

from holdfast.reproduce.findings import Figure
from holdfast.reproduce.li2024.attention import figure_4, figure_7, figure_8
from holdfast.reproduce.li2024.behaviour import figure_3, figure_9
from holdfast.reproduce.li2024.methods import figures_5_and_6
from holdfast.reproduce.li2024.setup import SCALES, Scale, Setup, check, scale_of
from holdfast.reproduce.page import write_findings, write_page

__all__ = ["SCALES", "Scale", "Setup", "check", "reproduce", "scale_of"]


def reproduce(setup: Setup) -> Path:
    """Runs every figure, resuming what is there, and writes `index.html` and `findings.json` into
    `setup.out`; returns the page's path.

    Raises:
        RecordsError: `setup.out` holds runs of another model, suite or scale.
    """
    check(setup)
    figures: list[Figure] = []
    for make in (figure_3, figure_4, figures_5_and_6, figure_7, figure_8, figure_9):
        made = make(setup)
        figures += made
        for figure in made:
            for claim in figure.claims:
                setup.tell(f"{figure.name}: {claim.verdict}. {claim.text} {claim.evidence}")
    facts = [
        f"model {setup.model.name}",
        f"suite {setup.suite.name}",
        f"{setup.scale.conversations} conversations of {setup.scale.rounds} rounds",
        f"seed {setup.seed}",
    ]
    write_findings(figures, setup.out)
    return write_page(
        figures,
        "Measuring and controlling instruction (in)stability, on your model",
        facts,
        setup.out / "index.html",
    )
