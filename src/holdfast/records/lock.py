"""Locks run folders, so that only one process writes to a folder at a time."""

from __future__ import annotations

import contextlib
import errno
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import RecordsError, option

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK = "run.lock"
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)


def take_lock(folder: Path) -> BaseFileLock | None:
    """Locks the folder for this process; if its file system has no locks, warns and returns None.

    The operating system releases the lock when the process ends, even if it is killed.

    Raises:
        RecordsError: another process has locked the folder.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK, timeout=0, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire()
        with contextlib.suppress(OSError):  # for the message of another process
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
    process_id = ""
    with contextlib.suppress(OSError):
        process_id = (folder / LOCK).read_text("ascii", "replace")[:20]
    writer = f"process {process_id}" if process_id else "another process"
    return RecordsError(
        f"{folder} is being written by {writer}; wait for it to end, or choose another folder with"
        f" {option('out')}.",
        option=str(folder),
        value=process_id,
    )
