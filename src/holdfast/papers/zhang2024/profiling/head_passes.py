"""Scores every head steered on its own, at far less cost than a full pass per head.

Whatever steering a head cannot change is computed only once.

Steering a head of layer l changes nothing below layer l, and nothing for tokens before the span,
which cannot attend to it. So prompts are forwarded once unsteered, keeping the input of each layer
and all keys and values. Then the heads of layer l, as rows of one batch, are forwarded from layer l
on, starting at the first token of the span; in the last layer, starting at the first token whose
logits are read. Continuations follow their prompt in the same pass, masked from each other.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MethodType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Module, ModuleList
from transformers.cache_utils import Cache, DynamicLayer

from holdfast.attention import BatchSteering, steer_pass
from holdfast.errors import ModelError
from holdfast.generation.transformers_runner import TransformersRunner
from holdfast.methods import CompiledMethods
from holdfast.methods.heads import Head
from holdfast.papers.zhang2024.profiling.scored_prompts import (
    MAX_TOKENS_PER_PASS,
    Group,
    ScoredPrompt,
    group_prompts,
    lay_out,
    read_scores,
)

_REQUIRED_ARGUMENTS = {"position_ids", "logits_to_keep"}  # of the model's forward pass
KeysValues = tuple[Tensor, Tensor]  # of a layer, [row, group, column, size]


class PassScores(NamedTuple):
    """The log-probabilities of every prompt's continuations, with one head steered."""

    head: Head | None  # None if none is steered
    log_probabilities: list[tuple[float, ...]]  # [prompt][continuation]


class _UnsteeredPass(NamedTuple):
    """The parts of an unsteered pass that steered passes share."""

    group: Group
    layer_inputs: list[Tensor]  # by layer
    states: list[KeysValues]  # by layer


