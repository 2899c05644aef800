"""Keeps the dialogs of a session's threads, with their keys and values.

Memory for keys and values is bounded: those of the least recently used threads are evicted first,
and recomputed when needed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from holdfast.models.rendering import CachedDialog

_Dialog = tuple[CachedDialog, ...]  # one per stream


class ThreadCache:
    """Keeps the dialog of each thread, with at most `limit` bytes of keys and values in all.

    Attributes:
        size: the bytes of the keys and values that are kept.
    """

    def __init__(self, limit: int):
        self.limit = limit
        self.size = 0
        self._dialogs = OrderedDict[Hashable, _Dialog]()  # the least recently used first

    def __len__(self) -> int:
        return len(self._dialogs)

    def keep(self, thread: Hashable, dialog: _Dialog) -> None:
        """Replaces the dialog of a thread, and evicts keys and values beyond the limit."""
        self.forget(thread)
        self._dialogs[thread] = dialog
        self.size += _size(dialog)
        for other in self._dialogs.values():
            if self.size <= self.limit:
                break
            self.size -= _size(other)
            for stream in other:
                stream.prefix.keys_values = None

    def use(self, thread: Hashable) -> _Dialog:
        """Returns a thread's dialog, which becomes the most recently used; () if it is unknown."""
        if thread not in self._dialogs:
            return ()
        self._dialogs.move_to_end(thread)
        return self._dialogs[thread]

    def forget(self, thread: Hashable) -> None:
        """Drops a thread; streams that already refer to its keys and values can still use them."""
        self.size -= _size(self._dialogs.pop(thread, ()))


def _size(dialog: _Dialog) -> int:
    return sum(stream.prefix.size for stream in dialog)
