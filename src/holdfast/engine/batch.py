"""The inputs of a forward pass, built on the host and moved to the device once; and the state of
rows that generate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers.cache_utils import Cache

from holdfast.attention import AttentionTrace, BatchSteering, Starts
from holdfast.engine.drawing import Draw, LogProbability, Token, uniforms
from holdfast.engine.prefixes import KeysValues
from holdfast.engine.rows import Continuation, Row, Stream
from holdfast.states.edits import EditedRow, EditGroup, edits_of


@dataclass(frozen=True)
class StreamState:
    """A stream and the tokens generated after it: the tokens of one slot."""

    stream: Stream
    # tokens after the prompt, shared by the streams of a row; grows
    generated: list[int] = field(default_factory=list)
    trace: bool = False  # whether the mass on the span is wanted

    def __len__(self) -> int:
        return len(self.stream.token_ids) + len(self.generated)

    @cached_property
    def span(self) -> Tensor:
        """The prompt's span, bool [token], on the host; read whenever rows join or leave."""
        return torch.tensor(self.stream.span)

    def without_last(self) -> StreamState:
        """The same without its last token."""
        if self.generated:
            return replace(self, generated=self.generated[:-1])
        stream = self.stream
        shorter = replace(stream, token_ids=stream.token_ids[:-1], span=stream.span[:-1])
        return replace(self, stream=shorter)

    def tokens_from(self, computed: int) -> Sequence[int]:
        """The tokens from position `computed` on."""
        prompt = self.stream.token_ids
        if computed >= len(prompt):
            return self.generated[computed - len(prompt) :]
        return [*prompt[computed:], *self.generated]


@dataclass(frozen=True)
class Batch:
    """The inputs of a forward pass."""

    ids: Tensor  # int64 [row, token], padded on the left
    positions: Tensor  # of the tokens, int64 [row, token]; 0 for padding
    level: bool  # whether no row is padded and all begin at the same position
    columns: int  # number of columns, those of the pass included
    steering: BatchSteering | None = None  # of its attention; None: it is neither moved nor traced
    cache: Cache | None = None  # what is already computed; None: the model makes a cache
    logits: int = 1  # number of last tokens whose logits are wanted
    # where the keys of windowed layers begin, if rows differ
    starts: Starts | None = None
    edits: Sequence[EditGroup] = ()  # of keys and hidden states
    use_cache: bool = True  # whether the model is to keep what it computes


def batch_of(
    states: Sequence[StreamState],
    computed: Sequence[int],
    span: Tensor,
    device: torch.device,
    cache: Cache | None = None,
    logits: int = 1,
    before: BatchSteering | None = None,
) -> Batch:
    """A batch with the pending tokens of some streams.

    Args:
        states: the streams, one per row.
        computed: how many first tokens of each need no forwarding.
        span: of the prompts, bool [row, column].
        cache: what is already computed; None: the model makes a cache.
        logits: of how many last tokens they are wanted.
        before: the steering of an earlier pass, which is used again if nothing changed.
    """
    new_tokens = [state.tokens_from(done) for state, done in zip(states, computed, strict=True)]
    width = max(map(len, new_tokens))
    level = len(set(computed)) == 1 and all(len(tokens) == width for tokens in new_tokens)
    both = torch.zeros(2, len(states), width, dtype=torch.long)
    if width == 1:
        both[0, :, 0] = torch.tensor([tokens[0] for tokens in new_tokens])
        both[1, :, 0] = torch.tensor(computed)
    else:
        for row, (tokens, done) in enumerate(zip(new_tokens, computed, strict=True)):
            both[0, row, width - len(tokens) :] = torch.tensor(tokens)
            both[1, row, width - len(tokens) :] = torch.arange(done, done + len(tokens))
    ids, positions = both.to(device)
    columns = max(map(len, states))
    span = span if span.shape[1] <= columns else span[:, :columns]
    steering = _steering_of(states, span, columns, before)
    edits = _edits_of(states, computed, width, device)
    return Batch(ids, positions, level, columns, steering, cache, logits, edits=edits)