class HeadPasses:
    """Passes through a copy of the model that shares its weights; `forwarded` counts tokens."""

    def __init__(self, hf_model: Any):
        config = hf_model.config.get_text_config()
        self.device: torch.device = hf_model.device
        self.heads = config.num_attention_heads
        self.vocabulary = config.vocab_size
        self.forwarded = 0.0
        model: Any = copy_modules(hf_model)
        self._runner = TransformersRunner(model)
        lists = {path: part for path, part in model.named_modules() if isinstance(part, ModuleList)}
        count = config.num_hidden_layers
        path = next((path for path, modules in lists.items() if len(modules) == count), None)
        is_offloaded = any(weight.is_meta for weight in hf_model.parameters())
        if path is None or is_offloaded or _REQUIRED_ARGUMENTS - self._runner.accepts:
            raise ModelError(
                f"The layers of {type(hf_model).__name__} cannot be forwarded apart; profile one"
                " head at a time."
            )
        parent, _, self._list_name = path.rpartition(".")
        self._parent = model.get_submodule(parent)
        self._layers: list[Module] = list(lists[path])

    def groups(self, prompts: Sequence[ScoredPrompt]) -> list[list[int]]:
        """The numbers of the prompts to pass to `scores` together."""
        return group_prompts(prompts, self.heads, self.vocabulary)

    @torch.inference_mode()
    def scores(
        self, prompts: Sequence[ScoredPrompt], methods: Mapping[Head, CompiledMethods]
    ) -> Iterator[PassScores]:
        """Scores the prompts unsteered, then with each head steered by its methods."""
        group = lay_out(prompts, self.device)
        caches: list[Any] = [DynamicLayer() for _ in self._layers]
        layer_inputs: list[Tensor] = []

        def note_input(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            layer_inputs.append(args[0] if args else kwargs["hidden_states"])

        with _hook_before(self._layers, note_input), steer_pass(None):
            logits = self._forward(0, group, 0, caches, {"input_ids": group.ids})
        yield PassScores(None, read_scores(logits, prompts, 1)[0])

        states = [(cache.keys, cache.values) for cache in caches]
        unsteered = _UnsteeredPass(group, layer_inputs, states)
        width = group.extent.columns - group.extent.first
        rows = max(1, MAX_TOKENS_PER_PASS // (len(prompts) * width))
        for layer in sorted({layer for layer, _ in methods}):
            heads = sorted(head for head in methods if head[0] == layer)
            for start in range(0, len(heads), rows):
                methods_of_pass = {head: methods[head] for head in heads[start : start + rows]}
                scores = self._steered_scores(layer, prompts, methods_of_pass, unsteered)
                yield from map(PassScores, methods_of_pass, scores)

    def _steered_scores(
        self,
        layer: int,
        prompts: Sequence[ScoredPrompt],
        methods: Mapping[Head, CompiledMethods],
        unsteered: _UnsteeredPass,
    ) -> list[list[tuple[float, ...]]]:
        """Steers heads of one layer in one pass; the scores, [head][prompt][continuation]."""
        extent = unsteered.group.extent
        copies = len(methods)
        is_last = layer == len(self._layers) - 1
        first = extent.columns - extent.read if is_last else extent.first
        group = unsteered.group.spread(copies)
        row_methods = [methods_of_head for _ in prompts for methods_of_head in methods.values()]
        steering = BatchSteering(
            group.span, row_methods, prompt_columns=[extent.end] * len(row_methods)
        )
        caches = [_SharedPromptCache(states, copies, first) for states in unsteered.states]
        hidden = unsteered.layer_inputs[layer].repeat_interleave(copies, 0)[:, first:]
        inputs = {"inputs_embeds": hidden}
        with steer_pass(steering), _hook_before([self._layers[layer]], _replace_input(hidden)):
            logits = self._forward(layer, group, first, caches, inputs)
        return read_scores(logits, prompts, copies)

    def _forward(
        self,
        layer: int,
        group: Group,
        first: int,
        caches: Sequence[Any],
        inputs: Mapping[str, Tensor],
    ) -> Tensor:
        """Runs a layer and all above it; returns the logits that are read, [row, column, token]."""
        layers = self._layers[layer:]
        positions = group.positions[:, first:]
        self.forwarded += positions.numel() * len(layers) / len(self._layers)
        setattr(self._parent, self._list_name, ModuleList(layers))
        mask = group.mask[:, :, first:]
        read = group.extent.read
        output = self._runner.call(inputs, positions, mask, Cache(layers=list(caches)), read)
        logits: Tensor = output.logits
        return logits[:, -read:]


def copy_modules(model: Module) -> Module:
    """A copy of every module, hooks included, over the same parameters, buffers and config."""
    copies = {module: copy.copy(module) for module in model.modules()}
    for module in copies.values():
        for name, value in vars(module).items():
            vars(module)[name] = _rebind(value, copies)
        for name, part in module._modules.items():
            module._modules[name] = None if part is None else copies[part]
    return copies[model]


def _rebind(value: Any, copies: Mapping[Module, Module]) -> Any:
    """An attribute for a module's copy, bound to the copy if accelerate bound it to the module."""
    if isinstance(value, dict):
        return copy.copy(value)
    if isinstance(value, MethodType) and isinstance(value.__self__, Module):
        return MethodType(value.__func__, copies[value.__self__])
    if isinstance(value, functools.partial):
        bound = [copies[part] if isinstance(part, Module) else part for part in value.args]
        partial = functools.partial(value.func, *bound, **value.keywords)
        return functools.update_wrapper(partial, value)
    return value


@contextmanager
def _hook_before(layers: Sequence[Module], hook: Callable[..., Any]) -> Iterator[None]:
    """A context in which a hook is called before each of the layers."""
    handles = [layer.register_forward_pre_hook(hook, with_kwargs=True) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _replace_input(hidden: Tensor) -> Callable[..., Any]:
    """A hook that replaces the input of a layer with these hidden states."""

    def put(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return ((hidden, *args[1:]), kwargs) if args else ((), {**kwargs, "hidden_states": hidden})

    return put


class _SharedPromptCache(DynamicLayer):
    """The keys and values of rows that share those of their prompt before column `first`.

    Args:
        prompt_states: the keys and values of the prompts.
        copies: how many rows share each prompt.
    """

    def __init__(self, prompt_states: KeysValues, copies: int, first: int):
        super().__init__()
        self.prompt_states = prompt_states
        self.copies = copies
        self.first = first

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> KeysValues:
        keys, values = self.prompt_states
        self.keys = self._after_shared(keys, key_states)
        self.values = self._after_shared(values, value_states)
        return self.keys, self.values

    def _after_shared(self, shared: Tensor, new: Tensor) -> Tensor:
        """The shared columns before `first`, copied for each row, and then each row's own."""
        rows, groups, columns, size = new.shape
        columns_of_rows = new.new_empty(
            rows // self.copies, self.copies, groups, self.first + columns, size
        )
        columns_of_rows[:, :, :, : self.first] = shared[:, None, :, : self.first]
        columns_of_rows = columns_of_rows.flatten(0, 1)
        columns_of_rows[:, :, self.first :] = new
        return columns_of_rows

    def get_seq_length(self) -> int:
        return self.first
