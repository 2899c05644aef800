"""Endpoints and the requests to them. Threads keep a number of requests under way at each endpoint;
if an endpoint is gone, others take over.

A conversation stays with the endpoint that began it, which has its prefix in a cache. Each request
sends the whole chat, so that another endpoint can continue it if the first one is gone.
"""

from __future__ import annotations

import functools
import itertools
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from holdfast.errors import ModelError, RequestFailed, Unreachable
from holdfast.methods import Ability, Method
from holdfast.models import responses
from holdfast.models.capabilities import check_requirements
from holdfast.models.protocol import Job
from holdfast.models.refusals import (
    explain_answer,
    explain_filter,
    failure_of,
    refused_fields,
    wants_other_limit,
)
from holdfast.models.requests import Reply, Request
from holdfast.models.served import (
    Served,
    ask_served,
    chat_fields,
    check_applied,
    check_served,
    fetch_masses,
    traces_apart,
)

if TYPE_CHECKING:
    from openai import OpenAI

_LONGEST_WAIT = 8.0  # seconds before a malformed answer is asked for again


@dataclass(eq=False)
class Server:
    """One endpoint, and what its answers show of its dialect; used by many threads."""

    endpoint: responses.Endpoint
    client: OpenAI = field(repr=False)
    concurrency: int  # requests under way at once
    served: Served  # the steering that it offers
    unavailable: Unreachable | None = None  # why it is no longer asked
    limit: str = "max_tokens"  # its field for the most new tokens
    refused: frozenset[str] = frozenset()  # fields that it does not accept
    warned: bool = False  # whether the user was warned that it accepts no seeds

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that it cannot serve, with a `ModelError` naming the first of them."""
        served, url = self.served, self.endpoint.url
        check_requirements(
            methods,
            served.capabilities,
            f"the endpoint {url}" + (f", which {served.unsure}," if served.unsure else ""),
            "use a prompt method such as repetition:probability=0.5, or load the model with"
            " holdfast.load()",
        )
        check_served(methods, served, url)

    def check_request(self, request: Request) -> None:
        """Refuses a request that it cannot serve; emphasis too, if attention is out of reach."""
        self.check(request.methods)
        if request.continue_final_message and self.served.wire_format != "holdfast":
            raise ModelError(
                f"The endpoint {self.endpoint.url} may answer a message of the assistant where it"
                " should continue it; end with a message of the user, or load the model with"
                " holdfast.load()."
            )
        if request.emphasis and Ability.LOG_ODDS not in self.served.capabilities:
            number, first, last = request.emphasis[0]
            raise ModelError(
                f"Emphasis ({request.messages[number]['content'][first:last][:60]!r}) needs"
                f" attention, to which the endpoint {self.endpoint.url} gives no access; leave it"
                " out, or load the model with holdfast.load()."
            )

    def reach(self) -> None:
        """Asks the server again what it offers, if its first answer left that unsure."""
        if self.served.unsure:
            self.served = ask_served(self.client, self.endpoint, patient=True)

    def warn_of_seeds(self) -> None:
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
            **chat_fields(request, self.served),
        }

    def answer(self, body: dict[str, object], max_new_tokens: int) -> Reply:
        """Asks until the answer can be read, with at most `max_retries` retries."""
        import openai

        ask: Any = self.client.chat.completions.with_raw_response.create
        for attempt in itertools.count():
            try:
                text = str(self._send(ask, body, max_new_tokens).http_response.text)
            except openai.OpenAIError as error:
                # without its cause, whose request contains the key
                raise failure_of(error, self.endpoint) from None
            try:
                answer = responses.read_json(text)
                check_applied(answer, body, self.endpoint.url)
                return self._with_masses(responses.read_reply(answer), answer.get("id"), body)
            except responses.FilteredReply:
                raise RequestFailed(explain_filter(self.endpoint), "filter") from None
            except responses.MalformedResponse as error:
                if attempt >= self.endpoint.max_retries:
                    raise RequestFailed(explain_answer(error, text, self.endpoint)) from None
            time.sleep(min(0.5 * 2**attempt, _LONGEST_WAIT))
        raise AssertionError

    def stream(self, request: Request, tell: Callable[[str], None]) -> Reply:
        """See `EndpointModel.stream`."""
        import openai

        body, pieces = self.body_of(request), list[str]()
        ask = functools.partial(self.client.chat.completions.create, stream=True)

        def take(piece: str) -> None:
            pieces.append(piece)
            tell(piece)

        try:
            with self._send(ask, body, request.sampling.max_new_tokens) as chunks:
                reply, name = responses.read_stream(
                    chunks, take, lambda chunk: check_applied(chunk, body, self.endpoint.url)
                )
        except openai.OpenAIError as error:
            raise failure_of(error, self.endpoint) from None
        except responses.FilteredReply:
            raise RequestFailed(explain_filter(self.endpoint), "filter") from None
        except (responses.MalformedResponse, ValueError) as error:
            why = responses.MalformedResponse(str(error))
            raise RequestFailed(explain_answer(why, "".join(pieces), self.endpoint)) from None
        return self._with_masses(reply, name, body)

    def _with_masses(self, reply: Reply, name: object, body: dict[str, object]) -> Reply:
        if not traces_apart(body):
            return reply
        return replace(reply, masses=fetch_masses(self.client, self.endpoint, name))

    def _send(self, ask: Callable[..., Any], body: dict[str, object], max_new_tokens: int) -> Any:
        """Asks until the server accepts the fields, and remembers which it refuses by name."""
        import openai

        limit, refused = self.limit, self.refused
        while True:
            left_out = _dispensable(body, refused)
            fields = {name: value for name, value in body.items() if name not in left_out}
            try:
                answer = ask(**fields, **{limit: max_new_tokens})
            except openai.APIStatusError as error:
                more = _dispensable(fields, refused_fields(error))
                if limit == "max_tokens" and wants_other_limit(error):
                    limit = "max_completion_tokens"
                elif more:
                    refused = refused | {more[0]}
                else:
                    raise
            else:
                self.limit = limit
                self.refused |= refused
                return answer


def _dispensable(body: dict[str, object], names: Collection[str]) -> list[str]:
    """The fields that may be left out: the seed, and any that is 1, the protocol's default."""
    return [name for name in names if name in body and (name == "seed" or body[name] == 1)]


