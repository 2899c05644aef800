"""Log-probabilities of given replies.

Each chat is forwarded once, and its keys and values are reused for every reply to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from holdfast.attention import RotaryLengths
from holdfast.generation.batch import StreamGroup, batch_of
from holdfast.generation.kv_cache import CachedPrefix, KVCache
from holdfast.generation.memory import compute_with_halving
from holdfast.generation.row_runner import RowRunner
from holdfast.generation.rows import Row, Stream, StreamState
from holdfast.generation.runner import Runner

# tokens of one pass, padding included; a single row may have more
_MAX_PASS_TOKENS = 16_384
_MAX_PASS_TOKENS_WITH_LOGITS = 2_048  # likewise, if every token gets logits
_MAX_PROMPT_TOKENS = 65_536  # prompt tokens whose keys and values are in memory at once

TokenIds = tuple[int, ...]


@dataclass(frozen=True)
class Scored:
    """Scores of given replies to one chat.

    Args:
        log_probabilities: per reply, the sum over its tokens, natural logarithm, at temperature 1;
            the token that ends the reply is not included.
        tokens: per reply, how many tokens it has.
        forwarded: how many tokens the model read in all, the chat included.
        greedy: per reply, whether each token is the likeliest one, so that the model would generate
            it at temperature 0.
    """

    log_probabilities: tuple[float, ...]
    tokens: tuple[int, ...]
    forwarded: int
    greedy: tuple[bool, ...]


@dataclass(frozen=True)
class ScoredRow:
    """The scores of a row's replies, and the keys and values of its prompts."""

    scored: Scored
    # one per stream; () unless the row is kept, or if the model gives none
    kv: tuple[KVCache, ...] = ()


def score_rows(
    runner: RowRunner, rows: Sequence[Row], replies: Sequence[Sequence[TokenIds]], batch_size: int
) -> list[ScoredRow]:
    """Scores several replies to each of several chats; halves the batch whenever memory runs out.

    Args:
        runner: the model.
        rows: the chats; their sampling is ignored.
        replies: per chat, the token ids of its replies.
        batch_size: the most chats, or replies, forwarded together.
    """
    chats = max(len(rows), max(map(len, replies)))
    return compute_with_halving(
        lambda size: _score_rows(runner, rows, replies, size), batch_size, chats, runner.name
    )


@torch.inference_mode()
def _score_rows(
    runner: RowRunner, rows: Sequence[Row], replies: Sequence[Sequence[TokenIds]], batch_size: int
) -> list[ScoredRow]:
    continues = runner.batched and runner.supports_chunked_prefill
    if isinstance(runner, Runner) and not continues:
        return [
            _score_alone(runner, row, row_replies)
            for row, row_replies in zip(rows, replies, strict=True)
        ]
    scored: list[ScoredRow] = []
    lengths = [sum(len(stream.token_ids) for stream in row.streams) for row in rows]
    first = 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or sum(lengths[first : end + 1]) > _MAX_PROMPT_TOKENS:
            scored += _score_some(runner, rows[first:end], replies[first:end], batch_size)
            first = end
    return scored


@dataclass(frozen=True)
class _Forwarded:
    """The outputs of a stream that was forwarded."""

    logits: Tensor  # of its last tokens, [token, vocabulary]
    kv: KVCache | None  # its keys and values; None if they are not kept


@dataclass(frozen=True)
class _ReplyPass:
    """A pass over a chat and the first part of a reply, whose last logits are read."""

    state: StreamState
    num_logits: int  # how many last tokens' logits are read
    forwarded: int  # how many tokens the pass forwards


