"""Steers a Hugging Face model that is already loaded, and encodes chats as tensors for it."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import ref

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from holdfast.attention.batch_steering import BatchSteering
from holdfast.attention.cache_origins import CacheOrigin
from holdfast.attention.head_checks import check_heads
from holdfast.attention.patching import open_block
from holdfast.attention.steered_block import Steered, enter_scope
from holdfast.chat.emphasis import Part
from holdfast.chat.messages import Messages
from holdfast.chat.prompt import Prompt, render
from holdfast.errors import Unsteerable, UsageError, cut
from holdfast.methods import CompiledMethods, compile_methods, read_methods, spec_of
from holdfast.methods.all_methods import METHODS
from holdfast.methods.protocols import ActsInPass
from holdfast.models.requests import Request
from holdfast.states import check_states

MethodOrSpec = ActsInPass | str  # a method, or a spec string of one or several
_MAX_SPEC = 100  # characters of a spec string in messages


@contextmanager
def steering(
    hf_model: PreTrainedModel,
    span_mask: Tensor,
    methods: MethodOrSpec | Sequence[MethodOrSpec] | Sequence[Sequence[MethodOrSpec]],
    *,
    trace: bool = False,
) -> Iterator[Steered]:
    """Steers the attention, keys or hidden states of a model inside the block, under `forward` and
    `generate()`.

        with holdfast.steering(model, span_mask, "split-softmax:exponent=0.5"):
            model.generate(**inputs)

    The block owns the model until it exits. It steers passes in the same thread, in asyncio tasks
    started in the block, in `asyncio.to_thread` and, in any thread, in functions bound by
    `steered.bind`. Passes from elsewhere are refused, unless they run in
    `holdfast.unsteered(model)`. No other model is steered. `holdfast docs steering` describes the
    cases.

    Args:
        hf_model: a causal language model with any attention implementation, or the model that
            `holdfast.load` returned; after the block it is exactly as before.
        span_mask: bool [B, T], True on the tokens of the prompt to emphasise. Keys after T are
            generated.
        methods: methods that act inside a forward pass, in order, or their spec strings: one
            sequence for all rows, or one per row.
        trace: whether to fill `traces` of the yielded value.

    Raises:
        Unsteerable: the attention, or the states that a method edits, cannot be reached.
        ModelError: a method was fitted on another model.
        UsageError: the span mask is not bool [B, T] or is empty; a method does not act inside a
            pass, or names a head that the model lacks; the model already has an open block. Inside
            the block: a batch or a prompt has another size than the mask, the span is on padding, a
            cache was filled under other steering, or a pass does not belong to the block.
    """
    model = causal_model(hf_model)
    _check_span(span_mask)
    rows = _read_rows(methods, len(span_mask))
    shifting = [method for row in rows for method in row.attention]
    check_heads(model, shifting)
    with enter_scope(model, None):  # the first check may make a pass, which must not be steered
        for compiled in rows:
            check_states(model, compiled, getattr(hf_model, "fingerprint", ""))
    block = _make_block(model, rows, span_mask, trace)
    with open_block(model, block):
        check_heads(model, shifting)  # again: the first block learns which layers have attention
        yield block
    if block.num_running:
        _warn(
            f"A block of holdfast.steering on {block.name} was left while another thread generates"
            " in it, and the rest of its text is not steered; join the thread inside the block."
        )
    if not block.was_used:
        _warn(
            f"No pass of {block.name} went through this block of holdfast.steering, so it steered"
            " nothing; run the model inside it."
        )


@contextmanager
def unsteered(hf_model: PreTrainedModel) -> Iterator[None]:
    """Leaves passes of `hf_model` inside this block unsteered, even within a `steering` block."""
    with enter_scope(causal_model(hf_model), None):
        yield


def _make_block(
    model: PreTrainedModel,
    rows: Sequence[CompiledMethods],
    span: Tensor,
    trace: bool,
) -> Steered:
    spec = cut(" / ".join(dict.fromkeys(map(_spec, rows))), _MAX_SPEC)
    return Steered(
        ref(model),
        type(model).__name__,
        BatchSteering(span.to(model.device), rows, trace, covers_pass=False),
        CacheOrigin(tuple(rows), span.cpu(), spec),
        spec,
    )


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=4)  # the line where the block exits


def _spec(compiled: CompiledMethods) -> str:
    """The spec string of methods; a method without one, such as a custom class, has its name."""
    names = [
        spec_of([method]) if type(method) in METHODS else method.name for method in compiled.methods
    ]
    return "+".join(names) or spec_of(())


def causal_model(model: Any) -> PreTrainedModel:
    """Returns the Hugging Face model inside a loaded, compiled or adapted (peft) model.

    Raises:
        Unsteerable: there is none, or an adapter puts its own tokens before the prompt.
    """
    model = getattr(model, "hf_model", model)
    model = getattr(model, "_orig_mod", model)  # torch.compile
    if adapters := getattr(model, "peft_config", None):
        _check_adapters(adapters)
        if hasattr(model, "get_base_model"):
            model = model.get_base_model()
    if isinstance(model, PreTrainedModel):
        return model
    kind = type(model).__name__
    if isinstance(getattr(model, "module", None), torch.nn.Module):
        raise Unsteerable(
            f"{kind} copies or splits its model over devices; give the model inside it"
            " (model.module), on one device."
        )
    raise Unsteerable(
        "steering takes a causal language model of transformers, or the model that holdfast.load"
        f" returned, not {kind}."
    )


def _check_adapters(adapters: Any) -> None:
    """Refuses adapters that learn a prompt; `adapters` is the `peft_config` of a model."""
    for config in getattr(adapters, "values", list)():
        if getattr(config, "is_prompt_learning", False):
            kind = getattr(config.peft_type, "value", config.peft_type)
            raise Unsteerable(
                f"{kind} puts its own tokens before the prompt, which no span mask covers; steer"
                " the model without that adapter."
            )


def _read_rows(methods: Any, rows: int) -> list[CompiledMethods]:
    """Reads the methods of each row, which may be given once for all rows."""
    if not isinstance(methods, (list, tuple)):
        methods = [methods]
    nested = any(isinstance(row, (list, tuple)) for row in methods)
    if nested and len(methods) != rows:
        raise UsageError(
            f"There are {len(methods)} lists of methods for {rows} rows of the span mask; give one"
            " per row, or one for all.",
            option="methods",
            value=len(methods),
            allowed=rows,
        )
    if not nested:
        return [_read_row(methods)] * rows
    return [_read_row(row if isinstance(row, (list, tuple)) else [row]) for row in methods]


def _read_row(methods: Sequence[MethodOrSpec]) -> CompiledMethods:
    """Reads the methods of a row; refuses those that do not act inside a pass."""
    compiled = compile_methods(read_methods(methods))
    compiled.refuse_without_suite()
    if compiled.spares_replies:
        raise UsageError(
            f"{compiled.spec} finds the earlier replies of a chat itself, which a block cannot do;"
            " give pasta:alpha=FACTOR with the mask of encode_chats(..., spares_replies=True).",
            option="methods",
            value=compiled.spec,
        )
    for method in compiled.methods:
        spec = _spec(compile_methods([method]))
        if method in compiled.rehearsed:
            raise UsageError(
                f"{spec} becomes an attention method by rehearsing a reply, which a block"
                " cannot do; give the methods that model.rehearse(messages, methods) returns.",
                option="methods",
                value=method.name,
            )
        if method not in compiled.in_pass.methods:
            raise UsageError(
                f"{spec} does not act inside a forward pass, as methods of a block must; use it"
                " with holdfast.load(...).generate.",
                option="methods",
                value=method.name,
            )
    return compiled


def _check_span(span_mask: Tensor) -> None:
    """Refuses a span mask of another form, and one with a row without a span."""
    if span_mask.dtype != torch.bool or span_mask.ndim != 2:
        raise UsageError(
            "A span mask is a bool tensor [batch, token], not"
            f" {span_mask.dtype} {list(span_mask.shape)}; give it the shape of input_ids, with"
            " True on the span.",
            option="span_mask",
            value=(span_mask.dtype, tuple(span_mask.shape)),
            allowed="bool [batch, token]",
        )
    empty_rows = (~span_mask.any(1)).nonzero().flatten().tolist()
    if empty_rows or not len(span_mask):
        row = empty_rows[0] if empty_rows else 0
        raise UsageError(
            f"The span mask {list(span_mask.shape)} is empty in row {row}: encode_chats marks the"
            " system prompt, or emphasis, and a chat with neither has no span; add a system"
            " message, or set True on the tokens to steer towards.",
            option="span_mask",
            value=row,
        )


@dataclass(frozen=True)
class EncodedChats:
    """Chats as a batch for `generate()`, padded on the left.

    Args:
        input_ids: int64 [chat, token].
        attention_mask: int64 [chat, token], 0 on padding.
        span_mask: bool [chat, token], True on the tokens to emphasise.
    """

    input_ids: Tensor
    attention_mask: Tensor
    span_mask: Tensor

    @property
    def inputs(self) -> dict[str, Tensor]:
        """The model's arguments: `model.generate(**chats.inputs)`."""
        return {"input_ids": self.input_ids, "attention_mask": self.attention_mask}


