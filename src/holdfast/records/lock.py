"""One writer at a time for a run folder, on file systems with locks and on those without."""

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
MARKER = "run.lock.held"
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)


def take_lock(folder: Path) -> BaseFileLock | None:
    """Locks the folder for this process.

    The system drops the lock when the process ends, however it ends. A file system without such
    locks gets a file that marks the folder instead, which the next process of the same machine
    clears away when this one is gone, and a warning; so does, without a lock, one where that fails.
    """
    from filelock import FileLock, SoftFileLock, Timeout

    lock = FileLock(folder / LOCK, timeout=0, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire()
        with contextlib.suppress(OSError):  # whose it is, for the message of another process
            (folder / LOCK).write_text(str(os.getpid()))
        return lock
    except Timeout:
        raise _in_use(folder, folder / LOCK, "wait for it to end") from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    marker = SoftFileLock(folder / MARKER, timeout=0, thread_local=False)
    how = f"{MARKER} marks it as in use instead"
    try:
        marker.acquire()
    except Timeout:
        cure = f"wait for it to end, or delete {folder / MARKER} if it is gone"
        raise _in_use(folder, folder / MARKER, cure) from None
    except OSError as error:
        how = f"{MARKER} cannot be made either ({error.strerror}), so keep to one command there"
    warnings.warn(f"The file system of {folder} has no locks; {how}.", stacklevel=3)
    return marker if marker.is_locked else None


def _in_use(folder: Path, lock: Path, cure: str) -> RecordsError:
    owner = ""
    with contextlib.suppress(OSError):
        owner = lock.read_bytes()[:300].decode("ascii", "replace")
    process, *host = owner.split()[:2] or [""]
    by = f"process {process}" if process else "another process"
    by += f" on {host[0]}" if host else ""
    return RecordsError(
        f"{folder} is being written by {by}; {cure}, or choose another folder with --out."
    )
