"""What goes into attention and what comes out of it, seen in the passes of one thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from holdfast.states.sites import attention_modules

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Ends:
    """The two ends of one layer's attention.

    Args:
        before: the hidden states that it reads, [row, token, size].
        after: what it adds to the residual stream, [row, token, size].
    """

    before: Tensor
    after: Tensor


@contextmanager
def around_attention(model: PreTrainedModel, layers: Sequence[int]) -> Iterator[Mapping[int, Ends]]:
    """Both ends of attention in the latest pass of this thread, by layer.

    Args:
        model: whose passes run inside.
        layers: of `attention_modules`.
    """
    seen: dict[int, Ends] = {}
    modules, thread = attention_modules(model), threading.get_ident()

    def noting(layer: int) -> Callable[..., None]:
        def note(
            module: torch.nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Any
        ) -> None:
            if threading.get_ident() == thread:
                before = named["hidden_states"] if "hidden_states" in named else given[0]
                after = output if isinstance(output, Tensor) else output[0]
                seen[layer] = Ends(before, after)

        return note

    handles = [
        modules[layer].register_forward_hook(noting(layer), with_kwargs=True) for layer in layers
    ]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
