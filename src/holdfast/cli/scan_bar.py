"""Shows the progress of reading large logs: megabytes, files and problems."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from holdfast.cli.progress import Bar
from holdfast.logs.scanning import ScanProgress
from holdfast.plurals import count_of

_LARGE = 20_000_000  # bytes from which progress is shown
_MEGABYTE = 1_000_000


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
            if progress.all_bytes < _LARGE:
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
