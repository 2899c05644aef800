"""A model with open blocks, and its forward passes under way.

Each pass of the model, and of the model inside it, tells here as it begins and ends; the block that
it belongs to (`blocks`) says what steers it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from contextvars import Token
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from holdfast.attention.block_states import edits_of_pass, refuse_compiled
from holdfast.attention.blocks import LOCK, Block, Blocks
from holdfast.attention.checks import refuse_attention_weights, refuse_checkpointing
from holdfast.attention.pass_checks import check_pass
from holdfast.attention.steering import PASS, Pass, Steering
from holdfast.errors import UsageError
from holdfast.states.hooks import Attached, attach


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
        attached: hooks that edit it.
    """

    module: torch.nn.Module
    frame: FrameType
    inner: bool = False
    block: Block | None = None
    steering: Steering | None = None
    token: Token[Pass | None] | None = None
    attached: Attached | None = None


@dataclass(eq=False)
class OpenModel:
    """A model with blocks open on it.

    Args:
        name: of its class.
        outer: its `id`.
        plain: by `id` of each configuration, the attention implementation that it had.
        modules: `id`s of the modules, which tell its attention from another model's.
        cross: the same of its cross-attention, whose keys are an encoder's and not the prompt's.
        config: of its text model.
        blocks: that are open.
        running: the passes under way, by thread.
    """

    name: str
    outer: int
    plain: dict[int, str | None] = field(default_factory=dict)
    modules: frozenset[int] = frozenset()
    cross: frozenset[int] = frozenset()
    config: Any = None
    blocks: Blocks = field(init=False)
    running: dict[int, list[_Entry]] = field(default_factory=dict)
    left: Callable[[], None] = lambda: None  # called where a compiled pass has ended

    def __post_init__(self) -> None:
        self.blocks = Blocks(self.name)

    def close(self, block: Block) -> bool:
        """Closes a block; returns whether another thread is in a pass of it."""
        with LOCK:
            self.blocks.remove(block)
            here, alive = threading.get_ident(), sys._current_frames()
            for thread in [thread for thread in self.running if thread not in alive]:
                del self.running[thread]
            if not self._under_way():
                del self.running[here]
            others = [self.running[thread] for thread in self.running if thread != here]
        return any(entry.block is block for entries in others for entry in entries)

    def belongs(self, module: torch.nn.Module) -> bool:
        """Whether a module is this model's; a copy for another device shares the configuration."""
        return id(module) in self.modules or id(getattr(module, "config", None)) in self.plain

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
            for entry in ended:
                if entry.attached is not None:
                    entry.attached.detach()
            if not entries and (current := PASS.get()) is not None and current.model is self:
                PASS.set(None)
        return entries

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
        block, steering = self.blocks.block_of(given.get("past_key_values")), None
        if block is not None and block.steering is not None:
            block.reached = True
            steering = block.steering.for_a_pass()
            for place in ahead.places if ahead else ():
                steering.place(*place)
            before = check_pass(self.blocks, self.config, block, steering, given)
            refuse_checkpointing(self.name, module)
            if block.states is not None and (edits := edits_of_pass(block.states, given, before)):
                entry.attached = attach(block.states.sites, edits)
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
        block, steering = self.blocks.block_of_compiled(), None
        if block is not None and block.steering is not None:
            block.reached = True
            if block.states is not None:
                refuse_compiled(self.name)
            steering = block.steering.for_a_pass()
            if ahead is not None and ahead.model is self:
                for place in ahead.places:
                    steering.place(*place)
            ids = given["input_ids"]
            if ids.shape[1] > 1 or steering.span.shape[1] == 1:
                check_pass(self.blocks, self.config, block, steering, given)
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

    def _refuse_decode_loop(self) -> None:
        """This package's decode loop says itself what to steer; no block of its caller may."""
        if (block := self.blocks.innermost()) is not None and block.steering is not None:
            block.reached = True
            raise UsageError(
                f"A block of holdfast.steering is open on this {self.name}, and generate and score "
                "of a holdfast model take their methods by the call; give them methods=[...] "
                "outside the block, or call hf_model.generate inside it."
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
            if entry.attached is not None:
                entry.attached.remove()
            if entry.token is not None:
                PASS.reset(entry.token)
            cache = getattr(output, "past_key_values", None) if cache is None else cache
            self.blocks.note(cache, entry.block)
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
