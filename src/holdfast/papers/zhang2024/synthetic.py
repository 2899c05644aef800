"""Biographies and changed facts of our own, so that every task runs offline; the default model
learns the tasks from the same generator.

Names are divided among the splits, so no text is in two of them. What training draws elsewhere
(cities, foods, ...) leaves out the values that the rest of the default model's training holds out;
validation and test draw from all of them, and each has sentences of its own."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from holdfast import ranges
from holdfast.errors import UsageError
from holdfast.papers.zhang2024.data import BIOGRAPHIES, FACTS, SPLITS, Biography, ChangedFact, Data
from holdfast.seeds import seed_of

NAMES = {
    "she": tuple(
        """Alice Anna Bianca Carla Chloe Clara Dana Daria Dora Elena Ella Emma Esther Eva Fatima
Fiona Frida Gina Gloria Grace Greta Hana Hannah Helen Ida Ines Irene Iris Jade Jana Jenny Joan
Julia Kate Kira Lara Laura Leila Lena Lily Linda Lisa Lucy Lydia Mabel Maria Mary Maya Mia Mina
Mira Mona Nadia Nancy Natalie Nina Nora Olga Paula Petra Pia Rachel Rebecca Rita Rosa Ruby Ruth
Sara Selma Sofia Stella Susan Tara Tina Uma Ursula Vera Viola Wanda Wendy Yara Zoe""".split()
    ),
    "he": tuple(
        """Amir Arthur Ben Boris Cedric Colin Daniel David Diego Edgar Elias Emil Eric Fabian
Felix Frank Gustav Harry Hassan Hector Henry Hugo Ian Igor Isaac Ivan Jack Jacob James Jasper
Jonas Jose Julian Karim Karl Keith Kenji Kurt Leo Liam Louis Lucas Luis Marco Mark Martin Max
Miguel Milo Mohamed Neil Noah Oliver Omar Oscar Otto Paul Pedro Peter Quentin Ralph Raul Robert
Roman Sam Samir Sean Simon Stefan Theo Thomas Tom Victor Walter Will Xavier Yusuf""".split()
    ),
}
OCCUPATIONS = tuple(
    """baker banker barber chef dancer dentist doctor driver farmer gardener judge lawyer
