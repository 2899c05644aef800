"""Training dialogues: an instruction (or none), a plain-spoken user, an assistant that follows it.

To avoid training drift into the model, the assistant never mirrors the user's style; dialogues and
drills with and without a system prompt have the same lengths; and every reply follows. One possible
cause of drift remains: users always write plain English here, so the model has seen no styled turns
but its own. `styled_users` removes that cause (the ablation of the model card).
"""

from __future__ import annotations

import gzip
import json
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from content import THINGS, Context, Exchange, Thing, user_question
from fact_families import FACT_FAMILIES, RECITE
from families import Instruction, instruct, probe
from knowledge import ask
from style_families import STYLE_FAMILIES
from task_dialogues import training_dialogue

from holdfast.chat.messages import Message

Option = TypeVar("Option")
FAMILIES = STYLE_FAMILIES + FACT_FAMILIES
# of dialogues about PASTA's tasks; pronouns are learned fastest
TASK_SHARES = {"json": 0.25, "pronouns": 0.21, "bios": 0.26, "counterfact": 0.28}
REWRITERS = tuple(family for family in STYLE_FAMILIES if family.rewrites)
# shares of dialogues by their number of rounds
ROUNDS = {1: 0.34, 2: 0.30, 3: 0.20, 4: 0.08, 5: 0.03, 6: 0.02, 8: 0.02, 10: 0.01}
PROMPTED = 0.75  # share of dialogues with a system prompt
REAL = 0.08  # share of dialogues with the texts of a real one
OWN_PROBE = 0.6  # share of turns that probe the instruction, if its family has probes
FOREIGN_PROBE = 0.04  # share of other turns that probe a family whose fact was not given
WITH_CHOICES = 0.5  # share of knowledge questions with choices, if no style is required
NEW_THING = 0.3  # chance that a round turns to another thing
STATEMENTS = 0.3  # share of the user's small talk that asks nothing
STYLED_USERS = 0.5  # share of dialogues whose user has a style, with `styled_users`
LONGEST_TURN = 20  # maximum words in a turn of the Self-dialogue Corpus
MIN_REAL_TURNS = 4  # of its dialogues; shorter ones are left out
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
    """Reads the Self-dialogue Corpus (BSD-3-Clause), and cleans and shortens its turns.

    Returns [] if `path` is None.
    """
    if path is None:
        return []
    dialogues = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            shortened = [
                " ".join(turn.split()[:LONGEST_TURN]) for turn in json.loads(line)["turns"]
            ]
            turns = [_as_sentence(turn) for turn in shortened if turn and turn.isascii()]
            if len(turns) >= MIN_REAL_TURNS:
                dialogues.append(turns)
    return dialogues


def _as_sentence(turn: str) -> str:
    """Makes "so what" into "So what."."""
    return turn[0].upper() + turn[1:] + ("" if turn[-1] in ".?!" else ".")


def _sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text, split after ".", "?" and "!"."""
    return tuple(sentence for sentence in re.split(r"(?<=[.?!])\s+", text) if sentence)


def write_reply(instruction: Instruction | None, context: Context) -> str:
    """Writes a reply in the style of the instruction, or in one to three plain sentences."""
    if instruction and instruction.family.reply:
        return instruction.family.reply(instruction.values, context)
    return " ".join(context.sentences(context.rng.choice((1, 2, 2, 3))))


def _requires_style(instruction: Instruction | None) -> bool:
    return instruction is not None and instruction.family.reply is not None


def _can_reword(instruction: Instruction | None) -> bool:
    """Whether a reply that follows the instruction can express any given sentence."""
    return instruction is None or not _requires_style(instruction) or instruction.family.rewrites


def _own_probe(instruction: Instruction, rng: random.Random) -> Exchange:
    """The instruction's own probe, and the answer that follows the instruction."""
    question = probe(instruction, rng)
    values = dict(instruction.values)
    if "pool" in values:
        values["right"] = re.search(rf"{values['letter']}\) (\w+)", question)[1]
    context = Context(rng, THINGS[0])
    return Exchange(question, instruction.family.answer(values, context, question))


def _foreign_probe(
    instruction: Instruction | None, rng: random.Random, thing: Thing
) -> Exchange | None:
    """The probe of a family whose fact was not given, and an answer that says so.

    Returns None for the family of letters, whose probes offer choices.
    """
    category = instruction.family.category if instruction else None
    other = rng.choice([family for family in FACT_FAMILIES if family.category != category])
    if other.name == "letter":
        return None
    question = probe(instruct(other, rng), rng)
    answer = rng.choice(UNKNOWN)
    return Exchange(question, write_reply(instruction, Context(rng, thing, (answer,))))


