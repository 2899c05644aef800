"""Replies to one request, submitted together and sent whole or streamed."""

import asyncio
import itertools
import secrets
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from starlette.types import Send

from holdfast.errors import Busy, Draining, HoldfastError, PromptError
from holdfast.models.requests import Request
from holdfast.serve.generation import LiveReply, Piece, Token, speak
from holdfast.serve.metrics import Stopwatch
from holdfast.serve.refusals import Refusal, refusal_of, sentence_of, too_slow
from holdfast.serve.requests import Submission
from holdfast.serve.responses import AppliedSteering, Cached, Details, Shapes, Usage
from holdfast.serve.service import Service
from holdfast.serve.wire import end_events, send_event, send_json, start_events

_numbers = itertools.count(1)


class Exchange:
    """A request and its replies; `arrived` is when it arrived, by `time.monotonic`."""

    def __init__(self, service: Service, submission: Submission, shapes: Shapes, arrived: float):
        self.service, self.submission, self.shapes = service, submission, shapes
        self._arrived = arrived
        self._generations = list[LiveReply]()
        self._stopwatches = list[Stopwatch]()

    async def answer(self, send: Send) -> None:
        """Answers within the time limit, and always frees the request's rows."""
        seconds = self.service.limits.seconds
        try:
            async with asyncio.timeout(seconds - (time.monotonic() - self._arrived)):
                await self._submit_all()
                await self._send(send)
        except TimeoutError:
            raise too_slow(seconds) from None
        finally:
            for generation in self._generations:
                generation.cancel()
            self.service.metrics.note_answer(
                self._usage(),
                self._stopwatches,
                self.submission.round,
                steered=bool(self.submission.steering.methods),
            )

    async def _submit_all(self) -> None:
        """Submits all choices together, so that no other request takes a slot between them."""
        tasks = [asyncio.ensure_future(self._submit(request)) for request in self._watched()]
        try:
            await asyncio.wait(tasks)
        finally:
            for task in tasks:
                if task.done() and not task.cancelled() and task.exception() is None:
                    self._generations.append(task.result())
                    self._stopwatches.append(Stopwatch(self._arrived))
                task.cancel()
        for task in tasks:
            task.result()

    async def _submit(self, request: Request) -> LiveReply:
        try:
            return await self.service.engine.submit(request, self.submission.body.likeliest)
        except (Busy, Draining):
            raise
        except PromptError as error:
            raise refusal_of(error, self.submission.body.text_field) from None
        except HoldfastError as error:
            if self.service.engine.error is not None:
                raise Refusal(
                    "The engine of this server has failed for good; restart the server, whose log"
                    " says why.",
                    code="engine_failed",
                    status=503,
                ) from None
            raise refusal_of(error, "steering") from None

    def _watched(self) -> Sequence[Request]:
        """The requests; once in `watched` submissions, the first is traced for the metrics."""
        every, requests = self.service.watched, self.submission.requests
        if not every or next(_numbers) % every:
            return requests
        return replace(requests[0], trace=True), *requests[1:]

    async def _send(self, send: Send) -> None:
        """Sends the answer; errors from here on are not the request's fault."""
        try:
            if self.submission.body.stream:
                await start_events(send)
                await self._stream(send)
            else:
                await send_json(send, await self._whole())
        except HoldfastError as error:
            raise Refusal(sentence_of(error), code="generation_failed", status=500) from None

    async def _whole(self) -> dict[str, Any]:
        choices = await _together([self._choice(i) for i in range(len(self._generations))])
        head = self._head(self.shapes.whole)
        return head | {"choices": choices, "usage": self._usage(), "holdfast": self._applied()}

    async def _stream(self, send: Send) -> None:
        chunk = self._head(self.shapes.chunk)
        options = self.submission.body.stream_options
        usage = options is not None and options.include_usage
        if usage:
            chunk["usage"] = None
        first: dict[str, Any] = {"holdfast": self._applied()}
        for index in range(len(self._generations)):
            empty = self.shapes.delta(index, Piece(), self._details(), True)
            await send_event(send, chunk | {"choices": [empty]} | first)
            first = {}

        async def send_delta(choice: Any) -> None:
            await send_event(send, chunk | {"choices": [choice]})

        await _together([self._deltas(i, send_delta) for i in range(len(self._generations))])
        if usage:
            await send_event(send, chunk | {"choices": [], "usage": self._usage()})
        await end_events(send)

    async def _choice(self, index: int) -> Any:
        tokens, piece = list[Token](), Piece()
        async for piece in self._pieces(index):
            tokens += piece.tokens
        whole = replace(piece, tokens=tuple(tokens))
        return self.shapes.choice(index, whole, self._details())

    async def _deltas(
        self, index: int, send_delta: Callable[[Any], Coroutine[Any, Any, None]]
    ) -> None:
        details = self._details()
        async for piece in self._pieces(index):
            await send_delta(self.shapes.delta(index, piece, details, False))

    async def _pieces(self, index: int) -> Any:
        tokenizer, submission = self.service.model.tokenizer, self.submission
        generation, stops = self._generations[index], submission.body.stops
        async for piece in speak(generation, tokenizer, stops, submission.parser):
            self._stopwatches[index].note(piece)
            yield piece

    def _details(self) -> Details:
        body = self.submission.body
        return Details(self.service.model.tokenizer, body.likeliest, body.trace)

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": self.shapes.prefix + secrets.token_hex(12),
            "object": kind,
            "created": int(time.time()),
            "model": self.service.name,
            "system_fingerprint": f"fp_{self.service.model.fingerprint[:12]}",
        }

    def _usage(self) -> Usage:
        prompts = self._generations[:: self.submission.body.n]
        read = sum(len(generation.prompt_ids) for generation in prompts)
        generated = sum(watch.tokens for watch in self._stopwatches)
        return Usage(
            prompt_tokens=read,
            completion_tokens=generated,
            total_tokens=read + generated,
            prompt_tokens_details=Cached(cached_tokens=sum(g.cached_tokens for g in prompts)),
        )

    def _applied(self) -> AppliedSteering:
        report = self.submission.steering.report(self.submission.requests)
        report["span"] = [list(span) for span in self._generations[0].span_ranges]
        if self.submission.round:
            report["round"] = self.submission.round
        return report


async def _together(works: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Runs all coroutines concurrently; if one fails, cancels the others and raises its error."""
    if len(works) == 1:
        return [await works[0]]
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
