"""The one place that assembles a forward pass and calls the model."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache

from holdfast.attention import IMPLEMENTATION, Steering, steered
from holdfast.engine.batch import Batch

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Output:
    """What a forward pass gives.

    Args:
        logits: of the last tokens, [row, token, vocabulary].
        mass: on the span at the last token, float32 [row, layer, head]; None unless traced.
        cache: what is computed now.
    """

    logits: Tensor
    mass: Tensor | None
    cache: Cache | None


class Runner:
    """A causal language model as the engine sees it.

    Args:
        hf_model: of transformers; to steer, its attention must be `holdfast.attention`'s.
        batched: whether rows of different length fit into one pass; else each runs alone, with
            whatever cache the model makes.
        name: of the model, for errors.
    """

    def __init__(self, hf_model: PreTrainedModel, *, batched: bool = True, name: str = ""):
        config = hf_model.config.get_text_config()
        self.hf_model, self.batched, self.name = hf_model, batched, name
        self.layers: int = config.num_hidden_layers
        self.heads: int = getattr(config, "num_attention_heads", 0)
        self.context: int | None = getattr(config, "max_position_embeddings", None)
        self.cache_layers = len(DynamicCache(config=config).layers) or self.layers
        self.accepts = frozenset(inspect.signature(hf_model.forward).parameters)
        self._interface = config._attn_implementation == IMPLEMENTATION
        self._additive = config._attn_implementation == "eager"

    @property
    def device(self) -> torch.device:
        """Where token ids go."""
        return self.hf_model.device

    @torch.inference_mode()
    def forward(self, batch: Batch) -> Output:
        """Makes one pass.

        Raises:
            ModelError: it is to be steered, and the model's attention is not reached.
        """
        steering = None
        if batch.trace or any(batch.methods):
            steering = Steering(batch.span, batch.methods, batch.trace, batch.prompts)
        positions = None if batch.level or not self._interface else batch.positions
        read, kept = {"input_ids": batch.ids}, self._kept(batch)
        with steered(steering, positions):
            output = self.call(read, batch.positions, self._mask(batch), batch.cache, kept)
        mass = None
        if steering is not None and batch.trace:
            mass = torch.stack([layer.float() for layer in steering.seen], 1)
        cache = getattr(output, "past_key_values", None)
        return Output(output.logits[:, -batch.logits :], mass, cache)

    def call(
        self,
        read: Mapping[str, Tensor],
        positions: Tensor,
        mask: Tensor | None,
        cache: Cache | None,
        logits: int | Tensor,
    ) -> Any:
        """Calls the model, in a pass that the caller steers or not; returns what it gives.

        Args:
            read: `input_ids` or `inputs_embeds`.
            positions: [row, column], for models that take them.
            mask: as the model takes it; None for a causal one.
            cache: what is computed already; takes what is computed now.
            logits: of so many last columns, or of these, for models that can leave others out.
        """
        options = {"position_ids": positions, "logits_to_keep": logits}
        return self.hf_model(
            attention_mask=mask,
            past_key_values=cache,
            use_cache=True,
            **read,
            **{name: value for name, value in options.items() if name in self.accepts},
        )

    def _kept(self, batch: Batch) -> int | Tensor:
        """The last tokens, whose logits are wanted.

        Several are counted out: where a number is given, Gemma 4 drops the other queries from the
        layers that share keys, and a mask that is only said to be causal no longer fits.
        """
        width = batch.ids.shape[1]
        if batch.logits == 1 or batch.logits > width:
            return batch.logits
        return torch.arange(width - batch.logits, width, device=batch.ids.device)

    def _mask(self, batch: Batch) -> Tensor | None:
        """The causal mask of rows of different length, where the model does not ask us for it."""
        if batch.level or self._interface:
            return None
        keys = torch.arange(batch.span.shape[1], device=batch.positions.device)
        seen = (keys <= batch.positions[:, :, None])[:, None]
        if not self._additive:
            return seen
        least = torch.finfo(self.hf_model.dtype).min
        return torch.where(seen, 0.0, least).to(self.hf_model.dtype)
