"""What every chat model takes and gives, whether it runs here or behind an endpoint."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from holdfast import knobs
from holdfast.emphasis import Message, Part, read_marks, resolve  # a message is the OpenAI and Hugging Face form, unchanged
from holdfast.errors import KnobOutOfRange, RequestFailed, UsageError
from holdfast.methods import Method, read_methods

ROLES = ("system", "user", "assistant")  # a chat template may know more, such as "tool"
SYSTEM_AS = ("role", "first-user")
NO_CONTENT = ("refusal", "tool_calls", "empty")  # stop reasons of endpoints' replies


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn; the defaults are those of Li et al. (2024), section 3.

    Args:
        temperature: at least 0; 0 takes the likeliest token (greedy).
        top_p: nucleus mass in (0, 1].
        max_new_tokens: at least 1; a reply cut off here has the stop reason "length".

    Raises:
        KnobOutOfRange: a value outside its range.
    """

    temperature: float = 1.0
    top_p: float = 0.9
    max_new_tokens: int = 400

    def __post_init__(self) -> None:
        temperature = knobs.number_between("sampling", "temperature", self.temperature, 0)
        top_p = knobs.number_between("sampling", "top_p", self.top_p, 0, 1, above_low=True)
        knobs.whole_number("sampling", "max_new_tokens", self.max_new_tokens, 1)
        object.__setattr__(self, "temperature", temperature)
        object.__setattr__(self, "top_p", top_p)


@dataclass(frozen=True)
class Reply:
    """One generated message.

    Args:
        text: without the tokens that end it.
        token_ids: the generated tokens; None where the model does not tell them.
        stop_reason: "stop" (the model ended it), "length" (cut off at `max_new_tokens`, or where the model's context
            ends), or, from `Session.run` alone, "context" (the chat leaves no room for a reply, which is then empty).
            An endpoint may also give "refusal" (no content; the text is what was said of it), "tool_calls" (the
            model called a tool, and the text is what it wrote beside that, if anything) or "empty" (no content).
        trace: the attention mass on the span, where it was asked for and can be seen.
        forwarded: tokens that went through the model for this reply; 0 where unknown.
        prompt_ids: the tokens of the rendered chat; None where the model does not tell them.
    """

    text: str
    token_ids: tuple[int, ...] | None
    stop_reason: str
    trace: object | None = None
    forwarded: int = 0
    prompt_ids: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Request:
    """One reply to be generated; the rows of a batch know nothing of each other.

    Args:
        messages: the chat so far, at least one message; each with a role and a text.
        methods: steering of this row alone; a list of methods, a method, or a spelling.
        sampling: how its tokens are drawn.
        seed: names the draw of this reply; at least 0 and below 2**128.
        conversation_seed: what methods that edit messages draw from. Give all turns of one conversation the
            same number, else such a method may decide anew about messages of the past; None stands for `seed`.
        thread: names a dialog inside a session; its requests share what was computed for their common prefix.
        keep: whether the reply becomes part of the thread; without, the request forks the thread.
        trace: whether the attention mass on the system prompt is wanted.
        system_as: "role", or "first-user" to put the system prompt in front of the first user message.
        emphasis: what attention methods hold on to, in place of the system prompt's words: texts, (text, occurrence from 1) or
            (message from 0, first, last character), of any roles, all one set; kept as ranges.
        marks: whether `*like this*` in a message is emphasis too; kept as ranges, and taken out of the messages.

    Raises:
        PromptError: emphasis that is in no message.
        UsageError: a message without a role or a text, or something else that is not as described.
        KnobOutOfRange: a seed below 0 or from 2**128 upwards, which the generator of draws has no room for.
    """

    messages: tuple[Message, ...]
    methods: tuple[Method, ...] = ()
    sampling: Sampling = Sampling()
    seed: int = 0
    conversation_seed: int | None = None
    thread: Hashable | None = None
    keep: bool = False
    trace: bool = False
    system_as: str = "role"
    emphasis: tuple[Part, ...] = ()
    marks: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.messages, (tuple, list)):
            seen = _cut(self.messages)
            raise UsageError(f"A request takes messages as a list, not {seen}; put it into one.")
        object.__setattr__(self, "messages", tuple(self.messages))
        object.__setattr__(self, "methods", read_methods(self.methods))
        if not self.messages:
            raise UsageError("A request needs at least one message, not []; add one with the role 'user'.")
        for number, message in enumerate(self.messages, 1):
            _check_message(number, message)
        if not isinstance(self.sampling, Sampling):
            raise UsageError(f"A request takes sampling as Sampling(...), not {_cut(self.sampling)}; see holdfast.Sampling.")
        if knobs.whole_number("a request", "seed", self.seed, 0) >= 2**128:
            raise KnobOutOfRange(f"a request takes seed below 2**128, not {_cut(self.seed)}.")
        if self.system_as not in SYSTEM_AS:
            raise UsageError(f"A request takes system_as as {' or '.join(SYSTEM_AS)}, not {_cut(self.system_as)}.")
        marked: tuple[Part, ...] = ()
        if self.marks:
            plain, marked = read_marks(self.messages)
            object.__setattr__(self, "messages", plain)
            object.__setattr__(self, "marks", False)
        emphasis = self.emphasis
        if marked and isinstance(emphasis, (list, tuple)):
            emphasis = (*marked, *emphasis)
        object.__setattr__(self, "emphasis", resolve(self.messages, emphasis))

    @property
    def editing_seed(self) -> int:
        """The seed for `methods.edit_messages`."""
        return self.seed if self.conversation_seed is None else self.conversation_seed


