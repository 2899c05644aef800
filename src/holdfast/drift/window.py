"""What of a long dialog a request shows, where the model's context does not hold all of it.

The system prompt always stays, and whole rounds go, the oldest first, so that a chat still begins
with a message of the user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.chat.messages import Message

CONTEXTS = ("stop", "cut", "slide", "summarise")
SUMMARY_PROMPT = (
    "Summarise the conversation below in at most 100 words. Keep names, facts, wishes and promises."
)
_SPEAKERS = {"user": "User", "agent": "Assistant"}
_LEAD = "Summary of our conversation so far:"


@dataclass(frozen=True)
class Shown:
    """What of a dialog a request shows.

    Args:
        first: the first round; those before it are left out.
        summary: of the rounds that are left out; "" where nothing is said of them.
    """

    first: int = 1
    summary: str = ""

    @property
    def told(self) -> dict[str, int]:
        """What a turn's or a probe's record says of it; nothing where the dialog is whole."""
        return {"left_out": self.first - 1} if self.first > 1 else {}


WHOLE = Shown()


def with_summary(messages: Sequence[Message], summary: str) -> list[Message]:
    """The chat with a summary in front of its first message that is not the system's."""
    if not summary:
        return list(messages)
    place = next(at for at, message in enumerate(messages) if message["role"] != "system")
    first = messages[place]
    content = f"{_LEAD} {summary}\n\n{first['content']}"
    return [*messages[:place], {**first, "content": content}, *messages[place + 1 :]]


def to_summarise(
    prompt: str, turns: Sequence[Mapping[str, Any]], shown: Shown, before: int
) -> list[Message]:
    """The chat that asks for a summary.

    Args:
        prompt: what is asked.
        turns: of the dialog.
        shown: so far; its summary goes into the new one.
        before: the first round that is not summarised.
    """
    earlier = [f"{_LEAD} {shown.summary}"] if shown.summary else []
    lines = [
        f"{_SPEAKERS[turn['speaker']]}: {turn['text']}"
        for turn in turns
        if shown.first <= turn["round"] < before
    ]
    return [{"role": "user", "content": "\n\n".join([prompt, *earlier, *lines])}]
