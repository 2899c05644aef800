"""Requests to the engine and its results: token ids, spans and methods, no text."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.attention import AttentionTrace
from holdfast.common.sampling import Sampling
from holdfast.engine.prefixes import KeysValues, Prefix
from holdfast.methods.compiled import UNSTEERED, CompiledMethods
from holdfast.methods.protocols import EditsLogits


@dataclass(frozen=True)
class Stream:
    """A prompt with its span and methods."""

    token_ids: tuple[int, ...]  # the whole prompt
    span: tuple[bool, ...]  # True on the tokens to emphasise
    compiled: CompiledMethods = UNSTEERED  # its methods that act inside a forward pass
    prefix: Prefix | None = None  # first tokens of the prompt that may be computed already
    # how many first tokens use the keys and values of `prefix`; at least one token is left
    shared: int = 0

    @classmethod
    def after(
        cls,
        prefix: Prefix | None,
        token_ids: tuple[int, ...],
        span: tuple[bool, ...],
        compiled: CompiledMethods = UNSTEERED,
    ) -> Stream:
        """A stream under the methods that act inside a pass, of which some need a span. It reuses
        as much of a prefix as it can.
        """
        compiled = compiled.in_pass if any(span) else compiled.in_pass.without_span
        if prefix is None:
            return cls(token_ids, span, compiled)
        shared = prefix.shared_with(token_ids, span, compiled)
        return cls(token_ids, span, compiled, prefix, shared)

    @property
    def cached(self) -> int:
        """Tokens of the prompt that need no forwarding; 0 once the prefix is evicted."""
        return 0 if self.prefix is None or self.prefix.keys_values is None else self.shared

    @property
    def known(self) -> KeysValues | None:
        """Keys and values of the cached tokens."""
        prefix, count = self.prefix, self.cached
        return prefix.keys_values.first(count) if prefix and prefix.keys_values and count else None


@dataclass(frozen=True)
class Row:
    """A reply to generate."""

    # the one that generates the reply and, if a processor needs it, the one that reads along
    streams: tuple[Stream, ...]
    processors: tuple[EditsLogits, ...] = ()  # change the logits, in order
    sampling: Sampling = Sampling()
    seed: int = 0  # determines its draws
    # whether the keys and values are wanted afterwards; others wait for such a row, so it goes
    # first
    keep: bool = False
    trace: bool = False  # whether the mass on the first stream's span is wanted
    # tokens that the context must have left for the reply; never more than a quarter of the context
    # is required
    room: int = 1
    # whether keys and values of prompts and replies are shared with other rows
    shares: bool = False
    # how many likeliest tokens to report with the log-probability of each drawn one; None: no
    # log-probabilities
    top_logprobs: int | None = None
    name: str = ""  # identifies the row in errors

    @property
    def longest(self) -> int:
        """Tokens of the longest prompt."""
        return max(len(stream.token_ids) for stream in self.streams)

    def reusable_len(self, number: int) -> int | None:
        """How many first tokens of a stream a longer prompt can reuse; None: all computed ones."""
        stream = self.streams[number]
        return len(stream.token_ids) if stream.compiled.treats_generated_apart else None


@dataclass(frozen=True)
class Continuation:
    """The result of a row."""

    token_ids: tuple[int, ...]  # generated tokens, without the one that ended the reply
    stop_reason: str  # "stop", "length", or "context" if the prompt leaves no room
    # per stream, keys and values of the prompt and, if they are the same as in a prompt, of all
    # generated tokens that were forwarded; None if they are not available; () unless kept
    computed: tuple[KeysValues | None, ...] = ()
    # attention when each token was drawn; None unless requested and the first stream has a span
    trace: AttentionTrace | None = None
    forwarded: int = 0  # tokens of this row that went through the model
