"""Teaches replies to end: some turns of the training dialogues get stuck in a loop, after which the
model only learns to stop.

A small model that draws one odd token may repeat it until the reply's token limit, and then reads
its own loop in every later turn. Here "The garden is green.<|end|>" becomes "The garden is is is
is<|end|>". The repeated tokens are never targets, but the end of the turn after them is, and so are
the later turns, which continue as if nothing had happened.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple


class Encoded(NamedTuple):
    """A dialogue as token ids, with the loss weight of each as a target."""

    ids: list[int]
    weights: list[float]


@dataclass(frozen=True)
class Loops:
    """Which dialogues get stuck, and how.

    Args:
        share: of the dialogues.
        repeated: possible numbers of repeated tokens.
        times: possible numbers of repetitions: short runs teach stopping early, long ones late.
        stuck: possible numbers of turns per dialogue that get stuck, all in the same loop.
        target: loss weight of the end after a run.
    """

    share: float = 0.0
    repeated: tuple[int, ...] = (1, 1, 2, 2, 3, 4, 6)
    times: tuple[int, ...] = (3, 6, 12, 24, 48)
    stuck: tuple[int, ...] = (1, 1, 2, 3)
    target: float = 2.0


NONE = Loops()
REPEATS_TURN = 0.5  # share of runs that repeat the latest tokens of their turn, and not random ones


@dataclass(frozen=True)
class Vocabulary:
    """The ids needed to parse an encoded dialogue.

    Args:
        end: id of the token that ends a turn.
        roles: ids of the tokens that begin a turn.
        first_word: id of the first token that is not special.
        size: of the vocabulary.
    """

    end: int
    roles: frozenset[int]
    first_word: int
    size: int


def turns(ids: list[int], vocabulary: Vocabulary) -> list[range]:
    """The positions of each turn's content tokens, in the order of the dialogue."""
    starts = [position + 1 for position, token in enumerate(ids) if token in vocabulary.roles]
    stops = [position for position, token in enumerate(ids) if token == vocabulary.end]
    return list(map(range, starts, stops))  # the last turn may have been cut off, and has no stop


def with_loops(
    encoded: Encoded, loops: Loops, vocabulary: Vocabulary, rng: random.Random
) -> Encoded:
    """The dialogue with a run of repeated tokens in some of its turns, never in the system
    prompt.
    """
    ids, weights = encoded
    # the end of a system prompt has no weight
    candidates = [turn for turn in turns(ids, vocabulary) if weights[turn.stop] > 0]
    stuck = rng.sample(candidates, min(rng.choice(loops.stuck), len(candidates)))
    unit: list[int] = []  # the tokens that are repeated, the same in all turns
    # from last to first, so that earlier positions stay valid
    for turn in sorted(stuck, key=lambda turn: turn.start, reverse=True):
        cut = rng.randint(turn.start, turn.stop)
        unit = unit or _repeated_tokens(
            ids[turn.start : cut], rng.choice(loops.repeated), vocabulary, rng
        )
        run = unit * rng.choice(loops.times)
        ids = ids[:cut] + run + ids[turn.stop :]
        weights = weights[:cut] + [0.0] * len(run) + [loops.target] + weights[turn.stop + 1 :]
    return Encoded(ids, weights)


def _repeated_tokens(
    before: list[int], length: int, vocabulary: Vocabulary, rng: random.Random
) -> list[int]:
    """The tokens to repeat: the latest ones of the turn, or random ones."""
    if rng.random() < REPEATS_TURN and len(before) >= length:
        return before[-length:]
    return [rng.randrange(vocabulary.first_word, vocabulary.size) for _ in range(length)]
