"""Slots: what is computed of the rows of a batch, which come and go.

Row i has its tokens in the columns [0, lengths[i]) of slot i: a token's column is its position, so
masks that go by positions (causal, sliding, chunked) need nothing else, and padding is what lies
beyond a row's length. Slots in use are the first ones, so a batch reads them as views.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from holdfast.engine.prefixes import KeysValues
from holdfast.engine.slot_layers import CacheLayer, Pass, Shared, States
from holdfast.engine.state_layers import SlotLayer, StateLayer, layer_like


class Slots(Cache):
    """What is computed of rows that come and go.

    Args:
        layers: of the cache that the model would make, each of a kind in `HELD`.
        device: where the rows live.

    Attributes:
        lengths: tokens computed, by slot.
        looked_at: whether a layer has asked in a pass for the length of the cache, which is one for
            all rows.
    """

    def __init__(self, layers: Sequence[CacheLayer], device: torch.device):
        self._shared = Shared()
        self._layers: list[SlotLayer] = [layer_like(like, self._shared) for like in layers]
        self._recurrent = [layer for layer in self._layers if isinstance(layer, StateLayer)]
        super().__init__(layers=list(self._layers))
        self.device = device
        self.lengths: list[int] = []
        self.looked_at = False
        self._made: list[tuple[list[int], list[States]]] = []

    def open(self, computed: KeysValues | None) -> None:
        """Takes the next slot for a row that has computed these tokens, or none."""
        slot, nothing = len(self.lengths), ((),) * len(self._layers)
        tensors = nothing if computed is None else computed.layers
        states = ({},) * len(self._layers) if computed is None else computed.states
        for layer, own, state in zip(self._layers, tensors, states, strict=True):
            layer.open(slot, own, state)
        self.lengths.append(0 if computed is None else computed.tokens)
        self._shared.opened = len(self.lengths)

    @contextmanager
    def writing(
        self, slots: Sequence[int], starts: Sequence[int], ends: Sequence[int]
    ) -> Iterator[None]:
        """Inside, a pass forwards tokens of some rows, padded on the left.

        Of a model with states, all of them go on from tokens or none does, and none is padded.

        Args:
            slots: of the rows of the pass.
            starts, ends: first and last (exclusive) of the tokens that each of them forwards.
        """
        fresh = [end - start for start, end in zip(starts, ends, strict=True)]
        first, last = slots[0], slots[-1] + 1
        together = isinstance(slots, range)
        rows = slice(first, last) if together else torch.tensor(slots, device=self.device)
        places = self._places(slots, starts, fresh)
        again = starts[0] < self.lengths[slots[0]]
        self.looked_at = False
        self._shared.current = Pass(rows, max(ends), max(fresh), *places, starts[0] > 0, again)
        try:
            for layer in self._recurrent:
                layer.begin()
            yield
            if self._recurrent:
                self._made.append((list(slots), [layer.end() for layer in self._recurrent]))
        finally:
            self._shared.current = None

    def commit(self, slots: Sequence[int], ends: Sequence[int]) -> None:
        """Counts the tokens in front of `ends` as computed, after the passes that wrote them."""
        again = all(self.lengths[slot] == end for slot, end in zip(slots, ends, strict=True))
        for number, layer in enumerate(self._recurrent):
            layer.commit([(rows, made[number]) for rows, made in self._made], again=again)
        self.drop()
        for slot, end in zip(slots, ends, strict=True):
            self.lengths[slot] = end

    def drop(self) -> None:
        """Forgets what states became in passes that count for nothing."""
        self._made.clear()

    def _places(
        self, slots: Sequence[int], lengths: Sequence[int], fresh: Sequence[int]
    ) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor] | None]:
        """Where each token is written, and, of several tokens per row, from where it comes."""
        if max(fresh) == 1:
            both = torch.tensor([slots, lengths]).to(self.device)
            return both[0], both[1], None
        counts, widest = torch.tensor(fresh), max(fresh)
        rows = torch.arange(len(slots)).repeat_interleave(counts)
        behind = torch.arange(len(rows)) - (counts.cumsum(0) - counts)[rows]
        queries = behind + (widest - counts)[rows]
        placed = torch.stack(
            [torch.tensor(slots)[rows], torch.tensor(lengths)[rows] + behind, rows, queries]
        ).to(self.device)
        return placed[0], placed[1], (placed[2], placed[3])

    def computed(self, slot: int, count: int | None = None) -> KeysValues | None:
        """What a row has computed of its first `count` tokens (None: of all), copied.

        None where states have read tokens behind those.
        """
        length = self.lengths[slot] if count is None else count
        if self._recurrent and length < self.lengths[slot]:
            return None
        return KeysValues(
            length,
            tuple(layer.tensors(slot, length) for layer in self._layers),
            tuple(layer.states(slot) for layer in self._layers),
        )

    def close(self, slot: int, *, wipe: bool = False) -> None:
        """Closes a row; the last one moves into its slot.

        With `wipe`, what the row leaves behind is 0: what is no number would reach the next row
        through columns that are masked.
        """
        last = len(self.lengths) - 1
        for layer in self._layers:
            if wipe:
                layer.wipe(slot)
            if slot != last:
                layer.move(last, slot, self.lengths[last])
        self.lengths[slot] = self.lengths[last]
        self.lengths.pop()
        self._shared.opened = last

    def shrink(self) -> None:
        """Gives back the memory of rows that are closed, and of columns that only they had."""
        for layer in self._layers:
            layer.shrink(len(self.lengths), max(self.lengths, default=0))

    # What the model asks

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Columns in front of the pass, where its rows are of one length."""
        self._note_look()
        return super().get_seq_length(layer_idx)

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        """How many columns a mask has, and which is the first."""
        self._note_look()
        return super().get_mask_sizes(query_length, layer_idx)

    def _note_look(self) -> None:
        """Masks are made before the first layer writes; who asks later is a layer."""
        current = self._shared.current
        self.looked_at |= current is not None and current.written
