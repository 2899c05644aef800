"""Messages to tokens: chat templates, the two places a system prompt can stand, and the span of tokens to hold on to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.errors import PromptError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from holdfast.chat import Message

SYSTEM_AS = ("role", "first-user")


@dataclass(frozen=True)
class Prompt:
    """A rendered chat.

    Args:
        text: as the chat template spells it, up to where the reply begins.
        token_ids: one number per token.
        span_mask: True on the tokens to hold on to: the words of the system prompt.
        starts: the character each token starts at.
    """

    text: str
    token_ids: tuple[int, ...]
    span_mask: tuple[bool, ...]
    starts: tuple[int, ...]


def place_system(messages: Sequence[Message], system_as: str) -> tuple[Message, ...]:
    """Leaves the system prompt in its role, or puts it in front of the first user message with an empty line between.

    An empty system message is taken away in both cases.

    Raises:
        PromptError: "first-user" without a user message.
    """
    system = [message for message in messages if message["role"] == "system"]
    rest = [message for message in messages if message["role"] != "system"]
    text = "\n\n".join(message["content"] for message in system if message["content"])
    if not text:
        return tuple(rest)
    if system_as == "role":
        return tuple(messages)
    for index, message in enumerate(rest):
        if message["role"] == "user":
            rest[index] = {**message, "content": f"{text}\n\n{message['content']}"}
            return tuple(rest)
    raise PromptError("There is no user message to put the system prompt in front of; add one.")


def render_text(messages: Sequence[Message], tokenizer: PreTrainedTokenizerFast) -> str:
    """The chat as the model's own template spells it, ready for the reply.

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
        return tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
    except TemplateError as error:
        raise PromptError(_template_refusal(messages, str(error))) from error


def find_span(text: str, system: str) -> tuple[int, int]:
    """First and last character (exclusive) of the system prompt in the rendered chat; (0, 0) for an empty one.

    Raises:
        PromptError: the template dropped or changed it.
    """
    words = system.strip()
    start = text.find(words)
    if start < 0:
        raise PromptError(
            f"The chat template leaves out or rewrites the system prompt {_cut(system)!r}; "
            "this model may lack a system role: put it before the first user message (system_as='first-user')."
        )
    return start, start + len(words)


def tokenize(
    texts: Sequence[str], spans: Sequence[tuple[int, int]], tokenizer: PreTrainedTokenizerFast
) -> list[Prompt]:
    """Tokens of rendered chats; a token is in the span when it holds at least one character of it."""
    encoded = tokenizer(list(texts), add_special_tokens=False, return_offsets_mapping=True, return_attention_mask=False)
    prompts = []
    for text, (first, last), ids, offsets in zip(
        texts, spans, encoded["input_ids"], encoded["offset_mapping"], strict=True
    ):
        mask = tuple(start < last and end > first for start, end in offsets)
        prompts.append(Prompt(text, tuple(ids), mask, tuple(start for start, _ in offsets)))
    return prompts


def render(
    messages: Sequence[Message], tokenizer: PreTrainedTokenizerFast, *, system_as: str = "role"
) -> Prompt:
    """Renders one chat and finds its span.

    Args:
        messages: the chat, its system message (if any) first.
        tokenizer: a fast tokenizer with a chat template.
        system_as: "role", or "first-user" for models without a system role.

    Raises:
        PromptError: the chat cannot be rendered, or the system prompt is not found in the result.
    """
    text = render_text(place_system(messages, system_as), tokenizer)
    system = next((message["content"] for message in messages if message["role"] == "system"), "")
    span = find_span(text, system) if system.strip() else (0, 0)
    return tokenize([text], [span], tokenizer)[0]


def _template_refusal(messages: Sequence[Message], reason: str) -> str:
    if "system" in reason.lower() and any(message["role"] == "system" for message in messages):
        return (
            f"The chat template has no system role ({reason}); put the system prompt before the first user message "
            "(system_as='first-user')."
        )
    return f"The chat template refuses this chat ({reason}); check that its roles alternate, beginning with the user."


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"