def encode_chats(
    chats: Sequence[Messages],
    tokenizer: PreTrainedTokenizerFast,
    *,
    system_as: str = "role",
    emphasis: Sequence[Sequence[Part]] | None = None,
    spares_replies: bool = False,
    device: torch.device | str | None = None,
) -> EncodedChats:
    """Encodes several chats as a batch, padded on the left.

    Args:
        chats: each a sequence of messages with "role" and "content".
        tokenizer: a fast tokenizer with a chat template.
        system_as: "role", or "first-user" for models without a system role.
        emphasis: the text to emphasise in each chat, as `Request` takes it; None, or () for a chat,
            emphasises the system prompt.
        spares_replies: whether the span is instead everything but the assistant's replies, which
            `pasta` then attenuates.
        device: the device of the tensors; None is the CPU.

    Raises:
        PromptError: a chat cannot be rendered, or the emphasised text is not found in it.
        UsageError: there are no chats, a chat is malformed, or there is emphasis for another number
            of chats or beside `spares_replies`.
    """
    by_chat = [()] * len(chats) if emphasis is None else emphasis
    if not chats or len(by_chat) != len(chats):
        raise UsageError(
            f"There are {len(chats)} chats and emphasis for {len(by_chat)}; give at least one chat,"
            " and emphasis for each, () for none.",
            option="emphasis",
            value=len(by_chat),
            allowed=len(chats),
        )
    if spares_replies and any(by_chat):
        raise UsageError(
            "With spares_replies the span is everything but earlier replies, so there can be no"
            " emphasis; leave one of them out.",
            option="emphasis",
            value=list(by_chat),
        )
    requests = [  # which check the chats
        Request(chat, system_as=system_as, emphasis=parts)
        for chat, parts in zip(chats, by_chat, strict=True)
    ]
    prompts = [
        render(
            request.messages,
            tokenizer,
            system_as=request.system_as,
            emphasis=request.emphasis or None,
            spares_replies=spares_replies,
        )
        for request in requests
    ]
    pad_id = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
    return _pad(prompts, pad_id or 0, device)


def _pad(prompts: Sequence[Prompt], pad_id: int, device: torch.device | str | None) -> EncodedChats:
    """Makes a batch of prompts, padded on the left."""
    length = max(len(prompt.token_ids) for prompt in prompts)
    ids = torch.full((len(prompts), length), pad_id)
    mask = torch.zeros_like(ids)
    span = torch.zeros_like(ids, dtype=torch.bool)
    for row, prompt in enumerate(prompts):
        first = length - len(prompt.token_ids)
        ids[row, first:] = torch.tensor(prompt.token_ids)
        mask[row, first:] = 1
        span[row, first:] = torch.tensor(prompt.span_mask)
    return EncodedChats(ids.to(device), mask.to(device), span.to(device))
