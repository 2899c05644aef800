"""Renders chats as text and as tokens, and finds the spans of their system prompts, or of
everything but the assistant's replies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from holdfast.chat import default_prompts, templates
from holdfast.chat.emphasis import (
    Part,
    Span,
    TextRange,
    put_marks,
    resolve,
    spans_between,
    unused_character,
)
from holdfast.chat.lost_messages import check_kept
from holdfast.chat.messages import Message, Messages, Tool, check_system_as, uses_tools
from holdfast.chat.nearest import find_nearest
from holdfast.errors import NoSystemRole, PromptError, option, shortened

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


# characters; a template may write a shorter text, such as a number, by chance
_MIN_DISTINCTIVE = 8


class RenderedText(NamedTuple):
    """A rendered chat as text."""

    text: str  # up to where the reply begins
    # the words of every system prompt, the emphasis, or all but the assistant's replies
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True)
class _PlacedChat:
    """A chat whose system prompt is where the model is to read it."""

    messages: tuple[Message, ...]
    words: dict[int, str]  # the words of each system prompt, by the number of its message


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


def place_system(messages: Messages, system_as: str) -> tuple[Message, ...]:
    """Leaves the system prompt in its role, or puts it before the first user message with an empty
    line in between.

    Removes an empty prompt; `render_with_spans` then keeps the template from inserting its default.
    """
    return _place_system(messages, system_as).messages


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
    chat = _place_system(messages, system_as)
    placed = chat.messages
    render_text = _renderer(messages, chat, default_system=default_system)
    template = str(tokenizer.chat_template)

    def write(any_messages: Messages) -> str:
        return render_text(any_messages, tokenizer, tools)

    text = write(placed)
    with_tools = bool(tools) or uses_tools(placed)
    if with_tools:
        templates.check_tools(placed, tokenizer, tools)
    spans: tuple[Span, ...] | None
    if emphasis is not None:
        spans = _spans_of_emphasis(text, messages, emphasis, system_as, write)
    else:
        spans = _find(text, placed, chat.words, template, write, with_tools=with_tools)
        if spans is None:
            raise _lost_system_prompt(chat.words, system_as)
    check_kept(text, placed, template, write, tools_checked=with_tools)
    if spares_replies and emphasis is None:
        replies = _words_of_replies(placed)
        reply_spans = _find(text, placed, replies, template, write, with_tools=with_tools)
        if reply_spans is None:
            raise PromptError(
                "The chat template leaves out or rewrites an earlier reply, so its attention cannot"
                " be attenuated; use another method."
            )
        spans = _everything_but(reply_spans, len(text))
    return RenderedText(text, spans)


def _renderer(
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
    if had_system and not chat.words and len(chat.messages) < len(messages):  # it was empty
        return default_prompts.render_empty_system
    return templates.render_text


def _spans_of_emphasis(
    text: str,
    messages: Messages,
    emphasis: Sequence[Part],
    system_as: str,
    write: Callable[[Messages], str],
) -> tuple[Span, ...]:
    """Finds the emphasised parts of a chat in its rendered text, by a rendering with marks."""
    ranges = resolve(messages, emphasis)
    mark = unused_character([text, *(message["content"] for message in messages)])
    with_marks = place_system(put_marks(messages, ranges, mark), system_as)
    return _find_emphasis(text, messages, ranges, write(with_marks).split(mark))


def _words_of_replies(placed: Messages) -> dict[int, str]:
    """The words of the assistant's messages, by the number of the message."""
    return {
        index: message["content"].strip()
        for index, message in enumerate(placed)
        if message["role"] == "assistant" and message["content"].strip()
    }


def _everything_but(parts: Sequence[Span], length: int) -> tuple[Span, ...]:
    """The spans of a text of this many characters that are in none of its parts."""
    edges = [0, *(edge for part in parts for edge in part), length]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return tuple((first, last) for first, last in pairs if first < last)


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
    chat = _place_system(messages, "role")
    spans = _find(text, chat.messages, chat.words, template, write)
    if spans is None:
        raise _lost_system_prompt(chat.words, "role")
    return spans


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


