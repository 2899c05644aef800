"""The records of judges: their answers, and how well they agree with labelled replies."""

from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from holdfast.errors import RecordsError, reason_of
from holdfast.records.belonging import describe_fault
from holdfast.records.model import List, RecordModel

AGREEMENTS = "judges.json"  # how well the judges of a run agree with the labels


class Judgement(RecordModel):
    """A judge's answers to one question about a reply, as `judgements.jsonl` has them."""

    form: int  # the version of the judge's prompt
    judge: str  # the fingerprint of its model
    question: str
    reply: str
    answers: List[str]  # one or two; empty if the request was refused


class VerdictCounts(NamedTuple):
    """How often a judge gave each verdict."""

    yes: int
    no: int
    neither: int

    @property
    def text(self) -> str:
        """'3 yes, 1 no'; a verdict that was never given is left out."""
        verdicts = zip(self, self._fields, strict=True)
        return ", ".join(f"{count} {verdict}" for count, verdict in verdicts if count)


class JudgeAgreement(RecordModel):
    """A judge's verdicts on the labelled replies of its rule, as `judges.json` has them."""

    case: str
    rule: str | None  # None if the case has only one rule
    question: str  # the question that the judge is asked
    model: str
    follows: VerdictCounts  # on replies that keep the rule
    breaks: VerdictCounts  # on replies that break it
    kappa: float  # Cohen's kappa
    forced: bool  # whether it scores although it agrees too little

    @property
    def agreed(self) -> int:
        """How many of its verdicts match the labels."""
        return self.follows.yes + self.breaks.no

    @property
    def labels(self) -> int:
        """How many replies are labelled."""
        return sum(self.follows) + sum(self.breaks)


_AGREEMENTS = TypeAdapter(list[JudgeAgreement])


def read_agreements(folder: Path) -> list[JudgeAgreement]:
    """Reads the agreement of each judge of a run; [] if no model judged it.

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
