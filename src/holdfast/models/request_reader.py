"""Turns requests into the engine's rows, with what is known of their dialogs and methods.

Some methods are resolved by a rehearsed reply. A rehearsal depends only on a chat's first turn and
its other methods, so one rehearsal serves the whole dialog, and every dialog that begins like it.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Protocol

import torch
from transformers import PreTrainedTokenizerFast

from holdfast.common.sampling import Sampling
from holdfast.engine.prefixes import PrefixCache
from holdfast.engine.rows import RowState
from holdfast.engine.runner import Runner
from holdfast.engine.scheduler import Scheduler, Serving, name_error
from holdfast.errors import HoldfastError, ModelError, PromptError
from holdfast.methods import Method, ShiftsAttention
from holdfast.models.rendering import CachedDialog, Rendered, known_replies, render
from holdfast.models.requests import Reply, Request, Token

_MAX_CHECKED = 1_000  # lists of methods known to be valid; a server may see any number of them
_MAX_REHEARSALS = 10_000  # first turns; for a large model each is a few thousand numbers

_Key = tuple[Hashable, ...]


@dataclass(eq=False)
class Answer:
    """A submitted request."""

    rendered: Rendered  # the request, and its tokens
    # of its row; replaced once its methods are resolved, if that takes a rehearsal
    handle: RowState
    taken: int = 0  # how many of its tokens `take` has returned
    rehearsed: int = 0  # tokens that went through the model for a rehearsal
    reply: Reply | None = None  # once it has ended
    error: Exception | None = None  # why it ended without a reply

    @property
    def token_ids(self) -> list[int]:
        """The tokens drawn so far, except the one that ends the reply."""
        return self.handle.token_ids

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled before it ended."""
        return self.handle.cancelled

    @property
    def done(self) -> bool:
        """Whether it has ended or was cancelled."""
        return self.cancelled or self.error is not None or self.reply is not None

    @property
    def has_new_tokens(self) -> bool:
        """Whether tokens were drawn that `take` has not returned."""
        return len(self.token_ids) > self.taken

    def take(self) -> list[int]:
        """The tokens drawn since the last call."""
        new_ids = self.token_ids[self.taken :]
        self.taken += len(new_ids)
        return new_ids

    def result(self) -> Reply:
        """The reply; raises its own error, or a `ModelError` if there is no reply."""
        if self.error is not None:
            raise self.error
        if self.reply is None:
            state = "was cancelled" if self.cancelled else "has not ended"
            raise ModelError(f"The request {state}, so there is no reply to it.")
        return self.reply


def take_tokens(answers: Sequence[Answer]) -> list[list[Token]]:
    """The tokens of each answer since the last call, with the details that were requested."""
    masses = _new_masses(answers)
    taken = list[list[Token]]()
    for answer in answers:
        first, last = answer.taken, len(answer.token_ids)
        cached, tokens = answer.handle.cached, list[Token]()
        details = answer.handle.log_probabilities[first:last]
        for token_id, mass, drawn in zip_longest(answer.take(), masses.get(answer, ()), details):
            logprob, top = (None, ()) if drawn is None else (drawn.drawn, drawn.top)
            mean = uniform = heads = None
            if mass is not None:
                heads = mass[:, :-1]
                mean, uniform = float(heads.mean()), float(mass[:, -1].mean())
            tokens.append(Token(token_id, mean, uniform, heads, logprob, top, cached))
        taken.append(tokens)
    return taken


def _new_masses(answers: Sequence[Answer]) -> dict[Answer, list[torch.Tensor]]:
    """The masses on the span of tokens not taken yet, for the answers that trace them.

    Each is float32 [layer, head], with that of uniform attention as an extra column; all are copied
    from the device together.
    """
    wanted = dict[Answer, list[torch.Tensor]]()
    for answer in answers:
        if answer.has_new_tokens and answer.rendered.row.trace and answer.rendered.span_ranges:
            new_tokens = slice(answer.taken, len(answer.token_ids))
            by_head = answer.handle.masses[new_tokens]
            uniform = answer.handle.uniform_masses[new_tokens]
            pairs = zip(by_head, uniform, strict=True)
            wanted[answer] = [torch.column_stack(pair) for pair in pairs]
    new = [mass for masses in wanted.values() for mass in masses]
    if not new:
        return {}
    copied = iter(torch.stack(new).float().cpu())
    return {answer: [next(copied) for _ in masses] for answer, masses in wanted.items()}


