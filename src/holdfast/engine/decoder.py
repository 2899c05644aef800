"""The one decode loop: rows of different length, methods, samplings and seeds run together, join
and leave at any step.

New rows are prefilled together, each from what it has computed already; then every step forwards
one token of every row. A prefill pads on the left of what is computed and of what is new, and slots
pad on the right; padding is masked and takes no position, which is exact for full attention. Models
with other caches run their rows one by one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from holdfast.attention import AttentionTrace, Steering, steered
from holdfast.engine.cache import KeysValues, Slots, row_of, stack
from holdfast.engine.drawing import draw, uniforms
from holdfast.methods.gate import Gate
from holdfast.methods.heads import on_layers
from holdfast.methods.protocols import EditsLogits, ShiftsAttention
from holdfast.sampling import Sampling
from holdfast.threads import is_small, one_thread

T = TypeVar("T")  # what the caller knows a row by


@dataclass(frozen=True)
class Stream:
    """One reading of a dialog.

    Args:
        token_ids: the whole prompt.
        span: True on the tokens to hold on to, one per token.
        computed: keys and values of the first tokens of the prompt, or None; at least one token is
            left to forward.
        methods: attention methods of this stream.
    """

    token_ids: tuple[int, ...]
    span: tuple[bool, ...]
    computed: KeysValues | None = None
    methods: tuple[ShiftsAttention, ...] = ()

    @property
    def cached(self) -> int:
        """Tokens of the prompt that need no forwarding."""
        return 0 if self.computed is None else self.computed[0][0].shape[1]

    @property
    def treats_generated_apart(self) -> bool:
        """Whether a generated token gets other keys than the same token would in a prompt."""
        return any(method.span_includes_generated for method in self.methods)


@dataclass(frozen=True)
class Row:
    """One reply to be generated.

    Args:
        streams: the one that writes the reply and, with `guidance` or `gate`, the one that reads
            along.
        guidance: makes one distribution of the two streams' logits.
        gate: takes a token of the first stream only where the second finds it plausible.
        sampling: how its tokens are drawn.
        seed: names its draws.
        keep: whether the keys and values are wanted afterwards.
        trace: whether the mass on the first stream's span is wanted.
        drawn: takes every token as it is drawn, the one that ends the reply excepted.
    """

    streams: tuple[Stream, ...]
    guidance: EditsLogits | None = None
    gate: Gate | None = None
    sampling: Sampling = Sampling()
    seed: int = 0
    keep: bool = False
    trace: bool = False
    drawn: Callable[[int], None] | None = None


@dataclass(frozen=True)
class Continuation:
    """What a row became.

    Args:
        token_ids: generated tokens, without the one that ended the reply.
        stop_reason: "stop" or "length".
        computed: per stream, keys and values of the prompt, and of all generated tokens that were
            forwarded where they are those that the same tokens have in a prompt; () unless kept.
        trace: None unless asked for and the first stream has a span; of each token, what it was
            drawn under, which behind a gate may be fewer layers, or none.
        forwarded: tokens of this row that went through the model.
    """

    token_ids: tuple[int, ...]
    stop_reason: str
    computed: tuple[KeysValues, ...]
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
    mass_beside: Tensor | None = None  # [layer, head] of the stream that reads along, at the latest
    forwarded: int = 0

    def take(self, token: int, stop_ids: frozenset[int]) -> str | None:
        """Appends a token; returns why the reply ends with it, or None."""
        if token in stop_ids:
            return "stop"
        self.generated.append(token)
        if self.row.drawn:
            self.row.drawn(token)
        return "length" if len(self.generated) >= self.row.sampling.max_new_tokens else None

    def finish(self, reason: str, computed: tuple[KeysValues, ...] = ()) -> Continuation:
        span, trace = self.row.streams[0].span, None
        if self.row.trace and any(span):
            trace = AttentionTrace(
                torch.stack(self.masses, -1),
                sum(span) / (len(span) + torch.arange(len(self.masses))),
            )
        return Continuation(
            tuple(self.generated), reason, computed if self.row.keep else (), trace, self.forwarded
        )


@dataclass(frozen=True)
class _Reader(Generic[T]):
    """A stream of a row that generates: the first writes, the second reads along."""

    running: _Running[T]
    second: bool
    stream: Stream
    span: Tensor  # of the stream, bool [token]


class Decoder(Generic[T]):
    """Rows that generate with one model.

    Args:
        model: a Hugging Face causal language model; to steer, its attention must be
            `holdfast.attention`'s.
        stop_ids: tokens that end a reply.
        reuse: False for models whose cache cannot be taken apart; their rows, without `computed`,
            run one by one.
    """

    def __init__(self, model, stop_ids: frozenset[int], *, reuse: bool = True):
        self.model, self.stop_ids, self.reuse = model, stop_ids, reuse
        self.takes = inspect.signature(model.forward).parameters
        config = model.config.get_text_config()
        self.layers, self.heads = (
            config.num_hidden_layers,
            getattr(config, "num_attention_heads", 0),
        )
        self.slots, self.small = Slots(self.layers, model.device), is_small(model)
        self.readers: list[_Reader[T]] = []  # in the order of the slots
        self._spans: Tensor | None = None  # [slot, column]; None when rows have come or gone

    def __len__(self) -> int:
        """Streams that are being forwarded."""
        return len(self.readers)

    @torch.inference_mode()
    def admit(self, rows: Sequence[Row], tickets: Sequence[T]) -> list[tuple[T, Continuation]]:
        """Prefills rows and draws their first tokens; returns those that end there, by the ticket
        given with each.
        """
        joined = [
            _Running(ticket, row, uniforms(row.seed, row.sampling.max_new_tokens))
            for ticket, row in zip(tickets, rows, strict=True)
        ]
        if not self.reuse:
            return [(one.ticket, self._alone(one)) for one in joined]
        readers = [
            _Reader(one, bool(number), stream, torch.tensor(stream.span))
            for one in joined
            for number, stream in enumerate(one.row.streams)
        ]
        streams = [reader.stream for reader in readers]
        past = max(stream.cached for stream in streams)
        ids, positions, mask, span = prefill_inputs(streams, past)
        cache = stack([stream.computed for stream in streams], past, self.layers)
        logits = self._forward(
            readers, ids, positions, mask, span, [mask.shape[1]] * len(readers), cache
        )
        computed = [
            row_of(cache, index, columns.nonzero()[:, 0].to(self.model.device))
            for index, columns in enumerate(mask)
        ]
        for reader in readers:
            reader.running.forwarded += len(reader.stream.token_ids) - reader.stream.cached
        done = []
        for one, token in self._choose(readers, logits, halve=False):
            mine = [index for index, reader in enumerate(readers) if reader.running is one]
            if reason := one.take(token, self.stop_ids):
                done.append(
                    (one.ticket, one.finish(reason, tuple(computed[index] for index in mine)))
                )
                continue
            for index in mine:
                self.slots.add(computed[index])
                self.readers.append(readers[index])
            self._spans = None
        return done

    @torch.inference_mode()
    def step(self) -> list[tuple[T, Continuation]]:
        """Forwards one token of every row and draws the next; returns the rows that end, in the
        order of their slots.
        """
        with one_thread() if self.small else nullcontext():
            self.slots.grow()
            logits = self._next(self.readers)
            done = []
            for one, token in self._choose(self.readers, logits, halve=True):
                one.forwarded += len(one.row.streams)
                if reason := one.take(token, self.stop_ids):
                    done.append((one.ticket, self._close(one, reason)))
            if done:
                self.slots.shrink()
        return done

    def _close(self, one: _Running[T], reason: str) -> Continuation:
        """Ends a row and frees its slots."""
        mine = [slot for slot, reader in enumerate(self.readers) if reader.running is one]
        streams = sorted(
            mine, key=lambda slot: self.readers[slot].second
        )  # a slot filled from the end may have put the second before the first
        computed = tuple(self._computed(slot) for slot in streams) if one.row.keep else ()
        for slot in reversed(mine):
            self.slots.remove(slot)
            self.readers[slot] = self.readers[-1]
            self.readers.pop()
        self._spans = None
        return one.finish(reason, computed)

    def _computed(self, slot: int) -> KeysValues:
        """The keys and values of a stream that serve a longer prompt: its reply is history
        there.
        """
        reader = self.readers[slot]
        gated = reader.running.row.gate is not None and not reader.second
        apart = gated or reader.stream.treats_generated_apart
        return self.slots.computed(slot, len(reader.stream.token_ids) if apart else None)

    def _choose(
        self, readers: Sequence[_Reader[T]], logits: Tensor, *, halve: bool
    ) -> list[tuple[_Running[T], int]]:
        """The next token of every row that `readers` belong to; [reader, vocabulary] logits."""
        writers = [reader.running for reader in readers if not reader.second]
        others: dict[int, Tensor] = {}
        if len(writers) < len(readers):
            others = {
                id(reader.running): logits[index]
                for index, reader in enumerate(readers)
                if reader.second
            }
            logits = logits[
                [index for index, reader in enumerate(readers) if not reader.second]
            ].float()
            for index, one in enumerate(writers):
                if one.row.guidance:
                    logits[index] = one.row.guidance.guide(logits[index], others[id(one)])
        tokens = self._draw(writers, logits)
        for index, one in enumerate(writers):
            if one.row.gate and not one.row.gate.accepts(tokens[index], others[id(one)]):
                tokens[index] = self._fall_back(one, others[id(one)], halve=halve)
        return list(zip(writers, tokens, strict=True))

    def _fall_back(self, one: _Running[T], other: Tensor, *, halve: bool) -> int:
        """A token of a row whose gate refused one: steered in ever fewer layers, at last in
        none.
        """
        slot = (
            next(
                slot
                for slot, reader in enumerate(self.readers)
                if reader.running is one and not reader.second
            )
            if halve
            else 0
        )
        layers = self.layers // 2 if halve else 0
        while layers:
            reader = self.readers[slot]
            methods = on_layers(
                reader.stream.methods, range(self.layers - layers, self.layers), self.heads
            )
            one.masses[-1:] = []
            logits = self._next(
                [replace(reader, stream=replace(reader.stream, methods=methods))], [slot]
            )
            one.forwarded += 1
            token = self._draw([one], logits)[0]
            if one.row.gate.accepts(token, other):
                return token
            layers //= 2
        if one.row.trace:
            one.masses[-1] = one.mass_beside
        return self._draw([one], other[None])[0]

    def _draw(self, rows: Sequence[_Running[T]], logits: Tensor) -> list[int]:
        return draw(
            logits,
            [one.row.sampling for one in rows],
            [one.uniforms[len(one.generated)] for one in rows],
        )

    def _next(self, readers: Sequence[_Reader[T]], picked: list[int] | None = None) -> Tensor:
        """Forwards the pending token of every slot, or of those `picked`: logits [reader,
        vocabulary].
        """
        slots = self.slots
        if self._spans is None:
            self._spans = pad_sequence([reader.span for reader in self.readers], batch_first=True)
        lengths = torch.tensor(slots.lengths)
        span = torch.nn.functional.pad(self._spans, (0, slots.columns - self._spans.shape[1]))
        if picked is not None:
            lengths, span = lengths[picked], span[picked]
        ids = torch.tensor([[reader.running.generated[-1]] for reader in readers])
        mask = torch.arange(slots.columns) < lengths[:, None]
        prompts = [len(reader.stream.token_ids) for reader in readers]
        with slots.only(picked):
            return self._forward(readers, ids, lengths[:, None] - 1, mask, span, prompts, slots)

    def _forward(
        self,
        readers: Sequence[_Reader[T]],
        ids: Tensor,
        positions: Tensor,
        mask: Tensor,
        span: Tensor,
        prompts: Sequence[int],
        cache,
    ) -> Tensor:
        """Forwards tokens of some streams, whose prompts end before the columns given; returns the
        last logits, [reader, vocabulary].
        """
        device = self.model.device
        tracing = any(reader.running.row.trace for reader in readers)
        methods = [reader.stream.methods for reader in readers]
        steering = (
            Steering(span.to(device), methods, tracing, prompts)
            if tracing or any(methods)
            else None
        )
        with steered(steering):
            output = self.model(
                input_ids=ids.to(device),
                attention_mask=None if mask.all() else mask.to(device),
                past_key_values=cache,
                use_cache=True,
                **({"position_ids": positions.to(device)} if "position_ids" in self.takes else {}),
                **({"logits_to_keep": 1} if "logits_to_keep" in self.takes else {}),
            )
        if tracing:
            seen = torch.stack(
                [layer.float() for layer in steering.seen], 1
            ).cpu()  # [reader, layer, head]
            for reader, mass in zip(readers, seen, strict=True):
                if reader.second:
                    reader.running.mass_beside = mass
                else:
                    reader.running.masses.append(mass)
        self._state = getattr(output, "past_key_values", None)
        return output.logits[:, -1]

    def _alone(self, one: _Running[T]) -> Continuation:
        """The whole reply of one row, each stream with whatever cache the model makes, or none."""
        readers = [
            _Reader(one, bool(number), stream, torch.tensor(stream.span))
            for number, stream in enumerate(one.row.streams)
        ]
        spans = [list(reader.stream.span) for reader in readers]
        ids = [torch.tensor([reader.stream.token_ids]) for reader in readers]
        caches = [None] * len(readers)
        while True:
            logits = []
            for index, reader in enumerate(readers):
                length = len(spans[index])
                positions = torch.arange(length - ids[index].shape[1], length)[None]
                whole, span = torch.ones(1, length, dtype=torch.bool), torch.tensor([spans[index]])
                logits.append(
                    self._forward(
                        [reader],
                        ids[index],
                        positions,
                        whole,
                        span,
                        [len(reader.stream.token_ids)],
                        caches[index],
                    )
                )
                caches[index] = self._state
                one.forwarded += ids[index].shape[1]
            ((_, token),) = self._choose(readers, torch.cat(logits), halve=False)
            if reason := one.take(token, self.stop_ids):
                return one.finish(reason)
            for index in range(len(readers)):
                spans[index].append(False)
                fresh = torch.tensor([[token]])
                ids[index] = (
                    fresh if caches[index] is not None else torch.cat([ids[index], fresh], 1)
                )


def prefill_inputs(rows: Sequence[Stream], past: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Ids and positions [row, new], mask and span [row, past + new]: both parts padded on the
    left.
    """
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
