"""How well judges agree with labelled replies, on the page of a run and in the terminal."""

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from holdfast.drift.judges import MIN_KAPPA
from holdfast.errors import RecordsError, reason_of
from holdfast.records.belonging import first_fault
from holdfast.records.judge_records import AGREEMENTS, Agreement, VerdictCounts

_AGREEMENTS = TypeAdapter(list[Agreement])


def read_agreements(folder: Path) -> list[Agreement]:
    """The agreement of each judge of a run; [] if it has none."""
    path = folder / AGREEMENTS
    if not path.is_file():
        return []
    try:
        return _AGREEMENTS.validate_json(path.read_bytes())
    except ValidationError as error:
        why = first_fault(error)
    except OSError as error:
        why = f"cannot be read ({reason_of(error)})"
    raise RecordsError(
        f"{path} {why}; repeat the command of the run, which writes it again.", value=path
    )


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
    return f"{agrees}; below {MIN_KAPPA}, and forced." if agreement.forced else f"{agrees}."


def counts_text(counts: VerdictCounts) -> str:
    """'3 yes, 1 no'; an answer that was never given is left out."""
    verdicts = zip(counts, VerdictCounts._fields, strict=True)
    return ", ".join(f"{count} {verdict}" for count, verdict in verdicts if count)
