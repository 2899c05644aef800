"""The KV cache of running sequences: each has a slot, with its keys, values and states.

The sequence in slot i has its tokens in the columns [0, lengths[i]) of the slot: a token's column
is its position, so masks based on positions (causal, sliding, chunked) need nothing else, and
everything beyond a sequence's length is padding. Slots in use come first, so a pass over all of
them reads views. In windowed layers a slot begins with the first token that the sequence can still
see, which differs by slot.

A pass of the sequences in slots 0 and 1, which have 2 and 7 tokens, forwards 1 and 2 more:

    with cache.writing(slots=[0, 1], starts=[2, 7], ends=[3, 9]):
        ...                                       # the model writes columns 2, and 7 and 8
    cache.commit(slots=[0, 1], ends=[3, 9])       # lengths are now [3, 9]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from holdfast.attention import EVERY_LENGTH, SAME_FACTORS, RotaryLengths, Starts
from holdfast.generation.key_layers import CacheLayer, WindowLayer
from holdfast.generation.saved_kv import SavedLayerKV
from holdfast.generation.slot_layers import layers_like
from holdfast.generation.slot_state import LayerColumns, SlotPass, SlotState, Sources, States
from holdfast.generation.state_layers import StateLayer


@dataclass(frozen=True)
class _PassResult:
    """States, keys and values of a pass that are not in the slots until it is committed."""

    slots: list[int]  # the slot of each row
    states: list[States]  # per recurrent layer, the new states
    # per windowed layer, keys and values [row, head, column, size]; [] if each row forwarded one
    # token, whose keys and values are already in the slots
    window_kv: list[tuple[Tensor, ...]]


class _Writes(NamedTuple):
    """Where the tokens of a pass are written, [token] each."""

    slots: Tensor
    columns: Tensor  # in layers that keep all tokens
    window_columns: Tensor  # in windowed layers
    sources: Sources | None  # where they are in the pass; None if every row has one token


class SlotCache(Cache):
    """Keys, values and states of sequences that join and leave.

    Args:
        layers: the layers of the cache that the model would make, of the kinds in `SLOT_LAYERS`.
        device: where keys, values and states are stored.
        rotary: which text lengths have the same rotary factors.

    Attributes:
        lengths: number of computed tokens, by slot.
        rotary_lengths: by slot, the text lengths whose rotary factors equal those of the computed
            keys.
        seq_length_read: whether a layer asked for the length of the cache during a pass, although
            sequences may differ in it.
    """

    def __init__(
        self,
        layers: Sequence[CacheLayer],
        device: torch.device,
        rotary: RotaryLengths = SAME_FACTORS,
    ):
        self._shared = SlotState()
        self._layers = layers_like(layers, self._shared)
        self._recurrent = [layer for layer in self._layers if isinstance(layer, StateLayer)]
        self._windowed = [layer for layer in self._layers if isinstance(layer, WindowLayer)]
        super().__init__(layers=list(self._layers))
        self.device = device
        self._rotary = rotary
        self.lengths = self._shared.lengths
        self.rotary_lengths: list[range] = []
        self.seq_length_read = False
        self._results: list[_PassResult] = []

    def expect(self, slots: int, tokens: int) -> None:
        """Announces how many slots there will be, and how long new sequences may become.

        The next allocation makes room for them at once.
        """
        columns_before = self._shared.max_columns if self.lengths else 0
        self._shared.max_slots = slots
        self._shared.max_columns = max(tokens, columns_before)

    def open(self, kv: SavedLayerKV | None, reusable_len: int | None = None) -> None:
        """Opens the next slot for a sequence, with keys and values that are already computed.

        Args:
            kv: these keys and values; None if there are none.
            reusable_len: how many first tokens of the sequence `copy_kv` may have to copy later;
                None for all of them.
        """
        slot = len(self.lengths)
        tensors = ((),) * len(self._layers) if kv is None else kv.layers
        states = ({},) * len(self._layers) if kv is None else kv.states
        for layer, layer_kv, state in zip(self._layers, tensors, states, strict=True):
            layer.fill(slot, layer_kv, state)
        self.lengths.append(0 if kv is None else kv.tokens)
        self._shared.ends.append(self.lengths[slot])
        self.rotary_lengths.append(EVERY_LENGTH if kv is None else kv.rotary_lengths)
        self._shared.window.first_kept.append(0 if kv is None else kv.cut)
        self._shared.window.reusable_lens.append(
            sys.maxsize if reusable_len is None else reusable_len
        )

    def add(self, kv: SavedLayerKV) -> None:
        """Appends further keys and values to the last slot; all layers must keep every token."""
        slot = len(self.lengths) - 1
        for layer, layer_kv in zip(self._layers, kv.layers, strict=True):
            layer.fill(slot, layer_kv, {}, kv.start)
        self.lengths[slot] = self._shared.ends[slot] = kv.tokens

    def restart(self, slot: int) -> None:
        """Marks a slot as not computed, so that its next pass forwards all of its tokens."""
        self.lengths[slot] = 0
        self._shared.window.first_kept[slot] = 0

    @contextmanager
    def writing(
        self, slots: Sequence[int], starts: Sequence[int], ends: Sequence[int]
    ) -> Iterator[Starts | None]:
        """Prepares the slots for a pass that runs inside this context.

        The pass forwards the tokens `starts` to `ends` of some slots, a row each, padded on the
        left; with states, rows may not need padding. Yields where the keys of windowed layers
        begin, or None if that is the same in all rows.
        """
        first_kept = [self._shared.window.first_kept[slot] for slot in slots]
        current = self._plan_pass(slots, starts, ends, first_kept)
        self.seq_length_read = False
        self._shared.current = current
        for slot, end in zip(slots, ends, strict=True):
            self._shared.ends[slot] = max(end, self._shared.ends[slot])
        try:
            for layer in self._recurrent:
                layer.begin()
            for windowed in self._windowed:
                windowed.begin()
            if len(set(first_kept)) == 1:
                yield None
            else:
                on_device = torch.tensor(first_kept)[:, None].to(self.device)
                yield Starts(current.window_columns.count, tuple(first_kept), on_device)
            states = [layer.end() for layer in self._recurrent]
            window_kv = [layer.end() for layer in self._windowed] if current.sources else []
            if states or window_kv:
                self._results.append(_PassResult(list(slots), states, window_kv))
        finally:
            self._shared.current = None

    def commit(self, slots: Sequence[int], ends: Sequence[int]) -> None:
        """Counts the tokens before `ends` as computed, after the passes that wrote them."""
        for number, layer in enumerate(self._recurrent):
            layer.commit([(result.slots, result.states[number]) for result in self._results])
        if self._windowed:
            self._move_windows(dict(zip(slots, ends, strict=True)))
        self.drop()
        for slot, end in zip(slots, ends, strict=True):
            self.lengths[slot] = end
            self.rotary_lengths[slot] = self._rotary.lengths_like(end)

    def drop(self) -> None:
        """Discards the results of passes since the last commit."""
        self._results.clear()

    def _move_windows(self, ends: Mapping[int, int]) -> None:
        """Moves into the slots of windowed layers the tokens that the windows at `ends` can see."""
        window = self._shared.window
        first_kept = {slot: window.next_first(slot, end) for slot, end in ends.items()}
        results = [result for result in self._results if result.window_kv]
        written = {slot for result in results for slot in result.slots}
        # slots whose tokens are all in place, but have to be moved to the front
        only_moved = [
            slot
            for slot in ends
            if slot not in written and first_kept[slot] > window.first_kept[slot]
        ]
        if only_moved:
            results.append(_PassResult(only_moved, [], [()] * len(self._windowed)))
        for result in results:
            shifts = [first_kept[slot] - window.first_kept[slot] for slot in result.slots]
            widest = max(ends[slot] - first_kept[slot] for slot in result.slots)
            slots, shift = torch.tensor([result.slots, shifts]).to(self.device)
            columns = shift[:, None] + torch.arange(widest, device=self.device)
            for layer, kv in zip(self._windowed, result.window_kv, strict=True):
                layer.move_to_front(kv, slots, columns)
        for slot, first in first_kept.items():
            window.first_kept[slot] = first

    def _plan_pass(
        self,
        slots: Sequence[int],
        starts: Sequence[int],
        ends: Sequence[int],
        first_kept: list[int],
    ) -> SlotPass:
        """Computes where a pass reads and writes, for `writing`.

        Args:
            slots: the slot of each row.
            starts: the first token that each row forwards.
            ends: the end of its tokens.
            first_kept: the first token that windowed layers keep in its slot.
        """
        num_new_tokens = [end - start for start, end in zip(starts, ends, strict=True)]
        writes = _plan_writes(slots, starts, first_kept, num_new_tokens, self.device)
        num_kept = max(end - first for first, end in zip(first_kept, ends, strict=True))
        if num_kept == max(ends) and any(first_kept):
            num_kept += 1  # layers of the two kinds are told apart by their number of keys
        first = first_kept[0] if len(set(first_kept)) == 1 else 0
        read: slice | Tensor
        if isinstance(slots, range):
            read = slice(slots[0], slots[-1] + 1)
        else:
            read = torch.tensor(slots).to(self.device)
        return SlotPass(
            slots_read=read,
            width=max(num_new_tokens),
            slots_written=writes.slots,
            all_columns=LayerColumns(max(ends), 0, writes.columns),
            window_columns=LayerColumns(num_kept, first, writes.window_columns),
            sources=writes.sources,
            continues=starts[0] > 0,
        )

    def copy_kv(self, slot: int, count: int | None = None, start: int = 0) -> SavedLayerKV | None:
        """Copies the keys, values and states of a slot's tokens from `start` up to `count` (None:
        to the end). Returns None if its states have read more tokens, or its windows have moved on.
        """
        length = self.lengths[slot] if count is None else count
        cut = self._shared.window.cut(slot, length)
        if cut is None or (self._recurrent and length < self.lengths[slot]):
            return None
        return SavedLayerKV(
            tokens=length,
            layers=tuple(layer.copy_kv(slot, length, start) for layer in self._layers),
            states=tuple(layer.copy_states(slot) for layer in self._layers),
            cut=cut,
            min_prefix_len=length if self._recurrent else self._shared.window.min_prefix_len(cut),
            start=start,
            rotary_lengths=self.rotary_lengths[slot],
        )

    def close(self, slot: int, *, wipe: bool = False) -> None:
        """Closes a slot and moves the last sequence into it; `wipe` zeroes the slot first."""
        last = len(self.lengths) - 1
        for layer in self._layers:
            if wipe:
                layer.wipe(slot)
            layer.discard(slot)
            if slot != last:
                layer.move(last, slot, self.lengths[last])
                layer.discard(last)
        window = self._shared.window
        by_slot: list[list[Any]] = [self.lengths, self._shared.ends, self.rotary_lengths]
        for values in (*by_slot, window.first_kept, window.reusable_lens):
            values[slot] = values[last]
            values.pop()

    def shrink(self) -> None:
        """Releases the memory of closed slots, and of columns that only those used."""
        for layer in self._layers:
            layer.shrink(len(self.lengths), max(self.lengths, default=0))

    # Queries by the model

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Returns the number of tokens before the pass; correct only if all rows have as many."""
        self._note_query()
        return super().get_seq_length(layer_idx)

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        """Returns the number of keys that a layer reads, and the column of the first one."""
        self._note_query()
        return super().get_mask_sizes(query_length, layer_idx)

    def _note_query(self) -> None:
        """Records that a layer asked, and not the code that makes masks.

        Masks are made before the first layer writes, so any later query comes from a layer.
        """
        current = self._shared.current
        self.seq_length_read |= current is not None and current.has_written


