"""Keys and values of prompts and replies, shared by all prompts that begin with the same tokens
under the same steering and with the same rotary factors.

A radix tree over tokens: each segment keeps the keys and values of its own tokens, and others can
branch off at any of them. If layers keep states or windows, which are usable only at the end of a
segment, each segment also keeps what is computed of all tokens before it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np

from holdfast.attention import SAME_FACTORS, RotaryLengths
from holdfast.generation.prefixes import KeysValues, common_length
from holdfast.generation.rows import Stream

_Tokens = np.ndarray[tuple[int], np.dtype[np.int64]]
_BEGINNING = 32  # tokens


@dataclass(eq=False)
class _Segment:
    """Consecutive tokens of a prompt, which follow those of the parent."""

    parent: _Segment | None  # None for a root, which has no tokens
    first: int  # number of tokens before its own: the place in the parent where it begins
    tokens: _Tokens
    # of its tokens, or of all up to its end; None for a root, or if evicted
    computed: KeysValues | None
    # by place and first token
    children: dict[tuple[int, int], _Segment] = field(default_factory=dict)

    @property
    def pinned_len(self) -> int:
        """How many first tokens it must keep, because children build on them."""
        ends = (child.first for child in self.children.values() if child.stands_on_parent)
        return max(ends, default=self.first)

    @property
    def stands_on_parent(self) -> bool:
        """Whether its keys and values continue those of the parent."""
        return self.computed is not None and self.computed.start > 0


class SharedPrefixes:
    """Keys and values of prompts within `limit` bytes; evicts the least recently used first."""

    def __init__(self, limit: int, *, pieces: bool, rotary: RotaryLengths = SAME_FACTORS):
        self.limit = limit
        self.pieces = pieces
        self.size = 0
        self._rotary = rotary
        self._roots: dict[Hashable, _Segment] = {}
        self._used: OrderedDict[_Segment, None] = OrderedDict()  # by last use, oldest first

    def __len__(self) -> int:
        return len(self._used)

    def find(self, stream: Stream) -> tuple[KeysValues, ...]:
        """Keys and values of a stream's first tokens, in consecutive pieces; not of the last."""
        root = self._roots.get(self._key(stream, len(stream.token_ids)))
        if root is None:
            return ()
        for segment, end in reversed(_walk(root, _tokens(stream))):
            end = min(end, len(stream.token_ids) - 1)
            computed = segment.computed
            if computed is not None and segment.first < end and end >= computed.least:
                if end > segment.pinned_len or not segment.children:
                    self._used[segment] = None
                    self._used.move_to_end(segment)
                return _pieces(segment, end)
        return ()

    def keep(
        self,
        stream: Stream,
        generated: tuple[int, ...],
        count: int,
        copy_from: Callable[[int], KeysValues | None],
        length: int,
    ) -> None:
        """Keeps the new part of a stream's first `count` tokens, computed in a text of `length`
        tokens; `copy_from(start)` copies it.
        """
        if not self.limit:
            return
        key = self._key(stream, length)
        root = self._roots.setdefault(key, _Segment(None, 0, _tokens(None), None))
        tokens = _tokens(stream, generated)[:count]
        path = _walk(root, tokens)
        parent, depth = path[-1] if path else (root, 0)
        computed = copy_from(depth if self.pieces else 0) if depth < count else None
        if computed is not None:
            segment = _Segment(parent, depth, tokens[depth:], computed)
            parent.children[depth, int(tokens[depth])] = segment
            self.size += computed.size
            self._used[segment] = None
        while self.size > self.limit:
            self._evict(next(iter(self._used)))
        if not root.children:
            self._roots = {key: kept for key, kept in self._roots.items() if kept.children}

    def gain(self, stream: Stream, other: Stream) -> int:
        """How many more first tokens of a stream are available once `other` is computed."""
        key = self._key(stream, len(stream.token_ids))
        if key != self._key(other, len(other.token_ids)):
            return 0
        common = min(common_length(_tokens(stream), _tokens(other)), len(stream.token_ids) - 1)
        if not self.pieces and common < len(other.token_ids):
            return 0
        pieces = self.find(stream)
        return max(0, common - (pieces[-1].tokens if pieces else 0))

    def _key(self, stream: Stream, length: int) -> Hashable:
        """The properties, apart from tokens, of prompts that may share keys and values."""
        return stream.compiled, self._rotary.like(length)

    def clear(self) -> None:
        """Drops everything."""
        self.size = 0
        self._roots.clear()
        self._used.clear()

    def _evict(self, segment: _Segment) -> None:
        """Drops the end of a segment, after the part that children build on; or all of it."""
        del self._used[segment]
        computed = segment.computed
        pinned_len = segment.pinned_len
        if computed is None or pinned_len == computed.tokens:
            return
        self.size -= computed.size
        if pinned_len > segment.first:
            segment.tokens = segment.tokens[: pinned_len - segment.first]
            segment.computed = computed.first(pinned_len).copied()
            self.size += segment.computed.size
            return
        segment.computed = None
        self._unlink(segment)

    def _unlink(self, segment: _Segment) -> None:
        """Removes a segment that keeps nothing, unless it has children."""
        parent = segment.parent
        if segment.children or segment.computed is not None or parent is None:
            return
        del parent.children[segment.first, int(segment.tokens[0])]
        if parent.computed is None:
            self._unlink(parent)
        elif parent not in self._used:  # its end can be evicted again, before all others
            self._used[parent] = None
            self._used.move_to_end(parent, last=False)


def beginning(stream: Stream) -> Hashable:
    """A key that is equal for streams that may have a long common prefix."""
    return stream.compiled, _tokens(stream)[:_BEGINNING].tobytes()


def _pieces(segment: _Segment, end: int) -> tuple[KeysValues, ...]:
    """Keys and values of the first `end` tokens, which end in `segment`."""
    pieces = list[KeysValues]()
    while segment.computed is not None and segment.parent is not None:
        pieces.append(segment.computed.first(end))
        end = segment.computed.start
        if not end:
            break
        segment = segment.parent
    return tuple(reversed(pieces))


def _walk(root: _Segment, tokens: _Tokens) -> list[tuple[_Segment, int]]:
    """The segments along the first tokens, each with how many tokens match up to its end."""
    path = list[tuple[_Segment, int]]()
    depth = 0
    segment = root
    while depth < len(tokens):
        child = segment.children.get((depth, int(tokens[depth])))
        if child is None:
            break
        depth += common_length(child.tokens, tokens[depth:])
        path.append((child, depth))
        segment = child
    return path


def _tokens(stream: Stream | None, generated: tuple[int, ...] = ()) -> _Tokens:
    """A number per token; under methods, a different one if the token is in the span."""
    if stream is None:
        return np.zeros(0, np.int64)
    tokens = 2 * np.array(stream.token_ids + generated, np.int64)
    if stream.compiled:
        tokens[: len(stream.span)] += np.array(stream.span)
    return tokens
