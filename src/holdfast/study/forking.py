"""Every head steered alone, for far less than a pass per head: what steering a head cannot change
is computed once.

Steering a head of layer l changes nothing below layer l, and nothing for tokens in front of the
span, which cannot see it. So prompts are forwarded once unsteered, keeping what enters each layer
and the keys and values; then the heads of layer l, in rows of one batch, are forwarded from layer l
on, and from the first token of the span on. In the last layer only the tokens whose logits are read
go on behind their keys and values. In layer l itself the heads' outputs differ, and what they are
made of does not, so its attention is computed once per prompt, as it is and with all heads steered.
Continuations stand behind their prompt in the same pass, hidden from each other.

Nothing of the model is changed: passes go through a shallow copy of it that has other layers in its
list, and shares every weight."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicLayer

from holdfast.attention import Steering, steered
from holdfast.errors import ModelError
from holdfast.methods.heads import HeadSet

if TYPE_CHECKING:
    from holdfast.methods import ShiftsAttention
    from holdfast.methods.heads import Head

_TOKENS = 4_096  # of one pass of rows, padding included, unless the heads of one prompt have more
# tokens of padding that cost about as much as another group's passes do beside their tokens
_PASS = 256
_LOGITS = 2**25  # held at a time, as far as rows can be fewer


@dataclass(frozen=True)
class Asked:
    """A prompt, and the continuations to score behind it.

    Args:
        token_ids: of the prompt.
        span: True on the tokens to hold on to, at least one.
        continuations: token ids, at least one each.
    """

    token_ids: tuple[int, ...]
    span: tuple[bool, ...]
    continuations: tuple[tuple[int, ...], ...]

    @property
    def free(self) -> int:
        """Tokens in front of the span, which no steering changes."""
        return self.span.index(True)

    @property
    def changing(self) -> int:
        """Tokens that a steered pass forwards."""
        return len(self.token_ids) - self.free + sum(len(one) - 1 for one in self.continuations)


@dataclass(frozen=True)
class _Group:
    """Prompts side by side, which end at the same column `end`; continuations without their last
    token stand behind it.
    """

    ids: Tensor  # [sample, column]
    positions: Tensor
    mask: Tensor  # bool [sample, 1, column, column]
    span: Tensor  # bool [sample, column]
    end: int
    first: int  # column from which on anything can change
    asked: Sequence[Asked]


class Forks:
    """The passes over a model's layers.

    Args:
        hf_model: a causal language model with full attention whose layers stand in one list.
        share: whether the attention of the steered layer is computed once per prompt; its output
            must be a linear map of its heads'.

    Raises:
        ModelError: no such list.
    """

    def __init__(self, hf_model, share: bool = True):
        self.model, self.share = hf_model, share
        config = hf_model.config.get_text_config()
        self.layers, self.heads = config.num_hidden_layers, config.num_attention_heads
        self.vocabulary = config.vocab_size
        found = [
            name
            for name, module in hf_model.named_modules()
            if isinstance(module, torch.nn.ModuleList) and len(module) == self.layers
        ]
        if not found:
            raise ModelError(
                f"{type(hf_model).__name__} does not keep its {self.layers} layers in one list, so"
                " they cannot be forwarded apart."
            )
        self.path = found[0].split(".")
        self.modules = list(hf_model.get_submodule(found[0]))
        self.forwarded = 0.0  # tokens, each counted by the share of the layers it went through

    def groups(self, asked: Sequence[Asked]) -> list[list[int]]:
        """Which prompts go together: those with about as many tokens to forward, so that little is
        padding.
        """
        order = sorted(
            range(len(asked)), key=lambda i: (asked[i].changing, len(asked[i].token_ids), i)
        )
        groups: list[list[int]] = []
        for index in order:
            joined = [*groups[-1], index] if groups else []
            if joined:
                end, columns, first = _size([asked[number] for number in joined])
                rows = len(joined) * self.heads
                wasted = self.heads * (
                    len(joined) * (columns - first)
                    - sum(asked[number].changing for number in joined)
                )
                if (
                    rows * (columns - first) <= _TOKENS
                    and rows * (columns - end + 1) * self.vocabulary <= _LOGITS
                    and wasted <= _PASS
                ):
                    groups[-1] = joined
                    continue
            groups.append([index])
        return groups

    def work(self, asked: Sequence[Asked], heads: Iterable[Head]) -> float:
        """What `scores` adds to `forwarded`."""
        end, columns, first = _size(asked)
        behind = columns - end + 1
        share = {
            layer: (
                behind + (columns - first) * (self.layers - layer if layer < self.layers - 1 else 0)
            )
            for layer in range(self.layers)
        }
        return len(asked) * (columns + sum(share[layer] for layer, _ in heads) / self.layers)

    @torch.inference_mode()
    def scores(
        self, asked: Sequence[Asked], methods: dict[Head, tuple[ShiftsAttention, ...]]
    ) -> Iterator[tuple[Head | None, list[tuple[float, ...]]]]:
        """Log-probabilities of the continuations of each prompt, first unsteered (None), then under
        each head's methods.

        Args:
            asked: prompts of one group.
            methods: by head; each touches its head alone.
        """
        group = _lay_out(asked, self.model.device)
        entering, keys_values, logits = self._base(group)
        yield None, _read(logits, asked, 1)[0]
        for layer in sorted({layer for layer, _ in methods}):
            heads = sorted(head for head in methods if head[0] == layer)
            rows = max(
                1, min(len(heads), _TOKENS // (len(asked) * (group.ids.shape[1] - group.first)))
            )
            for start in range(0, len(heads), rows):
                some = heads[start : start + rows]
                logits = self._from_layer(
                    group, layer, [methods[head] for head in some], entering, keys_values
                )
                yield from zip(some, _read(logits, asked, len(some)), strict=True)

    def _base(self, group: _Group) -> tuple[list[Tensor], list[tuple[Tensor, Tensor]], Tensor]:
        """The unsteered pass: what enters each layer, keys and values, and the logits that are
        read.
        """
        entering: list[Tensor] = []
        cache = Cache(layers=[DynamicLayer() for _ in range(self.layers)])
        wrapped = [_Layer(module, seen=entering) for module in self.modules]
        with steered(None):
            columns = group.ids.shape[1] - group.end + 1
            logits = self._forward(
                wrapped, group.mask, group.positions, cache, columns, input_ids=group.ids
            )
        return entering, [(layer.keys, layer.values) for layer in cache.layers], logits

    def _from_layer(
        self,
        group: _Group,
        layer: int,
        methods: Sequence[tuple[ShiftsAttention, ...]],
        entering: list[Tensor],
        computed: list[tuple[Tensor, Tensor]],
    ) -> Tensor:
        """The logits that are read, [sample * method, column, vocabulary], with each method in a
        row of its own.
        """
        copies, last = len(methods), self.layers - 1

        def spread(states: Tensor) -> Tensor:
            return states.repeat_interleave(copies, 0)

        prompts = len(group.asked)
        steering = Steering(
            spread(group.span),
            [one for _ in group.asked for one in methods],
            prompt=[group.end] * prompts * copies,
        )
        read = group.end - 1  # first column whose logits are read
        if layer == last:
            hidden, whole = spread(entering[last][:, read:]), tuple(map(spread, computed[last]))
        else:
            caches = [
                _Rows(computed[index], copies, group.first, index == last)
                for index in range(self.layers)
            ]
            seen: list[Tensor] = []
            inner = self.modules[layer]
            if self.share:
                together = [
                    tuple(
                        replace(
                            one[0],
                            heads=HeadSet(head for method in methods for head in method[0].heads),
                        )
                        for one in methods[:1]
                    )
                ] * prompts
                fanned = _fan_out(
                    inner,
                    Steering(group.span, together, prompt=[group.end] * prompts),
                    [head for method in methods for _, head in method[0].heads],
                )
                inner, steering = (fanned, None) if fanned else (inner, steering)
                caches[layer] = _Rows(computed[layer], 1 if fanned else copies, group.first, False)
            layers = [
                _Layer(inner, given=spread(entering[layer][:, group.first :])),
                *self.modules[layer + 1 : last],
                _Layer(self.modules[last], seen=seen),
            ]
            with steered(steering):
                self._forward(
                    layers,
                    spread(group.mask[:, :, group.first :]),
                    spread(group.positions[:, group.first :]),
                    Cache(layers=caches),
                    1,
                    inputs_embeds=layers[0].given,
                )
            hidden, whole = (
                seen[0][:, read - group.first :],
                (caches[last].keys, caches[last].values),
            )
        kept = Cache(layers=[_Whole(*whole, read) for _ in range(self.layers)])
        with steered(steering if layer == last else None):
            return self._forward(
                [_Layer(self.modules[last], given=hidden)],
                spread(group.mask[:, :, read:]),
                spread(group.positions[:, read:]),
                kept,
                hidden.shape[1],
                inputs_embeds=hidden,
            )

    def _forward(
        self,
        layers: Sequence[torch.nn.Module],
        mask: Tensor,
        positions: Tensor,
        cache: Cache,
        logits: int,
        **inputs,
    ) -> Tensor:
        self.forwarded += positions.numel() * len(layers) / self.layers
        output = _with_layers(self.model, self.path, layers)(
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=logits,
            **inputs,
        )
        return output.logits[:, -logits:]


class _Enough(Exception):
    """The keys and values of the last layer are known."""


class _Layer(torch.nn.Module):
    """A layer of the model that notes what enters it, or has something else enter.

    Args:
        inner: the layer.
        given: enters in place of what the model hands on.
        seen: takes what enters.
    """

    def __init__(
        self, inner: torch.nn.Module, given: Tensor | None = None, seen: list[Tensor] | None = None
    ):
        super().__init__()
        self.inner, self.given, self.seen = inner, given, seen

    def __getattr__(self, name: str):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("inner"), name)

    def forward(self, *args, **kwargs):
        named = not args
        hidden = kwargs.pop("hidden_states") if named else args[0]
        if self.given is not None:
            hidden = self.given
        if self.seen is not None:
            self.seen.append(hidden)
        try:
            return (
                self.inner(hidden_states=hidden, **kwargs)
                if named
                else self.inner(hidden, *args[1:], **kwargs)
            )
        except _Enough:
            return hidden


class _Rows(DynamicLayer):
    """Keys and values of rows that share those of their sample up to the column `first`; with
    `stop`, the layer ends once it has them.
    """

    def __init__(self, computed: tuple[Tensor, Tensor], copies: int, first: int, stop: bool):
        super().__init__()
        self.computed, self.copies, self.first, self.stop = computed, copies, first, stop

    def update(
        self, key_states: Tensor, value_states: Tensor, *args, **kwargs
    ) -> tuple[Tensor, Tensor]:
        self.keys, self.values = (
            self._behind(known, new)
            for known, new in zip(self.computed, (key_states, value_states), strict=True)
        )
        if self.stop:
            raise _Enough
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


class _Whole(DynamicLayer):
    """Keys and values that are known, for queries from the column `first` on."""

    def __init__(self, keys: Tensor, values: Tensor, first: int):
        super().__init__()
        self.keys, self.values, self.first = keys, values, first

    def update(
        self, key_states: Tensor, value_states: Tensor, *args, **kwargs
    ) -> tuple[Tensor, Tensor]:
        return self.keys, self.values

    def get_seq_length(self) -> int:
        return self.first


class _Fan(torch.nn.Module):
    """Stands for the attention of a layer whose rows are one prompt's as often as there are heads:
    each row gets another head steered.

    Args:
        attention: the layer's own.
        out: the name of its output projection.
        steering: of the prompts, with all these heads steered.
        heads: of this layer, by row of a prompt.
    """

    def __init__(
        self, attention: torch.nn.Module, out: str, steering: Steering, heads: Sequence[int]
    ):
        super().__init__()
        self.heads, self.steering, self.projection = list(heads), steering, getattr(attention, out)
        self.catch = _Catch(self.projection)
        self.attention = copy.copy(attention)
        self.attention.__dict__["_modules"] = {**attention._modules, out: self.catch}

    def forward(self, *args, **kwargs):
        rows = (args[0] if args else kwargs["hidden_states"]).shape[0]

        def once(value):
            if isinstance(value, Tensor):
                return value[:: len(self.heads)] if value.ndim and value.shape[0] == rows else value
            return tuple(map(once, value)) if isinstance(value, (tuple, list)) else value

        args, kwargs = once(args), {name: once(value) for name, value in kwargs.items()}
        returned = self.attention(*args, **kwargs)
        base, plain = (returned[0] if isinstance(returned, tuple) else returned), self.catch.seen
        self.catch.only_looks = True
        with steered(self.steering):
            self.attention(*args, **kwargs)
        size = self.projection.in_features // self.steering_heads
        moved = (self.catch.seen - plain).unflatten(-1, (-1, size))[
            ..., self.heads, :
        ]  # [prompt, query, row, size]
        parts = self.projection.weight.unflatten(1, (-1, size))[:, self.heads]  # [width, row, size]
        output = (base[:, None] + torch.einsum("pqrs,wrs->prqw", moved, parts)).flatten(0, 1)
        return (output, *returned[1:]) if isinstance(returned, tuple) else output

    steering_heads = 0  # of a layer, set where it is made


class _Catch(torch.nn.Module):
    """A projection that notes what enters it, and may do nothing else."""

    def __init__(self, inner: torch.nn.Linear):
        super().__init__()
        self.inner, self.only_looks = inner, False

    def forward(self, states: Tensor) -> Tensor:
        self.seen = states
        return (
            states.new_zeros(*states.shape[:-1], self.inner.out_features)
            if self.only_looks
            else self.inner(states)
        )


def _fan_out(
    layer: torch.nn.Module, steering: Steering, heads: Sequence[int]
) -> torch.nn.Module | None:
    """The layer with a `_Fan` for its attention; None where that has no output projection of the
    usual form.
    """
    found = [
        (name, child)
        for name, child in layer.named_children()
        if getattr(child, "layer_idx", None) is not None
    ]
    if len(found) != 1:
        return None
    name, attention = found[0]
    linear = [part for part, child in attention.named_children() if type(child) is torch.nn.Linear]
    count = (
        attention.config.get_text_config().num_attention_heads
        if hasattr(attention, "config")
        else 0
    )
    if not linear or not count or getattr(attention, linear[-1]).in_features % count:
        return None
    fan = _Fan(attention, linear[-1], steering, heads)
    fan.steering_heads = count
    made = copy.copy(layer)
    made.__dict__["_modules"] = {**layer._modules, name: fan}
    return made


def _with_layers(model, path: Sequence[str], layers: Sequence[torch.nn.Module]):
    """A shallow copy of the model with these layers in its list."""
    made = node = copy.copy(model)
    for name in path[:-1]:
        node.__dict__["_modules"] = dict(node._modules)
        node._modules[name] = copy.copy(node._modules[name])
        node = node._modules[name]
    node.__dict__["_modules"] = {**node._modules, path[-1]: torch.nn.ModuleList(layers)}
    return made


def _size(asked: Sequence[Asked]) -> tuple[int, int, int]:
    """Where prompts end, how many columns there are, and the first that can change."""
    end = max(len(one.token_ids) for one in asked)
    columns = end + max(sum(len(option) - 1 for option in one.continuations) for one in asked)
    return end, columns, min(end - len(one.token_ids) + one.free for one in asked)


def _lay_out(asked: Sequence[Asked], device: torch.device) -> _Group:
    end, columns, first = _size(asked)
    ids, positions = torch.zeros(2, len(asked), columns, dtype=torch.long)
    owner = torch.full((len(asked), columns), -1)  # 0: the prompt; 1, 2, ...: continuations
    span = torch.zeros(len(asked), columns, dtype=torch.bool)
    for index, one in enumerate(asked):
        length, place = len(one.token_ids), end
        ids[index, end - length : end] = torch.tensor(one.token_ids)
        positions[index, end - length : end] = torch.arange(length)
        owner[index, end - length : end] = 0
        span[index, end - length : end] = torch.tensor(one.span)
        for number, option in enumerate(one.continuations, 1):
            behind = len(option) - 1
            ids[index, place : place + behind] = torch.tensor(option[:-1], dtype=torch.long)
            positions[index, place : place + behind] = torch.arange(length, length + behind)
            owner[index, place : place + behind] = number
            place += behind
    sees = (owner[:, None, :] == 0) | (
        (owner[:, None, :] == owner[:, :, None]) & (owner[:, None, :] > 0)
    )
    mask = (sees & torch.ones(columns, columns, dtype=torch.bool).tril()) | torch.eye(
        columns, dtype=torch.bool
    )  # padding sees itself
    return _Group(
        *(states.to(device) for states in (ids, positions, mask[:, None], span)), end, first, asked
    )


def _read(logits: Tensor, asked: Sequence[Asked], copies: int) -> list[list[tuple[float, ...]]]:
    """Log-probabilities by row and sample of each continuation, from logits [sample * copies,
    column, vocabulary] from the prompt's last token on.
    """
    found: list[list[tuple[float, ...]]] = [[] for _ in range(copies)]
    logits = logits.float()
    totals = logits.logsumexp(-1)
    for index, one in enumerate(asked):
        columns, tokens, owners, place = [], [], [], 1
        for number, option in enumerate(one.continuations):
            columns += [0, *range(place, place + len(option) - 1)]
            tokens += option
            owners += [number] * len(option)
            place += len(option) - 1
        rows = slice(index * copies, (index + 1) * copies)
        values = (logits[rows][:, columns, tokens] - totals[rows][:, columns]).double().cpu()
        summed = values.new_zeros(copies, len(one.continuations)).index_add_(
            1, torch.tensor(owners), values
        )
        for row, sums in zip(found, summed.tolist(), strict=True):
            row.append(tuple(sums))
    return found
