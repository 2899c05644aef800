"""Log-probabilities of given replies: the chat is forwarded once, and every reply behind its keys
and values; or token by token as they would be drawn, under methods that try each token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from holdfast.engine.batch import StreamState, spans_of
from holdfast.engine.memory import in_memory
from holdfast.engine.prefixes import KeysValues, Prefix
from holdfast.engine.rows import Row, Stream
from holdfast.engine.runner import Runner, forward_alone, forward_slots
from holdfast.engine.scheduler import Handle, Scheduler
from holdfast.sampling import Sampling

_PASS = 16_384  # tokens of one pass, padding included, unless a single row has more
_WHOLE = 2_048  # the same where every token's logits are wanted


@dataclass(frozen=True)
class Scored:
    """Scores of given replies to one chat.

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
    """The outputs of a pass for one reading.

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
    if not (runner.batched and runner.supports_chunked_prefill):
        return [
            _score_alone(runner, row, wanted) for row, wanted in zip(rows, replies, strict=True)
        ], [()] * len(rows)
    prompts = [StreamState(stream) for row in rows for stream in row.streams]
    read = iter(list(_forward_all(runner, prompts, batch_size, _PASS, keep=True)))
    heads = [[next(read) for _ in row.streams] for row in rows]
    totals, greedy, forwarded = [], [], []
    for row, first, wanted in zip(rows, heads, replies, strict=True):
        start = distribution([head.logits for head in first], row)[0]
        likeliest = int(start.argmax())
        totals.append([float(start[reply[0]]) for reply in wanted])
        greedy.append([reply[0] == likeliest for reply in wanted])
        forwarded.append(sum(len(stream.token_ids) - stream.cached for stream in row.streams))
    # the last token of a reply has nothing to foretell
    behind = [
        (index, number, reply)
        for index, wanted in enumerate(replies)
        for number, reply in enumerate(wanted)
        if len(reply) > 1
    ]
    continued = [
        StreamState(_computed(stream, head), list(reply[:-1]))
        for index, _, reply in behind
        for stream, head in zip(rows[index].streams, heads[index], strict=True)
    ]
    later = _forward_all(runner, continued, batch_size, _WHOLE, keep=False)
    for index, number, reply in behind:
        logits = [next(later).logits for _ in rows[index].streams]
        expected = distribution(logits, rows[index])
        totals[index][number] += _sum(expected, reply[1:])
        greedy[index][number] &= _is_greedy(expected, reply[1:])
        forwarded[index] += (len(reply) - 1) * len(logits)
    scored = [
        Scored(tuple(values), tuple(map(len, wanted)), count, tuple(likeliest))
        for values, wanted, count, likeliest in zip(totals, replies, forwarded, greedy, strict=True)
    ]
    return scored, [tuple(head.computed for head in first if head.computed) for first in heads]


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
        readings = [StreamState(stream, list(reply[:-1])) for stream in row.streams]
        logits = [forward_alone(runner, reading, len(reply)) for reading in readings]
        forwarded += sum(map(len, readings))
        expected = distribution(logits, row)
        values.append(_sum(expected, reply))
        greedy.append(_is_greedy(expected, reply))
    return Scored(tuple(values), tuple(map(len, wanted)), forwarded, tuple(greedy))


def _forward_all(
    runner: Runner, readings: Sequence[StreamState], batch_size: int, limit: int, *, keep: bool
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
        logits = forward_slots(runner, slots, every, group, span, last).logits
        slots.commit(every, ends)
        for slot, (start, end) in enumerate(zip(starts, ends, strict=True)):
            wanted = 1 if keep else end - start
            yield _Forwarded(logits[slot, -wanted:], slots.computed(slot) if keep else None)


def _groups(
    readings: Sequence[StreamState], batch_size: int, limit: int
) -> Iterator[list[StreamState]]:
    """The readings in order, as many at a time as the padded pass has room for."""
    group: list[StreamState] = []
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


def distribution(logits: Sequence[Tensor], row: Row) -> Tensor:
    """Log-probabilities, float32 [token, vocabulary], that the streams of a row make together."""
    first = logits[0]
    for method in row.guides:
        first = method.guide(first, logits[1])
    return first.float().log_softmax(-1)


def _sum(distributions: Tensor, reply: Sequence[int]) -> float:
    chosen = torch.tensor(reply, device=distributions.device)[:, None]
    return float(distributions.gather(-1, chosen).double().sum())


def _is_greedy(distributions: Tensor, reply: Sequence[int]) -> bool:
    """Whether each token is the likeliest at its place."""
    return distributions.argmax(-1).tolist() == list(reply)


# Token by token


def score_by_method(
    runner: Runner,
    scheduler: Callable[[], Scheduler],
    rows: Sequence[Row],
    replies: Sequence[Sequence[tuple[int, ...]]],
    batch_size: int,
) -> tuple[list[Scored], list[tuple[KeysValues, ...]]]:
    """Scores several replies to each of several chats: in one pass, or token by token where a
    method of the row makes trials for each token.

    Args:
        runner: the model.
        scheduler: makes one of the model, without rows.
        rows, replies, batch_size: as of `score_in_memory`, which says what is returned.
    """
    scores_of: dict[int, tuple[Scored, tuple[KeysValues, ...]]] = {}
    for tries in (False, True):
        places = [index for index, row in enumerate(rows) if bool(row.trials) is tries]
        if not places:
            continue
        some, wanted = [rows[index] for index in places], [replies[index] for index in places]
        if tries:
            scores = score_given(scheduler(), some, wanted)
        else:
            scores = score_in_memory(runner, some, wanted, batch_size)
        scores_of |= dict(zip(places, zip(*scores, strict=True), strict=True))
    every = [scores_of[index] for index in range(len(rows))]
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
        As `score_rows`; keys and values of the rows that are to be kept.
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
    return list(map(_scored, handles)), [_computed_of(first) for first, *_ in handles]


def _given(row: Row, reply: tuple[int, ...], *, keep: bool) -> Row:
    """A row that takes the tokens of a reply, and tells how probable each was."""
    sampling = Sampling(max_new_tokens=len(reply))
    return replace(
        row, sampling=sampling, keep=keep, trace=False, room=1, top_logprobs=1, given=reply
    )


def _computed_of(handle: Handle) -> tuple[KeysValues, ...]:
    """Of each stream; () where that of one cannot be had."""
    computed = handle.result().computed
    known = tuple(keys_values for keys_values in computed if keys_values is not None)
    return known if len(known) == len(computed) else ()


def _scored(handles: Sequence[Handle]) -> Scored:
    done = [handle.result() for handle in handles]
    likeliest = [[step.top[0][0] for step in handle.log_probabilities] for handle in handles]
    return Scored(
        tuple(sum(step.drawn for step in handle.log_probabilities) for handle in handles),
        tuple(len(reply.token_ids) for reply in done),
        sum(reply.forwarded for reply in done),
        tuple(
            tokens == list(reply.token_ids) for tokens, reply in zip(likeliest, done, strict=True)
        ),
    )
