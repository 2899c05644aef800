"""Keys and values of prompts and replies, shared by all prompts that begin with the same tokens
under the same steering and with the same rotary factors.

They are in a radix tree over tokens: each segment keeps the keys and values of its own tokens, and
other segments can branch off at any of them. If layers keep states or windows, which are usable
only at the end of a segment, each segment also keeps the keys and values of all tokens before it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from holdfast.attention import SAME_FACTORS, RotaryLengths
from holdfast.generation.saved_kv import SavedKV, shared_prefix_len
from holdfast.generation.token_requests import TokenPrompt

_Tokens = np.ndarray[tuple[int], np.dtype[np.int64]]
_NO_TOKENS: _Tokens = np.zeros(0, np.int64)
_BEGINNING = 32  # tokens by which prompts are compared in `beginning_key`


@dataclass(eq=False)
class _Segment:
    """Consecutive tokens of a prompt, which follow tokens of the parent."""

    parent: _Segment | None  # None for a root, which has no tokens
    first: int  # number of tokens before this segment; it may begin inside the parent
    tokens: _Tokens
    # keys and values of these tokens, or of all tokens up to their end; None for a root, or if
    # evicted
    kv: SavedKV | None
    # by the number of tokens before the child, and the child's first token
    children: dict[tuple[int, int], _Segment] = field(default_factory=dict)

    @property
    def pinned_len(self) -> int:
        """How many first tokens must be kept, because children build on them."""
        ends = (child.first for child in self.children.values() if child.continues_parent)
        return max(ends, default=self.first)

    @property
    def continues_parent(self) -> bool:
        """Whether its keys and values continue those of the parent."""
        return self.kv is not None and self.kv.start > 0


class PrefixCache:
    """Keys and values of prompts; evicts the least recently used first.

    Args:
        limit: bytes of keys and values to keep; 0 keeps none.
        saves_pieces: whether keys and values of successive tokens can be saved in pieces.
        rotary: which text lengths have the same rotary factors.

    Attributes:
        size: bytes of keys and values at present.
    """

    def __init__(self, limit: int, *, saves_pieces: bool, rotary: RotaryLengths = SAME_FACTORS):
        self.limit = limit
        self.saves_pieces = saves_pieces
        self.size = 0
        self._rotary = rotary
        self._roots: dict[Hashable, _Segment] = {}
        self._used: OrderedDict[_Segment, None] = OrderedDict()  # by last use, oldest first

    def __len__(self) -> int:
        return len(self._used)

    def find(self, prompt: TokenPrompt) -> tuple[SavedKV, ...]:
        """Finds keys and values of a prompt's first tokens, in consecutive pieces.

        The last token is never included, since it has to be forwarded. Returns () if there are
        none.
        """
        root = self._roots.get(self._key(prompt, len(prompt.token_ids)))
        if root is None:
            return ()
        for segment, matched in reversed(_walk(root, _encode(prompt))):
            end = min(matched, len(prompt.token_ids) - 1)
            kv = segment.kv
            if kv is not None and segment.first < end and end >= kv.min_prefix_len:
                if end > segment.pinned_len or not segment.children:
                    self._used[segment] = None
                    self._used.move_to_end(segment)
                return _collect_pieces(segment, end)
        return ()

    def keep(
        self,
        prompt: TokenPrompt,
        generated: tuple[int, ...],
        count: int,
        copy_from: Callable[[int], SavedKV | None],
        length: int,
    ) -> None:
        """Keeps the keys and values of a sequence's first tokens, as far as they are new.

        Args:
            prompt: the prompt of the sequence.
            generated: the tokens generated after it.
            count: how many first tokens of both to keep.
            copy_from: copies the keys and values from a given token on; it may return None.
            length: the length of the text in which they were computed.
        """
        if not self.limit:
            return
        key = self._key(prompt, length)
        root = self._roots.setdefault(key, _Segment(None, 0, _NO_TOKENS, None))
        tokens = _encode(prompt, generated)[:count]
        path = _walk(root, tokens)
        parent, depth = path[-1] if path else _Match(root, 0)
        kv = copy_from(depth if self.saves_pieces else 0) if depth < count else None
        if kv is not None:
            segment = _Segment(parent, depth, tokens[depth:], kv)
            parent.children[depth, int(tokens[depth])] = segment
            self.size += kv.size
            self._used[segment] = None
        while self.size > self.limit:
            self._evict(next(iter(self._used)))
        if not root.children:
            self._roots = {key: kept for key, kept in self._roots.items() if kept.children}

    def gain(self, prompt: TokenPrompt, other: TokenPrompt) -> int:
        """Returns how many more first tokens of a prompt will be available once `other` has run."""
        key = self._key(prompt, len(prompt.token_ids))
        if key != self._key(other, len(other.token_ids)):
            return 0
        common = min(shared_prefix_len(_encode(prompt), _encode(other)), len(prompt.token_ids) - 1)
        if not self.saves_pieces and common < len(other.token_ids):
            return 0
        pieces = self.find(prompt)
        return max(0, common - (pieces[-1].tokens if pieces else 0))

    def clear(self) -> None:
        """Drops everything."""
        self.size = 0
        self._roots.clear()
        self._used.clear()

    def _key(self, prompt: TokenPrompt, length: int) -> Hashable:
        """The properties, besides tokens, that must be equal to share keys and values."""
        return prompt.pass_methods, self._rotary.lengths_like(length)

    def _evict(self, segment: _Segment) -> None:
        """Drops the part of a segment that no child builds on, which may be all of it."""
        del self._used[segment]
        kv = segment.kv
        pinned_len = segment.pinned_len
        if kv is None or pinned_len == kv.tokens:
            return
        self.size -= kv.size
        if pinned_len > segment.first:
            segment.tokens = segment.tokens[: pinned_len - segment.first]
            segment.kv = kv.first(pinned_len).copy()
            self.size += segment.kv.size
            return
        segment.kv = None
        self._unlink(segment)

    def _unlink(self, segment: _Segment) -> None:
        """Removes an empty segment from the tree, unless it has children."""
        parent = segment.parent
        if segment.children or segment.kv is not None or parent is None:
            return
        del parent.children[segment.first, int(segment.tokens[0])]
        if parent.kv is None:
            self._unlink(parent)
        elif parent not in self._used:  # its end is no longer pinned, so it is the next to evict
            self._used[parent] = None
            self._used.move_to_end(parent, last=False)


def beginning_key(prompt: TokenPrompt) -> Hashable:
    """Returns a key that is equal for prompts that may have a long common prefix."""
    return prompt.pass_methods, _encode(prompt)[:_BEGINNING].tobytes()


def _collect_pieces(segment: _Segment, end: int) -> tuple[SavedKV, ...]:
    """Collects the keys and values of the first `end` tokens, the last of which is in `segment`."""
    pieces = list[SavedKV]()
    while segment.kv is not None and segment.parent is not None:
        pieces.append(segment.kv.first(end))
        end = segment.kv.start
        if not end:
            break
        segment = segment.parent
    return tuple(reversed(pieces))


class _Match(NamedTuple):
    """A segment on the path of a text."""

    segment: _Segment
    depth: int  # how many tokens match up to the end of the path in this segment


def _walk(root: _Segment, tokens: _Tokens) -> list[_Match]:
    """Follows tokens from a root; returns the segments that match them, in order."""
    path = list[_Match]()
    depth = 0
    segment = root
    while depth < len(tokens):
        child = segment.children.get((depth, int(tokens[depth])))
        if child is None:
            break
        depth += shared_prefix_len(child.tokens, tokens[depth:])
        path.append(_Match(child, depth))
        segment = child
    return path


def _encode(prompt: TokenPrompt, generated: tuple[int, ...] = ()) -> _Tokens:
    """Encodes tokens for the tree: an even number each, odd for a token of a steered span."""
    tokens = 2 * np.array(prompt.token_ids + generated, np.int64)
    if prompt.pass_methods:
        tokens[: len(prompt.span)] += np.array(prompt.span)
    return tokens
