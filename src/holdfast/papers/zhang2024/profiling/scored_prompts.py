"""Prompts with the continuations to score after them: in groups, as tensors, and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

# the tokens of padding that cost about as much as the overhead of the passes of another group
_MAX_PADDING = 256
_MAX_LOGITS = 2**25  # of a group, unless it has only one prompt
MAX_TOKENS_PER_PASS = 4_096  # including padding, unless a single row has more


@dataclass(frozen=True)
class ScoredPrompt:
    """A prompt, and the continuations to score after it.

    Attributes:
        token_ids: the tokens of the prompt.
        span: True on the tokens to steer to, of which there is at least one.
        continuations: the tokens of each continuation, at least one.
    """

    token_ids: tuple[int, ...]
    span: tuple[bool, ...]
    continuations: tuple[tuple[int, ...], ...]

    @property
    def num_before_span(self) -> int:
        """The number of tokens before the span, which steering does not change."""
        return self.span.index(True)

    @property
    def num_following(self) -> int:
        """The number of continuation tokens that are forwarded: all but the last of each."""
        return sum(len(tokens) - 1 for tokens in self.continuations)

    @property
    def num_steered(self) -> int:
        """The number of tokens that a steered pass forwards."""
        return len(self.token_ids) - self.num_before_span + self.num_following


@dataclass(frozen=True)
class ColumnRange:
    """The columns of a group of prompts."""

    end: int  # the column after the last token of every prompt
    columns: int  # how many there are, with those of continuations
    first: int  # the first column that steering changes

    @property
    def read(self) -> int:
        """How many of the last columns have logits that are read."""
        return self.columns - self.end + 1


@dataclass(frozen=True)
class Group:
    """A batch of prompts that end at the same column, each followed by its continuations."""

    ids: Tensor  # [row, column]
    positions: Tensor  # [row, column]
    mask: Tensor  # [row, 1, query column, key column]
    span: Tensor  # [row, column]
    extent: ColumnRange

    def spread(self, copies: int) -> Group:
        """The group with this many adjacent copies of each row."""
        return Group(
            self.ids.repeat_interleave(copies, 0),
            self.positions.repeat_interleave(copies, 0),
            self.mask.repeat_interleave(copies, 0),
            self.span.repeat_interleave(copies, 0),
            self.extent,
        )


class _Targets(NamedTuple):
    """For each token of the continuations: its column of logits, its id, and its continuation."""

    columns: list[int]
    tokens: list[int]
    owners: list[int]


def _extent_of(prompts: Sequence[ScoredPrompt]) -> ColumnRange:
    end = max(len(prompt.token_ids) for prompt in prompts)
    first = min(end - len(prompt.token_ids) + prompt.num_before_span for prompt in prompts)
    return ColumnRange(end, end + max(prompt.num_following for prompt in prompts), first)


def group_prompts(prompts: Sequence[ScoredPrompt], heads: int, vocabulary: int) -> list[list[int]]:
    """Groups the numbers of prompts that share passes: of similar length, with a row per head."""

    def size(number: int) -> tuple[int, int]:
        return prompts[number].num_steered, len(prompts[number].token_ids)

    groups: list[list[int]] = []
    for number in sorted(range(len(prompts)), key=size):
        larger = [*groups[-1], number] if groups else []
        if larger and _fit([prompts[member] for member in larger], heads, vocabulary):
            groups[-1] = larger
        else:
            groups.append([number])
    return groups


def _fit(prompts: Sequence[ScoredPrompt], heads: int, vocabulary: int) -> bool:
    """Whether prompts can share passes within the limits on tokens, logits and padding."""
    extent = _extent_of(prompts)
    width = extent.columns - extent.first
    rows = len(prompts) * heads
    padding = heads * sum(width - prompt.num_steered for prompt in prompts)
    return (
        rows * width <= MAX_TOKENS_PER_PASS
        and rows * extent.read * vocabulary <= _MAX_LOGITS
        and padding <= _MAX_PADDING
    )


def lay_out(prompts: Sequence[ScoredPrompt], device: torch.device) -> Group:
    """Lays out prompts and their continuations in columns."""
    extent = _extent_of(prompts)
    ids, positions = torch.zeros(2, len(prompts), extent.columns, dtype=torch.long)
    span = torch.zeros(len(prompts), extent.columns, dtype=torch.bool)
    # 0: the prompt; 1, 2, ...: its continuations; -1: padding
    owner = torch.full((len(prompts), extent.columns), -1)
    for row, prompt in enumerate(prompts):
        length = len(prompt.token_ids)
        column = extent.end
        columns = slice(column - length, column)
        ids[row, columns] = torch.tensor(prompt.token_ids)
        positions[row, columns] = torch.arange(length)
        span[row, columns] = torch.tensor(prompt.span)
        owner[row, columns] = 0
        for number, tokens in enumerate(prompt.continuations, 1):
            columns = slice(column, column + len(tokens) - 1)
            ids[row, columns] = torch.tensor(tokens[:-1], dtype=torch.long)
            positions[row, columns] = torch.arange(length, length + len(tokens) - 1)
            owner[row, columns] = number
            column = columns.stop
    return Group(
        ids.to(device), positions.to(device), _mask(owner).to(device), span.to(device), extent
    )


def _mask(owner: Tensor) -> Tensor:
    """The attention mask, bool [row, 1, query, key]; padding sees itself, to avoid empty rows."""
    columns = owner.shape[1]
    has_same_owner = (owner[:, None, :] == owner[:, :, None]) & (owner[:, None, :] > 0)
    sees = (owner[:, None, :] == 0) | has_same_owner
    causal = torch.ones(columns, columns, dtype=torch.bool).tril()
    return ((sees & causal) | torch.eye(columns, dtype=torch.bool))[:, None]


def read_scores(
    logits: Tensor, prompts: Sequence[ScoredPrompt], copies: int
) -> list[list[tuple[float, ...]]]:
    """The log-probability of each continuation, [copy][prompt][continuation]."""
    scores: list[list[tuple[float, ...]]] = [[] for _ in range(copies)]
    logits = logits.float()
    totals = logits.logsumexp(-1)
    for index, prompt in enumerate(prompts):
        columns, tokens, owners = _targets(prompt)
        rows = slice(index * copies, (index + 1) * copies)
        values = (logits[rows][:, columns, tokens] - totals[rows][:, columns]).double().cpu()
        sums = values.new_zeros(copies, len(prompt.continuations))
        sums.index_add_(1, torch.tensor(owners), values)
        for scores_of_copy, row in zip(scores, sums.tolist(), strict=True):
            scores_of_copy.append(tuple(row))
    return scores


def _targets(prompt: ScoredPrompt) -> _Targets:
    targets = _Targets([], [], [])
    column = 1
    for number, continuation in enumerate(prompt.continuations):
        following = len(continuation) - 1
        targets.columns.extend([0, *range(column, column + following)])
        targets.tokens.extend(continuation)
        targets.owners.extend([number] * len(continuation))
        column += following
    return targets
