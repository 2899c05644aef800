"""Replies whose distributions behind the chat that they answered are compared with those behind
another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.errors import UsageError
from holdfast.methods import Method, resamples
from holdfast.models.requests import Reply, Request


@dataclass(frozen=True)
class Compared:
    """A reply and two chats.

    Args:
        request: the chat that it answered; what its `thread` has computed is not forwarded again.
        reference: the other chat, and the methods under which it is read; its thread plays no part.
        reply: to `request`. Where its tokens are not known, its text is tokenized.
    """

    request: Request
    reference: Request
    reply: Reply

    @property
    def alike(self) -> bool:
        """Whether the two chats are the same."""
        return (
            self.request.messages == self.reference.messages
            and self.request.methods == self.reference.methods
        )

    @property
    def ended(self) -> bool:
        """Whether the reply ended by itself."""
        return self.reply.stop_reason != "length"


@dataclass(frozen=True)
class Divergence:
    """How far the distributions of a reply's tokens lie from those behind another chat.

    Args:
        nats: per token KL(q || p), q behind the chat that the reply answered and p behind the
            other; the token that ended the reply is the last. At temperature 1, over the whole
            vocabulary, whatever the reply was drawn with.
        forwarded: tokens that went through the model for it.
    """

    nats: tuple[float, ...]
    forwarded: int = 0

    @property
    def mean(self) -> float:
        """Over the tokens."""
        return sum(self.nats) / len(self.nats)


def check_comparable(methods: Sequence[Method]) -> None:
    """Refuses methods whose tokens have no distributions that could be compared.

    Raises:
        UsageError: a method that draws tokens again, or a threshold under which some tokens are
            never drawn.
    """
    if again := [method for method in methods if resamples(method)]:
        raise UsageError(
            f"{again[0].name} draws tokens again, so replies under it have no distribution to"
            " compare; measure divergence without it."
        )
    for method in methods:
        if (threshold := getattr(method, "plausibility", 0)) > 0:
            raise UsageError(
                f"{method.name} with plausibility={threshold:g} never draws some tokens, so a"
                " divergence under it may be infinite; leave the threshold out."
            )
