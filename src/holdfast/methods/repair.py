"""Replies that broke a rule, hidden from the model or marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import ClassVar, Self

from holdfast.chat.messages import Message
from holdfast.errors import UsageError
from holdfast.methods.exchanges import split_exchanges
from holdfast.methods.kinds import Kind
from holdfast.methods.parameters import method, parameter, word
from holdfast.methods.protocols import PromptRules

DROP, MARK = "drop", "mark"


@method
class Repair:
    """Hides earlier replies that broke a rule of the prompt, or marks them; only the model sees it.

    A model takes its own replies as examples, so a broken rule in its history makes the next breach
    likelier. With `by=drop`, an exchange whose reply broke a rule is left out: the message of the
    user, and all that answered it. With `by=mark`, the user's next message begins with
    "[Your last reply broke this rule: TEXT]" and an empty line. The dialog itself, its records and
    its scores stay as they are.

    The message that is to be answered is always shown. Once a reply has
    broken a rule, `drop` changes what the model has read, and the dialog is computed again from
    there, or leaves an endpoint's prompt cache.
    """

    name: ClassVar[str] = "repair"
    kind: ClassVar[Kind] = Kind.MESSAGES
    edits_by_prompt: ClassVar[bool] = False
    needs_rules: ClassVar[bool] = True
    source: ClassVar[str] = "ours"

    by: str = parameter(
        "drop leaves out the exchange, mark says in the next message which rule was broken",
        word(DROP, MARK),
        default=DROP,
    )
    rules: PromptRules | None = field(default=None, repr=False)  # of the prompt, once known

    def with_rules(self, rules: PromptRules) -> Self:
        """The method that knows these rules; a `UsageError` if there are none."""
        if not rules.texts:
            raise UsageError(
                "repair needs the `text` of each rule of the suite, and a prompt of this one has"
                " none; add it.",
                option="by",
                value=self.by,
            )
        return replace(self, rules=rules)

    def edit(self, messages: Sequence[Message], seed: int) -> tuple[Message, ...]:
        """The messages that the model is shown; a `UsageError` if the rules are unknown."""
        if self.rules is None:
            raise UsageError(
                "repair needs the rules of a suite's prompt, which this chat does not have; use it"
                " with a suite, as in holdfast drift --suite bots --method repair.",
                option="by",
                value=self.by,
            )
        edited, exchanges = split_exchanges(messages)
        note = ""  # about the exchange before
        for exchange in exchanges:
            broken = exchange.broken(self.rules)
            if self.by == MARK:
                edited += [_with_note(exchange.user, note), *exchange.answers]
                note = f"[Your last reply broke this rule: {' '.join(broken)}]" if broken else ""
            elif not broken or exchange is exchanges[-1]:
                edited += exchange.messages
        return tuple(edited)


def _with_note(user: Message, note: str) -> Message:
    return {**user, "content": f"{note}\n\n{user.get('content') or ''}"} if note else user
