"""Passes the text of a reply on, piece by piece, while it is drawn."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from holdfast.models.event_loop import run_sync
from holdfast.models.protocol import ChatModel, prepare_batch
from holdfast.models.requests import Reply, Request, Token

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_UNFINISHED = "\ufffd"  # tokenizers decode an incomplete character to this


@runtime_checkable
class StreamsText(Protocol):
    """A model that can pass a reply on piece by piece while it is drawn."""

    def stream(self, request: Request, write: Callable[[str], None]) -> Reply:
        """Answers one chat, and passes its text to `write` in pieces."""


def stream_text(model: ChatModel, request: Request, write: Callable[[str], None]) -> Reply:
    """Answers one chat and passes its text to `write`, in pieces if the model supports it."""
    if isinstance(model, StreamsText):
        return model.stream(request, write)

    async def answer() -> Reply:
        async with model.session() as engine:
            return await engine.generate(request)

    reply = run_sync(answer())
    write(reply.text)
    return reply


def stream_reply(
    stream: Callable[[Request], AsyncGenerator[Token | Reply]],
    tokenizer: PreTrainedTokenizerFast,
    request: Request,
    write: Callable[[str], None],
) -> Reply:
    """Answers one chat and passes its text to `write` in pieces, as its tokens are drawn.

    Args:
        stream: yields every token as it is drawn, and the reply last; of an engine in this process.
    """
    (request,) = prepare_batch([request])
    text = PieceWriter(tokenizer, write)

    async def answer() -> Reply:
        async with aclosing(stream(request)) as events:
            async for event in events:
                if isinstance(event, Reply):
                    return event
                text.add(event.token_id)
        raise AssertionError("a stream ends with its reply")

    reply = run_sync(answer())
    text.finish(reply.text)
    return reply


class PieceWriter:
    """Passes the text of a reply to `write` in pieces that consist of whole characters."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, write: Callable[[str], None]):
        self.tokenizer = tokenizer
        self.write = write
        self.token_ids: list[int] = []
        self.written = ""

    def add(self, token: int) -> None:
        """Adds a token, and writes the text that it completes."""
        self.token_ids.append(token)
        text = str(self.tokenizer.decode(self.token_ids, skip_special_tokens=True))
        if not text.endswith(_UNFINISHED):
            self.finish(text)

    def finish(self, text: str) -> None:
        """Writes the rest of `text`, the whole reply so far, after the part already written."""
        if text.startswith(self.written) and len(text) > len(self.written):
            self.write(text[len(self.written) :])
            self.written = text
