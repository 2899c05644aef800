"""Keys and values outlive the pass that computed them, so that no token is forwarded twice.

They belong to token ids and to the steering under which they were made: a prefix is shared where
both agree. Memory for them is bounded; what was used longest ago goes first, and is computed again
when it is wanted.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from holdfast.methods.kinds import Kind, affects_pre_span, of_kind
from holdfast.methods.protocols import InPass


@dataclass(frozen=True)
class KeysValues:
    """Keys, values and states of the first tokens of one row.

    Args:
        tokens: how many they are.
        layers: keys and values, [head, token, size], of each layer; () of one that keeps none.
        states: what the tokens became in each recurrent layer; {} of any other.
        cut: the first token that windowed layers have kept.
        least: how many first tokens they serve at least: with states all of them, with windows
            those whose window is kept.
        start: the first token that layers which keep all of them have here; what is in front of it
            is kept elsewhere.
    """

    tokens: int
    layers: tuple[tuple[Tensor, ...], ...]
    states: tuple[Mapping[tuple[str, int], Tensor], ...]
    cut: int = 0
    least: int = 0
    start: int = 0

    @property
    def size(self) -> int:
        """In bytes."""
        tensors = sum(tensor.nbytes for layer in self.layers for tensor in layer)
        return tensors + sum(tensor.nbytes for states in self.states for tensor in states.values())

    def first(self, count: int) -> KeysValues:
        """Those of the first `count` tokens, as views."""
        behind = self.tokens - count  # a windowed layer has fewer tokens, and the same last one
        views = tuple(
            tuple(tensor[:, : tensor.shape[1] - behind] for tensor in layer)
            for layer in self.layers
        )
        return replace(self, tokens=count, layers=views)

    def copied(self) -> KeysValues:
        """The same in memory of their own; views keep alive what they were taken from."""
        layers = tuple(tuple(tensor.clone() for tensor in layer) for layer in self.layers)
        return replace(self, layers=layers)


@dataclass(eq=False)
class Prefix:
    """The first tokens of a dialog, and what is computed of them.

    Args:
        token_ids: in order.
        span: True on the tokens to hold on to.
        methods: the steering under which the keys and values were made.
        keys_values: of the first tokens, perhaps not of all; None where nothing is computed, or
            what was is evicted.
    """

    token_ids: tuple[int, ...]
    span: tuple[bool, ...]
    methods: tuple[InPass, ...]
    keys_values: KeysValues | None

    def shared_with(
        self,
        token_ids: tuple[int, ...],
        span: tuple[bool, ...],
        methods: tuple[InPass, ...],
    ) -> int:
        """How many first tokens of another prompt have these keys and values; not its last one.

        Under other methods only those in front of the span do: from there on, steering has moved
        what a token has read, and so its keys; and none do where a method moves every token. The
        same holds of the span where its keys depend on the whole prompt. States are shared by
        prompts that begin with all their tokens, and windows by those that part from them near the
        end.
        """
        if self.keys_values is None:
            return 0
        shared = min(_common(self.token_ids, token_ids), _common(self.span, span))
        shared = min(shared, len(token_ids) - 1)
        other = methods != self.methods
        if other and affects_pre_span((*methods, *self.methods)):
            return 0
        if (other or _depend_on_prompt(methods)) and True in span[:shared]:
            shared = span.index(True)
        shared = min(shared, self.keys_values.tokens)
        return shared if shared >= self.keys_values.least else 0

    @property
    def size(self) -> int:
        """Bytes of the keys and values."""
        return 0 if self.keys_values is None else self.keys_values.size


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


def _depend_on_prompt(methods: tuple[InPass, ...]) -> bool:
    """Whether keys of the span depend on what stands behind it."""
    return any(method.reads_query for method in of_kind(methods, Kind.KEYS))


def _common(first: Sequence[object], second: Sequence[object]) -> int:
    """How many first elements are equal."""
    pairs = enumerate(zip(first, second, strict=False))
    shortest = min(len(first), len(second))
    return next((index for index, (left, right) in pairs if left != right), shortest)
