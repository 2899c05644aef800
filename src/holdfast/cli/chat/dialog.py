"""The dialog of a chat in the terminal: what was said, and what is held on to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.chat.emphasis import Range, resolve
from holdfast.chat.messages import Message, check_message
from holdfast.errors import UsageError
from holdfast.files import write_whole
from holdfast.methods import Method, parse, spell
from holdfast.models.requests import Request
from holdfast.sampling import Sampling
from holdfast.seeds import seed_of


@dataclass(frozen=True)
class Heard:
    """A reply, as far as it came.

    Args:
        text: of it.
        masses: per token, on what is held on to; () where nobody saw them.
        ending: its stop reason, or "stopped".
    """

    text: str
    masses: tuple[float, ...] = ()
    ending: str = "stop"


@dataclass(frozen=True)
class Turn:
    """A reply of the dialog that was heard in this chat.

    Args:
        round: counted from 1.
        method: as it is spelled.
        heard: the reply.
    """

    round: int
    method: str
    heard: Heard


@dataclass
class Dialog:
    """A dialog on its way.

    Args:
        sampling: of all replies.
        seed: of all draws, which belong to the round and the attempt.
        system_as: where the system prompt stands.
        messages: so far.
        methods: of the next replies.
        emphasis: what is held on to in place of the system prompt.
        awaited: texts to emphasise in the next message.
        turns: replies that were heard here.
        attempt: how often the last message was answered before.
    """

    sampling: Sampling = Sampling()
    seed: int = 0
    system_as: str = "role"
    messages: tuple[Message, ...] = ()
    methods: tuple[Method, ...] = ()
    emphasis: tuple[Range, ...] = ()
    awaited: tuple[str, ...] = ()
    turns: list[Turn] = field(default_factory=list)
    attempt: int = 0

    @property
    def system(self) -> str:
        """The system prompt; "" where there is none."""
        return next((m["content"] for m in self.messages if m["role"] == "system"), "")

    @property
    def asked(self) -> tuple[Message, ...]:
        """The chat up to the last user message; () where there is none."""
        users = [n for n, message in enumerate(self.messages) if message["role"] == "user"]
        return self.messages[: users[-1] + 1] if users else ()

    def with_message(self, text: str) -> tuple[Message, ...]:
        """The chat with a new user message; what is awaited in it becomes emphasis.

        Raises:
            PromptError: an awaited text is not in it, which is then no longer awaited.
        """
        messages = (*self.messages, {"role": "user", "content": text})
        awaited, self.awaited = self.awaited, ()
        self.emphasis = resolve(messages, (*self.emphasis, *awaited))
        return messages

    def request(
        self, messages: Sequence[Message], methods: Sequence[Method], *, attempt: int, trace: bool
    ) -> Request:
        """What is asked of the model; each method has a thread, so that nothing it has computed is
        computed twice.
        """
        return Request(
            messages,
            methods,
            self.sampling,
            seed_of("chat", self.seed, _rounds(messages), attempt),
            conversation_seed=seed_of("chat methods", self.seed),
            thread=spell(methods),
            keep=True,
            trace=trace,
            system_as=self.system_as,
            emphasis=tuple(each for each in self.emphasis if each[0] < len(messages)),
        )

    def hear(self, messages: Sequence[Message], method: str, heard: Heard) -> None:
        """Takes a reply into the dialog, behind `messages`."""
        number = _rounds(messages)
        self.turns = [turn for turn in self.turns if turn.round < number]
        self.turns.append(Turn(number, method, heard))
        self.messages = (*messages, {"role": "assistant", "content": heard.text})

    def set_system(self, text: str) -> None:
        """Puts a system prompt in place of the one there is; emphasis, which counts messages, is
        given up.
        """
        rest = tuple(message for message in self.messages if message["role"] != "system")
        self.messages = ({"role": "system", "content": text}, *rest) if text else rest
        self.emphasis, self.awaited = (), ()

    def emphasise(self, text: str) -> bool:
        """Holds on to a text of the chat, or else of the next message; whether it is there now.

        Raises:
            UsageError: it occurs more than once, or holds no word.
        """
        count = sum(message["content"].count(text) for message in self.messages)
        if count > 1:
            raise UsageError(
                f"{text!r} occurs {count} times in the chat; give more of the text around it."
            )
        if not count:
            self.awaited = (*self.awaited, text)
            return False
        self.emphasis = resolve(self.messages, (*self.emphasis, text))
        return True

    def write(self, path: Path) -> None:
        """Writes the dialog, as `holdfast generate --messages` and `read` take it.

        Raises:
            UsageError: the file cannot be written.
        """
        told: dict[str, Any] = {"messages": self.messages, "method": spell(self.methods)}
        if self.emphasis:
            told["emphasis"] = self.emphasis
        text = json.dumps(told, indent=1, ensure_ascii=False) + "\n"
        try:
            write_whole(path, text.encode(errors="replace"))
        except OSError as error:
            raise UsageError(
                f"{path} cannot be written ({error.strerror}); name another file."
            ) from None

    def read(self, told: dict[str, Any]) -> None:
        """Takes up a dialog that `write` wrote, or a list of messages under "messages".

        Raises:
            UsageError: a message without a role or a text, or a method that is none.
        """
        messages = tuple(told["messages"])
        for number, message in enumerate(messages, 1):
            check_message(number, message)
        emphasis = resolve(messages, [tuple(part) for part in told.get("emphasis", ())])
        self.methods = parse(told["method"]) if "method" in told else self.methods
        if messages and messages[-1]["role"] == "user":
            raise UsageError(
                "The dialog ends with a user's message; leave it out, and type it in the chat."
            )
        self.messages, self.emphasis = messages, emphasis
        self.awaited, self.turns, self.attempt = (), [], 0


def _rounds(messages: Sequence[Message]) -> int:
    return sum(message["role"] == "user" for message in messages)
