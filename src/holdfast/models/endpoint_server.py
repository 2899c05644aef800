"""Sends requests to one endpoint, and remembers what its answers show of its dialect."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

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
    from openai import AsyncOpenAI, Timeout

_MAX_CONNECT_TIME = 10.0  # seconds; a server that runs accepts a connection at once
_MAX_FIRST_CONNECT_TIME = 2.5  # before it has ever answered, as its address may be wrong
_MAX_WAIT = 8.0  # seconds before a request is repeated after a malformed answer


@dataclass(eq=False)
class Server:
    """One endpoint, and what its answers show of its dialect.

    Args:
        endpoint: its address and settings.
        offered: the steering that it offers, as far as is known.
        unavailable: why it is no longer used; None while it is.
        has_answered: whether it has ever answered.
        limit: the name of its field for the most new tokens.
        refused: the fields that it does not accept.
        has_warned: whether the user was warned that it accepts no seeds.
    """

    endpoint: Endpoint
    offered: OfferedSteering = field(default_factory=OfferedSteering)
    unavailable: Unreachable | None = None
    has_answered: bool = False
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    refused: frozenset[str] = frozenset()
    has_warned: bool = False
    _next_turn: float = field(default=0.0, init=False)  # the earliest time of the next request
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def open_client(self) -> AsyncOpenAI:
        """Opens the official client, which belongs to the event loop that first uses it.

        It spaces its requests, and notes the first answer.
        """
        import openai

        endpoint = self.endpoint

        async def wait(_: object) -> None:
            await asyncio.sleep(self._reserve_turn())

        async def note_answer(_: object) -> None:
            self.has_answered = True
            client.max_retries = endpoint.max_retries
            client.timeout = self._timeout(_MAX_CONNECT_TIME)

        hooks = {"request": [wait], "response": [note_answer]}
        http_client = openai.DefaultAsyncHttpxClient(
            trust_env=not endpoint.is_direct, event_hooks=hooks
        )
        max_retries = endpoint.max_retries
        max_connect_time = _MAX_CONNECT_TIME
        if not self.has_answered:  # it is probably not running, so waiting is useless
            max_retries = min(1, max_retries)
            max_connect_time = _MAX_FIRST_CONNECT_TIME
        client = openai.AsyncOpenAI(
            base_url=endpoint.url,
            api_key=endpoint.key or "none",
            timeout=self._timeout(max_connect_time),
            max_retries=max_retries,
            http_client=http_client,
        )
        return client

    def _timeout(self, max_connect_time: float) -> Timeout:
        """The client's timeout, with at most this many seconds for the connection."""
        import openai

        seconds = self.endpoint.timeout
        return openai.Timeout(seconds, connect=min(seconds, max_connect_time))

    def _reserve_turn(self) -> float:
        """Reserves the next moment for a request; returns the seconds until then."""
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next_turn)
            self._next_turn = turn + self.endpoint.interval
        return turn - now

    # What the server can do

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

    def _write(self, request: Request) -> EndpointRequest:
        """Writes a request for the server; raises a `ModelError` if the server cannot serve it."""
        self.check_request(request)
        return endpoint_request(request, self.endpoint.model, self.offered)

    async def answer(self, client: AsyncOpenAI, request: Request) -> Reply:
        """Sends a request until its answer can be read, with at most `max_retries` retries.

        Raises:
            RequestFailed: this request cannot be answered; others can.
            Unreachable: there is no connection to the server.
            ModelError: the server refuses the request for a reason that affects all requests.
        """
        import openai

        written = self._write(request)
        ask: Any = client.chat.completions.with_raw_response.create
        for attempt in itertools.count():
            try:
                raw = await self._send(ask, written, request.sampling.max_new_tokens)
                text = raw.http_response.text
                content = raw.http_response.content
            except openai.OpenAIError as error:
                # not `from error`, whose request contains the key
                raise failure_of(error, self.endpoint) from None
            try:
                answer = read_json(content)
                check_applied(answer, written.steering, self.endpoint.url)
                reply = read_reply(answer)
                return await self._with_masses(client, reply, answer.get("id"), written)
            except FilteredReply:
                raise RequestFailed(explain_filter(self.endpoint), "filter") from None
            except MalformedResponse as error:
                if attempt >= self.endpoint.max_retries:
                    raise RequestFailed(explain_answer(error, text, self.endpoint)) from None
            await asyncio.sleep(min(0.5 * 2**attempt, _MAX_WAIT))
        raise AssertionError

    async def stream(self, client: AsyncOpenAI, request: Request) -> AsyncGenerator[str | Reply]:
        """Sends a request once; yields the text piece by piece as it arrives, and the reply last.

        Raises:
            RequestFailed: this request cannot be answered; others can.
            Unreachable: there is no connection to the server.
            ModelError: the server refuses the request for a reason that affects all requests.
        """
        import openai

        written = self._write(request)
        text = ""
        reader = StreamReader(
            lambda chunk: check_applied(chunk, written.steering, self.endpoint.url)
        )

        async def ask(**fields: Any) -> Any:
            return await client.chat.completions.create(stream=True, **fields)

        try:
            async with await self._send(ask, written, request.sampling.max_new_tokens) as chunks:
                async for chunk in chunks:
                    if piece := reader.add(chunk.to_dict()):
                        text += piece
                        yield piece
            reply = reader.reply()
        except openai.OpenAIError as error:
            raise failure_of(error, self.endpoint) from None
        except FilteredReply:
            raise RequestFailed(explain_filter(self.endpoint), "filter") from None
        except MalformedResponse as error:
            raise RequestFailed(explain_answer(error, text, self.endpoint)) from None
        except ValueError:  # raised by the client, which parses the events
            why = MalformedResponse("a piece that is not JSON")
            raise RequestFailed(explain_answer(why, text, self.endpoint)) from None
        yield await self._with_masses(client, reply, reader.answer_id, written)

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

    async def _send(
        self,
        ask: Callable[..., Awaitable[Any]],
        written: EndpointRequest,
        max_new_tokens: int,
    ) -> Any:
        """Sends a request, without the fields that the server refuses by name.

        If it refuses another one, the request is sent again, and the field is remembered.
        """
        import openai

        limit = self.limit
        refused = self.refused
        while True:
            left_out = _list_dispensable(written.fields, refused)
            fields = {name: value for name, value in written.fields.items() if name not in left_out}
            try:
                answer = await ask(**fields, **{limit: max_new_tokens})
            except openai.APIStatusError as error:
                newly_refused = _list_dispensable(fields, refused_fields(error))
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


def _list_dispensable(body: dict[str, Any], names: Collection[str]) -> list[str]:
    """Which of these fields of a body may be left out: the seed, and a value of 1, the protocol's
    default.
    """
    return [name for name in names if name in body and (name == "seed" or body[name] == 1)]
