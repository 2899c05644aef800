"""The two routes that generate: read, submit, answer in time, and leave no row behind."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from starlette.types import Receive, Scope, Send

from holdfast.errors import Busy, Draining, HoldfastError, PromptError
from holdfast.models.requests import Request
from holdfast.serve.answers import Head, Shapes
from holdfast.serve.asked import Asked, check_model
from holdfast.serve.exchange import Exchange
from holdfast.serve.fields import Table, read_fields
from holdfast.serve.generation import Generation
from holdfast.serve.metrics import Stopwatch
from holdfast.serve.refusals import failed, out_of_order, refusal_of, too_slow
from holdfast.serve.service import Service
from holdfast.serve.wire import read_json, send_json, start_events, while_client_stays

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Generating:
    """The ASGI application of a route that generates.

    Args:
        service: that it belongs to.
        fields: of the body.
        ask: what the values of the fields ask for.
        shapes: of the answer.
    """

    service: Service
    fields: Table
    ask: Callable[[Mapping[str, Any]], Asked]
    shapes: Shapes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        arrived = time.monotonic()
        values = read_fields(await read_json(scope, receive, self.service.limits), self.fields)
        check_model(values["model"], self.service.name)
        asked = self.ask(values)
        await while_client_stays(receive, self._answer(asked, arrived, send))

    async def _answer(self, asked: Asked, arrived: float, send: Send) -> None:
        """Answers in time, and leaves no row behind, whatever becomes of it."""
        exchange = Exchange(asked, self._head(), self.shapes, self.service.model.tokenizer)
        seconds = self.service.limits.seconds
        try:
            async with asyncio.timeout(seconds - (time.monotonic() - arrived)):
                await self._submit_all(exchange, arrived)
                await _tell(exchange, send)
        except TimeoutError:
            raise too_slow(seconds) from None
        finally:
            exchange.close()
            self.service.metrics.note_answer(
                exchange.usage(), exchange.stopwatches, asked.round, bool(asked.steered.methods)
            )

    async def _submit_all(self, exchange: Exchange, arrived: float) -> None:
        """Submits all choices at once, so that no other request takes the room between them."""
        requests, top = self._watched(exchange.asked), exchange.asked.top_logprobs
        tasks = [asyncio.ensure_future(self._submit(request, top)) for request in requests]
        try:
            await asyncio.wait(tasks)
        finally:
            for task in tasks:
                if task.done() and not task.cancelled() and task.exception() is None:
                    exchange.add(task.result(), Stopwatch(arrived))
                task.cancel()
        for task in tasks:
            task.result()

    async def _submit(self, request: Request, top_logprobs: int | None) -> Generation:
        try:
            return await self.service.engine.submit(request, top_logprobs)
        except (Busy, Draining):
            raise
        except PromptError as error:
            raise refusal_of(error, "messages") from None
        except HoldfastError as error:
            if self.service.engine.error is not None:
                raise out_of_order() from None
            raise refusal_of(error, "steering") from None

    def _watched(self, asked: Asked) -> tuple[Request, ...]:
        """The requests, traced for the metrics where it is this one's turn."""
        every = self.service.watched
        if not every or next(_numbers) % every:
            return asked.requests
        first, *others = asked.requests
        return replace(first, trace=True), *others

    def _head(self) -> Head:
        name = self.shapes.prefix + secrets.token_hex(12)
        fingerprint = f"fp_{self.service.model.fingerprint[:12]}"
        return Head(name, int(time.time()), self.service.name, fingerprint)


async def _tell(exchange: Exchange, send: Send) -> None:
    """Tells the answer; what goes wrong from here on is no fault of the request's."""
    try:
        if exchange.asked.stream:
            await start_events(send)
            await exchange.stream(send)
        else:
            await send_json(send, await exchange.whole())
    except HoldfastError as error:
        raise failed(error) from None
