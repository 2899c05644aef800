"""The inputs of a forward pass, built on the host and moved to the device once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers.cache_utils import Cache

from holdfast.attention import BatchSteering, Starts
from holdfast.generation.rows import StreamState
from holdfast.states.edits import EditedRow, EditGroup, edits_of


@dataclass(frozen=True)
class Batch:
    """The inputs of a forward pass."""

    ids: Tensor  # int64 [row, token], padded on the left
    positions: Tensor  # of the tokens, int64 [row, token]; 0 for padding
    level: bool  # whether no row is padded and all begin at the same position
    columns: int  # number of columns of keys after the pass
    steering: BatchSteering | None = None  # None: attention is neither moved nor traced
    cache: Cache | None = None  # computed keys and values; None: the model makes a cache
    logits: int = 1  # how many last tokens of each row get logits
    # where the keys of windowed layers begin; None if all rows begin at the same column
    starts: Starts | None = None
    edits: Sequence[EditGroup] = ()  # edits of keys and hidden states
    use_cache: bool = True  # whether the model keeps the keys and values of the pass


@dataclass(frozen=True, eq=False)
class StreamGroup:
    """Streams that are forwarded together, one per row.

    The same group serves every step until a row joins or leaves, and its steering caches the values
    that it has read from the device.
    """

    streams: Sequence[StreamState]
    device: torch.device  # the model's device

    @cached_property
    def steering(self) -> BatchSteering | None:
        """The steering of attention; None if no row moves or traces it."""
        rows = [state.stream.compiled for state in self.streams]
        trace = any(state.trace for state in self.streams)
        if not (trace or any(compiled.attention for compiled in rows)):
            return None
        spans = [state.span for state in self.streams]
        span = pad_sequence(spans, batch_first=True).to(self.device)
        prompts = [len(state.stream.token_ids) for state in self.streams]
        if not any(state.generated for state in self.streams):
            prompts = [max(prompts)] * len(prompts)  # columns after a shorter prompt are no reply
        return BatchSteering(span, rows, trace, prompts, follows=False)


def batch_of(
    group: StreamGroup, num_computed: Sequence[int], cache: Cache | None = None, logits: int = 1
) -> Batch:
    """Builds a batch with the pending tokens of a group of streams.

    Args:
        group: the streams, one per row.
        num_computed: per stream, how many first tokens need no forwarding.
        cache: the keys and values computed so far; None: the model makes a cache.
        logits: how many last tokens of each row get logits.
    """
    states = group.streams
    device = group.device
    new_tokens = [
        state.tokens_from(start) for state, start in zip(states, num_computed, strict=True)
    ]
    width = max(map(len, new_tokens))
    level = len(set(num_computed)) == 1 and all(len(tokens) == width for tokens in new_tokens)
    ids, positions = on_host = torch.zeros(2, len(states), width, dtype=torch.long)
    if width == 1:
        ids[:, 0] = torch.tensor([tokens[0] for tokens in new_tokens])
        positions[:, 0] = torch.tensor(num_computed)
    else:
        for row, (tokens, start) in enumerate(zip(new_tokens, num_computed, strict=True)):
            first = width - len(tokens)
            ids[row, first:] = torch.tensor(tokens)
            positions[row, first:] = torch.arange(start, start + len(tokens))
    ids, positions = on_host.to(device)  # in one transfer
    columns = max(map(len, states))
    edits = _edits_of(states, num_computed, width, device)
    return Batch(ids, positions, level, columns, group.steering, cache, logits, edits=edits)


def _edits_of(
    states: Sequence[StreamState], num_computed: Sequence[int], width: int, device: torch.device
) -> list[EditGroup]:
    """The edits of a pass that forwards the pending tokens of each stream."""
    rows = []
    if any(state.stream.compiled.states for state in states):
        for state, start in zip(states, num_computed, strict=True):
            stream = state.stream
            new = len(state) - start
            prompt = len(stream.token_ids)
            rows.append(EditedRow(stream.compiled, start, new, width - new, state.span, prompt))
    return edits_of(rows, width, device)
