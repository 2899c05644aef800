"""A row that generates: what it has read and drawn so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from holdfast.attention import AttentionTrace
from holdfast.engine.batch import StreamState
from holdfast.engine.drawing import Draw, LogProbability, Token, uniforms
from holdfast.engine.prefixes import KeysValues
from holdfast.engine.rows import Continuation, Row


@dataclass(eq=False)
class ActiveRow:
    """A row that generates.

    Args:
        row: as it was asked for.
        generated: its tokens so far.
        masses: of each of them, the mass on the span that it was drawn under, [layer, head].
        uniform_masses: of each of them, the mass if each layer had attended evenly, [layer].
        log_probabilities: of each of them, where they are wanted.
        known: per stream, what is computed of its first tokens, piece behind piece, until it is in
            its slot.
        forwarded: tokens that went through the model.
        memory: what a processor keeps of it from step to step.
        continuation: what it became, once it has ended.
        error: why it ended without.
    """

    row: Row
    generated: list[int] = field(default_factory=list)
    masses: list[Tensor] = field(default_factory=list)
    uniform_masses: list[Tensor] = field(default_factory=list)
    log_probabilities: list[LogProbability] = field(default_factory=list)
    known: list[tuple[KeysValues, ...]] = field(default_factory=list)
    forwarded: int = 0
    memory: dict[str, Any] = field(default_factory=dict)
    continuation: Continuation | None = None
    error: Exception | None = None

    def __post_init__(self) -> None:
        self.uniforms = uniforms(self.row.seed, self.row.sampling.max_new_tokens)
        traced = self.row.trace
        self.readings = [StreamState(stream, self.generated, traced) for stream in self.row.streams]
        computed = [stream.known for stream in self.row.streams]
        self.known = self.known or [(pieces,) if pieces is not None else () for pieces in computed]

    @property
    def cached(self) -> list[int]:
        """Per stream, how many first tokens need no forwarding."""
        return [pieces[-1].tokens if pieces else 0 for pieces in self.known]

    @property
    def fresh(self) -> int:
        """Tokens that the longest stream has to forward."""
        return max(
            len(reading) - cached
            for reading, cached in zip(self.readings, self.cached, strict=True)
        )

    @property
    def next_draw(self) -> Draw:
        """How its next token is drawn."""
        number, given = len(self.generated), self.row.given
        token = None if given is None else given[number]
        return Draw(self.row.sampling, self.uniforms[number], token)

    def take(self, token: Token, stop_ids: frozenset[int]) -> str | None:
        """Appends a token; returns why the row ends with it, or None."""
        if isinstance(token, Exception):
            self.error = token
            return "error"
        if token in stop_ids and self.row.given is None:
            return "stop"
        self.generated.append(token)
        return "length" if len(self.generated) >= self.row.sampling.max_new_tokens else None

    def finish(self, reason: str, computed: tuple[KeysValues | None, ...]) -> None:
        """Makes the continuation, unless the row ended in an error."""
        if self.error is not None:
            return
        trace = None
        if self.row.trace and any(self.row.streams[0].span):
            mass, uniform = torch.stack(self.masses, -1), torch.stack(self.uniform_masses, -1)
            trace = AttentionTrace(mass.cpu(), uniform.cpu())
        self.continuation = Continuation(
            tuple(self.generated), reason, computed, trace, self.forwarded
        )
