"""Replies that are drawn again if they broke a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import ClassVar, Self

from holdfast.chat.messages import Message
from holdfast.errors import UsageError
from holdfast.methods.exchanges import split_exchanges
from holdfast.methods.kinds import Kind
from holdfast.methods.parameters import method, parameter, whole
from holdfast.methods.protocols import PromptRules


@method
class CheckAndRetry:
    """Draws a reply again if it broke a rule of the prompt, with a reminder of that rule.

    The chat of a retry has "[Reminder: TEXT]" and an empty line before the message that is
    answered; later turns do not see it. If every draw breaks a rule, the one that breaks the fewest
    is kept, and the earliest of those.
    """

    name: ClassVar[str] = "check-and-retry"
    kind: ClassVar[Kind] = Kind.MESSAGES
    edits_by_prompt: ClassVar[bool] = False
    needs_rules: ClassVar[bool] = True
    source: ClassVar[str] = "ours, after the retries of structured-output libraries"

    n: int = parameter("how often a reply is drawn again at most", whole(0), default=2)
    rules: PromptRules | None = field(default=None, repr=False)  # of the prompt, once known

    def with_rules(self, rules: PromptRules) -> Self:
        """The method that knows these rules; a `UsageError` if there are none."""
        if not rules.texts:
            raise UsageError(
                "check-and-retry needs the `text` of each rule of the suite, and a prompt of this"
                " one has none; add it.",
                option="n",
                value=self.n,
            )
        return replace(self, rules=rules)

    def edit(self, messages: Sequence[Message], seed: int) -> tuple[Message, ...]:
        """The messages as they are; a `UsageError` if the rules are unknown."""
        self._known_rules()
        return tuple(messages)

    def broken(self, messages: Sequence[Message], reply: str) -> Sequence[str]:
        """The texts of the rules that a reply to the chat breaks."""
        _, exchanges = split_exchanges([*messages, {"role": "assistant", "content": reply}])
        return exchanges[-1].broken(self._known_rules()) if exchanges else ()

    def reminded(self, messages: Sequence[Message], broken: Sequence[str]) -> tuple[Message, ...]:
        """The chat to draw the reply from again, after a reply that broke these rules."""
        before, exchanges = split_exchanges(messages)
        *earlier, last = exchanges
        content = f"[Reminder: {' '.join(broken)}]\n\n{last.user.get('content') or ''}"
        return (
            *before,
            *(message for exchange in earlier for message in exchange.messages),
            {**last.user, "content": content},
            *last.answers,
        )

    def _known_rules(self) -> PromptRules:
        if self.rules is None:
            raise UsageError(
                "check-and-retry needs the rules of a suite's prompt, which this chat does not"
                " have; use it with a suite, as in holdfast drift --suite bots --method"
                " check-and-retry.",
                option="n",
                value=self.n,
            )
        return self.rules
