"""The attention implementation "holdfast" that is registered with transformers, eager or compiled.

A compiled region sees tensors only. So a pass has an operation at its beginning, one at its end and
one per layer, each a single node of the graph. When they run, they do what an eager pass does:
nothing is fixed in the graph, and steering may change from call to call. They read the state of the
process, so they are never part of a CUDA graph: Inductor runs the pieces between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from holdfast.attention.blocks import OPEN
from holdfast.attention.layers import IMPLEMENTATION, attend_layer, mask_layer, refuse_sparse
from holdfast.attention.steering import PASS
from holdfast.errors import ModelError

NUMBER = "holdfast_number"
_TAGS = (torch.Tag.cudagraph_unsafe,)
_NEXT = count(1)
_NUMBERS: WeakKeyDictionary[torch.nn.Module, int] = WeakKeyDictionary()
_MODULES: WeakValueDictionary[int, torch.nn.Module] = WeakValueDictionary()
# Of the arguments of transformers' attention interface, those that change its result.
_TENSORS = ("s_aux", "sinks", "position_bias", "indices")


def number_modules(model: torch.nn.Module, *, open_blocks: bool) -> None:
    """Gives each module the number by which compiled code knows it.

    It is negative where no block is open: compiled code is guarded by it, so that what was compiled
    without blocks is compiled anew in one.
    """
    for module in model.modules():
        if module not in _NUMBERS:
            _NUMBERS[module] = next(_NEXT)
            _MODULES[_NUMBERS[module]] = module
        number = _NUMBERS[module]
        module.__dict__[NUMBER] = number if open_blocks else -number


def forget(model: torch.nn.Module) -> None:
    """Takes the numbers of its modules from a model."""
    for module in model.modules():
        module.__dict__.pop(NUMBER, None)


# What is traced: called by dynamo, never run


def begin_traced(
    module: torch.nn.Module, names: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A compiled pass begins: its ids, or their embeddings, come out of the operation."""
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    name = "input_ids" if given.get("input_ids") is not None else "inputs_embeds"
    mask = given.get("attention_mask")
    if not isinstance(mask, Tensor) or mask.ndim != 2:
        mask = None
    begun = torch.ops.holdfast.begin(
        given[name],
        mask,
        module.holdfast_number,
        given.get("use_cache"),
        bool(given.get("output_attentions")),
    )
    index = names.index(name)
    if index < len(args):
        return (*args[:index], begun, *args[index + 1 :]), kwargs
    return args, {**kwargs, name: begun}


def end_traced(module: torch.nn.Module, output: Any) -> Any:
    torch.ops.holdfast.end(output[0], module.holdfast_number)
    return output


def attend_traced(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    kwargs: Mapping[str, Any],
) -> Tensor:
    """The attention of one layer, [B, Q, H, D]."""
    refuse_sparse(module, kwargs)
    output: Tensor = torch.ops.holdfast.attend(
        query,
        key,
        value,
        mask,
        *[kwargs.get(name) for name in _TENSORS],
        getattr(module, NUMBER, 0),
        kwargs.get("scaling"),
        kwargs.get("softcap"),
        kwargs.get("is_causal"),
        kwargs.get("dropout") or 0.0,
    )
    return output


# What runs


@torch.library.custom_op("holdfast::begin", mutates_args=(), tags=_TAGS)
def begin(
    ids: Tensor,
    mask: Tensor | None,
    number: int,
    use_cache: bool | None,
    output_attentions: bool,
) -> Tensor:
    """A pass of the model begins; returns a copy of its ids, which orders what is behind."""
    module = _MODULES[abs(number)]
    if (opened := OPEN.get(module)) is not None:
        given = {
            "input_ids": ids,
            "attention_mask": mask,
            "use_cache": use_cache,
            "output_attentions": output_attentions,
        }
        opened.begin_compiled(given)
    return ids.clone()


@begin.register_fake
def _(ids, mask, number, use_cache, output_attentions):  # type: ignore[no-untyped-def]
    return torch.empty_like(ids)


@torch.library.custom_op("holdfast::end", mutates_args=("output",), tags=_TAGS)
def end(output: Tensor, number: int) -> None:
    """The pass of the model ends; told to change `output`, so that it stays in its place."""
    current, opened = PASS.get(), OPEN.get(_MODULES[abs(number)])
    if current is not None and opened is not None and current.model is opened:
        opened.end_compiled(current)


@end.register_fake
def _(output, number):  # type: ignore[no-untyped-def]
    return None


@torch.library.custom_op("holdfast::attend", mutates_args=(), tags=_TAGS)
def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    s_aux: Tensor | None,
    sinks: Tensor | None,
    position_bias: Tensor | None,
    indices: Tensor | None,
    number: int,
    scaling: float | None,
    softcap: float | None,
    is_causal: bool | None,
    dropout: float,
) -> Tensor:
    """The attention of one layer, [B, Q, H, D], in the pass under way."""
    module = _MODULES.get(abs(number))
    if module is None:
        raise ModelError(
            "A model that has holdfast's attention by its name alone cannot be compiled; compile "
            "one of holdfast.load, or open a block of holdfast.steering on yours."
        )
    _check_window(module, key.shape[2])
    tensors = zip(_TENSORS, (s_aux, sinks, position_bias, indices), strict=True)
    kwargs: dict[str, Any] = {**dict(tensors), "softcap": softcap, "is_causal": is_causal}
    given = {name: value for name, value in kwargs.items() if value is not None}
    result = attend_layer(
        module, query, key, value, mask, scaling=scaling, dropout=dropout, **given
    )
    return result[0]


@attend.register_fake
def _(query, key, value, *others):  # type: ignore[no-untyped-def]
    rows, heads, queries, _ = query.shape
    return query.new_empty(rows, queries, heads, value.shape[3])


def _check_window(module: Any, keys: int) -> None:
    """Refuses a layer whose keys begin nobody knows where: its masks were made in the graph."""
    current = PASS.get()
    if current is None or current.state is None or keys in current.state.offsets:
        return
    config = module.config.get_text_config()
    kinds = getattr(config, "layer_types", None)
    kind = kinds[module.layer_idx] if kinds else None
    chunked = kind == "chunked_attention"
    window = getattr(config, "attention_chunk_size" if chunked else "sliding_window", None)
    if kind != "full_attention" and window is not None and keys >= window:
        raise ModelError(
            f"A compiled pass of a model with windows of {window} tokens is steered in generate"
            "(cache_implementation='static') alone, which says where they stand; run it there, or "
            "not compiled."
        )


def holdfast_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """transformers' attention interface, which returns the output [B, Q, H, D].

    Takes query [B, H, Q, D], key and value [B, G, K, D].

    Raises:
        ModelError: the model asks for something that this function would have to leave out.
    """
    if torch.compiler.is_compiling():
        return attend_traced(module, query, key, value, attention_mask, kwargs), None
    return attend_layer(module, query, key, value, attention_mask, **kwargs)


def holdfast_mask(**kwargs: Any) -> Tensor | None:
    """transformers' mask interface: SDPA's mask, or that of the attention the model had."""
    if torch.compiler.is_compiling():
        return sdpa_mask(**kwargs)
    return mask_layer(**kwargs)


AttentionInterface.register(IMPLEMENTATION, holdfast_attention)
AttentionMaskInterface.register(IMPLEMENTATION, holdfast_mask)
