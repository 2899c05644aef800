"""Earlier replies that broke a rule are hidden from the model, or marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import ClassVar, Self

from holdfast.chat.messages import Message
from holdfast.errors import UsageError, option
from holdfast.methods.exchanges import (
    Exchange,
    join_exchanges,
    join_rules,
    require_rules,
    split_exchanges,
)
from holdfast.methods.kinds import MethodKind
from holdfast.methods.parameters import method, parameter, word
from holdfast.methods.protocols import PromptRules

DROP = "drop"
MARK = "mark"
# roles of the messages that are dropped; others instruct the model, or sum up turns
_TURNS = ("user", "assistant", "tool", "function")


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
    changes the prefix that the model has read, so the dialog is computed again from there: the
    prompt cache, of an endpoint too, is of no use for it.
    """

    name: ClassVar[str] = "repair"
    kind: ClassVar[MethodKind] = MethodKind.MESSAGES
    edits_by_prompt: ClassVar[bool] = False
    needs_rules: ClassVar[bool] = True
    reads_replies: ClassVar[bool] = True
    source: ClassVar[str] = "ours"

    by: str = parameter(
        "drop leaves out the exchange, mark says in the next message which rule was broken",
        word(DROP, MARK),
        default=DROP,
    )
    rules: PromptRules | None = field(default=None, repr=False)  # of the prompt; None until known

    def with_rules(self, rules: PromptRules) -> Self:
        """Returns the method with these rules."""
        return replace(self, rules=rules)

    def check_context(self, window: int | None, summarises: bool) -> None:
        """Refuses `drop` where a message has the summary of earlier rounds, as it might go too."""
        if summarises and self.by == DROP:
            raise UsageError(
                "repair would drop the summary of earlier rounds along with the message that"
                f" contains it; use repair:by=mark, or {option('context', 'compact')}.",
                option="context",
                value="summarise",
            )

    def edit(self, messages: Sequence[Message], seed: int) -> tuple[Message, ...]:
        """Returns the messages that the model is shown; a `UsageError` without rules."""
        rules = require_rules(self.name, self.rules)
        before, exchanges = split_exchanges(messages)
        broken_rules = [exchange.broken_rules(rules) for exchange in exchanges]
        if self.by == DROP:
            return (*before, *_drop_broken(exchanges, broken_rules))
        return join_exchanges(before, _mark_broken(exchanges, broken_rules))


def _drop_broken(
    exchanges: Sequence[Exchange], broken_rules: Sequence[Sequence[str]]
) -> Iterator[Message]:
    """Leaves out the turns of exchanges that broke a rule, but never those of the last one."""
    last = len(exchanges) - 1
    for number, exchange in enumerate(exchanges):
        is_dropped = number != last and broken_rules[number]
        for message in exchange.messages:
            if not is_dropped or message["role"] not in _TURNS:
                yield message


def _mark_broken(
    exchanges: Sequence[Exchange], broken_rules: Sequence[Sequence[str]]
) -> list[Exchange]:
    """Adds to each exchange a note on the rules that the exchange before it broke."""
    new_exchanges = list(exchanges)
    for number, rules in enumerate(broken_rules[:-1]):
        if rules:
            noun = "this rule" if len(rules) == 1 else "these rules"
            note = f"[Your last reply broke {noun}: {join_rules(rules)}]"
            new_exchanges[number + 1] = exchanges[number + 1].with_note(note)
    return new_exchanges
