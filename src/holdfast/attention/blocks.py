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
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor

from holdfast.attention.block_states import BlockStates
from holdfast.attention.checks import cached_tokens, can_be_noted
from holdfast.attention.steering import Steering
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
        states: what it edits besides attention; None for nothing.
        thread: the one in which that code last ran.
        passes: of each pass that it steered, the thread and the mass of every layer.
        steered: how many passes that were.
        reached: whether any pass was its own, if only to be refused.
    """

    steering: Steering | None
    frame: FrameType
    states: BlockStates | None = None
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


@dataclass(eq=False)
class Blocks:
    """The blocks that are open on one model.

    Args:
        name: of the model's class.
        opened: the blocks, in the order in which they were entered.
        computed: by cache, the number of the block that filled it.
    """

    name: str
    opened: list[Block] = field(default_factory=list)
    computed: WeakKeyDictionary[Any, int] = field(default_factory=WeakKeyDictionary)
    _bound: dict[FrameType, Block] = field(default_factory=dict)
    _anchors: dict[FrameType, Block] = field(default_factory=dict)

    def add(self, block: Block) -> None:
        """Opens a block."""
        with LOCK:
            self.opened.append(block)
            self._anchor()
            _OPEN.add(block.number)
        _INHERITED.set((*(number for number in _INHERITED.get() if number in _OPEN), block.number))

    def remove(self, block: Block) -> None:
        """Closes a block."""
        with LOCK:
            self.opened.remove(block)
            _OPEN.discard(block.number)
            bound = self._bound.items()
            self._bound = {frame: owner for frame, owner in bound if owner is not block}
            self._anchor()
        open_numbers = (number for number in _INHERITED.get() if number != block.number)
        _INHERITED.set(tuple(open_numbers))

    @contextmanager
    def bound(self, block: Block, frame: FrameType) -> Iterator[None]:
        """Has the passes of this call of a function belong to a block.

        Raises:
            UsageError: the block was left.
        """
        with LOCK:
            if block not in self.opened:
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

    def note(self, cache: object, block: Block | None) -> None:
        """Remembers the block that a pass filled its cache in; None for a plain pass."""
        if cache is None or not can_be_noted(cache):
            return
        if block is not None:
            self.computed[cache] = block.number
        else:
            self.computed.pop(cache, None)

    def innermost(self) -> Block | None:
        """The block in whose code, or in whose thread, this runs."""
        if not self.opened:
            return None
        here, anchors = threading.get_ident(), self._anchors
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if (block := anchors.get(frame)) is not None:
                block.thread = here
                return block
            frame = frame.f_back
        mine = [block for block in self.opened if block.thread == here and not block.suspends]
        return mine[-1] if mine else None

    def block_of(self, cache: object = None) -> Block | None:
        """The block of a pass that begins here and now; None for a plain one.

        Raises:
            UsageError: there are two that it may belong to, or that of its generation was left.
        """
        if (block := self.innermost()) is not None:
            return block
        if self.opened and cache is not None and cached_tokens(cache):
            return self._block_computing(cache)
        if (copied := self._copied()) is not None:
            return copied
        steering = self._steering_elsewhere()
        if len(steering) > 1:
            raise UsageError(
                f"{len(steering)} blocks of holdfast.steering are open on this {self.name}, and "
                f"this pass comes from none of them; {_BIND}."
            )
        return steering[0] if steering else None

    def block_of_compiled(self) -> Block | None:
        """The same for a compiled pass, which does not say what its cache holds.

        Raises:
            UsageError: it comes from none of the blocks, and one of them steers.
        """
        block = self.innermost() or self._copied()
        if block is None and self._steering_elsewhere():
            raise UsageError(
                f"A compiled pass of {self.name} in this thread comes from no block of "
                f"holdfast.steering, and one is open on it; {_BIND}."
            )
        return block

    def _others(self) -> list[Block]:
        """The blocks that a pass in none's code may belong to."""
        here = threading.get_ident()
        return [block for block in self.opened if not (block.suspends and block.thread == here)]

    def _copied(self) -> Block | None:
        """The last block that this context was copied in."""
        inherited = _INHERITED.get()
        copied = [block for block in self._others() if block.number in inherited]
        return copied[-1] if copied else None

    def _steering_elsewhere(self) -> list[Block]:
        return [block for block in self._others() if block.steering is not None]

    def _block_computing(self, cache: object) -> Block | None:
        number = self.computed.get(cache) if can_be_noted(cache) else None
        if number is None:
            return None
        block = next((block for block in self.opened if block.number == number), None)
        if block is None:
            raise UsageError(
                f"The block of {self.name} that this generation began in was left; join its "
                "thread inside the block."
            )
        return block

    def _anchor(self) -> None:
        self._anchors = {block.frame: block for block in self.opened} | self._bound


_BIND = (
    "bind the function to its block, as in Thread(target=steered.bind(model.generate)), or run it"
    " in holdfast.unsteered(model)"
)


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
