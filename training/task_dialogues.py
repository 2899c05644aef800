"""The tasks as training dialogues of the default model: an instruction, the text that it is about,
and the right reply.

The paper's shortened and rephrased wordings never occur here, so they test how a model handles new
wording. Some of the dialogues ask something else about the same texts; otherwise the text alone
would determine the reply."""

from __future__ import annotations

import json
import random

from holdfast.chat.messages import Message
from holdfast.errors import UnknownName
from holdfast.papers.zhang2024.catalogue import BIOS, COUNTERFACT, JSON, PRONOUNS
from holdfast.papers.zhang2024.data import Biography
from holdfast.papers.zhang2024.synthetic import OCCUPATIONS, TextShape, biography, changed_fact

TASKS = ("json", "pronouns", "bios", "counterfact")
_ORIGINAL = 0.4  # share of the paper's wording
_OTHERWISE = 0.25  # share of dialogues that ask something else
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
_OTHER = (
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
        question, reply = _changed_fact(rng, shape)
    else:
        question, reply = _about(task, biography(rng, "train", shape), rng)
    return [{"role": "user", "content": question}, {"role": "assistant", "content": reply}]


def _about(task: str, person: Biography, rng: random.Random) -> tuple[str, str]:
    slots = {"{person}": person.name, "{job}": person.occupation, "{first}": person.first}
    if rng.random() < _OTHERWISE:
        question, reply = (_fill(part, slots) for part in rng.choice(_OTHER))
        return f"{person.text} {question}", reply
    if rng.random() < _ORIGINAL:
        kind = {"json": JSON, "pronouns": PRONOUNS, "bios": BIOS}[task]
        sample = kind.ask(person, "original", OCCUPATIONS)
        return sample.prompts[0], sample.reply
    question = _fill(rng.choice({"json": _JSON, "pronouns": _PRONOUNS, "bios": _BIOS}[task]), slots)
    reply = {
        "json": json.dumps({"name": person.name, "occupation": person.occupation}),
        "pronouns": person.changed,
        "bios": person.occupation,
    }[task]
    is_first = task != "bios" and rng.random() < 0.3
    return (f"{question} {person.text}" if is_first else f"{person.text} {question}"), reply


def _changed_fact(rng: random.Random, shape: TextShape) -> tuple[str, str]:
    fact = changed_fact(rng, "train", shape)
    sample = COUNTERFACT.ask(fact, "original", ())
    if rng.random() < _OTHERWISE:  # ask for the old fact
        before = sample.prompts[0].removesuffix(fact.question)
        return f"{before}Previously, {fact.question}", fact.old
    return rng.choice(sample.prompts), sample.reply


def _fill(template: str, slots: dict[str, str]) -> str:
    for slot, value in slots.items():
        template = template.replace(slot, value)
    return template
