"""Generates rows of different lengths, methods, samplings and seeds in shared forward passes.

Rows join and leave at any step. New rows are prefilled together, each after its tokens that are
already computed; then every step forwards one token of every row. A failed pass is repeated without
the rows that make it fail, so that an error ends only the row it belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import torch
from torch import Tensor

from holdfast.generation.batch import StreamGroup
from holdfast.generation.cpu_threads import one_thread
from holdfast.generation.drawing import DrawnToken, draw_or_fail, log_probabilities
from holdfast.generation.kv_cache import KVCache
from holdfast.generation.logits import StepOutputs, constrain, process
from holdfast.generation.memory import ran_out_of_memory
from holdfast.generation.prefix_cache import PrefixCache
from holdfast.generation.row_runner import RowRunner
from holdfast.generation.rows import RowState, StreamState, TokenMass
from holdfast.generation.runner import Output


class _Owner(NamedTuple):
    """The row that a slot belongs to, and which of its streams is in the slot."""

    row: RowState
    number: int  # index of the stream in the row

    @property
    def stream(self) -> StreamState:
        """The stream whose tokens are in the slot."""
        return self.row.streams[self.number]


@dataclass(frozen=True)
class _SlotGroup:
    """Slots that are forwarded together; reused from step to step until a row joins or leaves."""

    slots: Sequence[int]
    owners: Sequence[_Owner]
    streams: StreamGroup

    @cached_property
    def _indices(self) -> dict[RowState, list[int]]:
        """Per row, the index of each of its streams in the group."""
        indices: dict[RowState, list[int]] = {}
        for index, (row, number) in enumerate(self.owners):
            indices.setdefault(row, [-1] * len(row.streams))[number] = index
        return indices

    def by_row(self, output: Output) -> StepOutputs:
        """Sorts the outputs of the slots by row."""
        rows = list(self._indices)
        logits = output.logits[:, -1]
        mass = output.mass
        uniform = output.uniform
        if len(rows) == len(self.slots):  # one slot per row, in order
            return StepOutputs(rows, logits, logits[:0], mass, uniform)
        first = [indices[0] for indices in self._indices.values()]
        second = [indices[1] for indices in self._indices.values() if len(indices) > 1]
        mass = None if mass is None else mass[first]
        uniform = None if uniform is None else uniform[first]
        return StepOutputs(rows, logits[first], logits[second], mass, uniform)


class Decoder:
    """Generates rows with one model.

    Args:
        runner: the model.
        stop_ids: the tokens that end a reply.
        prefix_cache: receives the keys and values of rows that share theirs; None: none are shared.
    """

    def __init__(
        self, runner: RowRunner, stop_ids: frozenset[int], prefix_cache: PrefixCache | None = None
    ):
        self.runner = runner
        self.stop_ids = stop_ids
        self.prefix_cache = prefix_cache
        self.slots = runner.slots()
        self._owners: list[_Owner] = []  # by slot
        # all slots, for the next step; None after a row joined or left
        self._step_group: _SlotGroup | None = None
        self._small = runner.small

    def __len__(self) -> int:
        """The number of streams being forwarded."""
        return len(self._owners)

    @torch.inference_mode()
    def admit(self, rows: Sequence[RowState]) -> list[RowState]:
        """Prefills rows and draws their first tokens; returns those that end with them."""
        first = len(self._owners)
        ends = (state.row.longest + state.row.sampling.max_new_tokens for state in rows)
        self.slots.expect(first + sum(len(state.streams) for state in rows), max(ends))
        for state in rows:
            for number, stream in enumerate(state.streams):
                state.forwarded += len(stream) - state.reused_lengths[number]
                pieces = state.reused[number]
                self.slots.open(pieces[0] if pieces else None, state.row.reusable_len(number))
                for piece in pieces[1:]:
                    self.slots.add(piece)
                self._owners.append(_Owner(state, number))
            state.reused = [()] * len(state.streams)
        self._step_group = None
        self._forward_beginnings(first)
        ended = self._advance(self._group(range(first, len(self._owners))))
        for state in rows:
            if state not in ended:
                self._share(state)
        return ended

    @torch.inference_mode()
    def step(self) -> list[RowState]:
        """Forwards one token of every row and draws the next; returns the rows that end."""
        with one_thread() if self._small else nullcontext():
            for state, _ in self._owners:
                state.forwarded += 1
            if self._step_group is None:
                self._step_group = self._group(range(len(self._owners)))
            return self._advance(self._step_group)

    @torch.inference_mode()
    def remove(self, state: RowState) -> None:
        """Ends a row immediately and keeps none of its keys and values."""
        self._close([state])

    def _forward_beginnings(self, first: int) -> None:
        """If the runner splits prompts, forwards shared prompts up to their last token.

        Only the slots from `first` on are considered.
        """
        if self.prefix_cache is None or not self.runner.splits_prompts:
            return
        slots = []
        beginnings = []
        for slot, (state, number) in enumerate(self._owners[first:], first):
            beginning = state.streams[number].without_last()
            if state.row.shares and len(beginning) > self.slots.lengths[slot]:
                slots.append(slot)
                beginnings.append(beginning)
        if not slots:
            return
        try:
            group = StreamGroup(beginnings, self.runner.device)
            self.runner.forward_slots(self.slots, slots, group)
        except Exception as error:
            if ran_out_of_memory(error):
                raise
            return  # the next pass raises the same error and finds the row that causes it
        self.slots.commit(slots, [len(beginning) for beginning in beginnings])

    def _share(self, state: RowState) -> None:
        """Makes the keys and values of a row available to other rows, if it shares them."""
        if (
            self.prefix_cache is None
            or not state.row.shares
            or not self.runner.supports_chunked_prefill
        ):
            return
        for number, slot in enumerate(self._slots_of(state)):
            count = state.row.reusable_len(number) or self.slots.lengths[slot]
            copy_from = partial(self.slots.copy_kv, slot, count)
            length = self.slots.lengths[slot]
            stream = state.row.streams[number]
            generated = tuple(state.token_ids)
            self.prefix_cache.keep(stream, generated, count, copy_from, length)

    def _group(self, slots: Sequence[int]) -> _SlotGroup:
        owners = [self._owners[slot] for slot in slots]
        streams = [owner.stream for owner in owners]
        return _SlotGroup(slots, owners, StreamGroup(streams, self.runner.device))

    def _advance(self, group: _SlotGroup) -> list[RowState]:
        """Forwards the pending tokens of a group and draws a token for each of its rows.

        The group must contain all slots from its first one on. Returns the rows that ended.
        """
        failed: list[RowState] = []
        try:
            output = self._forward(group)
        except Exception as error:
            if ran_out_of_memory(error):
                raise
            failed = self._find_failing_rows(group, error)
        if failed:  # not in the handler: its error would keep the tensors of the pass alive
            self._close(failed)
            other_slots = range(group.slots[0], len(self._owners))
            if not other_slots:
                return failed
            group = self._group(other_slots)
            output = self._forward(group)
        ended = self._draw(group.by_row(output))
        self._close(ended)
        return failed + ended

    def _find_failing_rows(self, group: _SlotGroup, error: Exception) -> list[RowState]:
        """Returns the rows that make a group's pass fail, with `error` set on each.

        If every row can be forwarded alone, all rows of the group fail with the group's error.
        """
        rows = list(dict.fromkeys(owner.row for owner in group.owners))
        for state in rows if len(rows) > 1 else ():
            try:
                self._forward(self._group(self._slots_of(state)), commit=False)
            except Exception as row_error:
                if ran_out_of_memory(row_error):
                    raise
                state.error = row_error
        failed = [state for state in rows if state.error is not None]
        if not failed:
            for state in rows:
                state.error = error
        return failed or rows

    def _forward(self, group: _SlotGroup, *, commit: bool = True) -> Output:
        """Forwards the pending tokens of a group."""
        slots = group.slots
        lengths = [self.slots.lengths[slot] for slot in slots]
        output = self.runner.forward_slots(self.slots, slots, group.streams)
        for (state, _), slot, length in zip(group.owners, slots, lengths, strict=True):
            # a slot that the runner restarted has forwarded all of its tokens again
            state.forwarded += length - self.slots.lengths[slot]
        if commit:
            self.slots.commit(slots, [len(owner.stream) for owner in group.owners])
        return output

    def _draw(self, step: StepOutputs) -> list[RowState]:
        """Draws a token for every row; returns the rows that end with it."""
        processed = process(step)
        if step.mass is not None and step.uniform is not None:
            for state, mass, uniform in zip(step.rows, step.mass, step.uniform, strict=True):
                state.masses.append(TokenMass(mass, uniform))
        constrained = constrain(step.rows, processed.logits)
        errors = constrained.errors | processed.errors
        samplings = [state.row.sampling for state in step.rows]
        numbers = [state.next_number for state in step.rows]
        drawn = draw_or_fail(constrained.logits, samplings, numbers)
        tokens = [errors.get(number, token) for number, token in enumerate(drawn)]
        _record_log_probabilities(step.rows, tokens, processed.logits)
        ended = []
        for state, token in zip(step.rows, tokens, strict=True):
            if reason := state.add(token, self.stop_ids):
                state.finish(reason, self._copy_kv(state) if state.row.keep else ())
                if state.error is None:
                    self._share(state)
                ended.append(state)
        return ended

    def _slots_of(self, state: RowState) -> list[int]:
        """The slots of a row's streams, in the order of the streams."""
        slots = [slot for slot, owner in enumerate(self._owners) if owner.row is state]
        return sorted(slots, key=lambda slot: self._owners[slot].number)

    def _copy_kv(self, state: RowState) -> tuple[KVCache | None, ...]:
        """Copies the keys and values that a longer prompt, with this row's reply, can reuse."""
        if not self.runner.supports_chunked_prefill:
            return ()
        return tuple(
            self.slots.copy_kv(slot, state.row.reusable_len(number))
            for number, slot in enumerate(self._slots_of(state))
        )

    def _close(self, rows: Sequence[RowState]) -> None:
        for state in rows:
            for slot in sorted(self._slots_of(state), reverse=True):
                self.slots.close(slot, wipe=state.error is not None)
                self._owners[slot] = self._owners[-1]
                self._owners.pop()
        if rows:
            self._step_group = None
            self.slots.shrink()


def _record_log_probabilities(
    rows: Sequence[RowState], tokens: Sequence[DrawnToken], logits: Tensor
) -> None:
    """Records the log-probabilities of drawn tokens, for the rows that request them."""
    indices = list[int]()
    token_ids = list[int]()
    counts = list[int]()
    for index, (state, token) in enumerate(zip(rows, tokens, strict=True)):
        if state.row.top_logprobs is not None and not isinstance(token, Exception):
            indices.append(index)
            token_ids.append(token)
            counts.append(state.row.top_logprobs)
    if not indices:
        return
    values = log_probabilities(logits[indices], token_ids, counts)
    for index, value in zip(indices, values, strict=True):
        rows[index].log_probabilities.append(value)
