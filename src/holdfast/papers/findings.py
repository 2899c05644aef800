"""Reproduced figures and tables, verdicts on the paper's claims, and one page for all of them."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

from holdfast.analysis.statistics import Estimate
from holdfast.analysis.verdicts import (
    CONTRADICTED,
    NOT_JUDGED,
    SUPPORTED,
    UNDECIDED,
    judge,
    verdict_on,
)
from holdfast.errors import UnknownName
from holdfast.files import write_whole
from holdfast.report.page import Picture, Table, render
from holdfast.report.wording import with_interval

Scale = TypeVar("Scale")
_WORDS = {
    SUPPORTED: "supported by this run",
    CONTRADICTED: "contradicted by this run",
    UNDECIDED: "this run cannot tell",
    NOT_JUDGED: "this run could not judge it",
}


@dataclass(frozen=True)
class Claim:
    """A paper's statement in our words, its verdict (`analysis.verdicts`), and its evidence."""

    text: str
    verdict: str
    evidence: str


@dataclass(frozen=True)
class Figure:
    """A reproduced figure or table, with verdicts on its paper's claims.

    Attributes:
        how: how this run made it, if that differs from the paper.
        rows: the table, header first; () for a figure.
    """

    number: str
    title: str
    how: str
    images: tuple[Path, ...] = ()
    claims: tuple[Claim, ...] = ()
    kind: Literal["Figure", "Table"] = "Figure"
    rows: tuple[tuple[str, ...], ...] = ()

    @property
    def name(self) -> str:
        """'Figure 3'."""
        return f"{self.kind} {self.number}"

    @property
    def anchor(self) -> str:
        """The id of its section on the page."""
        return f"{self.kind.lower()}-{self.number}"

    @property
    def table(self) -> Table | None:
        """Its rows as a table; None if it has none."""
        return Table(self.name, self.rows) if self.rows else None

    @property
    def pictures(self) -> list[Picture]:
        """Its images, as the page embeds them."""
        return [Picture(self.title, path) for path in self.images]


def claim_that(text: str, value: Estimate, sign: int, quantity: str, remark: str = "") -> Claim:
    """Judges the claim that an estimate is above 0 (`sign` +1) or below it (-1).

    Args:
        text: the claim.
        quantity: says what the estimate is, such as "Multi-task PASTA less zero-shot:".
        remark: a sentence that follows the evidence; "" for none.
    """
    evidence = f"{quantity} {in_words(value)}."
    if remark:
        evidence = f"{evidence} {remark}"
    if value.mean is None:
        return Claim(text, NOT_JUDGED, evidence)
    if why := verdict_on(value).why:
        evidence = f"{evidence} It cannot tell: {why}."
    return Claim(text, judge(value, sign), evidence)


def leave_unjudged(claim: Claim, why: str) -> Claim:
    """The claim with the verdict that it could not be judged; `why` is added to its evidence."""
    return replace(claim, verdict=NOT_JUDGED, evidence=f"{claim.evidence} {why}".strip())


def not_run(
    number: str,
    title: str,
    texts: Iterable[str],
    why: str,
    kind: Literal["Figure", "Table"] = "Figure",
) -> Figure:
    """A figure or table that was not made, whose claims are not judged.

    Args:
        texts: the claims.
        why: the reason, in a sentence.
    """
    claims = tuple(Claim(text, NOT_JUDGED, why) for text in texts)
    return Figure(number, title, "Not run.", claims=claims, kind=kind)


def in_words(value: Estimate) -> str:
    """'+0.123 [+0.045, +0.201] (n = 50)', where n counts conversations or samples."""
    if value.mean is None:
        return "not measured"
    interval = "" if value.low is not None else ": no interval"
    return f"{with_interval(value, lambda number: f'{number:+.3f}')} (n = {value.n}{interval})"


def pngs(paths: Iterable[Path], *names: str) -> tuple[Path, ...]:
    """The PNG files among paths that have one of these names; all of them if no name is given."""
    return tuple(
        path for path in paths if path.suffix == ".png" and (not names or path.stem in names)
    )


def scale_of(name: str, scales: Mapping[str, Scale]) -> Scale:
    """The scale of that name.

    Raises:
        UnknownName: there is none.
    """
    if name not in scales:
        raise UnknownName("scale", name, scales)
    return scales[name]


def publish(
    figures: Iterable[Figure],
    title: str,
    facts: Sequence[str],
    out: Path,
    notify: Callable[[str], None],
) -> Path:
    """Writes `index.html` and `findings.json` into a folder; returns the path of the page.

    Args:
        figures: made one by one while they are iterated over.
        facts: what was measured, in a few words each.
        notify: receives a line on each claim as soon as its figure is made.
    """
    all_figures: list[Figure] = []
    for figure in figures:
        all_figures.append(figure)
        for claim in figure.claims:
            notify(f"{figure.name}: {claim.verdict}. {claim.text} {claim.evidence}")
    rows = [
        {**asdict(figure), "images": [path.relative_to(out).as_posix() for path in figure.images]}
        for figure in all_figures
    ]
    write_whole(out / "findings.json", json.dumps(rows, indent=1) + "\n")
    counts = Counter(claim.verdict for figure in all_figures for claim in figure.claims)
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in _WORDS if counts[verdict])
    html = render(
        "reproduction.html.j2",
        "reproduce",
        title,
        {"figures": all_figures, "words": _WORDS},
        lines=[f"Claims: {summary}."],
        facts=facts,
    )
    return write_whole(out / "index.html", html)
