"""What judges are worth, on the page of a run and in the terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.drift.judges import FILE, LEAST_KAPPA, Agreement
from holdfast.errors import RecordsError
from holdfast.records import RunData


@dataclass(frozen=True)
class JudgeRow:
    """A judge as the page shows it.

    Args:
        rule: whose, with its case.
        model, question: of the judge.
        follows, breaks: what it said of the labelled replies, in words.
        kappa: as text.
        forced: whether it scores although it agrees little with them.
    """

    rule: str
    model: str
    question: str
    follows: str
    breaks: str
    kappa: str
    forced: bool


def read_agreements(folder: Path) -> list[Agreement]:
    """What the judges of a run are worth; [] where it has none.

    Raises:
        RecordsError: the file is damaged.
    """
    path = folder / FILE
    if not path.is_file():
        return []
    try:
        rows = json.loads(path.read_bytes())
        return [
            Agreement(**{**row, "follows": tuple(row["follows"]), "breaks": tuple(row["breaks"])})
            for row in rows
        ]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise RecordsError(
            f"{path} cannot be read ({error}); repeat the command of the run, which writes it"
            " again."
        ) from None


def judges_section(runs: Sequence[RunData]) -> list[JudgeRow]:
    """The judges of some runs; [] where every measure is a rule."""
    return [_row(agreement) for run in runs for agreement in read_agreements(run.folder)]


def agreement_line(agreement: Agreement) -> str:
    """What a judge is worth, in a sentence."""
    row = _row(agreement)
    forced = f"; below {LEAST_KAPPA}, and forced" if row.forced else ""
    return (
        f"the judge {row.model} of {row.rule} agrees with {agreement.agreed} of {agreement.labels}"
        f" labelled replies, Cohen's kappa {row.kappa} (follows: {row.follows}; breaks:"
        f" {row.breaks}){forced}."
    )


def _row(agreement: Agreement) -> JudgeRow:
    rule = agreement.case + (f", rule {agreement.rule}" if agreement.rule else "")
    return JudgeRow(
        rule,
        agreement.model,
        agreement.question,
        _said(agreement.follows),
        _said(agreement.breaks),
        f"{agreement.kappa:.2f}",
        agreement.forced,
    )


def _said(counts: tuple[int, int, int]) -> str:
    """'3 yes, 1 no'; what was never said is left out."""
    words = zip(counts, ("yes", "no", "neither"), strict=True)
    return ", ".join(f"{count} {word}" for count, word in words if count)
