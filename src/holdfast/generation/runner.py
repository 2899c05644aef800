"""The only place that assembles a forward pass and calls the model."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
import transformers
from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, LinearAttentionLayer

from holdfast.attention import (
    IMPLEMENTATION,
    RotaryLengths,
    cache_of,
    steer_pass,
)
from holdfast.errors import HoldfastError, ModelError
from holdfast.generation.batch import Batch, StreamGroup, batch_of
from holdfast.generation.cpu_threads import is_small
from holdfast.generation.memory import ran_out_of_memory
from holdfast.generation.rows import StreamState
from holdfast.generation.slot_layers import RECURRENT, DummyLayer
from holdfast.generation.slots import SeparateCaches, Slots
from holdfast.states import edit_states

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# names of the cache argument: since transformers 5.24; before; and before, without attention
CACHES = ("cache", "past_key_values", "cache_params")


@dataclass(frozen=True)
class Output:
    """The outputs of a forward pass."""

    logits: Tensor  # of the last tokens, [row, token, vocabulary]
    # mass on the span at the last token, float32 [row, layer, head]; None unless traced
    mass: Tensor | None
    cache: Cache | None  # the keys and values after the pass
    # the mass under uniform attention, float32 [row, layer]; None unless traced
    uniform: Tensor | None = None


class Runner:
    """A causal language model as the engine sees it.

    Args:
        hf_model: a transformers model; to be steered, it must use `holdfast.attention`.
        batched: whether rows of different lengths can share a pass; otherwise each runs alone, with
            whatever cache the model makes.
        name: the model's name, for messages.

    Attributes:
        sees_all: whether every layer attends to all previous tokens.
        recurrent: whether some layers keep states.
        rotary: which text lengths have the same rotary factors.
        splits_prompts: whether the last token of a prompt that may be repeated is forwarded in a
            separate pass. When the prompt is repeated, only its last token is forwarded; passes of
            different shapes round differently, and below float32 that would change the reply.
    """

    def __init__(self, hf_model: PreTrainedModel, *, batched: bool = True, name: str = ""):
        config = hf_model.config.get_text_config()
        self.hf_model = hf_model
        self.batched = batched
        self.name = name
        self.layers: int = config.num_hidden_layers
        self.heads: int = getattr(config, "num_attention_heads", 0)
        self.context: int | None = getattr(config, "max_position_embeddings", None)
        self.rotary = RotaryLengths.of(config)
        self.accepts = frozenset(inspect.signature(hf_model.forward).parameters)
        kinds = {type(layer) for layer in self._cache().layers}
        self.recurrent = bool(kinds & RECURRENT)
        # only longer prompts can reuse states, so a repeated prompt is always read as a whole
        self.splits_prompts = batched and hf_model.dtype.itemsize < 4 and not self.recurrent
        self.sees_all = kinds == {DynamicLayer}
        self._attends = not kinds or bool(kinds - {LinearAttentionLayer, DummyLayer})
        self._equal_positions_from: int | None = None
        self._continues_alone = True
        self._interface = config._attn_implementation == IMPLEMENTATION
        self._additive = config._attn_implementation == "eager"

    @property
    def small(self) -> bool:
        """Whether a step is too short to be split among several threads."""
        return is_small(self.hf_model)

    @property
    def device(self) -> torch.device:
        """The device that the model runs on."""
        return self.hf_model.device

    def slots(self) -> Slots | SeparateCaches:
        """Returns new, empty slots for rows."""
        if not self.batched:
            return SeparateCaches()
        return Slots(self._cache().layers, self.device, self.rotary)

    def _cache(self) -> DynamicCache:
        return DynamicCache(config=self.hf_model.config)

    def batch_key(self, start: int, end: int) -> Hashable:
        """Returns a key that is equal for rows that may share a pass.

        The row forwards its tokens `start` to `end`. Rows must be kept apart because states would
        read padding, because some layers take positions from the length of the cache, and because
        all rows of a pass get the rotary factors of the longest one.
        """
        for_states = (start > 0, end - start) if self.recurrent else None
        needs_equal = self._equal_positions_from is not None and end >= self._equal_positions_from
        for_positions = (start, end) if needs_equal else None
        return for_states, for_positions, self.rotary.like(end)

    def require_equal_positions(self) -> bool:
        """Records that layers take positions from the length of the cache.

        Returns False if this was already known.
        """
        if self._equal_positions_from is not None:
            return False
        config = self.hf_model.config.get_text_config()
        self._equal_positions_from = getattr(config, "floor_scale", 0)
        return True

    @cached_property
    def supports_chunked_prefill(self) -> bool:
        """Whether several tokens can be forwarded at once after computed ones.

        They cannot if passes of several tokens ignore earlier states, as in the first Mamba.
        """
        return not self.recurrent or all(self._reads_states(kind) for kind in ("conv", "recurrent"))

    @torch.inference_mode()
    def _reads_states(self, kind: str) -> bool:
        """Whether a pass of several tokens depends on the earlier states of a kind."""
        ids = torch.arange(8, device=self.device)[None]
        logits = []
        for change in (0, 1):
            cache = self._cache()
            self.forward(Batch(ids[:, :5], ids[:, :5], level=True, columns=8, cache=cache))
            states = _states_in(cache, kind)
            for state in states:
                state.add_(change)
            rest = Batch(ids[:, 5:], ids[:, 5:], level=True, columns=8, cache=cache)
            output = self.forward(rest)
            logits.append(output.logits)
        return not states or not torch.equal(*logits)

    @torch.inference_mode()
    def forward(self, batch: Batch) -> Output:
        """Makes one pass.

        Raises:
            Unsteerable: the pass is to be steered, but never reached our attention.
        """
        masked_by_model = (batch.level and batch.starts is None) or not self._interface
        steering = steer_pass(
            batch.steering, None if masked_by_model else batch.positions, batch.starts
        )
        with steering as state, edit_states(self.hf_model, batch.edits):
            output = self.call(
                {"input_ids": batch.ids},
                batch.positions,
                self._mask(batch),
                batch.cache,
                self._logits_to_keep(batch),
                use_cache=batch.use_cache,
            )
        mass = uniform = None
        if state is not None and state.steering.trace:
            mass = torch.stack([layer.float() for layer in state.masses], 1)
            uniform = torch.stack(list(state.passes[-1].uniform.values()), 1)
        cache = cache_of(output)
        logits = output.logits[:, -batch.logits :]
        return Output(logits, mass, cache, uniform)

    def call(
        self,
        read: Mapping[str, Tensor],
        positions: Tensor,
        mask: Tensor | None,
        cache: Cache | None,
        logits: int | Tensor,
        *,
        use_cache: bool = True,
        **further_outputs: bool,
    ) -> Any:
        """Calls the model, in a pass that the caller may steer; returns its output.

        Args:
            read: `input_ids` or `inputs_embeds`.
            positions: [row, column]; left out if the model does not accept them.
            mask: in the format that the model accepts; None for a causal mask.
            cache: the keys and values computed so far; the pass extends it.
            logits: how many last columns, or which ones, get logits, if the model can omit others.
            use_cache: whether the model keeps the keys and values of the pass.
            further_outputs: flags for more outputs, such as `output_hidden_states`.
        """
        options = {
            "position_ids": positions,
            "logits_to_keep": logits,
            **dict.fromkeys(CACHES, cache),
        }
        if cache is not None and self.accepts.isdisjoint(CACHES):
            raise ModelError(
                f"{type(self.hf_model).__name__} has no argument {' or '.join(CACHES)} for a cache;"
                f" transformers {transformers.__version__} may be too new for this version of"
                " Holdfast, so install an earlier one."
            )
        return self.hf_model(
            attention_mask=mask,
            use_cache=use_cache,
            **read,
            **further_outputs,
            **{name: value for name, value in options.items() if name in self.accepts},
        )

    def _forward_alone(
        self, slots: SeparateCaches, slot: int, state: StreamState, logits: int
    ) -> Output:
        """Forwards the pending tokens of a slot with a cache of its own.

        If the model's class turns out not to continue after its own cache, the whole text is read
        at every step from then on.
        """
        if self._continues_alone:
            num_computed = slots.lengths[slot]
            if slots.caches[slot] is None or len(state) not in self.rotary.like(num_computed):
                slots.restart(slot)
            try:
                output = self.forward(
                    self._batch_alone(state, slots.lengths[slot], slots.caches[slot], logits)
                )
            except HoldfastError:
                raise
            except Exception as error:
                if ran_out_of_memory(error):
                    raise
                self._continues_alone = False
            else:
                slots.caches[slot] = output.cache
                return output
        slots.restart(slot)
        return self.forward(replace(self._batch_alone(state, 0, None, logits), use_cache=False))

    def _batch_alone(
        self, state: StreamState, num_computed: int, cache: Cache | None, logits: int
    ) -> Batch:
        return batch_of(StreamGroup([state], self.device), [num_computed], cache, logits)

    def forward_slots(
        self,
        slots: Slots | SeparateCaches,
        which: Sequence[int],
        group: StreamGroup,
        logits: int = 1,
    ) -> Output:
        """Forwards the pending tokens of some slots, which `slots.commit` then counts as computed.

        Rows that may not share a pass get separate passes.

        Args:
            slots: the slots of all rows.
            which: the numbers of the slots to forward; a range is read as a slice.
            group: the streams of these slots.
            logits: how many last tokens of each row get logits.

        Returns:
            The output of these slots, in their order.
        """
        if isinstance(slots, SeparateCaches):
            pairs = zip(which, group.streams, strict=True)
            outputs = [self._forward_alone(slots, slot, state, logits) for slot, state in pairs]
            return _merge_outputs(outputs, [[index] for index in range(len(outputs))])
        slots.drop()
        ends = [len(state) for state in group.streams]
        passes = self._group_into_passes(slots, which, ends)
        outputs = []
        starts = [slots.lengths[slot] for slot in which]
        for indices in passes:
            pass_starts = [starts[index] for index in indices]
            pass_ends = [ends[index] for index in indices]
            pass_slots = which
            pass_group = group
            if len(passes) > 1:
                pass_slots = [which[index] for index in indices]
                streams = [group.streams[index] for index in indices]
                pass_group = StreamGroup(streams, self.device)
            batch = batch_of(pass_group, pass_starts, slots, logits)
            with slots.writing(pass_slots, pass_starts, pass_ends) as window_starts:
                outputs.append(self.forward(replace(batch, starts=window_starts)))
            if slots.seq_length_read and not batch.level and self.require_equal_positions():
                return self.forward_slots(slots, which, group, logits)
        return _merge_outputs(outputs, passes)

    def _group_into_passes(
        self, slots: Slots, which: Sequence[int], ends: Sequence[int]
    ) -> list[list[int]]:
        """Groups indices into `which` by pass: slots that may share a pass are in one group.

        A row that has become too long for the rotary factors of its keys is restarted, and is
        recomputed in a separate pass.
        """
        groups: dict[Hashable, list[int]] = {}
        for index, (slot, end) in enumerate(zip(which, ends, strict=True)):
            is_stale = slots.lengths[slot] > 0 and end not in slots.rotary_lengths[slot]
            if is_stale:
                slots.restart(slot)
            key = slot if is_stale else None, self.batch_key(slots.lengths[slot], end)
            groups.setdefault(key, []).append(index)
        return list(groups.values())

    def _logits_to_keep(self, batch: Batch) -> int | Tensor:
        """The argument that selects the last tokens, for which logits are computed.

        If there are several, they are listed by index: given a number, Gemma 4 drops the other
        queries from layers that share keys.
        """
        width = batch.ids.shape[1]
        if batch.logits == 1 or batch.logits > width:
            return batch.logits
        return torch.arange(width - batch.logits, width, device=batch.ids.device)

    def _mask(self, batch: Batch) -> Tensor | None:
        """The causal mask of rows of different lengths.

        None if no mask is needed, or if the model asks `holdfast_mask` for its masks.
        """
        if batch.level or self._interface or not self._attends:
            return None
        keys = torch.arange(batch.columns, device=batch.positions.device)
        visible = (keys <= batch.positions[:, :, None])[:, None]
        if not self._additive:
            return visible
        dtype = self.hf_model.dtype
        return torch.zeros_like(visible, dtype=dtype).masked_fill_(~visible, torch.finfo(dtype).min)


def _states_in(cache: DynamicCache, kind: str) -> list[Tensor]:
    """Returns the states of a kind, "conv" or "recurrent", of all layers that have any."""
    states: list[Tensor] = []
    for layer in cache.layers:
        if type(layer) in RECURRENT:
            layer_states = getattr(layer, f"{kind}_states").values()
            states += [state for state in layer_states if state is not None]
    return states


def _merge_outputs(outputs: Sequence[Output], groups: Sequence[Sequence[int]]) -> Output:
    """Merges the outputs of several passes, ordered by the indices in their groups."""
    if len(outputs) == 1:
        return outputs[0]
    order = torch.tensor([index for group in groups for index in group]).argsort().tolist()
    longest = max(output.logits.shape[1] for output in outputs)
    padded = [
        torch.nn.functional.pad(output.logits, (0, 0, longest - output.logits.shape[1], 0))
        for output in outputs
    ]

    def merge(masses: Sequence[Tensor | None]) -> Tensor | None:
        """Merges masses; they are 0 in untraced passes, and None if no pass was traced."""
        if (like := next((mass for mass in masses if mass is not None), None)) is None:
            return None
        parts = []
        for mass, group in zip(masses, groups, strict=True):
            parts.append(like.new_zeros(len(group), *like.shape[1:]) if mass is None else mass)
        return torch.cat(parts)[order]

    mass = merge([output.mass for output in outputs])
    uniform = merge([output.uniform for output in outputs])
    return Output(torch.cat(padded)[order], mass, None, uniform)
