"""The progress of conversations in rounds, and a warning if their replies are cut."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.common.plurals import plural
from holdfast.drift.dialog import AGENT_VIEW, Dialog

ReportRounds = Callable[[int, int], None]  # takes how many rounds have ended, and their tokens
_ENOUGH_REPLIES = 4  # to say that most are cut


@dataclass
class CutWatch:
    """Warns once, in the first rounds, if most of the agent's replies are cut at the limit."""

    limit: int
    replies: int = 0
    cut: int = 0
    has_warned: bool = False

    def first_round_ended(self, dialog: Dialog) -> None:
        """Counts the agent's first reply in a dialog."""
        first = [turn for turn in dialog.turns if (turn.round, turn.speaker) == (1, AGENT_VIEW)]
        self.replies += len(first)
        self.cut += sum(turn.stop_reason == "length" for turn in first)
        if self.has_warned or self.replies < _ENOUGH_REPLIES or 2 * self.cut <= self.replies:
            return
        self.has_warned = True
        warnings.warn(
            f"{self.cut} of the first {self.replies} replies are cut at"
            f" {plural(self.limit, 'token')}: their ends are not judged, and the dialogs go on from"
            " broken sentences; Ctrl-C ends this run, and a higher --max-new-tokens begins one"
            " with whole replies.",
            stacklevel=2,
        )


@dataclass
class RoundProgress:
    """Reports the rounds of a dialog that have ended, each with the tokens it took."""

    dialog: Dialog
    rounds_left: int
    report: ReportRounds
    cut_watch: CutWatch
    tokens_reported: int = 0
    is_first: bool = True

    def end_rounds(self, count: int) -> None:
        if self.is_first:
            self.is_first = False
            self.cut_watch.first_round_ended(self.dialog)
        self.report(count, self.dialog.forwarded - self.tokens_reported)
        self.rounds_left -= count
        self.tokens_reported = self.dialog.forwarded
