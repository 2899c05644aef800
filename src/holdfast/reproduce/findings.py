"""What a reproduced figure or table is, and how a claim is judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.analysis.statistics import Estimate
from holdfast.analysis.verdicts import NOT_JUDGED, judge, tell
from holdfast.report.wording import with_interval


@dataclass(frozen=True)
class Claim:
    """What a paper says of a figure.

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


def spelled(value: Estimate) -> str:
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
