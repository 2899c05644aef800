"""How far two chats part in what they expect of one reply, token by token.

The reply is read behind each of them, a block of its tokens at a time, so that the logits of no
more than a block are held; what is computed of a chat is not forwarded again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.engine.batch import StreamState, spans_of
from holdfast.engine.memory import in_memory
from holdfast.engine.rows import Row, Stream
from holdfast.engine.runner import Runner, forward_alone
from holdfast.engine.scoring import distribution

BLOCK = 64  # tokens of each reply whose logits are held at once
_STREAMS = 32  # of one pass; with the block they bound its logits
# of one pass, padding included, unless a single pair has more
_PASS = 16_384  # tokens forwarded
_COLUMNS = 65_536  # tokens in sight


@dataclass(frozen=True)
class Pair:
    """One reply behind two chats."""

    row: Row  # the chat that it answered; makes no trials
    reference: Row  # the chat that this is compared with, as many streams
    reply: tuple[int, ...]  # its token ids
    ended: bool  # whether the token that ended it counts too

    @property
    def tokens(self) -> int:
        """How many tokens are foretold, of which the last needs no forwarding."""
        return len(self.reply) + self.ended

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Of both chats."""
        return (*self.row.streams, *self.reference.streams)

    @property
    def longest(self) -> int:
        """Tokens of the longest chat and the reply."""
        return max(self.row.longest, self.reference.longest) + len(self.reply)

    @property
    def widest(self) -> int:
        """Tokens that the longest stream forwards in its first pass."""
        new = max(len(stream.token_ids) - stream.cached for stream in self.streams)
        return new + min(self.tokens, BLOCK) - 1


@dataclass(frozen=True)
class Divergence:
    """How far the distributions of a reply's tokens lie from those behind another chat.

    Args:
        nats: per token KL(q || p), q behind the chat that the reply answered and p behind the
            other; the token that ended the reply is the last. At temperature 1, over the whole
            vocabulary, whatever the reply was drawn with.
        forwarded: tokens that went through the model for it.
    """

    nats: tuple[float, ...]
    forwarded: int = 0

    @property
    def mean(self) -> float:
        """Over the tokens."""
        return sum(self.nats) / len(self.nats)


def divergences_of(runner: Runner, pairs: Sequence[Pair], batch_size: int) -> list[Divergence]:
    """Reads every reply behind its two chats; with half of the batch while memory runs out."""
    streams = sum(len(pair.streams) for pair in pairs)
    together = min(batch_size, _STREAMS, streams)
    return in_memory(lambda size: _compare(runner, pairs, size), together, streams, runner.name)


@torch.inference_mode()
def _compare(runner: Runner, pairs: Sequence[Pair], batch_size: int) -> list[Divergence]:
    if not (runner.batched and runner.supports_chunked_prefill):
        return [_compare_alone(runner, pair) for pair in pairs]
    compared: list[Divergence] = []
    for group in _groups(pairs, batch_size):
        compared += _compare_together(runner, group)
    return compared


def _groups(pairs: Sequence[Pair], batch_size: int) -> Iterator[list[Pair]]:
    """The pairs in order, as many at a time as the padded pass has room for."""
    group: list[Pair] = []
    for pair in pairs:
        together = [*group, pair]
        streams = sum(len(member.streams) for member in together)
        fits = (
            streams <= batch_size
            and streams * max(member.widest for member in together) <= _PASS
            and streams * max(member.longest for member in together) <= _COLUMNS
        )
        if group and not fits:
            yield group
            group = []
        group.append(pair)
    if group:
        yield group


def _compare_together(runner: Runner, pairs: Sequence[Pair]) -> list[Divergence]:
    """Some pairs, block by block; one whose reply is over leaves."""
    owners = [index for index, pair in enumerate(pairs) for _ in pair.streams]
    streams = [stream for pair in pairs for stream in pair.streams]
    slots = runner.slots()
    for stream in streams:
        slots.open(stream.known)
    span = spans_of([StreamState(stream) for stream in streams], runner.device)
    nats: list[list[float]] = [[] for _ in pairs]
    forwarded = [0] * len(pairs)
    for start in range(0, max(pair.tokens for pair in pairs), BLOCK):
        counts = [min(BLOCK, pair.tokens - start) for pair in pairs]
        which = [slot for slot, owner in enumerate(owners) if counts[owner] > 0]
        states = []
        for slot in which:
            end = start + counts[owners[slot]] - 1
            states.append(StreamState(streams[slot], list(pairs[owners[slot]].reply[:end])))
        starts = [slots.lengths[slot] for slot in which]
        every = range(len(streams))
        whole = len(which) == len(every)
        logits = runner.forward_slots(
            slots, every if whole else which, states, span if whole else span[which], max(counts)
        ).logits
        slots.commit(which, [len(state) for state in states])
        seen: dict[int, list[Tensor]] = {}
        for index, slot in enumerate(which):
            owner = owners[slot]
            seen.setdefault(owner, []).append(logits[index, -counts[owner] :])
            forwarded[owner] += len(states[index]) - starts[index]
        for owner, stream_logits in seen.items():
            nats[owner] += _nats(pairs[owner], stream_logits)
    return [Divergence(tuple(sums), count) for sums, count in zip(nats, forwarded, strict=True)]


def _compare_alone(runner: Runner, pair: Pair) -> Divergence:
    """A pair of a model whose rows run alone, whole."""
    read = list(pair.reply[: pair.tokens - 1])
    states = [StreamState(stream, read) for stream in pair.streams]
    logits = [forward_alone(runner, state, pair.tokens) for state in states]
    return Divergence(tuple(_nats(pair, logits)), sum(map(len, states)))


def _nats(pair: Pair, logits: Sequence[Tensor]) -> list[float]:
    """KL(q || p) of each token from logits [token, vocabulary], not below 0 by rounding."""
    count = len(pair.row.streams)
    answered = distribution(logits[:count], pair.row)
    reference = distribution(logits[count:], pair.reference)
    chances = answered.exp()
    # where both are impossible, their difference is not a number
    gaps = torch.where(chances > 0, answered - reference, 0.0)
    nats: list[float] = (chances * gaps).sum(-1).clamp(min=0).tolist()
    return nats
