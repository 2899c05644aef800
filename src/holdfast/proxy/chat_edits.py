"""The edit of a request: its outcome, and the changes to make in the body."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from holdfast.logs.dialogs import estimated_tokens
from holdfast.proxy.json_edits import Insertion, JsonEdit, Removal


class EditOutcome(Enum):
    """The outcome of trying to edit a request."""

    EDITED = "edited"  # text was added, or messages were left out
    UNCHANGED = "unchanged"  # the methods had nothing to do
    NO_CASE = "no_case"  # its system prompt belongs to no case
    NO_PROMPT = "no_prompt"  # it has no system prompt, and a method needs one
    STORED = "stored"  # the server keeps the dialog so far, so its turns are not known
    OTHER_API = "other_api"  # it is for an API whose chats are not edited
    UNREADABLE = "unreadable"  # it is not in the API's format as we know it
    FAILED = "failed"  # a fault while it was edited, which the log describes, or no time was left


@dataclass(frozen=True)
class Edit:
    """The changes to make in a request.

    Attributes:
        num_reminders: 1 if text is added to the last message, and that is the user's; else 0.
            Reminders in earlier messages were counted when these were the last.
    """

    outcome: EditOutcome
    changes: tuple[JsonEdit, ...] = ()
    num_reminders: int = 0

    @property
    def added(self) -> list[str]:
        """The texts that are added to messages."""
        return [change.text for change in self.changes if isinstance(change, Insertion)]

    @property
    def added_tokens(self) -> int:
        """The length of these texts, estimated from their bytes, as there is no tokenizer."""
        return estimated_tokens(self.added)

    @property
    def left_out(self) -> int:
        """The number of messages that are left out."""
        return sum(isinstance(change, Removal) for change in self.changes)
