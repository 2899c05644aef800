"""One writer at a time for a run folder."""

from __future__ import annotations

import contextlib
import errno
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import RecordsError

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK = "run.lock"
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)


def take_lock(folder: Path) -> BaseFileLock | None:
    """Locks the folder for this process; warns, and returns None, if its file system has no locks.

    The system releases the lock when the process ends, however it ends.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK, timeout=0, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire()
        with contextlib.suppress(OSError):  # the owner, for another process's message
            (folder / LOCK).write_text(str(os.getpid()))
        return lock
    except Timeout:
        raise _in_use(folder) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    warnings.warn(
        f"The file system of {folder} has no locks; run one command at a time there.", stacklevel=3
    )
    return None


def _in_use(folder: Path) -> RecordsError:
    owner = ""
    with contextlib.suppress(OSError):
        owner = (folder / LOCK).read_text("ascii", "replace")[:20]
    return RecordsError(
        f"{folder} is being written by {f'process {owner}' if owner else 'another process'}; wait"
        " for it to end, or choose another folder with --out.",
        option=str(folder),
        value=owner,
    )
