"""The one decode loop: rows of different length, methods, samplings and seeds run together, join and leave at any step.

New rows are prefilled together, each from what it has computed already; then every step forwards one token of every row. A prefill pads
on the left of what is computed and of what is new, and slots pad on the right; padding is masked and takes no position, which is exact
for full attention. Models with other caches run their rows one by one.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import torch
from torch import Tensor

from holdfast.attention import AttentionTrace, Steering, steered
from holdfast.cache import KeysValues, Slots, row_of, stack
from holdfast.chat import Sampling
from holdfast.methods.protocols import ShiftsAttention
from holdfast.sampling import draw, uniforms

T = TypeVar("T")  # what the caller knows a row by


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


@dataclass
class _Running(Generic[T]):
    """A row that generates."""

    ticket: T
    row: Row
    uniforms: list[float]
    generated: list[int] = field(default_factory=list)
    masses: list[Tensor] = field(default_factory=list)  # [layer, head] per generated token

    def take(self, token: int, stop_ids: frozenset[int]) -> str | None:
        """Appends a token; returns why the reply ends with it, or None."""
        if token in stop_ids:
            return "stop"
        self.generated.append(token)
        return "length" if len(self.generated) >= self.row.sampling.max_new_tokens else None

    def finish(self, reason: str, computed: KeysValues | None, forwarded: int) -> Continuation:
        trace = AttentionTrace(torch.stack(self.masses, -1)) if self.row.trace and any(self.row.span) else None
        return Continuation(tuple(self.generated), reason, computed, trace, forwarded)


class Decoder(Generic[T]):
    """Rows that generate with one model.

    Args:
        model: a Hugging Face causal language model; to steer, its attention must be `holdfast.attention`'s.
        stop_ids: tokens that end a reply.
        reuse: False for models whose cache cannot be taken apart; their rows, without `computed`, run one by one.
    """

    def __init__(self, model, stop_ids: frozenset[int], *, reuse: bool = True):
        self.model, self.stop_ids, self.reuse = model, stop_ids, reuse
        self.takes = inspect.signature(model.forward).parameters
        self.layers = model.config.get_text_config().num_hidden_layers
        self.slots = Slots(self.layers, model.device)
        self.running: list[_Running[T]] = []  # in the order of the slots
        self._spans: Tensor | None = None  # [slot, column]; None when rows have come or gone

    def __len__(self) -> int:
        """Rows that generate."""
        return len(self.running)

    @torch.inference_mode()
    def admit(self, rows: Sequence[Row], tickets: Sequence[T]) -> list[tuple[T, Continuation]]:
        """Prefills rows and draws their first tokens; returns those that end there, by the ticket given with each."""
        joined = [_Running(ticket, row, uniforms(row.seed, row.sampling.max_new_tokens)) for ticket, row in zip(tickets, rows, strict=True)]
        if not self.reuse:
            return [(one.ticket, self._alone(one)) for one in joined]
        past = max(row.cached for row in rows)
        ids, positions, mask, span = _prefill_inputs(rows, past)
        device = self.model.device
        cache = stack([row.computed for row in rows], past, self.layers)
        padded = not bool(mask.all())
        logits = self._forward(joined, ids.to(device), positions.to(device), mask.to(device) if padded else None, span.to(device), cache)
        done = []
        for index, (one, token) in enumerate(zip(joined, self._draw(joined, logits), strict=True)):
            columns = mask[index].nonzero()[:, 0].to(device)
            if reason := one.take(token, self.stop_ids):
                computed = row_of(cache, index, columns) if one.row.keep else None
                done.append((one.ticket, one.finish(reason, computed, len(one.row.token_ids) - one.row.cached)))
            else:
                self.slots.add(row_of(cache, index, columns))
                self.running.append(one)
                self._spans = None
        return done

    @torch.inference_mode()
    def step(self) -> list[tuple[T, Continuation]]:
        """Forwards one token of every row and draws the next; returns the rows that end, in the order of their slots."""
        slots, running, device = self.slots, self.running, self.model.device
        slots.grow()
        lengths = torch.tensor(slots.lengths)
        ids = torch.tensor([[one.generated[-1]] for one in running], device=device)
        mask = torch.arange(slots.columns) < lengths[:, None]
        padded = not bool(mask.all())
        logits = self._forward(running, ids, (lengths[:, None] - 1).to(device), mask.to(device) if padded else None, self._span(), slots)
        done = []
        for slot, (one, token) in reversed(list(enumerate(zip(running, self._draw(running, logits), strict=True)))):
            if reason := one.take(token, self.stop_ids):
                computed = slots.computed(slot) if one.row.keep else None
                done.append((one.ticket, one.finish(reason, computed, slots.lengths[slot] - one.row.cached)))
                slots.remove(slot)
                self.running[slot] = self.running[-1]
                self.running.pop()
                self._spans = None
        return done[::-1]

    def _span(self) -> Tensor:
        """The span of every slot in the columns of the pass about to come."""
        if self._spans is None:
            width = max(len(one.row.span) for one in self.running)
            self._spans = torch.tensor([one.row.span + (False,) * (width - len(one.row.span)) for one in self.running], device=self.model.device)
        return torch.nn.functional.pad(self._spans, (0, self.slots.columns - self._spans.shape[1]))

    def _draw(self, rows: Sequence[_Running], logits: Tensor) -> list[int]:
        return draw(logits, [one.row.sampling for one in rows], [one.uniforms[len(one.generated)] for one in rows])

    def _forward(self, rows: Sequence[_Running], ids: Tensor, positions: Tensor, mask: Tensor | None, span: Tensor, cache) -> Tensor:
        """Forwards tokens of some rows; returns the logits of the last column, [row, vocabulary]."""
        tracing = any(one.row.trace for one in rows)
        methods = [one.row.methods for one in rows]
        steering = Steering(span, methods, tracing) if tracing or any(methods) else None
        with steered(steering):
            output = self.model(
                input_ids=ids,
                attention_mask=mask,
                past_key_values=cache,
                use_cache=True,
                **({"position_ids": positions} if "position_ids" in self.takes else {}),
                **({"logits_to_keep": 1} if "logits_to_keep" in self.takes else {}),
            )
        if tracing:
            seen = torch.stack([layer.float() for layer in steering.seen], 1).cpu()  # [row, layer, head]
            for one, mass in zip(rows, seen, strict=True):
                one.masses.append(mass)
        self._state = getattr(output, "past_key_values", None)
        return output.logits[:, -1]

    def _alone(self, one: _Running) -> Continuation:
        """The whole reply of one row, with whatever cache the model makes, or none."""
        device, row = self.model.device, one.row
        ids, cache, forwarded = torch.tensor([row.token_ids], device=device), None, 0
        span = list(row.span)
        while True:
            positions = torch.arange(len(span) - ids.shape[1], len(span), device=device)[None]
            logits = self._forward([one], ids, positions, None, torch.tensor([span], device=device), cache)
            cache, forwarded = self._state, forwarded + ids.shape[1]
            token = self._draw([one], logits)[0]
            if reason := one.take(token, self.stop_ids):
                return one.finish(reason, None, forwarded)
            span.append(False)
            fresh = torch.tensor([[token]], device=device)
            ids = fresh if cache is not None else torch.cat([ids, fresh], 1)


def _prefill_inputs(rows: Sequence[Row], past: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Ids and positions [row, new], mask and span [row, past + new]: both parts padded on the left."""
    new = max(len(row.token_ids) - row.cached for row in rows)
    ids, positions = torch.zeros(2, len(rows), new, dtype=torch.long)
    mask, span = torch.zeros(2, len(rows), past + new, dtype=torch.bool)
    for index, row in enumerate(rows):
        length, cached = len(row.token_ids), row.cached
        fresh = length - cached
        mask[index, past - cached : past] = True
        mask[index, past + new - fresh :] = True
        row_span = torch.tensor(row.span, dtype=torch.bool)
        span[index, past - cached : past] = row_span[:cached]
        span[index, past + new - fresh :] = row_span[cached:]
        ids[index, new - fresh :] = torch.tensor(row.token_ids[cached:])
        positions[index, new - fresh :] = torch.arange(cached, length)
    return ids, positions, mask, span
