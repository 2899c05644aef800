"""Measures whether a fix costs the memory of what the user said.

In a recorded dialog the user mentions the name of a pet at a random turn, and asks for it at the
end. There are four replies to choose from, each with a possible name; the most likely one counts.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from chosen_heads import history

from holdfast.methods import Method
from holdfast.models.local import LocalModel
from holdfast.models.requests import Request
from holdfast.records import Conversation

NAMES = ("Rex", "Luna", "Max", "Bella", "Oscar", "Milo", "Ruby", "Leo")
PETS = ("cat", "dog", "horse", "parrot")
ANSWERED = "That is a nice name."
ASK_AT = 4  # the user turn that asks, not counting the one that mentions the name
LETTERS = "ABCD"


class RecallQuestion(NamedTuple):
    """A question about a name that the user mentioned."""

    chat: list[dict]  # with the mention, and the question at its end
    replies: list[str]  # to choose from
    answer: int  # the index of the right reply


def recall_question(record: Conversation, rng: random.Random) -> RecallQuestion:
    """Draws a question, and the turn of the dialog before which the name is mentioned."""
    names = rng.sample(NAMES, len(LETTERS))
    pet = rng.choice(PETS)
    answer = rng.randrange(4)
    system, *turns = history(record, ASK_AT)
    position = 2 * rng.randrange(len(turns) // 2 + 1)
    choices = ", ".join(f"{letter}) {name}" for letter, name in zip(LETTERS, names, strict=True))
    chat = [
        system,
        *turns[:position],
        {"role": "user", "content": f"My {pet} is called {names[answer]}."},
        {"role": "assistant", "content": ANSWERED},
        *turns[position:],
        {"role": "user", "content": f"What is my {pet} called? {choices}"},
    ]
    replies = [f"{name} ({letter})" for letter, name in zip(LETTERS, names, strict=True)]
    return RecallQuestion(chat, replies, answer)


def recall(
    model: LocalModel,
    records: Sequence[Conversation],
    fixes: Sequence[tuple[Method, ...]],
    *,
    per_record: int,
    seed: int,
) -> np.ndarray:
    """The share [fix, conversation] of questions answered correctly after the dialogs of `records`,
    which were generated without a fix; all fixes get the same questions.

    Args:
        per_record: questions after each dialog.
    """
    shares = np.empty((len(fixes), len(records)))
    for index, fix in enumerate(fixes):
        rng = random.Random(f"recall {seed}")
        questions = [recall_question(record, rng) for record in records for _ in range(per_record)]
        scored = model.session().score_batch(
            [Request(tuple(question.chat), fix) for question in questions],
            [question.replies for question in questions],
        )
        is_right = [
            int(np.argmax(scores.log_probabilities)) == question.answer
            for scores, question in zip(scored, questions, strict=True)
        ]
        shares[index] = np.reshape(is_right, (len(records), per_record)).mean(1)
    return shares
