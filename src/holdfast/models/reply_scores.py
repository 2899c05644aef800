"""Given replies to score, as the tokens that follow a chat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerFast

from holdfast.chat.prompt import tokenize
from holdfast.chat.templates import continues_text
from holdfast.engine.rows import Stream
from holdfast.engine.scheduler import errors_named
from holdfast.errors import PromptError, PromptTooLong, UsageError, shortened
from holdfast.models.rendering import Rendered, token_at


@dataclass(frozen=True)
class ScoringInput:
    """A chat whose given replies are scored."""

    chat: Rendered
    replies: list[tuple[int, ...]]  # the tokens of each reply

    @property
    def stream(self) -> Stream:
        """The chat's tokens and span."""
        return self.chat.row.streams[0]


def scoring_inputs(
    chats: Sequence[Rendered],
    replies: Sequence[Sequence[str]],
    tokenizer: PreTrainedTokenizerFast,
    *,
    context: int | None,
    model: str,
) -> list[ScoringInput]:
    """Chats with the tokens of their replies.

    Args:
        replies: of each chat; `check_replies` comes first.
        context: tokens that the model can see; None if unknown.
        model: its name, for messages.

    Raises:
        PromptTooLong: a chat exceeds the context with its longest reply.
    """
    inputs = [
        ScoringInput(chat, token_ids)
        for chat, token_ids in zip(chats, _tokenize(chats, replies, tokenizer), strict=True)
    ]
    for given in inputs:
        _check_fits(given.chat, given.replies, context, model)
    return inputs


def check_replies(chats: int, replies: Sequence[Sequence[str]]) -> None:
    """Raises an error unless each of so many chats has replies to score, each with a text."""
    for options in replies:
        if isinstance(options, str):  # a sequence of replies to a type checker
            raise UsageError(
                f"Replies are a list, not {shortened(options)}; put it into one.",
                option="replies",
                value=options,
            )
    if len(replies) != chats:
        raise UsageError(
            f"There are {chats} chats and {len(replies)} lists of replies; give one list to each"
            " chat.",
            option="replies",
            value=len(replies),
            allowed=chats,
        )
    if any(not reply for options in replies for reply in options) or not all(replies):
        raise PromptError(
            "An empty reply ('') has no probability; give at least one reply to each chat, each"
            " with a text."
        )


def _tokenize(
    chats: Sequence[Rendered], replies: Sequence[Sequence[str]], tokenizer: PreTrainedTokenizerFast
) -> list[list[tuple[int, ...]]]:
    """The tokens of each reply after its chat; tokenized separately if tokens would merge."""
    if continues_text(tokenizer):
        replies = [[f" {reply.lstrip()}" for reply in options] for options in replies]
    token_ids: list[list[tuple[int, ...]]] = []
    for chat, options in zip(chats, replies, strict=True):
        text = chat.prompts[0].text
        joined = tokenize([text + reply for reply in options], [()] * len(options), tokenizer)
        token_ids.append([])
        for reply, prompt in zip(options, joined, strict=True):
            first = token_at(prompt, len(text))
            if first is None:
                prompt, first = tokenize([reply], [()], tokenizer)[0], 0
            token_ids[-1].append(prompt.token_ids[first:])
    return token_ids


def _check_fits(
    chat: Rendered, replies: Sequence[tuple[int, ...]], context: int | None, model: str
) -> None:
    """Raises `PromptTooLong` if a chat exceeds a model's context with the longest reply."""
    longest = chat.row.longest + max(map(len, replies))
    # A reply has no tokens if the tokenizer drops all of its characters, as some do with
    # whitespace; a chat that fills the context is refused nevertheless.
    if context and (longest > context or chat.row.longest >= context):
        with errors_named(chat.row.name):
            raise PromptTooLong(
                f"A chat and its reply take {longest} tokens, and {model} sees {context}; use a"
                " shorter chat.",
                value=longest,
                allowed=context,
            )
