"""Prompts with the continuations to score after them: in groups, as tensors, and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

# tokens of padding that cost about as much as the fixed overhead of another group's passes
_PASS = 256
_LOGITS = 2**25  # most logits of a group, unless it has only one prompt
MAX_TOKENS_PER_PASS = 4_096  # most in one pass, including padding, unless a single row has more


@dataclass(frozen=True)
class ScoredPrompt:
    """A prompt, and the continuations to score after it."""

    token_ids: tuple[int, ...]  # of the prompt
    span: tuple[bool, ...]  # True on the tokens to steer to, at least one
    continuations: tuple[tuple[int, ...], ...]  # token ids, at least one each

    @property
    def num_before_span(self) -> int:
        """Number of tokens before the span, which steering does not change."""
        return self.span.index(True)

    @property
    def num_following(self) -> int:
        """Number of continuation tokens without the last of each, whose logits are not read."""
        return sum(len(tokens) - 1 for tokens in self.continuations)

    @property
    def num_steered(self) -> int:
        """Number of tokens that a steered pass forwards."""
        return len(self.token_ids) - self.num_before_span + self.num_following


@dataclass(frozen=True)
class ColumnRange:
    """The columns of prompts: their common end, the count, and the first that steering changes."""

    end: int
    columns: int
    first: int

    @property
    def read(self) -> int:
        """How many of the last columns have logits that are read."""
        return self.columns - self.end + 1


@dataclass(frozen=True)
class Group:
    """A batch of prompts that end at the same column, followed by their continuations."""

    ids: Tensor
    positions: Tensor
    mask: Tensor  # [row, 1, column, column]
    span: Tensor
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


def _extent_of(prompts: Sequence[ScoredPrompt]) -> ColumnRange:
    end = max(len(prompt.token_ids) for prompt in prompts)
    first = min(end - len(prompt.token_ids) + prompt.num_before_span for prompt in prompts)
    return ColumnRange(end, end + max(prompt.num_following for prompt in prompts), first)


def group_prompts(prompts: Sequence[ScoredPrompt], heads: int, vocabulary: int) -> list[list[int]]:
    """Decides which prompts share passes: those of similar length, with room for a row per head."""
    groups: list[list[int]] = []

    def size(number: int) -> tuple[int, int]:
        return prompts[number].num_steered, len(prompts[number].token_ids)

    for number in sorted(range(len(prompts)), key=size):
        larger = [*groups[-1], number] if groups else []
        if larger and _fit([prompts[member] for member in larger], heads, vocabulary):
            groups[-1] = larger
        else:
            groups.append([number])
    return groups


def _fit(prompts: Sequence[ScoredPrompt], heads: int, vocabulary: int) -> bool:
    extent = _extent_of(prompts)
    width = extent.columns - extent.first
    rows = len(prompts) * heads
    padding = heads * sum(width - prompt.num_steered for prompt in prompts)
    return (
        rows * width <= MAX_TOKENS_PER_PASS
        and rows * extent.read * vocabulary <= _LOGITS
        and padding <= _PASS
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
    same = (owner[:, None, :] == owner[:, :, None]) & (owner[:, None, :] > 0)
    sees = (owner[:, None, :] == 0) | same
    causal = torch.ones(columns, columns, dtype=torch.bool).tril()
    return ((sees & causal) | torch.eye(columns, dtype=torch.bool))[:, None]


def read_scores(
    logits: Tensor, prompts: Sequence[ScoredPrompt], copies: int
) -> list[list[tuple[float, ...]]]:
    """The log-probability of each continuation, by copy and prompt."""
    scores: list[list[tuple[float, ...]]] = [[] for _ in range(copies)]
    logits = logits.float()
    totals = logits.logsumexp(-1)
    for index, prompt in enumerate(prompts):
        columns, tokens, owners = _targets(prompt)
        rows = slice(index * copies, (index + 1) * copies)
        values = (logits[rows][:, columns, tokens] - totals[rows][:, columns]).double().cpu()
        sums = values.new_zeros(copies, len(prompt.continuations))
        sums.index_add_(1, torch.tensor(owners), values)
        for of_copy, row in zip(scores, sums.tolist(), strict=True):
            of_copy.append(tuple(row))
    return scores


class _Targets(NamedTuple):
    """Of each continuation token: its column of logits, the token, and its continuation."""

    columns: list[int]
    tokens: list[int]
    owners: list[int]


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