def _plan_writes(
    slots: Sequence[int],
    starts: Sequence[int],
    first_kept: list[int],
    num_new_tokens: Sequence[int],
    device: torch.device,
) -> _Writes:
    """Computes where the tokens of a pass are written, in one transfer to the device.

    In the example of this module, the tokens are in rows 0, 1, 1 and at queries 1, 0, 1 of the
    pass, as row 0 is padded on the left, and are written to slots 0, 1, 1 and columns 2, 7, 8.

    Args:
        slots: the slot of each row.
        starts: the first token that each row forwards.
        first_kept: the first token that windowed layers keep in its slot.
        num_new_tokens: how many tokens it forwards.
        device: the device of the keys and values.
    """
    width = max(num_new_tokens)
    if width == 1:
        slot, column, first = torch.tensor([slots, starts, first_kept]).to(device)
        return _Writes(slot, column, column - first, None)
    counts = torch.tensor(num_new_tokens)
    rows = torch.arange(len(slots)).repeat_interleave(counts)
    index_in_row = torch.arange(len(rows)) - (counts.cumsum(0) - counts)[rows]
    queries = index_in_row + (width - counts)[rows]
    slot, start, first = torch.tensor([slots, starts, first_kept])[:, rows]
    column = start + index_in_row
    on_host = torch.stack([slot, column, column - first, rows, queries])
    slot, column, window_column, rows, queries = on_host.to(device)
    return _Writes(slot, column, window_column, Sources(rows, queries))