@dataclass(frozen=True, order=True)
class _QueuedJob:
    """A waiting job; earlier conversations first, and in each the jobs that others wait for."""

    begun: int
    fork: bool
    number: int
    job: Job = field(compare=False)

    @property
    def conversation(self) -> Hashable | None:
        """The conversation that its request belongs to; None if it belongs to none."""
        request = self.job.request
        return None if request.thread is None else request.conversation_seed


# Seconds. A thread that waits without a timeout may never notice Ctrl-C: if the signal reaches
# another thread, or arrives just before the wait, nothing wakes the thread that must act on it.
_HEED_INTERRUPTS = 0.2

_Answered = tuple[Server, _QueuedJob, Reply | BaseException]


class Workers:
    """An `Engine` of daemon threads, each of which asks an endpoint one request at a time."""

    def __init__(self, servers: Sequence[Server]):
        self._servers = servers
        self._waiting: dict[Server | None, list[_QueuedJob]] = {  # heaps; None: for any
            server: [] for server in (None, *servers)
        }
        self._server_of: dict[Hashable, Server] = {}  # by conversation
        self._begun: dict[Hashable, int] = {}
        self._under_way: Counter[Server] = Counter()
        self._numbers = itertools.count()
        self._tasks: SimpleQueue[Callable[[], _Answered] | None] = SimpleQueue()
        self._answered: SimpleQueue[_Answered] = SimpleQueue()
        self._stopped = threading.Event()
        self._count = sum(server.concurrency for server in servers)
        for _ in range(self._count):
            threading.Thread(target=self._work, name="holdfast-endpoint", daemon=True).start()

    def submit(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            number = next(self._numbers)
            queued = _QueuedJob(number, not job.request.keep, number, job)
            if (conversation := queued.conversation) is not None:
                begun = self._begun.setdefault(conversation, number)
                queued = _QueuedJob(begun, queued.fork, number, job)
            self._queue(queued)

    def step(self) -> list[tuple[Job, Reply | Exception]] | None:
        """Waits for an answer; None if nothing is under way; raises errors that no job handles."""
        self._start()
        if not self._under_way.total():
            return None
        server, queued, answer = self._take()
        if isinstance(answer, Unreachable):
            server.unavailable = answer
            self._move(server, queued)
            if all(server.unavailable for server in self._servers):
                raise answer
            return []
        if isinstance(answer, Reply):
            return [(queued.job, answer)]
        if isinstance(answer, RequestFailed) and queued.job.failed is not None:
            return [(queued.job, answer)]
        raise answer

    def stop(self) -> None:
        self._stopped.set()
        for _ in range(self._count):
            self._tasks.put(None)

    def _queue(self, queued: _QueuedJob) -> None:
        heappush(self._waiting[self._server_of.get(queued.conversation)], queued)

    def _start(self) -> None:
        """Gives every endpoint the jobs it has room for, one at a time in turn."""
        started = True
        while started:
            started = False
            for server in self._servers:
                has_room = self._under_way[server] < server.concurrency
                if has_room and not server.unavailable and (queued := self._next_of(server)):
                    self._give(server, queued)
                    started = True

    def _next_of(self, server: Server) -> _QueuedJob | None:
        """The first job that an endpoint may take; its conversation stays there."""
        while heaps := [heap for heap in (self._waiting[server], self._waiting[None]) if heap]:
            queued = heappop(min(heaps, key=lambda heap: heap[0]))
            if queued.conversation is None:
                return queued
            if self._server_of.setdefault(queued.conversation, server) is server:
                return queued
            self._queue(queued)
        return None

    def _move(self, server: Server, queued: _QueuedJob) -> None:
        """Lets the conversations of a lost endpoint continue wherever there is room."""
        kept = {name: where for name, where in self._server_of.items() if where is not server}
        self._server_of = kept
        left, self._waiting[server] = [queued, *self._waiting[server]], []
        for moved in left:
            self._queue(moved)

    def _give(self, server: Server, queued: _QueuedJob) -> None:
        """Hands a job to an endpoint's threads; its request is built in this thread."""
        request = queued.job.request
        body = server.body_of(request)

        def ask() -> _Answered:
            try:
                return server, queued, server.answer(body, request.sampling.max_new_tokens)
            except BaseException as error:
                return server, queued, error

        self._under_way[server] += 1
        self._tasks.put(ask)

    def _take(self) -> _Answered:
        while True:
            try:
                answered = self._answered.get(timeout=_HEED_INTERRUPTS)
            except Empty:
                continue
            self._under_way[answered[0]] -= 1
            return answered

    def _work(self) -> None:
        while (ask := self._tasks.get()) is not None and not self._stopped.is_set():
            self._answered.put(ask())
