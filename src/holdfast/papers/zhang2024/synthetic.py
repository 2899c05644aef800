"""Generates biographies and changed facts, so that every task runs offline.

The default model learns the tasks from the same generator. Names are divided among the splits, so
no text is in two of them. Training leaves out the cities, foods and so on that the rest of the
default model's training holds out. Validation and test draw from all values, and each of them has
sentences of its own.
"""

import hashlib
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import yaml

from holdfast.errors import UsageError
from holdfast.files import asset
from holdfast.papers.zhang2024.data import BIOGRAPHIES, FACTS, SPLITS, Biography, ChangedFact, Data
from holdfast.seeds import seed_of
from holdfast.validation import ranges

_TEXTS: dict[str, Any] = yaml.safe_load(asset("synthetic.yaml"))
NAMES = {pronoun: tuple(names.split()) for pronoun, names in _TEXTS["names"].items()}
POOLS = {name: tuple(values.split()) for name, values in _TEXTS["pools"].items()}
OCCUPATIONS = POOLS["job"]
FIRST, PLAIN, DISTRACTING = (tuple(_TEXTS[kind]) for kind in ("first", "plain", "distracting"))
PRONOUNS = {
    "she": {"s": "she", "o": "her", "p": "her", "h": "hers", "r": "herself"},
    "he": {"s": "he", "o": "him", "p": "his", "h": "his", "r": "himself"},
    "they": {"s": "they", "o": "them", "p": "their", "h": "theirs", "r": "themselves"},
}
RELATIONS = tuple((kind, pool, tuple(others)) for kind, pool, *others in _TEXTS["relations"])
_SYLLABLES = tuple("bre dal fi gor ka lo ma nel po ra sti ta vu zen".split())
_INVENTED_SHARE = 0.5  # of the names in training, which can be copied but not memorised


@dataclass(frozen=True)
class TextShape:
    """How long and how distracting texts are.

    Attributes:
        sentences: the minimum and the maximum number after the first sentence of a biography.
        distraction: the share of these that name another occupation.
        asides: the maximum number of sentences about others between a changed fact and its
            question; the number is drawn from 0 to this.
    """

    sentences: tuple[int, int] = (5, 10)
    distraction: float = 0.4
    asides: int = 3

    def __post_init__(self) -> None:
        low, high = self.sentences
        ranges.whole_number("a biography", "sentences", low, 1)
        ranges.whole_number("a biography", "sentences", high, low)
        ranges.Range(low, 16).check("a biography", "sentences", high)
        ranges.Range(0, 1).check("a biography", "distraction", self.distraction)
        ranges.whole_number("a changed fact", "asides", self.asides, 0)


def part_of(value: str) -> str:
    """The split to which a name belongs: about 1 in 10 is for validation, 1 in 10 for test."""
    position = sum(value.encode()) * 2654435761 % 2**32 / 2**32
    if position < 0.1:
        return "validation"
    return "test" if position < 0.2 else "train"


def biography(rng: random.Random, split: str, shape: TextShape = TextShape()) -> Biography:
    """Makes a person of the split: an occupation, then sentences, some of which name others."""
    pronoun = rng.choice(("she", "he"))
    name = _name(rng, split, pronoun)
    job = rng.choice(OCCUPATIONS)
    count = rng.randint(*shape.sentences)
    distracting = sum(rng.random() < shape.distraction for _ in range(count))
    distracting = min(distracting, len(DISTRACTING) - 2)
    templates = rng.sample(_texts_of_split(DISTRACTING, split), distracting)
    templates += rng.sample(_texts_of_split(PLAIN, split), count - distracting)
    if not any("{s}" in template.lower() for template in templates):  # no she or he to change
        others = [text for text in _texts_of_split(PLAIN, split) if text not in templates]
        templates[-1] = rng.choice([text for text in others if "{S}" in text])
    rng.shuffle(templates)
    sentences = [_fill(rng, template, split, without=job) for template in templates]
    first = _fill(rng, rng.choice(FIRST).replace("{name}", name).replace("{job}", job), split)
    text = " ".join([first, *(_say(sentence, pronoun) for sentence in sentences)])
    changed = " ".join([first, *(_say(sentence, "they") for sentence in sentences)])
    return Biography(name, job, first, text, changed)


