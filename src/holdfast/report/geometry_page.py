"""The page of `holdfast geometry`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.analysis.study_summary import DIALOGS, geometry_summary
from holdfast.analysis.summary import NAME, spelled
from holdfast.records import read_run
from holdfast.report.document import Document, Part, Table, head_facts, pictures
from holdfast.report.downloads import json_file, table_files

_GROUPS = ("all", "system", "user", "agent")
_TERMS = (
    (
        "Effective dimension",
        "In how many directions states spread: the participation ratio of their covariance.",
    ),
    (
        "Opening angle",
        "The angle around the mean direction, in radians, that holds 95 % of the states.",
    ),
    ("Round", "One turn of the user model and one of the agent."),
)


def geometry_document(geometry: dict[str, Any], told: Sequence[str], folder: Path) -> Document:
    """The page of what `study.geometry.study` found and told, whose figures lie in `folder`."""
    run = read_run(folder / DIALOGS)
    theory = tuple(line for line in told if line.startswith(("Theorem", "Proposition")))
    read = tuple(line for line in told if line not in theory)
    parts = (
        Part(
            "states",
            "Hidden states, round by round",
            read,
            _TERMS,
            pictures(
                folder,
                (
                    (
                        "hidden_states",
                        "Effective dimension and opening angle, averaged over layers and dialogs",
                    ),
                ),
            ),
            (Table("Averages over layers and dialogs, without intervals", _rows(geometry)),),
        ),
        Part(
            "norms",
            "Norms of the embeddings",
            pictures=pictures(folder, (("norms", "Li et al. 2024, Figure 7"),)),
        ),
        Part("theory", "The theory on random instances", theory),
    )
    files = (
        *table_files("hidden_states", "the numbers of the figure", _numbers(geometry)),
        json_file(
            NAME,
            "what was found, as in its folder",
            spelled(geometry_summary(geometry, len(run.records))),
        ),
    )
    headline = (
        f"How the hidden states of {geometry['model']} spread over"
        f" {geometry['hidden_states'][-1]['round']} rounds, and the theory checked."
    )
    return Document(
        "geometry",
        headline,
        (),
        head_facts(run, f"{len(run.records)} dialogs", f"suite {geometry['suite']}"),
        parts,
        files,
        ((DIALOGS, run),),
    )


def _rows(geometry: dict[str, Any]) -> tuple[tuple[str, ...], ...]:
    head = (
        "round",
        *(f"{quantity}, {name}" for quantity in ("dimension", "angle") for name in _GROUPS),
    )
    return (head, *(tuple(_text(value) for value in row) for row in _numbers(geometry)[1:]))


def _text(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.2f}"


def _numbers(geometry: dict[str, Any]) -> list[tuple[Any, ...]]:
    head = (
        "round",
        *(f"{quantity}_{name}" for quantity in ("dimension", "angle") for name in _GROUPS),
    )
    rows = [
        (
            row["round"],
            *(row[quantity][name] for quantity in ("dimension", "angle") for name in _GROUPS),
        )
        for row in geometry["hidden_states"]
    ]
    return [head, *rows]
