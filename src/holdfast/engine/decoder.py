"""Rows that generate: of different length, methods, samplings and seeds, forwarded together.

Rows join and leave at any step. New rows are prefilled together, each from what it has computed
already; then every step forwards one token of every row. A pass that fails is made again without
the rows that it fails with, so that an error ends the row it belongs to and no other. Models whose
caches cannot be laid out in slots run their rows one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from holdfast.engine.batch import StreamState, batch_of, spans_of
from holdfast.engine.choosing import (
    Drawn,
    Token,
    choose,
    log_probabilities,
    refused,
)
from holdfast.engine.memory import ran_out_of_memory
from holdfast.engine.passes import forward_slots
from holdfast.engine.prefixes import KeysValues
from holdfast.engine.rows import Row
from holdfast.engine.runner import Output, Runner
from holdfast.engine.running import ActiveRow
from holdfast.engine.scaled_keys import KeyScale
from holdfast.engine.shared import SharedPrefixes
from holdfast.engine.trials import rank, tried
from holdfast.methods.heads import on_layers
from holdfast.threads import is_small, one_thread


@dataclass
class _Read:
    """The outputs of a pass, by row.

    Args:
        rows: that drew nothing from it yet.
        logits: of the streams that write, [row, vocabulary].
        beside: per row, those of the stream that reads along, [vocabulary], or None.
        mass: of the streams that write, [row, layer, head], or None.
        mass_beside: per row, that of the stream that reads along, or None.
        uniform: the mass if each layer attended evenly, [row, layer], or None.
    """

    rows: list[ActiveRow]
    logits: Tensor
    beside: list[Tensor | None]
    mass: Tensor | None
    mass_beside: list[Tensor | None]
    uniform: Tensor | None = None


class Decoder:
    """Rows that generate with one model.

    Args:
        runner: the model.
        stop_ids: tokens that end a reply.
        shared: takes what is computed of rows that share it.
    """

    def __init__(
        self, runner: Runner, stop_ids: frozenset[int], shared: SharedPrefixes | None = None
    ):
        self.runner, self.stop_ids, self.shared = runner, stop_ids, shared
        self.slots = runner.slots()
        self._owners: list[tuple[ActiveRow, int]] = []  # by slot: the row, and which of its streams
        self._span: Tensor | None = None  # of all slots; None when rows have come or gone
        self._alone: tuple[ActiveRow, list[Cache | None]] | None = None
        self._small = is_small(runner.hf_model)

    def __len__(self) -> int:
        """Streams that are being forwarded."""
        return len(self._owners) if self._alone is None else len(self._alone[1])

    @torch.inference_mode()
    def admit(self, rows: Sequence[ActiveRow]) -> list[ActiveRow]:
        """Prefills rows and draws their first tokens; returns those that end there."""
        if not self.runner.batched:
            (row,) = rows
            self._alone = row, [None] * len(row.readings)
            return self._advance_alone()
        first = len(self._owners)
        for row in rows:
            for number, reading in enumerate(row.readings):
                row.forwarded += len(reading) - row.cached[number]
                self._open(row.known[number], _serves(row.row, number))
                self._owners.append((row, number))
            row.known = [()] * len(row.readings)
        self._span = None
        ended = self._advance(first, prefill=True)
        for row in rows:
            if row not in ended:
                self._share(row)
        return ended

    @torch.inference_mode()
    def step(self) -> list[ActiveRow]:
        """Forwards one token of every row and draws the next; returns the rows that end."""
        with one_thread() if self._small else nullcontext():
            if self._alone is not None:
                return self._advance_alone()
            for row, _ in self._owners:
                row.forwarded += 1
            return self._advance(0, prefill=False)

    @torch.inference_mode()
    def remove(self, row: ActiveRow) -> None:
        """Ends a row at once; nothing is kept of it."""
        if self._alone is not None and self._alone[0] is row:
            self._alone = None
        self._close([row])

    # Rows in slots

    def _open(self, known: Sequence[KeysValues], serves: int | None) -> None:
        """Takes the next slot for a stream of which these pieces are computed."""
        self.slots.open(known[0] if known else None, serves)
        for piece in known[1:]:
            self.slots.add(piece)

    def _share(self, row: ActiveRow) -> None:
        """Lets other rows have what is computed of this one."""
        if self.shared is None or not row.row.shares or not self.runner.supports_chunked_prefill:
            return
        for number, slot in enumerate(self._slots_of(row)):
            count = _serves(row.row, number) or self.slots.lengths[slot]
            read = partial(self.slots.computed, slot, count)
            self.shared.keep(row.row.streams[number], tuple(row.generated), count, read)

    def _advance(self, first: int, *, prefill: bool) -> list[ActiveRow]:
        """Forwards what is not computed of the slots from `first` on, and draws for their rows."""
        failed: list[ActiveRow] = []
        try:
            output = self._forward(range(first, len(self._owners)))
        except Exception as error:
            if ran_out_of_memory(error):
                raise
            failed = self._fails_with(first, error)
        if failed:  # outside the handler, whose error holds on to the pass
            self._close(failed)
            if len(self._owners) == first:
                return failed
            output = self._forward(range(first, len(self._owners)))
        slots = range(first, len(self._owners))
        ended = self._draw(self._sort(slots, output), prefill=prefill)
        self._close(ended)
        return failed + ended

    def _fails_with(self, first: int, error: Exception) -> list[ActiveRow]:
        """The rows from slot `first` on that a pass fails with, each with its error."""
        rows = list(dict.fromkeys(row for row, _ in self._owners[first:]))
        for row in rows if len(rows) > 1 else ():
            try:
                self._forward(self._slots_of(row), commit=False)
            except Exception as own:
                if ran_out_of_memory(own):
                    raise
                row.error = own
        failed = [row for row in rows if row.error is not None]
        if not failed:  # each alone can be forwarded, and together they cannot
            for row in rows:
                row.error = error
        return failed or rows

    def _forward(
        self,
        slots: Sequence[int],
        readings: Sequence[StreamState] | None = None,
        *,
        commit: bool = True,
    ) -> Output:
        """Forwards what is not computed of some slots, at least the last token of each.

        Args:
            slots: in order.
            readings: per slot, in place of its owner's: the same tokens under something else.
            commit: whether the tokens count as computed from now on.
        """
        if readings is None:
            owners = [self._owners[slot] for slot in slots]
            readings = [row.readings[number] for row, number in owners]
        ends = [len(reading) for reading in readings]
        starts = [
            min(self.slots.lengths[slot], end - 1) for slot, end in zip(slots, ends, strict=True)
        ]
        if self._span is None:
            every = [row.readings[number] for row, number in self._owners]
            self._span = spans_of(every, self.runner.device)
        span = self._span  # the same one as long as the rows are, by which steering is kept
        if len(slots) < len(self._owners):
            span = span[list(slots)]
        output = forward_slots(self.runner, self.slots, slots, readings, starts, span)
        if commit:
            self.slots.commit(slots, ends)
        return output

    def _sort(self, slots: Sequence[int], output: Output) -> _Read:
        """The outputs of the slots, by row."""
        places: dict[ActiveRow, list[int]] = {}
        for place, slot in enumerate(slots):
            row, number = self._owners[slot]
            mine = places.setdefault(row, [-1] * len(row.readings))
            mine[number] = place
        rows, logits, mass = list(places), output.logits[:, -1], output.mass
        uniform = output.uniform
        seconds = [mine[1] if len(mine) > 1 else None for mine in places.values()]
        beside = [None if place is None else logits[place] for place in seconds]
        mass_beside = [None if place is None or mass is None else mass[place] for place in seconds]
        if len(rows) < len(slots):
            writing = [mine[0] for mine in places.values()]
            logits, mass = logits[writing], None if mass is None else mass[writing]
            uniform = None if uniform is None else uniform[writing]
        return _Read(rows, logits, beside, mass, mass_beside, uniform)

    def _draw(self, read: _Read, *, prefill: bool) -> list[ActiveRow]:
        """Draws a token of every row; returns the rows that end with it."""
        if any(row.row.scaling for row in read.rows):
            read = self._try_scaled(read, prefill=prefill)
        if read.mass is not None:
            assert read.uniform is not None
            for row, mass, uniform in zip(read.rows, read.mass, read.uniform, strict=True):
                row.masses.append(mass)
                row.uniform_masses.append(uniform)
        drawn = choose(read.logits, read.beside, [row.next_draw for row in read.rows])
        again = refused(drawn.tokens, read.beside, [row.row.gate for row in read.rows])
        if again:
            part = _Read(
                [read.rows[place] for place in again],
                read.logits[again],
                [read.beside[place] for place in again],
                None,
                [read.mass_beside[place] for place in again],
            )
            layers = 0 if prefill else self.runner.layers // 2
            drawn = _put(self._fall_back(part, layers), again, drawn)
        _note_log_probabilities(read.rows, drawn)
        ended = []
        for row, token in zip(read.rows, drawn.tokens, strict=True):
            if reason := row.take(token, self.stop_ids):
                row.finish(reason, self._computed(row) if row.row.keep else ())
                if row.error is None:
                    self._share(row)
                ended.append(row)
        return ended

    def _fall_back(self, read: _Read, layers: int) -> list[tuple[Token, Tensor]]:
        """Tokens of rows whose gate refused one: steered in ever fewer layers, at last in none;
        each with the logits [vocabulary] that it was drawn from.
        """
        tokens: dict[ActiveRow, tuple[Token, Tensor]] = {}
        beside = dict(zip(read.rows, read.beside, strict=True))
        open_rows = read.rows
        while layers and open_rows:
            last = range(self.runner.layers - layers, self.runner.layers)
            slots = [self._slots_of(row)[0] for row in open_rows]
            readings = [self._on_layers(row.readings[0], last) for row in open_rows]
            output = self._forward(slots, readings)
            for place, row in enumerate(open_rows):
                row.forwarded += 1
                if output.mass is not None:
                    row.masses[-1] = output.mass[place]
            unsteered = [beside[row] for row in open_rows]
            drawn = choose(output.logits[:, -1], unsteered, [row.next_draw for row in open_rows])
            again = refused(drawn.tokens, unsteered, [row.row.gate for row in open_rows])
            tokens |= dict(
                zip(open_rows, zip(drawn.tokens, drawn.logits, strict=True), strict=True)
            )
            open_rows = [open_rows[place] for place in again]
            layers //= 2
        if open_rows:
            unsteered = [beside[row] for row in open_rows]
            logits = torch.stack([other for other in unsteered if other is not None])
            drawn = choose(logits, unsteered, [row.next_draw for row in open_rows])
            tokens |= dict(
                zip(open_rows, zip(drawn.tokens, drawn.logits, strict=True), strict=True)
            )
        mass_beside = dict(zip(read.rows, read.mass_beside, strict=True))
        for row in open_rows:
            if (mass := mass_beside[row]) is not None:
                row.masses[-1] = mass
        return [tokens[row] for row in read.rows]

    def _on_layers(self, reading: StreamState, layers: range) -> StreamState:
        """The same under its attention methods on some layers alone."""
        stream = reading.stream
        methods = *stream.states, *on_layers(stream.attention, layers, self.runner.heads)
        return replace(reading, stream=replace(stream, methods=methods))

    def _try_scaled(self, read: _Read, *, prefill: bool) -> _Read:
        """The same with the logits of scaled scores where those are plausible.

        A state that has read the whole prompt is not there without its last token, so that the
        first token of such a model's reply is the unsteered one.
        """
        if prefill and self.runner.recurrent:
            return read
        if new := [row for row in read.rows if row.row.scaling and not row.ranking]:
            rank(self.runner, new, self._forward_scaled)
        logits, mass = tried(read.rows, read.logits, read.mass, self._forward_scaled)
        return replace(read, logits=logits, mass=mass)

    def _forward_scaled(
        self, rows: Sequence[ActiveRow], layers: Sequence[tuple[int, ...]]
    ) -> Output:
        """Forwards the last tokens of rows again, their scores scaled; counts for nothing."""
        readings = []
        for row, steered in zip(rows, layers, strict=True):
            assert row.row.scaling is not None
            row.forwarded += 1
            readings.append(
                replace(row.readings[0], scaled=KeyScale(row.row.scaling.scale, steered))
            )
        slots = [self._slots_of(row)[0] for row in rows]
        with self.slots.restored(slots):
            return self._forward(slots, readings, commit=False)

    def _slots_of(self, row: ActiveRow) -> list[int]:
        """The slots of a row, in the order of its streams."""
        mine = [slot for slot, (owner, _) in enumerate(self._owners) if owner is row]
        return sorted(mine, key=lambda slot: self._owners[slot][1])

    def _computed(self, row: ActiveRow) -> tuple[KeysValues | None, ...]:
        """The keys and values of a row that serve a longer prompt: its reply is history there."""
        kept: list[KeysValues | None] = []
        if not self.runner.supports_chunked_prefill:
            return ()
        for number, slot in enumerate(self._slots_of(row)):
            kept.append(self.slots.computed(slot, _serves(row.row, number)))
        return tuple(kept)

    def _close(self, rows: Sequence[ActiveRow]) -> None:
        """Frees the slots of rows."""
        for row in rows:
            for slot in sorted(self._slots_of(row), reverse=True):
                self.slots.close(slot, wipe=row.error is not None)
                self._owners[slot] = self._owners[-1]
                self._owners.pop()
        if rows:
            self._span = None
            self.slots.shrink()

    # A row alone

    def _advance_alone(self) -> list[ActiveRow]:
        """Draws a token of the one row, each stream with the cache that the model makes, if any."""
        assert self._alone is not None
        row, caches = self._alone
        outputs = []
        try:
            for index, reading in enumerate(row.readings):
                computed = len(reading) - 1 if caches[index] is not None else 0
                span = spans_of([reading], self.runner.device)
                batch = batch_of([reading], [computed], span, self.runner.device, caches[index])
                outputs.append(self.runner.forward(batch))
                caches[index] = outputs[-1].cache
                row.forwarded += batch.ids.shape[1]
        except Exception as error:
            if ran_out_of_memory(error):
                raise
            row.error = error
        ended = (
            [row] if row.error is not None else self._draw(_read_alone(row, outputs), prefill=True)
        )
        if ended:
            self._alone = None
        return ended


def _put(fallen: Sequence[tuple[Token, Tensor]], places: Sequence[int], drawn: Drawn) -> Drawn:
    """The draws, with other tokens and logits in some places."""
    tokens, logits = list(drawn.tokens), drawn.logits.clone()
    for place, (token, own) in zip(places, fallen, strict=True):
        tokens[place], logits[place] = token, own
    return Drawn(tokens, logits)


def _note_log_probabilities(rows: Sequence[ActiveRow], drawn: Drawn) -> None:
    """Keeps the log-probability of each token that was drawn, for the rows that want it."""
    wanted, tokens, counts = list[int](), list[int](), list[int]()
    for place, (row, token) in enumerate(zip(rows, drawn.tokens, strict=True)):
        if row.row.top_logprobs is not None and not isinstance(token, Exception):
            wanted.append(place)
            tokens.append(token)
            counts.append(row.row.top_logprobs)
    if wanted:
        logits = drawn.logits[wanted]
        told = log_probabilities(logits, tokens, counts)
        for place, log_probability in zip(wanted, told, strict=True):
            rows[place].log_probabilities.append(log_probability)


def _serves(row: Row, number: int) -> int | None:
    """How many first tokens of a stream serve a longer prompt; None: all that are computed."""
    stream, gated = row.streams[number], row.gate is not None and number == 0
    return len(stream.token_ids) if gated or stream.treats_generated_apart else None


def _read_alone(row: ActiveRow, outputs: Sequence[Output]) -> _Read:
    first, *second = outputs
    beside = second[0].logits[0, -1] if second else None
    mass_beside = second[0].mass[0] if second and second[0].mass is not None else None
    return _Read([row], first.logits[:, -1], [beside], first.mass, [mass_beside], first.uniform)
