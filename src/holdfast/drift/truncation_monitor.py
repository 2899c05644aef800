"""Warns if most of the agent's first replies are cut, so that a long run can be stopped in time."""

import warnings
from dataclasses import dataclass

from holdfast.plurals import count_of

_MIN_REPLIES = 4  # replies that must be known before a warning


@dataclass
class TruncationMonitor:
    """Warns once if most dialogs' first replies by the agent are cut, and says by which limit."""

    limit: int  # the most tokens of a reply, as requested
    replies: int = 0
    cut: int = 0
    latest_cut: int = 0  # tokens of the longest reply that was cut before the limit
    has_warned: bool = False

    def first_reply(self, stop_reason: str, cut_at: int | None) -> None:
        """Counts the agent's first reply in a dialog.

        Args:
            cut_at: the tokens at which it was cut before the limit; None if it was not.
        """
        self.replies += 1
        self.cut += stop_reason == "length"
        self.latest_cut = max(self.latest_cut, cut_at or 0)
        if self.has_warned or self.replies < _MIN_REPLIES or 2 * self.cut <= self.replies:
            return
        self.has_warned = True
        where = count_of(self.limit, "token")
        cure = "Ctrl-C ends this run, and a higher --max-new-tokens begins one with whole replies"
        if self.latest_cut:
            where = f"{self.latest_cut} of {where}, by the server or the end of the context"
            cure = "Ctrl-C ends this run; raise the server's limit, or ask for shorter replies"
        warnings.warn(
            f"{self.cut} of the first {self.replies} replies are cut at {where}: their ends are"
            f" not judged, and the dialogs continue from broken sentences; {cure}.",
            stacklevel=2,
        )
