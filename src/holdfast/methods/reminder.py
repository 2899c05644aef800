"""A short reminder every few user messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from holdfast.chat.messages import Message
from holdfast.errors import PromptError, UsageError
from holdfast.methods.kinds import Kind
from holdfast.methods.parameters import TEXT, method, parameter, whole

PROMPT = "prompt"  # stands for the text of the system prompt
RULES = "rules"  # stands for the `text` of each rule of a suite's prompt


@method
class Reminder:
    """Puts a short reminder before every few user messages; only the model sees it.

    Counted from 1, user message n begins with "[Reminder: TEXT]" and an empty line if n + `depth`
    is a multiple of `every`. So a reminder that is due at message n stands `depth` user messages
    before it. Places are counted from the start of the chat: a reminder never moves along with the
    end, and what was computed of earlier turns stays valid. Applications that put a note at a depth
    from the end move it at every turn.
    """

    name: ClassVar[str] = "reminder"
    kind: ClassVar[Kind] = Kind.MESSAGES
    source: ClassVar[str] = "ours, after the notes at a depth of chat applications"

    every: int = parameter("user messages from one to the next; 0 adds none", whole(0), default=4)
    depth: int = parameter("how many user messages before the one that is due", whole(0), default=0)
    text: str = parameter(
        "what it says: prompt for the whole system prompt, rules for the rules of a suite's prompt,"
        " or any text in double quotes",
        TEXT,
        default=PROMPT,
    )

    @property
    def edits_by_prompt(self) -> bool:
        """Whether it says the system prompt."""
        return self.text == PROMPT

    def with_rules(self, rules: Sequence[str]) -> Reminder:
        """The reminder that says these rules, if it is to say the rules of the prompt.

        Raises:
            UsageError: there are none.
        """
        if self.text != RULES:
            return self
        if not rules:
            raise UsageError(
                "reminder:text=rules says the `text` of each rule of the suite, and a prompt of"
                ' this one has none; add it, or write the reminder out, as in text="Answer in'
                ' French."',
                option="text",
                value=RULES,
            )
        return replace(self, text=" ".join(rules))

    def edit(self, messages: Sequence[Message], seed: int) -> tuple[Message, ...]:
        """The messages with reminders; a `PromptError` if a system message is wanted and absent."""
        text = self._text_in(messages)
        if not (text and self.every):
            return tuple(messages)
        edited, number = [], 0
        for message in messages:
            if message["role"] == "user":
                number += 1
                if (number + self.depth) % self.every == 0:
                    reminded = f"[Reminder: {text}]\n\n{message['content']}"
                    message = {**message, "content": reminded}
            edited.append(message)
        return tuple(edited)

    def _text_in(self, messages: Sequence[Message]) -> str:
        if self.text == RULES:
            raise UsageError(
                "reminder:text=rules says the rules of a suite's prompt, and this chat has no"
                ' suite; write them out, as in reminder:text="Answer in French."',
                option="text",
                value=RULES,
            )
        if self.text != PROMPT:
            return self.text
        for message in messages:
            if message["role"] == "system":
                return str(message["content"]).strip()
        raise PromptError(
            "reminder has no system message to remind of in this chat; put one at its start, or"
            ' give it a text, as in reminder:text="Answer in French."'
        )
