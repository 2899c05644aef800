"""The rounds of a dialog that a request shows, and a summary of those that it leaves out.

If a dialog does not fit into the model's context, whole rounds are left out, oldest first, so that
a chat still begins with a user message; the system prompt stays, unless it is compacted too.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.chat.messages import Message
from holdfast.records import Turn

_SPEAKERS = {"user": "User", "agent": "Assistant", "tool": "Tool"}
_LEAD = "Summary of our conversation so far:"


@dataclass(frozen=True)
class ShownRounds:
    """The rounds that a request shows.

    Args:
        first: the first one; those before it are left out.
        summary: of those that are left out; "" if there is none.
        compacts: whether the summary replaces the system prompt too.
    """

    first: int = 1
    summary: str = ""
    compacts: bool = False


ALL_ROUNDS = ShownRounds()


def with_summary(messages: Sequence[Message], rounds: ShownRounds) -> list[Message]:
    """The chat with a summary before its first message, or in place of the system prompt."""
    if not rounds.summary:
        return list(messages)
    summary = f"{_LEAD} {rounds.summary}"
    others = (n for n, message in enumerate(messages) if message["role"] != "system")
    position = next(others)
    if rounds.compacts:
        return [{"role": "system", "content": summary}, *messages[position:]]
    first = messages[position]
    content = f"{summary}\n\n{first['content']}"
    return [*messages[:position], {**first, "content": content}, *messages[position + 1 :]]


def to_summarise(
    prompt: str, turns: Sequence[Turn], rounds: ShownRounds, before: int, system: str = ""
) -> list[Message]:
    """The chat that asks for a summary of the rounds before `before`, with any earlier summary."""
    earlier = [f"System: {system}"] if system and not rounds.compacts else []
    earlier += [f"{_LEAD} {rounds.summary}"] if rounds.summary else []
    lines = [_spoken(turn) for turn in turns if rounds.first <= turn.round < before]
    return [{"role": "user", "content": "\n\n".join([prompt, *earlier, *lines])}]


def _spoken(turn: Turn) -> str:
    """A turn as text to summarise, with the tool calls of a replayed one."""
    if not turn.messages:
        return f"{_SPEAKERS[turn.speaker]}: {turn.text}"
    parts = []
    for message in turn.messages:
        speaker = "tool" if message["role"] == "tool" else "agent"
        calls = [json.dumps(call["function"]) for call in message.get("tool_calls", ())]
        text = "\n".join(filter(None, [message["content"], *calls]))
        parts.append(f"{_SPEAKERS[speaker]}: {text}")
    return "\n\n".join(parts)