def _steering_of(
    states: Sequence[StreamState], span: Tensor, columns: int, before: BatchSteering | None
) -> BatchSteering | None:
    """The steering of a pass: that of the pass before while the rows stay, which has done its work
    on the host already, so that a step reads no device.
    """
    rows = [state.stream.compiled for state in states]
    trace = any(state.trace for state in states)
    if not (trace or any(compiled.attention for compiled in rows)):
        return None
    prompts = [len(state.stream.token_ids) for state in states]
    if not any(state.generated for state in states):
        prompts = [columns] * len(states)  # what follows a shorter prompt is not a reply
    steering = BatchSteering(span, rows, trace, prompts, follows=False)
    return before if before is not None and before.equals(steering) else steering


def _edits_of(
    states: Sequence[StreamState], computed: Sequence[int], width: int, device: torch.device
) -> list[EditGroup]:
    """The edits of a pass that forwards the pending tokens of each stream."""
    rows = []
    if any(state.stream.compiled.states for state in states):
        for state, done in zip(states, computed, strict=True):
            stream, new = state.stream, len(state) - done
            row = stream.compiled, done, new, width - new, state.span, len(stream.token_ids)
            rows.append(EditedRow(*row))
    return edits_of(rows, width, device)


def spans_of(states: Sequence[StreamState], device: torch.device) -> Tensor:
    """The prompt spans of some streams, bool [row, column]."""
    return pad_sequence([state.span for state in states], batch_first=True).to(device)


@dataclass(eq=False)
class ActiveRow:
    """A row that is generating."""

    row: Row
    generated: list[int] = field(default_factory=list)
    # per token, the mass on the span when it was drawn, [layer, head]
    masses: list[Tensor] = field(default_factory=list)
    # the same if each layer had attended evenly, [layer]
    uniform_masses: list[Tensor] = field(default_factory=list)
    # per token, if requested
    log_probabilities: list[LogProbability] = field(default_factory=list)
    # per stream, the computed pieces of its first tokens, in order, until they are in its slot
    known: list[tuple[KeysValues, ...]] = field(default_factory=list)
    forwarded: int = 0  # tokens that went through the model
    continuation: Continuation | None = None
    error: Exception | None = None  # why it ended without a continuation

    def __post_init__(self) -> None:
        self.uniforms = uniforms(self.row.seed, self.row.sampling.max_new_tokens)
        traced = self.row.trace
        self.stream_states = [
            StreamState(stream, self.generated, traced) for stream in self.row.streams
        ]
        computed = [stream.known for stream in self.row.streams]
        self.known = self.known or [(pieces,) if pieces is not None else () for pieces in computed]

    @property
    def cached(self) -> list[int]:
        """Per stream, how many first tokens need no forwarding."""
        return [pieces[-1].tokens if pieces else 0 for pieces in self.known]

    @property
    def num_new_tokens(self) -> int:
        """The most tokens that one of its streams has to forward."""
        return max(
            len(state) - cached
            for state, cached in zip(self.stream_states, self.cached, strict=True)
        )

    @property
    def next_draw(self) -> Draw:
        """How to draw its next token."""
        return Draw(self.row.sampling, self.uniforms[len(self.generated)])

    def take(self, token: Token, stop_ids: frozenset[int]) -> str | None:
        """Appends a token; returns why the row ends with it, or None."""
        if isinstance(token, Exception):
            self.error = token
            return "error"
        if token in stop_ids:
            return "stop"
        self.generated.append(token)
        return "length" if len(self.generated) >= self.row.sampling.max_new_tokens else None

    def finish(self, reason: str, computed: tuple[KeysValues | None, ...]) -> None:
        """Sets the continuation, unless the row ended in an error."""
        if self.error is not None:
            return
        trace = None
        if self.row.trace and any(self.row.streams[0].span):
            mass, uniform = torch.stack(self.masses, -1), torch.stack(self.uniform_masses, -1)
            trace = AttentionTrace(mass.cpu(), uniform.cpu())
        self.continuation = Continuation(
            tuple(self.generated), reason, computed, trace, self.forwarded
        )
