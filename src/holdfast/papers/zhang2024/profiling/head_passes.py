"""Scores every head steered on its own, at far less cost than a full pass per head: whatever
steering a head cannot change is computed once.

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
from dataclasses import dataclass, replace
from types import MethodType
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, ModuleList
from transformers.cache_utils import Cache, DynamicLayer

from holdfast.attention import BatchSteering, steered
from holdfast.errors import ModelError
from holdfast.generation.runner import Runner
from holdfast.methods import CompiledMethods
from holdfast.methods.heads import Head

# tokens of padding that cost about as much as the fixed overhead of another group's passes
_PASS = 256
_LOGITS = 2**25  # most logits of a group, unless it has only one prompt
MOST_TOKENS = 4_096  # most in one pass, including padding, unless a single row has more


@dataclass(frozen=True)
class ScoredPrompt:
    """A prompt, and the continuations to score after it."""

    token_ids: tuple[int, ...]  # of the prompt
    span: tuple[bool, ...]  # True on the tokens to steer to, at least one
    continuations: tuple[tuple[int, ...], ...]  # token ids, at least one each

    @property
    def before_span(self) -> int:
        """Number of tokens before the span, which steering does not change."""
        return self.span.index(True)

    @property
    def behind(self) -> int:
        """Number of continuation tokens without the last of each, whose logits are not read."""
        return sum(len(tokens) - 1 for tokens in self.continuations)

    @property
    def changing(self) -> int:
        """Number of tokens that a steered pass forwards."""
        return len(self.token_ids) - self.before_span + self.behind


@dataclass(frozen=True)
class ColumnRange:
    """The columns of prompts: their common end, the count, and the first that steering changes."""

    end: int
    columns: int
    first: int

    @property
    def read(self) -> int:
        """How many of the last columns have logits that are read."""
        return self.columns - self.end + 1


@dataclass(frozen=True)
class Group:
    """A batch of prompts that end at the same column, followed by their continuations."""

    ids: Tensor
    positions: Tensor
    mask: Tensor  # [row, 1, column, column]
    span: Tensor
    extent: ColumnRange

    def spread(self, copies: int) -> Group:
        """The group with this many adjacent copies of each row."""
        states = {name: getattr(self, name) for name in ("ids", "positions", "mask", "span")}
        copied = {name: state.repeat_interleave(copies, 0) for name, state in states.items()}
        return replace(self, **copied)


def _extent_of(prompts: Sequence[ScoredPrompt]) -> ColumnRange:
    end = max(len(prompt.token_ids) for prompt in prompts)
    first = min(end - len(prompt.token_ids) + prompt.before_span for prompt in prompts)
    return ColumnRange(end, end + max(prompt.behind for prompt in prompts), first)


def group_prompts(prompts: Sequence[ScoredPrompt], heads: int, vocabulary: int) -> list[list[int]]:
    """Decides which prompts share passes: those of similar length, with room for a row per head."""
    groups: list[list[int]] = []
    order = [(prompt.changing, len(prompt.token_ids), i) for i, prompt in enumerate(prompts)]
    for *_, index in sorted(order):
        joined = [*groups[-1], index] if groups else []
        if joined and _fit([prompts[number] for number in joined], heads, vocabulary):
            groups[-1] = joined
        else:
            groups.append([index])
    return groups


def _fit(prompts: Sequence[ScoredPrompt], heads: int, vocabulary: int) -> bool:
    extent = _extent_of(prompts)
    changing, rows = extent.columns - extent.first, len(prompts) * heads
    padding = heads * sum(changing - prompt.changing for prompt in prompts)
    return (
        rows * changing <= MOST_TOKENS
        and rows * extent.read * vocabulary <= _LOGITS
        and padding <= _PASS
    )


def lay_out(prompts: Sequence[ScoredPrompt], device: torch.device) -> Group:
    """Lays out prompts and their continuations in columns."""
    extent = _extent_of(prompts)
    ids, positions = torch.zeros(2, len(prompts), extent.columns, dtype=torch.long)
    span = torch.zeros(len(prompts), extent.columns, dtype=torch.bool)
    # 0: the prompt; 1, 2, ...: its continuations; -1: padding
    owner = torch.full((len(prompts), extent.columns), -1)
    for row, prompt in enumerate(prompts):
        length, column = len(prompt.token_ids), extent.end
        columns = slice(column - length, column)
        ids[row, columns] = torch.tensor(prompt.token_ids)
        positions[row, columns] = torch.arange(length)
        span[row, columns] = torch.tensor(prompt.span)
        owner[row, columns] = 0
        for number, tokens in enumerate(prompt.continuations, 1):
            behind = slice(column, column + len(tokens) - 1)
            ids[row, behind] = torch.tensor(tokens[:-1], dtype=torch.long)
            positions[row, behind] = torch.arange(length, length + len(tokens) - 1)
            owner[row, behind] = number
            column = behind.stop
    ids, positions, mask, span = (
        state.to(device) for state in (ids, positions, _mask(owner), span)
    )
    return Group(ids, positions, mask, span, extent)


def _mask(owner: Tensor) -> Tensor:
    """The attention mask, bool [row, 1, query, key]; padding sees itself, to avoid empty rows."""
    columns = owner.shape[1]
    same = (owner[:, None, :] == owner[:, :, None]) & (owner[:, None, :] > 0)
    sees = (owner[:, None, :] == 0) | same
    causal = torch.ones(columns, columns, dtype=torch.bool).tril()
    return ((sees & causal) | torch.eye(columns, dtype=torch.bool))[:, None]


def read_scores(
    logits: Tensor, prompts: Sequence[ScoredPrompt], copies: int
) -> list[list[tuple[float, ...]]]:
    """The log-probability of each continuation, by copy and prompt."""
    scores: list[list[tuple[float, ...]]] = [[] for _ in range(copies)]
    logits = logits.float()
    totals = logits.logsumexp(-1)
    for index, prompt in enumerate(prompts):
        columns, tokens, owners = _targets(prompt)
        rows = slice(index * copies, (index + 1) * copies)
        values = (logits[rows][:, columns, tokens] - totals[rows][:, columns]).double().cpu()
        sums = values.new_zeros(copies, len(prompt.continuations))
        sums.index_add_(1, torch.tensor(owners), values)
        for of_copy, row in zip(scores, sums.tolist(), strict=True):
            of_copy.append(tuple(row))
    return scores


def _targets(prompt: ScoredPrompt) -> tuple[list[int], list[int], list[int]]:
    """For each continuation token: its column of logits, the token, and the continuation."""
    columns, tokens, owners = list[int](), list[int](), list[int]()
    column = 1
    for number, continuation in enumerate(prompt.continuations):
        behind = len(continuation) - 1
        columns += [0, *range(column, column + behind)]
        tokens += continuation
        owners += [number] * len(continuation)
        column += behind
    return columns, tokens, owners


_NEEDED = {"position_ids", "logits_to_keep"}
KeysValues = tuple[Tensor, Tensor]  # of a layer, [row, group, column, size]


class HeadPasses:
    """Passes through a copy of the model that shares its weights; `forwarded` counts tokens."""

    def __init__(self, hf_model: Any):
        config = hf_model.config.get_text_config()
        self.device: torch.device = hf_model.device
        self.heads, self.vocabulary = config.num_attention_heads, config.vocab_size
        self.forwarded = 0.0
        model: Any = copy_modules(hf_model)
        self._runner = Runner(model)
        lists = {path: part for path, part in model.named_modules() if isinstance(part, ModuleList)}
        path = next((p for p in lists if len(lists[p]) == config.num_hidden_layers), None)
        elsewhere = any(weight.is_meta for weight in hf_model.parameters())
        if path is None or elsewhere or _NEEDED - self._runner.accepts:
            raise ModelError(
                f"The layers of {type(hf_model).__name__} cannot be forwarded apart; profile one"
                " head at a time."
            )
        parent, _, self._list_name = path.rpartition(".")
        self._parent = model.get_submodule(parent)
        self._layers: list[Module] = list(lists[path])

    def groups(self, prompts: Sequence[ScoredPrompt]) -> list[list[int]]:
        """Which prompts to pass to `scores` together."""
        return group_prompts(prompts, self.heads, self.vocabulary)

    @torch.inference_mode()
    def scores(
        self, prompts: Sequence[ScoredPrompt], methods: Mapping[Head, CompiledMethods]
    ) -> Iterator[tuple[Head | None, list[tuple[float, ...]]]]:
        """Log-probabilities of each prompt's continuations, unsteered (None), then by head."""
        group = lay_out(prompts, self.device)
        caches: list[Any] = [DynamicLayer() for _ in self._layers]
        entering: list[Tensor] = []  # the input of each layer

        def note(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            entering.append(args[0] if args else kwargs["hidden_states"])

        with _hooked(self._layers, note), steered(None):
            logits = self._forward(0, group, 0, caches, {"input_ids": group.ids})
        yield None, read_scores(logits, prompts, 1)[0]

        extent = group.extent
        computed = [(cache.keys, cache.values) for cache in caches]
        rows = max(1, MOST_TOKENS // (len(prompts) * (extent.columns - extent.first)))
        for layer in sorted({layer for layer, _ in methods}):
            heads = sorted(head for head in methods if head[0] == layer)
            is_last = layer == len(self._layers) - 1
            first = extent.columns - extent.read if is_last else extent.first
            for start in range(0, len(heads), rows):
                some = heads[start : start + rows]
                spread = group.spread(len(some))
                in_rows = [methods[head] for _ in prompts for head in some]
                spec = BatchSteering(
                    spread.span, in_rows, prompt_columns=[extent.end] * len(in_rows)
                )
                copied = [_Rows(states, len(some), first) for states in computed]
                hidden = entering[layer].repeat_interleave(len(some), 0)[:, first:]
                with steered(spec), _hooked([self._layers[layer]], _entering(hidden)):
                    logits = self._forward(layer, spread, first, copied, {"inputs_embeds": hidden})
                yield from zip(some, read_scores(logits, prompts, len(some)), strict=True)

    def _forward(
        self,
        layer: int,
        group: Group,
        first: int,
        caches: Sequence[Any],
        inputs: Mapping[str, Tensor],
    ) -> Tensor:
        """Runs this layer and all above; returns the logits read, [row, column, vocabulary]."""
        layers, positions = self._layers[layer:], group.positions[:, first:]
        self.forwarded += positions.numel() * len(layers) / len(self._layers)
        setattr(self._parent, self._list_name, ModuleList(layers))
        mask, read = group.mask[:, :, first:], group.extent.read
        output = self._runner.call(inputs, positions, mask, Cache(layers=list(caches)), read)
        logits: Tensor = output.logits
        return logits[:, -read:]


def copy_modules(model: Module) -> Module:
    """A copy of every module, hooks included, over the same parameters, buffers and config."""
    copies = {module: copy.copy(module) for module in model.modules()}
    for module in copies.values():
        for name, value in vars(module).items():
            vars(module)[name] = _rebound(value, copies)
        for name, part in module._modules.items():
            module._modules[name] = None if part is None else copies[part]
    return copies[model]


def _rebound(value: Any, copies: Mapping[Module, Module]) -> Any:
    """An attribute for a module's copy; rebinds what accelerate bound to the original module."""
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
def _hooked(layers: Sequence[Module], hook: Callable[..., Any]) -> Iterator[None]:
    """A context in which the hook is called before each of the layers."""
    handles = [layer.register_forward_pre_hook(hook, with_kwargs=True) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _entering(hidden: Tensor) -> Callable[..., Any]:
    """A hook that replaces the input of a layer with these hidden states."""

    def put(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return ((hidden, *args[1:]), kwargs) if args else ((), {**kwargs, "hidden_states": hidden})

    return put


class _Rows(DynamicLayer):
    """Keys and values of rows that share their prompt's, in `computed`, before column `first`."""

    def __init__(self, computed: KeysValues, copies: int, first: int):
        super().__init__()
        self.computed, self.copies, self.first = computed, copies, first

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> KeysValues:
        shared, new = self.computed, (key_states, value_states)
        self.keys, self.values = map(self._behind, shared, new)
        return self.keys, self.values

    def _behind(self, known: Tensor, new: Tensor) -> Tensor:
        rows, groups, columns, size = new.shape
        whole = new.new_empty(rows // self.copies, self.copies, groups, self.first + columns, size)
        whole[:, :, :, : self.first] = known[:, None, :, : self.first]
        whole = whole.flatten(0, 1)
        whole[:, :, self.first :] = new
        return whole

    def get_seq_length(self) -> int:
        return self.first
