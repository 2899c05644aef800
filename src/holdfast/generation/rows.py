"""Rows, the requests to the engine: they have token ids, spans and methods, but no text.

Stream        a prompt with its span and methods
Matcher       follows a reply through a grammar, which a `TokenGrammar` makes
Row           a reply to generate, from one stream or two
StreamState   a stream and the tokens generated after it
RowState      a submitted row: what is generated so far, and how it ended
TokenMass     the attention mass on the span when a token was drawn
Continuation  the result of a row
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from holdfast.attention import AttentionTrace
from holdfast.errors import ModelError
from holdfast.generation.drawing import DrawnToken, LogProbability, uniforms
from holdfast.generation.kv_cache import CachedPrefix, KVCache
from holdfast.generation.sampling import Penalties, Sampling
from holdfast.methods.compiled import UNSTEERED, CompiledMethods
from holdfast.methods.protocols import EditsLogits


@dataclass(eq=False)
class Stream:
    """A prompt with its span and methods."""

    token_ids: tuple[int, ...]  # the whole prompt
    span: tuple[bool, ...]  # True on the tokens to emphasise
    compiled: CompiledMethods = UNSTEERED  # the methods that act inside a forward pass
    # an earlier prompt with the same first tokens; dropped once its keys and values are copied
    # into the prompt's slot, so that running rows keep no earlier state of a dialog in memory
    prefix: CachedPrefix | None = None
    num_shared: int = 0  # first tokens shared with the prefix; always fewer than the prompt has

    @classmethod
    def after(
        cls,
        prefix: CachedPrefix | None,
        token_ids: tuple[int, ...],
        span: tuple[bool, ...],
        compiled: CompiledMethods = UNSTEERED,
    ) -> Stream:
        """Makes a stream that reuses as much of a prefix as possible.

        Only those methods are kept that act inside a pass over this span.
        """
        compiled = compiled.in_pass_over(span)
        if prefix is None:
            return cls(token_ids, span, compiled)
        num_shared = prefix.shared_with(token_ids, span, compiled)
        return cls(token_ids, span, compiled, prefix, num_shared)

    @property
    def cached(self) -> int:
        """How many first tokens of the prompt need no forwarding; 0 once the prefix is evicted."""
        return self.num_shared if self.prefix is not None and self.prefix.kv else 0

    @property
    def cached_kv(self) -> KVCache | None:
        """Keys and values of the cached tokens; None if there are none."""
        kv = self.prefix.kv if self.prefix is not None and self.num_shared else None
        return None if kv is None else kv.first(self.num_shared)


class Matcher(Protocol):
    """Follows one reply, and says which tokens its grammar allows next."""

    def prepare(self, token_ids: Sequence[int]) -> None:
        """Starts computing which tokens may follow these, in parallel with the model's pass."""

    def allowed(self, token_ids: Sequence[int]) -> Tensor:
        """Whether each token may follow these, bool [vocabulary of the tokenizer], on the host.

        Raises:
            ModelError: no token can continue the reply.
        """


class TokenGrammar(Protocol):
    """A grammar that restricts the text of a reply."""

    def matcher(self) -> Matcher:
        """Returns a new matcher, positioned at the beginning of a reply."""


