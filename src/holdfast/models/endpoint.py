"""Chat models behind an OpenAI-compatible endpoint, with the interface of the local ones."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, ClassVar

from holdfast.chat.emphasis import Part
from holdfast.chat.messages import Message
from holdfast.chat.prompt import place_system
from holdfast.errors import ModelError, RequestFailed
from holdfast.methods import Ability, Method, edit_messages
from holdfast.methods.kinds import EVERY_MODEL
from holdfast.models.answers import Endpoint, FilteredReply, MalformedAnswer, read_reply
from holdfast.models.capabilities import check_needs
from holdfast.models.protocol import Job, answer_all
from holdfast.models.refusals import (
    explain_answer,
    explain_filter,
    failure_of,
    refused_fields,
    wants_other_limit,
)
from holdfast.models.requests import Reply, Request
from holdfast.models.workers import Task, Workers
from holdfast.sampling import Sampling

if TYPE_CHECKING:
    from openai import OpenAI

_LONGEST_WAIT = 8.0  # seconds before a malformed answer is asked for again


@dataclass
class Wire:
    """What was learnt about the server's dialect."""

    limit: str = "max_tokens"
    refused: frozenset[str] = frozenset()
    warned: bool = False


@dataclass(frozen=True)
class EndpointModel:
    """A model behind an endpoint; made by `connect`. Many threads may use it at once.

    Methods that edit messages work; those that need attention or logits are refused by name.
    """

    endpoint: Endpoint
    concurrency: int
    _client: OpenAI = field(repr=False, compare=False)
    _wire: Wire = field(repr=False, compare=False)
    independent: ClassVar[bool] = True
    offers: ClassVar[frozenset[Ability]] = EVERY_MODEL

    @property
    def name(self) -> str:
        """The model's name at the endpoint."""
        return self.endpoint.model

    @property
    def fingerprint(self) -> str:
        """Address and name: what stands behind them cannot be seen from here."""
        return f"{self.endpoint.url} {self.endpoint.model}"

    @property
    def runtime(self) -> dict[str, str | int]:
        """Nothing: what stands behind the address cannot be seen from here."""
        return {}

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that an endpoint cannot serve.

        Raises:
            ModelError: names the first of them.
        """
        check_needs(
            methods,
            self.offers,
            f"the endpoint {self.endpoint.url}",
            "use a prompt method such as repetition:probability=0.5, or load the model with"
            " holdfast.load()",
        )

    def generate(
        self,
        messages: Sequence[Message],
        methods: Sequence[Method] = (),
        sampling: Sampling = Sampling(),
        seed: int = 0,
        *,
        emphasis: Sequence[Part] = (),
        marks: bool = False,
    ) -> Reply:
        """Answers one chat; see `generate_batch`."""
        return self.generate_batch(
            [Request(messages, methods, sampling, seed, emphasis=emphasis, marks=marks)]
        )[0]

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats, `concurrency` at a time, in the order given.

        A seed goes out as its value modulo 2**31, which every server can read; whether the same
        seed gives the same reply is the server's promise, not ours. A server that refuses seeds by
        name gets none, and a warning says so once. A refused temperature or top_p is left out where
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
        waiting: list[Task] = []
        numbers = itertools.count()

        def add(job: Job, begun: int) -> None:
            body = self._body(job.request)
            heappush(waiting, Task(begun, not job.request.keep, next(numbers), job, body))

        with Workers(self.concurrency, self._answer) as workers:
            for begun, job in enumerate(jobs):
                add(job, begun)
            while waiting or workers.under_way:
                while waiting and workers.under_way < self.concurrency:
                    workers.give(heappop(waiting))
                task, answer = workers.take()
                for job in _follow(task.job, answer):
                    add(job, task.begun)
        self._tell_of_seeds()

    def forget(self, thread: Hashable) -> None:
        """Nothing is kept for a thread here."""

    def session(self) -> EndpointModel:
        """The model itself: what an endpoint shares between requests is its own affair."""
        return self

    def _tell_of_seeds(self) -> None:
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
        if request.emphasis:
            number, first, last = request.emphasis[0]
            raise ModelError(
                f"Emphasis ({request.messages[number]['content'][first:last][:60]!r}) needs"
                f" attention, to which the endpoint {self.endpoint.url} gives no access; leave it"
                " out, or load the model with holdfast.load()."
            )

    def _body(self, request: Request) -> dict[str, object]:
        self._check(request)
        shown = edit_messages(request.messages, request.methods, request.editing_seed)
        return {
            "model": self.endpoint.model,
            "messages": [
                {**message, "content": _without_lone_surrogates(message["content"])}
                for message in place_system(shown, request.system_as)
            ],
            "temperature": request.sampling.temperature,
            "top_p": request.sampling.top_p,
            "seed": request.seed % 2**31,
        }

    def _answer(self, body: dict[str, object], max_new_tokens: int) -> Reply:
        """Asks until the answer can be read, at most `max_retries` times more than once."""
        import openai

        for attempt in itertools.count():
            try:
                text = self._send(body, max_new_tokens)
            except openai.OpenAIError as error:
                # without its cause, for the request it carries holds the key
                raise failure_of(error, self.endpoint) from None
            try:
                return read_reply(text)
            except FilteredReply:
                raise RequestFailed(explain_filter(self.endpoint), "filter") from None
            except MalformedAnswer as error:
                if attempt >= self.endpoint.max_retries:
                    raise RequestFailed(explain_answer(error, text, self.endpoint)) from None
            time.sleep(min(0.5 * 2**attempt, _LONGEST_WAIT))
        raise AssertionError

    def _send(self, body: dict[str, object], max_new_tokens: int) -> str:
        """Asks until the server takes the fields; what it refuses by name is left out for good once
        it has answered.
        """
        import openai

        create: Any = self._client.chat.completions.with_raw_response.create
        limit, refused = self._wire.limit, self._wire.refused
        while True:
            left_out = _dispensable(body, refused)
            fields = {name: value for name, value in body.items() if name not in left_out}
            try:
                text = str(create(**fields, **{limit: max_new_tokens}).http_response.text)
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
                return text


def _follow(job: Job, answer: Reply | BaseException) -> Iterable[Job]:
    """The jobs that an answer leads to; an error that the job does not take is raised."""
    if isinstance(answer, RequestFailed) and job.failed is not None:
        return job.failed(answer)
    if isinstance(answer, BaseException):
        raise answer
    return job.then(answer)


def _without_lone_surrogates(text: str) -> str:
    """The text as UTF-8 can carry it; half a pair, as a reply may end with, becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _dispensable(body: dict[str, object], names: Collection[str]) -> list[str]:
    """Those of the fields without which a request means the same: seeds promise little, and 1 is
    the protocol's default.
    """
    return [name for name in names if name in body and (name == "seed" or body[name] == 1)]
