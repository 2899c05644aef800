"""Finds a request's span in its prompt; this module imports neither vLLM nor torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.chat.emphasis import Span
from holdfast.chat.prompt import system_spans
from holdfast.errors import PromptError, UsageError
from holdfast_vllm.wire import SPAN, TEXT, Range

_SHOWN = 60  # characters of a text in an error message


def joined(ranges: Sequence[Range]) -> tuple[Range, ...]:
    """Sorts ranges, and merges those that touch or overlap."""
    apart: list[Range] = []
    for first, last in sorted(ranges):
        if apart and first <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(last, apart[-1][1]))
        else:
            apart.append((first, last))
    return tuple(apart)


def given_span(ranges: Sequence[Range], prompt: int) -> tuple[Range, ...]:
    """Checks and merges the token ranges that a request gives.

    Raises:
        UsageError: a range is empty, or not inside a prompt of `prompt` tokens.
    """
    for first, last in ranges:
        if not 0 <= first < last <= prompt:
            raise UsageError(
                f"{SPAN} has the part [{first}, {last}], and the prompt has {prompt} tokens,"
                " counted from 0; a part ends behind its first token, at most at the last."
            )
    return joined(ranges)


def text_span(text: str, wanted: str) -> tuple[Span, ...]:
    """Finds a text in the rendered prompt, in characters.

    Raises:
        PromptError: the text is not there, or in several places.
    """
    starts = [start for start in range(len(text)) if text.startswith(wanted, start)]
    if len(starts) == 1:
        return ((starts[0], starts[0] + len(wanted)),)
    shown = wanted if len(wanted) <= _SHOWN else wanted[: _SHOWN - 1] + "…"
    cure = (
        "give it as it is written there" if not starts else f"give more of it, or tokens as {SPAN}"
    )
    raise PromptError(
        f"{TEXT} {shown!r} stands {len(starts)} times in the rendered prompt, not once; {cure}."
    )


def chat_span(
    text: str,
    messages: Sequence[dict[str, Any]],
    template: str,
    write: Callable[[Sequence[dict[str, str]]], str],
) -> tuple[Span, ...]:
    """Finds the words of every system prompt in a rendered chat, in characters.

    Args:
        text: the rendered chat.
        messages: of the chat; contents are text, or lists with one text.
        template: the chat template, whose own words are not part of a system prompt.
        write: renders other messages the same way.

    Raises:
        PromptError: there is no system prompt, or it cannot be found.
    """
    plain = [{"role": str(message["role"]), "content": _words(message)} for message in messages]
    if not any(message["role"] == "system" and message["content"].strip() for message in plain):
        raise PromptError(
            f"There is no system prompt to steer towards in this chat; add one, or give {TEXT} or"
            f" {SPAN}."
        )
    return system_spans(text, plain, template, write)


def _words(message: dict[str, Any]) -> str:
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
    """The tokens that contain at least one character of a span.

    Args:
        spans: in characters.
        offsets: first and last character (exclusive) of every token.
    """
    return joined(
        [
            (token, token + 1)
            for token, (start, end) in enumerate(offsets)
            if any(start < last and end > first for first, last in spans)
        ]
    )
