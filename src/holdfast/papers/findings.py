"""Reproduced figures and tables, the paper's claims of them with verdicts, and one page of all."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeVar

from holdfast.analysis.statistics import Estimate
from holdfast.analysis.verdicts import CONTRADICTED, NOT_JUDGED, SUPPORTED, UNDECIDED, judge, tell
from holdfast.errors import UnknownName
from holdfast.files import write_whole
from holdfast.report.page import Picture, Table, render
from holdfast.report.wording import with_interval


@dataclass(frozen=True)
class Claim:
    """A paper's statement about a figure.

    Args:
        text: the claim in our words.
        verdict: "supported", "contradicted", "undecided" or "not judged" by this run.
        evidence: the numbers behind the verdict.
    """

    text: str
    verdict: str
    evidence: str


@dataclass(frozen=True)
class Figure:
    """A reproduced figure or table.

    Args:
        number: the paper's.
        title: what it shows.
        how: how this run made it, where that is not as in the paper.
        images: PNG files.
        claims: of the paper, judged.
        kind: "Figure" or "Table".
        rows: of the table, the first its head; () for none.
    """

    number: str
    title: str
    how: str
    images: tuple[Path, ...]
    claims: tuple[Claim, ...]
    kind: str = "Figure"
    rows: tuple[tuple[str, ...], ...] = ()

    @property
    def name(self) -> str:
        """Figure 3, Table 1."""
        return f"{self.kind} {self.number}"


def claim_that(text: str, value: Estimate, sign: int, evidence: str) -> Claim:
    """The claim that an estimate lies on the side of `sign` (+1 or -1) of 0, judged."""
    if value.mean is None:
        return Claim(text, NOT_JUDGED, evidence)
    return Claim(text, judge(value, sign), evidence + _reason(tell(value).why))


def judged(claims: Iterable[Claim], why: str) -> tuple[Claim, ...]:
    """The claims; where there is a reason why they cannot be judged, none of them is."""
    if not why:
        return tuple(claims)
    return tuple(
        replace(claim, verdict=NOT_JUDGED, evidence=f"{claim.evidence} {why}".strip())
        for claim in claims
    )


def _reason(why: str) -> str:
    return f" It cannot tell: {why}." if why else ""


def in_words(value: Estimate) -> str:
    """+0.123 [+0.045, +0.201] (n = 50), over n conversations or samples."""
    if value.mean is None:
        return "not measured"
    none = "" if value.low is not None else ": no interval"
    return f"{with_interval(value, lambda number: f'{number:+.3f}')} (n = {value.n}{none})"


def pngs(paths: Sequence[Path], *names: str) -> tuple[Path, ...]:
    """The PNG files of these names among paths; of any name where none is given."""
    return tuple(
        path for path in paths if path.suffix == ".png" and (not names or path.stem in names)
    )


S = TypeVar("S")  # a scale
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


def publish(
    made: Iterable[Figure], title: str, facts: Sequence[str], out: Path, tell: Callable[[str], None]
) -> Path:
    """Reports the verdicts of each figure as it is made, and writes `index.html` and
    `findings.json` into the folder `out`; returns the page's path.
    """
    figures = []
    for figure in made:
        figures.append(figure)
        for claim in figure.claims:
            tell(f"{figure.name}: {claim.verdict}. {claim.text} {claim.evidence}")
    write_findings(figures, out)
    return write_page(figures, title, facts, out / "index.html")


def scale_of(name: str, scales: Mapping[str, S]) -> S:
    """The scale of that name.

    Raises:
        UnknownName: there is none.
    """
    if name not in scales:
        raise UnknownName("scale", name, scales)
    return scales[name]


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
