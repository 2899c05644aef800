"""Renders chats as text and as tokens, with their spans: the words of the system prompts, the
emphasised text, or everything but the assistant's replies.

For example, a template writes the system prompt "Be kind." and the message "Hello." as

    <|system|>Be kind.<|user|>Hello.<|assistant|>

where "Be kind." is the span. `rendered_chat` finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from holdfast.chat import default_prompts, templates
from holdfast.chat.emphasis import Part, Span, put_marks, resolve, unused_character
from holdfast.chat.lost_messages import check_kept, check_tools
from holdfast.chat.messages import Message, Messages, Tool, check_system_as, uses_tools
from holdfast.chat.rendered_chat import RenderedChat, emphasised_spans
from holdfast.errors import NoSystemRole, PromptError, option, shortened

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class RenderedText(NamedTuple):
    """A rendered chat as text."""

    text: str  # up to where the reply begins
    # the words of every system prompt, the emphasis, or all but the assistant's replies
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True)
class Prompt:
    """A rendered chat as tokens.

    Args:
        text: the rendered text, up to where the reply begins.
        token_ids: its tokens.
        span_mask: True on the tokens to emphasise: the words of every system prompt, or the
            emphasis.
        starts: the character in `text` at which each token begins.
        spans: the emphasised parts as ranges of characters.
    """

    text: str
    token_ids: tuple[int, ...]
    span_mask: tuple[bool, ...]
    starts: tuple[int, ...]
    spans: tuple[Span, ...] = ()


def render(
    messages: Messages,
    tokenizer: PreTrainedTokenizerFast,
    *,
    system_as: str = "role",
    emphasis: Sequence[Part] | None = None,
    spares_replies: bool = False,
    tools: Sequence[Tool] = (),
) -> Prompt:
    """Renders one chat and finds its spans; see `render_with_spans`."""
    rendered = render_with_spans(
        messages,
        tokenizer,
        system_as=system_as,
        emphasis=emphasis,
        spares_replies=spares_replies,
        tools=tools,
    )
    return tokenize([rendered], tokenizer)[0]


def render_with_spans(
    messages: Messages,
    tokenizer: PreTrainedTokenizerFast,
    *,
    system_as: str = "role",
    emphasis: Sequence[Part] | None = None,
    spares_replies: bool = False,
    default_system: bool = True,
    tools: Sequence[Tool] = (),
) -> RenderedText:
    """Renders the chat with the model's own template, ready for the reply, and finds the spans of
    the system prompts or of the emphasis in it.

    Finds every system message, wherever the template puts it. The chat is rendered a second time,
    with marks around the words in question, if it has emphasis, or if the words of a system prompt
    might also come from elsewhere (another message, the template itself, a tool).

    An empty system message means no system prompt at all: if the template would insert its default
    prompt, an empty system turn replaces it, provided that the template can render one.

    Args:
        system_as: "role", or "first-user" for models without a system role.
        emphasis: the emphasised parts: texts, (text, occurrence from 1) or (message from 0, first,
            last character); None emphasises the system prompts.
        spares_replies: whether the spans are instead everything but the assistant's replies.
        default_system: False leaves out the default system prompt that some templates insert.
        tools: the tools that the chat declares; their declarations are never part of a span.

    Raises:
        PromptError: the chat cannot be rendered, or the template leaves out or rewrites a message,
            emphasised text, or part of the tools.
        UsageError: `system_as` is unknown.
    """
    chat = _placed_chat(messages, system_as)
    render_text = _choose_renderer(messages, chat, default_system=default_system)

    def write(any_messages: Messages) -> str:
        return render_text(any_messages, tokenizer, tools)

    rendering = RenderedChat(
        text=write(chat.messages),
        messages=chat.messages,
        template=str(tokenizer.chat_template),
        write=write,
        with_tools=bool(tools) or uses_tools(chat.messages),
    )
    if rendering.with_tools:
        check_tools(chat.messages, tokenizer, tools)
    if emphasis is not None:
        spans = _spans_of_emphasis(rendering, messages, emphasis, system_as)
    else:
        spans = _spans_of_system(rendering, chat.system_words, system_as)
    check_kept(
        rendering.text,
        chat.messages,
        rendering.template,
        write,
        tools_checked=rendering.with_tools,
    )
    if spares_replies and emphasis is None:
        spans = _spans_beside_replies(rendering)
    return RenderedText(rendering.text, spans)


def system_spans(
    text: str, messages: Messages, template: str, write: Callable[[Messages], str]
) -> tuple[Span, ...]:
    """Finds the spans of all system prompts, in order, in a chat that was rendered elsewhere.

    Args:
        text: the rendered chat.
        messages: the chat.
        template: the source of the chat template, whose own words are not a system prompt.
        write: renders other messages the same way.

    Raises:
        PromptError: the template leaves out or rewrites a system prompt.
    """
    chat = _placed_chat(messages, "role")
    rendering = RenderedChat(text, chat.messages, template, write)
    return _spans_of_system(rendering, chat.system_words, "role")


def tokenize(texts: Sequence[RenderedText], tokenizer: PreTrainedTokenizerFast) -> list[Prompt]:
    """Tokenizes rendered chats; a token is in a span if it covers a character of it."""
    encoded = tokenizer(
        [text for text, _ in texts],
        add_special_tokens=False,
        return_offsets_mapping=True,
        return_attention_mask=False,
    )
    prompts = []
    for (text, spans), ids, offsets in zip(
        texts, encoded["input_ids"], encoded["offset_mapping"], strict=True
    ):
        mask = [False] * len(offsets)
        for first, last in spans:
            for index, (start, end) in enumerate(offsets):
                if start < last and end > first:
                    mask[index] = True
        starts = tuple(start for start, _ in offsets)
        prompts.append(Prompt(text, tuple(ids), tuple(mask), starts, spans))
    return prompts


def place_system(messages: Messages, system_as: str) -> tuple[Message, ...]:
    """Leaves the system prompt in its role, or puts it before the first user message with an empty
    line in between.

    Removes an empty prompt; `render_with_spans` then keeps the template from inserting its default.
    """
    return _placed_chat(messages, system_as).messages


@dataclass(frozen=True)
class _PlacedChat:
    """A chat whose system prompt is where the model is to read it."""

    messages: tuple[Message, ...]
    system_words: dict[int, str]  # of each system prompt, by the number of its message


def _placed_chat(messages: Messages, system_as: str) -> _PlacedChat:
    """Places the system prompt as `place_system` describes, and notes its words."""
    check_system_as(system_as)
    rest = [message for message in messages if message["role"] != "system"]
    text = "\n\n".join(
        message["content"]
        for message in messages
        if message["role"] == "system" and message["content"]
    )
    if not text:
        return _PlacedChat(tuple(rest), {})
    if system_as == "role":
        system_words = {
            index: message["content"].strip()
            for index, message in enumerate(messages)
            if message["role"] == "system" and message["content"].strip()
        }
        return _PlacedChat(tuple(messages), system_words)
    for index, message in enumerate(rest):
        if message["role"] == "user":
            rest[index] = {**message, "content": f"{text}\n\n{message['content']}"}
            system_words = {index: text.strip()} if text.strip() else {}
            return _PlacedChat(tuple(rest), system_words)
    raise PromptError("There is no user message to put the system prompt before; add one.")


def _choose_renderer(
    messages: Messages, chat: _PlacedChat, *, default_system: bool
) -> Callable[[Messages, PreTrainedTokenizerFast, Sequence[Tool]], str]:
    """Chooses how the template is kept from inserting its default system prompt, if it has to be.

    Args:
        messages: the chat.
        chat: the same chat with its system prompt placed.
        default_system: whether the template may insert its default.
    """
    if not default_system:
        return default_prompts.render_without_default
    had_system = any(message["role"] == "system" for message in messages)
    if had_system and not chat.system_words and len(chat.messages) < len(messages):  # it was empty
        return default_prompts.render_empty_system
    return templates.render_text


def _spans_of_system(
    rendering: RenderedChat, system_words: Mapping[int, str], system_as: str
) -> tuple[Span, ...]:
    """Finds the spans of the system prompts."""
    spans = rendering.find(system_words)
    if spans is None:
        raise _lost_system_prompt(system_words, system_as)
    return spans


def _spans_beside_replies(rendering: RenderedChat) -> tuple[Span, ...]:
    """Finds the spans of everything but the assistant's replies."""
    words_of_replies = {
        number: message["content"].strip()
        for number, message in enumerate(rendering.messages)
        if message["role"] == "assistant" and message["content"].strip()
    }
    replies = rendering.find(words_of_replies)
    if replies is None:
        raise PromptError(
            "The chat template leaves out or rewrites an earlier reply, so its attention cannot"
            " be attenuated; use another method."
        )
    edges = [0, *(edge for reply in replies for edge in reply), len(rendering.text)]
    gaps = zip(edges[::2], edges[1::2], strict=True)
    return tuple((first, last) for first, last in gaps if first < last)


def _spans_of_emphasis(
    rendering: RenderedChat, messages: Messages, emphasis: Sequence[Part], system_as: str
) -> tuple[Span, ...]:
    """Finds the emphasised parts of a chat, by a rendering with marks.

    Args:
        messages: the chat before its system prompt was placed.
    """
    ranges = resolve(messages, emphasis)
    mark = unused_character([rendering.text, *(message["content"] for message in messages)])
    marked = place_system(put_marks(messages, ranges, mark), system_as)
    pieces = rendering.write(marked).split(mark)
    return emphasised_spans(rendering.text, messages, ranges, pieces)


def _lost_system_prompt(system_words: Mapping[int, str], system_as: str) -> PromptError:
    """The error for a template that does not keep the system prompts."""
    prompts = " or ".join(dict.fromkeys(shortened(prompt) for prompt in system_words.values()))
    problem = f"The chat template leaves out or rewrites the system prompt {prompts}"
    if system_as == "role":
        return NoSystemRole(
            f"{problem}; this model may lack a system role: put it before the first user message"
            f" ({option('system_as', 'first-user')})."
        )
    return PromptError(f"{problem}; use a model whose template leaves messages as they are.")
