"""Knowledge questions: simple world facts and sums, open-ended or with four choices, some of them
never asked in training.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from families import LETTERS, list_choices, mix_choices
from values import held_out

CAPITALS = dict(
    pair.split(":")
    for pair in """France:Paris Italy:Rome Spain:Madrid Germany:Berlin Austria:Vienna
Portugal:Lisbon Ireland:Dublin Norway:Oslo Greece:Athens Egypt:Cairo Japan:Tokyo Peru:Lima
Russia:Moscow Kenya:Nairobi Cuba:Havana Poland:Warsaw Hungary:Budapest Finland:Helsinki
Sweden:Stockholm Denmark:Copenhagen Indonesia:Jakarta Thailand:Bangkok China:Beijing
Canada:Ottawa Chile:Santiago Belgium:Brussels Switzerland:Bern Turkey:Ankara Iran:Tehran
Iraq:Baghdad Nepal:Kathmandu Ghana:Accra Senegal:Dakar Bulgaria:Sofia Romania:Bucharest
Croatia:Zagreb Serbia:Belgrade Ukraine:Kyiv Georgia:Tbilisi Armenia:Yerevan Colombia:Bogota
Ecuador:Quito Venezuela:Caracas Uruguay:Montevideo Jamaica:Kingston Tunisia:Tunis Morocco:Rabat
Algeria:Algiers Syria:Damascus Lebanon:Beirut""".split()
)
OPPOSITES = dict(
    pair.split(":")
    for pair in """hot:cold big:small fast:slow high:low light:dark old:young rich:poor
strong:weak early:late hard:soft wet:dry full:empty open:closed loud:quiet happy:sad long:short
thick:thin deep:shallow near:far clean:dirty brave:cowardly sharp:blunt smooth:rough
heavy:weightless cheap:expensive true:false ancient:modern guilty:innocent public:private
narrow:wide""".split()
)
YOUNG = dict(
    pair.split(":")
    for pair in """dog:puppy cat:kitten cow:calf horse:foal sheep:lamb goat:kid pig:piglet
duck:duckling bear:cub deer:fawn frog:tadpole hen:chick kangaroo:joey swan:cygnet goose:gosling
hare:leveret owl:owlet eagle:eaglet seal:pup""".split()
)
ELEMENTS = dict(
    pair.split(":")
    for pair in """hydrogen:H oxygen:O carbon:C nitrogen:N iron:Fe gold:Au silver:Ag copper:Cu
tin:Sn lead:Pb sodium:Na potassium:K calcium:Ca helium:He neon:Ne zinc:Zn sulfur:S iodine:I
mercury:Hg tungsten:W nickel:Ni cobalt:Co chlorine:Cl fluorine:F""".split()
)

SUMS = 0.35  # share of questions that are sums
# the question and the reply about each entry {key}: {value} of a table
_TABLES = (
    ("What is the capital of {key}?", "The capital of {key} is {value}.", CAPITALS),
    ("What is the opposite of {key}?", "The opposite of {key} is {value}.", OPPOSITES),
    ("What is a young {key} called?", "A young {key} is called a {value}.", YOUNG),
    ("What is the symbol of {key}?", "The symbol of {key} is {value}.", ELEMENTS),
)


@dataclass(frozen=True)
class Question:
    """A question of general knowledge.

    Args:
        text: "What is the capital of Peru?".
        reply: the right one: "The capital of Peru is Lima.", or with choices "Lima (B)".
        answer: its keyword: "Lima".
        choices: four, of which one is the answer; () if the question is open.
    """

    text: str
    reply: str
    answer: str
    choices: tuple[str, ...] = ()


def ask(rng: random.Random, with_choices: bool, test: bool = False) -> Question:
    """Draws a question. With `test`, a sum is one that is not in training."""
    question, wrong = _ask_sum(rng, test) if rng.random() < SUMS else _ask_fact(rng)
    if not with_choices:
        return question
    choices = mix_choices(question.answer, wrong, rng)
    letter = LETTERS[choices.index(question.answer)]
    return replace(
        question,
        text=f"{question.text} {list_choices(choices)}",
        reply=f"{question.answer} ({letter})",
        choices=tuple(choices),
    )


def _ask_sum(rng: random.Random, test: bool) -> tuple[Question, list[str]]:
    """A sum, and wrong answers to it."""
    while True:
        a, b = rng.randint(2, 60), rng.randint(2, 39)
        if held_out(f"{a}+{b}") == test:
            break
    wrong = [str(a + b + error) for error in (-10, -2, -1, 1, 2, 10) if a + b + error > 0]
    return Question(f"What is {a} plus {b}?", f"{a} plus {b} is {a + b}.", str(a + b)), wrong


def _ask_fact(rng: random.Random) -> tuple[Question, list[str]]:
    """A question about an entry of a table, and wrong answers to it."""
    question, reply, table = rng.choice(_TABLES)
    key = rng.choice(sorted(table))
    answer = table[key]
    wrong = [other for other in table.values() if other != answer]
    reply = reply.replace("{key}", key).replace("{value}", answer)
    return Question(question.replace("{key}", key), reply, answer), wrong
