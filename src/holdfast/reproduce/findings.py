"""What a reproduced figure or table is, and how a claim is judged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from holdfast.report.statistics import Estimate

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"


@dataclass(frozen=True)
class Claim:
    """What a paper says of a figure.

    Args:
        text: the claim in our words.
        verdict: "supported", "contradicted" or "undecided" by this run.
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


def judge(found: Estimate, sign: int) -> str:
    """Supported if the interval lies on the side of `sign` (+1 or -1) of 0, contradicted if on the other, else undecided."""
    if not found.excludes_zero or found.mean is None:
        return UNDECIDED
    return SUPPORTED if found.mean * sign > 0 else CONTRADICTED


def spelled(found: Estimate) -> str:
    """+0.123 [+0.045, +0.201], over n conversations or samples."""
    if found.mean is None:
        return "not measured"
    if found.low is None or found.high is None:
        return f"{found.mean:+.3f} (n = {found.n}: no interval)"
    return f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}] (n = {found.n})"
