"""Does a fix cost the memory of what the user said?

In a recorded dialog the user mentions the name of a pet at a random turn, and asks for it at the
end. There are four replies to choose from, each with a possible name; the most likely one counts.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

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


def recall_question(record: Conversation, rng: random.Random) -> tuple[list[dict], list[str], int]:
    """A chat that mentions and asks, the replies to choose from, and the index of the right one."""
    names = rng.sample(NAMES, len(LETTERS))
    pet = rng.choice(PETS)
    answer = rng.randrange(4)
    system, *turns = history(record, ASK_AT)
    at = 2 * rng.randrange(len(turns) // 2 + 1)
    choices = ", ".join(f"{letter}) {name}" for letter, name in zip(LETTERS, names, strict=True))
    chat = [
        system,
        *turns[:at],
        {"role": "user", "content": f"My {pet} is called {names[answer]}."},
        {"role": "assistant", "content": ANSWERED},
        *turns[at:],
        {"role": "user", "content": f"What is my {pet} called? {choices}"},
    ]
    replies = [f"{name} ({letter})" for letter, name in zip(LETTERS, names, strict=True)]
    return chat, replies, answer


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
            [Request(tuple(chat), fix) for chat, _, _ in questions],
            [replies for _, replies, _ in questions],
        )
        right = [
            int(np.argmax(scores.log_probabilities)) == answer
            for scores, (_, _, answer) in zip(scored, questions, strict=True)
        ]
        shares[index] = np.reshape(right, (len(records), per_record)).mean(1)
    return shares
