"""A reply that a server sends piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from holdfast.models.answers import (
    Applied,
    MalformedAnswer,
    as_fields,
    read_applied,
    read_ending,
    read_masses,
)
from holdfast.models.requests import Reply


@dataclass
class Streamed:
    """What has arrived of a reply.

    Args:
        tell: takes each piece of its text.
        check: takes what the server says of its steering, before the first piece is told.
        text: so far.
        masses: of the tokens so far; None where the server tells none.
        ending: what ended it, once it has ended.
        name: of the reply at the server.
        content: what stands in place of a text: "refusal", "tool_calls", or "".
    """

    tell: Callable[[str], None]
    check: Callable[[Applied | None], None]
    text: str = ""
    masses: list[float] | None = None
    ending: str | None = None
    name: str = ""
    content: str = ""
    _checked: bool = field(default=False, repr=False)

    def read(self, chunks: Iterable[Any]) -> Reply:
        """Reads all chunks, as the official client gives them.

        Raises:
            MalformedAnswer: they are no complete reply.
            FilteredReply: a content filter withheld the rest.
        """
        for chunk in chunks:
            self._add(as_fields(chunk.to_dict()))
        if self.ending is None:
            raise MalformedAnswer("no end")
        empty = self.ending == "stop" and not self.text
        stop_reason = self.content or ("empty" if empty else self.ending)
        masses = None if self.masses is None else tuple(self.masses)
        return Reply(self.text, None, stop_reason, masses=masses)

    def _add(self, chunk: dict[str, object]) -> None:
        if not self._checked:
            self.check(read_applied(chunk))
            self._checked = True
            self.name = str(chunk.get("id"))
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices:  # the last chunk may tell the usage alone
            return
        choice = as_fields(choices[0])
        delta = as_fields(choice.get("delta"))
        refused = delta.get("refusal")
        text = refused if isinstance(refused, str) else delta.get("content")
        if isinstance(refused, str):
            self.content = "refusal"
        elif delta.get("tool_calls") or delta.get("function_call"):
            self.content = "tool_calls"
        if isinstance(text, str) and text:
            self.text += text
            self.tell(text)
        if (masses := read_masses(as_fields(choice.get("holdfast")))) is not None:
            self.masses = [*(self.masses or ()), *masses]
        if (reason := choice.get("finish_reason")) is not None:
            self.ending = read_ending(reason)