@dataclass(frozen=True)
class _ForwardedRow:
    """A row whose prompts were forwarded, and the replies to score after them."""

    row: Row
    replies: Sequence[TokenIds]
    prompts: Sequence[_Forwarded]  # one per stream

    def plan_later_passes(self, rotary: RotaryLengths, reply: TokenIds) -> list[list[_ReplyPass]]:
        """Plans, per stream, the passes that predict a reply's tokens after the first one.

        The first token is predicted by the last logits of the prompt, so the result is [] for a
        reply of one token.
        """
        if len(reply) == 1:
            return []
        passes = []
        for stream, prompt in zip(self.row.streams, self.prompts, strict=True):
            prefix = CachedPrefix(stream.token_ids, stream.span, stream.compiled, prompt.kv)
            whole = replace(stream, prefix=prefix, num_shared=len(stream.token_ids))
            passes.append(_plan_passes(rotary, whole, reply, 1))
        return passes

    def score(
        self, passes: Sequence[Sequence[Sequence[_ReplyPass]]], outputs: Iterator[_Forwarded]
    ) -> ScoredRow:
        """Scores the replies.

        Args:
            passes: the later passes of each reply.
            outputs: the outputs of these passes, in order; only these are taken from the iterator.
        """
        start = distribution([prompt.logits for prompt in self.prompts], self.row)
        scores = []
        for reply, reply_passes in zip(self.replies, passes, strict=True):
            score = _score(start, reply[:1])
            if reply_passes:
                logits = [
                    _concatenate([next(outputs).logits[-part.num_logits :] for part in parts])
                    for parts in reply_passes
                ]
                score = score.plus(_score(distribution(logits, self.row), reply[1:]))
            scores.append(score)
        count = sum(len(stream.token_ids) - stream.cached for stream in self.row.streams)
        count += sum(part.forwarded for part in chain(*chain(*passes)))
        kv: list[KVCache] = []
        if self.row.keep:
            kv += [p.kv for p in self.prompts if p.kv is not None]
        return ScoredRow(_collect_scores(self.replies, scores, count), tuple(kv))


def _score_some(
    runner: RowRunner, rows: Sequence[Row], replies: Sequence[Sequence[TokenIds]], batch_size: int
) -> list[ScoredRow]:
    """Scores rows whose prompts fit into memory together."""
    streams = [StreamState(stream) for row in rows for stream in row.streams]
    prompts = iter(list(_forward_all(runner, streams, batch_size, _MAX_PASS_TOKENS, keep=True)))
    forwarded = [
        _ForwardedRow(row, row_replies, [next(prompts) for _ in row.streams])
        for row, row_replies in zip(rows, replies, strict=True)
    ]
    # per row, the passes of each reply
    passes = [
        [row.plan_later_passes(runner.rotary, reply) for reply in row.replies] for row in forwarded
    ]
    states = [part.state for part in chain(*chain(*chain(*passes)))]
    outputs = _forward_all(runner, states, batch_size, _MAX_PASS_TOKENS_WITH_LOGITS, keep=False)
    return [
        row.score(row_passes, outputs) for row, row_passes in zip(forwarded, passes, strict=True)
    ]


def _plan_passes(
    rotary: RotaryLengths, stream: Stream, reply: TokenIds, first: int
) -> list[_ReplyPass]:
    """Plans the passes that predict a reply's tokens from number `first` on.

    Token `first` is predicted by the logits of the token before it, which for 0 is the last token
    of the chat. One pass is enough, unless the reply crosses a length at which the rotary factors
    change: then each pass covers the tokens with the same factors.
    """
    chat = len(stream.token_ids)
    passes = list[_ReplyPass]()
    start = chat + first
    last = chat + len(reply) - 1
    while start <= last:
        end = min(last, rotary.like(start)[-1])
        cached = stream.cached if end in rotary.like(chat) else 0
        state = StreamState(stream, list(reply[: end - chat]))
        passes.append(_ReplyPass(state, end - start + 1, end - cached))
        start = end + 1
    return passes


def _concatenate(logits: Sequence[Tensor]) -> Tensor:
    """Concatenates the logits of successive passes; a single one is not copied."""
    return logits[0] if len(logits) == 1 else torch.cat(list(logits))


