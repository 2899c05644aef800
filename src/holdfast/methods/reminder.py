"""A short reminder every few user messages, or when a reply broke a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from itertools import count
from typing import ClassVar, Self

from holdfast.chat.messages import Message
from holdfast.errors import PromptError, UsageError, option
from holdfast.methods.exchanges import (
    Exchange,
    join_exchanges,
    join_rules,
    split_exchanges,
)
from holdfast.methods.kinds import MethodKind
from holdfast.methods.parameters import NAMES, TEXT, method, parameter, whole, word
from holdfast.methods.protocols import PromptRules

PROMPT = "prompt"  # stands for the text of the system prompt
RULES = "rules"  # stands for the rules of a suite's prompt
ALWAYS = "always"
BROKEN = "broken"


@method
class Reminder:
    """Puts a short reminder before every few user messages; only the model sees it.

    Counted from 1, user message n begins with "[Reminder: TEXT]" and an empty line if n + `depth`
    is a multiple of `every`. So a reminder that is due at message n is put `depth` user messages
    before it. Places are counted from the start of the chat: a reminder stays where it is as the
    chat grows, so the cached prefix of earlier turns stays valid. Applications that put a note at a
    depth from the end move it at every turn.

    With `when=broken`, a message has its reminder only if the reply before it broke a rule of the
    suite's prompt; `text=rules` then says only the rules that it broke. `kinds` and `after` save
    the reminders that a model does not need: of rules of other kinds, and at the start of a dialog.
    """

    name: ClassVar[str] = "reminder"
    kind: ClassVar[MethodKind] = MethodKind.MESSAGES
    source: ClassVar[str] = "ours, after the notes at a depth of chat applications"

    every: int = parameter(
        "user messages from one reminder to the next; 0 adds none", whole(0), default=4
    )
    depth: int = parameter(
        "how many user messages earlier than due a reminder is put", whole(0), default=0
    )
    text: str = parameter(
        "what it says: prompt for the whole system prompt, rules for the rules of a suite's prompt,"
        " or any text in double quotes",
        TEXT,
        default=PROMPT,
    )
    when: str = parameter(
        "always, or only if the last reply has broken a rule of a suite's prompt",
        word(ALWAYS, BROKEN),
        default=ALWAYS,
    )

    kinds: tuple[str, ...] = parameter(
        "only rules of these kinds, such as the kinds that `holdfast map` finds to fall",
        NAMES,
        default=(),
    )
    after: int = parameter(
        "how many user messages at the start have no reminder", whole(0), default=0
    )
    rules: PromptRules | None = field(default=None, repr=False)  # of the prompt; None until known

    def check_parameters(self) -> None:
        """Refuses `kinds` where no rules are chosen."""
        if self.kinds and not (self.text == RULES or self.when == BROKEN):
            raise UsageError(
                f"reminder:kinds={'/'.join(self.kinds)} chooses among the rules of a prompt, and"
                " this reminder has none; add text=rules or when=broken.",
                option="kinds",
                value=self.kinds,
            )

    @property
    def edits_by_prompt(self) -> bool:
        """Whether it says the system prompt."""
        return self.text == PROMPT

    @property
    def needs_rules(self) -> bool:
        """Whether the reminder needs the rules of the prompt."""
        return self.text == RULES or self.reads_replies

    @property
    def reads_replies(self) -> bool:
        """Whether it depends on which rules the last reply broke."""
        return self.when == BROKEN

    def with_rules(self, rules: PromptRules) -> Self:
        """Returns the reminder with these rules, or itself if it does not need rules.

        Raises:
            UsageError: `kinds` has a kind that does not exist.
        """
        if not self.needs_rules:
            return self
        return replace(self, rules=rules.of_kinds(self.kinds) if self.kinds else rules)

    def check_context(self, window: int | None, summarises: bool) -> None:
        """Refuses a window so small that no message in it ever has a reminder."""
        if not self.every or window is None:
            return
        first = next(n for n in count(self.after + 1) if self._is_due(n))
        if first > window:
            raise UsageError(
                f"reminder puts its first reminder into user message {first} of those that the"
                f" model is shown, but {option('window', window)} shows only {window}; use a larger"
                " window, or lower every and after.",
                option="window",
                value=window,
                allowed=first,
            )

    def edit(self, messages: Sequence[Message], seed: int) -> tuple[Message, ...]:
        """Returns the messages with reminders.

        Raises:
            PromptError: it says the system prompt, and there is none.
            UsageError: it needs the rules of the prompt, and they are not known.
        """
        if self.needs_rules and self.rules is None:
            raise UsageError(
                "reminder:text=rules and when=broken need the rules of a suite's prompt, which"
                " this chat does not have; write the reminder out, as in"
                ' reminder:text="Answer in French."',
                option="text" if self.text == RULES else "when",
                value=RULES if self.text == RULES else BROKEN,
            )
        prompt = _system_prompt(messages) if self.text == PROMPT else ""
        before, exchanges = split_exchanges(messages)
        new_exchanges = list(exchanges)
        for number, exchange in enumerate(exchanges, 1):
            if not self._is_due(number):
                continue
            previous = exchanges[number - 2] if number > 1 else None
            if text := self._text_after(previous, prompt):
                new_exchanges[number - 1] = exchange.with_note(f"[Reminder: {text}]")
        return join_exchanges(before, new_exchanges)

    def _is_due(self, number: int) -> bool:
        """Whether a user message, counted from 1, may have a reminder."""
        return bool(self.every) and number > self.after and (number + self.depth) % self.every == 0

    def _text_after(self, exchange: Exchange | None, prompt: str) -> str:
        """Returns the text of the reminder after an exchange; "" if there is nothing to say."""
        rules = self.rules.texts if self.rules is not None else ()
        if self.rules is not None and self.when == BROKEN:
            rules = exchange.broken_rules(self.rules) if exchange is not None else ()
        if self.needs_rules and not rules:  # no rule was broken, or the prompt has none of `kinds`
            return ""
        if self.text == PROMPT:
            return prompt
        return join_rules(rules) if self.text == RULES else self.text


def _system_prompt(messages: Sequence[Message]) -> str:
    for message in messages:
        if message["role"] == "system":
            return str(message["content"]).strip()
    raise PromptError(
        "reminder needs a system message to repeat, and this chat has none; put one at its start,"
        ' or give the reminder a text, as in reminder:text="Answer in French."'
    )
