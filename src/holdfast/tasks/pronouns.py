"""Pronouns changing: rewrite a biography with "they" (Zhang et al. 2024, sections 4 and A.1).
Emphasised: the instruction.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.tasks.data import Biography
from holdfast.tasks.metrics import SUBJECTS, all_pronouns_changed, pronouns_changed, words_of
from holdfast.tasks.sample import BIOGRAPHIES, INSTRUCTIONS, Sample, Task

# The strings that define the task, from appendix A.1, spelled as there.
WORDINGS = {
    "original": (
        "For the aforementioned text, substitute 'she' and 'he' with 'they' and generate the"
        " occupation of {person} after changing pronouns."
    ),
    "shortened": (
        "Change 'she' and 'he' with 'they' and answer the occupation of {person} after replacing"
        " the pronouns"
    ),
    "rephrased": (
        "For the aforementioned descriptions, replace 'she' and 'he' with 'they' in the"
        " aformentioned text and generate the new text after replacing the pronouns."
    ),
}


def ask(biography: Biography, instruction: str, candidates: Sequence[str] = ()) -> Sample:
    """The biography with the instruction of that wording behind it."""
    behind = WORDINGS[instruction].replace("{person}", biography.name)
    return Sample(
        (f"{biography.text} {behind}",),
        (behind,),
        biography.occupation,
        biography.changed,
        biography.text,
    )


def score(sample: Sample, reply: str) -> dict[str, float]:
    """Whether every she and he was changed, and whether every pronoun was."""
    return {
        "accuracy": float(pronouns_changed(reply)),
        "all changed": float(all_pronouns_changed(reply)),
    }


def _fits(biography: Biography) -> bool:
    """Only a text with a she or a he has one to change."""
    return not SUBJECTS.isdisjoint(words_of(biography.text))


TASK = Task(
    "pronouns",
    BIOGRAPHIES,
    ("accuracy", "all changed"),
    INSTRUCTIONS,
    ask,
    score,
    _fits,
    fluent=True,
    max_new_tokens=256,
)
