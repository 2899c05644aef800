"""`holdfast logs --watch`: prints each new breach, and rewrites the results now and then."""

from __future__ import annotations

import time
from collections.abc import Callable

from holdfast.cli.progress import Terminated, note, printable
from holdfast.errors import cut
from holdfast.logs.watching import Breach, LogWatch

POLL = 0.5  # seconds between two looks at the files
REWRITE = 5.0  # the least seconds between two versions of the results
_MAX_QUOTE_LENGTH = 80  # characters of a reply that a line quotes


def follow(watch: LogWatch, rewrite: Callable[[], None]) -> None:
    """Follows logs until Ctrl-C, and prints each new breach.

    Args:
        rewrite: writes the results. It is called once the logs have been read, and then after they
            have changed, at most every few seconds; not at the end, which is left to the caller.
    """
    is_first = True
    is_new = False
    last_written = -REWRITE
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
    """Describes a breach in a line: the time, its place, the rule, the reason, and the reply."""
    where = f"{breach.source}, turn {breach.turn}"
    line = f"{time.strftime('%H:%M:%S')} {where}: {breach.rule} ({breach.reason})"
    reply = cut(" ".join(printable(breach.reply).split()), _MAX_QUOTE_LENGTH)
    return f'{line}: "{reply}"' if reply else line
