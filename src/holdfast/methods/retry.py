"""A reply that broke a rule is drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import ClassVar, Self

from holdfast.chat.messages import Message
from holdfast.methods.exchanges import (
    join_exchanges,
    join_rules,
    require_rules,
    split_exchanges,
)
from holdfast.methods.kinds import MethodKind
from holdfast.methods.parameters import method, parameter, whole
from holdfast.methods.protocols import PromptRules


@method
class CheckAndRetry:
    """Draws a reply again if it broke a rule of the prompt, with a reminder of that rule.

    The chat of a retry has "[Reminder: TEXT]" and an empty line before the message that is
    answered; later turns do not see it. If every draw breaks a rule, the one that breaks the
    fewest is kept, or the earliest of several.
    """

    name: ClassVar[str] = "check-and-retry"
    kind: ClassVar[MethodKind] = MethodKind.RETRIES
    needs_rules: ClassVar[bool] = True
    reads_replies: ClassVar[bool] = True
    source: ClassVar[str] = "ours, after the retries of structured-output libraries"

    n: int = parameter(
        "how often a reply is drawn again at most; 0 changes nothing", whole(0), default=2
    )
    rules: PromptRules | None = field(default=None, repr=False)  # of the prompt; None until known

    @property
    def retries(self) -> int:
        """How often a reply is drawn again at most."""
        return self.n

    def with_rules(self, rules: PromptRules) -> Self:
        """Returns the method with these rules."""
        return replace(self, rules=rules)

    def check_context(self, window: int | None, summarises: bool) -> None:
        """Accepts every context, because the method reads only the message that is answered."""

    def broken(self, messages: Sequence[Message], reply: str, *, is_cut: bool) -> Sequence[str]:
        """Returns the texts of the rules that a reply to the chat breaks."""
        rules = require_rules(self.name, self.rules)
        _, exchanges = split_exchanges([*messages, {"role": "assistant", "content": reply}])
        return exchanges[-1].broken_rules(rules, is_cut=is_cut) if exchanges else ()

    def remind(self, messages: Sequence[Message], broken: Sequence[str]) -> tuple[Message, ...]:
        """Returns the chat to draw the reply from again, after a reply that broke these rules."""
        before, exchanges = split_exchanges(messages)
        if not exchanges:
            return tuple(messages)
        exchanges[-1] = exchanges[-1].with_note(f"[Reminder: {join_rules(broken)}]")
        return join_exchanges(before, exchanges)
