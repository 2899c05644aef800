"""The handle of a block of `holdfast.steering`, and the code whose passes belong to it."""

from __future__ import annotations

import functools
import itertools
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
    passes: list[TracedPass] = field(default_factory=list)  # so far; empty unless traced
    count: int = 0  # number of passes steered so far
    used: bool = False  # whether any pass belonged to it, including refused ones
    running: int = 0  # number of its passes that are running
    is_open: bool = True  # False after the block was left

    def __repr__(self) -> str:
        rows = count_of(len(self.steering.span), "row")
        passes = count_of(self.count, "pass")
        return f"<Steered {self.name}: {self.spec}, {rows}, {passes}>"

    @property
    def traces(self) -> list[AttentionTrace]:
        """The mass on the span in each row of the batch, one step per forward pass so far.

        In a pass of several tokens, it is the mass at the row's last token that is not padding.
        The list is empty unless the block was opened with `trace`.

        Raises:
            UsageError: passes of several threads are interleaved, or batches differ in size.
        """
        passes = list(self.passes)
        if not passes:
            return []
        threads = [traced.thread for traced in passes]
        turns = 1 + sum(before != other for before, other in itertools.pairwise(threads))
        if turns > len(set(threads)):
            raise UsageError(
                f"{len(set(threads))} threads took turns running passes in this block, so its "
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
            with entered(model, self):
                return function(*args, **kwargs)

        return bound


@dataclass(frozen=True, eq=False)
class Scope:
    """A context in which a model's passes belong to a block, or, in `unsteered`, to none."""

    model: ref[PreTrainedModel]
    block: Steered | None  # None in `unsteered`


_SCOPES: ContextVar[tuple[Scope, ...]] = ContextVar("holdfast_scopes", default=())


@contextmanager
def entered(model: PreTrainedModel, block: Steered | None) -> Iterator[None]:
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
