"""Generates rows of different lengths, methods, samplings and seeds in shared forward passes.

Rows join and leave at any step. New rows are prefilled together, each after the tokens that are
already computed; then every step forwards one token of every row. A failed pass is repeated without
the rows that make it fail, so that an error ends only the row it belongs to. Models whose caches
cannot be laid out in slots run their rows one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from holdfast.common.threads import one_thread
from holdfast.engine.batch import ActiveRow, spans_of
from holdfast.engine.drawing import Token, choose, log_probabilities
from holdfast.engine.memory import ran_out_of_memory
from holdfast.engine.prefixes import KeysValues
from holdfast.engine.processors import StepOutputs, process
from holdfast.engine.runner import Output, Runner
from holdfast.engine.shared import SharedPrefixes


class Decoder:
    """Generates rows with one model; `shared` receives the keys and values of rows that share."""

    def __init__(
        self, runner: Runner, stop_ids: frozenset[int], shared: SharedPrefixes | None = None
    ):
        self.runner, self.stop_ids, self.shared = runner, stop_ids, shared
        self.slots = runner.slots()
        self._owners: list[tuple[ActiveRow, int]] = []  # by slot: its row and stream
        self._span: Tensor | None = None  # of all slots; None after rows joined or left
        self._alone: tuple[ActiveRow, list[Cache | None]] | None = None
        self._small = runner.small

    def __len__(self) -> int:
        """Streams being forwarded."""
        return len(self._owners) if self._alone is None else len(self._alone[1])

    @torch.inference_mode()
    def admit(self, rows: Sequence[ActiveRow]) -> list[ActiveRow]:
        """Prefills rows and draws their first tokens; returns those that end with them."""
        if not self.runner.batched:
            (row,) = rows
            self._alone = row, [None] * len(row.stream_states)
            return self._advance_alone()
        first = len(self._owners)
        ends = (row.row.longest + row.row.sampling.max_new_tokens for row in rows)
        self.slots.expect(first + sum(len(row.stream_states) for row in rows), max(ends))
        for row in rows:
            for number, state in enumerate(row.stream_states):
                row.forwarded += len(state) - row.cached[number]
                known = row.known[number]
                self.slots.open(known[0] if known else None, row.row.reusable_len(number))
                for piece in known[1:]:
                    self.slots.add(piece)
                self._owners.append((row, number))
            row.known = [()] * len(row.stream_states)
        self._span = None
        self._forward_beginnings(first)
        ended = self._advance(first)
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
            return self._advance(0)

    @torch.inference_mode()
    def remove(self, row: ActiveRow) -> None:
        """Ends a row at once and keeps nothing of it."""
        if self._alone is not None and self._alone[0] is row:
            self._alone = None
        self._close([row])

    # Rows in slots

    def _forward_beginnings(self, first: int) -> None:
        """Forwards the prompts of the slots from `first` on that are shared, without their last
        tokens, if the runner splits prompts.
        """
        if self.shared is None or not self.runner.splits_prompts:
            return
        slots, beginnings = [], []
        for slot, (row, number) in enumerate(self._owners[first:], first):
            beginning = row.stream_states[number].without_last()
            if row.row.shares and len(beginning) > self.slots.lengths[slot]:
                slots.append(slot)
                beginnings.append(beginning)
        if not slots:
            return
        try:
            span = spans_of(beginnings, self.runner.device)
            self.runner.forward_slots(self.slots, slots, beginnings, span)
        except Exception as error:
            if ran_out_of_memory(error):
                raise
            return  # the next pass has the same error, and finds the row that it belongs to
        self.slots.commit(slots, [len(beginning) for beginning in beginnings])

    def _share(self, row: ActiveRow) -> None:
        """Shares the keys and values of a row with other rows."""
        if self.shared is None or not row.row.shares or not self.runner.supports_chunked_prefill:
            return
        for number, slot in enumerate(self._slots_of(row)):
            count = row.row.reusable_len(number) or self.slots.lengths[slot]
            read = partial(self.slots.computed, slot, count)
            length = self.slots.lengths[slot]
            self.shared.keep(row.row.streams[number], tuple(row.generated), count, read, length)

    def _advance(self, first: int) -> list[ActiveRow]:
        """Forwards the pending tokens of the slots from `first` on, and draws for their rows."""
        failed: list[ActiveRow] = []
        try:
            output = self._forward(range(first, len(self._owners)))
        except Exception as error:
            if ran_out_of_memory(error):
                raise
            failed = self._fails_with(first, error)
        if failed:  # outside the handler, whose error keeps the pass alive
            self._close(failed)
            if len(self._owners) == first:
                return failed
            output = self._forward(range(first, len(self._owners)))
        slots = range(first, len(self._owners))
        ended = self._draw(self._sort(slots, output))
        self._close(ended)
        return failed + ended

    def _fails_with(self, first: int, error: Exception) -> list[ActiveRow]:
        """The rows from slot `first` on that make a pass fail, each with its error."""
        rows = list(dict.fromkeys(row for row, _ in self._owners[first:]))
        for row in rows if len(rows) > 1 else ():
            try:
                self._forward(self._slots_of(row), commit=False)
            except Exception as row_error:
                if ran_out_of_memory(row_error):
                    raise
                row.error = row_error
        failed = [row for row in rows if row.error is not None]
        if not failed:  # each can be forwarded alone, but not together
            for row in rows:
                row.error = error
        return failed or rows

    def _forward(self, slots: Sequence[int], *, commit: bool = True) -> Output:
        """Forwards the pending tokens of some slots."""
        owners = [self._owners[slot] for slot in slots]
        states = [row.stream_states[number] for row, number in owners]
        if self._span is None:
            every = [row.stream_states[number] for row, number in self._owners]
            self._span = spans_of(every, self.runner.device)
        span = self._span  # the same tensor while the rows stay, so that their steering is reused
        if len(slots) < len(self._owners):
            span = span[list(slots)]
        known = [self.slots.lengths[slot] for slot in slots]
        output = self.runner.forward_slots(self.slots, slots, states, span)
        for (row, _), slot, count in zip(owners, slots, known, strict=True):
            row.forwarded += count - self.slots.lengths[slot]  # what was computed anew
        if commit:
            self.slots.commit(slots, [len(state) for state in states])
        return output

    def _sort(self, slots: Sequence[int], output: Output) -> StepOutputs:
        """The outputs of the slots, by row."""
        numbers: dict[ActiveRow, list[int]] = {}
        for number, slot in enumerate(slots):
            row, stream = self._owners[slot]
            numbers.setdefault(row, [-1] * len(row.stream_states))[stream] = number
        logits = output.logits[:, -1]
        first = [number for number, *_ in numbers.values()]
        second = [number for _, *others in numbers.values() for number in others]
        mass, uniform = output.mass, output.uniform
        if not second:  # one slot per row, in order
            return StepOutputs(list(numbers), logits, logits[:0], mass, uniform)
        mass = None if mass is None else mass[first]
        uniform = None if uniform is None else uniform[first]
        return StepOutputs(list(numbers), logits[first], logits[second], mass, uniform)

    def _draw(self, step: StepOutputs) -> list[ActiveRow]:
        """Draws a token for every row; returns the rows that end with it."""
        logits, failed = process(step)
        if step.mass is not None and step.uniform is not None:
            for row, mass, uniform in zip(step.rows, step.mass, step.uniform, strict=True):
                row.masses.append(mass)
                row.uniform_masses.append(uniform)
        drawn = choose(logits, [row.next_draw for row in step.rows])
        tokens = [failed.get(number) or token for number, token in enumerate(drawn)]
        _note_log_probabilities(step.rows, tokens, logits)
        ended = []
        for row, token in zip(step.rows, tokens, strict=True):
            if reason := row.take(token, self.stop_ids):
                row.finish(reason, self._computed(row) if row.row.keep else ())
                if row.error is None:
                    self._share(row)
                ended.append(row)
        return ended

    def _slots_of(self, row: ActiveRow) -> list[int]:
        mine = [slot for slot, (owner, _) in enumerate(self._owners) if owner is row]
        return sorted(mine, key=lambda slot: self._owners[slot][1])

    def _computed(self, row: ActiveRow) -> tuple[KeysValues | None, ...]:
        """The keys and values of a row that a longer prompt with its reply can reuse."""
        if not self.runner.supports_chunked_prefill:
            return ()
        slots = enumerate(self._slots_of(row))
        return tuple(self.slots.computed(slot, row.row.reusable_len(n)) for n, slot in slots)

    def _close(self, rows: Sequence[ActiveRow]) -> None:
        for row in rows:
            for slot in sorted(self._slots_of(row), reverse=True):
                self.slots.close(slot, wipe=row.error is not None)
                self._owners[slot] = self._owners[-1]
                self._owners.pop()
        if rows:
            self._span = None
            self.slots.shrink()

    # A single row

    def _advance_alone(self) -> list[ActiveRow]:
        """Draws a token for the row; each stream uses the cache that the model makes, if any."""
        assert self._alone is not None
        row, caches = self._alone
        outputs = []
        try:
            for index, state in enumerate(row.stream_states):
                outputs.append(self.runner.forward_next(state, caches[index]))
                caches[index] = outputs[-1].cache
                row.forwarded += outputs[-1].tokens
        except Exception as error:
            if ran_out_of_memory(error):
                raise
            row.error = error
        ended = [row] if row.error is not None else self._draw(_alone(row, outputs))
        if ended:
            self._alone = None
        return ended


def _note_log_probabilities(
    rows: Sequence[ActiveRow], tokens: Sequence[Token], logits: Tensor
) -> None:
    """Records the log-probabilities of drawn tokens, for the rows that want them."""
    wanted = [
        (number, token, row.row.top_logprobs)
        for number, (row, token) in enumerate(zip(rows, tokens, strict=True))
        if row.row.top_logprobs is not None and not isinstance(token, Exception)
    ]
    if not wanted:
        return
    numbers, drawn, counts = zip(*wanted, strict=True)
    for number, values in zip(
        numbers, log_probabilities(logits[list(numbers)], drawn, counts), strict=True
    ):
        rows[number].log_probabilities.append(values)


def _alone(row: ActiveRow, outputs: Sequence[Output]) -> StepOutputs:
    """The outputs of a row's streams, each forwarded separately."""
    logits = torch.cat([output.logits[:, -1] for output in outputs])
    return StepOutputs([row], logits[:1], logits[1:], outputs[0].mass, outputs[0].uniform)
