"""The one decode loop: rows of different length, methods, samplings and seeds in one batch, each continuing what it has computed.

Layout of a batch, by columns: [computed tokens, padded on the left | new tokens, padded on the left | generated tokens]. Padding in the
middle is masked and takes no position, which is exact for full attention; models with other caches run their rows one by one.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.attention import AttentionTrace, Steering, steered
from holdfast.cache import BatchCache, KeysValues
from holdfast.chat import Sampling
from holdfast.methods.protocols import ShiftsAttention
from holdfast.sampling import Sampler


@dataclass(frozen=True)
class Row:
    """One reply to be generated.

    Args:
        token_ids: the whole prompt.
        span: True on the tokens to hold on to, one per token.
        computed: keys and values of the first tokens of the prompt, or None; at least one token is left to forward.
        methods: attention methods of this row.
        sampling: how its tokens are drawn.
        seed: names its draws.
        keep: whether the keys and values are wanted afterwards.
        trace: whether the mass on the span is wanted.
    """

    token_ids: tuple[int, ...]
    span: tuple[bool, ...]
    computed: KeysValues | None = None
    methods: tuple[ShiftsAttention, ...] = ()
    sampling: Sampling = Sampling()
    seed: int = 0
    keep: bool = False
    trace: bool = False

    @property
    def cached(self) -> int:
        """Tokens of the prompt that need no forwarding."""
        return 0 if self.computed is None else self.computed[0][0].shape[1]


@dataclass(frozen=True)
class Continuation:
    """What a row became.

    Args:
        token_ids: generated tokens, without the one that ended the reply.
        stop_reason: "stop" or "length".
        computed: keys and values of the prompt and of all generated tokens that were forwarded; None unless kept.
        trace: None unless asked for and the row has a span.
        forwarded: tokens of this row that went through the model.
    """

    token_ids: tuple[int, ...]
    stop_reason: str
    computed: KeysValues | None
    trace: AttentionTrace | None
    forwarded: int


class _Batch:
    """The state of the rows that still run; `alive` holds their numbers in the call's order."""

    def __init__(self, model, rows: Sequence[Row], reuse: bool):
        self.model, self.rows, self.device = model, rows, model.device
        self.takes = inspect.signature(model.forward).parameters
        count = len(rows)
        past = max(row.cached for row in rows)
        new = max(len(row.token_ids) - row.cached for row in rows)
        self.room = max(row.sampling.max_new_tokens for row in rows)
        self.columns = past + new
        mask = torch.zeros(count, self.columns + self.room, dtype=torch.bool)
        span = torch.zeros_like(mask)
        ids = torch.zeros(count, new, dtype=torch.long)
        positions = torch.zeros(count, new, dtype=torch.long)
        for index, row in enumerate(rows):
            length, cached = len(row.token_ids), row.cached
            fresh = length - cached
            mask[index, past - cached : past] = True
            mask[index, self.columns - fresh :] = True
            row_span = torch.tensor(row.span, dtype=torch.bool)
            span[index, past - cached : past] = row_span[:cached]
            span[index, self.columns - fresh : self.columns] = row_span[cached:]
            ids[index, new - fresh :] = torch.tensor(row.token_ids[cached:])
            positions[index, new - fresh :] = torch.arange(cached, length)
        self.padded = not bool(mask.all())
        self.mask, self.span = mask.to(self.device), span.to(self.device)
        self.ids, self.positions = ids.to(self.device), positions.to(self.device)
        self.cache = None
        if reuse:
            layers = model.config.get_text_config().num_hidden_layers
            self.cache = BatchCache([row.computed for row in rows], past, layers, min(new + self.room, new + 128))
        self.alive = torch.arange(count, device=self.device)
        self.methods = [row.methods for row in rows]
        self.tracing = any(row.trace for row in rows)
        self.masses: list[list[Tensor]] = [[] for _ in rows]
        self.read = 0  # columns forwarded

    def forward(self) -> Tensor:
        """Forwards the pending tokens; returns the logits of the last column, [row, vocabulary]."""
        steering = None
        if self.tracing or any(self.methods):
            steering = Steering(self.span[:, : self.columns], self.methods, self.tracing)
        with steered(steering):
            output = self.model(
                input_ids=self.ids,
                attention_mask=self.mask[:, : self.columns] if self.padded else None,
                past_key_values=self.cache,
                use_cache=True,
                **({"position_ids": self.positions} if "position_ids" in self.takes else {}),
                **({"logits_to_keep": 1} if "logits_to_keep" in self.takes else {}),
            )
        self.cache = getattr(output, "past_key_values", None)  # None: a model that keeps its state elsewhere, or none
        self.read += self.ids.shape[1]
        if self.tracing:
            step = torch.stack([layer.float() for layer in steering.seen], 1).cpu()  # [row, layer, head]
            for mass, number in zip(step, self.alive.tolist(), strict=True):
                self.masses[number].append(mass)
        return output.logits[:, -1]

    def append(self, tokens: Tensor) -> None:
        """Makes `tokens` [row] the pending ones, behind all others where the model has no cache."""
        tokens, positions = tokens[:, None], self.positions[:, -1:] + 1
        if self.cache is None:
            tokens, positions = torch.cat([self.ids, tokens], 1), torch.cat([self.positions, positions], 1)
        self.ids, self.positions = tokens, positions
        self.columns += 1

    def select(self, keep: Tensor) -> None:
        """Goes on with the rows at `keep` only."""
        self.cache.select(keep)
        self.alive, self.mask, self.span = self.alive[keep], self.mask[keep], self.span[keep]
        self.ids, self.positions = self.ids[keep], self.positions[keep]
        self.methods = [self.methods[index] for index in keep.tolist()]


