"""Chats as the harness hands them on: as texts, from which the messages can be read again.

The harness knows contexts as strings. A chat that went through a template as such a string would
lose its roles, and with them the words to hold on to; so it travels as JSON until a model renders
it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from holdfast.chat.messages import Message
from holdfast.errors import UsageError

_KEY = "holdfast_chat"
_BEGINNING = f'{{"{_KEY}": '


def write_chat(messages: Sequence[Message], *, ends_open: bool) -> str:
    """A chat as a context of the harness.

    Args:
        messages: the chat.
        ends_open: whether the model's reply follows; the harness also asks for replies whose
            beginning is given.

    Raises:
        UsageError: the beginning of the reply is given.
    """
    if not ends_open:
        raise UsageError(
            f"The task begins the model's reply itself ({messages[-1]['content']!r}), and a chat of"
            " holdfast models ends with the user's message; take a task without gen_prefix."
        )
    return json.dumps({_KEY: list(messages)}, ensure_ascii=False)


def read_chat(context: str) -> tuple[Message, ...] | None:
    """The messages of a context that `write_chat` wrote; None of any other text."""
    if not context.startswith(_BEGINNING):
        return None
    return tuple(json.loads(context)[_KEY])
