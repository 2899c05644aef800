"""A measure for rules that no function can decide: a model answers a question about the reply.

It is not a function of the text, so it scores nothing by itself: `drift.run` asks the judge
between a reply and its record (`drift.judges`).
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from holdfast.errors import UsageError
from holdfast.measures.arguments import Text, takes
from holdfast.measures.measure_specs import BUILDERS, Measure, check_fields
from holdfast.measures.registry import JUDGE, RegisteredMeasure
from holdfast.measures.scores import Score

MIN_LABELS = 4  # of each kind; a judge that tosses a coin passes these less than 1 time in 20

_Question = Annotated[str, takes("a question to be answered with yes", "", pattern=r"\S")]
_Model = Annotated[str, takes("a model or URL", "", pattern=r"\S")]


def build_judge(arguments: Mapping[str, Any], allow_code: bool) -> Measure:
    """Builds a measure that is a question for a model: yes means that a reply follows its rule."""
    fields = RegisteredMeasure(_refuse).model
    check_fields(fields, arguments, "a judge")
    return Measure(JUDGE, dict(arguments), _refuse)


def _refuse(text: str, judge: _Question, model: _Model, endpoint_model: Text = "") -> Score:
    raise UsageError(
        f"The judge {judge!r} is a question for the model {model!r}, which only a drift run asks;"
        " use a measure that `holdfast measures` lists."
    )


def check_labels(follows: Sequence[str], breaks: Sequence[str], who: str) -> None:
    """Refuses a judge with too few labelled replies of a kind.

    Args:
        follows, breaks: the replies that follow the rule, and those that break it.
        who: what the message calls the judge, such as "the judge of the case 'tea'".
    """
    for label, replies in (("follows", follows), ("breaks", breaks)):
        if len(set(replies)) < MIN_LABELS:
            raise UsageError(
                f"{who} has {len(set(replies))} replies under {label!r}; give it {MIN_LABELS}"
                " different ones or more there, on which it is checked before it scores."
            )


def verdict_of(answer: str) -> bool | None:
    """Reads a judge's answer: True for yes, False for no, None if it says both or neither.

    A first word that is yes or no decides.

    >>> verdict_of("Yes."), verdict_of("**No**, it does not."), verdict_of("Perhaps.")
    (True, False, None)
    """
    words = ["".join(filter(str.isalpha, word)) for word in answer.lower().split()]
    verdicts = [word == "yes" for word in words if word in ("yes", "no")]
    if not verdicts or (words[0] not in ("yes", "no") and len(set(verdicts)) > 1):
        return None
    return verdicts[0]


def cohens_kappa(labels: Sequence[bool], verdicts: Sequence[bool | None]) -> float:
    """Returns the agreement of verdicts with labels beyond chance (Cohen 1960).

    A verdict that is None agrees with no label.
    """
    count = len(labels)
    pairs = list(zip(labels, verdicts, strict=True))
    agreed = sum(label is verdict for label, verdict in pairs) / count
    chance = sum(
        labels.count(answer) * list(verdicts).count(answer) / count**2 for answer in (True, False)
    )
    return (agreed - chance) / (1 - chance)


BUILDERS[JUDGE] = build_judge
