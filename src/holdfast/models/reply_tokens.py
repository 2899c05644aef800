"""The tokens of replies: those that a dialog comes with, and those of given texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.chat.prompt import tokenize
from holdfast.chat.templates import continues_text
from holdfast.errors import PromptError
from holdfast.models.rendering import CachedDialog, Rendered, all_rendered, render
from holdfast.models.requests import Request

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def known_replies(request: Request, tokenizer: PreTrainedTokenizerFast) -> tuple[CachedDialog, ...]:
    """A dialog whose replies come with their tokens: each is put behind the chat that it answered,
    as a thread would have done.

    Raises:
        PromptError: tokens that spell another text, or a chat that cannot be rendered.
    """
    known: tuple[CachedDialog, ...] = ()
    for number, token_ids in request.spelled:
        reply = request.messages[number]["content"]
        text = str(tokenizer.decode(list(token_ids), skip_special_tokens=True))
        if text != reply:
            raise PromptError(
                f"The tokens of message {number} spell {text[:60]!r}, and it says {reply[:60]!r};"
                " leave them out."
            )
        emphasis = tuple(part for part in request.emphasis if part[0] < number)
        answered = replace(
            request, messages=request.messages[:number], emphasis=emphasis, spelled=()
        )
        (before,) = all_rendered(render([answered], [""], [known], tokenizer, traces=False))
        known = before.known((), token_ids, reply)
    return known


def spell_replies(
    chats: Sequence[Rendered],
    replies: Sequence[Sequence[str]],
    tokenizer: PreTrainedTokenizerFast,
) -> list[list[tuple[int, ...]]]:
    """The tokens of each reply behind its chat; by itself where no token of the two together
    begins with the reply. A reply that continues a text is behind a space.

    Raises:
        PromptError: a reply is empty, or a chat has none.
    """
    if any(not reply for options in replies for reply in options) or not all(replies):
        raise PromptError(
            "An empty reply ('') has no probability; give at least one reply to each chat, each"
            " with a text."
        )
    if continues_text(tokenizer):
        replies = [[f" {reply.lstrip()}" for reply in options] for options in replies]
    texts = [
        chat.texts[0] + reply
        for chat, options in zip(chats, replies, strict=True)
        for reply in options
    ]
    joined = iter(tokenize(texts, [()] * len(texts), tokenizer))
    token_ids: list[list[tuple[int, ...]]] = []
    for chat, options in zip(chats, replies, strict=True):
        token_ids.append([])
        boundary = len(chat.texts[0])
        for reply in options:
            prompt = next(joined)
            starts = enumerate(prompt.starts)
            first = next((index for index, start in starts if start >= boundary), None)
            if first is None or prompt.starts[first] != boundary:
                prompt, first = tokenize([reply], [()], tokenizer)[0], 0
            token_ids[-1].append(prompt.token_ids[first:])
    return token_ids
