"""Knowledge questions: simple world facts and sums, open-ended or with four choices, some of them
never asked in training.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from families import chosen, options
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
# the question and the reply about each entry {k}: {a} of a table
_TABLES = (
    ("What is the capital of {k}?", "The capital of {k} is {a}.", CAPITALS),
    ("What is the opposite of {k}?", "The opposite of {k} is {a}.", OPPOSITES),
    ("What is a young {k} called?", "A young {k} is called a {a}.", YOUNG),
    ("What is the symbol of {k}?", "The symbol of {k} is {a}.", ELEMENTS),
)


class Question(NamedTuple):
    """A question of general knowledge: "What is the capital of Peru?".

    Args:
        question: with choices, these are listed at its end.
        reply: the right one: "The capital of Peru is Lima.", or with choices "Lima (B)".
        answer: its keyword: "Lima".
    """

    question: str
    reply: str
    answer: str


def ask(rng: random.Random, with_choices: bool, test: bool = False) -> Question:
    """Draws a question. With `test`, a sum is one that is not in training."""
    if rng.random() < SUMS:
        asked, wrong = _sum(rng, test)
    else:
        asked, wrong = _looked_up(rng)
    if not with_choices:
        return asked
    question = f"{asked.question} {options(asked.answer, wrong, rng)}"
    return Question(question, chosen(question, asked.answer), asked.answer)


def _sum(rng: random.Random, test: bool) -> tuple[Question, list[str]]:
    """A sum, and wrong answers to it."""
    while True:
        a, b = rng.randint(2, 60), rng.randint(2, 39)
        if held_out(f"{a}+{b}") == test:
            break
    wrong = [str(a + b + error) for error in (-10, -2, -1, 1, 2, 10) if a + b + error > 0]
    return Question(f"What is {a} plus {b}?", f"{a} plus {b} is {a + b}.", str(a + b)), wrong


def _looked_up(rng: random.Random) -> tuple[Question, list[str]]:
    """A question about an entry of a table, and wrong answers to it."""
    question, reply, table = rng.choice(_TABLES)
    key = rng.choice(sorted(table))
    answer = table[key]
    wrong = [other for other in table.values() if other != answer]
    reply = reply.replace("{k}", key).replace("{a}", answer)
    return Question(question.replace("{k}", key), reply, answer), wrong
