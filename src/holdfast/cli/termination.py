"""SIGTERM ends a command as Ctrl-C does: what is finished is kept, and how to go on is said."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator

INTERRUPTED, TERMINATED = 130, 143  # exit codes: 128 and the number of the signal


class Terminated(KeyboardInterrupt):
    """Raised where the program is when the system asks it to end."""


@contextlib.contextmanager
def heeding_sigterm() -> Iterator[None]:
    """Within it, the first SIGTERM raises `Terminated`, and a second ends the process at once."""
    if threading.current_thread() is not threading.main_thread():  # signals are the main thread's
        yield
        return
    before = signal.getsignal(signal.SIGTERM)

    def end(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise Terminated

    if before is signal.SIG_DFL:  # else someone else heeds it, or it is to be ignored
        signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        if before is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def ending_at_once() -> Iterator[None]:
    """Within it, SIGTERM ends the process where it is, for what has nothing to keep: an exception
    that is raised amid the import of a compiled library may break it, and not arrive.
    """
    before = signal.getsignal(signal.SIGTERM)
    main = threading.current_thread() is threading.main_thread()
    if not main or before is signal.SIG_IGN:  # signals are the main thread's; it is to be ignored
        yield
        return

    def end(number: int, frame: object) -> None:
        os.write(sys.stderr.fileno(), b"\nholdfast: terminated.\n")
        os._exit(TERMINATED)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
