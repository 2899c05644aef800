"""Which block of `holdfast.steering` a forward pass belongs to.

A block belongs to one model. While any is open on it, each of its passes asks here as it begins, in
whatever thread it runs; docs/steering.md has the rule case by case:

    1. the innermost block in whose code the pass runs, or that its function is bound to;
    2. a block that this thread entered and whose code has returned, as with an ExitStack;
    3. for a pass that goes on behind cached keys: the block that they were computed in, or none;
    4. a block that this context was copied in, as `asyncio.to_thread` does;
    5. the one block that is open; two are refused.

The code of a generator or a coroutine does not run between its steps, so then its block is not that
of its caller's passes.
"""

from __future__ import annotations

import inspect
import itertools
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from holdfast.attention.checks import (
    cached_tokens,
    can_be_noted,
    check_pass,
    refuse_attention_weights,
    refuse_checkpointing,
)
from holdfast.attention.steering import PASS, Pass, Steering
from holdfast.errors import UsageError

LOCK = threading.RLock()
_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_NUMBERS = itertools.count(1)
# Numbers of blocks entered in this context.
_INHERITED: ContextVar[tuple[int, ...]] = ContextVar("holdfast_blocks", default=())
_OPEN: set[int] = set()


@dataclass(eq=False)
class Block:
    """One `with holdfast.steering(...)`.

    Args:
        steering: what it does; None leaves the passes in it as they are.
        frame: the code that entered it.
        thread: the one in which that code last ran.
        passes: of each pass that it steered, the thread and the mass of every layer.
        steered: how many passes that were.
        reached: whether any pass was its own, if only to be refused.
    """

    steering: Steering | None
    frame: FrameType
    thread: int = field(default_factory=threading.get_ident)
    number: int = field(default_factory=lambda: next(_NUMBERS))
    passes: list[tuple[int, list[Tensor]]] = field(default_factory=list)
    steered: int = 0
    reached: bool = False
    abandoned: bool = False  # whether another thread was in a pass of it when it was left
    tokens: dict[int, int] = field(default_factory=dict)  # by thread, of its latest pass

    @property
    def suspends(self) -> bool:
        """Whether its code runs in steps, between which others run in the same thread."""
        return bool(self.frame.f_code.co_flags & _SUSPENDS)


@dataclass
class _Entry:
    """A pass of a module under way.

    Args:
        module: the model, or the model inside it.
        frame: the code that calls it.
        inner: whether it is part of a pass of the outer model.
        block: that steers it; None for a plain one.
        steering: what it does.
        token: undoes its beginning.
    """

    module: torch.nn.Module
    frame: FrameType
    inner: bool = False
    block: Block | None = None
    steering: Steering | None = None
    token: Token[Pass | None] | None = None


