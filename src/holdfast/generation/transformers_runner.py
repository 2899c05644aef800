"""The only place that assembles a forward pass and calls the model."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
import transformers
from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, LinearAttentionLayer

from holdfast.attention import IMPLEMENTATION, RotaryLengths, cache_of, steer_pass
from holdfast.errors import HoldfastError, ModelError
from holdfast.generation.batch import Batch, SequenceGroup, batch_of
from holdfast.generation.cpu_threads import is_small
from holdfast.generation.key_layers import DummyLayer
from holdfast.generation.memory import ran_out_of_memory
from holdfast.generation.model_runner import Output
from holdfast.generation.slot_layers import RECURRENT
from holdfast.generation.slots import SeparateCaches, SlotCache
from holdfast.generation.token_requests import TokenSequence
from holdfast.states import edit_states

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# names of a model's cache argument: since transformers 5.24; before; and before, without attention
CACHE_ARGUMENTS = ("cache", "past_key_values", "cache_params")


class TransformersRunner:
    """A causal language model of transformers as the engine sees it.

    Args:
        hf_model: the model; to be steered, it must use `holdfast.attention`.
        batched: whether sequences of different lengths can share a pass; otherwise each runs alone,
            with whatever cache the model makes.
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
        layer_kinds = {type(layer) for layer in self._new_cache().layers}
        self.recurrent = bool(layer_kinds & RECURRENT)
        # only longer prompts can reuse states, so a repeated prompt is always read as a whole
        self.splits_prompts = batched and hf_model.dtype.itemsize < 4 and not self.recurrent
        self.sees_all = layer_kinds == {DynamicLayer}
        self._has_attention = not layer_kinds or bool(
            layer_kinds - {LinearAttentionLayer, DummyLayer}
        )
        # from which length of a text on the sequences of a pass must have equal positions
        self._equal_positions_from: int | None = None
        self._continues_after_own_cache = True
        self._uses_our_attention = config._attn_implementation == IMPLEMENTATION
        self._takes_additive_mask = config._attn_implementation == "eager"

    @property
    def small(self) -> bool:
        """Whether a step is too short to be split among several threads."""
        return is_small(self.hf_model)

    @property
    def device(self) -> torch.device:
        """The device that the model runs on."""
        return self.hf_model.device

    def slots(self) -> SlotCache | SeparateCaches:
        """Returns a new KV cache without slots in use."""
        if not self.batched:
            return SeparateCaches()
        return SlotCache(self._new_cache().layers, self.device, self.rotary)

    def _new_cache(self) -> DynamicCache:
        """Returns an empty cache, with the layers that the model would make for itself."""
        return DynamicCache(config=self.hf_model.config)

    # Which sequences may share a pass

    def batch_key(self, start: int, end: int) -> Hashable:
        """Returns a key that is equal for sequences that may share a pass.

        The sequence forwards its tokens `start` to `end`. Sequences must be kept apart because
        states would read padding, because some layers take positions from the length of the cache,
        and because all rows of a pass get the rotary factors of the longest one.
        """
        for_states = (start > 0, end - start) if self.recurrent else None
        needs_equal = self._equal_positions_from is not None and end >= self._equal_positions_from
        for_positions = (start, end) if needs_equal else None
        return for_states, for_positions, self.rotary.lengths_like(end)

    def _require_equal_positions(self) -> None:
        """Keeps sequences of different lengths apart from now on.

        It is called when a pass shows that layers take positions from the length of the cache.
        """
        config = self.hf_model.config.get_text_config()
        self._equal_positions_from = getattr(config, "floor_scale", 0)

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
            cache = self._new_cache()
            self.forward(Batch(ids[:, :5], ids[:, :5], aligned=True, num_columns=8, cache=cache))
            states = _states_in(cache, kind)
            for state in states:
                state.add_(change)
            rest = Batch(ids[:, 5:], ids[:, 5:], aligned=True, num_columns=8, cache=cache)
            logits.append(self.forward(rest).logits)
        return not states or not torch.equal(*logits)

    # One pass

    @torch.inference_mode()
    def forward(self, batch: Batch) -> Output:
        """Makes one pass.

        Raises:
            Unsteerable: the pass is to be steered, but never reached our attention.
        """
        # our masks are made from positions; the model's own causal mask needs none
        needs_our_mask = self._uses_our_attention and not (batch.aligned and batch.starts is None)
        steering = steer_pass(
            batch.steering, batch.positions if needs_our_mask else None, batch.starts
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
        logits = output.logits[:, -batch.num_logits :]
        return Output(logits, mass, cache_of(output), uniform)

    def call(
        self,
        tokens: Mapping[str, Tensor],
        positions: Tensor,
        mask: Tensor | None,
        cache: Cache | None,
        logits_to_keep: int | Tensor,
        *,
        use_cache: bool = True,
        **further_outputs: bool,
    ) -> Any:
        """Calls the model, in a pass that the caller may steer; returns its output.

        Args:
            tokens: `input_ids` or `inputs_embeds`.
            positions: [row, column]; left out if the model does not accept them.
            mask: in the format that the model accepts; None for a causal mask.
            cache: the keys and values computed so far; the pass extends it.
            logits_to_keep: how many last columns, or which ones, get logits, if the model can omit
                others.
            use_cache: whether the model keeps the keys and values of the pass.
            further_outputs: flags for more outputs, such as `output_hidden_states`.
        """
        options = {
            "position_ids": positions,
            "logits_to_keep": logits_to_keep,
            **dict.fromkeys(CACHE_ARGUMENTS, cache),
        }
        if cache is not None and self.accepts.isdisjoint(CACHE_ARGUMENTS):
            raise ModelError(
                f"{type(self.hf_model).__name__} has no argument {' or '.join(CACHE_ARGUMENTS)} for"
                f" a cache; transformers {transformers.__version__} may be too new for this version"
                " of Holdfast, so install an earlier one."
            )
        return self.hf_model(
            attention_mask=mask,
            use_cache=use_cache,
            **tokens,
            **further_outputs,
            **{name: value for name, value in options.items() if name in self.accepts},
        )

    def _logits_to_keep(self, batch: Batch) -> int | Tensor:
        """The argument that selects the last tokens, for which logits are computed.

        If there are several, they are listed by index: given a number, Gemma 4 drops the other
        queries from layers that share keys.
        """
        width = batch.ids.shape[1]
        if batch.num_logits == 1 or batch.num_logits > width:
            return batch.num_logits
        return torch.arange(width - batch.num_logits, width, device=batch.ids.device)

    def _mask(self, batch: Batch) -> Tensor | None:
        """The causal mask of rows of different lengths.

        None if the model makes its own, or gets its masks from our attention.
        """
        if batch.aligned or self._uses_our_attention or not self._has_attention:
            return None
        keys = torch.arange(batch.num_columns, device=batch.positions.device)
        visible = (keys <= batch.positions[:, :, None])[:, None]
        if not self._takes_additive_mask:
            return visible
        dtype = self.hf_model.dtype
        return torch.zeros_like(visible, dtype=dtype).masked_fill_(~visible, torch.finfo(dtype).min)

    # Passes over slots

    def forward_slots(
        self,
        slots: SlotCache | SeparateCaches,
        which: Sequence[int],
        group: SequenceGroup,
        num_logits: int = 1,
    ) -> Output:
        """Forwards the pending tokens of some slots, which `slots.commit` then counts as computed.

        Sequences that may not share a pass get separate passes.

        Args:
            slots: the slots of all sequences.
            which: the numbers of the slots to forward; a range is read as a slice.
            group: the sequences in these slots.
            num_logits: how many last tokens of each sequence get logits.

        Returns:
            The output of these slots, in their order.
        """
        if isinstance(slots, SeparateCaches):
            pairs = zip(which, group.sequences, strict=True)
            alone = [self._forward_alone(slots, *pair, num_logits) for pair in pairs]
            return _merge_outputs(alone, [[index] for index in range(len(alone))])
        slots.drop()
        passes = self._group_into_passes(slots, which, [len(s) for s in group.sequences])
        outputs = []
        for indices in passes:
            pass_slots = which
            pass_group = group
            if len(passes) > 1:
                pass_slots = [which[index] for index in indices]
                sequences = [group.sequences[index] for index in indices]
                pass_group = SequenceGroup(sequences, self.device)
            output = self._forward_together(slots, pass_slots, pass_group, num_logits)
            if output is None:  # from now on, these sequences are in separate passes
                return self.forward_slots(slots, which, group, num_logits)
            outputs.append(output)
        return _merge_outputs(outputs, passes)

    def _group_into_passes(
        self, slots: SlotCache, which: Sequence[int], ends: Sequence[int]
    ) -> list[list[int]]:
        """Groups indices into `which` by pass: slots that may share a pass are in one group.

        A sequence that has become too long for the rotary factors of its keys is restarted, and is
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

    def _forward_together(
        self, slots: SlotCache, which: Sequence[int], group: SequenceGroup, num_logits: int
    ) -> Output | None:
        """Forwards the pending tokens of some slots in one pass.

        None if the pass has shown for the first time that its sequences may not share one, because
        a layer takes positions from the length of the cache.
        """
        starts = [slots.lengths[slot] for slot in which]
        ends = [len(sequence) for sequence in group.sequences]
        batch = batch_of(group, starts, slots, num_logits)
        with slots.writing(which, starts, ends) as window_starts:
            output = self.forward(replace(batch, starts=window_starts))
        is_mixed = slots.seq_length_read and not batch.aligned
        if is_mixed and self._equal_positions_from is None:
            self._require_equal_positions()
            return None
        return output

    def _forward_alone(
        self, slots: SeparateCaches, slot: int, sequence: TokenSequence, num_logits: int
    ) -> Output:
        """Forwards the pending tokens of a slot with a cache of its own.

        If the model's class turns out not to continue after its own cache, the whole text is read
        at every step from then on.
        """
        group = SequenceGroup([sequence], self.device)
        if self._continues_after_own_cache:
            same_factors = self.rotary.lengths_like(slots.lengths[slot])
            if slots.caches[slot] is None or len(sequence) not in same_factors:
                slots.restart(slot)
            batch = batch_of(group, [slots.lengths[slot]], slots.caches[slot], num_logits)
            try:
                output = self.forward(batch)
            except HoldfastError:
                raise
            except Exception as error:
                if ran_out_of_memory(error):
                    raise
                self._continues_after_own_cache = False
            else:
                slots.caches[slot] = output.cache
                return output
        slots.restart(slot)
        return self.forward(replace(batch_of(group, [0], None, num_logits), use_cache=False))


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