def _score_alone(runner: Runner, row: Row, replies: Sequence[TokenIds]) -> ScoredRow:
    """Scores a row whose model cannot reuse keys and values: forwards the chat with each reply."""
    scores = list[_Score]()
    forwarded = 0
    for reply in replies:
        passes = [_plan_passes(runner.rotary, stream, reply, 0) for stream in row.streams]
        logits = [
            _concatenate([_forward_whole(runner, part.state, part.num_logits) for part in parts])
            for parts in passes
        ]
        forwarded += sum(len(part.state) for part in chain(*passes))
        scores.append(_score(distribution(logits, row), reply))
    return ScoredRow(_collect_scores(replies, scores, forwarded))


def _forward_whole(runner: Runner, state: StreamState, num_logits: int) -> Tensor:
    """Forwards a stream alone; returns its last `num_logits` logits, [token, vocabulary]."""
    batch = batch_of(StreamGroup([state], runner.device), [0], logits=num_logits)
    return runner.forward(batch).logits[0]


def _forward_all(
    runner: RowRunner, states: Sequence[StreamState], batch_size: int, limit: int, *, keep: bool
) -> Iterator[_Forwarded]:
    """Forwards streams in batches, and yields the outputs of each stream in order.

    With `keep`, these are the logits of the last token, and the keys and values; otherwise, the
    logits of all new tokens.
    """
    for group in _groups(states, batch_size, limit):
        slots = runner.slots()
        for state in group:
            slots.open(state.stream.cached_kv)
        slot_numbers = range(len(group))
        starts = list(slots.lengths)
        ends = [len(state) for state in group]
        num_new_tokens = [end - start for start, end in zip(starts, ends, strict=True)]
        num_logits = 1 if keep else max(num_new_tokens)
        streams = StreamGroup(group, runner.device)
        logits = runner.forward_slots(slots, slot_numbers, streams, num_logits).logits
        slots.commit(slot_numbers, ends)
        for slot, count in enumerate(num_new_tokens):
            if keep:
                yield _Forwarded(logits[slot, -1:], slots.copy_kv(slot))
            else:
                yield _Forwarded(logits[slot, -count:], None)


def _groups(
    states: Sequence[StreamState], batch_size: int, limit: int
) -> Iterator[list[StreamState]]:
    """Splits streams, in order, into groups that fit into a padded pass of `limit` tokens."""
    group: list[StreamState] = []
    longest = 0
    for state in states:
        new = len(state) - state.stream.cached
        longest = max(longest, new)
        if group and (len(group) >= batch_size or longest * (len(group) + 1) > limit):
            yield group
            group = []
            longest = new
        group.append(state)
    if group:
        yield group


def distribution(logits: Sequence[Tensor], row: Row) -> Tensor:
    """Combines the logits of a row's streams into log-probabilities, float32 [token, vocabulary].

    Args:
        logits: per stream, [token, vocabulary].
        row: its processors combine the streams.
    """
    first = logits[0]
    for method in row.processors:
        first = method.combine_logits(first, logits[1])
    return first.float().log_softmax(-1)


class _Score(NamedTuple):
    """The score of some tokens of a reply."""

    log_probability: float  # summed over the tokens
    greedy: bool  # whether each token is the likeliest one at its position

    def plus(self, later: _Score) -> _Score:
        """Returns the score of these tokens followed by later ones."""
        total = self.log_probability + later.log_probability
        return _Score(total, self.greedy and later.greedy)


def _score(distributions: Tensor, token_ids: Sequence[int]) -> _Score:
    """Scores tokens under their log-probabilities `distributions`, [token, vocabulary]."""
    ids = torch.tensor(token_ids, device=distributions.device)[:, None]
    total = float(distributions.gather(-1, ids).double().sum())
    return _Score(total, distributions.argmax(-1).tolist() == list(token_ids))


def _collect_scores(
    replies: Sequence[TokenIds], scores: Sequence[_Score], forwarded: int
) -> Scored:
    """Collects the scores of a row's replies; `forwarded` tokens were read for them."""
    return Scored(
        tuple(score.log_probability for score in scores),
        tuple(map(len, replies)),
        forwarded,
        tuple(score.greedy for score in scores),
    )
