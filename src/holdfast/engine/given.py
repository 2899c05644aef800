"""Log-probabilities of given replies, token by token as they would be drawn.

For methods under which a reply cannot be read in one pass, since each of its tokens is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from holdfast.engine.prefixes import KeysValues
from holdfast.engine.rows import Row
from holdfast.engine.runner import Runner
from holdfast.engine.scheduler import Handle, Scheduler
from holdfast.engine.scoring import Scored, score_in_memory
from holdfast.sampling import Sampling


def score_by_method(
    runner: Runner,
    scheduler: Callable[[], Scheduler],
    rows: Sequence[Row],
    replies: Sequence[Sequence[tuple[int, ...]]],
    batch_size: int,
) -> tuple[list[Scored], list[tuple[KeysValues, ...]]]:
    """Scores several replies to each of several chats: in one pass, or token by token where a
    method of the row tries each token.

    Args:
        runner: the model.
        scheduler: makes one of the model, without rows.
        rows, replies, batch_size: as of `score_in_memory`, which says what is returned.
    """
    told: dict[int, tuple[Scored, tuple[KeysValues, ...]]] = {}
    for tries in (False, True):
        places = [place for place, row in enumerate(rows) if (row.scaling is not None) is tries]
        if not places:
            continue
        some, wanted = [rows[place] for place in places], [replies[place] for place in places]
        if tries:
            scores = score_given(scheduler(), some, wanted)
        else:
            scores = score_in_memory(runner, some, wanted, batch_size)
        told |= dict(zip(places, zip(*scores, strict=True), strict=True))
    every = [told[place] for place in range(len(rows))]
    return [scored for scored, _ in every], [computed for _, computed in every]


def score_given(
    scheduler: Scheduler, rows: Sequence[Row], replies: Sequence[Sequence[tuple[int, ...]]]
) -> tuple[list[Scored], list[tuple[KeysValues, ...]]]:
    """Scores several replies to each of several chats.

    Args:
        scheduler: of the model, without rows.
        rows: the chats; no gates.
        replies: per row, the token ids of each reply, at least one token each.

    Returns:
        As `scoring.score_rows`; keys and values of the rows that are to be kept.
    """
    handles = [
        [
            scheduler.submit(_given(row, reply, keep=row.keep and not number))
            for number, reply in enumerate(wanted)
        ]
        for row, wanted in zip(rows, replies, strict=True)
    ]
    while len(scheduler):
        scheduler.step()
    return [_scored(own) for own in handles], [_computed(own[0]) for own in handles]


def _given(row: Row, reply: tuple[int, ...], *, keep: bool) -> Row:
    """A row that takes the tokens of a reply, and tells how probable each was."""
    sampling = Sampling(max_new_tokens=len(reply))
    return replace(
        row, sampling=sampling, keep=keep, trace=False, room=1, top_logprobs=1, given=reply
    )


def _computed(handle: Handle) -> tuple[KeysValues, ...]:
    """Of each stream; () where that of one cannot be had."""
    computed = handle.result().computed
    known = tuple(each for each in computed if each is not None)
    return known if len(known) == len(computed) else ()


def _scored(handles: Sequence[Handle]) -> Scored:
    done = [handle.result() for handle in handles]
    likeliest = [[place.top[0][0] for place in handle.log_probabilities] for handle in handles]
    return Scored(
        tuple(sum(place.drawn for place in handle.log_probabilities) for handle in handles),
        tuple(len(reply.token_ids) for reply in done),
        sum(reply.forwarded for reply in done),
        tuple(
            tokens == list(reply.token_ids) for tokens, reply in zip(likeliest, done, strict=True)
        ),
    )