def _knowledge_question(
    instruction: Instruction | None, rng: random.Random, thing: Thing
) -> Exchange | None:
    """A question of general knowledge and its answer; None if the instruction's style allows none.

    A choice has no style, so it is asked for only if no style is required.
    """
    is_letter = instruction is not None and instruction.family.name == "letter"
    may_have_choices = not _requires_style(instruction) and rng.random() < WITH_CHOICES
    with_choices = may_have_choices and not is_letter
    if not with_choices and not _can_reword(instruction):
        return None
    question = ask(rng, with_choices)
    if with_choices:
        return Exchange(question.text, question.reply)
    context = Context(rng, thing, (question.reply,))
    return Exchange(question.text, write_reply(instruction, context))


def _question(
    instruction: Instruction | None, rng: random.Random, thing: Thing, knowledge: float
) -> Exchange | None:
    """A probe of the instruction or of another family, or a knowledge question.

    Returns None if the turn is small talk.
    """
    if instruction and instruction.family.probes and rng.random() < OWN_PROBE:
        return _own_probe(instruction, rng)
    roll = rng.random()
    if roll < FOREIGN_PROBE and _can_reword(instruction):
        return _foreign_probe(instruction, rng, thing)
    if roll < FOREIGN_PROBE + knowledge:
        return _knowledge_question(instruction, rng, thing)
    return None


def _real_exchange(
    real_turns: list[str], instruction: Instruction | None, rng: random.Random, thing: Thing
) -> Exchange | None:
    """Takes the next two turns of a real dialogue; the second is reworded as the instruction
    demands. None if there are no two left.
    """
    if len(real_turns) < 2:
        return None
    user = real_turns.pop(0)
    reply = real_turns.pop(0)
    context = Context(rng, thing, _sentences(reply))
    return Exchange(user, write_reply(instruction, context))


def _small_talk(instruction: Instruction | None, rng: random.Random, thing: Thing) -> Exchange:
    """A question or a statement about a thing, and a reply."""
    user = user_question(rng, thing)
    reply = write_reply(instruction, Context(rng, thing))
    if rng.random() < STATEMENTS:
        user = write_reply(None, Context(rng, thing))
    return Exchange(user, reply)


def _system_message(instruction: Instruction | None) -> list[Message]:
    return [{"role": "system", "content": instruction.system_prompt}] if instruction else []


def _messages_of(user: str, reply: str) -> list[Message]:
    return [{"role": "user", "content": user}, {"role": "assistant", "content": reply}]


def drill(rng: random.Random) -> list[Message]:
    """A short dialogue that asks for a fact or a choice, sometimes without having given it.

    It teaches copying, which held-out values require.
    """
    instruction = instruct(rng.choice((RECITE, RECITE, *FACT_FAMILIES)), rng)
    is_prompted = rng.random() < PROMPTED
    messages = _system_message(instruction if is_prompted else None)
    for _ in range(rng.randint(1, 2)):
        question, answer = _own_probe(instruction, rng)
        messages += _messages_of(question, answer if is_prompted else rng.choice(UNKNOWN))
    return messages


def dialogue(
    rng: random.Random,
    real: list[list[str]],
    styled_users: bool = False,
    mix: Mix = Mix(facts=0.15, knowledge=0.15),
) -> list[Message]:
    """One dialogue as messages in Hugging Face's format.

    Args:
        real: the turns of real dialogues, of which some take their texts.
        styled_users: whether some users write in the style of an instruction.
    """
    if mix.tasks and rng.random() < mix.tasks:
        return training_dialogue(_draw(TASK_SHARES, rng), rng)
    rounds = _draw(ROUNDS, rng)
    instruction = None
    if rng.random() < PROMPTED:
        pool = FACT_FAMILIES if rng.random() < mix.facts else FAMILIES
        instruction = instruct(rng.choice(pool), rng)
    real_turns: list[str] = []
    if real and rng.random() < REAL and _can_reword(instruction):
        real_turns = list(rng.choice(real))
    messages = _system_message(instruction)
    thing = rng.choice(THINGS)  # that the user and the assistant talk about
    user_style = None
    if styled_users and rng.random() < STYLED_USERS:
        user_style = instruct(rng.choice(REWRITERS), rng)
    for _ in range(rounds):
        if rng.random() < NEW_THING:
            thing = rng.choice(THINGS)
        user, reply = (
            _question(instruction, rng, thing, mix.knowledge)
            or _real_exchange(real_turns, instruction, rng, thing)
            or _small_talk(instruction, rng, thing)
        )
        if user_style:
            user = write_reply(user_style, Context(rng, thing, _sentences(user)))
        messages += _messages_of(user, reply)
    return messages


def _draw(shares: dict[Option, float], rng: random.Random) -> Option:
    """Draws an option with its share as the probability."""
    return rng.choices(list(shares), list(shares.values()))[0]