def changed_fact(rng: random.Random, split: str, shape: TextShape = TextShape()) -> ChangedFact:
    """Makes a changed fact about a person, with facts about others before the question."""
    relation, pool, paraphrases = rng.choice(RELATIONS)
    subject = _name(rng, split, rng.choice(("she", "he")))
    old, new = rng.sample(_values(pool, split), 2)
    asides = []
    for _ in range(rng.randint(0, shape.asides)):
        other_relation, other_pool = rng.choice([(relation, pool), rng.choice(RELATIONS)[:2]])
        other = subject
        while other == subject:
            other = _name(rng, split, rng.choice(("she", "he")))
        target = rng.choice(_values(other_pool, split))
        asides.append(f"{other_relation.replace('{}', other)} {target}.")
    phrasings = paraphrases[:-1] if split == "train" else paraphrases
    questions = tuple(question.replace("{}", subject) for question in phrasings)
    return ChangedFact(subject, relation, old, new, questions, " ".join(asides))


def make_data(seed: int, split: str, count: int, shape: TextShape = TextShape()) -> Data:
    """Makes biographies and changed facts by number, so that a larger set extends a smaller one."""
    sizes = {"train": 256, split: count} if split != "train" else {"train": 256 + count}
    makers: dict[str, Callable[..., Any]] = {BIOGRAPHIES: biography, FACTS: changed_fact}
    items: dict[str, dict[str, list[Any]]] = {kind: {} for kind in makers}
    for kind, make in makers.items():
        for part, size in sizes.items():
            seeds = [seed_of(kind, seed, part, number) for number in range(size)]
            items[kind][part] = [make(random.Random(item_seed), part, shape) for item_seed in seeds]
    content = repr([asdict(shape), [items[kind][split] for kind in items]])
    fingerprint = hashlib.sha256(content.encode()).hexdigest()[:16]
    return Data("synthetic", fingerprint, items, OCCUPATIONS)


def _name(rng: random.Random, split: str, pronoun: str) -> str:
    if split not in SPLITS:
        raise UsageError(f"There is no split {split!r}; use {', '.join(SPLITS)}.")
    while True:
        if split == "train" and rng.random() < _INVENTED_SHARE:
            name = "".join(rng.sample(_SYLLABLES, rng.choice((2, 2, 3)))).capitalize()
        else:
            name = rng.choice(NAMES[pronoun])
        if part_of(name) == split:
            return name


def _values(pool: str, split: str) -> list[str]:
    """The values from which a split draws; training has no held-out ones, but all occupations."""
    return [
        value
        for value in POOLS[pool]
        if split != "train" or pool == "job" or part_of(value) == "train"
    ]


def _texts_of_split(templates: Sequence[str], split: str) -> list[str]:
    """The templates of a split: the last two are for validation and test alone."""
    held_out = {"train": [], "validation": [templates[-2]], "test": [templates[-1]]}[split]
    return [*templates[:-2], *held_out]


def _fill(rng: random.Random, template: str, split: str, without: str = "") -> str:
    """Fills the slots of a template, such as {city}, with values other than `without`."""

    def draw(slot: re.Match[str]) -> str:
        if slot[1] not in POOLS:
            return slot[0]
        return rng.choice([value for value in _values(slot[1], split) if value != without])

    return re.sub(r"\{(\w{2,})\}", draw, template)


def _say(sentence: str, pronoun: str) -> str:
    """Puts the forms of a pronoun and of its verbs into a sentence: "{S} [like|likes] it"."""
    forms = dict(PRONOUNS[pronoun])
    number = 1 if pronoun == "they" else 2  # of the group with the form of the verb
    sentence = re.sub(r"\[(\w+)\|(\w+)\]", lambda verb: verb[number], sentence)
    forms |= {name.upper(): form.capitalize() for name, form in forms.items()}
    return re.sub(r"\{(\w)\}", lambda slot: forms[slot[1]], sentence)
