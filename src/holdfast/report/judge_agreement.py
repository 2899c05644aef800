"""How well judges agree with labelled replies, on the page of a run and in the terminal."""

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from holdfast.drift.judges import MIN_KAPPA
from holdfast.errors import RecordsError, reason_of
from holdfast.records.belonging import describe_fault
from holdfast.records.judge_records import AGREEMENTS, JudgeAgreement, VerdictCounts

_AGREEMENTS = TypeAdapter(list[JudgeAgreement])


def read_agreements(folder: Path) -> list[JudgeAgreement]:
    """The agreement of each judge of a run; [] if no model judged it.

    Raises:
        RecordsError: the file of agreements is damaged or cannot be read.
    """
    path = folder / AGREEMENTS
    if not path.is_file():
        return []
    cure = "repeat the command of the run, which writes it again."
    try:
        return _AGREEMENTS.validate_json(path.read_bytes())
    except ValidationError as error:
        raise RecordsError(f"{describe_fault(str(path), error)}; {cure}", value=path) from None
    except OSError as error:
        raise RecordsError(
            f"{path} cannot be read ({reason_of(error)}); {cure}", value=path
        ) from None


def agreement_line(agreement: JudgeAgreement) -> str:
    """A sentence on how many labels a judge agrees with."""
    topic = agreement.case
    if agreement.rule:
        topic = f"{agreement.case}, rule {agreement.rule}"
    evidence = (
        f"the judge {agreement.model} of {topic} agrees with {agreement.agreed} of"
        f" {agreement.labels} labelled replies, Cohen's kappa {agreement.kappa:.2f} (follows:"
        f" {counts_text(agreement.follows)}; breaks: {counts_text(agreement.breaks)})"
    )
    if agreement.forced:
        return f"{evidence}; that is below {MIN_KAPPA}, but its use is forced."
    return f"{evidence}."


def counts_text(counts: VerdictCounts) -> str:
    """'3 yes, 1 no'; a verdict that was never given is left out."""
    verdicts = zip(counts, VerdictCounts._fields, strict=True)
    return ", ".join(f"{count} {verdict}" for count, verdict in verdicts if count)
