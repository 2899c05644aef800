"""Generates replies to requests of any lengths, methods, samplings and seeds in shared passes.

Requests join and leave at any step. New ones are prefilled together, each after its tokens that are
already computed; then every step forwards one token of every sequence. A failed pass is repeated
without the requests that make it fail, so that an error ends only the request it belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import torch
from torch import Tensor

from holdfast.generation.batch import SequenceGroup
from holdfast.generation.cpu_threads import one_thread
from holdfast.generation.drawing import DrawnToken, draw_or_error, log_probabilities
from holdfast.generation.logits import StepOutputs, apply_processors, constrain
from holdfast.generation.memory import ran_out_of_memory, release_freed_memory
from holdfast.generation.model_runner import ModelRunner, Output
from holdfast.generation.prefix_cache import PrefixCache
from holdfast.generation.saved_kv import SavedKV
from holdfast.generation.token_requests import RequestState, TokenMass, TokenSequence

# How many slots are closed, or tokens prefilled, before freed memory is given back. Tensors of a
# pass differ in size from those of the last one, so the freed memory that glibc keeps grows to as
# much as the memory in use. Giving it back takes a few milliseconds, and the next passes have to
# get theirs anew. Small models free little, and their passes are short: for them it would take a
# tenth of the time.
_CLOSED_PER_RELEASE = 4
_PREFILLED_PER_RELEASE = 512


class _SlotOwner(NamedTuple):
    """The request that a slot belongs to, and which of its sequences is in the slot."""

    state: RequestState
    number: int  # of the sequence among those of the request

    @property
    def sequence(self) -> TokenSequence:
        """The sequence in the slot."""
        return self.state.sequences[self.number]


@dataclass(frozen=True)
class _SlotGroup:
    """Slots forwarded together; the same for every step until a request joins or leaves."""

    slots: Sequence[int]
    owners: Sequence[_SlotOwner]
    sequences: SequenceGroup

    @cached_property
    def _rows_of(self) -> dict[RequestState, list[int]]:
        """Per request, the row of each of its sequences in the group's outputs."""
        rows_of: dict[RequestState, list[int]] = {}
        for row, (state, number) in enumerate(self.owners):
            rows_of.setdefault(state, [-1] * len(state.sequences))[number] = row
        return rows_of

    def by_request(self, output: Output) -> StepOutputs:
        """Sorts the outputs of the slots by request."""
        states = list(self._rows_of)
        logits = output.logits[:, -1]
        mass = output.mass
        uniform = output.uniform
        if len(states) == len(self.slots):  # one slot per request, in order
            return StepOutputs(states, logits, logits[:0], mass, uniform)
        first_rows = [rows[0] for rows in self._rows_of.values()]
        second_rows = [rows[1] for rows in self._rows_of.values() if len(rows) > 1]
        mass = None if mass is None else mass[first_rows]
        uniform = None if uniform is None else uniform[first_rows]
        return StepOutputs(states, logits[first_rows], logits[second_rows], mass, uniform)


