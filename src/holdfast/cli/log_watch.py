"""`holdfast logs --watch`: prints each new breach, and rewrites the results now and then."""

from __future__ import annotations

import time
from collections.abc import Callable

from holdfast.cli.progress import Terminated, note, printable
from holdfast.errors import cut
from holdfast.logs.watching import Breach, LogWatch

POLL = 0.5  # seconds between looks at the files
REWRITE = 5.0  # seconds between two versions of the results, at least
_QUOTED = 80  # characters of a reply that a line shows


def follow(watch: LogWatch, rewrite: Callable[[], None]) -> None:
    """Follows logs until an interrupt; the results are then those of all that was read.

    Args:
        rewrite: writes the results. It is called once the logs have been read, again after they
            changed, at most every few seconds, and once more at the end.
    """
    is_first = True
    is_new = False
    last_written = -REWRITE
    seconds_to_write = 0.0
    try:
        while True:
            breaches = watch.poll()
            is_new = is_new or breaches is not None
            if not is_first:  # those that were there are in the table
                for breach in breaches or ():
                    print(line_of(breach), flush=True)
            now = time.monotonic()
            # results that take long to write are written less often
            if is_new and now - last_written >= max(REWRITE, 4 * seconds_to_write):
                rewrite()
                is_new = False
                last_written = time.monotonic()
                seconds_to_write = last_written - now
            if is_first:
                note("Following the logs; Ctrl-C ends it.")
            is_first = False
            time.sleep(POLL)
    except Terminated:
        raise
    except KeyboardInterrupt:
        print()


def line_of(breach: Breach) -> str:
    """A breach as a line: the time, where it is, the rule, why, and what was said."""
    reply = cut(" ".join(printable(breach.reply).split()), _QUOTED)
    quote = f': "{reply}"' if reply else ""
    where = f"{breach.source}, turn {breach.turn}"
    return f"{time.strftime('%H:%M:%S')} {where}: {breach.rule} ({breach.reason}){quote}"
