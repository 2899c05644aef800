"""The page of `holdfast geometry`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.analysis.study_summary import DIALOGS
from holdfast.analysis.summary import NAME
from holdfast.records import read_run
from holdfast.report.downloads import json_file, table_files
from holdfast.report.page import Table, pictures, render_study

_COLUMNS = [(q, who) for q in ("dimension", "angle") for who in ("all", "system", "user", "agent")]


def geometry_page(geometry: dict[str, Any], lines: Sequence[str], folder: Path) -> str:
    """The HTML of the page of a study of geometry.

    Args:
        geometry: as `study.geometry.study` returns it.
        lines: the results in words, as it tells them.
        folder: with its figures, dialogs and summary.
    """
    run = read_run(folder / DIALOGS)
    theory = [line for line in lines if line.startswith(("Theorem", "Proposition"))]
    rows = [
        (row["round"], *(row[quantity][who] for quantity, who in _COLUMNS))
        for row in geometry["hidden_states"]
    ]
    averages = [("round", *(f"{quantity}, {who}" for quantity, who in _COLUMNS))]
    averages += [(str(number), *(f"{value:.2f}" for value in values)) for number, *values in rows]
    numbers = [("round", *(f"{quantity}_{who}" for quantity, who in _COLUMNS)), *rows]
    summary = (folder / NAME).read_text(encoding="utf-8")
    return render_study(
        "geometry",
        f"How the hidden states of {geometry['model']} spread over {rows[-1][0]} rounds, and the"
        " theory checked.",
        {DIALOGS: run},
        (f"{len(run.records)} dialogs", f"suite {geometry['suite']}"),
        read=[line for line in lines if line not in theory],
        theory=theory,
        states=pictures(
            folder,
            hidden_states="Effective dimension and opening angle, averaged over layers and dialogs",
        ),
        norms=pictures(folder, norms="Li et al. 2024, Figure 7"),
        averages=Table("Averages over layers and dialogs, without intervals", averages),
        downloads=[
            *table_files("hidden_states", "the numbers of the figure", numbers),
            json_file(NAME, "what was found, as in its folder", summary),
        ],
    )
