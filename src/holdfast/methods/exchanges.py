"""A chat as exchanges, for message methods that look back at earlier replies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from holdfast.chat.messages import Message
from holdfast.methods.protocols import PromptRules


@dataclass(frozen=True)
class Exchange:
    """A message of the user, and the messages that follow it up to the user's next."""

    user: Message
    answers: tuple[Message, ...]

    @property
    def messages(self) -> tuple[Message, ...]:
        """All of its messages, in order."""
        return (self.user, *self.answers)

    def broken(self, rules: PromptRules) -> Sequence[str]:
        """The texts of the rules that its reply breaks; none if there is no reply."""
        replies = [_text(message) for message in self.answers if message["role"] == "assistant"]
        reply = "\n".join(replies)
        return rules.broken(_text(self.user), reply) if reply else ()


def split_exchanges(messages: Sequence[Message]) -> tuple[list[Message], list[Exchange]]:
    """The messages before the user's first, and the exchanges."""
    starts = [number for number, message in enumerate(messages) if message["role"] == "user"]
    exchanges = [
        Exchange(messages[start], tuple(messages[start + 1 : end]))
        for start, end in pairwise([*starts, len(messages)])
    ]
    return list(messages[: starts[0]] if starts else messages), exchanges


def _text(message: Message) -> str:
    return str(message.get("content") or "")
