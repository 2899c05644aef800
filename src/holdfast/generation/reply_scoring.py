"""Log-probabilities of given replies: each chat is forwarded once, and every reply after its keys
and values.
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
from holdfast.generation.memory import in_memory
from holdfast.generation.prefixes import KeysValues, Prefix, Reuse
from holdfast.generation.row_runner import RowRunner
from holdfast.generation.rows import Row, Stream, StreamState
from holdfast.generation.runner import Runner

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


@dataclass(frozen=True)
class ScoredRow:
    """The scores of a row's replies, and what was computed of its prompts."""

    scored: Scored
    # keys and values of each stream's prompt; () unless the row is kept, or if there are none
    computed: tuple[KeysValues, ...] = ()


def score_rows(
    runner: RowRunner, rows: Sequence[Row], replies: Sequence[Sequence[TokenIds]], batch_size: int
) -> list[ScoredRow]:
    """Scores several replies to each of several chats; halves the batch whenever memory runs out.

    Args:
        runner: the model.
        rows: the chats; of their sampling, nothing is read.
        replies: of each chat, as token ids.
        batch_size: the most chats, or replies, forwarded together.
    """
    chats = max(len(rows), max(map(len, replies)))
    return in_memory(
        lambda size: _score_rows(runner, rows, replies, size), batch_size, chats, runner.name
    )


@torch.inference_mode()
def _score_rows(
    runner: RowRunner, rows: Sequence[Row], replies: Sequence[Sequence[TokenIds]], batch_size: int
) -> list[ScoredRow]:
    continues = runner.batched and runner.supports_chunked_prefill
    if isinstance(runner, Runner) and not continues:
        return [
            _score_alone(runner, row, of_row) for row, of_row in zip(rows, replies, strict=True)
        ]
    scored: list[ScoredRow] = []
    lengths = [sum(len(stream.token_ids) for stream in row.streams) for row in rows]
    first = 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or sum(lengths[first : end + 1]) > _PROMPT_TOKENS:
            scored += _score_some(runner, rows[first:end], replies[first:end], batch_size)
            first = end
    return scored


@dataclass(frozen=True)
class _Forwarded:
    """A stream that was forwarded."""

    logits: Tensor  # of its last tokens, [token, vocabulary]
    computed: KeysValues | None  # what was computed of it, if it is wanted


@dataclass(frozen=True)
class _ReplyPass:
    """A pass over a chat and the beginning of a reply, whose last logits are wanted."""

    state: StreamState
    wanted: int  # how many last tokens' logits are read
    forwarded: int  # how many tokens the pass forwards


@dataclass(frozen=True)
class _ForwardedRow:
    """A row whose prompts were forwarded, and the replies to score after them."""

    row: Row
    replies: Sequence[TokenIds]
    prompts: Sequence[_Forwarded]  # of each stream

    def later_passes(self, rotary: RotaryLengths, reply: TokenIds) -> list[list[_ReplyPass]]:
        """The passes of each stream over a reply's tokens after its first, which the last logits of
        the prompt predict; [] if there are none. The last token has nothing to predict.
        """
        if len(reply) == 1:
            return []
        passes = []
        for stream, prompt in zip(self.row.streams, self.prompts, strict=True):
            prefix = Prefix(stream.token_ids, stream.span, stream.compiled, prompt.computed)
            whole = replace(stream, reuse=Reuse(prefix, len(stream.token_ids)))
            passes.append(_passes(rotary, whole, reply, 1))
        return passes

    def scored(
        self, passes: Sequence[Sequence[Sequence[_ReplyPass]]], forwarded: Iterator[_Forwarded]
    ) -> ScoredRow:
        """The scores of the replies.

        Args:
            passes: the later passes of each reply.
            forwarded: these passes, in order; as many as there are taken from it.
        """
        start = distribution([prompt.logits for prompt in self.prompts], self.row)
        scores = []
        for reply, of_reply in zip(self.replies, passes, strict=True):
            score = _score(start, reply[:1])
            if of_reply:
                logits = [
                    _joined([next(forwarded).logits[-part.wanted :] for part in of_stream])
                    for of_stream in of_reply
                ]
                score = score.plus(_score(distribution(logits, self.row), reply[1:]))
            scores.append(score)
        count = sum(len(stream.token_ids) - stream.cached for stream in self.row.streams)
        count += sum(part.forwarded for part in chain(*chain(*passes)))
        computed: list[KeysValues] = []
        if self.row.keep:
            computed += [p.computed for p in self.prompts if p.computed is not None]
        return ScoredRow(_scored(self.replies, scores, count), tuple(computed))


