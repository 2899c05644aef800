"""Log-probabilities of given replies: each chat is forwarded once, and every reply after its keys
and values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.attention import RotaryLengths
from holdfast.engine.batch import spans_of
from holdfast.engine.memory import in_memory
from holdfast.engine.prefixes import KeysValues, Prefix
from holdfast.engine.rows import Row, Stream, StreamState
from holdfast.engine.runner import Runner, forward_alone

_PASS_TOKENS = 16_384  # tokens of one pass, padding included, unless a single row has more
_PASS_TOKENS_WITH_LOGITS = 2_048  # the same if every token's logits are wanted
_PROMPT_TOKENS = 65_536  # prompt tokens whose keys and values are in memory at once


@dataclass(frozen=True)
class Scored:
    """Scores of given replies to one chat.

    Args:
        log_probabilities: one per reply, the sum over its tokens, natural logarithm, at temperature
            1; the end of the reply is not included.
        tokens: one per reply, how many tokens it has.
        forwarded: how many tokens the model read for all of them, with the chat.
        greedy: whether each token of a reply is the likeliest, so that it would be generated at
            temperature 0.
    """

    log_probabilities: tuple[float, ...]
    tokens: tuple[int, ...]
    forwarded: int
    greedy: tuple[bool, ...]


TokenIds = tuple[int, ...]
# Per row, its scores, and the keys and values of each stream's prompt, () if there are none.
Scores = tuple[list[Scored], list[tuple[KeysValues, ...]]]


def score_rows(
    runner: Runner, rows: Sequence[Row], replies: Sequence[Sequence[TokenIds]], batch_size: int
) -> Scores:
    """Scores several replies, as token ids, to each of several chats; halves the batch whenever
    memory runs out.
    """
    chats = max(len(rows), max(map(len, replies)))
    return in_memory(
        lambda size: _score_rows(runner, rows, replies, size), batch_size, chats, runner.name
    )


@torch.inference_mode()
def _score_rows(
    runner: Runner, rows: Sequence[Row], replies: Sequence[Sequence[TokenIds]], batch_size: int
) -> Scores:
    if not (runner.batched and runner.supports_chunked_prefill):
        chats = zip(rows, replies, strict=True)
        return [_score_alone(runner, *chat) for chat in chats], [()] * len(rows)
    scored: list[Scored] = []
    computed: list[tuple[KeysValues, ...]] = []
    lengths = [sum(len(stream.token_ids) for stream in row.streams) for row in rows]
    first = 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or sum(lengths[first : end + 1]) > _PROMPT_TOKENS:
            some = rows[first:end]
            scores, prompts = _score_some(runner, some, replies[first:end], batch_size)
            scored += scores
            pairs = zip(some, prompts, strict=True)
            computed += [prompt if row.keep else () for row, prompt in pairs]
            first = end
    return scored, computed


def _score_some(
    runner: Runner, rows: Sequence[Row], replies: Sequence[Sequence[TokenIds]], batch_size: int
) -> Scores:
    streams = [StreamState(stream) for row in rows for stream in row.streams]
    read = iter(list(_forward_all(runner, streams, batch_size, _PASS_TOKENS, keep=True)))
    # per row and stream, the last logits of the prompt, and its keys and values
    prompts = [[next(read) for _ in row.streams] for row in rows]
    totals, greedy, forwarded = [], [], []
    for row, prompt, wanted in zip(rows, prompts, replies, strict=True):
        start = distribution([logits for logits, _ in prompt], row)[0]
        likeliest = int(start.argmax())
        totals.append([float(start[reply[0]]) for reply in wanted])
        greedy.append([reply[0] == likeliest for reply in wanted])
        forwarded.append(sum(len(stream.token_ids) - stream.cached for stream in row.streams))
    # the last token of a reply has nothing to predict
    continuations = [
        (index, number, reply)
        for index, wanted in enumerate(replies)
        for number, reply in enumerate(wanted)
        if len(reply) > 1
    ]
    # per reply and stream, its passes
    passes = [
        [
            _passes(runner.rotary, _after_prompt(stream, computed), reply, 1)
            for stream, (_, computed) in zip(rows[index].streams, prompts[index], strict=True)
        ]
        for index, _, reply in continuations
    ]
    continued = [part.state for of_reply in passes for of_stream in of_reply for part in of_stream]
    later = _forward_all(runner, continued, batch_size, _PASS_TOKENS_WITH_LOGITS, keep=False)
    for (index, number, reply), of_reply in zip(continuations, passes, strict=True):
        logits = [
            _joined([next(later)[0][-part.wanted :] for part in of_stream])
            for of_stream in of_reply
        ]
        total, is_greedy = _score(distribution(logits, rows[index]), reply[1:])
        totals[index][number] += total
        greedy[index][number] &= is_greedy
        forwarded[index] += sum(part.forwarded for of_stream in of_reply for part in of_stream)
    scored = [
        Scored(tuple(values), tuple(map(len, wanted)), count, tuple(likeliest))
        for values, wanted, count, likeliest in zip(totals, replies, forwarded, greedy, strict=True)
    ]
    return scored, [tuple(computed for _, computed in prompt if computed) for prompt in prompts]


def _after_prompt(stream: Stream, computed: KeysValues | None) -> Stream:
    """A stream whose whole prompt is already computed."""
    prefix = Prefix(stream.token_ids, stream.span, stream.compiled, computed)
    return Stream(stream.token_ids, stream.span, stream.compiled, prefix, len(stream.token_ids))


@dataclass(frozen=True)
class _ReplyPass:
    """A pass over a chat and the beginning of a reply, whose last logits are wanted."""

    state: StreamState
    wanted: int  # how many last tokens' logits are read
    forwarded: int  # how many tokens the pass forwards


def _passes(rotary: RotaryLengths, stream: Stream, reply: TokenIds, first: int) -> list[_ReplyPass]:
    """The passes that read a reply, from the logits of its token `first` - 1 on (0: those of the
    last token of the chat). There is one, unless the reply crosses a length at which the rotary
    factors change: then each pass reads the logits that have its factors.
    """
    chat, passes = len(stream.token_ids), list[_ReplyPass]()
    start, last = chat + first, chat + len(reply) - 1
    while start <= last:
        end = min(last, rotary.like(start)[-1])
        known = stream.cached if end in rotary.like(chat) else 0
        state = StreamState(stream, list(reply[: end - chat]))
        passes.append(_ReplyPass(state, end - start + 1, end - known))
        start = end + 1
    return passes


def _joined(logits: Sequence[Tensor]) -> Tensor:
    """The logits of successive passes; those of one pass are not copied."""
    return logits[0] if len(logits) == 1 else torch.cat(list(logits))


def _score_alone(runner: Runner, row: Row, wanted: Sequence[TokenIds]) -> Scored:
    scores, forwarded = [], 0
    for reply in wanted:
        by_stream = [_passes(runner.rotary, stream, reply, 0) for stream in row.streams]
        logits = [
            _joined([forward_alone(runner, part.state, part.wanted) for part in passes])
            for passes in by_stream
        ]
        forwarded += sum(len(part.state) for passes in by_stream for part in passes)
        scores.append(_score(distribution(logits, row), reply))
    totals, greedy = zip(*scores, strict=True)
    return Scored(totals, tuple(map(len, wanted)), forwarded, greedy)


def _forward_all(
    runner: Runner, states: Sequence[StreamState], batch_size: int, limit: int, *, keep: bool
) -> Iterator[tuple[Tensor, KeysValues | None]]:
    """With `keep`, each stream's last logits, keys and values; else the logits of new tokens."""
    for group in _groups(states, batch_size, limit):
        slots = runner.slots()
        for state in group:
            slots.open(state.stream.known)
        every, starts = range(len(group)), list(slots.lengths)
        ends = [len(state) for state in group]
        longest = max(end - start for start, end in zip(starts, ends, strict=True))
        span, last = spans_of(group, runner.device), 1 if keep else longest
        logits = runner.forward_slots(slots, every, group, span, last).logits
        slots.commit(every, ends)
        for slot, (start, end) in enumerate(zip(starts, ends, strict=True)):
            wanted = 1 if keep else end - start
            yield logits[slot, -wanted:], slots.computed(slot) if keep else None


def _groups(
    states: Sequence[StreamState], batch_size: int, limit: int
) -> Iterator[list[StreamState]]:
    """The streams in order, as many at a time as fit into a padded pass."""
    group: list[StreamState] = []
    longest = 0
    for state in states:
        new = len(state) - state.stream.cached
        longest = max(longest, new)
        if group and (len(group) >= batch_size or longest * (len(group) + 1) > limit):
            yield group
            group, longest = [], new
        group.append(state)
    if group:
        yield group


def distribution(logits: Sequence[Tensor], row: Row) -> Tensor:
    """Log-probabilities, float32 [token, vocabulary], from all streams of a row."""
    first = logits[0]
    for method in row.processors:
        first = method.combine_logits(first, logits[1])
    return first.float().log_softmax(-1)


def _score(distributions: Tensor, reply: Sequence[int]) -> tuple[float, bool]:
    """The log-probability of a reply, and whether each token is the likeliest at its place."""
    chosen = torch.tensor(reply, device=distributions.device)[:, None]
    total = float(distributions.gather(-1, chosen).double().sum())
    return total, distributions.argmax(-1).tolist() == list(reply)
