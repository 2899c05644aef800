"""Requests as the engine's rows, with what is known of their dialogs and of their methods."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from holdfast.engine.prefixes import PrefixCache
from holdfast.engine.runner import Runner
from holdfast.engine.scheduler import Scheduler, Serving, name_error
from holdfast.errors import HoldfastError, ModelError
from holdfast.methods import Method
from holdfast.models.rehearsals import Rehearsals, rehearsal_of, without_rehearsed
from holdfast.models.rendering import CachedDialog, Rendered, known_replies, render
from holdfast.models.requests import Request

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_CHECKED = 1_000  # lists of methods that are known to be right; a server sees any number of them


class SessionModel(Protocol):
    """A `LocalModel`, as far as its sessions use it."""

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
    """Reads the requests of one session; `rehearsals` has their results and who waits for one."""

    def __init__(self, model: SessionModel):
        self.model, self.rehearsals = model, Rehearsals()
        self._threads: dict[Hashable, tuple[CachedDialog, ...]] = {}
        self._prefixes = PrefixCache(model.prefix_bytes)
        self._checked: set[tuple[Method, ...]] = set()
        self._fingerprint = model.fingerprint

    def check_weights(self) -> None:
        """Refuses, by a `ModelError`, weights changed since the session was opened."""
        if (now := self.model.fingerprint) != self._fingerprint:
            raise ModelError(
                f"The weights, the configuration or the template of {self.model.name!r} changed"
                f" since this session was opened (fingerprint {self._fingerprint[:12]}, now"
                f" {now[:12]}), and it has computed with the old ones; open a new session."
            )

    def read(
        self, requests: Sequence[Request], names: Sequence[str]
    ) -> list[Rendered | HoldfastError]:
        """The requests as rows, or their errors; unsettled methods have a rehearsal beside."""
        settled = [self.rehearsals.settled(request) for request in requests]
        pairs = list(zip(settled, requests, strict=True))
        rows = self._read_settled([s or without_rehearsed(r) for s, r in pairs], names)
        return [
            chat if known or isinstance(chat, HoldfastError) else self._behind(chat, request)
            for chat, (known, request) in zip(rows, pairs, strict=True)
        ]

    def check(self, methods: tuple[Method, ...]) -> None:
        """Refuses methods that the model cannot apply, as the model's `check` does."""
        if methods not in self._checked:
            self.model.check(methods)
            if len(self._checked) >= _CHECKED:
                self._checked.clear()
            self._checked.add(methods)

    def keep(self, rendered: Rendered, known: tuple[CachedDialog, ...]) -> None:
        """Remembers what is known of a request's thread now."""
        thread = rendered.request.thread
        assert thread is not None
        self._threads[thread] = known
        self._prefixes.keep(thread, [dialog.prefix for dialog in known])

    def known_of(self, thread: Hashable) -> tuple[CachedDialog, ...]:
        """The dialog of a thread as it stands now, which counts as used."""
        self._prefixes.use(thread)
        return self._threads.get(thread, ())

    def forget(self, thread: Hashable) -> None:
        """Frees what is known of a thread."""
        self._threads.pop(thread, None)
        self._prefixes.forget(thread)

    def _behind(self, rendered: Rendered, request: Request) -> Rendered | HoldfastError:
        """A request whose methods are not settled, with its rehearsal."""
        name = rendered.row.name
        try:
            self.check(request.methods)
            rehearsal = rehearsal_of(request)
        except HoldfastError as error:
            if name:
                name_error(error, name)
            return error
        (first,) = self._read_settled([rehearsal], [name])
        if isinstance(first, HoldfastError):
            return first
        return replace(rendered, request=request, rehearsal=first)

    def _read_settled(
        self, requests: Sequence[Request], names: Sequence[str]
    ) -> list[Rendered | HoldfastError]:
        """The requests as rows with what their threads know now, or their errors."""
        model = self.model
        return render(requests, model.tokenizer, self._known, names=names, traces=model.steerable)

    def _known(self, request: Request) -> tuple[CachedDialog, ...]:
        self.check(request.methods)
        if request.thread is None:
            return known_replies(request, self.model.tokenizer)
        return self.known_of(request.thread)
