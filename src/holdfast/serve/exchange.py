"""One request's replies, told whole or as they are drawn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from starlette.types import Send

from holdfast.serve.answers import Head, Shapes, applied, usage
from holdfast.serve.asked import Asked
from holdfast.serve.details import Details
from holdfast.serve.generation import Generation
from holdfast.serve.metrics import Stopwatch
from holdfast.serve.speaking import Piece, Spoken, speak
from holdfast.serve.wire import send_data, send_event

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_DONE = b"data: [DONE]\n\n"


class Exchange:
    """A request and its replies.

    Args:
        asked: what the request asks for.
        head: of its answer.
        shapes: of its answer.
        tokenizer: of the model.
    """

    def __init__(
        self, asked: Asked, head: Head, shapes: Shapes, tokenizer: PreTrainedTokenizerFast
    ):
        self.asked, self.head, self.shapes, self.tokenizer = asked, head, shapes, tokenizer
        self.generations = list[Generation]()
        self.stopwatches = list[Stopwatch]()

    def add(self, generation: Generation, stopwatch: Stopwatch) -> None:
        """The next choice was submitted."""
        self.generations.append(generation)
        self.stopwatches.append(stopwatch)

    def close(self) -> None:
        """Gives up what has not ended."""
        for generation in self.generations:
            generation.cancel()

    def usage(self) -> dict[str, Any]:
        """Tokens, as OpenAI counts them: each prompt once."""
        generated = sum(watch.tokens for watch in self.stopwatches)
        return usage(self.generations[:: self.asked.per_prompt], generated)

    async def whole(self) -> dict[str, Any]:
        """The answer, once all its replies are complete."""
        choices = await _together([self._choice(index) for index in range(len(self.generations))])
        told = self.head.told(self.shapes.whole)
        told |= {"choices": choices, "usage": self.usage()}
        return told | {"holdfast": applied(self.asked, self.generations)}

    async def stream(self, send: Send) -> None:
        """Tells the replies as they are drawn, in one stream of chunks."""
        chunk = self.head.told(self.shapes.chunk)
        if self.asked.include_usage:
            chunk["usage"] = None
        first = {"holdfast": applied(self.asked, self.generations)}
        for index in range(len(self.generations)):
            empty = self.shapes.delta(index, Piece((), ""), self._details(), True)
            await send_event(send, chunk | {"choices": [empty]} | first)
            first = {}

        async def tell(choice: dict[str, Any]) -> None:
            await send_event(send, chunk | {"choices": [choice]})

        await _together([self._deltas(index, tell) for index in range(len(self.generations))])
        if self.asked.include_usage:
            await send_event(send, chunk | {"choices": [], "usage": self.usage()})
        await send_data(send, _DONE, more=False)

    async def _choice(self, index: int) -> dict[str, Any]:
        tokens, piece = list[Spoken](), Piece((), "")
        async for piece in speak(self.generations[index], self.tokenizer, self.asked.stops):
            self.stopwatches[index].note(piece)
            tokens += piece.tokens
        text = "".join(spoken.text for spoken in tokens)
        whole = replace(piece, tokens=tuple(tokens), text=text)
        return self.shapes.choice(index, whole, self._details())

    async def _deltas(
        self, index: int, tell: Callable[[dict[str, Any]], Coroutine[Any, Any, None]]
    ) -> None:
        details, watch = self._details(), self.stopwatches[index]
        async for piece in speak(self.generations[index], self.tokenizer, self.asked.stops):
            watch.note(piece)
            await tell(self.shapes.delta(index, piece, details, False))

    def _details(self) -> Details:
        asked = self.asked
        return Details(self.tokenizer, asked.top_logprobs, asked.trace)


async def _together(works: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Does all of them at once; where one fails, the others are cancelled, and its error raised."""
    if len(works) == 1:
        return [await works[0]]
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
