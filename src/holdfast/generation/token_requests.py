"""Requests to the engine of local models: they have token ids, spans and methods, but no text.

TokenPrompt    the tokens of a prompt, with its span and methods
Matcher        follows a reply through a grammar, which a `TokenGrammar` makes
TokenRequest   one reply to generate, after one prompt or two
TokenSequence  a prompt and the tokens generated after it: the tokens of one slot
RequestState   a submitted request: what is generated so far, and how it ended
TokenMass      the attention mass on the span when a token was drawn
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
from holdfast.generation.sampling import Penalties, Sampling
from holdfast.generation.saved_kv import CachedPrefix, SavedKV
from holdfast.methods.compiled import UNSTEERED, CompiledMethods
from holdfast.methods.protocols import EditsLogits


@dataclass(eq=False)
class TokenPrompt:
    """The tokens of a prompt, with its span and methods."""

    token_ids: tuple[int, ...]
    span: tuple[bool, ...]  # True on the tokens to emphasise
    pass_methods: CompiledMethods = UNSTEERED  # those that act inside a forward pass
    # the first tokens, whose keys and values are cached; dropped once those are copied into the
    # prompt's slot, so that running requests keep no earlier turns of a conversation in memory
    prefix: CachedPrefix | None = None
    num_shared: int = 0  # how many tokens are shared with the prefix; always fewer than all

    @classmethod
    def after(
        cls,
        prefix: CachedPrefix | None,
        token_ids: tuple[int, ...],
        span: tuple[bool, ...],
        compiled: CompiledMethods = UNSTEERED,
    ) -> TokenPrompt:
        """Makes a prompt that reuses as much of a prefix as possible.

        Of all methods of a request, it keeps those that act inside a pass over this span.
        """
        pass_methods = compiled.in_pass_over(span)
        if prefix is None:
            return cls(token_ids, span, pass_methods)
        num_shared = prefix.shared_with(token_ids, span, pass_methods)
        return cls(token_ids, span, pass_methods, prefix, num_shared)

    @property
    def cached(self) -> int:
        """How many first tokens of the prompt need no forwarding; 0 once the prefix is evicted."""
        return self.num_shared if self.prefix is not None and self.prefix.kv else 0

    @property
    def cached_kv(self) -> SavedKV | None:
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
class TokenRequest:
    """One reply to generate."""

    # the prompt that the reply continues and, for methods that need a second stream of logits, the
    # prompt that gives those
    prompts: tuple[TokenPrompt, ...]
    processors: tuple[EditsLogits, ...] = ()  # edit the logits, in this order
    sampling: Sampling = Sampling()
    seed: int = 0  # determines the draws
    penalties: Penalties = Penalties()  # on tokens already drawn in this reply
    grammar: TokenGrammar | None = None  # restricts the reply; None: any text
    # whether the result has the keys and values; such a request goes first, as others wait for it
    keep: bool = False
    trace: bool = False  # whether to record the mass on the first prompt's span
    # tokens of the context that must be left for the reply, but never more than a quarter of it
    room: int = 1
    shares_kv: bool = False  # whether other requests may reuse the keys and values
    # how many likeliest tokens to report beside each drawn one, with their log-probabilities; None:
    # no log-probabilities at all
    top_logprobs: int | None = None
    name: str = ""  # identifies the request in errors

    @property
    def max_prompt_len(self) -> int:
        """Length of the longest prompt in tokens."""
        return max(len(prompt.token_ids) for prompt in self.prompts)

    @property
    def traces_span(self) -> bool:
        """Whether the mass is recorded: this is requested, and the first prompt has a span."""
        return self.trace and any(self.prompts[0].span)

    def reusable_len(self, number: int) -> int | None:
        """How many first tokens of a sequence a longer prompt can reuse; None: all of them."""
        prompt = self.prompts[number]
        return len(prompt.token_ids) if prompt.pass_methods.treats_generated_apart else None


@dataclass(frozen=True)
class TokenSequence:
    """A prompt and the tokens generated after it: the tokens of one slot."""

    prompt: TokenPrompt
    # a list that grows, and that the sequences of a request share
    generated: list[int] = field(default_factory=list)
    trace: bool = False  # whether to record the mass on the span

    def __len__(self) -> int:
        return len(self.prompt.token_ids) + len(self.generated)

    @cached_property
    def span(self) -> Tensor:
        """The prompt's span, bool [token], on the host; cached, as every new batch reads it."""
        return torch.tensor(self.prompt.span)

    def without_last(self) -> TokenSequence:
        """Returns the same sequence without its last token."""
        if self.generated:
            return replace(self, generated=self.generated[:-1])
        prompt = self.prompt
        shorter = replace(prompt, token_ids=prompt.token_ids[:-1], span=prompt.span[:-1])
        return replace(self, prompt=shorter)

    def tokens_from(self, start: int) -> Sequence[int]:
        """Returns the tokens from position `start` on."""
        prompt_ids = self.prompt.token_ids
        if start >= len(prompt_ids):
            return self.generated[start - len(prompt_ids) :]
        return [*prompt_ids[start:], *self.generated]


class TokenMass(NamedTuple):
    """The attention mass on the span when a token was drawn."""

    heads: Tensor  # [layer, head]
    uniform: Tensor  # under uniform attention, [layer]


