"""How well judges agree with labelled replies, on the page of a run and in the terminal."""

import json
from collections.abc import Sequence
from pathlib import Path

from holdfast.drift.judges import FILE, LEAST_KAPPA, Agreement
from holdfast.errors import RecordsError, reason_of


def read_agreements(folder: Path) -> list[Agreement]:
    """The agreement of each judge of a run; [] if it has none."""
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
            f"{path} cannot be read ({reason_of(error)}); repeat the command of the run, which"
            " writes it again.",
            value=path,
        ) from None


def agreement_line(agreement: Agreement) -> str:
    """The agreement of a judge, in a sentence."""
    judged = agreement.case
    if agreement.rule:
        judged = f"{agreement.case}, rule {agreement.rule}"
    agrees = (
        f"the judge {agreement.model} of {judged} agrees with {agreement.agreed} of"
        f" {agreement.labels} labelled replies, Cohen's kappa {agreement.kappa:.2f} (follows:"
        f" {counts_text(agreement.follows)}; breaks: {counts_text(agreement.breaks)})"
    )
    return f"{agrees}; below {LEAST_KAPPA}, and forced." if agreement.forced else f"{agrees}."


def counts_text(counts: Sequence[int]) -> str:
    """'3 yes, 1 no'; an answer that was never given is left out."""
    answers = zip(counts, ("yes", "no", "neither"), strict=True)
    return ", ".join(f"{count} {answer}" for count, answer in answers if count)
