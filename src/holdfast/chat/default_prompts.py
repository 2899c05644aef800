"""The system prompt that some templates insert into a chat that has none, and chats without it."""

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

_MAX_SHOWN = 200  # characters of the prompt that an error quotes
_EMPTY: Message = {"role": "system", "content": ""}


@dataclass(frozen=True)
class DefaultSystemPrompt:
    """The system prompt that a template inserts into a chat that has none.

    Args:
        text: the prompt; "" if the template inserts none.
        can_be_left_out: whether the template can render an empty system turn instead.
    """

    text: str
    can_be_left_out: bool = True


def default_system_prompt(tokenizer: PreTrainedTokenizerFast) -> DefaultSystemPrompt:
    """The system prompt that the tokenizer's chat template inserts into a chat without one."""
    split = _without_default([{"role": "user", "content": "Hello."}], tokenizer)
    return DefaultSystemPrompt(split.default, can_be_left_out=split.text is not None)


def render_without_default(
    messages: Messages, tokenizer: PreTrainedTokenizerFast, tools: Sequence[Tool] = ()
) -> str:
    """Like `render_text`, with an empty system turn in place of a default system prompt."""
    split = _without_default(messages, tokenizer, tools)
    if split.text is None:
        raise PromptError(
            f"The chat template inserts a system prompt of its own ({split.default[:_MAX_SHOWN]!r})"
            " into a chat without one, and an empty one does not replace it; guidance needs a chat"
            " without a prompt, so use another method, or change tokenizer.chat_template."
        )
    return split.text


def render_empty_system(
    messages: Messages, tokenizer: PreTrainedTokenizerFast, tools: Sequence[Tool] = ()
) -> str:
    """A chat with an empty system turn, if the template would insert its default prompt."""
    text = _without_default(messages, tokenizer, tools).text
    return render_text([_EMPTY, *messages], tokenizer, tools) if text is None else text


class _SplitChat(NamedTuple):
    """A rendered chat without the template's default system prompt, and that prompt."""

    text: str | None  # None if the default cannot be left out
    default: str  # "" if there is none


def _without_default(
    messages: Messages, tokenizer: PreTrainedTokenizerFast, tools: Sequence[Tool] = ()
) -> _SplitChat:
    text = render_text(messages, tokenizer, tools)
    if any(message["role"] == "system" for message in messages):
        return _SplitChat(text, "")
    mark = unused_character([text, *(message["content"] for message in messages)])
    try:
        marked = render_text([{"role": "system", "content": mark}, *messages], tokenizer, tools)
    except PromptError:  # no system role, so no place for a default
        return _SplitChat(text, "")
    if marked.count(mark) != 1:
        return _SplitChat(text, "")
    before, after = marked.split(mark)
    default = _added(text, before + after)
    if not default:
        return _SplitChat(text, "")
    if text.startswith(before) and text.endswith(after):
        return _SplitChat(before + after, text[len(before) : len(text) - len(after)].strip())
    empty = render_text([_EMPTY, *messages], tokenizer, tools)
    return _SplitChat(empty if empty == before + after else None, default)


def _added(text: str, other: str) -> str:
    """The part of `text` that `other` lacks; "" if `text` is `other` with a part left out."""
    first = common_length(text, other)
    last = common_length(text[first:][::-1], other[first:][::-1])
    return text[first : len(text) - last].strip()


def common_length(first: Sequence[object], other: Sequence[object]) -> int:
    """The length of the common prefix of two sequences of characters or tokens."""
    pairs = enumerate(zip(first, other, strict=False))
    differences = (index for index, (left, right) in pairs if left != right)
    return next(differences, min(len(first), len(other)))
