"""Dialogs that come with the tokens of their replies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.errors import PromptError
from holdfast.models.rendering import Known, all_rendered, render
from holdfast.models.requests import Request

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def known_replies(request: Request, tokenizer: PreTrainedTokenizerFast) -> tuple[Known, ...]:
    """What is known of a dialog whose replies come with their tokens: each is put behind the chat
    that it answered, as a thread would have done.

    Raises:
        PromptError: tokens that spell another text, or a chat that cannot be rendered.
    """
    known: tuple[Known, ...] = ()
    for place, token_ids in request.spelled:
        reply = request.messages[place]["content"]
        told = str(tokenizer.decode(list(token_ids), skip_special_tokens=True))
        if told != reply:
            raise PromptError(
                f"The tokens of message {place} spell {told[:60]!r}, and it says {reply[:60]!r};"
                " leave them out."
            )
        emphasis = tuple(part for part in request.emphasis if part[0] < place)
        answered = replace(
            request, messages=request.messages[:place], emphasis=emphasis, spelled=()
        )
        (before,) = all_rendered(render([answered], [""], [known], tokenizer, traces=False))
        known = before.known((), token_ids, reply)
    return known
