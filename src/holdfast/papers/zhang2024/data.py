"""Tasks, their samples, and the biographies and changed facts that samples are made from."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.errors import PromptError

SPLITS = ("train", "validation", "test")
INSTRUCTIONS = ("original", "shortened", "rephrased")
BIOGRAPHIES = "biographies"
FACTS = "changed facts"
# the 28 occupations of the release
OCCUPATIONS = tuple(
    name.replace("_", " ")
    for name in """accountant architect attorney chiropractor comedian composer dentist
dietitian dj filmmaker interior_designer journalist model nurse painter paralegal pastor
personal_trainer photographer physician poet professor psychologist rapper software_engineer
surgeon teacher yoga_teacher""".split()
)

_PLURALS = {
    **dict.fromkeys(("she", "he"), "they"),
    **{"him": "them", "his": "their", "hers": "theirs"},
    **dict.fromkeys(("herself", "himself"), "themselves"),
}
# words that cannot be what "her" owns, so that "her" before them is an object
_NOT_A_POSSESSION = frozenset(
    """a an the and or but to for from in on at by with of about as that which who when where
while because if so than then after before into over under is was are were be has had will would
can could may might should this these those not again too also here there well today now she he
they it""".split()
)


@dataclass(frozen=True)
class Biography:
    """A person and a text about them."""

    name: str  # the name in questions about the person
    occupation: str  # the right answer
    first: str  # the sentence that names the occupation
    text: str  # the whole text, including `first`
    changed: str  # the text with she, he and their other forms changed to they


@dataclass(frozen=True)
class ChangedFact:
    """A fact that was true, and the fact that replaces it.

    Attributes:
        relation: with "{}" in place of the subject, and before the target ("{} plays the").
        old, new: the targets.
        paraphrases: the question in other words, to be continued by the target.
        aside: text between the facts and the question.
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
    """Biographies and changed facts by kind (BIOGRAPHIES, FACTS) and split, in order."""

    name: str
    fingerprint: str  # differs when the samples differ
    items: Mapping[str, Mapping[str, Sequence[Any]]]
    candidates: tuple[str, ...] = ()  # the occupations to choose from


@dataclass(frozen=True)
class Sample:
    """One question of a task.

    Attributes:
        prompts: the user's message. If there are several, the first is the question, and the
            others rephrase it.
        emphasis: the parts to emphasise, each of which is in every prompt exactly once.
        target: the right answer, as a word or name.
        reply: a right reply to the first prompt, for demonstrations.
        options: continuations whose probabilities are compared; () if a reply is generated.
    """

    prompts: tuple[str, ...]
    emphasis: tuple[str, ...]
    target: str
    reply: str
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for prompt in self.prompts:
            spans_of(prompt, self.emphasis)


@dataclass(frozen=True)
class Task:
    """A task of Zhang et al. 2024, section 4.

    Attributes:
        requires: what its samples are made from, BIOGRAPHIES or FACTS.
        metrics: the names of its scores, the main one first.
        ask: makes a sample from a biography or a changed fact, the wording and the candidates.
        score: takes a sample and either the reply or the log-probabilities of its options,
            [prompt][option]; returns a number in [0, 1] for each metric that the sample has
            prompts for.
        instructions: its wordings in the paper.
        fits: whether a biography or a changed fact can be asked about.
        fluent: whether the paper measures the fluency of its replies.
        chooses: whether the probabilities of continuations are compared, instead of scoring a
            reply.
    """

    name: str
    requires: str
    metrics: tuple[str, ...]
    ask: Callable[[Any, str, Sequence[str]], Sample]
    score: Callable[[Sample, Any], dict[str, float]]
    instructions: tuple[str, ...] = INSTRUCTIONS[:1]
    fits: Callable[[Any], bool] = lambda item: True
    fluent: bool = True
    max_new_tokens: int = 64
    chooses: bool = False


def spans_of(prompt: str, emphasis: Sequence[str]) -> list[tuple[int, int]]:
    """The start and the end (exclusive) of each emphasised part, in the order of the prompt.

    Raises:
        PromptError: a part is empty, or is not in the prompt exactly once.
    """
    for part in emphasis:
        if not part or prompt.count(part) != 1:
            raise PromptError(
                f"The emphasised part {part[:80]!r} occurs {prompt.count(part) if part else 0}"
                f" times in {prompt[:80]!r}...; it must occur there once."
            )
    return sorted((prompt.index(part), prompt.index(part) + len(part)) for part in emphasis)


def mark(prompt: str, emphasis: Sequence[str], sign: str) -> str:
    """Puts `sign` before and after each emphasised part of a prompt (marked prompting)."""
    for start, stop in reversed(spans_of(prompt, emphasis)):
        prompt = f"{prompt[:start]}{sign}{prompt[start:stop]}{sign}{prompt[stop:]}"
    return prompt


def change_pronouns(text: str) -> str:
    """Changes she, he and their other forms to they; the next word decides the form of "her"."""

    def change(match: re.Match[str]) -> str:
        word = match[0].lower()
        if word == "her":
            following = re.match(r"[ \n]+([A-Za-z][\w-]*)", text[match.end() :])
            is_possessive = following and following[1].lower() not in _NOT_A_POSSESSION
            plural = "their" if is_possessive else "them"
        else:
            plural = _PLURALS[word]
        return plural.capitalize() if match[0][0].isupper() else plural

    return re.sub(
        r"\b(?:she|he|hers|her|him|his|herself|himself)\b", change, text, flags=re.IGNORECASE
    )
