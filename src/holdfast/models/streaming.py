"""Decodes the text of a reply while it is drawn, and passes it on piece by piece."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from holdfast.models.event_loop import run_sync
from holdfast.models.protocol import ChatModel
from holdfast.models.request_batches import prepare_batch
from holdfast.models.requests import Reply, Request, Token

if TYPE_CHECKING:
    from tokenizers.decoders import DecodeStream
    from transformers import PreTrainedTokenizerFast

_UNFINISHED = "\ufffd"  # tokenizers decode an incomplete character to this


@runtime_checkable
class StreamsText(Protocol):
    """A model that can pass a reply on piece by piece while it is drawn."""

    def stream(self, request: Request, write: Callable[[str], None]) -> Reply:
        """Answers one chat, and passes its text to `write` in pieces."""


def stream_text(model: ChatModel, request: Request, write: Callable[[str], None]) -> Reply:
    """Answers one chat and passes its text to `write`, in pieces if the model supports it.

    Raises:
        HoldfastError: the model cannot apply a method, or the chat has nothing for it to work on.
    """
    if isinstance(model, StreamsText):
        return model.stream(request, write)
    (request,) = prepare_batch([request])
    model.check(request.methods)

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
    decoder = TextDecoder(tokenizer)

    def write_text(tokens: Sequence[Token]) -> None:
        if text := "".join(token.text for token in tokens):
            write(text)

    async def answer() -> Reply:
        async with aclosing(stream(request)) as events:
            async for event in events:
                if isinstance(event, Reply):
                    write_text(decoder.finish(event))
                    return event
                write_text(decoder.add(event))
        raise AssertionError("a stream ends with its reply")

    return run_sync(answer())


class TextDecoder:
    """Decodes a reply, and releases tokens once their text is certain.

    Args:
        tokenizer: the model's tokenizer.
        stops: texts that end the reply, and are not part of it.
        special: whether special tokens are part of the text.

    Attributes:
        stopped: whether a stop string has ended the reply.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerFast,
        stops: Sequence[str] = (),
        *,
        special: bool = False,
    ):
        from tokenizers.decoders import DecodeStream

        self.stopped = False
        self._tokenizer = tokenizer
        self._special = special
        self._token_ids: list[int] = []
        # None after bytes that `DecodeStream` cannot continue from
        self._decoder: DecodeStream | None = DecodeStream(skip_special_tokens=not special)
        self._stops = tuple(stops)
        self._pending: list[Token] = []
        self._num_characters = 0  # of the reply so far, including the pending tokens

    def add(self, token: Token) -> tuple[Token, ...]:
        """Adds the next token; returns the tokens whose text is now certain."""
        text = self._decode_next(token.token_id)
        self._pending.append(replace(token, text=text))
        self._num_characters += len(text)
        return self._release() if text else ()

    def finish(self, reply: Reply) -> tuple[Token, ...]:
        """Returns the remaining tokens of the reply, now whole; invalid bytes become U+FFFD."""
        text = reply.text
        if self._special:
            text = str(self._tokenizer.decode(list(reply.token_ids or ())))
        if (missing := text[self._num_characters :]) and self._pending:
            last = self._pending.pop()
            self._pending.append(replace(last, text=last.text + missing))
        return self._release(is_whole=True)

    def _decode_next(self, token_id: int) -> str:
        """Returns the text that a token completes; "" if it ends within a character.

        Where every byte can be a token, an invalid byte makes all bytes before it invalid too. As
        some of them may have been released, their text stays, and the rest is counted from there.
        """
        self._token_ids.append(token_id)
        if self._decoder is not None:
            try:
                return self._decoder.step(self._tokenizer.backend_tokenizer, token_id) or ""
            except Exception:  # tokenizers has no class of its own for this error
                self._decoder = None
        whole = str(self._tokenizer.decode(self._token_ids, skip_special_tokens=not self._special))
        return "" if whole.endswith(_UNFINISHED) else whole[self._num_characters :]

    def _release(self, *, is_whole: bool = False) -> tuple[Token, ...]:
        """Pops the pending tokens that cannot be part of a stop string any more, up to the first
        stop string; if the reply is whole, that is all of them.
        """
        if not self._stops:
            released = tuple(self._pending)
            self._pending = []
            return released
        text = "".join(token.text for token in self._pending)
        positions = [position for stop in self._stops if (position := text.find(stop)) >= 0]
        if positions:
            self.stopped = True
            return self._pop_text(min(positions))
        certain = len(text)
        if not is_whole:
            certain -= max(_overlap(text, stop) for stop in self._stops)
        return self._pop_tokens_within(certain)

    def _pop_tokens_within(self, length: int) -> tuple[Token, ...]:
        """Pops the pending tokens that end within the first `length` characters of their text."""
        ends = itertools.accumulate(len(token.text) for token in self._pending)
        count = sum(end <= length for end in ends)
        # a token without text begins a character that the next token completes, so it waits for it
        while 0 < count < len(self._pending) and not self._pending[count - 1].text:
            count -= 1
        popped = tuple(self._pending[:count])
        self._pending = self._pending[count:]
        return popped

    def _pop_text(self, length: int) -> tuple[Token, ...]:
        """Pops the first `length` characters of the pending text; the last token may be cut."""
        popped: list[Token] = []
        while length > 0:
            token = self._pending.pop(0)
            popped.append(replace(token, text=token.text[:length]))
            length -= len(token.text)
        return tuple(popped)


def _overlap(text: str, stop: str) -> int:
    """The length of the longest suffix of `text` that is a proper prefix of `stop`."""
    lengths = range(min(len(text), len(stop) - 1), 0, -1)
    return next((length for length in lengths if text.endswith(stop[:length])), 0)
