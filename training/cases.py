"""Held-out benchmark cases: frames, values and probe wordings never shown in training, and all
phrases, of which one in six is unseen too.
"""

from __future__ import annotations

import random

from content import THINGS, user_question
from dialogues import FAMILIES
from fact_families import picked
from families import Instruction, instruct, probe

PROBES_PER_CASE = 4


def held_out_cases(per_family: int, seed: int = 0) -> list[dict]:
    """`per_family` cases of each family, in the format of a suite file; `unseen_phrase` marks those
    whose phrase is unseen as well.
    """
    cases = []
    for family in FAMILIES:
        rng = random.Random(f"held out {seed} {family.name}")
        for index in range(per_family):
            instruction = instruct(family, rng, test=True)
            if family.measure is picked:
                # the right option has the same letter in all probes of a case
                instruction.values["letter"] = rng.choice("ABCD")
            cases.append(
                {
                    "id": f"{family.name}-{index + 1}",
                    "category": family.category,
                    "system_prompt": instruction.system_prompt,
                    "probes": probes(instruction, rng),
                    "measure": family.measure(instruction.values),
                    "unseen_phrase": instruction.unseen_phrase,
                }
            )
    return cases


def probes(instruction: Instruction, rng: random.Random) -> list[str]:
    """Distinct probes with held-out wording."""
    questions: list[str] = []
    for _ in range(20 * PROBES_PER_CASE):  # more than enough draws for distinct ones
        if instruction.family.probes:
            question = probe(instruction, rng, test=True)
        else:
            question = user_question(rng, rng.choice(THINGS), held_out=True)
        if question not in questions:
            questions.append(question)
    return questions[:PROBES_PER_CASE]


def starters(count: int, seed: int = 0) -> list[str]:
    """Conversation starters with held-out wording."""
    rng = random.Random(f"starters {seed}")
    draws = (user_question(rng, rng.choice(THINGS), held_out=True) for _ in range(4 * count))
    return list(dict.fromkeys(draws))[:count]