class Rehearsals:
    """Methods resolved by rehearsed replies, and the requests that wait for a rehearsal."""

    def __init__(self) -> None:
        self._resolved: dict[_Key, Mapping[Method, ShiftsAttention]] = {}
        self._under_way: dict[_Key, RowState] = {}
        self._waiting: dict[RowState, list[Answer]] = {}

    def resolved(self, request: Request) -> Request | None:
        """The request with its methods resolved; None if a rehearsal has to come first."""
        if not request.compiled.rehearsed:
            return request
        becomes = self._resolved.get(_key_of(request))
        if becomes is None:
            return None
        methods = tuple(becomes.get(method, method) for method in request.methods)
        return without_rehearsed(replace(request, methods=methods))

    def learn(self, request: Request, reply: Reply) -> None:
        """Remembers the reply to `rehearsal_of(request)`; one without a trace resolves nothing."""
        while len(self._resolved) >= _MAX_REHEARSALS:
            self._resolved.pop(next(iter(self._resolved)), None)
        trace = reply.trace
        self._resolved[_key_of(request)] = {
            method: method.resolve(trace.mass[..., : method.tokens])
            for method in request.compiled.rehearsed
            if trace is not None
        }

    def wait(self, answer: Answer, rehearse: Callable[[Rendered], RowState]) -> None:
        """Makes a request wait for its rehearsal, which `rehearse` submits unless under way."""
        assert answer.rendered.rehearsal is not None
        key = _key_of(answer.rendered.request)
        if key not in self._under_way:
            self._under_way[key] = rehearse(answer.rendered.rehearsal)
            self._waiting[self._under_way[key]] = []
        self._waiting[self._under_way[key]].append(answer)

    def __contains__(self, handle: object) -> bool:
        return handle in self._waiting

    def end(self, handle: RowState) -> list[Answer]:
        """The requests that waited for a rehearsal that has ended, except cancelled ones."""
        waiting = self._waiting.pop(handle)
        self._under_way = {key: other for key, other in self._under_way.items() if other != handle}
        return [answer for answer in waiting if not answer.cancelled]

    def clear(self) -> None:
        """Forgets the waiting requests, but not the resolved methods."""
        self._under_way.clear()
        self._waiting.clear()


def rehearsal_of(request: Request) -> Request:
    """The request whose reply resolves another's methods: its first turn, answered greedily."""
    first, *others = request.compiled.rehearsed
    messages = first.first_turn(request.messages)
    emphasis = tuple(part for part in request.emphasis if part[0] < len(messages))
    if request.emphasis and not emphasis:
        raise PromptError(
            f"{first.name} reads the mass on a span in the reply to the first turn, and the"
            " emphasised text comes after it; emphasise a text of the first turn, or use boost."
        )
    return replace(
        without_rehearsed(request),
        messages=messages,
        sampling=Sampling(0.0, 1.0, max(method.tokens for method in (first, *others))),
        conversation_seed=request.editing_seed,
        seed=0,
        thread=None,
        keep=False,
        trace=True,
        emphasis=emphasis,
        room=1,
        reply_token_ids=(),
        continue_final_message=False,
    )


def without_rehearsed(request: Request) -> Request:
    """The request without the methods that a rehearsal resolves."""
    return replace(request, methods=request.compiled.without_rehearsed.methods)


def _key_of(request: Request) -> _Key:
    first = request.compiled.rehearsed[0]
    messages = first.first_turn(request.messages)
    return (
        tuple((message["role"], message["content"]) for message in messages),
        request.methods,
        request.editing_seed if request.compiled.messages else None,
        request.system_as,
        tuple(part for part in request.emphasis if part[0] < len(messages)),
        request.plain,
        repr(request.tools),
    )


