"""A measure for what no rule can be written for: a model answers a question about the reply.

It is no function of the text alone, so it scores nothing by itself: `drift.run` asks the judge
between a reply and its record (`drift.judges`).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.errors import UsageError
from holdfast.measures.kinds import is_text
from holdfast.measures.registry import BUILDERS, JUDGE, Measure, Score

LEAST_LABELS = 4  # of each kind: a judge that tosses a coin then passes less than 1 time in 20
_FIELDS = ("judge", "model", "endpoint_model")


def build_judge(arguments: Mapping[str, Any], allow_code: bool) -> Measure:
    """A judged measure.

    Args:
        arguments: `judge`, a question whose answer is yes where a reply keeps to its prompt;
            `model`, a model as `--model` takes it; and with a URL, perhaps `endpoint_model`.
        allow_code: plays no part.

    Raises:
        UsageError: another field, or one that is no text.
    """
    for field, value in arguments.items():
        if field not in _FIELDS:
            near = difflib.get_close_matches(str(field), _FIELDS, n=1)
            cure = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(_FIELDS)}."
            raise UsageError(f"A judge has no field {field!r}; {cure}")
        if not is_text(value):
            raise UsageError(f"The field {field!r} of a judge is {value!r}; give it a text.")
    for field in ("judge", "model"):
        if field not in arguments:
            what = "a question to be answered with yes" if field == "judge" else "a model or URL"
            raise UsageError(f"A judge needs the field {field!r}; give it {what}.")
    return Measure(JUDGE, dict(arguments), _refuse)


def _refuse(text: str, judge: str, model: str, endpoint_model: str = "") -> Score:
    raise UsageError(
        f"The judge {judge!r} is a question for the model {model!r}, which only a drift run asks;"
        " use a measure that `holdfast measures` lists."
    )


def check_labels(follows: Sequence[str], breaks: Sequence[str], who: str) -> None:
    """Refuses a judge that cannot be checked.

    Args:
        follows, breaks: replies that keep to its rule, and replies that do not.
        who: begins the sentence.

    Raises:
        UsageError: names how many labelled replies it has, and how many it needs.
    """
    for label, replies in (("follows", follows), ("breaks", breaks)):
        if len(set(replies)) < LEAST_LABELS:
            raise UsageError(
                f"{who} has {len(set(replies))} replies under {label!r}; give it {LEAST_LABELS}"
                " different ones or more there, on which it is checked before it scores."
            )


def verdict_of(answer: str) -> bool | None:
    """Yes or no, where an answer says one of the two; None where it says both or neither.

    The first word decides where it is one of them.

    >>> verdict_of("Yes."), verdict_of("**No**, it does not."), verdict_of("Perhaps.")
    (True, False, None)
    """
    words = ["".join(filter(str.isalpha, word)) for word in answer.lower().split()]
    said = [word == "yes" for word in words if word in ("yes", "no")]
    if not said or (words[0] not in ("yes", "no") and len(set(said)) > 1):
        return None
    return said[0]


def cohens_kappa(labels: Sequence[bool], verdicts: Sequence[bool | None]) -> float:
    """How far verdicts agree with labels beyond chance (Cohen 1960); 1: wholly, 0: as by chance.

    A verdict that is neither yes nor no agrees with no label.

    Args:
        labels: of both kinds, at least one each.
        verdicts: of the same replies.
    """
    count = len(labels)
    pairs = list(zip(labels, verdicts, strict=True))
    agreed = sum(label is verdict for label, verdict in pairs) / count
    chance = sum(
        labels.count(answer) * list(verdicts).count(answer) / count**2 for answer in (True, False)
    )
    return (agreed - chance) / (1 - chance)


BUILDERS[JUDGE] = build_judge
