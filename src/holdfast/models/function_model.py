"""A chat model made from a function: a bot of your own, as `holdfast.drift.run` measures it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from holdfast.chat.messages import Message
from holdfast.errors import ModelError, UsageError, type_in_words
from holdfast.methods import Ability, Method
from holdfast.methods.kinds import EVERY_MODEL
from holdfast.models.capabilities import check_requirements
from holdfast.models.event_loop import run_sync
from holdfast.models.protocol import Generates
from holdfast.models.request_batches import generate_all, prepare_batch
from holdfast.models.requests import Reply, Request

# from the messages of a chat to the text of the reply
AnswerFunction = Callable[[list[Message]], str] | Callable[[list[Message]], Awaitable[str]]


def from_function(answer: AnswerFunction, name: str, version: str = "") -> FunctionModel:
    """Makes a chat model from a function, so that it can be measured like any other.

    Methods that edit messages work, and in `drift.run` also `check-and-retry`; others need the
    model itself.

    Args:
        answer: takes the messages of a chat, each with "role" and "content", of which the first
            usually is the system prompt; returns the text of the reply. A plain function is called
            in a thread, so that several chats are answered at once; an async one is awaited. What
            it raises ends the run, which keeps the conversations that are finished. It may raise a
            `holdfast.errors.RequestFailed` instead, to end only the conversation.
        name: the bot's name, for display.
        version: what its replies depend on; a run is resumed only under the same name and version.

    Raises:
        UsageError: `answer` is no function, or the name is no text.
    """
    if not callable(answer):
        raise UsageError(
            f"answer has to be a function from messages to a text, not {type_in_words(answer)};"
            " give the function itself, not what it returns.",
            option="answer",
            value=answer,
        )
    return FunctionModel(answer, name, version)


@dataclass(frozen=True)
class FunctionModel(Generates):
    """The model that `from_function` makes."""

    answer: AnswerFunction
    name: str
    version: str = ""
    runtime: ClassVar[dict[str, str | int]] = {}  # what the function depends on is unknown here
    independent: ClassVar[bool] = True  # a reply depends on its chat alone
    capabilities: ClassVar[frozenset[Ability]] = EVERY_MODEL

    @property
    def fingerprint(self) -> str:
        """The name and the version."""
        return f"{self.name} {self.version}".strip()

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that need more than messages."""
        check_requirements(methods, self.capabilities, self.name, "use a prompt method")

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats at once; returns the replies in their order."""
        named = prepare_batch(requests)
        for request in named:
            self.check(request.methods)
        return run_sync(generate_all(self.session().generate, named))

    def session(self) -> FunctionEngine:
        """Opens an engine, which calls the function once per request."""
        return FunctionEngine(self)


@dataclass(frozen=True)
class FunctionEngine:
    """Answers requests by calling a function; keeps nothing of a dialog."""

    model: FunctionModel

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        """Closes nothing."""

    def forget(self, thread: Hashable) -> None:
        """Does nothing, as nothing is kept of a dialog."""

    async def generate(self, request: Request) -> Reply:
        """Answers a request.

        Raises:
            ModelError: the function returned no text. What it raises itself is not caught.
        """
        messages = list(request.compiled.edit(request.messages, request.editing_seed))
        text = await _call(self.model.answer, messages)
        if not isinstance(text, str):
            raise ModelError(
                f"{self.model.name} answered with {text!r}; let its function return a text."
            )
        return Reply(text, token_ids=None, stop_reason="stop" if text.strip() else "empty")


async def _call(answer: AnswerFunction, messages: list[Message]) -> object:
    """Awaits an async function, and calls any other in a thread."""
    if inspect.iscoroutinefunction(answer):
        return await answer(messages)
    text = await asyncio.to_thread(answer, messages)
    return await text if inspect.isawaitable(text) else text
