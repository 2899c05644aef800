"""The protocol of chat models, whether they run here or behind an endpoint."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Protocol, Unpack, runtime_checkable

from holdfast.chat.emphasis import Part
from holdfast.chat.messages import Messages
from holdfast.chat.prompt import Pieces
from holdfast.chat.templates import default_system_prompt
from holdfast.common.sampling import Sampling, SamplingValues
from holdfast.errors import RequestFailed, UnknownName, UsageError, shortened
from holdfast.methods import Ability, Method, Methods
from holdfast.models.requests import Reply, Request

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class Generates(Protocol):
    """Answers single chats with `generate_batch`."""

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats, in the order given, faster than one by one. The replies are the same
        up to rounding, which below float32 may lead a sampled reply elsewhere after some tokens.
        """

    def generate(
        self,
        messages: Messages,
        methods: Methods = (),
        sampling: Sampling = Sampling(),
        seed: int = 0,
        *,
        emphasis: Sequence[Part] = (),
        marks: bool = False,
        continue_final_message: bool = False,
        trace: bool = False,
        **values: Unpack[SamplingValues],
    ) -> Reply:
        """Answers one chat.

        Args:
            messages: the chat so far, each message with "role" and "content".
            methods: the steering: a spec string, a method, or a list of methods.
            sampling: how tokens are drawn.
            seed: determines the draws.
            emphasis: the text to steer towards in place of the system prompt, as in `Request`.
            marks: whether `*like this*` in a message is emphasis too.
            continue_final_message: whether the reply continues the last message, the assistant's.
            trace: whether `token_masses` and `trace` of the reply are filled.
            values: `temperature`, `top_p` and `max_new_tokens`, in place of those of `sampling`.

        Raises:
            UsageError: a method needs a system prompt or emphasis, and a request has neither.
        """
        for name in values.keys() - SamplingValues.__annotations__.keys():
            raise UnknownName("argument", name, SamplingValues.__annotations__, "generate")
        if isinstance(sampling, Sampling):  # else the request refuses it
            sampling = replace(sampling, **values)
        request = Request(
            messages,
            methods,
            sampling,
            seed,
            emphasis=emphasis,
            marks=marks,
            trace=trace,
            continue_final_message=continue_final_message,
        )
        request.check_span()
        return self.generate_batch([request])[0]


@runtime_checkable
class ChatModel(Generates, Protocol):
    """A chat model, local or remote."""

    @property
    def name(self) -> str:
        """The model's name, for display."""

    @property
    def fingerprint(self) -> str:
        """Changes when replies may differ; a run is resumed only under the same fingerprint."""

    @property
    def runtime(self) -> dict[str, str | int]:
        """Versions and devices that rounding depends on; a resumed run has the same ones."""

    @property
    def independent(self) -> bool:
        """Whether a reply never depends on concurrent requests, not even by rounding."""

    @property
    def capabilities(self) -> frozenset[Ability]:
        """The abilities that methods and studies can use; a method that needs more is refused."""

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that cannot be applied to this model, before anything is generated."""

    def session(self) -> Session:
        """Opens a session, in which requests of one thread may share work."""


def facts_about(model: object) -> dict[str, object]:
    """Facts about a model for a run's manifest: its source, its template's system prompt."""
    about: dict[str, object] = dict(getattr(model, "about", {}))
    tokenizer = getattr(model, "tokenizer", None)
    if tokenizer is not None and tokenizer.chat_template:
        default = default_system_prompt(tokenizer)
        about |= {"default_system_prompt": asdict(default)} if default.text else {}
    return about


@dataclass(frozen=True)
class Job:
    """A request, and what follows from its reply."""

    request: Request  # to be answered
    then: Callable[[Reply], Iterable[Job]]  # takes the reply, and returns the jobs it leads to
    # takes the error of a request that was not answered, and returns the jobs it leads to; without
    # it, the error ends the session's run
    failed: Callable[[RequestFailed], Iterable[Job]] | None = None
    name: str = ""  # identifies the request in errors; "" if it is the only one
    # receives every token id of the reply as it is drawn, if the model runs here
    drawn: Callable[[int], None] | None = None


class Session(Protocol):
    """Answers to requests that belong together."""

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats, in the order given."""

    def run(self, jobs: Iterable[Job]) -> None:
        """Answers jobs and all that follow from them, as many at a time as is fastest."""

    def forget(self, thread: Hashable) -> None:
        """Frees what was kept for a thread; called when its dialog is over."""


class Engine(Protocol):
    """Answers jobs: a batch in this process, or the threads that ask endpoints."""

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queues jobs."""

    def step(self) -> Sequence[tuple[Job, Reply | Exception]] | None:
        """The jobs that ended in a step; None if none is open. Raises errors that end all jobs."""

    def stop(self) -> None:
        """Cancels the open jobs."""


def run_jobs(engine: Engine, jobs: Iterable[Job]) -> None:
    """Answers jobs and all that follow from them.

    Raises:
        Exception: the first error that its job does not handle, once all others are answered; an
            error that ends all jobs, at once.
    """
    errors = list[Exception]()
    try:
        engine.submit(list(jobs))
        while (ended := engine.step()) is not None:
            following = list[Job]()
            for job, outcome in ended:
                if isinstance(outcome, Reply):
                    following += job.then(outcome)
                elif isinstance(outcome, RequestFailed) and job.failed is not None:
                    following += job.failed(outcome)
                else:
                    errors.append(outcome)
            engine.submit(following)
    finally:
        engine.stop()
    if errors:
        raise errors[0]


def answer_all(
    run: Callable[[Sequence[Job]], None],
    requests: Sequence[Request],
    drawn: Callable[[int], None] | None = None,
) -> list[Reply]:
    """Answers many chats, in order, with `run`; refuses a method that lacks a span."""
    if isinstance(requests, Request) or not all(
        isinstance(request, Request) for request in requests
    ):
        raise UsageError(
            "A batch is a list of holdfast.Request(messages), not"
            f" {shortened(requests)}; for one chat, use generate."
        )
    names = request_names(requests)
    for name, request in zip(names, requests, strict=True):
        request.check_span(name)
    replies: dict[int, Reply] = {}

    def keep(index: int) -> Callable[[Reply], Iterable[Job]]:
        return lambda reply: replies.update({index: reply}) or ()

    run([Job(request, keep(n), name=names[n], drawn=drawn) for n, request in enumerate(requests)])
    return [replies[index] for index in range(len(requests))]


def stream_reply(
    generate: Callable[..., Reply],
    tokenizer: PreTrainedTokenizerFast,
    request: Request,
    tell: Callable[[str], None],
) -> Reply:
    """Answers one chat and passes its text to `tell` in pieces; `generate` must accept `drawn`."""
    text = Pieces(tokenizer, tell)
    reply = generate(request, drawn=text.add)
    text.finish(reply.text)
    return reply


def request_names(requests: Sequence[Request]) -> list[str]:
    count = len(requests)
    return [f"Request {n} of {count}" if count > 1 else "" for n in range(1, count + 1)]
