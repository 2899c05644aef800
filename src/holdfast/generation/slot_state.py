"""The state that the layers of a model's slots share: the current pass, and the windows.

For example:

    one slot with the tokens 0 to 4, and a window of 3 tokens
    -> SlotState(lengths=[5], window=Window(width=3, first_kept=[2]))

    Window(width=3, spare=2, first_kept=[0])
    .cut(slot=0, end=8)     -> 4: token 8 sees the tokens 6 to 8, and the spare tokens are 4 and 5
    .min_prefix_len(4)      -> 6: token 6, which comes after such a prefix, sees the tokens 4 to 6
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor

States = Mapping[tuple[str, int], Tensor]  # by kind and number


@dataclass(frozen=True)
class LayerColumns:
    """The columns that layers of one kind read and write in a pass."""

    count: int  # how many columns are read
    first: int  # the token in the first column; 0 if slots differ in it
    written: Tensor  # the column of each token written, [token]


class Sources(NamedTuple):
    """The row and query of a pass that each written token comes from, [token] each."""

    rows: Tensor
    queries: Tensor


@dataclass
class SlotPass:
    """Where the current pass reads and writes."""

    slots_read: slice | Tensor  # the slot of each row
    width: int  # queries per row, padding included
    slots_written: Tensor  # the slot of each token written, [token]
    all_columns: LayerColumns  # for layers that keep all tokens
    window_columns: LayerColumns  # for layers that keep a window
    sources: Sources | None  # None if every row writes one token
    continues: bool  # whether the slots already have computed tokens
    has_written: bool = False  # whether a layer has written yet


@dataclass
class Window:
    """The tokens that windowed layers keep in each slot: the tokens from `first_kept` on.

    The layers keep more tokens than the window sees, so that a slot's tokens have to be moved only
    once in many steps, and so that a prompt that diverges from a conversation at its latest
    question can reuse the rest.
    """

    # how many tokens a query sees, itself included; without a window, more than any text has
    width: int = sys.maxsize
    spare: int = 0  # the most tokens kept beyond the window
    first_kept: list[int] = field(default_factory=list)  # by slot, the first token kept
    # by slot, how many of its first tokens later requests may reuse
    reusable_lens: list[int] = field(default_factory=list)

    def next_first(self, slot: int, end: int) -> int:
        """Returns the first token to keep in a slot whose tokens reach to `end`.

        The window of the last token stays complete, as that token may be forwarded again.
        """
        first = self.first_kept[slot]
        needed_from = min(end, self.reusable_lens[slot]) - self.width
        return needed_from if needed_from - first > self.spare else first

    def cut(self, slot: int, end: int) -> int | None:
        """Returns the first token to copy so that the first `end` tokens can be reused.

        None if the slot no longer has all tokens that this needs.
        """
        first = self.first_kept[slot]
        visible_from = max(0, end + 1 - self.width)
        return None if first > visible_from else max(first, visible_from - self.spare)

    def min_prefix_len(self, first: int) -> int:
        """Length of the shortest prefix that can be reused from the tokens from `first` on."""
        return first + self.width - 1 if first else 0


@dataclass
class SlotState:
    """State that all layers share: the current pass, the tokens computed, and the windows.

    Layers refer to this and not to the slots, because a reference cycle would delay the release of
    memory until cycles are collected.
    """

    current: SlotPass | None = None  # None between passes
    lengths: list[int] = field(default_factory=list)  # computed tokens, by slot
    # by slot, the end of the tokens that passes may have written, committed or not
    ends: list[int] = field(default_factory=list)
    window: Window = field(default_factory=Window)
    # the number of current and expected slots, and the most columns that one of them may need
    max_slots: int = 0
    max_columns: int = 0

    @property
    def current_pass(self) -> SlotPass:
        """The current pass; may only be used during a pass."""
        assert self.current is not None, "no pass is running"
        return self.current
