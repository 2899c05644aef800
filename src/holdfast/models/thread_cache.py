"""Keys and values that threads have computed, from which their next requests continue.

For example:

    keep("thread 1", prefixes), use("thread 1")
    -> prefixes, without their keys and values if threads that were used later take all the memory
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from itertools import zip_longest

from holdfast.generation.saved_kv import CachedPrefix

_Prefixes = tuple[CachedPrefix, ...]  # of a conversation so far, one per prompt of its requests


class ThreadCache:
    """Keeps the prefixes of each thread, with at most `limit` bytes of keys and values in all.

    Those of the least recently used threads are evicted first, and recomputed when needed.

    Attributes:
        size: the bytes of the keys and values that are kept.
    """

    def __init__(self, limit: int):
        self.limit = limit
        self.size = 0
        self._prefixes = OrderedDict[Hashable, _Prefixes]()  # the least recently used first

    def __len__(self) -> int:
        return len(self._prefixes)

    def keep(self, thread: Hashable, prefixes: _Prefixes) -> None:
        """Replaces the prefixes of a thread, and evicts keys and values beyond the limit."""
        earlier = self._prefixes.get(thread, ())
        self.forget(thread)
        merged: list[CachedPrefix] = []
        for prefix, before in zip_longest(prefixes, earlier[: len(prefixes)]):
            if before is not None and before.is_continued_by(prefix):
                # requests that wait with it use the new copy, the only one that remains
                before.become(prefix)
                merged.append(before)
            else:
                merged.append(prefix)
        self._prefixes[thread] = tuple(merged)
        self.size += _size(self._prefixes[thread])
        for others in self._prefixes.values():
            if self.size <= self.limit:
                break
            self.size -= _size(others)
            for prefix in others:
                prefix.kv = None

    def use(self, thread: Hashable) -> _Prefixes:
        """Returns a thread's prefixes, which become the most recently used; () if it has none."""
        if thread not in self._prefixes:
            return ()
        self._prefixes.move_to_end(thread)
        return self._prefixes[thread]

    def forget(self, thread: Hashable) -> None:
        """Drops a thread; requests that already refer to its keys and values can still use them."""
        self.size -= _size(self._prefixes.pop(thread, ()))


def _size(prefixes: _Prefixes) -> int:
    return sum(prefix.size for prefix in prefixes)
