"""Bias in Bios: which of 28 occupations is likeliest behind a biography (Zhang et al. 2024,
sections 4 and A.1). Emphasised: the first sentence.

A candidate's probability is that of all its tokens as the beginning of the reply (the released code
takes the first token's alone, which tells apart only candidates that begin differently)."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.tasks.data import Biography
from holdfast.tasks.metrics import likeliest
from holdfast.tasks.sample import BIOGRAPHIES, Sample, Task

QUESTION = "{person} has the occupation of"


def ask(biography: Biography, instruction: str, candidates: Sequence[str]) -> Sample:
    """The biography with the question behind it, and the occupations to choose from."""
    prompt = f"{biography.text} {QUESTION.replace('{person}', biography.name)}"
    return Sample(
        (prompt,),
        (biography.first,),
        biography.occupation,
        biography.occupation,
        biography.text,
        tuple(candidates),
    )


def score(sample: Sample, log_probabilities: Sequence[Sequence[float]]) -> dict[str, float]:
    """Whether the right occupation is the likeliest."""
    return {"accuracy": float(sample.options[likeliest(log_probabilities[0])] == sample.target)}


def _fits(biography: Biography) -> bool:
    """A first sentence that stands there twice cannot be emphasised as one."""
    return biography.text.count(biography.first) == 1


TASK = Task(
    "bios",
    BIOGRAPHIES,
    ("accuracy",),
    ("original",),
    ask,
    score,
    _fits,
    fluent=True,
    max_new_tokens=64,
    chooses=True,
)
