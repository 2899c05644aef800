"""The dialogs of a session's threads, with what was computed for them."""

from __future__ import annotations

from collections.abc import Hashable

from holdfast.generation.prefixes import PrefixCache
from holdfast.models.rendering import CachedDialog


class ThreadCache:
    """The dialog of each thread; its keys and values are kept within `limit` bytes."""

    def __init__(self, limit: int):
        self._dialogs: dict[Hashable, tuple[CachedDialog, ...]] = {}
        self.prefixes = PrefixCache(limit)

    def keep(self, thread: Hashable, dialog: tuple[CachedDialog, ...]) -> None:
        """Remembers the current state of a thread, a `CachedDialog` per stream."""
        self._dialogs[thread] = dialog
        self.prefixes.keep(thread, [stream.prefix for stream in dialog])

    def use(self, thread: Hashable) -> tuple[CachedDialog, ...]:
        """The current dialog of a thread, which is marked as used; () if there is none."""
        self.prefixes.use(thread)
        return self._dialogs.get(thread, ())

    def forget(self, thread: Hashable) -> None:
        """Frees what is known of a thread."""
        self._dialogs.pop(thread, None)
        self.prefixes.forget(thread)

    def __len__(self) -> int:
        return len(self._dialogs)