class SeparateCaches:
    """The KV cache of a model whose layers have no slots: each sequence has the cache that the
    model makes for it.

    Attributes:
        lengths: number of computed tokens, by slot.
        caches: the cache after these tokens, by slot; None without any.
    """

    def __init__(self) -> None:
        self.lengths: list[int] = []
        self.caches: list[Cache | None] = []

    def expect(self, slots: int, tokens: int) -> None:
        """Does nothing, as the model allocates its caches."""

    def open(self, kv: None, reusable_len: int | None = None) -> None:
        """Opens the next slot, without computed tokens."""
        self.lengths.append(0)
        self.caches.append(None)

    def add(self, kv: object) -> None:
        """Does nothing, as `copy_kv` copies nothing that could be added."""

    def restart(self, slot: int) -> None:
        """Marks a slot as not computed, so that its next pass forwards all of its tokens."""
        self.lengths[slot] = 0
        self.caches[slot] = None

    def copy_kv(self, slot: int, count: int | None = None, start: int = 0) -> None:
        """Returns None, as other sequences cannot use these caches."""

    def commit(self, slots: Sequence[int], ends: Sequence[int]) -> None:
        """Counts the tokens before `ends` as computed."""
        for slot, end in zip(slots, ends, strict=True):
            self.lengths[slot] = end

    def close(self, slot: int, *, wipe: bool = False) -> None:
        """Closes a slot and moves the last sequence into it."""
        by_slot: list[list[Any]] = [self.lengths, self.caches]
        for values in by_slot:
            values[slot] = values[-1]
            values.pop()

    def shrink(self) -> None:
        """Does nothing, as a closed slot has no cache any more."""
