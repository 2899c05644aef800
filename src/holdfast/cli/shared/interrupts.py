"""Ends a command on SIGTERM, as Ctrl-C would."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import NoReturn

from holdfast.cli.shared.exit_codes import TERMINATED

# seconds in which a second SIGTERM is the same signal: `timeout` sends it to a command, and then to
# the command's process group
_SAME_SIGNAL = 1.0


class Terminated(KeyboardInterrupt):
    """SIGTERM has arrived; raised wherever the program is."""


@contextlib.contextmanager
def _on_sigterm(end: Callable[[], None]) -> Iterator[None]:
    """Within this context, SIGTERM calls `end`, unless other code handles or ignores it."""

    def handle(number: int, frame: object) -> None:
        end()

    before = signal.getsignal(signal.SIGTERM)
    is_free = before is signal.SIG_DFL or getattr(before, "__module__", "") == __name__
    # only the main thread can handle signals
    if not is_free or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def interrupting_on_sigterm() -> contextlib.AbstractContextManager[None]:
    """Within this context, SIGTERM raises `Terminated`; a later one ends the process at once."""

    def end() -> None:
        began = time.monotonic()

        def end_at_once(number: int, frame: object) -> None:
            if time.monotonic() - began > _SAME_SIGNAL:
                _exit_now()

        signal.signal(signal.SIGTERM, end_at_once)
        raise Terminated

    return _on_sigterm(end)


def exiting_on_sigterm() -> contextlib.AbstractContextManager[None]:
    """Within this context, SIGTERM ends the process at once, even during an import."""
    return _on_sigterm(_exit_now)


def _exit_now() -> NoReturn:
    os.write(sys.stderr.fileno(), b"\nholdfast: terminated.\n")
    os._exit(TERMINATED)
