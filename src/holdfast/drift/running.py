"""Who takes part in a run beside the agent, and how it is carried out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.drift.dialogs import Dialogs, UserTurns, read_dialogs, read_user_turns
from holdfast.drift.judges import Judging
from holdfast.errors import UsageError
from holdfast.models.protocol import ChatModel

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Cast:
    """Who takes part beside the agent; part of a run's identity.

    Args:
        user_model: plays the user model; None: the agent's model plays both.
        dialogs: that were held, or their file (`dialogs.read_dialogs`): they are replayed in place
            of self-chats, and the model answers the probes alone.
        user_turns: the user's messages, or their file (`dialogs.read_user_turns`): they are sent in
            place of a user model's.
        judging: how the judges of the suite are had, where it has some.
    """

    user_model: ChatModel | None = None
    dialogs: Dialogs | Path | str | None = None
    judging: Judging = Judging()
    user_turns: UserTurns | Path | str | None = None

    def read(self) -> Dialogs | UserTurns | None:
        """The dialogs or the user turns, read where a file was given.

        Raises:
            UsageError: more than one of them and of a user model is given, or the file cannot be
                read.
        """
        model = self.user_model
        users = {
            "--dialogs": self.dialogs,
            "--user-turns": self.user_turns,
            "--user-model": None if model is None else model.name,
        }
        given = {option: user for option, user in users.items() if user is not None}
        if len(given) > 1:
            named = [f"{option} {getattr(user, 'name', user)}" for option, user in given.items()]
            raise UsageError(
                f"{' and '.join(named)} both say what the user says; leave out one of them."
            )
        if isinstance(self.dialogs, (Path, str)):
            return read_dialogs(self.dialogs)
        if isinstance(self.user_turns, (Path, str)):
            return read_user_turns(self.user_turns)
        return self.dialogs or self.user_turns


@dataclass(frozen=True)
class Running:
    """How a run is carried out; no record depends on it.

    Args:
        traces: whether the mass of every head at every generated token of the agent is kept too
            (`drift.traces`).
        progress: told at every round how many conversations advanced, and the tokens forwarded;
            finished conversations found on resuming are told at once, round by round, with no
            tokens.
        command: the command line, for the manifest.
    """

    traces: bool = False
    progress: Progress = lambda conversations, tokens: None
    command: str = ""