@dataclass(frozen=True)
class Row:
    """A reply to generate."""

    # the stream that generates the reply and, if a processor needs it, a second one beside it
    streams: tuple[Stream, ...]
    processors: tuple[EditsLogits, ...] = ()  # edit the logits, in this order
    sampling: Sampling = Sampling()
    seed: int = 0  # determines the draws
    penalties: Penalties = Penalties()  # on tokens already drawn in this reply
    grammar: TokenGrammar | None = None  # restricts the reply; None: any text
    # whether the result keeps the keys and values; such a row goes first, as other rows wait for it
    keep: bool = False
    trace: bool = False  # whether to record the mass on the first stream's span
    # tokens of the context that must be left for the reply, but never more than a quarter of it
    room: int = 1
    # whether keys and values of prompt and reply are shared with other rows
    shares: bool = False
    # how many likeliest tokens to report beside each drawn one, with their log-probabilities; None:
    # no log-probabilities at all
    top_logprobs: int | None = None
    name: str = ""  # identifies the row in errors

    @property
    def longest(self) -> int:
        """Length of the longest prompt in tokens."""
        return max(len(stream.token_ids) for stream in self.streams)

    @property
    def traces_span(self) -> bool:
        """Whether the mass is recorded: this is requested, and the first stream has a span."""
        return self.trace and any(self.streams[0].span)

    def reusable_len(self, number: int) -> int | None:
        """How many first tokens of a stream can be reused by a longer prompt; None: all of them."""
        stream = self.streams[number]
        return len(stream.token_ids) if stream.compiled.treats_generated_apart else None


@dataclass(frozen=True)
class Continuation:
    """The result of a row."""

    token_ids: tuple[int, ...]  # the generated tokens, without the one that ended the reply
    stop_reason: str  # "stop", "length", or "context" if the prompt leaves no room
    # per stream, keys and values of the prompt and, unless generated tokens are steered in another
    # way, of the forwarded tokens of the reply; None if not available; () unless kept
    kv: tuple[KVCache | None, ...] = ()
    # attention when each token was drawn; None unless requested and the first stream has a span
    trace: AttentionTrace | None = None
    forwarded: int = 0  # tokens of this row that went through the model


@dataclass(frozen=True)
class StreamState:
    """A stream and the tokens generated after it: the tokens of one slot."""

    stream: Stream
    # the tokens after the prompt: a list that grows, and that all streams of a row share
    generated: list[int] = field(default_factory=list)
    trace: bool = False  # whether to record the mass on the span

    def __len__(self) -> int:
        return len(self.stream.token_ids) + len(self.generated)

    @cached_property
    def span(self) -> Tensor:
        """The prompt's span, bool [token], on the host; cached, as every new batch reads it."""
        return torch.tensor(self.stream.span)

    def without_last(self) -> StreamState:
        """Returns the same stream without its last token."""
        if self.generated:
            return replace(self, generated=self.generated[:-1])
        stream = self.stream
        shorter = replace(stream, token_ids=stream.token_ids[:-1], span=stream.span[:-1])
        return replace(self, stream=shorter)

    def tokens_from(self, start: int) -> Sequence[int]:
        """Returns the tokens from position `start` on."""
        prompt = self.stream.token_ids
        if start >= len(prompt):
            return self.generated[start - len(prompt) :]
        return [*prompt[start:], *self.generated]


class TokenMass(NamedTuple):
    """The attention mass on the span when a token was drawn."""

    heads: Tensor  # [layer, head]
    uniform: Tensor  # under uniform attention, [layer]


