"""Log-probabilities of given replies, without generating: the chat is forwarded once, and every
reply behind its keys and values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.engine.batch import Reading, spans_of
from holdfast.engine.memory import in_memory
from holdfast.engine.passes import forward_alone, forward_slots
from holdfast.engine.prefixes import KeysValues, Prefix
from holdfast.engine.rows import Row, Stream
from holdfast.engine.runner import Runner
from holdfast.methods.protocols import EditsLogits

_PASS = 16_384  # tokens of one pass, padding included, unless a single row has more
_WHOLE = 2_048  # the same where every token's logits are wanted


@dataclass(frozen=True)
class Scored:
    """What a model thinks of given replies to one chat.

    Args:
        log_probabilities: one per reply, the sum over its tokens, natural logarithm, at temperature
            1; the end of the reply is not in it.
        tokens: how many tokens each reply has.
        forwarded: tokens that went through the model.
        greedy: whether each token of a reply is the likeliest, so that it would be generated at
            temperature 0.
    """

    log_probabilities: tuple[float, ...]
    tokens: tuple[int, ...]
    forwarded: int
    greedy: tuple[bool, ...]


@dataclass
class _Forwarded:
    """What a pass gave of one reading.

    Args:
        logits: of its last tokens, [token, vocabulary].
        computed: its keys and values, where they are wanted and can be had.
    """

    logits: Tensor
    computed: KeysValues | None


@torch.inference_mode()
def score_rows(
    runner: Runner,
    rows: Sequence[Row],
    replies: Sequence[Sequence[tuple[int, ...]]],
    batch_size: int,
) -> tuple[list[Scored], list[tuple[KeysValues, ...]]]:
    """Scores several replies to each of several chats.

    Args:
        runner: the model.
        rows: the chats, with what is computed of them; no gates.
        replies: per row, the token ids of each reply, at least one token each.
        batch_size: rows of one pass at most.

    Returns:
        The scores, and per row the keys and values of each stream's prompt, () of a model whose
        rows run alone.
    """
    if not (runner.batched and runner.goes_on):
        return [
            _score_alone(runner, row, wanted) for row, wanted in zip(rows, replies, strict=True)
        ], [()] * len(rows)
    prompts = [Reading(stream) for row in rows for stream in row.streams]
    read = iter(list(_forward_all(runner, prompts, batch_size, _PASS, keep=True)))
    heads = [[next(read) for _ in row.streams] for row in rows]
    totals, greedy, forwarded = [], [], []
    for row, first, wanted in zip(rows, heads, replies, strict=True):
        start = distribution([each.logits for each in first], row.guidance)[0]
        likeliest = int(start.argmax())
        totals.append([float(start[reply[0]]) for reply in wanted])
        greedy.append([reply[0] == likeliest for reply in wanted])
        forwarded.append(sum(len(stream.token_ids) - stream.cached for stream in row.streams))
    # the last token of a reply has nothing to foretell
    behind = [
        (place, number, reply)
        for place, wanted in enumerate(replies)
        for number, reply in enumerate(wanted)
        if len(reply) > 1
    ]
    continued = [
        Reading(_computed(stream, head), list(reply[:-1]))
        for place, _, reply in behind
        for stream, head in zip(rows[place].streams, heads[place], strict=True)
    ]
    later = _forward_all(runner, continued, batch_size, _WHOLE, keep=False)
    for place, number, reply in behind:
        logits = [next(later).logits for _ in rows[place].streams]
        expected = distribution(logits, rows[place].guidance)
        totals[place][number] += _sum(expected, reply[1:])
        greedy[place][number] &= _is_greedy(expected, reply[1:])
        forwarded[place] += (len(reply) - 1) * len(logits)
    scored = [
        Scored(tuple(values), tuple(map(len, wanted)), count, tuple(likeliest))
        for values, wanted, count, likeliest in zip(totals, replies, forwarded, greedy, strict=True)
    ]
    return scored, [tuple(each.computed for each in first if each.computed) for first in heads]


def score_in_memory(
    runner: Runner,
    rows: Sequence[Row],
    replies: Sequence[Sequence[tuple[int, ...]]],
    batch_size: int,
) -> tuple[list[Scored], list[tuple[KeysValues, ...]]]:
    """`score_rows`, with half of the batch for as long as memory runs out.

    Raises:
        ModelError: it runs out with a single chat.
    """
    chats = max(len(rows), max(map(len, replies)))
    return in_memory(
        lambda size: score_rows(runner, rows, replies, size), batch_size, chats, runner.name
    )


def _computed(stream: Stream, head: _Forwarded) -> Stream:
    """A stream whose whole prompt is computed."""
    prefix = Prefix(stream.token_ids, stream.span, stream.methods, head.computed)
    return Stream(stream.token_ids, stream.span, stream.methods, prefix, len(stream.token_ids))


def _score_alone(runner: Runner, row: Row, wanted: Sequence[tuple[int, ...]]) -> Scored:
    values, greedy, forwarded = [], [], 0
    for reply in wanted:
        readings = [Reading(stream, list(reply[:-1])) for stream in row.streams]
        logits = [forward_alone(runner, reading, len(reply)) for reading in readings]
        forwarded += sum(map(len, readings))
        expected = distribution(logits, row.guidance)
        values.append(_sum(expected, reply))
        greedy.append(_is_greedy(expected, reply))
    return Scored(tuple(values), tuple(map(len, wanted)), forwarded, tuple(greedy))


def _forward_all(
    runner: Runner, readings: Sequence[Reading], batch_size: int, limit: int, *, keep: bool
) -> Iterator[_Forwarded]:
    """The readings forwarded, in order.

    With `keep`, the logits of the last token and the keys and values of all; else the logits of
    every token that is not computed.
    """
    for group in _groups(readings, batch_size, limit):
        slots = runner.slots()
        for reading in group:
            slots.open(reading.stream.known)
        every, starts = range(len(group)), list(slots.lengths)
        ends = [len(reading) for reading in group]
        longest = max(end - start for start, end in zip(starts, ends, strict=True))
        span, last = spans_of(group, runner.device), 1 if keep else longest
        logits = forward_slots(runner, slots, every, group, starts, span, last).logits
        slots.commit(every, ends)
        for slot, (start, end) in enumerate(zip(starts, ends, strict=True)):
            wanted = 1 if keep else end - start
            yield _Forwarded(logits[slot, -wanted:], slots.computed(slot) if keep else None)


def _groups(readings: Sequence[Reading], batch_size: int, limit: int) -> Iterator[list[Reading]]:
    """The readings in order, as many at a time as the padded pass has room for."""
    group: list[Reading] = []
    longest = 0
    for reading in readings:
        fresh = len(reading) - reading.stream.cached
        longest = max(longest, fresh)
        if group and (len(group) >= batch_size or longest * (len(group) + 1) > limit):
            yield group
            group, longest = [], fresh
        group.append(reading)
    if group:
        yield group


def distribution(logits: Sequence[Tensor], guidance: EditsLogits | None) -> Tensor:
    """Log-probabilities, float32 [token, vocabulary], that one or two streams make together."""
    first = logits[0] if guidance is None else guidance.guide(logits[0], logits[1])
    return first.float().log_softmax(-1)


def _sum(distributions: Tensor, reply: Sequence[int]) -> float:
    chosen = torch.tensor(reply, device=distributions.device)[:, None]
    return float(distributions.gather(-1, chosen).double().sum())


def _is_greedy(distributions: Tensor, reply: Sequence[int]) -> bool:
    """Whether each token is the likeliest at its place."""
    return distributions.argmax(-1).tolist() == list(reply)
