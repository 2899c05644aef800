"""The tokens of given replies behind their chats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.chat.prompt import tokenize
from holdfast.errors import PromptError
from holdfast.models.rendering import Rendered

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def spell_replies(
    asked: Sequence[Rendered],
    replies: Sequence[Sequence[str]],
    tokenizer: PreTrainedTokenizerFast,
) -> list[list[tuple[int, ...]]]:
    """The tokens of each reply behind its chat; by itself where no token of the two together
    begins with the reply.

    Raises:
        PromptError: a reply is empty, or a chat has none.
    """
    if any(not reply for options in replies for reply in options) or not all(replies):
        raise PromptError(
            "An empty reply ('') has no probability; give at least one reply to each chat, each"
            " with a text."
        )
    texts = [
        each.texts[0] + reply
        for each, options in zip(asked, replies, strict=True)
        for reply in options
    ]
    joined = iter(tokenize(texts, [()] * len(texts), tokenizer))
    spelled: list[list[tuple[int, ...]]] = []
    for each, options in zip(asked, replies, strict=True):
        spelled.append([])
        boundary = len(each.texts[0])
        for reply in options:
            prompt = next(joined)
            starts = enumerate(prompt.starts)
            first = next((index for index, start in starts if start >= boundary), None)
            if first is None or prompt.starts[first] != boundary:
                prompt, first = tokenize([reply], [()], tokenizer)[0], 0
            spelled[-1].append(prompt.token_ids[first:])
    return spelled
