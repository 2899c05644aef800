"""One server behind an endpoint: opens its clients, sends requests, and reads its answers."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.chat.chat_completions import MalformedResponse
from holdfast.errors import ModelError, RequestFailed, Unreachable, Unsteerable
from holdfast.methods import Ability, Method
from holdfast.models.capabilities import check_requirements, require_free_reply
from holdfast.models.endpoint_answers import (
    FilteredReply,
    StreamReader,
    check_applied,
    read_json,
    read_reply,
)
from holdfast.models.endpoint_errors import (
    Endpoint,
    explain_answer,
    explain_filter,
    failure_of,
    refused_fields,
    wants_other_limit,
)
from holdfast.models.endpoint_requests import EndpointRequest, endpoint_request
from holdfast.models.event_loop import run_sync
from holdfast.models.offered_steering import OfferedSteering, await_steering, check_offered
from holdfast.models.requests import Reply, Request

if TYPE_CHECKING:
    import httpx2
    from openai import APIStatusError, AsyncOpenAI

_MAX_CONNECT_TIME = 10.0  # seconds; a server that runs accepts a connection at once
_MAX_FIRST_CONNECT_TIME = 2.5  # before it has ever answered, as its address may be wrong
_MAX_WAIT = 8.0  # seconds before a request is repeated after a malformed answer
_RETRY_HEADER = "x-stainless-retry-count"  # of the official client; "0" the first time
_LIMIT = "max_tokens"  # the field with the most new tokens
_OTHER_LIMIT = "max_completion_tokens"  # its name at servers that refuse the first


@dataclass(eq=False)
class Server:
    """One server, with all that its answers have shown so far.

    Args:
        endpoint: its address and settings.
        offered: the steering that it offers, as far as is known.
        unavailable: why it is no longer used; None while it is.
        has_answered: whether it has ever answered.
        refused: the fields of requests that it refuses by name, as far as is known.
        has_warned: whether the user was warned that it accepts no seeds.
        num_repeated: how many requests were sent again, because they failed or their answers could
            not be read.
    """

    endpoint: Endpoint
    offered: OfferedSteering = field(default_factory=OfferedSteering)
    unavailable: Unreachable | None = None
    has_answered: bool = False
    refused: frozenset[str] = frozenset()
    has_warned: bool = False
    num_repeated: int = 0
    _next_turn: float = field(default=0.0, init=False)  # the earliest time of the next request
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    # Its clients

    def open_client(self) -> AsyncOpenAI:
        """Opens the official client, which belongs to the event loop that first uses it.

        It spaces its requests, and notes the first answer.
        """
        import openai

        http_client = openai.DefaultAsyncHttpxClient(trust_env=not self.endpoint.is_direct)
        client = openai.AsyncOpenAI(
            base_url=self.endpoint.url,
            api_key=self.endpoint.key or "none",
            http_client=http_client,
        )
        self._set_patience(client)
        http_client.event_hooks = {
            "request": [self._wait_for_turn],
            "response": [partial(self._note_answer, client)],
        }
        return client

    def _set_patience(self, client: AsyncOpenAI) -> None:
        """Sets how long a client waits, and how often it retries.

        A server that has never answered is probably not running, so waiting is useless.
        """
        import openai

        seconds = self.endpoint.timeout
        max_retries = self.endpoint.max_retries
        max_connect_time = _MAX_CONNECT_TIME
        if not self.has_answered:
            max_retries = min(1, max_retries)
            max_connect_time = _MAX_FIRST_CONNECT_TIME
        client.max_retries = max_retries
        client.timeout = openai.Timeout(seconds, connect=min(seconds, max_connect_time))

    async def _note_answer(self, client: AsyncOpenAI, _response: object) -> None:
        self.has_answered = True
        self._set_patience(client)

    async def _wait_for_turn(self, request: httpx2.Request) -> None:
        """Waits for the next moment at which a request may be sent; counts those sent again."""
        is_repeated = request.headers.get(_RETRY_HEADER, "0") != "0"
        with self._lock:
            self.num_repeated += is_repeated
            now = time.monotonic()
            turn = max(now, self._next_turn)
            self._next_turn = turn + self.endpoint.interval
        await asyncio.sleep(turn - now)

    # What it can do

    def check(self, methods: Sequence[Method]) -> None:
        """Raises an `Unsteerable` for the first method that it cannot serve."""
        offered = self.offered
        url = self.endpoint.url
        description = f"the endpoint {url}"
        if offered.obstacle is not None:
            description = f"the endpoint {url} ({offered.obstacle})"
        check_requirements(
            methods,
            offered.capabilities,
            description,
            "use a prompt method such as repetition:probability=0.5, or load the model in"
            " this process",
        )
        check_offered(methods, offered, url)

    def check_request(self, request: Request) -> None:
        """Raises a `ModelError` for a request that it cannot serve."""
        self.check(request.methods)
        require_free_reply(request, f"The endpoint {self.endpoint.url}")
        if request.continue_final_message and self.offered.wire_format != "holdfast":
            raise ModelError(
                f"The endpoint {self.endpoint.url} may answer a message of the assistant instead"
                " of continuing it; end with a message of the user, or load the model in this"
                " process."
            )
        if request.emphasis and Ability.LOG_ODDS not in self.offered.capabilities:
            number, first, last = request.emphasis[0]
            text = request.messages[number]["content"][first:last]
            raise Unsteerable(
                f"Emphasis ({text[:60]!r}) needs attention, to which the endpoint"
                f" {self.endpoint.url} gives no access; leave it out, or load the model in this"
                " process."
            )

    def reach(self) -> None:
        """Asks the server again what it offers, if its first answer left that open."""
        if self.offered.obstacle is not None:
            self.offered = run_sync(self._ask_offer())

    async def _ask_offer(self) -> OfferedSteering:
        async with self.open_client() as client:
            return await await_steering(client, self.endpoint)

    def warn_of_seeds(self) -> None:
        """Warns the user, once, if the server accepts no seeds."""
        if "seed" in self.refused and not self.has_warned:
            self.has_warned = True
            warnings.warn(
                f"{self.endpoint.url} refuses 'seed' for {self.endpoint.model!r}, so requests are"
                " sent without it; the same request may get another reply.",
                stacklevel=4,
            )

    # Requests and answers

    async def answer(self, client: AsyncOpenAI, request: Request) -> Reply:
        """Sends a request until its answer can be read, with at most `max_retries` retries.

        Raises:
            RequestFailed: this request cannot be answered; others can.
            Unreachable: there is no connection to the server.
            ModelError: the server refuses the request for a reason that affects all requests.
        """
        import openai

        written = self._write(request)
        create: Any = client.chat.completions.with_raw_response.create
        num_retries = 0
        while True:
            text = ""
            try:
                raw = await self._send(create, written)
                text = raw.http_response.text
                answer = read_json(raw.http_response.content)
                self._check_applied(written, answer)
                reply = read_reply(answer)
                return await self._with_masses(client, reply, answer.get("id"), written)
            except (openai.OpenAIError, FilteredReply, MalformedResponse) as error:
                may_retry = num_retries < self.endpoint.max_retries
                if not isinstance(error, MalformedResponse) or not may_retry:
                    raise self._failure(error, text) from None
            await asyncio.sleep(min(0.5 * 2**num_retries, _MAX_WAIT))
            num_retries += 1
            self.num_repeated += 1

    async def stream(self, client: AsyncOpenAI, request: Request) -> AsyncGenerator[str | Reply]:
        """Sends a request once; yields the text piece by piece as it arrives, and the reply last.

        Raises:
            RequestFailed: this request cannot be answered; others can.
            Unreachable: there is no connection to the server.
            ModelError: the server refuses the request for a reason that affects all requests.
        """
        import openai

        written = self._write(request)
        create: Any = partial(client.chat.completions.create, stream=True)
        reader = StreamReader(partial(self._check_applied, written))
        text = ""
        try:
            async with await self._send(create, written) as chunks:
                async for chunk in chunks:
                    if piece := reader.add(chunk.to_dict()):
                        text += piece
                        yield piece
            reply = reader.reply()
        except (openai.OpenAIError, ValueError) as error:
            raise self._failure(error, text) from None
        yield await self._with_masses(client, reply, reader.answer_id, written)

    def _write(self, request: Request) -> EndpointRequest:
        """Writes a request for the server; raises a `ModelError` if the server cannot serve it."""
        self.check_request(request)
        return endpoint_request(request, self.endpoint.model, self.offered)

    async def _send(self, create: Callable[..., Awaitable[Any]], written: EndpointRequest) -> Any:
        """Sends a request, and sends it again without a field that the server refuses by name.

        Args:
            create: the client's function that sends a body.
            written: the request.
        """
        import openai

        refused = self.refused
        while True:
            body = _without_refused(written.fields, refused)
            try:
                answer = await create(**body)
            except openai.APIStatusError as error:
                field_to_avoid = _avoidable_field(body, error)
                if field_to_avoid is None:
                    raise
                refused |= {field_to_avoid}
            else:
                self.refused |= refused  # other requests may have added to it meanwhile
                return answer

    def _check_applied(self, written: EndpointRequest, answer: Mapping[str, Any]) -> None:
        """Raises a `ModelError` if an answer was not steered as its request asked."""
        check_applied(answer, written.steering, self.endpoint.url)

    async def _with_masses(
        self, client: AsyncOpenAI, reply: Reply, answer_id: object, written: EndpointRequest
    ) -> Reply:
        """Adds the mass at every token to a reply if it does not come with the answer."""
        import openai

        if not written.fetches_masses:
            return reply
        try:
            answer = json.loads(await client.get(f"/steering/mass/{answer_id}", cast_to=str))
            return replace(reply, masses=tuple(float(mass) for mass in answer["mass"]))
        except openai.OpenAIError as error:
            raise failure_of(error, self.endpoint) from None
        except (ValueError, KeyError, TypeError) as error:
            raise RequestFailed(
                f"{self.endpoint.url} was asked for the mass of its reply {answer_id}, and reports"
                f" something else ({error}); see its log, or ask without a trace."
            ) from None

    def _failure(self, error: Exception, text: str) -> ModelError:
        """Returns the error to raise in place of one of the client, or of those that read answers.

        It must be raised `from None`, because the request in the client's error contains the key.

        Args:
            error: an `OpenAIError`, a `FilteredReply`, a `MalformedResponse`, or another
                `ValueError` if the client cannot parse a piece of a stream.
            text: what was read of the answer.
        """
        import openai

        if isinstance(error, openai.OpenAIError):
            return failure_of(error, self.endpoint)
        if isinstance(error, FilteredReply):
            return RequestFailed(explain_filter(self.endpoint), "filter")
        if not isinstance(error, MalformedResponse):
            error = MalformedResponse("a piece that is not JSON")
        return RequestFailed(explain_answer(error, text, self.endpoint))


def _without_refused(fields: Mapping[str, Any], refused: Collection[str]) -> dict[str, Any]:
    """The body of a request to a server that refuses some fields by name.

    `max_tokens` is sent as `max_completion_tokens`, as OpenAI's reasoning models want it; other
    fields are left out if the request can do without them.
    """
    left_out = _dispensable(fields, refused)
    body = {name: value for name, value in fields.items() if name not in left_out}
    if _LIMIT in refused:
        body[_OTHER_LIMIT] = body.pop(_LIMIT)
    return body


def _avoidable_field(body: Mapping[str, Any], error: APIStatusError) -> str | None:
    """The field that a server has refused by name, if `_without_refused` can avoid it."""
    if _LIMIT in body and wants_other_limit(error):
        return _LIMIT
    return next(iter(_dispensable(body, refused_fields(error))), None)


def _dispensable(fields: Mapping[str, Any], names: Collection[str]) -> list[str]:
    """Which of these fields a request can do without: the seed, and a value of 1, the protocol's
    default.
    """
    sampling = [name for name in names if name in fields and name != _LIMIT]
    return [name for name in sampling if name == "seed" or fields[name] == 1]
