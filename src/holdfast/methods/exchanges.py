"""A chat split into exchanges, for methods that check earlier replies against the rules."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from holdfast.chat.messages import Message
from holdfast.chat.reasoning import split_reasoning
from holdfast.errors import UsageError
from holdfast.methods.protocols import PromptRules


@dataclass(frozen=True)
class Exchange:
    """A message of the user, and the messages that follow it up to the user's next message."""

    user: Message
    answers: tuple[Message, ...]

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages of the exchange, in order."""
        return (self.user, *self.answers)

    def broken_rules(self, rules: PromptRules, *, is_cut: bool = False) -> Sequence[str]:
        """Returns the texts of the rules that the reply breaks; () if there is no reply.

        Rules do not apply to the reasoning in a reply.
        """
        texts = [_text(message) for message in self.answers if message["role"] == "assistant"]
        replies = [split_reasoning(text).reply for text in texts]
        reply = "\n\n".join(filter(str.strip, replies))
        return rules.broken(_text(self.user), reply, is_cut=is_cut) if reply.strip() else ()

    def with_note(self, note: str) -> Exchange:
        """Returns the exchange with a note and an empty line before the user's text."""
        return Exchange({**self.user, "content": f"{note}\n\n{_text(self.user)}"}, self.answers)


def split_exchanges(messages: Sequence[Message]) -> tuple[list[Message], list[Exchange]]:
    """Splits a chat into the messages before the user's first one, and the exchanges."""
    starts = [number for number, message in enumerate(messages) if message["role"] == "user"]
    exchanges = [
        Exchange(messages[start], tuple(messages[start + 1 : end]))
        for start, end in pairwise([*starts, len(messages)])
    ]
    return list(messages[: starts[0]] if starts else messages), exchanges


def join_exchanges(before: Sequence[Message], exchanges: Sequence[Exchange]) -> tuple[Message, ...]:
    """Undoes `split_exchanges`: returns the messages of the chat in order."""
    return (*before, *(message for exchange in exchanges for message in exchange.messages))


def require_rules(method: str, rules: PromptRules | None) -> PromptRules:
    """Returns the rules that a method needs; raises a `UsageError` if they are not known."""
    if rules is None:
        raise UsageError(without_suite(method), option="method", value=method)
    return rules


def without_suite(spec: str) -> str:
    """Says that a method needs a suite, where there is none, and which commands give it one."""
    return (
        f"{spec} needs the rules of a suite, which a single chat does not have; measure it with"
        f" `holdfast drift --suite FILE`, or put `holdfast proxy --suite FILE --method"
        f" {shlex.quote(spec)}` before the model's server."
    )


def join_rules(texts: Sequence[str]) -> str:
    """Joins the texts of rules. Rules that share a text, that of the whole prompt, give it once."""
    return " ".join(dict.fromkeys(texts))


def _text(message: Message) -> str:
    return str(message.get("content") or "")
