"""A suite of three prompts, which a model keeps in given shares of its conversations."""

from scripted_model import ScriptedModel

from holdfast import drift
from holdfast.records.check_records import Terms

ROUNDS = 4
TERMS = Terms(min_stability=0.8, budget=60)


def case(name, **fields):
    return drift.Case(name, "mine", f"Be {name}.", (f"{name}?",), {"regex": "kept"}, **fields)


SUITE = drift.Suite("three", tuple(map(case, ("good", "late", "edge"))), ("hello", "hi there"))
# by prompt, the share of conversations that keep it in each round
SHARES = {"good": [1.0] * ROUNDS, "late": [1.0, 1.0, 0.1, 0.0], "edge": [0.82] * ROUNDS}


class KeepsShares(ScriptedModel):
    """A model that keeps each prompt in a given share of conversations, round by round."""

    def __init__(self, shares):
        self.shares = shares  # as `SHARES`
        self.begun = []  # (prompt, conversation) whose first probe was asked

    def text(self, request):
        chat, number = request.messages, request.thread[1]
        prompt, round_number = chat[-1]["content"].rstrip("?"), len(chat) // 2
        if prompt not in self.shares:
            return "so it goes"
        if round_number == 1:
            self.begun.append((prompt, number))
        share = self.shares[prompt][round_number - 1]
        lap = number // 3  # golden ratio: spreads any share evenly over the laps
        return "kept" if (lap * 0.618034 + 0.3) % 1 < share else "lost"
