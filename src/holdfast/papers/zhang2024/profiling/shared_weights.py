"""A twin of a model: modules of its own over the same weights, whose layers can be run apart.

The model knows nothing of what is hooked or left out in its twin, whoever uses it meanwhile.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.utils.hooks import RemovableHandle
from transformers.cache_utils import Cache

from holdfast.attention import SteeringSpec, steered
from holdfast.engine.runner import Runner
from holdfast.errors import ModelError


@dataclass(frozen=True)
class Attending:
    """The attention of a layer that ends in a linear map of its heads' outputs, in their order.

    Args:
        module: takes hidden states and returns them, or a tuple that begins with them.
        projection: its last step, from [..., heads * size] to [..., width].
        size: of a head.
    """

    module: Module
    projection: torch.nn.Linear
    size: int


class SharedWeightsCopy:
    """A decoder whose layers stand in one list.

    Args:
        hf_model: a causal language model; it is not changed.

    Attributes:
        layers: its layers, in order.
        attending: by layer, what is known of its attention; None where that does not end in a
            linear map of its heads.
        by_column: what of the last layer turns each column into one by itself, and need not be
            computed for those that are not read.

    Raises:
        ModelError: no such list, or weights that are elsewhere.
    """

    def __init__(self, hf_model: Any):
        shared = [*hf_model.parameters(), *hf_model.buffers(), hf_model.config]
        if any(part.is_meta for part in shared[:-1]):
            raise ModelError(f"{type(hf_model).__name__} has weights that are not on a device.")
        # deepcopy takes what is to be shared by id
        self.model = copy.deepcopy(hf_model, {id(part): part for part in shared})
        self._runner = Runner(self.model)
        if not {"position_ids", "logits_to_keep"} <= self._runner.accepts:
            raise ModelError(
                f"{type(hf_model).__name__} takes no positions, or gives all logits, so its prompts"
                " cannot share a pass."
            )
        config = hf_model.config.get_text_config()
        count = config.num_hidden_layers
        path = next(
            (name for name, part in self.model.named_modules() if _is_list(part, count)), ""
        )
        if not path:
            raise ModelError(
                f"{type(hf_model).__name__} does not keep its {count} layers in one list, so they"
                " cannot be forwarded apart."
            )
        parent, _, name = path.rpartition(".")
        self._name: str = name
        self._parent = self.model.get_submodule(parent)
        self.layers: list[Module] = list(self.model.get_submodule(path))
        calls = self._calls()
        heads = config.num_attention_heads
        self.attending = [_attending(layer, heads, calls) for layer in self.layers]
        self.by_column = self._by_column(calls)

    def forward(
        self,
        layers: Sequence[Module],
        mask: Tensor,
        positions: Tensor,
        cache: Cache,
        last: int,
        hidden: Tensor | None = None,
        ids: Tensor | None = None,
    ) -> Tensor:
        """A pass through some of the layers: the logits [row, `last`, vocabulary].

        Args:
            layers: in place of all.
            mask: bool [row, 1, column, key].
            positions: [row, column].
            cache: of as many layers as the model has.
            last: columns whose logits are wanted.
            hidden: [row, column, width], what enters the first of the layers; else `ids` are read.
            ids: [row, column].
        """
        setattr(self._parent, self._name, torch.nn.ModuleList(layers))
        given = {"input_ids": ids, "inputs_embeds": hidden}
        read = {name: states for name, states in given.items() if states is not None}
        with nullcontext() if hidden is None else entered(layers[0], hidden):
            output = self._runner.call(read, positions, mask, cache, last)
        logits: Tensor = output.logits
        return logits[:, -last:]

    @torch.inference_mode()
    def _calls(self) -> dict[Module, _Call]:
        """Input and output of each module inside the layers when two tokens are forwarded."""
        calls: dict[Module, _Call] = {}

        def note(module: Module, args: tuple[Any, ...], output: Any) -> None:
            taken = args[0] if args and isinstance(args[0], Tensor) else None
            given = output[0] if isinstance(output, tuple) else output
            if isinstance(given, Tensor):
                calls[module] = _Call(taken, given)

        inner = [module for layer in self.layers for module in layer.modules()]
        with _hooked(module.register_forward_hook(note) for module in inner):
            self._two_tokens()
        return calls

    def _by_column(self, calls: dict[Module, _Call]) -> tuple[Module, ...]:
        """The output projection and the feed-forward part of the last layer, if the last token's
        logits stay the same without those of the other.
        """
        last, attending = self.layers[-1], self.attending[-1]
        if attending is None:
            return ()
        outside = [part for part in last.children() if attending.module not in part.modules()]
        wide = [part for part in outside if any(weight.ndim > 1 for weight in part.parameters())]
        parts = (attending.projection, *wide)
        if not all(part in calls and calls[part].is_by_column for part in parts):
            return ()
        whole = self._two_tokens()
        with last_columns(parts, 1):
            alone = self._two_tokens()
        apart = float((whole - alone).abs().max() / whole.abs().max())
        return parts if apart <= torch.finfo(self.model.dtype).eps ** 0.5 else ()

    @torch.inference_mode()
    def _two_tokens(self) -> Tensor:
        """The logits behind two tokens, [1, 1, vocabulary]."""
        ids = torch.tensor([[0, 1]], device=self.model.device)
        with steered(None):
            logits: Tensor = self._runner.call({"input_ids": ids}, ids, None, None, 1).logits
        return logits.float()


@dataclass(frozen=True)
class _Call:
    """The first positional argument of a module, where it is a tensor, and its output."""

    taken: Tensor | None
    given: Tensor

    @property
    def is_by_column(self) -> bool:
        """Whether it turns each column into one, as far as shapes tell."""
        return self.taken is not None and self.taken.shape[:-1] == self.given.shape[:-1]


def _is_list(module: Module, count: int) -> bool:
    return isinstance(module, torch.nn.ModuleList) and len(module) == count


def _attending(layer: Module, heads: int, calls: dict[Module, _Call]) -> Attending | None:
    """The attention of a layer and its output projection: the linear map of heads * size numbers
    whose output is the attention's own.
    """
    with_index = [
        module
        for module in layer.modules()
        if module is not layer and getattr(module, "layer_idx", None) is not None
    ]
    if len(with_index) != 1 or with_index[0] not in calls:
        return None
    attention, given = with_index[0], calls[with_index[0]].given
    linears = [part for part in attention.modules() if type(part) is torch.nn.Linear]
    for linear in linears:
        ends = linear in calls and torch.equal(calls[linear].given, given)
        if ends and linear.in_features % heads == 0:
            return Attending(attention, linear, linear.in_features // heads)
    return None


@contextmanager
def _hooked(handles: Iterable[RemovableHandle]) -> Iterator[None]:
    """Takes the hooks away at the end."""
    registered = list(handles)
    try:
        yield
    finally:
        for handle in registered:
            handle.remove()


def _hidden(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """The hidden states that a layer or an attention is called with."""
    hidden: Tensor = args[0] if args else kwargs["hidden_states"]
    return hidden


@contextmanager
def noted(modules: Sequence[Module]) -> Iterator[list[Tensor]]:
    """Inside, lists what enters these modules, in the order of their calls."""
    seen: list[Tensor] = []

    def note(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        seen.append(_hidden(args, kwargs))

    with _hooked(part.register_forward_pre_hook(note, with_kwargs=True) for part in modules):
        yield seen


@contextmanager
def entered(layer: Module, hidden: Tensor) -> Iterator[None]:
    """Inside, `hidden` enters the layer, whatever the model hands to it."""

    def put(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return ((hidden, *args[1:]), kwargs) if args else ((), {**kwargs, "hidden_states": hidden})

    with _hooked([layer.register_forward_pre_hook(put, with_kwargs=True)]):
        yield


@contextmanager
def last_columns(modules: Sequence[Module], count: int) -> Iterator[None]:
    """Inside, these modules compute the last `count` columns alone, and give zeros before them."""
    before: dict[Module, int] = {}

    def cut(module: Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        before[module] = max(args[0].shape[-2] - count, 0)
        return args[0][..., before[module] :, :], *args[1:]

    def fill(module: Module, args: tuple[Any, ...], output: Tensor) -> Tensor:
        return torch.nn.functional.pad(output, (0, 0, before.pop(module), 0))

    with (
        _hooked(module.register_forward_pre_hook(cut) for module in modules),
        _hooked(module.register_forward_hook(fill) for module in modules),
    ):
        yield


@contextmanager
def heads_apart(attending: Attending, spec: SteeringSpec, heads: Sequence[int]) -> Iterator[None]:
    """Inside, each row gets another head steered, and the attention is computed once per prompt.

    With `o` what enters the output projection W, `o'` the same with all these heads steered, and
    W_h the columns of W that belong to head h, the row of head h gets W o + W_h (o'_h - o_h).

    Args:
        attending: of a layer whose rows are one prompt's as often as there are heads, in a run.
        spec: of the prompts, with all these heads steered.
        heads: of this layer, by row of a prompt.
    """
    copies, projection = len(heads), attending.projection

    def each_once(value: Any, rows: int) -> Any:
        if isinstance(value, tuple | list):
            return tuple(each_once(part, rows) for part in value)
        if isinstance(value, Tensor) and value.ndim and value.shape[0] == rows:
            return value[::copies]
        return value

    def narrow(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        rows = _hidden(args, kwargs).shape[0]
        named = {name: each_once(value, rows) for name, value in kwargs.items()}
        return each_once(args, rows), named

    def widen(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        base = output[0] if isinstance(output, tuple) else output
        with steered(spec), last_columns([projection], 0):
            module.forward(*args, **kwargs)  # without these hooks
        plain, moved = mixed
        change = (moved - plain).reshape(*plain.shape[:-1], -1, attending.size)[..., heads, :]
        parts = projection.weight.reshape(projection.out_features, -1, attending.size)[:, heads]
        # [prompt, query, head, size] by [width, head, size]: rows of a prompt stand in a run
        rows = (base[:, None] + torch.einsum("pqhs,whs->phqw", change, parts)).flatten(0, 1)
        return (rows, *output[1:]) if isinstance(output, tuple) else rows

    attention = attending.module
    with (
        noted([projection]) as mixed,
        _hooked(
            [
                attention.register_forward_pre_hook(narrow, with_kwargs=True),
                attention.register_forward_hook(widen, with_kwargs=True),
            ]
        ),
    ):
        yield
