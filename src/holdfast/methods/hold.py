"""A minimum mass for each head, from a rehearsed first reply; our own method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from holdfast.chat.messages import Message
from holdfast.methods.heads import Head, HeadSet
from holdfast.methods.kinds import MethodKind
from holdfast.methods.parameters import heads_parameter, method, number, parameter, whole
from holdfast.methods.table import TableEntry, TableMethod

if TYPE_CHECKING:
    from torch import Tensor

# so that a floor's log-odds are finite; no reply of a real model puts less or more on its prompt
_MIN_MASS = 1e-9
_MAX_MASS = 1 - 1e-6


@dataclass(frozen=True)
class Floors(TableMethod):
    """The least mass of each head: what `Hold` becomes after a rehearsed first reply."""

    name: ClassVar[str] = "floors"

    floors: tuple[tuple[float, ...], ...]  # log-odds, [layer][head]; -inf for no floor
    touched: HeadSet | None = None  # the heads that may have a floor; None for all

    @cached_property
    def heads(self) -> HeadSet:
        """The heads that have a floor."""
        return HeadSet(self._entries)

    def entry_on(self, head: Head | None) -> TableEntry:
        """Returns the floor of a head that has one; for None, an entry that changes nothing."""
        return self._entries[head] if head else TableEntry()

    @cached_property
    def _entries(self) -> dict[Head, TableEntry]:
        return {
            (layer, head): TableEntry(floor=floor)
            for layer, row in enumerate(self.floors)
            for head, floor in enumerate(row)
            if floor > -math.inf and (self.touched is None or (layer, head) in self.touched)
        }


@method
class Hold:
    """Keeps each head's attention mass on the span from falling below that of a rehearsed first
    reply.

    Before a chat is answered, a reply to its first turn is rehearsed: greedy, unsteered, at most
    `tokens` tokens. With m a head's mean mass on the span over these tokens, no query of the chat
    gives the span less than `fraction` * m on that head: x' = max(x, logit(fraction * m)). So each
    head keeps the mass that it gives the prompt at the start of a dialog, and no number has to be
    chosen: heads that never attended to the prompt have practically no floor. The rehearsal is
    computed once per first turn and cached.

    The floor is Spotlight's (arXiv 2505.12025); one per head, taken from the model, is ours.
    """

    name: ClassVar[str] = "hold"
    kind: ClassVar[MethodKind] = MethodKind.REHEARSED
    source: ClassVar[str] = "ours, with the floor of Spotlight, arXiv 2505.12025"

    fraction: float = parameter(
        "what part of the first reply's mass is the floor; 0 changes nothing",
        number(0),
        "1",
        default=1.0,
    )
    tokens: int = parameter("how many tokens of a first reply are rehearsed", whole(1), default=24)
    heads: HeadSet | None = heads_parameter()

    @property
    def max_rehearsal_tokens(self) -> int:
        """The most tokens that the rehearsed reply may have."""
        return self.tokens

    def first_turn(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Returns the chat that the rehearsed reply answers: all up to the first user message."""
        roles = [message["role"] for message in messages]
        end = roles.index("user") + 1 if "user" in roles else len(roles)
        return tuple(messages[:end])

    def resolve(self, mass: Tensor) -> Floors:
        """Returns the floors, given the mass at each token of the rehearsed reply.

        Args:
            mass: float [layer, head, token].
        """
        floors = (mass.double().mean(-1) * self.fraction).clamp(0, _MAX_MASS)
        return Floors(
            tuple(tuple(_log_odds(value) for value in row) for row in floors.tolist()), self.heads
        )


def _log_odds(mass: float) -> float:
    return math.log(mass) - math.log1p(-mass) if mass > _MIN_MASS else -math.inf
