"""The handle of a block of `holdfast.steering`, and the code whose passes belong to it.

A *block* is the body of `with holdfast.steering(model, ...) as steered`. A *pass* is one call of
the model's `forward`. The *span* is the set of tokens that the methods of the block move attention
to, usually the system prompt; the *mass* is the share of a query's attention weights on the span.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar
from weakref import ref

import torch
from torch import Tensor
from transformers import PreTrainedModel

from holdfast.attention.batch_steering import AttentionTrace, BatchSteering
from holdfast.attention.cache_origins import CacheOrigin
from holdfast.attention.passes import PassMasses
from holdfast.errors import UsageError
from holdfast.plurals import count_of

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class TracedPass:
    """The mass that a forward pass recorded."""

    thread: int  # the identifier of the thread that ran it
    masses: Sequence[Tensor]  # per layer, at each row's last query, [row, head]


@dataclass(eq=False, repr=False)
class Steered:
    """The handle of an open block."""

    model: ref[PreTrainedModel]  # the model that it steers
    name: str  # the name of the model's class
    steering: BatchSteering  # the steering of the model's attention
    # the origin of caches that are filled in the block; None after it was left
    origin: CacheOrigin | None
    spec: str  # the methods as a spec string
    is_open: bool = field(default=True, init=False)  # False after the block was left
    was_used: bool = field(default=False, init=False)  # whether it had a pass, even a refused one
    num_running: int = field(default=0, init=False)  # its passes that are running
    num_steered: int = field(default=0, init=False)  # its passes that have ended
    # the passes that have ended, each with its mass; empty unless traced
    _traced: list[TracedPass] = field(default_factory=list, init=False)

    def __repr__(self) -> str:
        rows = count_of(len(self.steering.span), "row")
        passes = count_of(self.num_steered, "pass")
        return f"<Steered {self.name}: {self.spec}, {rows}, {passes}>"

    def close(self) -> None:
        """Notes that the block was left; passes that still run are steered to their end."""
        self.is_open = False
        self._release_origin()

    def note_use(self) -> None:
        """Notes that a pass belongs to the block, even if it is refused afterwards."""
        self.was_used = True

    def begin_pass(self) -> None:
        """Counts a pass as running."""
        self.num_running += 1

    def end_pass(self) -> None:
        """Counts a pass as ended, by an error or not."""
        self.num_running -= 1
        self._release_origin()

    def _release_origin(self) -> None:
        """From the end of the block's last pass on, only the caches of the block refer to it."""
        if not self.is_open and not self.num_running:
            self.origin = None

    def record(self, passes: Sequence[PassMasses]) -> None:
        """Counts a pass that ended without an error, and keeps its mass if it was traced.

        Args:
            passes: the mass of each time that the pass went through the layers.
        """
        self.num_steered += 1
        thread = threading.get_ident()
        for masses in passes:
            if masses.steered:
                self._traced.append(TracedPass(thread, list(masses.steered.values())))

    @property
    def traces(self) -> list[AttentionTrace]:
        """The mass on the span in each row of the batch, one step per forward pass so far.

        In a pass of several tokens, it is the mass at the row's last token that is not padding.
        The list is empty unless the block was opened with `trace`.

        Raises:
            UsageError: passes of several threads are interleaved, or batches differ in size.
        """
        passes = list(self._traced)
        if not passes:
            return []
        # If threads ran one after the other, each has one stretch of passes. With more stretches
        # than threads, some thread ran passes between those of another.
        threads = [traced.thread for traced in passes]
        stretches = len(list(itertools.groupby(threads)))
        num_threads = len(set(threads))
        if stretches > num_threads:
            raise UsageError(
                f"{num_threads} threads took turns running passes in this block, so its "
                "traces are mixed; trace one thread at a time."
            )
        sizes = sorted({traced.masses[0].shape[0] for traced in passes})
        if len(sizes) > 1:
            raise UsageError(
                f"The passes of this block had batches of {' and '.join(map(str, sizes))} rows, so "
                "they make no single trace; open a separate block for each batch size."
            )
        # [row, layer, head] of each pass
        steps = [torch.stack(list(traced.masses), 1).cpu() for traced in passes]
        return [AttentionTrace(mass) for mass in torch.stack(steps, -1)]

    def bind(self, function: Callable[P, R]) -> Callable[P, R]:
        """Returns a function whose passes belong to this block, in whatever thread it is called.

            Thread(target=steered.bind(model.generate), kwargs=arguments).start()

        Calling it after the block was left raises a `UsageError`.
        """

        @functools.wraps(function)
        def bound(*args: P.args, **kwargs: P.kwargs) -> R:
            model = self.model()
            if model is None or not self.is_open:
                raise UsageError(
                    f"The block on {self.name} to which this function is bound was left; call the "
                    "function, and join its thread, inside the block."
                )
            with enter_scope(model, self):
                return function(*args, **kwargs)

        return bound


@dataclass(frozen=True, eq=False)
class Scope:
    """A context in which a model's passes belong to a block, or, in `unsteered`, to none."""

    model: ref[PreTrainedModel]
    block: Steered | None  # None in `unsteered`


_SCOPES: ContextVar[tuple[Scope, ...]] = ContextVar("holdfast_scopes", default=())


@contextmanager
def enter_scope(model: PreTrainedModel, block: Steered | None) -> Iterator[None]:
    """Makes a model's passes in this context belong to a block; with None, they are unsteered."""
    scope = Scope(ref(model), block)
    _SCOPES.set((*_SCOPES.get(), scope))
    try:
        yield
    finally:  # removed by value, not by token: a generator may be closed in another context
        _SCOPES.set(tuple(other for other in _SCOPES.get() if other is not scope))


def current_scope(model: ref[PreTrainedModel], block: Steered | None) -> Scope | None:
    """Returns the innermost scope in this context for a model with this open block; None if none.

    Scopes of `unsteered` count too.
    """
    for scope in reversed(_SCOPES.get()):
        if scope.model == model and scope.block in (None, block):
            return scope
    return None