@torch.inference_mode()
def decode(model, rows: Sequence[Row], stop_ids: frozenset[int], *, reuse: bool = True) -> list[Continuation]:
    """Generates one reply per row.

    Args:
        model: a Hugging Face causal language model whose attention is `holdfast.attention`'s.
        rows: at least one.
        stop_ids: tokens that end a reply.
        reuse: False for models whose cache cannot be taken apart; `rows` is then a single one, without `computed`.
    """
    batch = _Batch(model, rows, reuse)
    sampler = Sampler([row.sampling for row in rows], [row.seed for row in rows], batch.device)
    generated: list[list[int]] = [[] for _ in rows]
    results: list[Continuation | None] = [None] * len(rows)
    logits = batch.forward()
    for step in range(batch.room):
        tokens = sampler.draw(logits, step)
        for index, (number, token) in enumerate(zip(batch.alive.tolist(), tokens.tolist(), strict=True)):
            if results[number] is not None:
                continue
            reason = None
            if token in stop_ids:
                reason = "stop"
            else:
                generated[number].append(token)
                if len(generated[number]) >= rows[number].sampling.max_new_tokens:
                    reason = "length"
            if reason:
                results[number] = _finish(batch, index, rows[number], generated[number], reason, step)
        running = [index for index, number in enumerate(batch.alive.tolist()) if results[number] is None]
        if not running:
            break
        if reuse and 2 * len(running) <= len(batch.alive):
            keep = torch.tensor(running, device=batch.device)
            batch.select(keep)
            sampler.select(keep)
            tokens = tokens[keep]
        batch.append(tokens)
        logits = batch.forward()
    return results  # type: ignore[return-value]


def _finish(batch: _Batch, index: int, row: Row, token_ids: list[int], reason: str, step: int) -> Continuation:
    """Harvests row `index` of the batch; `step` tokens of it were fed back so far."""
    computed = None
    if row.keep and isinstance(batch.cache, BatchCache):
        computed = batch.cache.row(index, batch.mask[index, : batch.columns].nonzero()[:, 0])
    trace = None
    if row.trace and any(row.span):
        trace = AttentionTrace(torch.stack(batch.masses[int(batch.alive[index])], -1))
    forwarded = batch.read if batch.cache is None else len(row.token_ids) - row.cached + step
    return Continuation(tuple(token_ids), reason, computed, trace, forwarded)
