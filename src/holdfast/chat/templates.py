"""Chats as a model's own template spells them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.chat.emphasis import unused_character
from holdfast.chat.messages import Message
from holdfast.errors import PromptError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_REASON = 200  # characters of a template's own refusal that are told

# Some templates write today's date into the prompt, which would change replies from day to day.
# Here today is always midnight of 26 July 2024, on which Llama 3's templates fall back where they
# are told no date.
TODAY = {
    "%a": "Fri", "%A": "Friday", "%u": "5", "%w": "5", "%d": "26", "%-d": "26", "%e": "26",
    "%j": "208", "%b": "Jul", "%B": "July", "%m": "07", "%-m": "7", "%y": "24", "%Y": "2024",
    "%F": "2024-07-26", "%D": "07/26/24", "%H": "00", "%-H": "0", "%I": "12", "%-I": "12",
    "%M": "00", "%-M": "0", "%S": "00", "%-S": "0", "%p": "AM", "%T": "00:00:00", "%R": "00:00",
    "%Z": "", "%z": "",
}  # fmt: skip
# In place of transformers' function of that name: a macro, for what is given to a template may not
# be a function. The end of the line belongs to the block, so the template behind it starts as it
# did.
_CLOCK = (
    "{% macro strftime_now(format) %}{{ format"
    + "".join(f"|replace('{code}', '{value}')" for code, value in TODAY.items())
    + " }}{% endmacro %}\n"
)


def render_text(messages: Sequence[Message], tokenizer: PreTrainedTokenizerFast) -> str:
    """The chat as the model's own template spells it, ready for the reply; its clock stands still
    at `TODAY`.

    Raises:
        PromptError: the tokenizer has no chat template, or the template refuses the chat.
    """
    from jinja2 import TemplateError

    if not tokenizer.chat_template:
        raise PromptError(
            f"{tokenizer.name_or_path or 'This model'} has no chat template (a base model?); "
            "use a chat model, or set tokenizer.chat_template."
        )
    try:
        template = tokenizer.get_chat_template()
        if "strftime_now" in template:
            template = _CLOCK + template
        text = tokenizer.apply_chat_template(
            list(messages), chat_template=template, tokenize=False, add_generation_prompt=True
        )
        return str(text)
    except RecursionError:
        raise PromptError(
            f"The chat template of {tokenizer.name_or_path or 'this model'} calls itself without "
            "end; set tokenizer.chat_template to one that ends, or use another model."
        ) from None
    except Exception as error:  # a template is a program: dividing by zero is no TemplateError
        kind = "" if isinstance(error, TemplateError) else f"{type(error).__name__}: "
        raise PromptError(_template_refusal(messages, f"{kind}{error}"[:_REASON])) from error


def render_without_default(messages: Sequence[Message], tokenizer: PreTrainedTokenizerFast) -> str:
    """As `render_text`, but where the template fills in a system prompt of its own, nothing is."""
    text = render_text(messages, tokenizer)
    if any(message["role"] == "system" for message in messages):
        return text
    mark = unused_character([text, *(message["content"] for message in messages)])
    try:
        marked = render_text([{"role": "system", "content": mark}, *messages], tokenizer)
    except PromptError:  # no system role, so no place for a default
        return text
    if marked.count(mark) != 1:
        return text
    before, after = marked.split(mark)
    if not _adds(text, before + after):
        return text
    if not text.startswith(before) or not text.endswith(after):
        raise PromptError(
            "The chat template puts a system prompt of its own into a chat without one, which "
            "guidance has to read; use another method, or change tokenizer.chat_template."
        )
    return before + after


def _adds(text: str, other: str) -> bool:
    """Whether `text` has words that `other` has not: it is not `other` with a part left out."""
    first = _common(text, other)
    last = _common(text[first:][::-1], other[first:][::-1])
    return bool(text[first : len(text) - last].strip())


def _common(text: str, other: str) -> int:
    """How many first characters two texts share."""
    pairs = enumerate(zip(text, other, strict=False))
    apart = (index for index, (left, right) in pairs if left != right)
    return next(apart, min(len(text), len(other)))


def _template_refusal(messages: Sequence[Message], reason: str) -> str:
    if "system" in reason.lower() and any(message["role"] == "system" for message in messages):
        return (
            f"The chat template has no system role ({reason}); put the system prompt before the"
            " first user message (--system-as=first-user)."
        )
    return (
        f"The chat template refuses this chat ({reason}); check that its roles alternate, beginning"
        " with the user."
    )
