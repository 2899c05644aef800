"""Who takes part in a run beside the agent, and how it is carried out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.drift.dialogs import Dialogs, read_dialogs
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
        judging: how the judges of the suite are had, where it has some.
    """

    user_model: ChatModel | None = None
    dialogs: Dialogs | Path | str | None = None
    judging: Judging = Judging()

    def read(self) -> Dialogs | None:
        """The dialogs, read where a file was given.

        Raises:
            UsageError: there is a user model too, or the file cannot be read.
        """
        dialogs = self.dialogs
        if isinstance(dialogs, (Path, str)):
            dialogs = read_dialogs(dialogs)
        if dialogs is not None and self.user_model is not None:
            raise UsageError(
                f"The dialogs {dialogs.name} have what their users said, and"
                f" {self.user_model.name} is to play the user; leave out --dialogs or --user-model."
            )
        return dialogs


@dataclass(frozen=True)
class Running:
    """How a run is carried out; no record depends on it.

    Args:
        replicas: processes that conversations are shared out to, which are forked and read the same
            weights; None: as many as pay, for a small model in this processor's memory. A model
            that has replicas elsewhere has its own number of them. Two models have none.
        traces: whether the mass of every head at every generated token of the agent is kept too
            (`drift.traces`).
        progress: told at every round how many conversations advanced, and the tokens forwarded;
            finished conversations found on resuming are told at once, round by round, with no
            tokens.
        command: the command line, for the manifest.
    """

    replicas: int | None = 1
    traces: bool = False
    progress: Progress = lambda conversations, tokens: None
    command: str = ""
