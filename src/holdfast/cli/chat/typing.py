"""What is typed at a terminal: with a history, and completed with Tab."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from holdfast.cli.chat.commands import COMMANDS
from holdfast.cli.chat.screen import Screen
from holdfast.methods.parameters import parameters_of, required_parameters
from holdfast.methods.registry import BY_NAME, METHODS, summary
from holdfast.methods.spec import NONE


class Typing:
    """Reads lines from a terminal.

    Args:
        screen: for a notice where no history can be kept.
        history: whether it is kept between chats.
    """

    def __init__(self, screen: Screen, history: bool):
        self._session: PromptSession[str] = PromptSession(
            history=_open_history(screen) if history else InMemoryHistory(),
            completer=Completing(),
            complete_while_typing=False,
        )

    def read(self) -> str | None:
        """The next line; None at Ctrl-D. Ctrl-C empties the line."""
        while True:
            try:
                return self._session.prompt("> ")
            except KeyboardInterrupt:
                continue
            except EOFError:
                return None


class Completing(Completer):
    """Completes commands, methods, their knobs, and the names of files."""

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        """What may stand in place of the word before the cursor."""
        name, blank, rest = document.text_before_cursor.partition(" ")
        if not name.startswith("/"):
            return
        if not blank:
            for command in COMMANDS:
                if f"/{command.name}".startswith(name):
                    yield _completion(f"/{command.name}", name, command.help)
        elif name in ("/method", "/compare"):
            yield from _complete_method(rest.split(" ")[-1].split("+")[-1])
        elif name in ("/save", "/load"):
            path = Document(rest, len(rest))
            yield from PathCompleter(expanduser=True).get_completions(path, event)


def _complete_method(typed: str) -> Iterator[Completion]:
    """A method with the knobs that it needs, or, behind its colon, another knob."""
    name, colon, knobs = typed.partition(":")
    if colon and name in BY_NAME:
        begun = knobs.split(",")[-1]
        for knob, declared in parameters_of(BY_NAME[name]).items():
            text = f"{knob}={declared.example}"
            if text.startswith(begun):
                yield _completion(text, begun, declared.description)
        return
    for method in METHODS:
        needed = required_parameters(method)
        spelled = ",".join(f"{knob}={parameters_of(method)[knob].example}" for knob in needed)
        text = f"{method.name}:{spelled}"
        if text.startswith(typed):
            yield _completion(text, typed, summary(method))
    if NONE.startswith(typed):
        yield _completion(NONE, typed, "the model as it is")


def _completion(text: str, typed: str, meaning: str) -> Completion:
    return Completion(text, -len(typed), display_meta=meaning)


def _open_history(screen: Screen) -> History:
    """The history of the user's state folder, which nobody else may read."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(state) / "holdfast" / "chat_history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        screen.notice(f"No history is kept: {path} cannot be written ({error.strerror}).")
        return InMemoryHistory()
    return FileHistory(path)
