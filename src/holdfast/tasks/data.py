"""Biographies and changed facts, which the samples of tasks are made of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# The 28 occupations of the release, in the order of the numbers that converted copies give them.
OCCUPATIONS = tuple(
    name.replace("_", " ")
    for name in """accountant architect attorney chiropractor comedian composer dentist
dietitian dj filmmaker interior_designer journalist model nurse painter paralegal pastor
personal_trainer photographer physician poet professor psychologist rapper software_engineer
surgeon teacher yoga_teacher""".split()
)


@dataclass(frozen=True)
class Biography:
    """A person and what is told about them.

    Args:
        name: by which the questions call the person.
        occupation: the right answer.
        first: the sentence that names the occupation.
        text: all of it, `first` included.
        changed: the text with she and he, and what goes with them, changed to they.
    """

    name: str
    occupation: str
    first: str
    text: str
    changed: str


@dataclass(frozen=True)
class ChangedFact:
    """A fact that was true and another that is.

    Args:
        subject: whom it is about.
        relation: with "{}" where the subject stands; the target follows it ("{} plays the").
        old, new: the targets.
        paraphrases: questions in other words, subject included, to be continued by the target.
        aside: what is told between the facts and the question.
    """

    subject: str
    relation: str
    old: str
    new: str
    paraphrases: tuple[str, ...] = ()
    aside: str = ""

    @property
    def question(self) -> str:
        """The relation and its subject, to be continued by the target."""
        return self.relation.replace("{}", self.subject)

    def statement(self, target: str) -> str:
        """The fact with that target, without a full stop."""
        return f"{self.question} {target}"


@dataclass(frozen=True)
class Data:
    """Biographies and changed facts by split.

    Args:
        name: for people.
        fingerprint: another one when the samples differ.
        items: per kind (BIOGRAPHIES, FACTS) and split, in the order they are taken.
        candidates: the occupations to choose from.
    """

    name: str
    fingerprint: str
    items: Mapping[str, Mapping[str, Sequence[Any]]]
    candidates: tuple[str, ...] = ()


def change_pronouns(text: str) -> str:
    """A text with she and he, and what goes with them, changed to they; verbs stay as they are, as
    in the paper's demonstrations.

    "her" becomes "their" before a word that can be owned and "them" elsewhere, which is a guess
    about the word's kind."""

    def change(match: re.Match[str]) -> str:
        word = match[0].lower()
        if word == "her":
            ahead = re.match(r"[ \n]+([A-Za-z][\w-]*)", text[match.end() :])
            made = "their" if ahead and ahead[1].lower() not in _NOT_OWNED else "them"
        else:
            made = _PLURAL[word]
        return made.capitalize() if match[0][0].isupper() else made

    return re.sub(
        r"\b(?:she|he|hers|her|him|his|herself|himself)\b", change, text, flags=re.IGNORECASE
    )


_PLURAL = {
    "she": "they",
    "he": "they",
    "him": "them",
    "his": "their",
    "hers": "theirs",
    "herself": "themselves",
    "himself": "themselves",
}
_NOT_OWNED = frozenset(
    """a an the and or but to for from in on at by with of about as that which who when where
while because if so than then after before into over under is was are were be has had will would
can could may might should this these those not again too also here there well today now she he
they it""".split()
)
