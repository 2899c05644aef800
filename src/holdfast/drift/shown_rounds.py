"""The rounds of a dialog that a request shows, and the summary of the rounds that it leaves out.

If a dialog does not fit into the model's context, whole rounds are left out, the oldest first, so
that the chat still begins with a user message. The system prompt stays, unless the summary replaces
it too.
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
        first: the first round shown; earlier rounds are left out.
        summary: the summary of the rounds left out; "" if there is none.
        compacts: whether the summary replaces the system prompt too.
    """

    first: int = 1
    summary: str = ""
    compacts: bool = False


ALL_ROUNDS = ShownRounds()


def with_summary(messages: Sequence[Message], rounds: ShownRounds) -> list[Message]:
    """Adds the summary to a chat: before its first message, or in place of the system prompt."""
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
    """Builds the chat that asks for a summary of the shown rounds before `before`.

    Args:
        prompt: asks for the summary.
        rounds: the rounds shown so far; their summary of earlier rounds is included.
        system: the system prompt, if it is to be summarised too.
    """
    parts = [prompt]
    if system and not rounds.compacts:
        parts.append(f"System: {system}")
    if rounds.summary:
        parts.append(f"{_LEAD} {rounds.summary}")
    parts += [_transcribe(turn) for turn in turns if rounds.first <= turn.round < before]
    return [{"role": "user", "content": "\n\n".join(parts)}]


def _transcribe(turn: Turn) -> str:
    """Writes a turn as text to summarise, with the tool calls of a replayed turn."""
    if not turn.messages:
        return f"{_SPEAKERS[turn.speaker]}: {turn.text}"
    parts = []
    for message in turn.messages:
        speaker = "tool" if message["role"] == "tool" else "agent"
        calls = [json.dumps(call["function"]) for call in message.get("tool_calls", ())]
        text = "\n".join(filter(None, [message["content"], *calls]))
        parts.append(f"{_SPEAKERS[speaker]}: {text}")
    return "\n\n".join(parts)
