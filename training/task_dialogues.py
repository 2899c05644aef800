"""PASTA's tasks as training dialogues: an instruction, the text that it is about, and the right
reply.

The paper's shortened and rephrased wordings never occur here, so they test how a model handles new
wording. Some of the dialogues ask something else about the same texts; otherwise the text alone
would determine the reply.
"""

from __future__ import annotations

import json
import random

from content import Exchange

from holdfast.chat.messages import Message
from holdfast.errors import UnknownName
from holdfast.papers.zhang2024.catalogue import BIOS, COUNTERFACT, JSON, PRONOUNS
from holdfast.papers.zhang2024.data import Biography
from holdfast.papers.zhang2024.synthetic import OCCUPATIONS, TextShape, biography, changed_fact

TASKS = ("json", "pronouns", "bios", "counterfact")
_BIOGRAPHY_TASKS = {"json": JSON, "pronouns": PRONOUNS, "bios": BIOS}
_ORIGINAL = 0.4  # share of the paper's wording among the others
_ASKS_OTHERWISE = 0.25  # share of dialogues that ask something else
_QUESTION_FIRST = 0.3  # share of our wordings of "json" and "pronouns" that stand before the text
_JSON = (
    "Give the name and the occupation of {person} as json.",
    "Write the job of {person} as json, with the keys name and occupation.",
    "As json, please: what is the occupation of {person}?",
    "What does {person} do? Reply with a json object of name and occupation.",
    'Tell me the occupation of {person} in json, as in {"name": , "occupation": }.',
)
_PRONOUNS = (
    "Write this text with 'they' in place of 'she' and 'he'.",
    "Tell this again, but say 'they' for {person}.",
    "Replace all pronouns of {person} with 'they', 'them' and 'their'.",
    "Say this without 'she' or 'he': use 'they'.",
    "Use 'they' for {person} in this text.",
)
_BIOS = ("The occupation of {person} is", "{person} works as a", "The job of {person} is")
_WORDINGS = {"json": _JSON, "pronouns": _PRONOUNS, "bios": _BIOS}
# other questions about the same texts, and their replies
_OTHER_QUESTIONS = (
    ("What is the occupation of {person}?", "{person} is a {job}."),
    ("What does {person} do?", "{person} is a {job}."),
    ("Who is this about?", "This is about {person}."),
    ("Repeat the first sentence.", "{first}"),
    ("What is the first sentence?", "{first}"),
)


def training_dialogue(
    task: str, rng: random.Random, shape: TextShape = TextShape()
) -> list[Message]:
    """One dialogue of the training split: a user message and the right reply."""
    if task not in TASKS:
        raise UnknownName("task", task, TASKS)
    if task == "counterfact":
        exchange = _about_a_changed_fact(rng, shape)
    else:
        exchange = _about_a_person(task, biography(rng, "train", shape), rng)
    return [
        {"role": "user", "content": exchange.user},
        {"role": "assistant", "content": exchange.reply},
    ]


def _about_a_person(task: str, person: Biography, rng: random.Random) -> Exchange:
    slots = {"{person}": person.name, "{job}": person.occupation, "{first}": person.first}
    if rng.random() < _ASKS_OTHERWISE:
        question, reply = (_fill(template, slots) for template in rng.choice(_OTHER_QUESTIONS))
        return Exchange(f"{person.text} {question}", reply)
    if rng.random() < _ORIGINAL:
        sample = _BIOGRAPHY_TASKS[task].ask(person, "original", OCCUPATIONS)
        return Exchange(sample.prompts[0], sample.reply)
    question = _fill(rng.choice(_WORDINGS[task]), slots)
    reply = {
        "json": json.dumps({"name": person.name, "occupation": person.occupation}),
        "pronouns": person.changed,
        "bios": person.occupation,
    }[task]
    if task != "bios" and rng.random() < _QUESTION_FIRST:
        return Exchange(f"{question} {person.text}", reply)
    return Exchange(f"{person.text} {question}", reply)


def _about_a_changed_fact(rng: random.Random, shape: TextShape) -> Exchange:
    fact = changed_fact(rng, "train", shape)
    sample = COUNTERFACT.ask(fact, "original", ())
    if rng.random() < _ASKS_OTHERWISE:  # ask for the old fact
        before = sample.prompts[0].removesuffix(fact.question)
        return Exchange(f"{before}Previously, {fact.question}", fact.old)
    return Exchange(rng.choice(sample.prompts), sample.reply)


def _fill(template: str, slots: dict[str, str]) -> str:
    for slot, value in slots.items():
        template = template.replace(slot, value)
    return template
