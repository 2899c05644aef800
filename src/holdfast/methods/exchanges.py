"""A chat as exchanges, for methods that look back at earlier replies by the rules of the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from holdfast.chat.messages import Message
from holdfast.errors import UsageError
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

    def broken_rules(self, rules: PromptRules, *, is_cut: bool = False) -> Sequence[str]:
        """The texts of the rules that its reply breaks; none if there is no reply."""
        replies = [_text(message) for message in self.answers if message["role"] == "assistant"]
        reply = "\n".join(replies)
        return rules.broken(_text(self.user), reply, is_cut=is_cut) if reply.strip() else ()

    def beginning_with(self, note: str) -> Exchange:
        """The exchange with a note and an empty line before the user's text."""
        return Exchange({**self.user, "content": f"{note}\n\n{_text(self.user)}"}, self.answers)


def split_exchanges(messages: Sequence[Message]) -> tuple[list[Message], list[Exchange]]:
    """The messages before the user's first, and the exchanges."""
    starts = [number for number, message in enumerate(messages) if message["role"] == "user"]
    exchanges = [
        Exchange(messages[start], tuple(messages[start + 1 : end]))
        for start, end in pairwise([*starts, len(messages)])
    ]
    return list(messages[: starts[0]] if starts else messages), exchanges


def join_exchanges(before: Sequence[Message], exchanges: Sequence[Exchange]) -> tuple[Message, ...]:
    """The messages of a chat in order."""
    return (*before, *(message for exchange in exchanges for message in exchange.messages))


def known_rules(method: str, rules: PromptRules | None) -> PromptRules:
    """The rules that a method needs; a `UsageError` if they are unknown."""
    if rules is None:
        raise UsageError(
            f"{method} needs the rules of a suite's prompt, which this chat does not have; use it"
            f" with a suite, as in holdfast drift --suite bots --method {method}.",
            option="method",
            value=method,
        )
    return rules


def joined_rules(texts: Sequence[str]) -> str:
    """The texts of several rules; that of the whole prompt, which some may share, only once."""
    return " ".join(dict.fromkeys(texts))


def _text(message: Message) -> str:
    return str(message.get("content") or "")