@dataclass(eq=False)
class RequestState:
    """A submitted request: the tokens generated so far, and how it ended.

    The lists `masses` and `log_probabilities` also have an entry for the token that ended the
    reply; `token_ids` does not.
    """

    request: TokenRequest
    submitted: int = 0  # the number of the scheduler's step at which it was submitted
    token_ids: list[int] = field(default_factory=list)  # shared with its sequences
    # how often each token is in `token_ids`
    token_counts: Counter[int] = field(default_factory=Counter)
    masses: list[TokenMass] = field(default_factory=list)  # on the span, if traced
    log_probabilities: list[LogProbability] = field(default_factory=list)  # if requested
    # per sequence, keys and values of its first tokens in consecutive pieces; emptied once they are
    # copied into its slot
    reused: list[tuple[SavedKV, ...]] = field(default_factory=list)
    cached: int = 0  # tokens of the first prompt that were not forwarded
    forwarded: int = 0  # tokens that went through the model since the request (re)started
    _num_committed: int = field(default=0, init=False)  # tokens that a rollback keeps

    # How it ended

    # "stop", "length", or "context" if the prompt leaves no room; "" if there is no reply (yet)
    stop_reason: str = ""
    # per prompt, its keys and values and, unless generated tokens are steered in another way, those
    # of the forwarded tokens of the reply; None if not available; () unless requested
    kv: tuple[SavedKV | None, ...] = ()
    # attention when each token was drawn; None unless requested and the first prompt has a span
    trace: AttentionTrace | None = None
    error: Exception | None = None  # why the request ended without a reply
    cancelled: bool = False

    @property
    def done(self) -> bool:
        """Whether the request has ended or was cancelled."""
        return self.cancelled or self.error is not None or bool(self.stop_reason)

    def require_reply(self) -> None:
        """Raises an error unless the request has ended with a reply.

        Raises:
            Exception: the error that ended the request.
            ModelError: the request has not ended, or was cancelled.
        """
        if self.error is not None:
            raise self.error
        if not self.stop_reason:
            status = "was cancelled" if self.cancelled else "has not ended"
            raise ModelError(f"The request {self.request.name!r} {status}, so it has no reply.")

    # While it is generated

    @cached_property
    def sequences(self) -> list[TokenSequence]:
        """Each prompt of the request, followed by the generated tokens."""
        request = self.request
        return [TokenSequence(prompt, self.token_ids, request.trace) for prompt in request.prompts]

    @cached_property
    def matcher(self) -> Matcher | None:
        """The matcher of the request's grammar; None without a grammar."""
        return None if self.request.grammar is None else self.request.grammar.matcher()

    @cached_property
    def _random_numbers(self) -> list[float]:
        return uniforms(self.request.seed, self.request.sampling.max_new_tokens)

    @property
    def next_random(self) -> float:
        """The random number in [0, 1) for drawing the next token."""
        return self._random_numbers[len(self.token_ids)]

    @property
    def reused_lengths(self) -> list[int]:
        """Per sequence, how many first tokens need no forwarding because they are reused."""
        return [pieces[-1].tokens if pieces else 0 for pieces in self.reused]

    @property
    def num_new_tokens(self) -> int:
        """The largest number of tokens that one of its sequences has to forward."""
        pairs = zip(self.sequences, self.reused_lengths, strict=True)
        return max(len(sequence) - reused for sequence, reused in pairs)

    def start(self, reused: Sequence[tuple[SavedKV, ...]]) -> None:
        """Prepares the request for its first pass.

        Args:
            reused: per sequence, the keys and values to reuse, in consecutive pieces.
        """
        self.reused = list(reused)
        self.cached = self.reused_lengths[0]
        if self.matcher is not None:
            self.matcher.prepare(self.token_ids)

    def add(self, token: DrawnToken, stop_ids: frozenset[int]) -> str | None:
        """Appends a token; returns the reason if the request ends with it, otherwise None."""
        if isinstance(token, Exception):
            self.error = token
            return "error"
        if token in stop_ids:
            return "stop"
        self.token_ids.append(token)
        self.token_counts[token] += 1
        if len(self.token_ids) >= self.request.sampling.max_new_tokens:
            return "length"
        if self.matcher is not None:
            self.matcher.prepare(self.token_ids)
        return None

    def finish(self, reason: str, kv: tuple[SavedKV | None, ...]) -> None:
        """Notes how the reply ended, unless the request ended in an error."""
        if self.error is not None:
            return
        if self.request.traces_span:
            heads = torch.stack([mass.heads for mass in self.masses], -1)
            uniform = torch.stack([mass.uniform for mass in self.masses], -1)
            self.trace = AttentionTrace(heads.cpu(), uniform.cpu())
        self.stop_reason = reason
        self.kv = kv

    def commit(self) -> None:
        """Marks the tokens so far as final, after a step that did not fail.

        The prefixes that the request reuses are now copied into its slots, so they are dropped; if
        memory runs out later, their tokens are forwarded again.
        """
        self._num_committed = len(self.token_ids)
        for prompt in self.request.prompts:
            prompt.prefix = None

    def roll_back(self) -> None:
        """Removes everything that a failed step has added, so that the request can start again."""
        for per_token in (self.token_ids, self.masses, self.log_probabilities):
            del per_token[self._num_committed :]
        self.token_counts = Counter(self.token_ids)
        self.stop_reason = ""
        self.kv = ()
        self.trace = self.error = None
        self.reused = []
        self.forwarded = 0
