"""Finds the system prompt that some templates insert into a chat without one, and leaves it out.

For example, Qwen2.5's template inserts "You are Qwen, created by Alibaba Cloud. You are a helpful
assistant." unless the chat has a system message, which may be empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from holdfast.chat.emphasis import unused_character
from holdfast.chat.messages import Message, Messages, Tool
from holdfast.chat.templates import render_text
from holdfast.errors import PromptError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_MAX_QUOTED = 200  # characters of the prompt in an error
_EMPTY: Message = {"role": "system", "content": ""}


@dataclass(frozen=True)
class DefaultSystemPrompt:
    """The system prompt that a template inserts into a chat without one.

    Args:
        text: the prompt; "" if the template inserts none.
        can_be_left_out: whether the template can render an empty system turn instead.
    """

    text: str
    can_be_left_out: bool = True


class _SplitChat(NamedTuple):
    """A rendered chat without the template's default system prompt, and that prompt."""

    text: str | None  # None if the template cannot leave the default out
    default: str  # "" if the template inserts none


def default_system_prompt(tokenizer: PreTrainedTokenizerFast) -> DefaultSystemPrompt:
    """Finds the system prompt that the tokenizer's template inserts into a chat without one."""
    split = _split_off_default([{"role": "user", "content": "Hello."}], tokenizer)
    return DefaultSystemPrompt(split.default, can_be_left_out=split.text is not None)


def render_without_default(
    messages: Messages, tokenizer: PreTrainedTokenizerFast, tools: Sequence[Tool] = ()
) -> str:
    """Renders a chat as `render_text` does, but without the template's default system prompt.

    Raises:
        PromptError: the template inserts its default even in place of an empty system turn.
    """
    split = _split_off_default(messages, tokenizer, tools)
    if split.text is None:
        default = split.default[:_MAX_QUOTED]
        raise PromptError(
            f"The chat template inserts a default system prompt ({default!r}) into a chat without"
            " one, and an empty one does not replace it; guidance needs a chat without a prompt,"
            " so use another method, or change tokenizer.chat_template."
        )
    return split.text


def render_empty_system(
    messages: Messages, tokenizer: PreTrainedTokenizerFast, tools: Sequence[Tool] = ()
) -> str:
    """Renders a chat without the template's default prompt or, where the template insists on that,
    with an empty system turn, whatever the template makes of it.
    """
    text = _split_off_default(messages, tokenizer, tools).text
    return render_text([_EMPTY, *messages], tokenizer, tools) if text is None else text


def _split_off_default(
    messages: Messages, tokenizer: PreTrainedTokenizerFast, tools: Sequence[Tool] = ()
) -> _SplitChat:
    """Compares a chat with the same chat under a marked system prompt: any other text that only the
    first one has is the default.
    """
    text = render_text(messages, tokenizer, tools)
    if any(message["role"] == "system" for message in messages):
        return _SplitChat(text, "")
    mark = unused_character([text, *(message["content"] for message in messages)])
    try:
        marked = render_text([{"role": "system", "content": mark}, *messages], tokenizer, tools)
    except PromptError:  # the template has no system role, so no place for a default
        return _SplitChat(text, "")
    if marked.count(mark) != 1:
        return _SplitChat(text, "")
    before, after = marked.split(mark)
    default = _find_addition(text, before + after)
    if not default:
        return _SplitChat(text, "")
    if text.startswith(before) and text.endswith(after):
        return _SplitChat(before + after, text[len(before) : len(text) - len(after)].strip())
    empty = render_text([_EMPTY, *messages], tokenizer, tools)
    return _SplitChat(empty if empty == before + after else None, default)


def _find_addition(text: str, other: str) -> str:
    """The part of `text` that `other` lacks; "" if `text` only lacks a part of `other`."""
    first = common_prefix_length(text, other)
    last = common_prefix_length(text[first:][::-1], other[first:][::-1])
    return text[first : len(text) - last].strip()


def common_prefix_length(first: Sequence[object], other: Sequence[object]) -> int:
    """The length of the common prefix of two sequences of characters or tokens."""
    pairs = enumerate(zip(first, other, strict=False))
    differences = (index for index, (left, right) in pairs if left != right)
    return next(differences, min(len(first), len(other)))
