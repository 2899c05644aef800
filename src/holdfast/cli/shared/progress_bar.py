"""Shows the progress of a running command: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

from holdfast.cli.shared.notes import note
from holdfast.drift.progress import GROWTH, Watch, seconds_left
from holdfast.plurals import duration, plural_of

SECONDS_TO_TITLE = 1.0  # until the title is printed, and between two updates of a bar
SECONDS_TO_FIRST_LINE = 10.0  # until the first plain line, where there is no terminal
SECONDS_BETWEEN_LINES = 30.0
# with fewer new units and less than a tenth of the work done, neither pace nor time is estimated:
# the first units take longer, as prompts are read and the replies of a batch end together
_FEW_UNITS = 5
# an estimate is shown for at least this many seconds without news, even if it has run out
_MIN_IDLE_SECONDS = 10.0


class Bar:
    """The progress of a long command: a bar on a terminal, else a plain line every half minute.

    Both show the work done, its pace, and about how long the rest takes.

    Args:
        total: units of work.
        unit: the name of one unit.
        title: describes the work; "" prints neither a title nor how much was already done. It is
            printed once the work begins, so that a command that is refused prints only the reason.
        waves: how many groups of conversations run one after another, if the units are their
            replies, as the later replies of each group cost more. 0: all units cost the same.
        clock: returns the time in seconds.

    Attributes:
        done: the units done, including those that an earlier command did.
        detail: a text shown beside the work done.
    """

    def __init__(
        self,
        total: int,
        unit: str = "reply",
        title: str = "",
        waves: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ):
        from tqdm import tqdm

        self.total = total
        self.done = 0
        self.detail = ""
        self._unit = unit
        self._title = title
        self._waves = waves
        self._clock = clock
        self._started = clock()
        self._advances: list[tuple[float, int]] = []  # seconds and new units, from the start
        self._tokens = 0
        self._recorded = 0  # units that an earlier command did
        self._has_reported = not title  # whether the recorded units have been reported
        self._on_terminal = sys.stderr.isatty()
        self._tqdm = tqdm(total=total, unit=unit, disable=not self._on_terminal, dynamic_ncols=True)
        self._over = threading.Event()
        self._lock = threading.Lock()

    @classmethod
    def of(cls, unit: str) -> Watch:
        """Builds a `Watch`, which shows each step of a command: its name, then a bar."""
        return lambda step, total: cls(total, unit, f"{step}: {total:,} {plural_of(unit)}")

    def __enter__(self) -> Bar:
        threading.Thread(target=self._print_periodically, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self.done == self._recorded:
            self._print_already_done()
        self._tqdm.close()

    def note(self, line: str) -> None:
        """Prints a line as `note` does, above the bar."""
        self._tqdm.write(f"holdfast: {line}", file=sys.stderr)

    def __call__(self, done: int, tokens: int = 0) -> None:
        """Adds units that are done, and the tokens of their replies."""
        self._print_title()
        seconds = self._clock() - self._started
        if done > 1 and seconds < 1 and not tokens and not self._tokens:
            # recorded by an earlier command, so they say nothing of the speed
            self._recorded += done
        elif self.done == self._recorded:
            self._print_already_done()
        self.done += done
        self._tokens += tokens
        if new := self.done - self._recorded:
            self._advances.append((seconds, new))
        if self.detail:
            self._tqdm.set_postfix_str(self.detail, refresh=False)
        self._tqdm.update(done)

    def leave_out(self, units: int) -> None:
        """Subtracts units that will not be done from the total."""
        self.total -= units
        self._tqdm.total = self.total

    def line(self) -> str:
        """The work done, its pace, and about how long the rest takes.

        Such as "400 of 1,600 replies (25%), 12 replies a second, about 100 seconds left".
        """
        seconds = self._clock() - self._started
        share = self.done / max(self.total, 1)
        parts = [f"{self.done:,} of {self.total:,} {plural_of(self._unit)} ({share:.0%})"]
        new = self.done - self._recorded
        is_early = 0 < new < _FEW_UNITS and 10 * new < self.total - self._recorded
        if new and not is_early:
            parts.append(pace(new / max(seconds, 1e-9), self._unit))
        if self.detail:
            parts.append(self.detail)
        parts.append(self._rest_text(seconds, is_early))
        return ", ".join(parts)

    def _rest_text(self, seconds: float, is_early: bool) -> str:
        """About how long the rest takes, such as "about 5 minutes left"."""
        if self.done >= self.total:
            return "finishing"
        if is_early:
            return "too early to say how long the rest takes"
        left = self._seconds_left(seconds)
        idle = seconds - (self._advances[-1][0] if self._advances else 0.0)
        if left is None or idle > max(left, _MIN_IDLE_SECONDS):  # the estimate has run out
            return f"nothing new finished for {duration(idle)}"
        return f"about {duration(left)} left"

    def _seconds_left(self, now: float) -> float | None:
        total = self.total - self._recorded
        if not self._waves:
            return seconds_left(self._advances, total, now)
        return seconds_left(self._advances, total, now, growth=GROWTH, waves=self._waves)

    def _print_already_done(self) -> None:
        """Reports how much an earlier command did."""
        if self._recorded and not self._has_reported:
            self._has_reported = True
            self.note(f"{self._recorded:,} of {self.total:,} {plural_of(self._unit)} already done")

    def _print_title(self) -> None:
        """Prints the title, unless it has been printed."""
        with self._lock:
            title = self._title
            self._title = ""
        if title:
            self.note(title)

    def _print_periodically(self) -> None:
        if self._over.wait(SECONDS_TO_TITLE):
            return
        self._print_title()
        wait = SECONDS_TO_TITLE if self._on_terminal else SECONDS_TO_FIRST_LINE
        while not self._over.wait(wait):
            if self._on_terminal:
                self._tqdm.refresh()  # updates the elapsed time during a long step
            else:
                self._print_already_done()
                note(self.line())
                if self.done >= self.total:
                    return
                wait = SECONDS_BETWEEN_LINES


def pace(per_second: float, unit: str) -> str:
    """Formats a pace per second, minute or hour: the first that gives a number of at least 1.

    >>> pace(12.3, "reply"), pace(1.5, "reply"), pace(0.2, "reply"), pace(0.001, "reply")
    ('12 replies a second', '1.5 replies a second', '12 replies a minute', '3.6 replies an hour')
    """
    count = per_second
    time_unit = "a second"
    if count < 1:
        count = 60 * per_second
        time_unit = "a minute"
    if count < 1:
        count = 3600 * per_second
        time_unit = "an hour"
    return f"{count:,.{0 if count >= 10 else 1}f} {plural_of(unit)} {time_unit}"