@dataclass(eq=False)
class OpenModel:
    """A model with blocks open on it.

    Args:
        name: of its class.
        outer: its `id`.
        plain: by `id` of each configuration, the attention implementation that it had.
        modules: `id`s of the modules, which tell its attention from another model's.
        cross: the same of its cross-attention, whose keys are an encoder's and not the prompt's.
        blocks: that are open, in the order in which they were entered.
        config: of its text model.
        running: the passes under way, by thread.
        computed: by cache, the number of the block that filled it.
    """

    name: str
    outer: int
    plain: dict[int, str | None] = field(default_factory=dict)
    modules: frozenset[int] = frozenset()
    cross: frozenset[int] = frozenset()
    blocks: list[Block] = field(default_factory=list)
    config: Any = None
    running: dict[int, list[_Entry]] = field(default_factory=dict)
    computed: WeakKeyDictionary[Any, int] = field(default_factory=WeakKeyDictionary)
    left: Callable[[], None] = lambda: None  # called where a compiled pass has ended
    _bound: dict[FrameType, Block] = field(default_factory=dict)
    _anchors: dict[FrameType, Block] = field(default_factory=dict)

    def open(self, block: Block) -> None:
        """Adds a block."""
        with LOCK:
            self.blocks.append(block)
            self._anchor()
            _OPEN.add(block.number)
        _INHERITED.set((*(number for number in _INHERITED.get() if number in _OPEN), block.number))

    def close(self, block: Block) -> bool:
        """Takes a block away; returns whether another thread is in a pass of it."""
        with LOCK:
            self.blocks.remove(block)
            _OPEN.discard(block.number)
            bound = self._bound.items()
            self._bound = {frame: owner for frame, owner in bound if owner is not block}
            self._anchor()
            here, alive = threading.get_ident(), sys._current_frames()
            for thread in [thread for thread in self.running if thread not in alive]:
                del self.running[thread]
            if not self._under_way():
                del self.running[here]
            others = [self.running[thread] for thread in self.running if thread != here]
        open_numbers = (number for number in _INHERITED.get() if number != block.number)
        _INHERITED.set(tuple(open_numbers))
        return any(entry.block is block for entries in others for entry in entries)

    @contextmanager
    def bound(self, block: Block, frame: FrameType) -> Iterator[None]:
        """Has the passes of this call of a function belong to a block.

        Raises:
            UsageError: the block was left.
        """
        with LOCK:
            if block not in self.blocks:
                raise UsageError(
                    f"The block of {self.name} that this function is bound to was left; call it, "
                    "and join its thread, inside the block."
                )
            self._bound[frame] = block
            self._anchor()
        try:
            yield
        finally:
            with LOCK:
                self._bound.pop(frame, None)
                self._anchor()

    def _under_way(self) -> list[_Entry]:
        """The passes of this thread, without those that an interrupt ended."""
        entries = self.running.setdefault(threading.get_ident(), [])
        if not entries:
            return entries
        frames: set[FrameType] = set()
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            frames.add(frame)
            frame = frame.f_back
        if ended := [entry for entry in entries if entry.frame not in frames]:
            entries[:] = [entry for entry in entries if entry not in ended]
            if not entries and (current := PASS.get()) is not None and current.model is self:
                PASS.set(None)
        return entries

    def _anchor(self) -> None:
        self._anchors = {block.frame: block for block in self.blocks} | self._bound

    def belongs(self, module: torch.nn.Module) -> bool:
        """Whether a module is this model's; a copy for another device shares the configuration."""
        return id(module) in self.modules or id(getattr(module, "config", None)) in self.plain

    # Which block

    def innermost(self) -> Block | None:
        """The block in whose code, or in whose thread, this runs."""
        here, anchors = threading.get_ident(), self._anchors
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if (block := anchors.get(frame)) is not None:
                block.thread = here
                return block
            frame = frame.f_back
        mine = [block for block in self.blocks if block.thread == here and not block.suspends]
        return mine[-1] if mine else None

    def block_of(self, cache: object = None) -> Block | None:
        """The block of a pass that begins here and now; None for a plain one.

        Raises:
            UsageError: there are two that it may belong to, or that of its generation was left.
        """
        if not self.blocks:
            return None
        if (block := self.innermost()) is not None:
            return block
        if cache is not None and cached_tokens(cache):
            return self._block_computing(cache)
        here, inherited = threading.get_ident(), _INHERITED.get()
        others = [block for block in self.blocks if not (block.suspends and block.thread == here)]
        if copied := [block for block in others if block.number in inherited]:
            return copied[-1]
        steering = [block for block in others if block.steering is not None]
        if len(steering) > 1:
            raise UsageError(
                f"{len(steering)} blocks of holdfast.steering are open on this {self.name}, and "
                "this "
                "pass comes from none of them; bind the function to its block, as in "
                "Thread(target=steered.bind(model.generate)), or run it in "
                "holdfast.unsteered(model)."
            )
        return steering[0] if steering else None

    def _block_computing(self, cache: object) -> Block | None:
        number = self.computed.get(cache) if can_be_noted(cache) else None
        if number is None:
            return None
        block = next((block for block in self.blocks if block.number == number), None)
        if block is None:
            raise UsageError(
                f"The block of {self.name} that this generation began in was left; join its "
                "thread inside the block."
            )
        return block

    # A pass

    def begin(
        self,
        module: torch.nn.Module,
        given: Mapping[str, Any],
        frame: FrameType,
        ahead: Ahead | None,
    ) -> None:
        """A pass of the model, or of the model inside it, begins in this thread.

        Args:
            module: the model, or the model inside it.
            given: its arguments by name.
            frame: the code that calls it.
            ahead: masks that were made for it.

        Raises:
            UsageError: it cannot be told whose it is, or it does not fit its block.
            ModelError: it does what steering would leave out.
        """
        if (entry := self._enter(module, frame)) is None:
            return
        block, steering = self.block_of(given.get("past_key_values")), None
        if block is not None and block.steering is not None:
            block.reached = True
            steering = block.steering.for_a_pass()
            for place in ahead.places if ahead else ():
                steering.place(*place)
            check_pass(self, block, steering, given)
            refuse_checkpointing(self.name, module)
            entry.block, entry.steering = block, steering
        entry.token = PASS.set(Pass(steering, self, steering is not None or ahead is not None))

    def begin_compiled(
        self, module: torch.nn.Module, given: Mapping[str, Any], frame: FrameType
    ) -> None:
        """`begin` for a compiled pass, which does not say what its cache holds.

        Raises:
            UsageError: as `begin`; also a pass of a thread that is not bound to a block, and a step
                behind keys that were not cached in the block.
        """
        ahead, WAITING.ahead = WAITING.ahead, None
        if (entry := self._enter(module, frame)) is None:
            return
        block, steering = self._block_of_compiled(), None
        if block is not None and block.steering is not None:
            block.reached = True
            steering = block.steering.for_a_pass()
            if ahead is not None and ahead.model is self:
                for place in ahead.places:
                    steering.place(*place)
            ids = given["input_ids"]
            if ids.shape[1] > 1 or steering.span.shape[1] == 1:
                check_pass(self, block, steering, given)
            elif not block.steered:
                raise UsageError(
                    f"A compiled step of {self.name} goes on behind keys that were cached before "
                    "the block of holdfast.steering; forward the prompt inside it."
                )
            else:
                refuse_attention_weights(given)
            entry.block, entry.steering = block, steering
        entry.token = PASS.set(Pass(steering, self))

    def _enter(self, module: torch.nn.Module, frame: FrameType) -> _Entry | None:
        """Notes a pass that begins; None for the inner part of one, and for a decode loop's."""
        with LOCK:
            entries = self._under_way()
            caller = id(entries[-1].module) if entries else None
            inner = caller == self.outer != id(module)
            entry = _Entry(module, frame, inner)
            entries.append(entry)
        if inner:
            return None
        if (current := PASS.get()) is not None and current.model is None:
            self._refuse_decode_loop()
            return None
        return entry

    def _block_of_compiled(self) -> Block | None:
        """The block of a compiled pass that begins here and now; None for a plain one."""
        if not self.blocks:
            return None
        if (block := self.innermost()) is not None:
            return block
        here, inherited = threading.get_ident(), _INHERITED.get()
        others = [block for block in self.blocks if not (block.suspends and block.thread == here)]
        if copied := [block for block in others if block.number in inherited]:
            return copied[-1]
        if any(block.steering is not None for block in others):
            raise UsageError(
                f"A compiled pass of {self.name} in this thread comes from no block of "
                "holdfast.steering, and one is open on it; bind the function to its block, as in "
                "Thread(target=steered.bind(model.generate)), or run it in "
                "holdfast.unsteered(model)."
            )
        return None

    def _refuse_decode_loop(self) -> None:
        """This package's decode loop says itself what to steer; no block of its caller may."""
        if (block := self.innermost()) is not None and block.steering is not None:
            block.reached = True
            raise UsageError(
                f"A block of holdfast.steering is open on this {self.name}, and generate and score "
                "of a "
                "holdfast model take their methods by the call; give them methods=[...] outside "
                "the "
                "block, or call hf_model.generate inside it."
            )

    def end(self, output: object, cache: object) -> None:
        """The pass that began last in this thread ends; `output` is None where it failed."""
        here = threading.get_ident()
        with LOCK:
            entries = self.running.get(here)
            if not entries:
                return  # it began before the first block
            entry = entries.pop()
            if not entries:
                del self.running[here]
            if entry.inner:
                return
            if entry.token is not None:
                PASS.reset(entry.token)
            cache = getattr(output, "past_key_values", None) if cache is None else cache
            if cache is not None and can_be_noted(cache):
                if entry.block is not None:
                    self.computed[cache] = entry.block.number
                else:
                    self.computed.pop(cache, None)
            if entry.block is not None and entry.steering is not None and output is not None:
                entry.block.steered += 1
                entry.block.passes += [(here, layers) for layers in entry.steering.passes if layers]


@dataclass
class Ahead:
    """Masks that `generate` made for a pass to come.

    Args:
        model: whose pass it will be.
        places: what `Steering.place` is told.
    """

    model: OpenModel
    places: list[tuple[int | Tensor, int, int, int]] = field(default_factory=list)


class _Waiting(threading.local):
    ahead: Ahead | None = None


WAITING = _Waiting()


def frame_of_entry() -> FrameType:
    """The code that enters the caller's block, beyond contextlib and context managers in it."""
    frame = sys._getframe(1)
    while (caller := frame.f_back) is not None:
        driven = _is_contextlib(caller) and frame.f_code.co_flags & inspect.CO_GENERATOR
        if not (driven or _is_contextlib(frame)):
            break
        frame = caller
    return frame


def _is_contextlib(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") == "contextlib"