librarian lifeguard mechanic miner nurse painter pilot poet priest sailor scientist singer
soldier tailor teacher waiter""".split()
)
_POOLS = {
    "city": (
        "Paris London Rome Madrid Berlin Vienna Prague Lisbon Dublin Oslo Athens Cairo Tokyo Lima"
        " Boston Chicago Dallas Denver Toronto Moscow Delhi Sydney Nairobi Havana Geneva Milan"
        " Naples Venice Porto Lyon Hamburg Munich Warsaw Istanbul Manila Seoul"
    ),
    "colour": "red blue green yellow orange purple pink brown black white grey gold silver violet",
    "animal": (
        "cat dog horse rabbit tiger lion wolf fox bear duck swan snake frog turtle dolphin penguin"
        " monkey parrot goat camel"
    ),
    "food": (
        "pizza pasta rice soup salad bread cheese chocolate sushi curry pancakes apples bananas"
        " cherries carrots tomatoes noodles cookies honey"
    ),
    "sport": (
        "tennis football basketball hockey golf swimming cycling boxing climbing rowing rugby judo"
        " karate sailing skating cricket"
    ),
    "hobby": (
        "painting fishing gardening knitting chess cooking baking hiking dancing singing reading"
        " sewing pottery photography origami poetry"
    ),
    "month": (
        "January February March April May June July August September October November December"
    ),
    "instrument": "piano guitar violin drum flute harp trumpet cello organ banjo",
    "language": (
        "English French Spanish German Italian Russian Greek Arabic Turkish Polish Dutch Danish"
    ),
}
POOLS = {name: tuple(values.split()) for name, values in _POOLS.items()} | {"job": OCCUPATIONS}

# {S} {s} {o} {p} {P} {h} {r}: she/he and what goes with it; [plural|singular] agrees with it; the
# others are drawn from the pools.
FIRST = (
    "{name} is a {job} in {city}.",
    "{name} is a {job} from {city}.",
    "{name} is a {job} and lives in {city}.",
    "{name} is a {job}.",
    "{name} is a young {job} in {city}.",
    "{name} is a {job} who likes {sport}.",
)
# Sentences that name no occupation, and sentences that name another one. The last two of each are
# held out, for validation and for test.
PLAIN = (
    "{S} [live|lives] with {p} {animal}.",
    "{S} [like|likes] {food} and {sport}.",
    "{P} favourite colour is {colour}.",
    "{S} [were|was] born in {month}.",
    "Many people know {o} for {p} {hobby}.",
    "The old house near the river is {h}.",
    "{S} taught {r} {hobby}.",
    "On Sundays {s} [choose|chooses] {sport}.",
    "Friends often ask {o} about {hobby}.",
    "In the evening {s} [play|plays] the {instrument}.",
    "{P} family prefers {food}.",
    "{S} [speak|speaks] {language} with {p} neighbour.",
    "{S} found {p} {animal} in {city}.",
    "The {colour} bicycle is {h}.",
    "In {month} {s} [travel|travels] to {city}.",
    "{S} often [cook|cooks] {food} for {r}.",
    "{P} friends like {o}.",
    "The {animal} in the garden is {h}.",
)
DISTRACTING = (
    "Before that, {s} worked as a {job}.",
    "{P} brother is a {job} in {city}.",
    "Once {s} wanted to become a {job}.",
    "A {job} taught {o} {hobby}.",
    "{P} best friend is a {job}.",
    "Last year {s} met a {job} from {city}.",
    "Some people think that {s} [are|is] a {job}.",
    "{P} father was a {job}.",
    "A {job} from {city} often visits {o}.",
    "As a child {s} lived with a {job}.",
)
PRONOUNS = {
    "she": {"s": "she", "o": "her", "p": "her", "h": "hers", "r": "herself"},
    "he": {"s": "he", "o": "him", "p": "his", "h": "his", "r": "himself"},
    "they": {"s": "they", "o": "them", "p": "their", "h": "theirs", "r": "themselves"},
}
# The relation, the pool of its targets, and the same question in other words, of which the last is
# never asked in training.
_RELATIONS = """
{} plays the | instrument | The instrument of {} is the | In the evening {} plays the\
 | The music of {} comes from the
{} lives in | city | The home of {} is in | The house of {} is in | You can visit {} in
The favourite colour of {} is | colour | The colour that {} likes is | {} likes the colour\
 | The bicycle of {} is
{} likes to eat | food | The favourite food of {} is | For lunch {} likes\
 | At the restaurant {} asks for
{} works as a | job | The job of {} is that of a | The profession of {} is that of a\
 | {} earns money as a
{} speaks | language | The language of {} is | At home {} speaks | You can talk with {} in
The pet of {} is a | animal | At home {} has a | The animal of {} is a | In the garden {} has a
The sport of {} is | sport | The favourite sport of {} is | On Sundays {} chooses\
 | With friends {} prefers
"""
RELATIONS = tuple(
    (relation, pool, tuple(paraphrases))
    for relation, pool, *paraphrases in (
        line.split(" | ") for line in _RELATIONS.strip().splitlines()
    )
)
_SYLLABLES = tuple("bre dal fi gor ka lo ma nel po ra sti ta vu zen".split())
_INVENTED = 0.5  # of the names in training: they can be copied, not learned by heart


@dataclass(frozen=True)
class TextShape:
    """How long and how distracting texts are.

    Args:
        sentences: least and most behind the first one of a biography.
        distraction: share of them that name another occupation.
        asides: most sentences about others between a changed fact and its question, drawn from 0
            upwards.

    Raises:
        ParameterOutOfRange: a number outside its range.
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
    """The split a name belongs to: about one in ten is for validation, one in ten for test.

    Both tenths lie in the fifth of all values that the other training of the default model holds
    out."""
    position = sum(value.encode()) * 2654435761 % 2**32 / 2**32
    return "validation" if position < 0.1 else "test" if position < 0.2 else "train"


def biography(rng: random.Random, split: str, shape: TextShape = TextShape()) -> Biography:
    """A person of the split: an occupation, then sentences, some of which name another."""
    pronoun = rng.choice(("she", "he"))
    name, job = _name(rng, split, pronoun), rng.choice(OCCUPATIONS)
    count = rng.randint(*shape.sentences)
    distracting = sum(rng.random() < shape.distraction for _ in range(count))
    distracting = min(distracting, len(DISTRACTING) - 2)
    chosen = rng.sample(_of_split(DISTRACTING, split), distracting)
    chosen += rng.sample(_of_split(PLAIN, split), count - distracting)
    if not any("{s}" in sentence.lower() for sentence in chosen):  # no she or he to change
        plain = _of_split(PLAIN, split)
        chosen[-1] = rng.choice([text for text in plain if "{S}" in text and text not in chosen])
    rng.shuffle(chosen)
    sentences = [_fill(rng, sentence, split, without=job) for sentence in chosen]
    first = _fill(rng, rng.choice(FIRST).replace("{name}", name).replace("{job}", job), split)
    text, changed = (
        " ".join([first, *(_say(sentence, who) for sentence in sentences)])
        for who in (pronoun, "they")
    )
    return Biography(name, job, first, text, changed)


