"""JSON formatting: name a person's occupation as a JSON object (Zhang et al. 2024, sections 4 and
A.1). Emphasised: the instruction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from holdfast.tasks.data import Biography
from holdfast.tasks.metrics import first_object, holds_target
from holdfast.tasks.sample import BIOGRAPHIES, INSTRUCTIONS, Sample, Task

# The strings that define the task, from appendix A.1; "{context}" divides what stands before it
# from what stands behind it.
_ANSWER = "Answer the occupation of {person} and generate the answer as json format."
_EXAMPLE = _ANSWER + ' Here is an example: {"name": , "occupation": , }.'
WORDINGS = {
    "original": ("", _EXAMPLE + " Now generate the answer."),
    "shortened": ("", _ANSWER),
    "rephrased": (_EXAMPLE, "Now generate the answer."),
}


def ask(biography: Biography, instruction: str, candidates: Sequence[str] = ()) -> Sample:
    """The biography with the instruction of that wording."""
    before, behind = (part.replace("{person}", biography.name) for part in WORDINGS[instruction])
    parts = tuple(part for part in (before, behind) if part)
    prompt = " ".join(part for part in (before, biography.text, behind) if part)
    reply = json.dumps(
        {"name": biography.name, "occupation": biography.occupation}, ensure_ascii=False
    )
    return Sample((prompt,), parts, biography.occupation, reply, biography.text)


def score(sample: Sample, reply: str) -> dict[str, float]:
    """Whether the reply holds a JSON object, and whether the first one holds the occupation."""
    found = first_object(reply)
    return {
        "format": float(found is not None),
        "prediction": float(found is not None and holds_target(found, sample.target)),
    }


TASK = Task(
    "json",
    BIOGRAPHIES,
    ("format", "prediction"),
    INSTRUCTIONS,
    ask,
    score,
    lambda person: True,
    fluent=False,
    max_new_tokens=64,
)
