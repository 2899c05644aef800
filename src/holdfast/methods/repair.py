"""Replies that broke a rule, hidden from the model or marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import ClassVar, Self

from holdfast.chat.messages import Message
from holdfast.errors import UsageError
from holdfast.methods.exchanges import (
    Exchange,
    join_exchanges,
    joined_rules,
    known_rules,
    split_exchanges,
)
from holdfast.methods.kinds import Kind
from holdfast.methods.parameters import method, parameter, word
from holdfast.methods.protocols import PromptRules

DROP, MARK = "drop", "mark"
_TURNS = ("user", "assistant", "tool", "function")  # others instruct the model, or sum up turns


@method
class Repair:
    """Hides earlier replies that broke a rule of the prompt, or marks them; only the model sees it.

    A model takes its own replies as examples, so a broken rule in its history makes the next breach
    likelier. With `by=drop`, an exchange whose reply broke a rule is left out: the message of the
    user, and all replies, tool calls and results that answered it; instructions in it stay, such as
    a message of the developer. With `by=mark`, the user's next message begins with
    "[Your last reply broke this rule: TEXT]" and an empty line. The dialog itself, its records and
    its scores stay as they are.

    The message that is to be answered is always shown. Once a reply has broken a rule, `drop`
    changes what the model has read, and the dialog is computed again from there, or leaves an
    endpoint's prompt cache.
    """

    name: ClassVar[str] = "repair"
    kind: ClassVar[Kind] = Kind.MESSAGES
    edits_by_prompt: ClassVar[bool] = False
    needs_rules: ClassVar[bool] = True
    reads_replies: ClassVar[bool] = True
    source: ClassVar[str] = "ours"

    by: str = parameter(
        "drop leaves out the exchange, mark says in the next message which rule was broken",
        word(DROP, MARK),
        default=DROP,
    )
    rules: PromptRules | None = field(default=None, repr=False)  # of the prompt, once known

    def with_rules(self, rules: PromptRules) -> Self:
        """The method that knows these rules."""
        return replace(self, rules=rules)

    def check_context(self, window: int | None, summarises: bool) -> None:
        """Refuses to drop a message that has the summary of earlier rounds."""
        if summarises and self.by == DROP:
            raise UsageError(
                "repair would drop the summary of earlier rounds along with the message that it"
                " stands in; use repair:by=mark, or --context compact.",
                option="context",
                value="summarise",
            )

    def edit(self, messages: Sequence[Message], seed: int) -> tuple[Message, ...]:
        """The messages that the model is shown; a `UsageError` if the rules are unknown."""
        rules = known_rules(self.name, self.rules)
        before, exchanges = split_exchanges(messages)
        broken = [exchange.broken_rules(rules) for exchange in exchanges]
        if self.by == DROP:
            return (*before, *_without(exchanges, broken))
        return join_exchanges(before, _marked(exchanges, broken))


def _without(exchanges: Sequence[Exchange], broken: Sequence[Sequence[str]]) -> Iterator[Message]:
    """The messages of the exchanges that broke no rule, of the last, and no turns of the others."""
    last = len(exchanges) - 1
    for number, exchange in enumerate(exchanges):
        is_dropped = number != last and broken[number]
        for message in exchange.messages:
            if not is_dropped or message["role"] not in _TURNS:
                yield message


def _marked(exchanges: Sequence[Exchange], broken: Sequence[Sequence[str]]) -> list[Exchange]:
    """The exchanges, each with a note on the rules that the one before broke."""
    marked = list(exchanges)
    for number, rules in enumerate(broken[:-1]):
        if rules:
            noun = "this rule" if len(rules) == 1 else "these rules"
            note = f"[Your last reply broke {noun}: {joined_rules(rules)}]"
            marked[number + 1] = exchanges[number + 1].beginning_with(note)
    return marked
