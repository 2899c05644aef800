"""The dialog of a chat in the terminal, as `/save` writes it and `--messages` reads it.

{"messages": [{"role": "user", "content": "Hello"}, ...], "method": "boost:factor=4"}
"""

from dataclasses import dataclass
from typing import Any, Self

from holdfast.chat.emphasis import Part, resolve
from holdfast.chat.messages import Message, Messages, read_message
from holdfast.cli.serve.generate import read_chat_file
from holdfast.errors import UsageError
from holdfast.methods import Method, parse, spec_of


@dataclass(frozen=True)
class ChatDialog:
    """The messages of a chat, and how its next reply is steered.

    Attributes:
        emphasised: the texts to steer towards in place of the system prompt.
        methods: those that steer the next reply.
    """

    messages: tuple[Message, ...] = ()
    emphasised: tuple[Part, ...] = ()
    methods: tuple[Method, ...] = ()

    @classmethod
    def read(cls, name: str) -> Self:
        """Reads the file of --messages, or standard input if its name is "-".

        Raises:
            UsageError: it is not a dialog, or its last message has no answer.
        """
        dialog = read_chat_file(name, "--messages")
        messages = tuple(
            read_message(number, message) for number, message in enumerate(dialog["messages"], 1)
        )
        if messages and messages[-1]["role"] == "user":
            raise UsageError(
                f"--messages {name} ends with a user's message; leave it out, and type it here."
            )
        emphasis = dialog.get("emphasis", ())
        parts = [part if isinstance(part, str) else tuple(part) for part in emphasis]
        return cls(messages, resolve(messages, parts), parse(dialog.get("method", "none")))

    def to_json(self) -> dict[str, Any]:
        """The dialog as `/save` and `--json` write it."""
        dialog: dict[str, Any] = {"messages": self.messages, "method": spec_of(self.methods)}
        return dialog | {"emphasis": self.emphasised} if self.emphasised else dialog


def round_of(messages: Messages) -> int:
    """The number of the round that the last message belongs to, from 1."""
    return sum(message["role"] == "user" for message in messages)
