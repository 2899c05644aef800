"""Answers requests: renders their chats, generates a reply for each choice, and sends these."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from starlette.types import Send

from holdfast.errors import Busy, Draining, HoldfastError, PromptError
from holdfast.models.event_loop import task_group
from holdfast.models.rendering import RenderedRequest
from holdfast.models.streaming import TextDecoder
from holdfast.serve.answer_formats import AppliedSteering, Cached, Details, Shapes, Usage
from holdfast.serve.decoding import Delta, decode_reply, join_deltas
from holdfast.serve.metrics import Stopwatch
from holdfast.serve.refusals import Refusal, refusal_of, timeout_refusal
from holdfast.serve.service import Service
from holdfast.serve.submissions import Submission
from holdfast.serve.tool_calls import CallParser
from holdfast.serve.wire import end_events, send_event, send_json, start_events

# writes an answer in the format of its route
Write = Callable[["PendingAnswer", Send], Awaitable[None]]


async def answer(
    service: Service, submission: Submission, write: Write, arrived: float, send: Send
) -> None:
    """Answers a request within the time limit; cancelling it frees its slots.

    Args:
        service: the server's model and settings.
        submission: the request.
        write: writes the answer in the format of its route.
        arrived: when the request arrived, by `time.monotonic`.
        send: sends the answer to the client.
    """
    seconds = service.limits.seconds
    body = submission.body
    choices = list[PendingChoice]()
    try:
        async with (
            asyncio.timeout(seconds - (time.monotonic() - arrived)),
            _admit(service, submission) as chats,
        ):
            for index, chat in enumerate(chats):
                details = Details(service.model.tokenizer, body.likeliest, body.trace)
                choices.append(PendingChoice(index, chat, details, Stopwatch(arrived)))
            await write(PendingAnswer(service, submission, choices), send)
    except TimeoutError:
        raise timeout_refusal(seconds) from None
    finally:
        service.metrics.note_answer(
            _usage(submission, choices),
            [choice.stopwatch for choice in choices],
            submission.round,
            steered=bool(submission.steering.methods),
        )


@asynccontextmanager
async def _admit(service: Service, submission: Submission) -> AsyncIterator[list[RenderedRequest]]:
    """Renders the chats of a request, which stays admitted to the engine within this context.

    An error until the chats are rendered is the fault of the request; a later one is the server's.
    """
    requests = list(submission.requests)
    engine = service.engine
    if service.metrics.trace_next():
        requests[0] = replace(requests[0], trace=True)
    with ExitStack() as admission:
        try:
            admission.enter_context(engine.admit(len(requests)))
            chats = await engine.render(requests, submission.body.likeliest)
        except (Busy, Draining):
            raise
        except PromptError as error:
            raise refusal_of(error, submission.body.text_field) from None
        except HoldfastError as error:
            if engine.error is not None:
                raise Refusal(
                    "The engine of this server has failed for good; restart the server, whose log"
                    " says why.",
                    code="engine_failed",
                    status=503,
                ) from None
            raise refusal_of(error, "steering") from None
        try:
            yield chats
        except HoldfastError as error:
            raise Refusal(error.message, code="generation_failed", status=500) from None


@dataclass(frozen=True)
class PendingChoice:
    """A reply to generate."""

    index: int
    chat: RenderedRequest
    details: Details
    stopwatch: Stopwatch


@dataclass(frozen=True)
class PendingAnswer:
    """The answer to an admitted request, as the functions that write it need it."""

    service: Service
    submission: Submission
    choices: list[PendingChoice]

    async def deltas(self, choice: PendingChoice) -> AsyncGenerator[Delta]:
        """Yields a reply piece by piece; the last piece has the tool calls of the whole text."""
        parser = self.submission.parser
        text = ""
        stops = self.submission.body.stops
        # calls are written with special tokens
        decoder = TextDecoder(self.service.model.tokenizer, stops, special=parser is not None)
        events = self.service.engine.stream(choice.chat)
        async with aclosing(decode_reply(events, decoder)) as deltas:
            async for delta in deltas:
                choice.stopwatch.note(delta)
                if parser is not None:
                    text += delta.text
                    if delta.finish_reason is not None:
                        delta = self._with_calls(delta, text, choice, parser)
                yield delta

    def _with_calls(
        self, last: Delta, text: str, choice: PendingChoice, parser: CallParser
    ) -> Delta:
        """Adds the tool calls in the whole text to the last piece of a reply, or notes that the
        text begins one which cannot be parsed.
        """
        request = choice.chat.request
        prompt = choice.chat.prompts[0].text
        if last.finish_reason == "stop" and (calls := parser.parse(text, prompt, request.tools)):
            return replace(last, finish_reason="tool_calls", calls=tuple(calls))
        return replace(last, unparsed=parser.is_unparsed(text))

    @property
    def usage(self) -> Usage:
        """The tokens of the prompts, and of the replies so far."""
        return _usage(self.submission, self.choices)

    @property
    def steering(self) -> AppliedSteering:
        """The steering that was applied."""
        report = self.submission.steering.report(self.submission.requests)
        report["span"] = [list(span) for span in self.choices[0].chat.span_ranges]
        if self.submission.round:
            report["round"] = self.submission.round
        return report


async def write_choices(shapes: Shapes, answer: PendingAnswer, send: Send) -> None:
    """Writes the answer to a chat or a completion, whole or piece by piece."""
    write = _send_events if answer.submission.body.stream else _send_whole
    await write(answer, shapes, send)


def _head(answer: PendingAnswer, shapes: Shapes, kind: str) -> dict[str, Any]:
    """The fields that an answer and each chunk of it begin with."""
    return {
        "id": shapes.prefix + secrets.token_hex(12),
        "object": kind,
        "created": int(time.time()),
        "model": answer.service.name,
        "system_fingerprint": f"fp_{answer.service.engine.fingerprint[:12]}",
    }


async def _send_whole(answer: PendingAnswer, shapes: Shapes, send: Send) -> None:
    """Sends the answer once all its replies are complete."""
    async with task_group() as group:
        replies = [
            group.create_task(join_deltas(answer.deltas(choice))) for choice in answer.choices
        ]
    choices = [
        shapes.choice(choice.index, reply.result(), choice.details)
        for choice, reply in zip(answer.choices, replies, strict=True)
    ]
    fields = {"choices": choices, "usage": answer.usage, "holdfast": answer.steering}
    await send_json(send, _head(answer, shapes, shapes.whole) | fields)


async def _send_events(answer: PendingAnswer, shapes: Shapes, send: Send) -> None:
    """Sends the replies piece by piece, as server-sent events."""
    options = answer.submission.body.stream_options
    with_usage = options is not None and options.include_usage
    head = _head(answer, shapes, shapes.chunk)
    if with_usage:
        head["usage"] = None

    async def send_reply(choice: PendingChoice) -> None:
        async with aclosing(answer.deltas(choice)) as deltas:
            async for delta in deltas:
                piece = shapes.chunk_choice(choice.index, delta, choice.details, is_first=False)
                await send_event(send, head | {"choices": [piece]})

    await start_events(send)
    for choice in answer.choices:
        piece = shapes.chunk_choice(choice.index, Delta(), choice.details, is_first=True)
        chunk = head | {"choices": [piece]}
        if choice.index == 0:  # the very first chunk says how the answer is steered
            chunk["holdfast"] = answer.steering
        await send_event(send, chunk)
    async with task_group() as group:
        for choice in answer.choices:
            group.create_task(send_reply(choice))
    if with_usage:
        await send_event(send, head | {"choices": [], "usage": answer.usage})
    await end_events(send)


def _usage(submission: Submission, choices: list[PendingChoice]) -> Usage:
    """The tokens of a request so far; a prompt with several choices counts once."""
    first_of_prompts = choices[:: submission.body.n]
    prompt_tokens = sum(len(choice.chat.prompt_ids) for choice in first_of_prompts)
    generated = sum(choice.stopwatch.tokens for choice in choices)
    cached = sum(choice.stopwatch.cached for choice in first_of_prompts)
    return Usage(
        prompt_tokens=prompt_tokens,
        completion_tokens=generated,
        total_tokens=prompt_tokens + generated,
        prompt_tokens_details=Cached(cached_tokens=cached),
    )
