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
from holdfast.generation.token_requests import TokenSequence
from holdfast.states.edits import EditedRow, EditGroup, group_edits


@dataclass(frozen=True)
class Batch:
    """The inputs of a forward pass, with one row per sequence."""

    ids: Tensor  # int64 [row, token], padded on the left
    positions: Tensor  # of the tokens, int64 [row, token]; 0 for padding
    aligned: bool  # whether no row is padded and all begin at the same position
    num_columns: int  # number of columns of keys after the pass
    steering: BatchSteering | None = None  # None: attention is neither moved nor traced
    cache: Cache | None = None  # computed keys and values; None: the model makes a cache
    num_logits: int = 1  # how many last tokens of each row get logits
    # where the keys of windowed layers begin; None if all rows begin at the same column
    starts: Starts | None = None
    edits: Sequence[EditGroup] = ()  # edits of keys and hidden states
    use_cache: bool = True  # whether the model keeps the keys and values of the pass


@dataclass(frozen=True, eq=False)
class SequenceGroup:
    """Sequences that are forwarded together.

    The same group serves every step until a request joins or leaves, and its steering caches the
    values that it has read from the device.
    """

    sequences: Sequence[TokenSequence]
    device: torch.device  # the model's device

    @cached_property
    def steering(self) -> BatchSteering | None:
        """The steering of attention; None if no sequence moves or traces it."""
        methods = [sequence.prompt.pass_methods for sequence in self.sequences]
        trace = any(sequence.trace for sequence in self.sequences)
        if not (trace or any(row.attention for row in methods)):
            return None
        spans = [sequence.span for sequence in self.sequences]
        span = pad_sequence(spans, batch_first=True).to(self.device)
        prompt_lens = [len(sequence.prompt.token_ids) for sequence in self.sequences]
        if not any(sequence.generated for sequence in self.sequences):
            # columns after a shorter prompt are no reply
            prompt_lens = [max(prompt_lens)] * len(prompt_lens)
        return BatchSteering(span, methods, trace, prompt_lens, covers_pass=False)


def batch_of(
    group: SequenceGroup,
    num_computed: Sequence[int],
    cache: Cache | None = None,
    num_logits: int = 1,
) -> Batch:
    """Builds a batch with the pending tokens of a group of sequences.

    Args:
        group: the sequences, one per row.
        num_computed: per sequence, how many first tokens need no forwarding.
        cache: the keys and values computed so far; None: the model makes a cache.
        num_logits: how many last tokens of each row get logits.
    """
    sequences = group.sequences
    device = group.device
    new_tokens = [
        sequence.tokens_from(start) for sequence, start in zip(sequences, num_computed, strict=True)
    ]
    width = max(map(len, new_tokens))
    aligned = len(set(num_computed)) == 1 and all(len(tokens) == width for tokens in new_tokens)
    ids, positions = on_host = torch.zeros(2, len(sequences), width, dtype=torch.long)
    if width == 1:
        ids[:, 0] = torch.tensor([tokens[0] for tokens in new_tokens])
        positions[:, 0] = torch.tensor(num_computed)
    else:
        for row, (tokens, start) in enumerate(zip(new_tokens, num_computed, strict=True)):
            padding = width - len(tokens)
            ids[row, padding:] = torch.tensor(tokens)
            positions[row, padding:] = torch.arange(start, start + len(tokens))
    ids, positions = on_host.to(device)  # in one transfer
    return Batch(
        ids=ids,
        positions=positions,
        aligned=aligned,
        num_columns=max(map(len, sequences)),
        steering=group.steering,
        cache=cache,
        num_logits=num_logits,
        edits=_find_edits(sequences, num_computed, width, device),
    )


def _find_edits(
    sequences: Sequence[TokenSequence],
    num_computed: Sequence[int],
    width: int,
    device: torch.device,
) -> list[EditGroup]:
    """Finds the edits of a pass that forwards the pending tokens of each sequence."""
    rows = []
    if any(sequence.prompt.pass_methods.states for sequence in sequences):
        for sequence, start in zip(sequences, num_computed, strict=True):
            prompt = sequence.prompt
            num_new = len(sequence) - start
            rows.append(
                EditedRow(
                    pass_methods=prompt.pass_methods,
                    start=start,
                    num_tokens=num_new,
                    padding=width - num_new,
                    span=sequence.span,
                    prompt_len=len(prompt.token_ids),
                )
            )
    return group_edits(rows, width, device)
