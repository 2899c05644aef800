"""The capabilities that a fix may cost: questions with known answers, and texts to continue.

A capability is given by name:

facts              facts that small models know: capitals, opposites, authors, ...
knowledge          the default model's own questions
mmlu:PATH          MMLU from a folder (test.jsonl.gz) or a file of JSON lines: subject, question,
                   choices, answer; mmlu:hub reads it from the hub
perplexity:FILE    a text
lm-eval:TASK       the questions of a multiple-choice task or group of lm-evaluation-harness, by
                   name or YAML file, if that package is installed

Each consists of items. An item of `facts` is the question "What is the capital of Italy?" with four
replies to score, of which "The capital of Italy is Rome." is the right one.
"""

import hashlib
import json
import random
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import UnknownName, UsageError
from holdfast.seeds import seed_of
from holdfast.study.capability_items import (
    Item,
    read_facts,
    read_knowledge,
    read_lm_eval_task,
    read_mmlu,
    read_passages,
)
from holdfast.validation import ranges

KINDS = ("facts", "knowledge", "mmlu:PATH", "mmlu:hub", "perplexity:FILE", "lm-eval:TASK")
DEFAULT_QUESTIONS = 200


@dataclass(frozen=True)
class Capability:
    """The items drawn from a source, the same for every method.

    Attributes:
        name: as the user gave it.
        items: the questions or passages.
        lettered: whether questions label their options A to D, so that the letter of an option can
            be read from a reply.
    """

    name: str
    items: tuple[Item, ...]
    lettered: bool = True

    @property
    def is_text(self) -> bool:
        """Whether the items are texts, which are measured by their perplexity."""
        return self.items[0].answer is None

    def numbers_in(self, conversation: int, conversations: int) -> range:
        """Returns the numbers of the items for one of several conversations, which take turns."""
        return range(conversation, len(self.items), conversations)

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hexadecimal, of the items."""
        content = json.dumps([[item.question, item.replies, item.answer] for item in self.items])
        return hashlib.sha256(content.encode()).hexdigest()


def load_capability(spec: str, questions: int | None = None, seed: int = 0) -> Capability:
    """Loads a capability: questions, or passages of a text, drawn by seed.

    Args:
        spec: one of `KINDS`.
        questions: the most questions or passages; by default all `facts`, and 200 of other kinds.

    Raises:
        UnknownName: the spec is none of `KINDS`.
        UsageError: the source cannot be read, or has fewer than four items.
    """
    if questions is not None:
        ranges.whole_number("calibrate", "questions", questions, 4)
    kind, _, source = spec.partition(":")
    if spec == "facts":
        items = read_facts()
    elif spec == "knowledge":
        items = read_knowledge()
    elif kind == "mmlu" and source:
        items = read_mmlu(source)
    elif kind == "perplexity" and source:
        items = read_passages(Path(source))
    elif kind == "lm-eval" and source:
        items = read_lm_eval_task(source)
    else:
        raise UnknownName("capability", spec, KINDS)
    if len(items) < 4:
        raise UsageError(
            f"The capability {spec!r} has {len(items)} questions or passages, and at least 4 are"
            " needed; give a larger source.",
            option="capability",
            value=spec,
            allowed="from 4 questions upwards",
        )
    rng = random.Random(seed_of("capability", seed))
    if questions is None:
        questions = len(items) if spec == "facts" else DEFAULT_QUESTIONS
    indices = rng.sample(range(len(items)), min(questions, len(items)))
    sample = tuple(items[index] for index in indices)
    return Capability(spec, sample, lettered=kind in ("knowledge", "mmlu"))


def default_capability(model: str, reading: str) -> str:
    """Returns the capability that suits a model and a reading.

    Small models know many facts, but can seldom name the letter of an option, as written answers
    require.
    """
    return "knowledge" if model == "default" or reading == "written" else "facts"