class SessionModel(Protocol):
    """The part of a `LocalModel` that its sessions use."""

    @property
    def name(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def tokenizer(self) -> PreTrainedTokenizerFast: ...
    @property
    def steerable(self) -> bool: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def prefix_bytes(self) -> int: ...
    @property
    def context(self) -> int | None: ...
    @property
    def runner(self) -> Runner: ...
    def scheduler(self, serving: Serving | None = None) -> Scheduler: ...
    def check(self, methods: Sequence[Method]) -> None: ...


class Reader:
    """Reads the requests of one session; `rehearsals` has results and the waiting requests."""

    def __init__(self, model: SessionModel):
        self.model, self.rehearsals = model, Rehearsals()
        self._threads: dict[Hashable, tuple[CachedDialog, ...]] = {}
        self._prefixes = PrefixCache(model.prefix_bytes)
        self._checked: set[tuple[Method, ...]] = set()
        self._fingerprint = model.fingerprint

    def check_weights(self) -> None:
        """Raises a `ModelError` if the weights changed since the session was opened."""
        if (now := self.model.fingerprint) != self._fingerprint:
            raise ModelError(
                f"The weights, the configuration or the template of {self.model.name!r} changed"
                f" since this session was opened (fingerprint {self._fingerprint[:12]}, now"
                f" {now[:12]}), and it has computed with the old ones; open a new session."
            )

    def read(self, requests: Sequence[Request]) -> list[Rendered | HoldfastError]:
        """The requests as rows, or their errors; rows with unresolved methods get a rehearsal."""
        resolved = [self.rehearsals.resolved(request) for request in requests]
        pairs = list(zip(resolved, requests, strict=True))
        rows = self._read_resolved([s or without_rehearsed(r) for s, r in pairs])
        return [
            chat
            if known or isinstance(chat, HoldfastError)
            else self._with_rehearsal(chat, request)
            for chat, (known, request) in zip(rows, pairs, strict=True)
        ]

    def check(self, methods: tuple[Method, ...]) -> None:
        """Refuses methods that the model cannot apply, as the model's `check` does."""
        if methods not in self._checked:
            self.model.check(methods)
            if len(self._checked) >= _MAX_CHECKED:
                self._checked.clear()
            self._checked.add(methods)

    def keep(self, rendered: Rendered, known: tuple[CachedDialog, ...]) -> None:
        """Remembers the current state of a request's thread."""
        thread = rendered.request.thread
        assert thread is not None
        self._threads[thread] = known
        self._prefixes.keep(thread, [dialog.prefix for dialog in known])

    def known_of(self, thread: Hashable) -> tuple[CachedDialog, ...]:
        """The current dialog of a thread, which is marked as used."""
        self._prefixes.use(thread)
        return self._threads.get(thread, ())

    def forget(self, thread: Hashable) -> None:
        """Frees what is known of a thread."""
        self._threads.pop(thread, None)
        self._prefixes.forget(thread)

    def _with_rehearsal(self, rendered: Rendered, request: Request) -> Rendered | HoldfastError:
        """A request whose methods are not resolved, with its rehearsal."""
        name = rendered.row.name
        try:
            self.check(request.methods)
            rehearsal = rehearsal_of(request)
        except HoldfastError as error:
            if name:
                name_error(error, name)
            return error
        (first,) = self._read_resolved([rehearsal])
        if isinstance(first, HoldfastError):
            return first
        return replace(rendered, request=request, rehearsal=first)

    def _read_resolved(self, requests: Sequence[Request]) -> list[Rendered | HoldfastError]:
        """The requests as rows that continue their threads, or their errors."""
        model = self.model
        return render(requests, model.tokenizer, self._known, traces=model.steerable)

    def _known(self, request: Request) -> tuple[CachedDialog, ...]:
        self.check(request.methods)
        known = () if request.thread is None else self.known_of(request.thread)
        return known or known_replies(request, self.model.tokenizer)
