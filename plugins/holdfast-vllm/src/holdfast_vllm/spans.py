"""Finds a request's span in its prompt; this module imports neither vLLM nor torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.chat.emphasis import Span
from holdfast.chat.prompt import system_spans
from holdfast.errors import PromptError, UsageError
from holdfast_vllm.wire import SPAN, TEXT, Range

_MAX_QUOTED = 60  # characters of a text in an error message


def merge_ranges(ranges: Sequence[Range]) -> tuple[Range, ...]:
    """Sorts ranges, and merges those that touch or overlap."""
    merged: list[Range] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)


def check_span(ranges: Sequence[Range], prompt: int) -> tuple[Range, ...]:
    """Checks and merges the token ranges of a request.

    Raises:
        UsageError: a range is empty, or not inside a prompt of `prompt` tokens.
    """
    for first, last in ranges:
        if not 0 <= first < last <= prompt:
            raise UsageError(
                f"{SPAN} has the part [{first}, {last}], but the prompt has {prompt} tokens,"
                " counted from 0; give the first token of each part, and the one after its last."
            )
    return merge_ranges(ranges)


def find_text(rendered: str, text: str) -> tuple[Span, ...]:
    """Finds a text in the rendered prompt; returns a span in characters.

    Raises:
        PromptError: the prompt does not contain the text exactly once.
    """
    starts = [start for start in range(len(rendered)) if rendered.startswith(text, start)]
    if len(starts) == 1:
        return ((starts[0], starts[0] + len(text)),)
    quoted = text if len(text) <= _MAX_QUOTED else text[: _MAX_QUOTED - 1] + "…"
    cure = f"give more of the text, or its tokens as {SPAN}" if starts else "copy it from there"
    raise PromptError(
        f"{TEXT} {quoted!r} occurs {len(starts)} times in the rendered prompt, not once; {cure}."
    )


def find_system_prompts(
    text: str,
    messages: Sequence[dict[str, Any]],
    template: str,
    write: Callable[[Sequence[dict[str, str]]], str],
) -> tuple[Span, ...]:
    """Finds the words of every system prompt in a rendered chat; returns spans in characters.

    Args:
        text: the rendered chat.
        messages: the chat; a content is a text, or a list of parts, of which a system prompt may
            have only one.
        template: the chat template, whose own words are not part of a system prompt.
        write: renders other messages in the same way.

    Raises:
        PromptError: there is no system prompt, it has several parts, or it cannot be found.
    """
    plain = [{"role": str(message["role"]), "content": _text_of(message)} for message in messages]
    if not any(message["role"] == "system" and message["content"].strip() for message in plain):
        raise PromptError(
            f"There is no system prompt to steer towards in this chat; add one, or give {TEXT} or"
            f" {SPAN}."
        )
    return system_spans(text, plain, template, write)


def _text_of(message: dict[str, Any]) -> str:
    """A message's content as one text.

    Raises:
        PromptError: it is a system prompt of several parts.
    """
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    texts = [part.get("text", "") for part in content if isinstance(part, dict)]
    if len(texts) == 1 or message["role"] != "system":
        return "".join(texts)
    raise PromptError(
        f"The system prompt is in {len(texts)} parts; join them into one text, or give {SPAN}."
    )


def tokens_of(spans: Sequence[Span], offsets: Sequence[Span]) -> tuple[Range, ...]:
    """Returns the tokens that contain at least one character of a span, as merged ranges.

    Args:
        spans: in characters.
        offsets: first and last character (exclusive) of every token.
    """
    return merge_ranges(
        [
            (token, token + 1)
            for token, (start, end) in enumerate(offsets)
            if any(start < last and end > first for first, last in spans)
        ]
    )