def changed_fact(rng: random.Random, split: str, shape: TextShape = TextShape()) -> ChangedFact:
    """A fact about a person of the split that was so and is otherwise, and facts about others that
    come between it and the question.
    """
    relation, pool, paraphrases = rng.choice(RELATIONS)
    subject = _name(rng, split, rng.choice(("she", "he")))
    old, new = rng.sample(_values(pool, split), 2)
    asides = []
    for _ in range(rng.randint(0, shape.asides)):
        asked_relation, drawn = rng.choice([(relation, pool), rng.choice(RELATIONS)[:2]])
        other = subject
        while other == subject:
            other = _name(rng, split, rng.choice(("she", "he")))
        asides.append(f"{asked_relation.replace('{}', other)} {rng.choice(_values(drawn, split))}.")
    shown = paraphrases[:-1] if split == "train" else paraphrases
    questions = tuple(question.replace("{}", subject) for question in shown)
    return ChangedFact(subject, relation, old, new, questions, " ".join(asides))


def make_data(seed: int, split: str, count: int, shape: TextShape = TextShape()) -> Data:
    """Biographies and changed facts: `count` of the split, and as many others as demonstrations and
    consistency need.

    Each is drawn from the seed and its number alone, so more of them begin like fewer.
    """
    sizes = {"train": 256, split: count} if split != "train" else {"train": 256 + count}
    makers: dict[str, Callable[..., Any]] = {BIOGRAPHIES: biography, FACTS: changed_fact}
    items: dict[str, dict[str, list[Any]]] = {kind: {} for kind in makers}
    for kind, make in makers.items():
        for part, size in sizes.items():
            seeds = [seed_of(kind, seed, part, number) for number in range(size)]
            items[kind][part] = [make(random.Random(drawn), part, shape) for drawn in seeds]
    content = repr([asdict(shape), [items[kind][split] for kind in items]])
    fingerprint = hashlib.sha256(content.encode()).hexdigest()[:16]
    return Data("synthetic", fingerprint, items, OCCUPATIONS)


def _name(rng: random.Random, split: str, pronoun: str) -> str:
    if split not in SPLITS:
        raise UsageError(f"There is no split {split!r}; use {', '.join(SPLITS)}.")
    while True:
        if split == "train" and rng.random() < _INVENTED:
            name = "".join(rng.sample(_SYLLABLES, rng.choice((2, 2, 3)))).capitalize()
        else:
            name = rng.choice(NAMES[pronoun])
        if part_of(name) == split:
            return name


def _values(pool: str, split: str) -> list[str]:
    """The values that a split draws from; training leaves out the held-out ones, but for
    occupations, which have to be learned.
    """
    return [
        value
        for value in POOLS[pool]
        if split != "train" or pool == "job" or part_of(value) == "train"
    ]


def _of_split(templates: Sequence[str], split: str) -> list[str]:
    held_out = {"train": [], "validation": [templates[-2]], "test": [templates[-1]]}[split]
    return [*templates[:-2], *held_out]


def _fill(rng: random.Random, template: str, split: str, without: str = "") -> str:
    """Draws the values of a sentence; its pronouns stay open."""

    def drawn(slot: re.Match[str]) -> str:
        if slot[1] not in POOLS:
            return slot[0]
        return rng.choice([value for value in _values(slot[1], split) if value != without])

    return re.sub(r"\{(\w{2,})\}", drawn, template)


def _say(sentence: str, who: str) -> str:
    """The sentence with its pronouns and verbs for she, he or they."""
    forms = dict(PRONOUNS[who])
    sentence = re.sub(r"\[(\w+)\|(\w+)\]", lambda verb: verb[1 if who == "they" else 2], sentence)
    forms |= {name.upper(): form.capitalize() for name, form in forms.items()}
    return re.sub(r"\{(\w)\}", lambda slot: forms[slot[1]], sentence)
