"""An open block of `holdfast.steering`, and the model's forward passes that belong to it.

A model has at most one open block, and `forward` is wrapped while it has one. A pass belongs to the
block if it runs in a context that entered the block, in a copy of such a context (an asyncio task,
`asyncio.to_thread`), or in a function that the handle binds. Any other pass is refused, unless it
runs in `holdfast.unsteered(model)`, which leaves it plain.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor
from transformers import PreTrainedModel

from holdfast.attention.batch_steering import AttentionTrace, BatchSteering
from holdfast.attention.cache_origins import CacheOrigin, cache_of, claim_cache, mark_cache
from holdfast.attention.pass_refusals import (
    check_lengths,
    check_padding,
    check_pass,
    refuse_checkpointing,
)
from holdfast.attention.passes import PASS, ModelParts, Pass, PassState
from holdfast.attention.plain_attention import PriorAttention
from holdfast.attention.reaching import check_reached
from holdfast.attention.rotary import RotaryLengths
from holdfast.errors import UsageError
from holdfast.states.edits import EditGroup, edits_of_pass
from holdfast.states.hooks import edited

P = ParamSpec("P")
R = TypeVar("R")
LOCK = threading.RLock()


@dataclass(frozen=True, eq=False)
class TracedPass:
    """A traced forward pass."""

    thread: int  # the identifier of the thread that ran it
    masses: Sequence[Tensor]  # on the span, at each row's last query, [row, head] of every layer


@dataclass(eq=False, repr=False)
class Steered:
    """The handle of an open block."""

    model: ref[PreTrainedModel]  # the model that it steers
    name: str  # the name of the model's class
    steering: BatchSteering  # of the model's attention
    # of the caches filled in the block, with all its methods; None after it was left
    origin: CacheOrigin | None
    spec: str  # the methods as a spec string
    passes: list[TracedPass] = field(default_factory=list)  # so far, if they are traced
    count: int = 0  # passes steered so far
    used: bool = False  # whether any pass belonged to it, including refused ones
    running: int = 0  # its passes that are under way
    is_open: bool = True  # whether it has not been left yet

    def __repr__(self) -> str:
        rows = len(self.steering.span)
        plural = "s"[: rows != 1]
        return f"<Steered {self.name}: {self.spec}, {rows} row{plural}, {self.count} passes>"

    @property
    def traces(self) -> list[AttentionTrace]:
        """The mass on the span in each row of the batch, one step per forward pass so far.

        In a pass of several tokens, it is the mass at the row's last token that is not padding.
        Empty without `trace`.

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
                f"{len(set(threads))} threads ran passes in this block by turns, so its traces are "
                "mixed; trace one thread at a time."
            )
        sizes = sorted({traced.masses[0].shape[0] for traced in passes})
        if len(sizes) > 1:
            raise UsageError(
                f"The passes of this block had batches of {' and '.join(map(str, sizes))} rows; "
                "open a block for each to trace it."
            )
        # [row, layer, head] of each pass
        steps = [torch.stack(list(traced.masses), 1).cpu() for traced in passes]
        return [AttentionTrace(mass) for mass in torch.stack(steps, -1)]

    def bind(self, function: Callable[P, R]) -> Callable[P, R]:
        """The function, bound so that passes it runs belong to this block, in any thread.

            Thread(target=steered.bind(model.generate), kwargs=arguments).start()

        Calling it raises a `UsageError` after the block was left.
        """

        @functools.wraps(function)
        def bound(*args: P.args, **kwargs: P.kwargs) -> R:
            model = self.model()
            if model is None or not self.is_open:
                raise UsageError(
                    f"The block of {self.name} that this function is bound to was left; call it, "
                    "and join its thread, inside the block."
                )
            with entered(model, self):
                return function(*args, **kwargs)

        return bound


@dataclass(frozen=True, eq=False)
class _Scope:
    """Code whose passes of a model belong to a block, or to none in `unsteered`."""

    model: ref[PreTrainedModel]
    block: Steered | None


