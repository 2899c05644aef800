"""One endpoint: what its answers show of its dialect, and the requests to it."""

from __future__ import annotations

import asyncio
import itertools
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from holdfast.chat.chat_completions import MalformedResponse
from holdfast.errors import ModelError, RequestFailed, Unreachable, Unsteerable
from holdfast.methods import Ability, Method
from holdfast.models import completions
from holdfast.models.capabilities import check_requirements, require_free_reply
from holdfast.models.endpoint_address import Endpoint
from holdfast.models.endpoint_errors import (
    explain_answer,
    explain_filter,
    failure_of,
    refused_fields,
    wants_other_limit,
)
from holdfast.models.endpoint_fields import (
    chat_fields,
    check_applied,
    fetch_masses,
    traces_apart,
)
from holdfast.models.offered_steering import OfferedSteering, await_steering, check_offered
from holdfast.models.requests import Reply, Request

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

_MAX_WAIT = 8.0  # seconds before a malformed answer is asked for again


@dataclass(eq=False)
class Server:
    """One endpoint, and what its answers show of its dialect."""

    endpoint: Endpoint
    client: OpenAI = field(repr=False)  # for the questions that are asked when it is connected
    # opens a client for requests; one belongs to the event loop that it is first used in
    open_client: Callable[[], AsyncOpenAI] = field(repr=False)
    concurrency: int  # requests under way at once
    offered: OfferedSteering  # its steering
    unavailable: Unreachable | None = None  # why it is no longer asked
    limit: str = "max_tokens"  # its field for the most new tokens
    refused: frozenset[str] = frozenset()  # fields that it does not accept
    warned: bool = False  # whether the user was warned that it accepts no seeds

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that it cannot serve, with an `Unsteerable` naming the first of them."""
        offered = self.offered
        url = self.endpoint.url
        described = f"the endpoint {url}"
        if offered.obstacle is not None:
            described += f" ({offered.obstacle})"
        check_requirements(
            methods,
            offered.capabilities,
            described,
            "use a prompt method such as repetition:probability=0.5, or load the model in"
            " this process",
        )
        check_offered(methods, offered, url)

    def check_request(self, request: Request) -> None:
        """Refuses a request that it cannot serve; emphasis too, if attention is out of reach."""
        self.check(request.methods)
        require_free_reply(request, f"The endpoint {self.endpoint.url}")
        if request.continue_final_message and self.offered.wire_format != "holdfast":
            raise ModelError(
                f"The endpoint {self.endpoint.url} may answer a message of the assistant where it"
                " should continue it; end with a message of the user, or load the model in"
                " this process."
            )
        if request.emphasis and Ability.LOG_ODDS not in self.offered.capabilities:
            number, first, last = request.emphasis[0]
            raise Unsteerable(
                f"Emphasis ({request.messages[number]['content'][first:last][:60]!r}) needs"
                f" attention, to which the endpoint {self.endpoint.url} gives no access; leave it"
                " out, or load the model in this process."
            )

    def reach(self) -> None:
        """Asks the server again what it offers, if its first answer left that open."""
        if self.offered.obstacle is not None:
            self.offered = await_steering(self.client, self.endpoint)

    def warn_of_seeds(self) -> None:
        """Warns once that the server accepts no seeds, if that is so."""
        if "seed" in self.refused and not self.warned:
            self.warned = True
            warnings.warn(
                f"{self.endpoint.url} refuses 'seed' for {self.endpoint.model!r}, so requests go"
                " out without it; the same request may get another reply.",
                stacklevel=4,
            )

    def body_of(self, request: Request) -> dict[str, object]:
        """The body of a request, as sent to the server."""
        self.check_request(request)
        return {
            "model": self.endpoint.model,
            "temperature": request.sampling.temperature,
            "top_p": request.sampling.top_p,
            **chat_fields(request, self.offered),
        }

    async def answer(self, client: AsyncOpenAI, request: Request) -> Reply:
        """Asks until the answer can be read, with at most `max_retries` retries.

        Raises:
            RequestFailed: the request failed by itself; `Unreachable` if the server did not answer.
        """
        import openai

        body = self.body_of(request)
        ask: Any = client.chat.completions.with_raw_response.create
        for attempt in itertools.count():
            try:
                raw = await self._send(ask, body, request.sampling.max_new_tokens)
                text = raw.http_response.text
                content = raw.http_response.content
            except openai.OpenAIError as error:
                # without its cause, whose request contains the key
                raise failure_of(error, self.endpoint) from None
            try:
                answer = completions.read_json(content)
                check_applied(answer, body, self.endpoint.url)
                reply = completions.read_reply(answer)
                return await self._with_masses(client, reply, answer.get("id"), body)
            except completions.FilteredReply:
                raise RequestFailed(explain_filter(self.endpoint), "filter") from None
            except MalformedResponse as error:
                if attempt >= self.endpoint.max_retries:
                    raise RequestFailed(explain_answer(error, text, self.endpoint)) from None
            await asyncio.sleep(min(0.5 * 2**attempt, _MAX_WAIT))
        raise AssertionError

    async def stream(self, client: AsyncOpenAI, request: Request) -> AsyncGenerator[str | Reply]:
        """Asks once; yields the text piece by piece as it arrives, and the reply last."""
        import openai

        body = self.body_of(request)
        text = ""
        reader = completions.StreamReader(
            lambda chunk: check_applied(chunk, body, self.endpoint.url)
        )

        async def ask(**fields: Any) -> Any:
            return await client.chat.completions.create(stream=True, **fields)

        try:
            async with await self._send(ask, body, request.sampling.max_new_tokens) as chunks:
                async for chunk in chunks:
                    if piece := reader.add(chunk.to_dict()):
                        text += piece
                        yield piece
            reply = reader.reply()
        except openai.OpenAIError as error:
            raise failure_of(error, self.endpoint) from None
        except completions.FilteredReply:
            raise RequestFailed(explain_filter(self.endpoint), "filter") from None
        except MalformedResponse as error:
            raise RequestFailed(explain_answer(error, text, self.endpoint)) from None
        except ValueError:  # of the client, which reads the events
            why = MalformedResponse("a piece that is not JSON")
            raise RequestFailed(explain_answer(why, text, self.endpoint)) from None
        yield await self._with_masses(client, reply, reader.name, body)

    async def _with_masses(
        self, client: AsyncOpenAI, reply: Reply, name: object, body: dict[str, object]
    ) -> Reply:
        if not traces_apart(body):
            return reply
        return replace(reply, masses=await fetch_masses(client, self.endpoint, name))

    async def _send(
        self,
        ask: Callable[..., Awaitable[Any]],
        body: dict[str, object],
        max_new_tokens: int,
    ) -> Any:
        """Asks until the server accepts the fields, and remembers which it refuses by name."""
        import openai

        limit = self.limit
        refused = self.refused
        while True:
            left_out = _dispensable(body, refused)
            fields = {name: value for name, value in body.items() if name not in left_out}
            try:
                answer = await ask(**fields, **{limit: max_new_tokens})
            except openai.APIStatusError as error:
                newly_refused = _dispensable(fields, refused_fields(error))
                if limit == "max_tokens" and wants_other_limit(error):
                    limit = "max_completion_tokens"
                elif newly_refused:
                    refused = refused | {newly_refused[0]}
                else:
                    raise
            else:
                self.limit = limit
                self.refused |= refused
                return answer


def _dispensable(body: dict[str, object], names: Collection[str]) -> list[str]:
    """The fields that may be left out: the seed, and any that is 1, the protocol's default."""
    return [name for name in names if name in body and (name == "seed" or body[name] == 1)]
