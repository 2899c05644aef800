"""Keys and values that outlive the pass that made them, so that no token is forwarded twice.

They belong to token ids and to the steering under which they were made: a prefix is shared where
both agree. Memory for them is bounded; what was used longest ago goes first, and is computed again
when it is wanted.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from torch import Tensor

from holdfast.methods.protocols import ShiftsAttention

# per layer, [head, token, size]: one row without padding; () of a layer that keeps nothing
KeysValues = tuple[tuple[Tensor, ...], ...]


@dataclass(eq=False)
class Prefix:
    """What is known of the first tokens of a dialog.

    Args:
        token_ids: in order.
        span: True on the tokens to hold on to.
        methods: the steering under which the keys and values were made.
        keys_values: of the first tokens, perhaps not of all; None where nothing is computed, or
            what was is evicted.
    """

    token_ids: tuple[int, ...]
    span: tuple[bool, ...]
    methods: tuple[ShiftsAttention, ...]
    keys_values: KeysValues | None

    def shared_with(
        self,
        token_ids: tuple[int, ...],
        span: tuple[bool, ...],
        methods: tuple[ShiftsAttention, ...],
    ) -> int:
        """How many first tokens of another prompt have these keys and values.

        Under other methods only those in front of the span do: from there on, steering has moved
        what a token has read, and so its keys.
        """
        if self.keys_values is None:
            return 0
        shared = min(_common(self.token_ids, token_ids), _common(self.span, span))
        if methods != self.methods and True in span[:shared]:
            shared = span.index(True)
        return min(shared, token_count(self.keys_values))

    @property
    def size(self) -> int:
        """Bytes of the keys and values."""
        if self.keys_values is None:
            return 0
        return sum(states.nbytes for layer in self.keys_values for states in layer)


class PrefixCache:
    """The prefixes of threads, within a number of bytes.

    Args:
        limit: bytes of keys and values that are kept.
    """

    def __init__(self, limit: int):
        self.limit, self.size = limit, 0
        self._threads: OrderedDict[Hashable, Sequence[Prefix]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._threads)

    def keep(self, thread: Hashable, prefixes: Sequence[Prefix]) -> None:
        """Keeps what a thread has computed in place of what it had, and evicts others."""
        self.forget(thread)
        self._threads[thread] = prefixes
        self.size += sum(prefix.size for prefix in prefixes)
        for others in list(self._threads.values()):
            if self.size <= self.limit:
                break
            for prefix in others:
                self.size -= prefix.size
                prefix.keys_values = None

    def use(self, thread: Hashable) -> None:
        """Counts a thread as used just now."""
        if thread in self._threads:
            self._threads.move_to_end(thread)

    def forget(self, thread: Hashable) -> None:
        """Keeps a thread's prefixes no longer; who waits to go on from them still can."""
        self.size -= sum(prefix.size for prefix in self._threads.pop(thread, ()))


def token_count(keys_values: KeysValues) -> int:
    """Of how many tokens these are."""
    return keys_values[0][0].shape[1]


def first_tokens(keys_values: KeysValues, count: int) -> KeysValues:
    """Those of the first `count` tokens, as views."""
    return tuple(tuple(states[:, :count] for states in layer) for layer in keys_values)


def _common(first: Sequence[object], second: Sequence[object]) -> int:
    """How many first elements are equal."""
    pairs = enumerate(zip(first, second, strict=False))
    shortest = min(len(first), len(second))
    return next((index for index, (left, right) in pairs if left != right), shortest)
