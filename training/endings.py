"""Replies that end: some turns of the training dialogues are stuck in a loop, and the only lesson
is to stop.

A small model that draws one odd token can repeat it until the limit of a reply, and then reads its
own loop in every later turn. Here a turn breaks off into a run of repeated tokens. The run itself
is never a target. What is: the end of the turn behind it, and the later turns, which go on as if
nothing were."""

from __future__ import annotations

import random
from dataclasses import dataclass

Encoded = tuple[list[int], list[float]]  # token ids, and the loss weight of each as a target


@dataclass(frozen=True)
class Loops:
    """Which dialogues get stuck, and how.

    Args:
        share: of the dialogues.
        repeated: tokens that are repeated, one of these numbers.
        times: how often: the short runs teach to stop early, the long ones to stop late.
        stuck: turns of a dialogue that get stuck, all in the same loop.
        target: loss weight of the end behind a run.
    """

    share: float = 0.0
    repeated: tuple[int, ...] = (1, 1, 2, 2, 3, 4, 6)
    times: tuple[int, ...] = (3, 6, 12, 24, 48)
    stuck: tuple[int, ...] = (1, 1, 2, 3)
    target: float = 2.0


NONE = Loops()


@dataclass(frozen=True)
class Vocabulary:
    """The ids that an encoded dialogue is read by.

    Args:
        end: of the token that ends a turn.
        roles: of the tokens that begin one.
        first_word: of the first token that is not special.
        size: of the vocabulary.
    """

    end: int
    roles: frozenset[int]
    first_word: int
    size: int


def turns(ids: list[int], vocabulary: Vocabulary) -> list[tuple[int, int]]:
    """Where each turn's words start and stop, [start, stop), in the order of the dialogue."""
    starts = [place + 1 for place, token in enumerate(ids) if token in vocabulary.roles]
    stops = [place for place, token in enumerate(ids) if token == vocabulary.end]
    return list(zip(starts, stops, strict=False))  # the last turn may have been cut off


def with_loops(
    encoded: Encoded, loops: Loops, vocabulary: Vocabulary, rng: random.Random
) -> Encoded:
    """The dialogue with a run of repeated tokens in some of its turns, the system prompt's
    excepted.
    """
    ids, weights = encoded
    spoken = [turn for turn in turns(ids, vocabulary) if weights[turn[1]] > 0]
    stuck = sorted(rng.sample(spoken, min(rng.choice(loops.stuck), len(spoken))), reverse=True)
    unit: list[int] = []
    for start, stop in stuck:  # from the last to the first, so that the places still hold
        cut = rng.randint(start, stop)
        unit = unit or _unit(ids[start:cut], rng.choice(loops.repeated), vocabulary, rng)
        run = unit * rng.choice(loops.times)
        ids = ids[:cut] + run + ids[stop:]
        weights = weights[:cut] + [0.0] * len(run) + [loops.target] + weights[stop + 1 :]
    return ids, weights


def _unit(before: list[int], length: int, vocabulary: Vocabulary, rng: random.Random) -> list[int]:
    """The tokens that are repeated: the last ones said, or any."""
    if rng.random() < 0.5 and len(before) >= length:
        return before[-length:]
    return [rng.randrange(vocabulary.first_word, vocabulary.size) for _ in range(length)]
