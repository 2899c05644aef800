"""Findings as one self-contained page, which loads nothing, and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from holdfast.analysis.verdicts import CONTRADICTED, NOT_JUDGED, SUPPORTED, UNDECIDED
from holdfast.files import write_whole
from holdfast.report.page import Picture, Table, render
from holdfast.reproduce.findings import Claim, Figure

_WORDS = {
    SUPPORTED: "supported by this run",
    CONTRADICTED: "contradicted by this run",
    UNDECIDED: "this run cannot tell",
    NOT_JUDGED: "this run could not judge it",
}


@dataclass(frozen=True)
class _Shown:
    """A figure as the page shows it."""

    anchor: str
    name: str
    title: str
    how: str
    table: Table | None
    pictures: tuple[Picture, ...]
    claims: tuple[Claim, ...]


def write_page(figures: Sequence[Figure], title: str, facts: Sequence[str], out: Path) -> Path:
    """Writes the page: each figure, under it the paper's claims in our words, and whether this run
    supports them.
    """
    counts = Counter(claim.verdict for figure in figures for claim in figure.claims)
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in _WORDS if counts[verdict])
    shown = [_shown(figure) for figure in figures]
    html = render(
        "reproduction.html.j2",
        "reproduce",
        title,
        lines=[f"Claims: {summary}."],
        facts=facts,
        figures=shown,
        words=_WORDS,
    )
    return write_whole(out, html)


def write_findings(figures: Sequence[Figure], folder: Path) -> Path:
    """Writes the same as JSON, with the paths of the images in `folder`."""
    rows = [
        {
            **asdict(figure),
            "images": [path.relative_to(folder).as_posix() for path in figure.images],
        }
        for figure in figures
    ]
    return write_whole(folder / "findings.json", json.dumps(rows, indent=1) + "\n")


def _shown(figure: Figure) -> _Shown:
    table = Table(figure.name, tuple(map(tuple, figure.rows))) if figure.rows else None
    pictures = tuple(Picture(figure.title, path) for path in figure.images)
    anchor = f"{figure.kind.lower()}-{figure.number}"
    return _Shown(anchor, figure.name, figure.title, figure.how, table, pictures, figure.claims)
