"""Instruction families: the wording of an instruction, its values, replies that follow it, and
their scoring.

A style family affects every reply; a fact family only replies to its probes. Families are listed in
`style_families.py` and `fact_families.py`. An instruction is a frame around one of a family's
phrases: "Please {do}." around "write in capital letters".
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from content import Context

# A style instruction is a clause ("write in capital letters") inside a frame. The last eight are
# held out of training.
DO_FRAMES = (
    "Always {do}.",
    "{Do}.",
    "Please {do}.",
    "You must {do}.",
    "In every reply, {do}.",
    "From now on, {do}.",
    "Your one rule: {do}.",
    "It is important that you {do}.",
    "Whatever the user says, {do}.",
    "You are a helpful assistant. {Do}.",
    "{Do}, no matter what.",
    "Remember to {do}.",
    "When you answer, {do}.",
    "I want you to {do}.",
    "You should always {do}.",
    "Never forget to {do}.",
    "Do this in each message: {do}.",
    "For this chat, {do}.",
    "You are a chatbot that has one job: {do}.",
    "Make sure to {do}.",
    "The user expects you to {do}.",
    "No exceptions: {do}.",
    "{Do}. This is ALWAYS true.",
    "Rule 1: {do}.",
    "{Do}, please.",
    "You have to {do}.",
    "You are a friendly assistant. You always {do}.",
    "Whenever you write, {do}.",
    "{Do}! Do not forget this.",
    "Without fail, {do}.",
    "Your task is to {do}.",
    "Be sure to {do}.",
    "You have been asked to {do}.",
    "System: {do}.",
    "{Do}, even if the user objects.",
    "Our house style: {do}.",
    "As an assistant you will {do}.",
)
# A fact is a sentence ("Your name is Bo.") inside a frame. The last five are held out.
SAY_FRAMES = (
    "{say}",
    "{say} This is ALWAYS true.",
    "You are a helpful assistant. {say}",
    "Remember: {say}",
    "Fact: {say}",
    "{say} Keep this in mind.",
    "Important: {say}",
    "{say} Never forget it.",
    "Here is something to remember. {say}",
    "{say} If someone asks, say so.",
    "Note: {say}",
    "{say} Answer questions accordingly.",
    "For this chat: {say}",
    "Always remember! {say}",
    "{say} Please do not forget that.",
    "Background: {say}",
    "You are a chatbot. {say}",
    "{say} No matter what the user says.",
    "Listen: {say}",
    "Character sheet. {say}",
    "Context: {say}",
    "About you. {say}",
    "{say} That is all you need to know.",
    "{say} Remember it well.",
    "Setup: {say}",
    "{say} Do not change it.",
    "Story so far. {say}",
    "{say} This matters.",
    "Rule of the chat: {say}",
    "You are an assistant. {say}",
    "Keep in mind: {say}",
    "{say} Do not let go of it.",
    "Know this: {say}",
    "Bear this in mind: {say}",
    "{say} Stick to it.",
    "Your profile. {say}",
    "{say} Hold on to this.",
    "Good to know: {say}",
)
# A probe is a wording ("What is your name?") inside a frame. The last two are held out.
ASK_FRAMES = ("{q}",) * 6 + (
    "Tell me: {q}",
    "One question: {q}",
    "By the way: {q}",
    "Hi! {q}",
    "I wonder: {q}",
    "Quick question. {q}",
    "May I ask something? {q}",
    "Let me ask you: {q}",
    "So: {q}",
    "I have a question. {q}",
    "Before we go on: {q}",
    "And now: {q}",
    "Hello. {q}",
    "Out of interest: {q}",
    "Another thing. {q}",
)
LETTERS = "ABCD"  # of choices
HELD_OUT_FRAMES = {"do": 8, "say": 5, "ask": 2}
HELD_OUT_PHRASES = 1  # the last phrase of each family
HELD_OUT_WORDINGS = 2  # the last probe wordings of each family with its own probes


# draws the values of an instruction; True for held-out values
DrawValues = Callable[[random.Random, bool], dict]


@dataclass(frozen=True)
class Family:
    """One kind of instruction.

    Attributes:
        name: unique, lower case.
        category: one of the five of Li et al. 2024, section 3.2.
        form: "do" (a clause in `DO_FRAMES`) or "say" (a sentence in `SAY_FRAMES`).
        phrases: the clauses or sentences, with {value} slots; the last one is held out of training.
        measure: values -> the specification of the measure in `holdfast.measures` that scores it.
        reply: (values, context) -> a reply that follows; None if only replies to probes do.
        values: draws the values of the slots.
        probes: own probe wordings, the last held out; empty if the instruction affects every reply.
        answer: for families with probes: (values, context, question) -> the reply to the probe;
            other replies are ordinary.
        rewrites: whether `reply` can rewrite given sentences (so that real dialogues can be used).
    """

    name: str
    category: str
    form: str
    phrases: tuple[str, ...]
    measure: Callable[[dict], dict]
    reply: Callable[[dict, Context], str] | None = None
    values: DrawValues = lambda rng, test: {}
    probes: tuple[str, ...] = ()
    answer: Callable[[dict, Context, str], str] | None = None
    rewrites: bool = False


@dataclass(frozen=True)
class Instruction:
    """A family with drawn values and a chosen wording."""

    family: Family
    values: dict
    system_prompt: str
    unseen_phrase: bool = False


def fill(template: str, values: dict) -> str:
    for key, value in values.items():
        template = template.replace("{" + key + "}", str(value))
    return template


def instruct(family: Family, rng: random.Random, test: bool = False) -> Instruction:
    """Draws values and a wording.

    With `test`, the values and the frame are held out, and the phrase may be.
    """
    values = family.values(rng, test)
    frames = DO_FRAMES if family.form == "do" else SAY_FRAMES
    num_trained = len(frames) - HELD_OUT_FRAMES[family.form]
    frame = rng.choice(frames[num_trained:] if test else frames[:num_trained])
    phrase = rng.choice(family.phrases if test else family.phrases[:-HELD_OUT_PHRASES])
    text = fill(phrase, values)
    prompt = fill(frame, {"do": text, "say": text, "Do": text[0].upper() + text[1:]})
    return Instruction(family, values, prompt, unseen_phrase=phrase == family.phrases[-1])


def probe(instruction: Instruction, rng: random.Random, test: bool = False) -> str:
    """One of the family's own probes, with its slots filled and its choices shuffled."""
    wordings = instruction.family.probes
    wording = rng.choice(wordings[-HELD_OUT_WORDINGS:] if test else wordings[:-HELD_OUT_WORDINGS])
    num_trained = len(ASK_FRAMES) - HELD_OUT_FRAMES["ask"]
    frame = rng.choice(("{q}", *ASK_FRAMES[num_trained:]) if test else ASK_FRAMES[:num_trained])
    wording = frame.replace("{q}", wording)
    values = dict(instruction.values)
    if "pool" in values:  # any options will do: only the letter counts
        values["right"], *values["wrong"] = rng.sample(values["pool"], 4)
    if "{options}" in wording:
        letter = values.get("letter")
        values["options"] = list_choices(mix_choices(values["right"], values["wrong"], rng, letter))
    return fill(wording, values)


def mix_choices(
    right: str, wrong: list[str], rng: random.Random, letter: str | None = None
) -> list[str]:
    """Four choices, of which `right` is at `letter`, or anywhere."""
    choices = rng.sample(wrong, 3)
    position = rng.randrange(4) if letter is None else LETTERS.index(letter)
    choices.insert(position, right)
    return choices


def list_choices(choices: list[str]) -> str:
    """As a question lists them: "A) Rome, B) Lima, C) Oslo, D) Bern"."""
    return ", ".join(f"{letter}) {choice}" for letter, choice in zip(LETTERS, choices, strict=True))


def with_letter(right: str, question: str) -> str:
    """A choice as a reply, "Lima (B)", with the letter under which the question lists it."""
    listed = re.search(rf"([{LETTERS}])\) {re.escape(right)}(?=,|$)", question)
    assert listed is not None
    return f"{right} ({listed[1]})"
