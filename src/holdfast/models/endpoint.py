"""Chat models behind an OpenAI-compatible endpoint, with the interface of the local ones."""

from __future__ import annotations

import ipaddress
import itertools
import os
import re
import threading
import time
import warnings
import weakref
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import SplitResult, urlsplit

from holdfast import knobs
from holdfast.chat.emphasis import Part
from holdfast.chat.messages import Message
from holdfast.chat.prompt import place_system
from holdfast.errors import ModelError, RequestFailed, UsageError
from holdfast.methods import Ability, Method, edit_messages
from holdfast.methods.kinds import EVERY_MODEL
from holdfast.models.answers import (
    Endpoint,
    FilteredReply,
    MalformedAnswer,
    explain_answer,
    explain_filter,
    failure_of,
    list_models,
    read_models,
    read_reply,
    refused_fields,
    wants_other_limit,
)
from holdfast.models.capabilities import check_needs
from holdfast.models.protocol import Job, answer_all
from holdfast.models.requests import Reply, Request
from holdfast.sampling import Sampling

if TYPE_CHECKING:
    from openai import OpenAI

_LONGEST_WAIT = 8.0  # seconds before a malformed answer is asked for again


@dataclass(frozen=True)
class EndpointModel:
    """A model behind an endpoint; made by `connect`. Many threads may use it at once.

    Methods that edit messages work; those that need attention or logits are refused by name.
    """

    endpoint: Endpoint
    concurrency: int
    _client: OpenAI = field(repr=False, compare=False)
    _wire: _Wire = field(repr=False, compare=False)
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
        return answer_all(self, requests)

    def run(self, jobs: Iterable[Job]) -> None:
        """Answers jobs and all that follow from them, `concurrency` at a time; `then` is called in
        this thread.

        What follows from a job goes before the jobs given after it: of many conversations, those
        that were begun are completed before others begin.

        Raises:
            ModelError: as `generate_batch`; but a request that fails by itself goes to the job's
                `failed`, where it has one, and the others go on.
        """
        waiting: list[_Task] = []
        tasks: SimpleQueue[_Task | None] = SimpleQueue()
        answers: SimpleQueue[tuple[_Task, Reply | BaseException]] = SimpleQueue()
        stopped, numbers = threading.Event(), itertools.count()

        def work() -> None:
            while (task := tasks.get()) is not None and not stopped.is_set():
                try:
                    limit = task.job.request.sampling.max_new_tokens
                    answers.put((task, self._answer(task.body, limit)))
                except BaseException as error:
                    answers.put((task, error))

        def add(job: Job, begun: int) -> None:
            body = self._body(job.request)
            heappush(waiting, _Task(begun, not job.request.keep, next(numbers), job, body))

        # daemon threads, for those of an executor would hold up the end of the program until the
        # last answer is there
        workers = [
            threading.Thread(target=work, name="holdfast-endpoint", daemon=True)
            for _ in range(self.concurrency)
        ]
        try:
            for begun, job in enumerate(jobs):
                add(job, begun)
            for worker in workers:
                worker.start()
            under_way = 0
            while waiting or under_way:
                while waiting and under_way < self.concurrency:
                    tasks.put(heappop(waiting))
                    under_way += 1
                task, answer = answers.get()
                under_way -= 1
                for job in _follow(task.job, answer):
                    add(job, task.begun)
        finally:  # at the first failure, or Ctrl-C, no more is started
            stopped.set()
            for _ in workers:
                tasks.put(None)
        if "seed" in self._wire.refused and not self._wire.warned:
            self._wire.warned = True
            warnings.warn(
                f"{self.endpoint.url} refuses 'seed' for {self.endpoint.model!r}, so requests go"
                " out without it; the same request may get another reply.",
                stacklevel=2,
            )

    def forget(self, thread: Hashable) -> None:
        """Nothing is kept for a thread here."""

    def session(self) -> EndpointModel:
        """The model itself: what an endpoint shares between requests is its own affair."""
        return self

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


@dataclass(frozen=True, order=True)
class _Task:
    """A job that waits, in the order in which jobs are taken.

    Args:
        begun: which of the first jobs it follows from.
        fork: whether no other request waits for its reply.
        number: the order of arrival.
    """

    begun: int
    fork: bool
    number: int
    job: Job = field(compare=False)
    body: dict[str, object] = field(compare=False)


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