_SCOPES: ContextVar[tuple[_Scope, ...]] = ContextVar("holdfast_scopes", default=())


@dataclass(frozen=True, eq=False)
class _BlockPass:
    """A pass of a model with an open block."""

    current: Pass
    block: Steered | None  # that steers it; None in `unsteered`
    first: bool | None  # whether it is the first of a `generate`; None outside of one

    @property
    def state(self) -> PassState | None:
        """How far it has got under the block's steering."""
        return self.current.state


# The pass whose inputs `generate` has prepared.
_PREPARED: ContextVar[_BlockPass | None] = ContextVar("holdfast_prepared", default=None)


@contextmanager
def entered(model: PreTrainedModel, block: Steered | None) -> Iterator[None]:
    """Makes the passes of a model inside belong to a block; with None, they are not steered."""
    scope = _Scope(ref(model), block)
    _SCOPES.set((*_SCOPES.get(), scope))
    try:
        yield
    finally:  # removed by value, not by token: a generator may be closed in another context
        _SCOPES.set(tuple(other for other in _SCOPES.get() if other is not scope))


@dataclass(eq=False)
class OpenModel:
    """A model with an open block, or with a pass under way of a block that was left."""

    model: ref[PreTrainedModel]
    name: str
    parts: ModelParts
    before: Sequence[PriorAttention]  # of its configurations
    implementation: str | None = None  # of attention, after the switch
    restore: Callable[[], None] = lambda: None  # restores the model
    block: Steered | None = None  # the open one
    running: int = 0  # steered passes under way, of this block or of one that was left

    def current_block(self) -> Steered | None:
        """The block that passes in this context belong to; None in `holdfast.unsteered`."""
        if (opened := self.block) is None:
            return None
        if (scope := self._current_scope()) is not None:
            return scope.block
        raise UsageError(
            f"A block of holdfast.steering ({opened.spec}) is open on this {self.name}, and this "
            "thread or task did not enter it; bind the function that runs the model, as in "
            "Thread(target=steered.bind(model.generate)), or run it in holdfast.unsteered(model)."
        )

    def prepare(self, plain: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Runs `prepare_inputs_for_generation`, which makes the masks of static caches."""
        begun = self._new_pass(first=bool(kwargs.get("is_first_iteration")))
        if begun.first and begun.state is not None:
            check_padding(begun.state, kwargs.get("attention_mask"))
        token = PASS.set(begun.current)
        try:
            inputs = plain(*args, **kwargs)
        finally:
            PASS.reset(token)
        _PREPARED.set(begun)
        return inputs

    def forward(
        self, plain: Callable[..., Any], names: list[str], args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Runs `forward` as a pass of the block that this context is in; refuses a pass that is in
        none, or does not fit the block.
        """
        if self._is_of_decode_loop():
            return plain(*args, **kwargs)
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        begun, model, cache = self._next_pass(), self._running_model(), cache_of(given)
        edits = self._checked(begun, given, model)
        token = PASS.set(begun.current)
        self._count(begun.block, 1)
        try:
            with edited(model, edits):
                output = plain(*args, **kwargs)
                filled = cache_of(output)
                self._finish(begun, cache if filled is None else filled)
        finally:
            PASS.reset(token)
            self._count(begun.block, -1)
        return output

    def _checked(
        self, begun: _BlockPass, given: Mapping[str, Any], model: PreTrainedModel
    ) -> list[EditGroup]:
        """Checks that a pass fits the block; returns its edits."""
        origin, state = None if begun.block is None else begun.block.origin, begun.state
        continues = claim_cache(cache_of(given), origin, self.name)
        if origin is None or state is None:
            return []
        config = model.config.get_text_config()
        before = check_pass(state, given, config, continues=continues, first=begun.first)
        if state.steering.trace:
            state.last = _last_queries(given)
        check_lengths(RotaryLengths.of(config), given, self.name)
        refuse_checkpointing(model)
        return edits_of_pass(origin.compiled, origin.span, given, before)

    def _finish(self, begun: _BlockPass, cache: Any) -> None:
        """Checks and records a pass that ended without an error."""
        block, state = begun.block, begun.state
        if block is None or state is None:
            return
        check_reached(self._running_model(), state, self.implementation)
        mark_cache(cache, block.origin)
        block.count += 1
        thread = threading.get_ident()
        block.passes += [
            TracedPass(thread, list(made.steered.values())) for made in state.passes if made.steered
        ]

    def _running_model(self) -> PreTrainedModel:
        model = self.model()
        assert model is not None, "a pass of it is under way"
        return model

    def _new_pass(self, first: bool | None = None) -> _BlockPass:
        block = self.current_block()
        state = None if block is None else PassState(block.steering)
        return _BlockPass(Pass(state, self.parts), block, first)

    def _next_pass(self) -> _BlockPass:
        """The pass that begins: the one that `generate` has prepared, or a new one."""
        prepared, block = _PREPARED.get(), self.current_block()
        _PREPARED.set(None)
        if block is not None:
            block.used = True
        if prepared is None or prepared.block is not block:
            return self._new_pass()
        return prepared if prepared.current.model is self.parts else self._new_pass()

    def _current_scope(self) -> _Scope | None:
        """The innermost scope of this model in this context."""
        for scope in reversed(_SCOPES.get()):
            if scope.model == self.model and scope.block in (None, self.block):
                return scope
        return None

    def _is_of_decode_loop(self) -> bool:
        """Whether this package's decode loop runs the pass; a `UsageError` in a block."""
        if (current := PASS.get()) is None or current.model is not None:
            return False
        scope = self._current_scope()
        if scope is not None and scope.block is not None:
            scope.block.used = True
            raise UsageError(
                f"A block of holdfast.steering is open on this {self.name}, and generate and score "
                "of a holdfast model take their methods by the call; give them methods=[...] "
                "outside the block, or call hf_model.generate inside it."
            )
        return True

    def _count(self, block: Steered | None, change: int) -> None:
        if block is None:
            return
        with LOCK:
            block.running += change
            self.running += change
            self.restore_if_unused(block)

    def restore_if_unused(self, block: Steered) -> None:
        """Restores the model once the block was left and its last pass has ended."""
        if not block.is_open and not block.running:
            block.origin = None  # from now on, only its caches refer to it
        if self.block is None and not self.running:
            self.restore()


def _last_queries(given: Mapping[str, Any]) -> Tensor | None:
    """The last query of each row that is not padding, int64 [row]; None if all rows end together.

    In a step of one token, no row is padded behind it.
    """
    ids = given.get("input_ids")
    ids = given.get("inputs_embeds") if ids is None else ids
    mask = given.get("attention_mask")
    if not isinstance(ids, Tensor) or not isinstance(mask, Tensor) or mask.ndim != 2:
        return None
    queries = ids.shape[1] if ids.ndim > 1 else 1
    if queries == 1 or mask.shape[1] < queries:
        return None
    mask = mask[:, -queries:]
    if bool(mask[:, -1].all()):
        return None
    return queries - 1 - (mask != 0).flip(1).long().argmax(1)


OPEN: WeakKeyDictionary[torch.nn.Module, OpenModel] = WeakKeyDictionary()


def pass_in(module: torch.nn.Module) -> Pass | None:
    """The pass that a module is part of; None for a module of another model."""
    current = PASS.get()
    if current is not None and (current.model is None or module in current.model.modules):
        return current
    for opened in list(OPEN.values()) if OPEN else ():
        if module in opened.parts.modules and opened.current_block() is not None:
            raise UsageError(
                f"{type(module).__name__} of a {opened.name} with an open block of "
                f"holdfast.steering was run by itself; call the {opened.name} itself in the block, "
                "or run its parts in holdfast.unsteered(model)."
            )
    return None
