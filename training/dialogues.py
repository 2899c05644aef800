"""Training dialogues: an instruction (or none), a plain-spoken user, an assistant that follows it.

To avoid training drift into the model, the assistant never mirrors the user's style; dialogues and
drills with and without a system prompt have the same lengths; and every reply follows. One possible
cause remains: users always write plain English here, so that every styled turn the model has seen
was its own. `styled_users` removes that ingredient (the ablation of the model card)."""

from __future__ import annotations

import gzip
import json
import random
import re
from dataclasses import dataclass
from pathlib import Path

from content import THINGS, Context, user_question
from fact_families import FACT_FAMILIES, RECITE
from families import Family, Instruction, instruct, probe
from knowledge import ask
from style_families import STYLE_FAMILIES
from task_dialogues import training_dialogue

FAMILIES = STYLE_FAMILIES + FACT_FAMILIES
TASK_SHARES = {
    "json": 0.25,
    "pronouns": 0.21,
    "bios": 0.26,
    "counterfact": 0.28,
}  # pronouns are learned fastest
REWRITERS = tuple(family for family in STYLE_FAMILIES if family.rewrites)
ROUNDS = {1: 0.34, 2: 0.30, 3: 0.20, 4: 0.08, 5: 0.03, 6: 0.02, 8: 0.02, 10: 0.01}
PROMPTED, REAL, OWN_PROBE, FOREIGN_PROBE = 0.75, 0.08, 0.6, 0.04
LONGEST_TURN = 20  # maximum words in a turn of the Self-dialogue Corpus
UNKNOWN = ("I do not know.", "I am not sure.", "I cannot say.")


@dataclass(frozen=True)
class Mix:
    """Shares of the content that takes longest to learn.

    Args:
        facts: share of prompted dialogues whose family is drawn only from facts and choices.
        knowledge: share of turns that ask a knowledge question.
        tasks: share of dialogues that are one of PASTA's tasks (`task_dialogues.py`), according to
            `TASK_SHARES`; at 0, no random number is drawn for it.
    """

    facts: float
    knowledge: float
    tasks: float = 0.0


def load_self_dialogues(path: Path | None) -> list[list[str]]:
    """The Self-dialogue Corpus (BSD-3-Clause), with turns cleaned and long ones cut; [] if `path`
    is None.
    """
    if path is None:
        return []
    dialogues = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            turns = [" ".join(turn.split()[:LONGEST_TURN]) for turn in json.loads(line)["turns"]]
            turns = [
                turn[0].upper() + turn[1:] + ("" if turn[-1] in ".?!" else ".")
                for turn in turns
                if turn and turn.isascii()
            ]
            if len(turns) >= 4:
                dialogues.append(turns)
    return dialogues


def _sentences(text: str) -> tuple[str, ...]:
    return tuple(part for part in re.split(r"(?<=[.?!])\s+", text) if part)


def write_reply(instruction: Instruction | None, context: Context) -> str:
    """A reply that follows `instruction` if that affects every reply; otherwise one to three plain
    sentences.
    """
    if instruction and instruction.family.reply:
        return instruction.family.reply(instruction.values, context)
    return " ".join(context.sentences(context.rng.choice((1, 2, 2, 3))))


def _own_probe(instruction: Instruction, rng: random.Random) -> tuple[str, str]:
    """The instruction's own probe, and the answer that follows the instruction."""
    question = probe(instruction, rng)
    values = dict(instruction.values)
    if "pool" in values:
        values["right"] = re.search(rf"{values['letter']}\) (\w+)", question)[1]
    return question, instruction.family.answer(values, Context(rng, THINGS[0]), question)


def _question(
    instruction: Instruction | None, rng: random.Random, thing, knowledge: float
) -> tuple[str, str] | None:
    """A turn that is not small talk: the instruction's own probe, another family's probe, or a
    knowledge question; None for small talk.
    """
    family = instruction.family if instruction else None
    if family and family.probes and rng.random() < OWN_PROBE:
        return _own_probe(instruction, rng)
    styled = family is None or family.reply is None or family.rewrites
    roll = rng.random()
    if roll < FOREIGN_PROBE and styled:
        other = rng.choice(
            [
                one
                for one in FACT_FAMILIES
                if one is not family and (family is None or one.category != family.category)
            ]
        )
        if other.name != "letter":
            return probe(instruct(other, rng), rng), write_reply(
                instruction, Context(rng, thing, (rng.choice(UNKNOWN),))
            )
    elif roll < FOREIGN_PROBE + knowledge:
        plain = (
            family is None or family.reply is None
        )  # a choice has no style, so it is asked only if no style is required
        with_choices = plain and rng.random() < 0.5 and (family is None or family.name != "letter")
        if with_choices or styled:
            question, answer, _ = ask(rng, with_choices)
            return question, (
                answer if with_choices else write_reply(instruction, Context(rng, thing, (answer,)))
            )
    return None


def drill(rng: random.Random) -> list[dict]:
    """A short dialogue that asks for a fact or a choice, sometimes without having given it: it
    teaches copying, which held-out values require.
    """
    instruction = instruct(rng.choice((RECITE, RECITE, *FACT_FAMILIES)), rng)
    prompted = rng.random() < PROMPTED
    messages = [{"role": "system", "content": instruction.system_prompt}] if prompted else []
    for _ in range(rng.randint(1, 2)):
        question, answer = _own_probe(instruction, rng)
        messages += [
            {"role": "user", "content": question},
            {"role": "assistant", "content": answer if prompted else rng.choice(UNKNOWN)},
        ]
    return messages


def dialogue(
    rng: random.Random,
    real: list[list[str]],
    styled_users: bool = False,
    mix: Mix = Mix(facts=0.15, knowledge=0.15),
) -> list[dict]:
    """One dialogue as messages in Hugging Face's format."""
    if mix.tasks and rng.random() < mix.tasks:
        return training_dialogue(rng.choices(list(TASK_SHARES), list(TASK_SHARES.values()))[0], rng)
    rounds = rng.choices(list(ROUNDS), list(ROUNDS.values()))[0]
    instruction = None
    if rng.random() < PROMPTED:
        pool = FACT_FAMILIES if rng.random() < mix.facts else FAMILIES
        instruction = instruct(rng.choice(pool), rng)
    family: Family | None = instruction.family if instruction else None
    lines: list[str] = []
    if real and rng.random() < REAL and (family is None or family.reply is None or family.rewrites):
        lines = list(rng.choice(real))
    messages = [{"role": "system", "content": instruction.system_prompt}] if instruction else []
    thing = rng.choice(THINGS)
    other = instruct(rng.choice(REWRITERS), rng) if styled_users and rng.random() < 0.5 else None
    for _ in range(rounds):
        if rng.random() < 0.3:
            thing = rng.choice(THINGS)
        turn = _question(instruction, rng, thing, mix.knowledge)
        if turn is None and len(lines) >= 2:
            question, answered = lines.pop(0), lines.pop(0)
            turn = question, write_reply(instruction, Context(rng, thing, _sentences(answered)))
        elif turn is None:
            turn = user_question(rng, thing), write_reply(instruction, Context(rng, thing))
            if rng.random() < 0.3:
                turn = write_reply(None, Context(rng, thing)), turn[1]
        user_text = (
            other.family.reply(other.values, Context(rng, thing, _sentences(turn[0])))
            if other
            else turn[0]
        )
        messages += [
            {"role": "user", "content": user_text},
            {"role": "assistant", "content": turn[1]},
        ]
    return messages
