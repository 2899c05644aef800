"""Capability other than following the prompt: questions and texts put to a model in the middle of
a dialog.

facts              facts that small models know: capitals, opposites, authors, ...
knowledge          the default model's own questions
mmlu:PATH          MMLU from a folder (test.jsonl.gz) or a file of JSON lines: subject, question,
                   choices, answer; mmlu:hub reads it from the hub
perplexity:FILE    a text
lm-eval:TASK       the questions of a multiple-choice task or group of lm-evaluation-harness, by
                   name or YAML file, if that package is installed
"""

import hashlib
import json
import random
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import UnknownName, UsageError
from holdfast.seeds import seed_of
from holdfast.study.capability_items import Item, facts, harness, knowledge, mmlu, passages
from holdfast.validation import ranges

KINDS = ("facts", "knowledge", "mmlu:PATH", "mmlu:hub", "perplexity:FILE", "lm-eval:TASK")


@dataclass(frozen=True)
class Capability:
    """A source of items, drawn with a seed and the same for every method."""

    name: str
    items: tuple[Item, ...]
    # whether the options are named A, B, C, D in the question, so that a written reply can be read
    lettered: bool = True

    @property
    def is_text(self) -> bool:
        """Whether items are texts, measured by their perplexity."""
        return self.items[0].answer is None

    def asked_in(self, conversation: int, count: int) -> range:
        """The numbers of the items that a conversation is asked, of `count` that share them."""
        return range(conversation, len(self.items), count)

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hexadecimal, of the items."""
        content = json.dumps([[item.question, item.replies, item.answer] for item in self.items])
        return hashlib.sha256(content.encode()).hexdigest()


def load_capability(spec: str, questions: int | None = None, seed: int = 0) -> Capability:
    """Loads a capability test: at most `questions` questions or 64-word passages, drawn by seed.

    Args:
        spec: one of `KINDS`.
        questions: all of `facts` by default, and 200 of the others.
    """
    if questions is not None:
        ranges.whole_number("calibrate", "questions", questions, 4)
    kind, _, where = spec.partition(":")
    if spec == "facts":
        items = facts()
    elif spec == "knowledge":
        items = knowledge()
    elif kind == "mmlu" and where:
        items = mmlu(where)
    elif kind == "perplexity" and where:
        items = passages(Path(where))
    elif kind == "lm-eval" and where:
        items = harness(where)
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
    count = min(questions or (len(items) if spec == "facts" else 200), len(items))
    drawn = tuple(items[index] for index in rng.sample(range(len(items)), count))
    return Capability(spec, drawn, lettered=kind in ("knowledge", "mmlu"))


def usual_capability(model: str, reading: str) -> str:
    """The capability that suits a model: small models know many facts, but seldom which letter an
    option has, which only written answers need.
    """
    return "knowledge" if model == "default" or reading == "written" else "facts"
