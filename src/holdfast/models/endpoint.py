"""Chat models behind OpenAI-compatible endpoints, with the interface of the local ones."""

from __future__ import annotations

import functools
import itertools
import time
import warnings
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from holdfast.errors import ModelError, RequestFailed, Unreachable
from holdfast.methods import Ability, Method
from holdfast.models.answers import (
    Endpoint,
    FilteredReply,
    MalformedAnswer,
    read_json,
    read_reply,
    read_stream,
)
from holdfast.models.capabilities import check_needs
from holdfast.models.protocol import Generates, Job, answer_all, run_jobs
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
from holdfast.models.workers import Workers

if TYPE_CHECKING:
    from openai import OpenAI

_LONGEST_WAIT = 8.0  # seconds before a malformed answer is asked for again


@dataclass(eq=False)
class Server:
    """One endpoint, and its dialect as far as its answers have shown it; used by many threads."""

    endpoint: Endpoint
    client: OpenAI = field(repr=False)
    concurrency: int  # requests under way at once
    served: Served  # the steering that it offers
    unavailable: Unreachable | None = None  # why it is not asked any longer
    limit: str = "max_tokens"  # its name for the most new tokens
    refused: frozenset[str] = frozenset()  # fields that it does not take
    warned: bool = False  # whether the user knows that it takes no seeds

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that it cannot serve, by a `ModelError` that names the first of them."""
        served, url = self.served, self.endpoint.url
        check_needs(
            methods,
            served.offers,
            f"the endpoint {url}" + (f", which {served.unsure}," if served.unsure else ""),
            "use a prompt method such as repetition:probability=0.5, or load the model with"
            " holdfast.load()",
        )
        check_served(methods, served, url)

    def check_request(self, request: Request) -> None:
        """Refuses a request that it cannot serve; emphasis too, where attention is out of reach."""
        self.check(request.methods)
        if request.emphasis and Ability.LOG_ODDS not in self.served.offers:
            number, first, last = request.emphasis[0]
            raise ModelError(
                f"Emphasis ({request.messages[number]['content'][first:last][:60]!r}) needs"
                f" attention, to which the endpoint {self.endpoint.url} gives no access; leave it"
                " out, or load the model with holdfast.load()."
            )

    def reach(self) -> None:
        """Asks a server that may steer, and did not, once more what it offers."""
        if self.served.unsure:
            self.served = ask_served(self.client, self.endpoint, patient=True)

    def warn_of_seeds(self) -> None:
        """Warns, once, when the server takes no seeds."""
        if "seed" in self.refused and not self.warned:
            self.warned = True
            warnings.warn(
                f"{self.endpoint.url} refuses 'seed' for {self.endpoint.model!r}, so requests go"
                " out without it; the same request may get another reply.",
                stacklevel=4,
            )

    def body_of(self, request: Request) -> dict[str, object]:
        """A request as it goes over the wire."""
        self.check_request(request)
        return {
            "model": self.endpoint.model,
            "temperature": request.sampling.temperature,
            "top_p": request.sampling.top_p,
            **chat_fields(request, self.served),
        }

    def answer(self, body: dict[str, object], max_new_tokens: int) -> Reply:
        """Asks until the answer can be read, at most `max_retries` times more than once."""
        import openai

        ask: Any = self.client.chat.completions.with_raw_response.create
        for attempt in itertools.count():
            try:
                text = str(self._send(ask, body, max_new_tokens).http_response.text)
            except openai.OpenAIError as error:
                # without its cause, for the request it carries holds the key
                raise failure_of(error, self.endpoint) from None
            try:
                answer = read_json(text)
                check_applied(answer, body, self.endpoint.url)
                return self._with_masses(read_reply(answer), answer.get("id"), body)
            except FilteredReply:
                raise RequestFailed(explain_filter(self.endpoint), "filter") from None
            except MalformedAnswer as error:
                if attempt >= self.endpoint.max_retries:
                    raise RequestFailed(explain_answer(error, text, self.endpoint)) from None
            time.sleep(min(0.5 * 2**attempt, _LONGEST_WAIT))
        raise AssertionError

    def stream(self, request: Request, tell: Callable[[str], None]) -> Reply:
        """As `EndpointModel.stream`."""
        import openai

        body, pieces = self.body_of(request), list[str]()
        ask = functools.partial(self.client.chat.completions.create, stream=True)

        def take(piece: str) -> None:
            pieces.append(piece)
            tell(piece)

        try:
            with self._send(ask, body, request.sampling.max_new_tokens) as chunks:
                reply, name = read_stream(
                    chunks, take, lambda chunk: check_applied(chunk, body, self.endpoint.url)
                )
        except openai.OpenAIError as error:
            raise failure_of(error, self.endpoint) from None
        except FilteredReply:
            raise RequestFailed(explain_filter(self.endpoint), "filter") from None
        except (MalformedAnswer, ValueError) as error:
            why = MalformedAnswer(str(error))
            raise RequestFailed(explain_answer(why, "".join(pieces), self.endpoint)) from None
        return self._with_masses(reply, name, body)

    def _with_masses(self, reply: Reply, name: object, body: dict[str, object]) -> Reply:
        """The reply with the mass that its server tells apart from it, if there is one."""
        if not traces_apart(body):
            return reply
        return replace(reply, masses=fetch_masses(self.client, self.endpoint, name))

    def _send(self, ask: Callable[..., Any], body: dict[str, object], max_new_tokens: int) -> Any:
        """Asks until the server takes the fields; what it refuses by name is left out for good once
        it has answered.
        """
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
    """Those of the fields without which a request means the same: seeds promise little, and 1 is
    the protocol's default.
    """
    return [name for name in names if name in body and (name == "seed" or body[name] == 1)]


@dataclass(frozen=True)
class EndpointModel(Generates):
    """A model behind one endpoint, or several of the same model; made by `connect` and
    `connect_all`. It is asked from one thread.

    Methods that edit messages work everywhere. Those that need attention or logits work where the
    server says at `/v1/steering` that it applies them, and are refused by name elsewhere.

    A conversation stays with one of the endpoints. Where one is gone, the others go on with what it
    had, from the request that it did not answer: nothing that it said before is lost.

    Args:
        servers: those that answer.
        urls: of all endpoints, in the order in which they were given.
    """

    servers: tuple[Server, ...]
    urls: tuple[str, ...]
    independent: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The model's name at every endpoint."""
        return self.servers[0].endpoint.model

    @property
    def fingerprint(self) -> str:
        """The name, and what the server tells of its model; with the first address where that says
        nothing of its weights, as nobody knows then what else stands elsewhere.
        """
        served = self.servers[0].served
        identity = (self.name, served.identity)
        return " ".join(filter(None, identity if served.fingerprint else (self.urls[0], *identity)))

    @property
    def about(self) -> dict[str, list[str]]:
        """For the manifest: who answers."""
        return {"servers": [server.endpoint.url for server in self.servers]}

    @property
    def runtime(self) -> dict[str, str | int]:
        """Nothing: what stands behind the address cannot be seen from here."""
        return {}

    @property
    def offers(self) -> frozenset[Ability]:
        """The abilities that methods can use: messages, and those that the server says it has."""
        return self.servers[0].served.offers

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that one of the endpoints cannot serve, by a `ModelError`."""
        for server in self.servers:
            server.check(methods)

    def reach(self) -> None:
        """Asks servers that may steer, and did not, once more what they offer; a `ModelError` if
        one still does not answer.
        """
        for server in self.servers:
            server.reach()

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats, `concurrency` at a time at each endpoint, in the order given.

        A seed goes out as its value modulo 2**31, which every server can read, and whole to a
        server that steers, which draws by it as a local model does; whether the same seed gives the
        same reply elsewhere is the server's promise, not ours. A server that refuses seeds by name
        gets none, and a warning says so once. A refused temperature or top_p is left out where
        it is 1, the protocol's default.

        Raises:
            ModelError: a method or emphasis that an endpoint cannot serve (before anything is
                sent); or the first request to fail for good, after which no further one is started.
        """
        for request in requests:
            for server in self.servers:
                server.check_request(request)
        return answer_all(self.run, requests)

    def run(self, jobs: Iterable[Job]) -> None:
        """Answers jobs and all that follow from them, as many at a time as every endpoint takes;
        `then` is called in this thread.

        Of many conversations, those that were begun are completed before others begin. An endpoint
        that is gone is not asked again by this model, as long as others are there; a warning says
        so.

        Raises:
            Unreachable: all endpoints are gone.
            ModelError: as `generate_batch`; but a request that fails by itself goes to the job's
                `failed`, where it has one, and the others go on.
        """
        available = self._available()
        run_jobs(Workers(available), jobs)
        for server in available:
            if server.unavailable:
                warn_of_loss(server.unavailable)
            server.warn_of_seeds()

    def stream(self, request: Request, tell: Callable[[str], None]) -> Reply:
        """Answers one chat; `tell` takes the text piece by piece, as it arrives, and all pieces are
        the reply. An answer that breaks off is not asked for again.
        """
        server = self._available()[0]
        try:
            return server.stream(request, tell)
        finally:
            server.warn_of_seeds()

    def _available(self) -> list[Server]:
        """The endpoints that are not gone; where all were, all may be back."""
        if all(server.unavailable for server in self.servers):
            for server in self.servers:
                server.unavailable = None
        return [server for server in self.servers if not server.unavailable]

    def forget(self, thread: Hashable) -> None:
        """Nothing is kept for a thread here."""

    def session(self) -> EndpointModel:
        """The model itself: what an endpoint shares between requests is its own affair."""
        return self


def warn_of_loss(why: Unreachable) -> None:
    """Warns that a run goes on without an endpoint that is gone."""
    warnings.warn(f"The others go on without a server: {why}", stacklevel=3)