def _place_system(messages: Messages, system_as: str) -> _PlacedChat:
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
        prompts = {
            index: message["content"].strip()
            for index, message in enumerate(messages)
            if message["role"] == "system" and message["content"].strip()
        }
        return _PlacedChat(tuple(messages), prompts)
    for index, message in enumerate(rest):
        if message["role"] == "user":
            rest[index] = {**message, "content": f"{text}\n\n{message['content']}"}
            words = {index: text.strip()} if text.strip() else {}
            return _PlacedChat(tuple(rest), words)
    raise PromptError("There is no user message to put the system prompt before; add one.")


def _find(
    text: str,
    placed: Messages,
    words: dict[int, str],
    template: str,
    write: Callable[[Messages], str],
    *,
    with_tools: bool = False,
) -> tuple[Span, ...] | None:
    """Finds the spans of words, given by message number; None if some are not found.

    With tools, which may have the same words, the text is always rendered again with marks.
    """
    spans = None
    if not (with_tools and words):
        spans = _find_certain(text, placed, words, template)
    return _find_marked(text, placed, words, write) if spans is None else spans


def _find_certain(
    text: str, placed: Messages, words: dict[int, str], template: str
) -> tuple[Span, ...] | None:
    """Finds the spans of prompts that no other part of the text can have produced.

    None if that is not certain for one of them.
    """
    spans = []
    for index, prompt in words.items():
        others = [message for other, message in enumerate(placed) if other != index]
        if (
            len(prompt) < _MIN_DISTINCTIVE
            or any(prompt in message["content"] for message in others)
            or any(prompt in message["role"] for message in placed)
            or prompt in template
            or text.count(prompt) != 1
        ):
            return None
        start = text.index(prompt)
        spans.append((start, start + len(prompt)))
    return tuple(sorted(spans))


def _find_marked(
    text: str, placed: Messages, words: dict[int, str], write: Callable[[Messages], str]
) -> tuple[Span, ...] | None:
    """Finds the spans in a second rendering with marks around the prompts.

    None if the marks change other text as well, or do not enclose exactly the prompts.
    """
    mark = unused_character([text, *(message["content"] for message in placed)])
    marked = list(placed)
    for index, prompt in words.items():
        before, after = placed[index]["content"].split(prompt, 1)
        marked[index] = {**placed[index], "content": f"{before}{mark}{prompt}{mark}{after}"}
    pieces = write(marked).split(mark)
    prompts = Counter(words.values())
    between_marks = Counter(pieces[1::2])
    if (
        "".join(pieces) != text
        or len(pieces) % 2 == 0
        or not prompts <= between_marks
        or between_marks.keys() != prompts.keys()
    ):
        return None
    return tuple(spans_between(pieces))


def _find_emphasis(
    text: str, messages: Messages, ranges: Sequence[TextRange], pieces: Sequence[str]
) -> tuple[Span, ...]:
    """Finds the emphasised texts, each of them once, in a rendering that was split at its marks.

    Raises:
        PromptError: the template repeats, leaves out or rewrites an emphasised text.
    """
    emphasised = Counter(messages[number]["content"][first:last] for number, first, last in ranges)
    between_marks = Counter(pieces[1::2])
    if "".join(pieces) == text and len(pieces) % 2 and emphasised == between_marks:
        return tuple(spans_between(pieces))
    for words, count in between_marks.items():
        if len(pieces) % 2 and count > emphasised[words] > 0:
            raise PromptError(
                f"The chat template repeats the emphasised {shortened(words)}; use a model whose"
                " template leaves messages as they are.",
                option="emphasis",
                value=words,
            )
    missing = (words for words, count in emphasised.items() if between_marks[words] < count)
    lost = next(missing, next(iter(emphasised)))
    near = find_nearest(lost, [text])
    hint = f"; the nearest in the rendered prompt is {shortened(near)}" if near else ""
    raise PromptError(
        f"The chat template leaves out or rewrites the emphasised {shortened(lost)}{hint};"
        " use a model whose template leaves messages as they are.",
        option="emphasis",
        value=lost,
        allowed=near,
    )


def _lost_system_prompt(words: dict[int, str], system_as: str) -> PromptError:
    """The error for a template that does not keep the system prompts."""
    prompts = " or ".join(dict.fromkeys(shortened(prompt) for prompt in words.values()))
    problem = f"The chat template leaves out or rewrites the system prompt {prompts}"
    if system_as == "role":
        return NoSystemRole(
            f"{problem}; this model may lack a system role: put it before the first user message"
            f" ({option('system_as', 'first-user')})."
        )
    return PromptError(f"{problem}; use a model whose template leaves messages as they are.")
