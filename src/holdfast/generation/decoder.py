"""Generates rows of different lengths, methods, samplings and seeds in shared forward passes.

Rows join and leave at any step. New rows are prefilled together, each after the tokens that are
already computed; then every step forwards one token of every row. A failed pass is repeated without
the rows that make it fail, so that an error ends only the row it belongs to. Models whose caches
cannot be laid out in slots run their rows one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from holdfast.generation.batch import spans_of
from holdfast.generation.constraints import constrain
from holdfast.generation.cpu_threads import one_thread
from holdfast.generation.drawing import DrawnToken, choose, log_probabilities
from holdfast.generation.memory import ran_out_of_memory
from holdfast.generation.prefixes import KeysValues
from holdfast.generation.processors import StepOutputs, process
from holdfast.generation.rows import RowState, TokenMass
from holdfast.generation.runner import Output, Runner
from holdfast.generation.shared_prefixes import SharedPrefixes


class _Owner(NamedTuple):
    """The owner of a slot."""

    row: RowState
    number: int  # of the stream among those of the row


@dataclass
class _UnbatchedRow:
    """A row that runs without slots."""

    row: RowState
    caches: list[Cache | None]  # of each stream, as the model makes it; None before the first pass


class Decoder:
    """Generates rows with one model; `shared` receives the keys and values of rows that share."""

    def __init__(
        self, runner: Runner, stop_ids: frozenset[int], shared: SharedPrefixes | None = None
    ):
        self.runner, self.stop_ids, self.shared = runner, stop_ids, shared
        self.slots = runner.slots()
        self._owners: list[_Owner] = []  # by slot
        self._span: Tensor | None = None  # of all slots; None after rows joined or left
        self._unbatched: _UnbatchedRow | None = None
        self._small = runner.small

    def __len__(self) -> int:
        """Streams being forwarded."""
        return len(self._owners) if self._unbatched is None else len(self._unbatched.caches)

    @torch.inference_mode()
    def admit(self, rows: Sequence[RowState]) -> list[RowState]:
        """Prefills rows and draws their first tokens; returns those that end with them."""
        if not self.runner.batched:
            (state,) = rows
            self._unbatched = _UnbatchedRow(state, [None] * len(state.streams))
            return self._advance_unbatched(self._unbatched)
        first = len(self._owners)
        ends = (state.row.longest + state.row.sampling.max_new_tokens for state in rows)
        self.slots.expect(first + sum(len(state.streams) for state in rows), max(ends))
        for state in rows:
            for number, stream in enumerate(state.streams):
                state.forwarded += len(stream) - state.known_lengths[number]
                known = state.known[number]
                self.slots.open(known[0] if known else None, state.row.reusable_len(number))
                for piece in known[1:]:
                    self.slots.add(piece)
                self._owners.append(_Owner(state, number))
            state.known = [()] * len(state.streams)
        self._span = None
        self._forward_beginnings(first)
        ended = self._advance(first)
        for state in rows:
            if state not in ended:
                self._share(state)
        return ended

    @torch.inference_mode()
    def step(self) -> list[RowState]:
        """Forwards one token of every row and draws the next; returns the rows that end."""
        with one_thread() if self._small else nullcontext():
            if self._unbatched is not None:
                return self._advance_unbatched(self._unbatched)
            for state, _ in self._owners:
                state.forwarded += 1
            return self._advance(0)

    @torch.inference_mode()
    def remove(self, state: RowState) -> None:
        """Ends a row at once and keeps nothing of it."""
        if self._unbatched is not None and self._unbatched.row is state:
            self._unbatched = None
        self._close([state])

    # Rows in slots

    def _forward_beginnings(self, first: int) -> None:
        """Forwards the prompts of the slots from `first` on that are shared, without their last
        tokens, if the runner splits prompts.
        """
        if self.shared is None or not self.runner.splits_prompts:
            return
        slots, beginnings = [], []
        for slot, (state, number) in enumerate(self._owners[first:], first):
            beginning = state.streams[number].without_last()
            if state.row.shares and len(beginning) > self.slots.lengths[slot]:
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

    def _share(self, state: RowState) -> None:
        """Shares the keys and values of a row with other rows."""
        if self.shared is None or not state.row.shares or not self.runner.supports_chunked_prefill:
            return
        for number, slot in enumerate(self._slots_of(state)):
            count = state.row.reusable_len(number) or self.slots.lengths[slot]
            read = partial(self.slots.computed, slot, count)
            length = self.slots.lengths[slot]
            self.shared.keep(state.row.streams[number], tuple(state.token_ids), count, read, length)

    def _advance(self, first: int) -> list[RowState]:
        """Forwards the pending tokens of the slots from `first` on, and draws for their rows."""
        failed: list[RowState] = []
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
        ended = self._draw(self._by_row(slots, output))
        self._close(ended)
        return failed + ended

    def _fails_with(self, first: int, error: Exception) -> list[RowState]:
        """The rows from slot `first` on that make a pass fail, each with its error."""
        rows = list(dict.fromkeys(state for state, _ in self._owners[first:]))
        for state in rows if len(rows) > 1 else ():
            try:
                self._forward(self._slots_of(state), commit=False)
            except Exception as row_error:
                if ran_out_of_memory(row_error):
                    raise
                state.error = row_error
        failed = [state for state in rows if state.error is not None]
        if not failed:  # each can be forwarded alone, but not together
            for state in rows:
                state.error = error
        return failed or rows

    def _forward(self, slots: Sequence[int], *, commit: bool = True) -> Output:
        """Forwards the pending tokens of some slots."""
        owners = [self._owners[slot] for slot in slots]
        streams = [state.streams[number] for state, number in owners]
        if self._span is None:
            every = [state.streams[number] for state, number in self._owners]
            self._span = spans_of(every, self.runner.device)
        span = self._span  # the same tensor while the rows stay, so that their steering is reused
        if len(slots) < len(self._owners):
            span = span[list(slots)]
        known = [self.slots.lengths[slot] for slot in slots]
        output = self.runner.forward_slots(self.slots, slots, streams, span)
        for (state, _), slot, count in zip(owners, slots, known, strict=True):
            state.forwarded += count - self.slots.lengths[slot]  # what was computed anew
        if commit:
            self.slots.commit(slots, [len(stream) for stream in streams])
        return output

    def _by_row(self, slots: Sequence[int], output: Output) -> StepOutputs:
        """The outputs of the slots, by row."""
        numbers: dict[RowState, list[int]] = {}
        for number, slot in enumerate(slots):
            state, index = self._owners[slot]
            numbers.setdefault(state, [-1] * len(state.streams))[index] = number
        logits = output.logits[:, -1]
        first = [number for number, *_ in numbers.values()]
        second = [number for _, *others in numbers.values() for number in others]
        mass, uniform = output.mass, output.uniform
        if not second:  # one slot per row, in order
            return StepOutputs(list(numbers), logits, logits[:0], mass, uniform)
        mass = None if mass is None else mass[first]
        uniform = None if uniform is None else uniform[first]
        return StepOutputs(list(numbers), logits[first], logits[second], mass, uniform)

    def _draw(self, step: StepOutputs) -> list[RowState]:
        """Draws a token for every row; returns the rows that end with it."""
        logits, failed = process(step)
        if step.mass is not None and step.uniform is not None:
            for state, mass, uniform in zip(step.rows, step.mass, step.uniform, strict=True):
                state.masses.append(TokenMass(mass, uniform))
        constrained, without_next = constrain(step.rows, logits)
        failed = without_next | failed
        drawn = choose(constrained, [state.next_draw for state in step.rows])
        tokens = [failed.get(number) or token for number, token in enumerate(drawn)]
        _note_log_probabilities(step.rows, tokens, logits)
        ended = []
        for state, token in zip(step.rows, tokens, strict=True):
            if reason := state.add(token, self.stop_ids):
                state.finish(reason, self._computed(state) if state.row.keep else ())
                if state.error is None:
                    self._share(state)
                ended.append(state)
        return ended

    def _slots_of(self, state: RowState) -> list[int]:
        mine = [slot for slot, (owner, _) in enumerate(self._owners) if owner is state]
        return sorted(mine, key=lambda slot: self._owners[slot][1])

    def _computed(self, state: RowState) -> tuple[KeysValues | None, ...]:
        """The keys and values of a row that a longer prompt with its reply can reuse."""
        if not self.runner.supports_chunked_prefill:
            return ()
        slots = enumerate(self._slots_of(state))
        return tuple(self.slots.computed(slot, state.row.reusable_len(n)) for n, slot in slots)

    def _close(self, rows: Sequence[RowState]) -> None:
        for state in rows:
            for slot in sorted(self._slots_of(state), reverse=True):
                self.slots.close(slot, wipe=state.error is not None)
                self._owners[slot] = self._owners[-1]
                self._owners.pop()
        if rows:
            self._span = None
            self.slots.shrink()

    # A single row

    def _advance_unbatched(self, unbatched: _UnbatchedRow) -> list[RowState]:
        """Draws a token for the row; each stream uses the cache that the model makes, if any."""
        state, outputs = unbatched.row, list[Output]()
        try:
            for number, stream in enumerate(state.streams):
                output = self.runner.forward_next(stream, unbatched.caches[number])
                unbatched.caches[number] = output.cache
                state.forwarded += output.tokens
                outputs.append(output)
        except Exception as error:
            if ran_out_of_memory(error):
                raise
            state.error = error
        ended = [state] if state.error is not None else self._draw(_outputs_of(state, outputs))
        if ended:
            self._unbatched = None
        return ended


def _note_log_probabilities(
    rows: Sequence[RowState], tokens: Sequence[DrawnToken], logits: Tensor
) -> None:
    """Records the log-probabilities of drawn tokens, for the rows that want them."""
    wanted = [
        (number, token, state.row.top_logprobs)
        for number, (state, token) in enumerate(zip(rows, tokens, strict=True))
        if state.row.top_logprobs is not None and not isinstance(token, Exception)
    ]
    if not wanted:
        return
    numbers, drawn, counts = zip(*wanted, strict=True)
    for number, values in zip(
        numbers, log_probabilities(logits[list(numbers)], drawn, counts), strict=True
    ):
        rows[number].log_probabilities.append(values)


def _outputs_of(state: RowState, outputs: Sequence[Output]) -> StepOutputs:
    """The outputs of a row's streams, each forwarded separately."""
    logits = torch.cat([output.logits[:, -1] for output in outputs])
    return StepOutputs([state], logits[:1], logits[1:], outputs[0].mass, outputs[0].uniform)
