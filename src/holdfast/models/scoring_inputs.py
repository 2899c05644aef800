"""Prepares the input of scoring: chats, and the tokens of given replies after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerFast

from holdfast.chat.prompt import Prompt, RenderedText, tokenize
from holdfast.chat.templates import continues_text
from holdfast.errors import PromptError, PromptTooLong, UsageError, shortened
from holdfast.generation.request_errors import name_errors
from holdfast.generation.token_requests import TokenPrompt
from holdfast.models.rendering import RenderedRequest, token_at


@dataclass(frozen=True)
class ScoringInput:
    """A chat, and the tokens of the replies to score after it."""

    rendered: RenderedRequest
    replies: tuple[tuple[int, ...], ...]  # the tokens of each reply, at least one

    @property
    def prompt(self) -> TokenPrompt:
        """The chat's tokens and span."""
        return self.rendered.token_request.prompts[0]


def check_replies(chats: int, replies: Sequence[Sequence[str]]) -> None:
    """Refuses replies that do not fit this number of chats.

    Raises:
        UsageError: there is not one list of replies for each chat, or a list is empty.
        PromptError: a reply is empty.
    """
    if len(replies) != chats:
        raise UsageError(
            f"There are {chats} chats and {len(replies)} lists of replies; give one list to each"
            " chat.",
            option="replies",
            value=len(replies),
            allowed=chats,
        )
    for number, options in enumerate(replies, 1):
        if isinstance(options, str):  # for a type checker, a sequence of replies
            raise UsageError(
                f"Replies are a list, not {shortened(options)}; put it into one.",
                option="replies",
                value=options,
            )
        if not options:
            raise UsageError(
                f"Chat {number} of {chats} has no replies to score; give at least one.",
                option="replies",
                value=options,
            )
        if "" in options:
            raise PromptError(
                f"An empty reply ('') has no probability; give each reply to chat {number} of"
                f" {chats} a text.",
                option="replies",
                value="",
            )


def scoring_inputs(
    requests: Sequence[RenderedRequest],
    replies: Sequence[Sequence[str]],
    tokenizer: PreTrainedTokenizerFast,
    *,
    context: int | None,
    model: str,
) -> list[ScoringInput]:
    """Tokenizes the replies to each chat.

    Args:
        requests: the chats.
        replies: the replies to each chat, as `check_replies` accepts them.
        tokenizer: the model's tokenizer.
        context: the number of tokens that the model can see; None if unknown.
        model: the model's name, for error messages.

    Raises:
        PromptError: a reply has no tokens.
        PromptTooLong: a chat exceeds the context with its longest reply.
    """
    inputs = []
    for rendered, options in zip(requests, replies, strict=True):
        with name_errors(rendered.request.name):
            scoring = ScoringInput(rendered, _reply_token_ids(rendered, options, tokenizer))
            _check_fits(scoring, context, model)
            inputs.append(scoring)
    return inputs


def _reply_token_ids(
    rendered: RenderedRequest, replies: Sequence[str], tokenizer: PreTrainedTokenizerFast
) -> tuple[tuple[int, ...], ...]:
    """Tokenizes the replies to a chat."""
    if continues_text(tokenizer):
        replies = [f" {reply.lstrip()}" for reply in replies]
    text = rendered.prompts[0].text
    prompts = tokenize([RenderedText(text + reply) for reply in replies], tokenizer)
    return tuple(
        _tokens_after(text, reply, prompt, tokenizer)
        for reply, prompt in zip(replies, prompts, strict=True)
    )


def _tokens_after(
    text: str, reply: str, with_reply: Prompt, tokenizer: PreTrainedTokenizerFast
) -> tuple[int, ...]:
    """The tokens of a reply after a text.

    If a token spans the boundary, the reply is tokenized alone.
    """
    first = token_at(with_reply, len(text))
    if first is None:
        (alone,) = tokenize([RenderedText(reply)], tokenizer)
        token_ids = alone.token_ids
    else:
        token_ids = with_reply.token_ids[first:]
    if not token_ids:  # some tokenizers drop whitespace and control characters
        raise PromptError(
            f"The reply {reply!r} has no tokens, and so no probability; give it a text.",
            option="replies",
            value=reply,
        )
    return token_ids


def _check_fits(scoring: ScoringInput, context: int | None, model: str) -> None:
    """Raises a `PromptTooLong` if a chat and its longest reply exceed the context."""
    longest = scoring.rendered.token_request.max_prompt_len + max(map(len, scoring.replies))
    if context and longest > context:
        raise PromptTooLong(
            f"A chat and its reply take {longest} tokens, and {model} sees {context}; use a"
            " shorter chat.",
            value=longest,
            allowed=context,
        )