@runtime_checkable
class ChatModel(Protocol):
    """A chat model, local or remote."""

    @property
    def name(self) -> str:
        """The model's name, for people."""

    @property
    def fingerprint(self) -> str:
        """Another one when replies may differ; a run is resumed only under the same one."""

    @property
    def runtime(self) -> dict[str, str | int]:
        """What rounding depends on besides the model: a run is resumed only where it is the same."""

    @property
    def independent(self) -> bool:
        """Whether a reply never depends on what else is asked at the same time, not even by rounding."""

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that cannot be applied to this model, before anything is generated."""

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
        """Answers one chat."""

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats, in the order given; the same as one by one, but faster."""

    def session(self) -> Session:
        """Opens a session, in which requests of one thread may share work."""


@dataclass(frozen=True)
class Job:
    """A request, and what follows from its reply.

    Args:
        request: to be answered.
        then: takes the reply, and returns the jobs it leads to.
        failed: takes the error of a request that was not answered, and returns the jobs it leads
            to; without it, the error ends the session's run.
        name: says in an error which of many requests it is about; "" where there is one.
        drawn: takes every token id of the reply as it is drawn, where the model runs here.
    """

    request: Request
    then: Callable[[Reply], Iterable[Job]]
    failed: Callable[[RequestFailed], Iterable[Job]] | None = None
    name: str = ""
    drawn: Callable[[int], None] | None = None


class Session(Protocol):
    """Answers to requests that belong together."""

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats, in the order given."""

    def run(self, jobs: Iterable[Job]) -> None:
        """Answers jobs and all that follow from them, as many at a time as is good for speed."""

    def forget(self, thread: Hashable) -> None:
        """Frees what was kept for a thread; called when its dialog is over."""


def answer_all(session: Session, requests: Sequence[Request]) -> list[Reply]:
    """Answers many chats, in the order given, with `session.run`."""
    replies: dict[int, Reply] = {}

    def keep(index: int) -> Callable[[Reply], Iterable[Job]]:
        return lambda reply: replies.update({index: reply}) or ()

    names = request_names(requests)
    session.run([Job(request, keep(n), name=names[n]) for n, request in enumerate(requests)])
    return [replies[index] for index in range(len(requests))]


def request_names(requests: Sequence[Request]) -> list[str]:
    """What errors call each of several requests."""
    count = len(requests)
    return [f"Request {n} of {count}" if count > 1 else "" for n in range(1, count + 1)]


def _check_message(number: int, message: object) -> None:
    if not isinstance(message, dict):
        raise UsageError(f"Message {number} is {_cut(message)}; write it as {{'role': 'user', 'content': 'Hello.'}}.")
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or (role not in ROLES and role.strip().lower() in ("", *ROLES)):
        raise UsageError(f"Message {number} has the role {_cut(role)}; use {', '.join(ROLES[:-1])} or {ROLES[-1]}.")
    if isinstance(content, list):
        raise UsageError(
            f"Message {number} has a list as its content ({_cut(content)}), and only text is supported; join its texts into "
            "one string."
        )
    if not isinstance(content, str):
        raise UsageError(f"Message {number} has the content {_cut(content)}, and only text is supported; give a string.")


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
