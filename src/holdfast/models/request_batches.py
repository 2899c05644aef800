"""Answers many requests at once."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from holdfast.models.event_loop import task_group
from holdfast.models.requests import Reply, Request

RequestT = TypeVar("RequestT")


async def generate_all(
    generate: Callable[[RequestT], Coroutine[Any, Any, Reply]], requests: Sequence[RequestT]
) -> list[Reply]:
    """Answers requests concurrently and returns the replies in their order.

    The first error cancels the others.
    """
    async with task_group() as group:
        tasks = [group.create_task(generate(request)) for request in requests]
    return [task.result() for task in tasks]


def prepare_batch(requests: Sequence[Request]) -> list[Request]:
    """Names the requests of a batch, for errors; refuses those with a method that lacks a span."""
    named: list[Request] = []
    for number, request in enumerate(requests, 1):
        name = f"Request {number} of {len(requests)}" if len(requests) > 1 else ""
        request.check_span(name)
        named.append(replace(request, name=name))
    return named
