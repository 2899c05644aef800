"""Chats as tensors for a Hugging Face model that one already has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from holdfast.chat.emphasis import Part
from holdfast.chat.messages import Message, shortened
from holdfast.chat.prompt import render
from holdfast.errors import UsageError
from holdfast.models.requests import Request

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


@dataclass(frozen=True)
class EncodedChats:
    """Chats as a batch for `generate()`, padded on the left.

    Args:
        input_ids: int64 [chat, token].
        attention_mask: int64 [chat, token], 0 on padding.
        span_mask: bool [chat, token], True on the tokens to hold on to.
    """

    input_ids: Tensor
    attention_mask: Tensor
    span_mask: Tensor

    @property
    def inputs(self) -> dict[str, Tensor]:
        """The model's arguments: `model.generate(**chats.inputs)`."""
        return {"input_ids": self.input_ids, "attention_mask": self.attention_mask}


def encode_chats(
    chats: Sequence[Sequence[Message]],
    tokenizer: PreTrainedTokenizerFast,
    *,
    system_as: str = "role",
    emphasis: Sequence[Sequence[Part]] | None = None,
    device: torch.device | str | None = None,
) -> EncodedChats:
    """The ids, the attention mask and the span mask of several chats, padded on the left.

    Args:
        chats: each a sequence of messages with "role" and "content".
        tokenizer: a fast tokenizer with a chat template.
        system_as: "role", or "first-user" for models without a system role.
        emphasis: per chat, what to hold on to, as `Request` takes it; None or an empty sequence:
            the system prompt.
        device: of the tensors; None: the CPU.

    Raises:
        PromptError: a chat cannot be rendered, or what is emphasised is not found.
        UsageError: no chats, a malformed one, or emphasis for another number of chats.
    """
    if chats and all(isinstance(chat, dict) for chat in chats):
        raise UsageError(
            f"encode_chats takes a list of chats, and this is one chat, which begins with"
            f" {shortened(chats[0])}; give it as [chat]."
        )
    parts = [()] * len(chats) if emphasis is None else emphasis
    if not chats or len(parts) != len(chats):
        raise UsageError(
            f"There are {len(chats)} chats and emphasis for {len(parts)}; give at least one chat, "
            "and each its emphasis, () for none."
        )
    requests = [
        Request(chat, system_as=system_as, emphasis=part)
        for chat, part in zip(chats, parts, strict=True)
    ]
    prompts = [
        render(chat.messages, tokenizer, system_as=chat.system_as, emphasis=chat.emphasis or None)
        for chat in requests
    ]
    length = max(len(prompt.token_ids) for prompt in prompts)
    padding = (
        tokenizer.pad_token_id
        if tokenizer.pad_token_id is not None
        else tokenizer.eos_token_id or 0
    )
    ids = torch.full((len(prompts), length), padding)
    mask, span = torch.zeros_like(ids), torch.zeros_like(ids, dtype=torch.bool)
    for row, prompt in enumerate(prompts):
        first = length - len(prompt.token_ids)
        ids[row, first:], mask[row, first:] = torch.tensor(prompt.token_ids), 1
        span[row, first:] = torch.tensor(prompt.span_mask)
    return EncodedChats(ids.to(device), mask.to(device), span.to(device))
