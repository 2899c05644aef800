"""Shows how far `holdfast logs` has read, and follows the logs with `--watch`."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator

from holdfast.cli.shared.interrupts import Terminated
from holdfast.cli.shared.notes import note, printable
from holdfast.cli.shared.progress_bar import Bar
from holdfast.errors import cut
from holdfast.logs.scanning import ScanProgress
from holdfast.logs.watching import Breach, LogWatch
from holdfast.plurals import count_of

_MIN_BYTES_FOR_BAR = 20_000_000
_MEGABYTE = 1_000_000
POLL_SECONDS = 0.5  # between two looks at the files
MIN_REWRITE_SECONDS = 5.0  # between two versions of the results
_MAX_QUOTE_LENGTH = 80  # characters of a reply that a line quotes


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def scan_bar() -> Iterator[Callable[[ScanProgress], None]]:
    """Shows the progress of a scan in a bar, if the logs are large."""
    with contextlib.ExitStack() as stack:
        bars: list[Bar] = []

        def show(progress: ScanProgress) -> None:
            if progress.all_bytes < _MIN_BYTES_FOR_BAR:
                return
            if not bars:
                total = progress.all_bytes // _MEGABYTE
                bars.append(stack.enter_context(Bar(total, "megabyte")))
            bar = bars[0]
            files = f"{progress.files:,} of {count_of(progress.all_files, 'file')}"
            problems = f", {count_of(progress.problems, 'problem')}" if progress.problems else ""
            bar.detail = files + problems
            bar(progress.bytes // _MEGABYTE - bar.done)

        yield show


def follow(watch: LogWatch, rewrite: Callable[[], None]) -> None:
    """Follows logs until Ctrl-C, and prints each new breach.

    Args:
        rewrite: writes the results. It is called once the logs have been read, and then after they
            have changed, at most every few seconds; not at the end, which is left to the caller.
    """
    is_first = True
    is_new = False
    last_written = -MIN_REWRITE_SECONDS
    seconds_to_write = 0.0
    try:
        while True:
            breaches = watch.poll()
            is_new = is_new or breaches is not None
            if not is_first:  # the breaches of the first look are in the table
                for breach in breaches or ():
                    print(line_of(breach), flush=True)
            now = time.monotonic()
            # the longer the results take to write, the less often they are written
            if is_new and now - last_written >= max(MIN_REWRITE_SECONDS, 4 * seconds_to_write):
                rewrite()
                is_new = False
                last_written = time.monotonic()
                seconds_to_write = last_written - now
            if is_first:
                note("Following the logs; Ctrl-C ends it.")
            is_first = False
            time.sleep(POLL_SECONDS)
    except Terminated:
        raise
    except KeyboardInterrupt:
        print()


def line_of(breach: Breach) -> str:
    """Describes a breach in a line: the time, its place, the rule, the reason, and the reply."""
    where = f"{breach.source}, turn {breach.turn}"
    line = f"{time.strftime('%H:%M:%S')} {where}: {breach.rule} ({breach.reason})"
    reply = cut(" ".join(printable(breach.reply).split()), _MAX_QUOTE_LENGTH)
    return f'{line}: "{reply}"' if reply else line
