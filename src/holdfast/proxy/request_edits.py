"""Edits of a request: the outcome, and the changes to make in its messages."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from holdfast.logs.dialogs import estimated_tokens
from holdfast.proxy.json_edits import Change, Insertion, Removal


class Outcome(Enum):
    """The outcome of editing a request."""

    EDITED = "edited"  # text was added, or messages were left out
    UNCHANGED = "unchanged"  # the methods had nothing to do
    NO_CASE = "no_case"  # its system message is that of no case
    NO_PROMPT = "no_prompt"  # a method needs its system message, and it has none
    STORED = "stored"  # the dialog so far is on the server, so its turns are not known
    UNREADABLE = "unreadable"  # it is no request of the API as we know it, or a measure failed


@dataclass(frozen=True)
class Edit:
    """The changes to make in a request.

    Attributes:
        reminds: whether text is added to its last message, if that is the user's. A reminder
            further up was counted when its message was the last.
    """

    outcome: Outcome
    changes: tuple[Change, ...] = ()
    reminds: bool = False

    @property
    def added(self) -> list[str]:
        """The texts that are added."""
        return [change.text for change in self.changes if isinstance(change, Insertion)]

    @property
    def added_tokens(self) -> int:
        """Their length, estimated from their bytes, as there is no tokenizer."""
        return estimated_tokens(self.added)

    @property
    def left_out(self) -> int:
        """How many messages are left out."""
        return sum(isinstance(change, Removal) for change in self.changes)