class Decoder:
    """Generates the replies of running requests with one model.

    Args:
        runner: the model.
        stop_ids: the tokens that end a reply.
        prefix_cache: receives the keys and values that requests share; None: none are shared.
    """

    def __init__(
        self, runner: ModelRunner, stop_ids: frozenset[int], prefix_cache: PrefixCache | None = None
    ):
        self.runner = runner
        self.stop_ids = stop_ids
        self.prefix_cache = prefix_cache
        self.slots = runner.slots()
        self._owners: list[_SlotOwner] = []  # by slot
        # for the next `decode`; None after a request joined or left
        self._all_slots: _SlotGroup | None = None
        self._small = runner.small
        self._releases_memory = runner.device.type == "cpu" and not runner.small
        # since freed memory was given back
        self._num_closed = 0  # slots
        self._num_prefilled = 0  # tokens

    def __len__(self) -> int:
        """The number of sequences being forwarded."""
        return len(self._owners)

    @torch.inference_mode()
    def prefill(self, states: Sequence[RequestState]) -> list[RequestState]:
        """Prefills requests and draws their first tokens; returns those that end with them."""
        self._release_memory()
        first_slot = len(self._owners)
        self._open_slots(states)
        self._all_slots = None
        self._forward_beginnings(first_slot)
        ended = self._forward_and_draw(self._group(range(first_slot, len(self._owners))))
        for state in states:
            if state not in ended:
                self._share(state)
        return ended

    @torch.inference_mode()
    def decode(self) -> list[RequestState]:
        """Forwards one token of every sequence and draws the next; returns requests that end."""
        self._release_memory()
        with one_thread() if self._small else nullcontext():
            for state, _ in self._owners:
                state.forwarded += 1
            if self._all_slots is None:
                self._all_slots = self._group(range(len(self._owners)))
            return self._forward_and_draw(self._all_slots)

    @torch.inference_mode()
    def remove(self, state: RequestState) -> None:
        """Ends a request immediately and keeps none of its keys and values."""
        self._close([state])

    def _release_memory(self) -> None:
        """Gives freed memory back to the system if there may be much.

        It is called before a pass, when the tensors of the last one, and the keys and values of
        dialogs that went on, are free.
        """
        is_due = (
            self._num_closed >= _CLOSED_PER_RELEASE or self._num_prefilled >= _PREFILLED_PER_RELEASE
        )
        if self._releases_memory and is_due:
            release_freed_memory()
            self._num_closed = self._num_prefilled = 0

    # Prefill

    def _open_slots(self, states: Sequence[RequestState]) -> None:
        """Opens a slot for each sequence of new requests, with the keys and values it reuses."""
        num_slots = len(self._owners) + sum(len(state.sequences) for state in states)
        max_lens = (
            state.request.max_prompt_len + state.request.sampling.max_new_tokens for state in states
        )
        self.slots.expect(num_slots, max(max_lens))
        for state in states:
            for number, sequence in enumerate(state.sequences):
                num_new_tokens = len(sequence) - state.reused_lengths[number]
                state.forwarded += num_new_tokens
                self._num_prefilled += num_new_tokens
                pieces = state.reused[number]
                reusable_len = state.request.reusable_len(number)
                self.slots.open(pieces[0] if pieces else None, reusable_len)
                for piece in pieces[1:]:
                    self.slots.add(piece)
                self._owners.append(_SlotOwner(state, number))
            state.reused = [()] * len(state.sequences)

    def _forward_beginnings(self, first_slot: int) -> None:
        """If the runner splits prompts, forwards shared prompts up to their last token.

        Only the slots from `first_slot` on are considered.
        """
        if self.prefix_cache is None or not self.runner.splits_prompts:
            return
        slots = []
        beginnings = []
        for slot, owner in enumerate(self._owners[first_slot:], first_slot):
            beginning = owner.sequence.without_last()
            if owner.state.request.shares_kv and len(beginning) > self.slots.lengths[slot]:
                slots.append(slot)
                beginnings.append(beginning)
        if not slots:
            return
        try:
            group = SequenceGroup(beginnings, self.runner.device)
            self.runner.forward_slots(self.slots, slots, group)
        except Exception as error:
            if ran_out_of_memory(error):
                raise
            return  # the next pass raises the same error and finds the request that causes it
        self.slots.commit(slots, [len(beginning) for beginning in beginnings])

    # A pass

    def _group(self, slots: Sequence[int]) -> _SlotGroup:
        owners = [self._owners[slot] for slot in slots]
        sequences = [owner.sequence for owner in owners]
        return _SlotGroup(slots, owners, SequenceGroup(sequences, self.runner.device))

    def _forward_and_draw(self, group: _SlotGroup) -> list[RequestState]:
        """Forwards the pending tokens of a group and draws a token for each of its requests.

        The group must contain all slots from its first one on. Returns the requests that ended.
        """
        failed: list[RequestState] = []
        try:
            outputs = group.by_request(self._forward(group))
        except Exception as error:
            if ran_out_of_memory(error):
                raise
            failed = self._find_failing(group, error)
        if failed:  # not in the handler: its error would keep the tensors of the pass alive
            self._close(failed)
            other_slots = range(group.slots[0], len(self._owners))
            if not other_slots:
                return failed
            group = self._group(other_slots)
            outputs = group.by_request(self._forward(group))
        ended = self._draw(outputs)
        self._close(ended)
        return failed + ended

    def _find_failing(self, group: _SlotGroup, error: Exception) -> list[RequestState]:
        """Returns the requests that make a group's pass fail, with `error` set on each.

        If every request can be forwarded alone, all of them fail with the group's error.
        """
        states = list(dict.fromkeys(owner.state for owner in group.owners))
        for state in states if len(states) > 1 else ():
            try:
                self._forward(self._group(self._slots_of(state)), commit=False)
            except Exception as own_error:
                if ran_out_of_memory(own_error):
                    raise
                state.error = own_error
        failed = [state for state in states if state.error is not None]
        if not failed:
            for state in states:
                state.error = error
        return failed or states

    def _forward(self, group: _SlotGroup, *, commit: bool = True) -> Output:
        """Forwards the pending tokens of a group."""
        slots = group.slots
        lengths = [self.slots.lengths[slot] for slot in slots]
        output = self.runner.forward_slots(self.slots, slots, group.sequences)
        for (state, _), slot, length in zip(group.owners, slots, lengths, strict=True):
            # a slot that the runner restarted has forwarded all of its tokens again
            state.forwarded += length - self.slots.lengths[slot]
        if commit:
            self.slots.commit(slots, [len(owner.sequence) for owner in group.owners])
        return output

    def _draw(self, outputs: StepOutputs) -> list[RequestState]:
        """Draws a token for every request; returns the requests that end with it."""
        requests = outputs.requests
        processed = apply_processors(outputs)
        if outputs.mass is not None and outputs.uniform is not None:
            for state, mass, uniform in zip(requests, outputs.mass, outputs.uniform, strict=True):
                state.masses.append(TokenMass(mass, uniform))
        constrained = constrain(requests, processed.logits)
        errors = constrained.errors | processed.errors
        samplings = [state.request.sampling for state in requests]
        random_numbers = [state.next_random for state in requests]
        drawn = draw_or_error(constrained.logits, samplings, random_numbers)
        tokens = [errors.get(index, token) for index, token in enumerate(drawn)]
        _record_log_probabilities(requests, tokens, processed.logits)
        ended = []
        for state, token in zip(requests, tokens, strict=True):
            if reason := state.add(token, self.stop_ids):
                state.finish(reason, self._copy_kv(state) if state.request.keep else ())
                if state.error is None:
                    self._share(state)
                ended.append(state)
        return ended

    # The slots of a request

    def _slots_of(self, state: RequestState) -> list[int]:
        """The slots of a request's sequences, in the order of the sequences."""
        slots = [slot for slot, owner in enumerate(self._owners) if owner.state is state]
        return sorted(slots, key=lambda slot: self._owners[slot].number)

    def _share(self, state: RequestState) -> None:
        """Makes the keys and values of a request available to others, if it shares them."""
        if (
            self.prefix_cache is None
            or not state.request.shares_kv
            or not self.runner.supports_chunked_prefill
        ):
            return
        for number, slot in enumerate(self._slots_of(state)):
            length = self.slots.lengths[slot]
            count = state.request.reusable_len(number) or length
            copy_from = partial(self.slots.copy_kv, slot, count)
            prompt = state.request.prompts[number]
            self.prefix_cache.keep(prompt, tuple(state.token_ids), count, copy_from, length)

    def _copy_kv(self, state: RequestState) -> tuple[SavedKV | None, ...]:
        """Copies the keys and values that a longer prompt, with this reply, can reuse."""
        if not self.runner.supports_chunked_prefill:
            return ()
        return tuple(
            self.slots.copy_kv(slot, state.request.reusable_len(number))
            for number, slot in enumerate(self._slots_of(state))
        )

    def _close(self, states: Sequence[RequestState]) -> None:
        """Closes the slots of requests that have ended."""
        for state in states:
            for slot in sorted(self._slots_of(state), reverse=True):
                self.slots.close(slot, wipe=state.error is not None)
                self._owners[slot] = self._owners[-1]
                self._owners.pop()
                self._num_closed += 1
        if states:
            self._all_slots = None
            self.slots.shrink()
            if not self._owners:  # no pass may follow
                self._release_memory()


def _record_log_probabilities(
    states: Sequence[RequestState], tokens: Sequence[DrawnToken], logits: Tensor
) -> None:
    """Records the log-probabilities of drawn tokens, for the requests that want them."""
    indices = list[int]()
    token_ids = list[int]()
    counts = list[int]()
    for index, (state, token) in enumerate(zip(states, tokens, strict=True)):
        if state.request.top_logprobs is not None and not isinstance(token, Exception):
            indices.append(index)
            token_ids.append(token)
            counts.append(state.request.top_logprobs)
    if not indices:
        return
    values = log_probabilities(logits[indices], token_ids, counts)
    for index, value in zip(indices, values, strict=True):
        states[index].log_probabilities.append(value)
