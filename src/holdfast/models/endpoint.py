"""Chat models behind an OpenAI-compatible endpoint, with the interface of the local ones."""

from __future__ import annotations

import functools
import itertools
import time
import warnings
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from holdfast.errors import ModelError, RequestFailed
from holdfast.methods import Ability, Method
from holdfast.models.answers import (
    Endpoint,
    FilteredReply,
    MalformedAnswer,
    Streamed,
    read_answer,
    read_applied,
    read_reply,
)
from holdfast.models.capabilities import check_needs
from holdfast.models.protocol import Generates, Job, answer_all
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
from holdfast.models.workers import Line, answer_jobs

if TYPE_CHECKING:
    from openai import OpenAI

_LONGEST_WAIT = 8.0  # seconds before a malformed answer is asked for again


@dataclass
class Wire:
    """The server's dialect, as far as its answers have shown it."""

    limit: str = "max_tokens"
    refused: frozenset[str] = frozenset()
    warned: bool = False
    served: Served = field(default_factory=Served)


@dataclass(frozen=True)
class EndpointModel(Generates):
    """A model behind an endpoint; made by `connect`. Many threads may use it at once.

    Methods that edit messages work everywhere. Those that need attention or logits work where the
    server says at `/v1/steering` that it applies them, and are refused by name elsewhere.
    """

    endpoint: Endpoint
    concurrency: int
    _client: OpenAI = field(repr=False, compare=False)
    _wire: Wire = field(repr=False, compare=False)
    independent: ClassVar[bool] = True

    @property
    def offers(self) -> frozenset[Ability]:
        """The abilities that methods can use: messages, and those that the server says it has."""
        return self._wire.served.offers

    @property
    def name(self) -> str:
        """The model's name at the endpoint."""
        return self.endpoint.model

    @property
    def fingerprint(self) -> str:
        """The name, and what the server tells of its model; with the address where that says
        nothing of its weights, as nobody knows then what else stands elsewhere.
        """
        served, url = self._wire.served, self.endpoint.url
        identity = (self.endpoint.model, served.identity)
        return " ".join(filter(None, identity if served.fingerprint else (url, *identity)))

    @property
    def about(self) -> dict[str, list[str]]:
        """For the manifest: who answers."""
        return {"servers": [self.endpoint.url]}

    @property
    def runtime(self) -> dict[str, str | int]:
        """Nothing: what stands behind the address cannot be seen from here."""
        return {}

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that an endpoint cannot serve.

        Raises:
            ModelError: names the first of them.
        """
        served, url = self._wire.served, self.endpoint.url
        check_needs(
            methods,
            self.offers,
            f"the endpoint {url}" + (f", which {served.unsure}," if served.unsure else ""),
            "use a prompt method such as repetition:probability=0.5, or load the model with"
            " holdfast.load()",
        )
        check_served(methods, served, url)

    def reach(self) -> None:
        """Asks a server that may steer, and did not, once more what it offers.

        Raises:
            ModelError: there is still no connection.
        """
        if self._wire.served.unsure:
            self._wire.served = ask_served(self._client, self.endpoint, patient=True)

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats, `concurrency` at a time, in the order given.

        A seed goes out as its value modulo 2**31, which every server can read, and whole to a
        server that steers, which draws by it as a local model does (vLLM with our plug-in too);
        whether the same seed gives the
        same reply elsewhere is the server's promise, not ours. A server that refuses seeds by name
        gets none, and a warning says so once. A refused temperature or top_p is left out where
        it is 1, the protocol's default.

        Raises:
            ModelError: a method or emphasis that an endpoint cannot serve (before anything is
                sent); or the first request to fail for good, after which no further one is started.
        """
        for request in requests:
            self._check(request)
        return answer_all(self.run, requests)

    def run(self, jobs: Iterable[Job]) -> None:
        """Answers jobs and all that follow from them, `concurrency` at a time; `then` is called in
        this thread.

        What follows from a job goes before the jobs given after it: of many conversations, those
        that were begun are completed before others begin.

        Raises:
            ModelError: as `generate_batch`; but a request that fails by itself goes to the job's
                `failed`, where it has one, and the others go on.
        """
        answer_jobs(jobs, [Line(self)])
        self.tell_of_seeds()

    def stream(self, request: Request, tell: Callable[[str], None]) -> Reply:
        """Answers one chat; `tell` takes the text piece by piece, as it arrives, and all pieces are
        the reply. An answer that breaks off is not asked for again.

        Raises:
            ModelError: as `generate`.
        """
        import openai

        body = self.body_of(request)
        ask = functools.partial(self._client.chat.completions.create, stream=True)
        streamed = Streamed(tell, lambda applied: check_applied(applied, body, self.endpoint.url))
        try:
            with self._send(ask, body, request.sampling.max_new_tokens) as chunks:
                reply = streamed.read(chunks)
        except openai.OpenAIError as error:
            raise failure_of(error, self.endpoint) from None
        except FilteredReply:
            raise RequestFailed(explain_filter(self.endpoint), "filter") from None
        except (MalformedAnswer, ValueError) as error:
            raise RequestFailed(
                explain_answer(MalformedAnswer(str(error)), streamed.text, self.endpoint)
            ) from None
        finally:
            self.tell_of_seeds()
        return self._with_masses(reply, streamed.name, body)

    @property
    def served(self) -> Served:
        """The steering that the server says it offers."""
        return self._wire.served

    def _with_masses(self, reply: Reply, name: object, body: dict[str, object]) -> Reply:
        """The reply with the mass that its server tells apart from it, if there is one."""
        if not traces_apart(body):
            return reply
        return replace(reply, masses=fetch_masses(self._client, self.endpoint, name))

    def forget(self, thread: Hashable) -> None:
        """Nothing is kept for a thread here."""

    def session(self) -> EndpointModel:
        """The model itself: what an endpoint shares between requests is its own affair."""
        return self

    def tell_of_seeds(self) -> None:
        """Warns, once per model, when the server takes no seeds."""
        if "seed" in self._wire.refused and not self._wire.warned:
            self._wire.warned = True
            warnings.warn(
                f"{self.endpoint.url} refuses 'seed' for {self.endpoint.model!r}, so requests go"
                " out without it; the same request may get another reply.",
                stacklevel=3,
            )

    def _check(self, request: Request) -> None:
        self.check(request.methods)
        if request.emphasis and Ability.LOG_ODDS not in self.offers:
            number, first, last = request.emphasis[0]
            raise ModelError(
                f"Emphasis ({request.messages[number]['content'][first:last][:60]!r}) needs"
                f" attention, to which the endpoint {self.endpoint.url} gives no access; leave it"
                " out, or load the model with holdfast.load()."
            )

    def body_of(self, request: Request) -> dict[str, object]:
        """A request as it goes over the wire.

        Raises:
            ModelError: as `check`.
        """
        self._check(request)
        return {
            "model": self.endpoint.model,
            "temperature": request.sampling.temperature,
            "top_p": request.sampling.top_p,
            **chat_fields(request, self._wire.served),
        }

    def answer(self, body: dict[str, object], max_new_tokens: int) -> Reply:
        """Asks until the answer can be read, at most `max_retries` times more than once."""
        import openai

        ask: Any = self._client.chat.completions.with_raw_response.create
        for attempt in itertools.count():
            try:
                text = str(self._send(ask, body, max_new_tokens).http_response.text)
            except openai.OpenAIError as error:
                # without its cause, for the request it carries holds the key
                raise failure_of(error, self.endpoint) from None
            try:
                answer = read_answer(text)
                check_applied(read_applied(answer), body, self.endpoint.url)
                return self._with_masses(read_reply(answer), answer.get("id"), body)
            except FilteredReply:
                raise RequestFailed(explain_filter(self.endpoint), "filter") from None
            except MalformedAnswer as error:
                if attempt >= self.endpoint.max_retries:
                    raise RequestFailed(explain_answer(error, text, self.endpoint)) from None
            time.sleep(min(0.5 * 2**attempt, _LONGEST_WAIT))
        raise AssertionError

    def _send(self, ask: Callable[..., Any], body: dict[str, object], max_new_tokens: int) -> Any:
        """Asks until the server takes the fields; what it refuses by name is left out for good once
        it has answered.
        """
        import openai

        limit, refused = self._wire.limit, self._wire.refused
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
                self._wire.limit = limit
                self._wire.refused |= refused
                return answer


def _dispensable(body: dict[str, object], names: Collection[str]) -> list[str]:
    """Those of the fields without which a request means the same: seeds promise little, and 1 is
    the protocol's default.
    """
    return [name for name in names if name in body and (name == "seed" or body[name] == 1)]
