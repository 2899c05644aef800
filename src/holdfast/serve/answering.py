"""Answers requests: renders their chats, generates a reply for each choice, and sends them."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from starlette.types import Send

from holdfast.common.event_loop import task_group
from holdfast.errors import Busy, Draining, HoldfastError, PromptError
from holdfast.models.rendering import Rendered
from holdfast.models.requests import Token
from holdfast.serve.decoding import Delta, TextDecoder, decode_reply
from holdfast.serve.metrics import Stopwatch
from holdfast.serve.refusals import Refusal, refusal_of, sentence_of, too_slow
from holdfast.serve.responses import AppliedSteering, Cached, Details, Shapes, Usage
from holdfast.serve.service import Service
from holdfast.serve.submissions import Submission
from holdfast.serve.wire import end_events, send_event, send_json, start_events


@dataclass(frozen=True)
class _Choice:
    """A reply to generate."""

    index: int
    chat: Rendered
    details: Details
    stopwatch: Stopwatch


async def answer(
    service: Service, submission: Submission, shapes: Shapes, arrived: float, send: Send
) -> None:
    """Answers a request within the time limit; cancelling it frees its rows.

    Args:
        service: answers it.
        submission: the request.
        shapes: the format of the answer.
        arrived: when the request arrived, by `time.monotonic`.
        send: sends the answer.
    """
    seconds = service.limits.seconds
    choices = list[_Choice]()
    try:
        async with (
            asyncio.timeout(seconds - (time.monotonic() - arrived)),
            _admitted(service, submission) as chats,
        ):
            for index, chat in enumerate(chats):
                body = submission.body
                details = Details(service.model.tokenizer, body.likeliest, body.trace)
                choices.append(_Choice(index, chat, details, Stopwatch(arrived)))
            respond = _send_events if submission.body.stream else _send_whole
            await respond(service, submission, shapes, choices, send)
    except TimeoutError:
        raise too_slow(seconds) from None
    finally:
        service.metrics.note_answer(
            _usage(submission, choices),
            [choice.stopwatch for choice in choices],
            submission.round,
            steered=bool(submission.steering.methods),
        )


@asynccontextmanager
async def _admitted(service: Service, submission: Submission) -> AsyncIterator[list[Rendered]]:
    """The rendered chats of a request, which the engine has taken; errors before are refusals."""
    requests, engine = list(submission.requests), service.engine
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
        except HoldfastError as error:  # from here on, it is not the request's fault
            raise Refusal(sentence_of(error), code="generation_failed", status=500) from None


async def _send_whole(
    service: Service,
    submission: Submission,
    shapes: Shapes,
    choices: Sequence[_Choice],
    send: Send,
) -> None:
    """Sends the answer once all its replies are complete."""

    async def complete(choice: _Choice) -> Any:
        tokens, last = list[Token](), Delta()
        async with aclosing(_deltas(service, submission, choice)) as deltas:
            async for last in deltas:
                tokens += last.tokens
        return shapes.choice(choice.index, replace(last, tokens=tuple(tokens)), choice.details)

    async with task_group() as group:
        tasks = [group.create_task(complete(choice)) for choice in choices]
    value = _head(service, shapes.prefix, shapes.whole)
    value |= {"choices": [task.result() for task in tasks], "usage": _usage(submission, choices)}
    await send_json(send, value | {"holdfast": _applied(submission, choices)})


async def _send_events(
    service: Service,
    submission: Submission,
    shapes: Shapes,
    choices: Sequence[_Choice],
    send: Send,
) -> None:
    """Sends the replies piece by piece, as server-sent events."""
    await start_events(send)
    chunk = _head(service, shapes.prefix, shapes.chunk)
    options = submission.body.stream_options
    with_usage = options is not None and options.include_usage
    if with_usage:
        chunk["usage"] = None
    applied: dict[str, Any] = {"holdfast": _applied(submission, choices)}
    for choice in choices:
        empty = shapes.chunk_choice(choice.index, Delta(), choice.details, True)
        await send_event(send, chunk | {"choices": [empty]} | applied)
        applied = {}  # only in the first

    async def send_pieces(choice: _Choice) -> None:
        async with aclosing(_deltas(service, submission, choice)) as deltas:
            async for delta in deltas:
                piece = shapes.chunk_choice(choice.index, delta, choice.details, False)
                await send_event(send, chunk | {"choices": [piece]})

    async with task_group() as group:
        for choice in choices:
            group.create_task(send_pieces(choice))
    if with_usage:
        await send_event(send, chunk | {"choices": [], "usage": _usage(submission, choices)})
    await end_events(send)


async def _deltas(
    service: Service, submission: Submission, choice: _Choice
) -> AsyncGenerator[Delta]:
    """The reply to a chat piece by piece; the last one has the tool calls of the whole text."""
    parser, text = submission.parser, ""
    decoder = TextDecoder(service.model.tokenizer, submission.body.stops, parser is not None)
    async with aclosing(decode_reply(service.engine.stream(choice.chat), decoder)) as deltas:
        async for delta in deltas:
            choice.stopwatch.note(delta)
            text += delta.text
            if parser is not None and delta.finish_reason == "stop":
                request, prompt = choice.chat.request, choice.chat.prompts[0].text
                if calls := parser.parse(text, prompt, request.tools):
                    delta = replace(delta, finish_reason="tool_calls", calls=tuple(calls))
            yield delta


def _head(service: Service, prefix: str, kind: str) -> dict[str, Any]:
    return {
        "id": prefix + secrets.token_hex(12),
        "object": kind,
        "created": int(time.time()),
        "model": service.name,
        "system_fingerprint": f"fp_{service.model.fingerprint[:12]}",
    }


def _usage(submission: Submission, choices: Sequence[_Choice]) -> Usage:
    prompts = choices[:: submission.body.n]
    read = sum(len(choice.chat.prompt_ids) for choice in prompts)
    generated = sum(choice.stopwatch.tokens for choice in choices)
    cached = sum(choice.stopwatch.cached for choice in prompts)
    return Usage(
        prompt_tokens=read,
        completion_tokens=generated,
        total_tokens=read + generated,
        prompt_tokens_details=Cached(cached_tokens=cached),
    )


def _applied(submission: Submission, choices: Sequence[_Choice]) -> AppliedSteering:
    report = submission.steering.report(submission.requests)
    report["span"] = [list(span) for span in choices[0].chat.span_ranges]
    if submission.round:
        report["round"] = submission.round
    return report
