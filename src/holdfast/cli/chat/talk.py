"""One chat: replies to the dialog, and comparisons beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.chat.messages import Message
from holdfast.cli.chat.answering import Answering, Here, There
from holdfast.cli.chat.dialog import Dialog, Heard
from holdfast.errors import UsageError
from holdfast.methods import Ability, Method, spell
from holdfast.models.capabilities import offers

if TYPE_CHECKING:
    from holdfast.cli.chat.screen import Screen

Setting = tuple[Method, ...]


@dataclass(frozen=True)
class Compared:
    """Replies to one message, none of which is part of the dialog.

    Args:
        messages: the chat that was answered.
        settings: the methods of each.
        heard: the replies.
    """

    messages: tuple[Message, ...]
    settings: tuple[Setting, ...]
    heard: tuple[Heard, ...]


@dataclass
class Chat:
    """A chat in the terminal.

    Args:
        model: that answers.
        dialog: so far.
        screen: where it is shown.
        comparing: the methods under which the next message is answered; () for the dialog's own.
        compared: the last comparison; None once the dialog has gone on.
        over: whether it has come to its end.
    """

    model: Any
    dialog: Dialog
    screen: Screen
    comparing: tuple[Setting, ...] = ()
    compared: Compared | None = None
    over: bool = False
    answering: Answering = field(init=False)

    def __post_init__(self) -> None:
        here = offers(self.model, Ability.LAYERS)
        self.answering = Here(self.model) if here else There(self.model)

    @property
    def tells_mass(self) -> bool:
        """Whether the mass on what is held on to can be seen."""
        return offers(self.model, Ability.LOG_ODDS)

    def reply(self, messages: Sequence[Message], *, attempt: int) -> None:
        """Answers a chat, which becomes the dialog with its reply.

        Raises:
            HoldfastError: it cannot be answered.
        """
        dialog = self.dialog
        heard = self._ask(messages, dialog.methods, attempt)
        self.compared, dialog.attempt = None, attempt
        if heard.text or heard.ending != "stopped":
            dialog.hear(messages, spell(dialog.methods), heard)

    def _ask(self, messages: Sequence[Message], methods: Setting, attempt: int) -> Heard:
        trace = self.tells_mass
        request = self.dialog.request(messages, methods, attempt=attempt, trace=trace)
        with self.screen.reply() as tell:
            (heard,) = self.answering.answer([request], tell)
        self.screen.ending(heard)
        return heard

    def compare(self, line: str) -> None:
        """Answers a new message, or the last where it is empty, under each of the methods to
        compare.

        Raises:
            HoldfastError: it cannot be answered.
        """
        dialog, settings = self.dialog, self.comparing
        self.comparing = ()
        messages = dialog.with_message(line) if line.strip() else dialog.asked
        if not messages:
            raise UsageError("There is no message to compare replies to; type one first.")
        headings = [f"{n} {spell(setting)}" for n, setting in enumerate(settings, 1)]
        if self.screen.has_room_for(len(settings)):
            heard = self._ask_together(messages, settings, headings)
        else:
            heard = []
            for heading, setting in zip(headings, settings, strict=True):
                self.screen.heading(heading)
                heard.append(self._ask(messages, setting, 0))
        self.compared = Compared(tuple(messages), settings, tuple(heard))
        self.screen.notice("None of them is part of the dialog; /keep NUMBER takes one in.")

    def _ask_together(
        self, messages: Sequence[Message], settings: Sequence[Setting], headings: Sequence[str]
    ) -> list[Heard]:
        requests = [
            self.dialog.request(messages, setting, attempt=0, trace=self.tells_mass)
            for setting in settings
        ]
        with self.screen.columns(headings) as tell:
            heard = self.answering.answer(requests, tell)
        for each in heard:
            self.screen.ending(each)
        return heard