def connect(
    base_url: str,
    model: str | None = None,
    api_key_env: str = "OPENAI_API_KEY",
    *,
    concurrency: int = 8,
    timeout: float = 120.0,
    max_retries: int = 5,
    requests_per_minute: float | None = None,
) -> EndpointModel:
    """Prepares a model behind an OpenAI-compatible endpoint; nothing is sent yet, if it is named.

    Connection failures, timeouts, 408, 409, 429 and 5xx are retried by the official client, which
    waits as long as the server asks it to (Retry-After), else exponentially longer. Malformed
    answers are asked for again.

    Args:
        base_url: as in https://api.openai.com/v1 or http://localhost:8000/v1.
        model: the model's name at the endpoint; None takes the one that it lists, if it is one.
        api_key_env: the environment variable that holds the key; a server on this machine may do
            without.
        concurrency: requests under way at once, at least 1.
        timeout: seconds for one answer as a whole, from the request to its last byte.
        max_retries: per request, at least 0.
        requests_per_minute: spaces requests evenly, retries included; None for no limit.

    Raises:
        UsageError: `base_url` is not a web address, or a number lies outside its range.
        ModelError: the environment variable holds no usable key, or the model has to be named.
    """
    knobs.whole_number("an endpoint", "concurrency", concurrency, 1)
    knobs.whole_number("an endpoint", "max_retries", max_retries, 0)
    timeout = knobs.number_between("an endpoint", "timeout", timeout, 0, above_low=True)
    pace = _Pace(0)
    if requests_per_minute is not None:
        rate = knobs.number_between(
            "an endpoint", "requests_per_minute", requests_per_minute, 0, above_low=True
        )
        pace = _Pace(60 / rate)
    address = _read_address(base_url)
    here = _is_this_machine(address.hostname or "")
    key = _read_key(api_key_env, address, needed=not here)
    endpoint = Endpoint(
        address.geturl().rstrip("/"), model or "", api_key_env, timeout, max_retries, key
    )
    client = _open_client(endpoint, direct=here, pace=pace)
    if model is None:
        endpoint = replace(endpoint, model=_find_model(client, endpoint))
    endpoint_model = EndpointModel(endpoint, concurrency, client, _Wire())
    weakref.finalize(
        endpoint_model, client.close
    )  # connections are closed with the last use of the model
    return endpoint_model


@dataclass
class _Wire:
    """What was learnt about the server's dialect."""

    limit: str = "max_tokens"
    refused: frozenset[str] = frozenset()
    warned: bool = False


class _Pace:
    """Lets callers pass at least `interval` seconds apart."""

    def __init__(self, interval: float):
        self._interval = interval
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next)
            self._next = turn + self._interval
        time.sleep(turn - now)


def _open_client(endpoint: Endpoint, *, direct: bool, pace: _Pace) -> OpenAI:
    import openai

    from holdfast.models.bounded import BoundedClient

    return openai.OpenAI(
        base_url=endpoint.url,
        api_key=endpoint.key or "none",
        timeout=openai.Timeout(endpoint.timeout, connect=min(endpoint.timeout, 10.0)),
        max_retries=endpoint.max_retries,
        # a proxy cannot reach this machine's own ports
        http_client=BoundedClient(endpoint.timeout, pace.wait, trust_env=not direct),
    )


def _find_model(client: OpenAI, endpoint: Endpoint) -> str:
    """The name of the only model that the server lists."""
    import openai

    ask: Any = client.models.with_raw_response.list
    try:
        names = read_models(str(ask().http_response.text))
    except (MalformedAnswer, openai.NotFoundError):
        names = []
    except openai.OpenAIError as error:
        raise failure_of(error, endpoint) from None
    if len(names) == 1:
        return names[0]
    cure = "name the model yourself (model= in Python, or `--endpoint-model`)"
    if not names:
        raise ModelError(f"{endpoint.url}/models lists no model; {cure}.")
    raise ModelError(
        f"{endpoint.url} has {len(names)} models ({list_models(names, endpoint)}); {cure}."
    )


def _read_address(base_url: str) -> SplitResult:
    try:
        address = urlsplit(base_url)
        right = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:
        right = False
    if not right:
        raise UsageError(
            f"{base_url!r} is no web address of an endpoint; write it like"
            " http://localhost:8000/v1."
        )
    if address.username or address.password or address.query or address.fragment:
        raise UsageError(
            f"The base URL of {address.hostname} holds more than an address; keys belong into an"
            " environment variable, and a query or fragment is not supported."
        )
    if address.path.rstrip("/").endswith("/chat/completions"):
        raise UsageError(
            f"The base URL {base_url!r} goes one step too far; leave out /chat/completions."
        )
    return address


def _is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _read_key(variable: str, address: SplitResult, *, needed: bool) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        raise UsageError(
            "api_key_env takes the name of an environment variable that holds the key, not the key."
        )
    key = os.environ.get(variable, "").strip()
    # a name in small letters may be a key put in its place by mistake
    shown = variable if variable.isupper() else "named by api_key_env"
    if not key and needed:
        raise ModelError(
            f"There is no API key for {address.hostname} in the environment variable {shown}; set"
            " it, or name another variable with api_key_env."
        )
    if not re.fullmatch(r"[\x21-\x7e]*", key):
        raise ModelError(
            f"The environment variable {shown} holds blanks or characters that no API key has."
        )
    return key