@dataclass(eq=False)
class RowState:
    """A submitted row: the tokens generated so far, and how it ended.

    The lists `masses` and `log_probabilities` also have an entry for the token that ended the
    reply; `token_ids` does not.
    """

    row: Row
    submitted: int = 0  # the number of the scheduler's step at which the row was submitted
    token_ids: list[int] = field(default_factory=list)  # shared with its streams
    # how often each token is in `token_ids`
    token_counts: Counter[int] = field(default_factory=Counter)
    masses: list[TokenMass] = field(default_factory=list)  # on the span, if traced
    log_probabilities: list[LogProbability] = field(default_factory=list)  # if requested
    # per stream, keys and values of its first tokens in consecutive pieces; emptied once they are
    # copied into its slot
    reused: list[tuple[KVCache, ...]] = field(default_factory=list)
    cached: int = 0  # tokens of the first stream's prompt that were not forwarded
    forwarded: int = 0  # tokens that went through the model since the row (re)started
    continuation: Continuation | None = None  # set when the row ends without an error
    error: Exception | None = None  # why the row ended without a continuation
    cancelled: bool = False
    _settled: int = field(default=0, init=False)  # tokens that a rewind keeps

    @property
    def done(self) -> bool:
        """Whether the row has ended or was cancelled."""
        return self.cancelled or self.error is not None or self.continuation is not None

    def result(self) -> Continuation:
        """Returns the result of the row.

        Raises:
            Exception: the error that ended the row.
            ModelError: the row has not ended, or was cancelled.
        """
        if self.error is not None:
            raise self.error
        if self.continuation is None:
            state = "was cancelled" if self.cancelled else "has not ended"
            raise ModelError(f"The row {self.row.name!r} {state}, so it has no reply.")
        return self.continuation

    # While it is generated

    @cached_property
    def streams(self) -> list[StreamState]:
        """The streams of the row, each followed by the generated tokens."""
        return [StreamState(stream, self.token_ids, self.row.trace) for stream in self.row.streams]

    @property
    def penalties(self) -> tuple[float, float]:
        """The frequency penalty and the presence penalty."""
        return self.row.penalties.frequency, self.row.penalties.presence

    @cached_property
    def matcher(self) -> Matcher | None:
        """The matcher of the row's grammar; None without a grammar."""
        return None if self.row.grammar is None else self.row.grammar.matcher()

    @cached_property
    def _uniforms(self) -> list[float]:
        return uniforms(self.row.seed, self.row.sampling.max_new_tokens)

    @property
    def reused_lengths(self) -> list[int]:
        """Per stream, how many first tokens need no forwarding because they are reused."""
        return [pieces[-1].tokens if pieces else 0 for pieces in self.reused]

    @property
    def num_new_tokens(self) -> int:
        """The largest number of tokens that one of its streams has to forward."""
        pairs = zip(self.streams, self.reused_lengths, strict=True)
        return max(len(stream) - reused for stream, reused in pairs)

    def start(self, reused: Sequence[tuple[KVCache, ...]]) -> None:
        """Prepares the row for its first pass.

        Args:
            reused: per stream, the keys and values to reuse, in consecutive pieces.
        """
        self.reused = list(reused)
        self.cached = self.reused_lengths[0]
        if self.matcher is not None:
            self.matcher.prepare(self.token_ids)

    @property
    def next_number(self) -> float:
        """The random number in [0, 1) for drawing the next token."""
        return self._uniforms[len(self.token_ids)]

    def add(self, token: DrawnToken, stop_ids: frozenset[int]) -> str | None:
        """Appends a token; returns the reason if the row ends with it, otherwise None."""
        if isinstance(token, Exception):
            self.error = token
            return "error"
        if token in stop_ids:
            return "stop"
        self.token_ids.append(token)
        self.token_counts[token] += 1
        if len(self.token_ids) >= self.row.sampling.max_new_tokens:
            return "length"
        if self.matcher is not None:
            self.matcher.prepare(self.token_ids)
        return None

    def finish(self, reason: str, kv: tuple[KVCache | None, ...]) -> None:
        """Sets the continuation, unless the row ended in an error."""
        if self.error is not None:
            return
        trace = None
        if self.row.traces_span:
            heads = torch.stack([mass.heads for mass in self.masses], -1)
            uniform = torch.stack([mass.uniform for mass in self.masses], -1)
            trace = AttentionTrace(heads.cpu(), uniform.cpu())
        ids = tuple(self.token_ids)
        self.continuation = Continuation(ids, reason, kv, trace, self.forwarded)

    def settle(self) -> None:
        """Marks the tokens so far as final, after a step that did not fail.

        The prefixes that the row reuses are now copied into its slots, so they are dropped; if
        memory runs out later, their tokens are forwarded again.
        """
        self._settled = len(self.token_ids)
        for stream in self.row.streams:
            stream.prefix = None

    def rewind(self) -> None:
        """Removes everything that a failed step has added, so that the row can start again."""
        for per_token in (self.token_ids, self.masses, self.log_probabilities):
            del per_token[self._settled :]
        self.token_counts = Counter(self.token_ids)
        self.continuation = self.error = None
        self.reused = []
        self.forwarded = 0