def _score_some(
    runner: RowRunner, rows: Sequence[Row], replies: Sequence[Sequence[TokenIds]], batch_size: int
) -> list[ScoredRow]:
    """Scores rows whose prompts are in memory together."""
    streams = [StreamState(stream) for row in rows for stream in row.streams]
    prompts = iter(list(_forward_all(runner, streams, batch_size, _PASS_TOKENS, keep=True)))
    forwarded = [
        _ForwardedRow(row, of_row, [next(prompts) for _ in row.streams])
        for row, of_row in zip(rows, replies, strict=True)
    ]
    # per row, the passes of each reply
    passes = [
        [row.later_passes(runner.rotary, reply) for reply in row.replies] for row in forwarded
    ]
    states = [part.state for part in chain(*chain(*chain(*passes)))]
    later = _forward_all(runner, states, batch_size, _PASS_TOKENS_WITH_LOGITS, keep=False)
    return [row.scored(of_row, later) for row, of_row in zip(forwarded, passes, strict=True)]


def _passes(rotary: RotaryLengths, stream: Stream, reply: TokenIds, first: int) -> list[_ReplyPass]:
    """The passes that read a reply, from the logits of its token `first` - 1 on (0: those of the
    last token of the chat). There is one, unless the reply crosses a length at which the rotary
    factors change: then each pass reads the logits that have its factors.
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


def _joined(logits: Sequence[Tensor]) -> Tensor:
    """The logits of successive passes; those of one pass are not copied."""
    return logits[0] if len(logits) == 1 else torch.cat(list(logits))


def _score_alone(runner: Runner, row: Row, replies: Sequence[TokenIds]) -> ScoredRow:
    """Scores a row whose model cannot continue after computed tokens: each reply with its chat."""
    scores = list[_Score]()
    forwarded = 0
    for reply in replies:
        passes = [_passes(runner.rotary, stream, reply, 0) for stream in row.streams]
        logits = [
            _joined([_forward_whole(runner, part.state, part.wanted) for part in of_stream])
            for of_stream in passes
        ]
        forwarded += sum(len(part.state) for part in chain(*passes))
        scores.append(_score(distribution(logits, row), reply))
    return ScoredRow(_scored(replies, scores, forwarded))


def _forward_whole(runner: Runner, state: StreamState, wanted: int) -> Tensor:
    """The last `wanted` logits [token, vocabulary] of a stream that is forwarded alone."""
    batch = batch_of(StreamGroup([state], runner.device), [0], logits=wanted)
    return runner.forward(batch).logits[0]


def _forward_all(
    runner: RowRunner, states: Sequence[StreamState], batch_size: int, limit: int, *, keep: bool
) -> Iterator[_Forwarded]:
    """With `keep`, each stream's last logits, keys and values; else the logits of new tokens."""
    for group in _groups(states, batch_size, limit):
        slots = runner.slots()
        for state in group:
            slots.open(state.stream.cached_keys_values)
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
                yield _Forwarded(logits[slot, -1:], slots.computed(slot))
            else:
                yield _Forwarded(logits[slot, -count:], None)


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
            group = []
            longest = new
        group.append(state)
    if group:
        yield group


def distribution(logits: Sequence[Tensor], row: Row) -> Tensor:
    """Log-probabilities, float32 [token, vocabulary], from all streams of a row."""
    first = logits[0]
    for method in row.processors:
        first = method.combine_logits(first, logits[1])
    return first.float().log_softmax(-1)


class _Score(NamedTuple):
    """The score of some tokens of a reply."""

    log_probability: float  # the sum over them
    greedy: bool  # whether each is the likeliest at its place

    def plus(self, later: _Score) -> _Score:
        """The score of these tokens and later ones."""
        total = self.log_probability + later.log_probability
        return _Score(total, self.greedy and later.greedy)


def _score(distributions: Tensor, token_ids: Sequence[int]) -> _Score:
    """The score of tokens under their distributions, [token, vocabulary]."""
    ids = torch.tensor(token_ids, device=distributions.device)[:, None]
    total = float(distributions.gather(-1, ids).double().sum())
    return _Score(total, distributions.argmax(-1).tolist() == list(token_ids))


def _scored(replies: Sequence[TokenIds], scores: Sequence[_Score], forwarded: int) -> Scored:
    """The scores of whole replies, and how many tokens the model read for them."""
    return Scored(
        tuple(score.log_probability for score in scores),
        tuple(map(len, replies)),
        forwarded,
        tuple(score.greedy for score in scores),
    )
