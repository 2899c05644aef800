"""Generates the examples that Holdfast ships, always the same, from a few lists of words.

Triplets are for methods that edit keys: a note of two sentences, of which one answers the relevant
question, and neither answers the irrelevant one.

    context     Anna lives in Paris. The shop opens at six.
    answer      Paris
    relevant    Where does Anna live?
    irrelevant  Who won the game?

Contrasts are for methods that edit hidden states: a question with and without a system prompt.
"""

import itertools

from holdfast.study.fitting.examples import Contrast, Triplet

NAME = "holdfast 1"  # in fitted files; to change with the examples

_NAMES = ("Anna", "Ben", "Clara", "David", "Emma", "Frank")
_TOWNS = ("Paris", "Rome", "Oslo", "Madrid", "Vienna", "Lisbon")
_JOBS = ("a baker", "a nurse", "a painter", "a teacher", "a driver", "a farmer")
_THINGS = ("a lamp", "a boat", "a clock", "a guitar", "a bicycle", "a camera")
_RULES = (
    "Always reply in French",
    "Answer in one short sentence",
    "End every reply with a question",
    "Talk about music whenever you can",
    "Never mention the weather",
    "Begin every reply with a greeting",
)
_HOURS = ("six", "seven", "eight", "nine", "ten", "eleven")

_PROMPTS = (
    "Always reply in French.",
    "Always reply in Spanish.",
    "You are a pirate. Talk like one.",
    "You are a cowboy. Talk like one.",
    "Always mention the sea in your reply.",
    "Always mention cheese in your reply.",
    "Your name is Max. Always say your name.",
    "End every reply with a question.",
    "Answer in one short sentence.",
    "You love tennis. Tell people that you love it.",
    "Never use the letter x, and be polite.",
    "Write everything in capital letters.",
)
_QUESTIONS = (
    "What do you think about the garden?",
    "What did you do today?",
    "Please talk about the train.",
    "Give me your view of the museum.",
)


def triplets() -> tuple[Triplet, ...]:
    """Makes notes of four kinds, one of each kind for every name and rotation of the lists: 144."""
    examples: list[Triplet] = []
    for shift in range(len(_NAMES)):
        people = zip(
            _NAMES,
            _rotate(_TOWNS, shift),
            _rotate(_JOBS, shift + 1),
            _rotate(_THINGS, shift + 2),
            _rotate(_RULES, shift),
            _rotate(_HOURS, shift),
            strict=True,
        )
        for name, town, job, thing, rule, hour in people:
            lives = f"{name} lives in {town}. The shop opens at {hour}."
            works = f"{name} works as {job}. The train was late."
            bought = f"{name} bought {thing}. It rained all day."
            wrote = f"{rule}. {name} wrote this at {hour}."
            notes = (
                (lives, town, f"Where does {name} live?", "Who won the game?"),
                (works, job, f"What is the job of {name}?", "How deep is the river?"),
                (bought, thing, f"What did {name} buy?", "Which song was played?"),
                (wrote, rule, "Which rule do I have to follow?", "What colour is the house?"),
            )
            for context, answer, relevant, irrelevant in notes:
                examples.append(
                    Triplet(
                        context=context, answer=answer, relevant=relevant, irrelevant=irrelevant
                    )
                )
    return tuple(examples)


def _rotate(items: tuple[str, ...], by: int) -> tuple[str, ...]:
    """Returns the items from number `by` on, then those before it."""
    first = by % len(items)
    return items[first:] + items[:first]


def contrasts() -> tuple[Contrast, ...]:
    """Pairs every question with every system prompt, and with none."""
    return tuple(
        Contrast(
            prompted=({"role": "system", "content": prompt}, {"role": "user", "content": question}),
            plain=({"role": "user", "content": question},),
        )
        for prompt, question in itertools.product(_PROMPTS, _QUESTIONS)
    )
