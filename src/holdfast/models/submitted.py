"""A request that was submitted to a session, and what has become of it."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.engine.scheduler import Handle
from holdfast.errors import ModelError
from holdfast.models.rendering import Rendered
from holdfast.models.requests import Reply


@dataclass(eq=False)
class Answer:
    """A request that was submitted.

    Args:
        rendered: the request, and its tokens.
        handle: of its row; another one once its methods are settled, where that takes a rehearsal.
        taken: tokens that were told already.
        rehearsed: tokens that went through the model for a rehearsal.
        reply: once it has ended.
        error: why it ended without.
    """

    rendered: Rendered
    handle: Handle
    taken: int = 0
    rehearsed: int = 0
    reply: Reply | None = None
    error: Exception | None = None

    @property
    def token_ids(self) -> list[int]:
        """Drawn so far, the one that ends the reply excepted."""
        return self.handle.token_ids

    @property
    def cancelled(self) -> bool:
        """Whether it was given up."""
        return self.handle.cancelled

    @property
    def done(self) -> bool:
        """Whether nothing more will come of it."""
        return self.cancelled or self.error is not None or self.reply is not None

    @property
    def has_news(self) -> bool:
        """Whether tokens were drawn that `take` has not told."""
        return len(self.token_ids) > self.taken

    def take(self) -> list[int]:
        """The tokens drawn since it was last asked."""
        fresh = self.token_ids[self.taken :]
        self.taken += len(fresh)
        return fresh

    def result(self) -> Reply:
        """The reply.

        Raises:
            ModelError: it has not ended, or was cancelled.
            Exception: its own error, where it has one.
        """
        if self.error is not None:
            raise self.error
        if self.reply is None:
            state = "was cancelled" if self.cancelled else "has not ended"
            raise ModelError(f"The request {state}, so there is no reply to it.")
        return self.reply
