"""Every head steered alone, for far less than a pass per head: what steering a head cannot change
is computed once.

Steering a head of layer l changes nothing below layer l, and nothing for tokens in front of the
span, which cannot see it. So:

1. Prompts are forwarded once unsteered; what enters each layer is kept, and all keys and values.
2. The heads of layer l, in rows of one batch, are forwarded from layer l on, and from the first
   token of the span on. In layer l itself the heads' outputs differ, and what they are made of does
   not, so its attention is computed once per prompt, as it is and with all heads steered.
3. Behind the attention of the last layer only the tokens go on whose logits are read.

Continuations stand behind their prompt in the same pass, hidden from each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicLayer

from holdfast.attention import SteeringSpec, steered
from holdfast.methods import ShiftsAttention
from holdfast.methods.heads import Head, HeadSet, with_heads
from holdfast.papers.zhang2024.profiling.shared_weights import (
    SharedWeightsCopy,
    heads_apart,
    last_columns,
    noted,
)

# tokens of padding that cost about as much as another group's passes do beside their tokens
_PASS = 256
_LOGITS = 2**25  # held at a time, as far as rows can be fewer
MOST_TOKENS = 4_096  # of one pass, padding included, unless the heads of one prompt have more


@dataclass(frozen=True)
class ScoredPrompt:
    """A prompt, and the continuations to score behind it.

    Args:
        token_ids: of the prompt.
        span: True on the tokens to hold on to, at least one.
        continuations: token ids, at least one each.
    """

    token_ids: tuple[int, ...]
    span: tuple[bool, ...]
    continuations: tuple[tuple[int, ...], ...]

    @property
    def before_span(self) -> int:
        """Tokens in front of the span, which no steering changes."""
        return self.span.index(True)

    @property
    def behind(self) -> int:
        """Tokens of all continuations but the last of each, which has nothing to foretell."""
        return sum(len(tokens) - 1 for tokens in self.continuations)

    @property
    def changing(self) -> int:
        """Tokens that a steered pass forwards."""
        return len(self.token_ids) - self.before_span + self.behind


@dataclass(frozen=True)
class ColumnRange:
    """The columns of prompts side by side.

    Args:
        end: where all prompts end; continuations stand from here on.
        columns: of all.
        first: from which on steering can change anything.
    """

    end: int
    columns: int
    first: int

    @property
    def read(self) -> int:
        """How many columns, the last ones, have logits that are read."""
        return self.columns - self.end + 1


@dataclass(frozen=True)
class Group:
    """Prompts side by side that end at the same column; continuations without their last token
    stand behind, hidden from each other.

    Args:
        prompts: one per row, or per run of rows.
        ids, positions: [row, column].
        mask: bool [row, 1, column, column].
        span: bool [row, column].
        extent: where what stands.
    """

    prompts: Sequence[ScoredPrompt]
    ids: Tensor
    positions: Tensor
    mask: Tensor
    span: Tensor
    extent: ColumnRange

    def spread(self, copies: int) -> Group:
        """The same with each row so often, in a run."""
        states = (self.ids, self.positions, self.mask, self.span)
        ids, positions, mask, span = (state.repeat_interleave(copies, 0) for state in states)
        return Group(self.prompts, ids, positions, mask, span, self.extent)


def extent_of(prompts: Sequence[ScoredPrompt]) -> ColumnRange:
    """The columns that these prompts take side by side."""
    end = max(len(prompt.token_ids) for prompt in prompts)
    first = min(end - len(prompt.token_ids) + prompt.before_span for prompt in prompts)
    return ColumnRange(end, end + max(prompt.behind for prompt in prompts), first)


def group_prompts(prompts: Sequence[ScoredPrompt], heads: int, vocabulary: int) -> list[list[int]]:
    """Which prompts go together: those with about as many tokens to forward, so that little is
    padding.

    Args:
        prompts: in any order.
        heads: rows that each may have in a pass.
        vocabulary: of the model, whose logits are held.
    """
    groups: list[list[int]] = []
    for index in sorted(
        range(len(prompts)), key=lambda i: (prompts[i].changing, len(prompts[i].token_ids), i)
    ):
        joined = [*groups[-1], index] if groups else []
        if joined and _fit([prompts[number] for number in joined], heads, vocabulary):
            groups[-1] = joined
        else:
            groups.append([index])
    return groups


def _fit(prompts: Sequence[ScoredPrompt], heads: int, vocabulary: int) -> bool:
    extent = extent_of(prompts)
    changing, rows = extent.columns - extent.first, len(prompts) * heads
    padding = heads * sum(changing - prompt.changing for prompt in prompts)
    return (
        rows * changing <= MOST_TOKENS
        and rows * extent.read * vocabulary <= _LOGITS
        and padding <= _PASS
    )


def lay_out(prompts: Sequence[ScoredPrompt], device: torch.device) -> Group:
    """Puts prompts and their continuations into columns."""
    extent = extent_of(prompts)
    ids, positions = torch.zeros(2, len(prompts), extent.columns, dtype=torch.long)
    span = torch.zeros(len(prompts), extent.columns, dtype=torch.bool)
    # 0: the prompt; 1, 2, ...: its continuations; -1: padding
    owner = torch.full((len(prompts), extent.columns), -1)
    for row, prompt in enumerate(prompts):
        length, column = len(prompt.token_ids), extent.end
        columns = slice(column - length, column)
        ids[row, columns] = torch.tensor(prompt.token_ids)
        positions[row, columns] = torch.arange(length)
        span[row, columns] = torch.tensor(prompt.span)
        owner[row, columns] = 0
        for number, tokens in enumerate(prompt.continuations, 1):
            behind = slice(column, column + len(tokens) - 1)
            ids[row, behind] = torch.tensor(tokens[:-1], dtype=torch.long)
            positions[row, behind] = torch.arange(length, length + len(tokens) - 1)
            owner[row, behind] = number
            column = behind.stop
    ids, positions, mask, span = (
        state.to(device) for state in (ids, positions, _mask(owner), span)
    )
    return Group(prompts, ids, positions, mask, span, extent)


def _mask(owner: Tensor) -> Tensor:
    """Who sees whom, bool [row, 1, query, key]: the prompt is seen by all behind it, a continuation
    by itself; padding sees itself, for a query that sees nothing has no output.
    """
    columns = owner.shape[1]
    same = (owner[:, None, :] == owner[:, :, None]) & (owner[:, None, :] > 0)
    sees = (owner[:, None, :] == 0) | same
    causal = torch.ones(columns, columns, dtype=torch.bool).tril()
    return ((sees & causal) | torch.eye(columns, dtype=torch.bool))[:, None]


def read_scores(
    logits: Tensor, prompts: Sequence[ScoredPrompt], copies: int
) -> list[list[tuple[float, ...]]]:
    """The log-probability of each continuation, by copy and prompt.

    Args:
        logits: [prompt * copies, column, vocabulary], from the prompts' last token on.
        prompts: in the order of their rows.
        copies: rows of each prompt.
    """
    scores: list[list[tuple[float, ...]]] = [[] for _ in range(copies)]
    logits = logits.float()
    totals = logits.logsumexp(-1)
    for index, prompt in enumerate(prompts):
        columns, tokens, owners = _places(prompt)
        rows = slice(index * copies, (index + 1) * copies)
        values = (logits[rows][:, columns, tokens] - totals[rows][:, columns]).double().cpu()
        sums = values.new_zeros(copies, len(prompt.continuations))
        sums.index_add_(1, torch.tensor(owners), values)
        for copy, row in zip(scores, sums.tolist(), strict=True):
            copy.append(tuple(row))
    return scores


def _places(prompt: ScoredPrompt) -> tuple[list[int], list[int], list[int]]:
    """Of every token of the continuations: the column that foretells it, counted from the prompt's
    last token; the token; and the number of its continuation.
    """
    columns: list[int] = []
    tokens: list[int] = []
    owners: list[int] = []
    column = 1
    for number, continuation in enumerate(prompt.continuations):
        behind = len(continuation) - 1
        columns += [0, *range(column, column + behind)]
        tokens += continuation
        owners += [number] * len(continuation)
        column += behind
    return columns, tokens, owners


KeysValues = tuple[Tensor, Tensor]  # of a layer, [row, group, column, size]


@dataclass(frozen=True)
class _Base:
    """Results of the unsteered pass of a group.

    Args:
        entering: what enters each layer, [prompt, column, width].
        computed: the keys and values of each layer.
        logits: of the columns that are read.
    """

    entering: Sequence[Tensor]
    computed: Sequence[KeysValues]
    logits: Tensor


class HeadPasses:
    """The passes over a model's layers.

    Args:
        hf_model: a causal language model with full attention whose layers stand in one list.
        share: whether the attention of the steered layer is computed once per prompt, where its
            output is a linear map of its heads'.

    Attributes:
        forwarded: tokens so far, each counted by the share of the layers that it went through.

    Raises:
        ModelError: no such list.
    """

    def __init__(self, hf_model: Any, share: bool = True):
        config = hf_model.config.get_text_config()
        self.device: torch.device = hf_model.device
        self.heads, self.vocabulary = config.num_attention_heads, config.vocab_size
        self.share, self.forwarded = share, 0.0
        self._twin = SharedWeightsCopy(hf_model)
        self._layers = self._twin.layers

    def groups(self, prompts: Sequence[ScoredPrompt]) -> list[list[int]]:
        """Which prompts go together in `scores`."""
        return group_prompts(prompts, self.heads, self.vocabulary)

    def work(self, prompts: Sequence[ScoredPrompt], heads: Iterable[Head]) -> float:
        """The number of tokens that `scores` adds to `forwarded`."""
        extent, count = extent_of(prompts), len(self._layers)
        columns = [extent.columns - self._first(extent, layer) for layer in range(count)]
        through = sum(columns[layer] * (count - layer) for layer, _ in heads) / count
        return len(prompts) * (extent.columns + through)

    @torch.inference_mode()
    def scores(
        self, prompts: Sequence[ScoredPrompt], methods: Mapping[Head, Sequence[ShiftsAttention]]
    ) -> Iterator[tuple[Head | None, list[tuple[float, ...]]]]:
        """Log-probabilities of the continuations of each prompt, first unsteered (None), then under
        each head's methods.

        Args:
            prompts: of one group.
            methods: by head; each touches its head alone.
        """
        group = lay_out(prompts, self.device)
        base = self._unsteered(group)
        yield None, read_scores(base.logits, prompts, 1)[0]
        changing = group.extent.columns - group.extent.first
        rows = max(1, MOST_TOKENS // (len(prompts) * changing))
        for layer in sorted({layer for layer, _ in methods}):
            heads = sorted(head for head in methods if head[0] == layer)
            for start in range(0, len(heads), rows):
                some = heads[start : start + rows]
                logits = self._steered(group, base, layer, [methods[head] for head in some])
                yield from zip(some, read_scores(logits, prompts, len(some)), strict=True)

    def _unsteered(self, group: Group) -> _Base:
        cache: list[Any] = [DynamicLayer() for _ in self._layers]
        with noted(self._layers) as entering:
            logits = self._forward(0, group, slice(None), Cache(layers=cache), ids=group.ids)
        return _Base(entering, [(layer.keys, layer.values) for layer in cache], logits)

    def _steered(
        self, group: Group, base: _Base, layer: int, methods: Sequence[Sequence[ShiftsAttention]]
    ) -> Tensor:
        """The logits that are read, [prompt * method, column, vocabulary], with each method of this
        layer in a row of its own.
        """
        copies, first = len(methods), self._first(group.extent, layer)
        attending = self._twin.attending[layer] if self.share else None
        cache: list[Any] = [_Rows(computed, copies, first) for computed in base.computed]
        steering = None
        with ExitStack() as inside:
            if attending is None:
                steering = _spec(group, [row for _ in group.prompts for row in methods], copies)
            else:
                cache[layer] = _Rows(base.computed[layer], 1, first)
                heads, together = _together(methods)
                spec = _spec(group, [together] * len(group.prompts), 1)
                inside.enter_context(heads_apart(attending, spec, heads))
            inside.enter_context(last_columns(self._twin.by_column, group.extent.read))
            return self._forward(
                layer,
                group.spread(copies),
                slice(first, None),
                Cache(layers=cache),
                steering,
                hidden=base.entering[layer].repeat_interleave(copies, 0)[:, first:],
            )

    def _first(self, extent: ColumnRange, layer: int) -> int:
        """The first column that goes on from a layer when a head of it is steered."""
        is_last = layer == len(self._layers) - 1
        return extent.columns - extent.read if is_last else extent.first

    def _forward(
        self,
        layer: int,
        group: Group,
        columns: slice,
        cache: Cache,
        steering: SteeringSpec | None = None,
        **read: Tensor,
    ) -> Tensor:
        """A pass of these columns through all layers from this one on: the logits that are read."""
        layers, positions = self._layers[layer:], group.positions[:, columns]
        self.forwarded += positions.numel() * len(layers) / len(self._layers)
        mask = group.mask[:, :, columns]
        with steered(steering):
            return self._twin.forward(layers, mask, positions, cache, group.extent.read, **read)


def _spec(group: Group, methods: Sequence[Sequence[ShiftsAttention]], copies: int) -> SteeringSpec:
    """The steering of a pass with so many rows of each prompt; `methods` has those of every row."""
    span = group.span.repeat_interleave(copies, 0)
    return SteeringSpec(span, methods, prompt=[group.extent.end] * len(methods))


def _together(
    methods: Sequence[Sequence[ShiftsAttention]],
) -> tuple[list[int], tuple[ShiftsAttention, ...]]:
    """The head of each row, and the one method that steers them all.

    Args:
        methods: per row one, the same but for its head.
    """
    heads = [head for (method,) in methods for head in method.heads or ()]
    every = with_heads(methods[0][0], HeadSet(heads))
    return [head for _, head in heads], (every,)


class _Rows(DynamicLayer):
    """Keys and values of rows that share those of their prompt in front of a column.

    Args:
        computed: of the prompts.
        copies: rows of each prompt.
        first: the first column that is the rows' own.
    """

    def __init__(self, computed: KeysValues, copies: int, first: int):
        super().__init__()
        self.computed, self.copies, self.first = computed, copies, first

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> KeysValues:
        shared, new = self.computed, (key_states, value_states)
        self.keys, self.values = map(self._behind, shared, new)
        return self.keys, self.values

    def _behind(self, known: Tensor, new: Tensor) -> Tensor:
        rows, groups, columns, size = new.shape
        whole = new.new_empty(rows // self.copies, self.copies, groups, self.first + columns, size)
        whole[:, :, :, : self.first] = known[:, None, :, : self.first]
        whole = whole.flatten(0, 1)
        whole[:, :, self.first :] = new
        return whole

    def get_seq_length(self) -> int:
        return self.first
