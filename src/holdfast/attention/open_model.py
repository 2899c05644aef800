"""A model with an open block of `holdfast.steering`, and the passes that belong to the block.

A model has at most one open block; its `forward` is wrapped while the block is open. A pass belongs
to the block if it runs in a context that entered the block, in a copy of such a context (an asyncio
task, `asyncio.to_thread`), or in a function that the handle binds. Any other pass is refused,
unless it runs in `holdfast.unsteered(model)`, where it is not steered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor
from transformers import PreTrainedModel

from holdfast.attention.cache_origins import (
    cache_of,
    cached_tokens,
    claim_cache,
    is_filled_under,
    mark_cache,
)
from holdfast.attention.pass_refusals import (
    refuse_checkpointing,
    refuse_mixed_lengths,
    refuse_other_prompt,
    refuse_padded_span,
    refuse_weight_output,
)
from holdfast.attention.passes import PASS, ModelParts, Pass, PassState
from holdfast.attention.plain_attention import PriorAttention
from holdfast.attention.reaching import check_reached
from holdfast.attention.rotary import RotaryLengths
from holdfast.attention.steered_block import Steered, current_scope
from holdfast.errors import UsageError
from holdfast.states.edits import EditGroup, edits_in_block, tokens_in
from holdfast.states.hooks import edit_states

LOCK = threading.RLock()


@dataclass(frozen=True, eq=False)
class _BlockPass:
    """A pass of a model with an open block."""

    current: Pass
    block: Steered | None  # the block that steers it; None in `unsteered`
    is_first: bool | None  # whether it is the first one of a `generate`; None outside of that

    @property
    def state(self) -> PassState | None:
        """The state of the steered pass; None if it is not steered."""
        return self.current.state


# the pass whose inputs `generate` has prepared
_PREPARED: ContextVar[_BlockPass | None] = ContextVar("holdfast_prepared", default=None)


@dataclass(eq=False)
class OpenModel:
    """A model with an open block, or with a running pass of a block that was left."""

    model: ref[PreTrainedModel]
    name: str  # the name of its class
    parts: ModelParts
    before: Sequence[PriorAttention]  # the attention of its configurations before the block
    implementation: str | None = None  # name of its attention implementation after the switch
    restore: Callable[[], None] = lambda: None  # restores the model
    block: Steered | None = None  # the open block; None once it was left
    running: int = 0  # number of running steered passes, of this block or of earlier ones

    def current_block(self) -> Steered | None:
        """Returns the block to which passes in this context belong; None in `holdfast.unsteered`.

        Raises:
            UsageError: a block is open on the model, and this context did not enter it.
        """
        if (opened := self.block) is None:
            return None
        if (scope := current_scope(self.model, opened)) is not None:
            return scope.block
        raise UsageError(
            f"A block of holdfast.steering ({opened.spec}) is open on this {self.name}, and this "
            "thread or task did not enter it; bind the function that runs the model, as in "
            "Thread(target=steered.bind(model.generate)), or run it in holdfast.unsteered(model)."
        )

    def prepare(self, plain: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Runs `prepare_inputs_for_generation`, which makes the masks of static caches."""
        block_pass = self._new_pass(is_first=bool(kwargs.get("is_first_iteration")))
        if block_pass.is_first and block_pass.state is not None:
            refuse_padded_span(block_pass.state.steering, kwargs.get("attention_mask"))
        token = PASS.set(block_pass.current)
        try:
            inputs = plain(*args, **kwargs)
        finally:
            PASS.reset(token)
        _PREPARED.set(block_pass)
        return inputs

    def forward(
        self, plain: Callable[..., Any], names: list[str], args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Runs `forward` as a pass of the block that this context has entered.

        Args:
            plain: the model's own `forward`.
            names: the names of its parameters.
            args: its positional arguments.
            kwargs: its keyword arguments.

        Raises:
            UsageError: the context has entered no block, or the pass does not fit the block.
            Unsteerable: the pass cannot be steered.
        """
        if self._is_of_decode_loop():
            return plain(*args, **kwargs)
        arguments = {**dict(zip(names, args, strict=False)), **kwargs}
        block_pass = self._next_pass()
        model = self._running_model()
        cache = cache_of(arguments)
        edits = self._check_pass(block_pass, arguments, model)
        token = PASS.set(block_pass.current)
        self._begin_pass(block_pass.block)
        try:
            with edit_states(model, edits):
                output = plain(*args, **kwargs)
                filled = cache_of(output)
                self._record_pass(block_pass, cache if filled is None else filled)
        finally:
            PASS.reset(token)
            self._end_pass(block_pass.block)
        return output

    def _check_pass(
        self, block_pass: _BlockPass, arguments: Mapping[str, Any], model: PreTrainedModel
    ) -> list[EditGroup]:
        """Checks that a pass fits the block; returns the edits of its states."""
        origin = None if block_pass.block is None else block_pass.block.origin
        state = block_pass.state
        cache = cache_of(arguments)
        continues = is_filled_under(cache, origin)
        claim_cache(cache, origin, self.name)
        if origin is None or state is None:
            return []
        config = model.config.get_text_config()
        refuse_weight_output(arguments)
        columns_before = _columns_before(state, arguments, continues)
        if not (continues and columns_before):
            refuse_other_prompt(
                state.steering, arguments, config, columns_before, is_first=block_pass.is_first
            )
        if state.steering.trace:
            state.last_queries = _last_queries(arguments)
        refuse_mixed_lengths(RotaryLengths.of(config), arguments, self.name)
        refuse_checkpointing(model)
        return edits_in_block(origin.methods_by_row, origin.span, arguments, columns_before)

    def _record_pass(self, block_pass: _BlockPass, cache: Any) -> None:
        """Checks and records a pass that ended without an error."""
        block = block_pass.block
        state = block_pass.state
        if block is None or state is None:
            return
        check_reached(self._running_model(), state, self.implementation)
        mark_cache(cache, block.origin)
        block.record(state.passes)

    def _running_model(self) -> PreTrainedModel:
        model = self.model()
        assert model is not None, "it has a running pass"
        return model

    def _new_pass(self, is_first: bool | None = None) -> _BlockPass:
        block = self.current_block()
        state = None if block is None else PassState(block.steering)
        return _BlockPass(Pass(state, self.parts), block, is_first)

    def _next_pass(self) -> _BlockPass:
        """Returns the pass that `generate` has prepared, or a new one."""
        prepared = _PREPARED.get()
        block = self.current_block()
        _PREPARED.set(None)
        if block is not None:
            block.note_use()
        if prepared is None or prepared.block is not block:
            return self._new_pass()
        return prepared if prepared.current.model is self.parts else self._new_pass()

    def _is_of_decode_loop(self) -> bool:
        """Whether this package's decode loop runs the pass.

        Raises:
            UsageError: it does so inside a block.
        """
        if (current := PASS.get()) is None or current.model is not None:
            return False
        scope = current_scope(self.model, self.block)
        if scope is not None and scope.block is not None:
            scope.block.note_use()
            raise UsageError(
                f"A block of holdfast.steering is open on this {self.name}, but generate and score "
                "of a holdfast model take their methods as an argument; pass methods=[...] outside "
                "the block, or call hf_model.generate inside it."
            )
        return True

    def _begin_pass(self, block: Steered | None) -> None:
        if block is None:
            return
        with LOCK:
            block.begin_pass()
            self.running += 1

    def _end_pass(self, block: Steered | None) -> None:
        if block is None:
            return
        with LOCK:
            block.end_pass()
            self.running -= 1
            self.restore_if_unused()

    def restore_if_unused(self) -> None:
        """Restores the model once the block was left and its last pass has ended."""
        if self.block is None and not self.running:
            self.restore()


def _columns_before(state: PassState, arguments: Mapping[str, Any], continues: bool) -> int:
    """Returns the number of columns before a pass.

    Args:
        state: of the pass.
        arguments: of the pass, by name.
        continues: whether its cache was filled in this block.
    """
    if (ids := tokens_in(arguments)) is None:
        return 0
    if continues and ids.shape[1] == 1:  # a step; asking the cache might wait for the device
        return state.steering.span.shape[1]
    return cached_tokens(cache_of(arguments))


def _last_queries(arguments: Mapping[str, Any]) -> Tensor | None:
    """Finds the last query of each row that is not padding, int64 [row].

    Returns None if all rows end together, as they do in a step of one token.
    """
    ids = tokens_in(arguments)
    mask = arguments.get("attention_mask")
    if ids is None or not isinstance(mask, Tensor) or mask.ndim != 2:
        return None
    queries = ids.shape[1]
    if queries == 1 or mask.shape[1] < queries:
        return None
    mask = mask[:, -queries:]
    if bool(mask[:, -1].all()):
        return None
    return queries - 1 - (mask != 0).flip(1).long().argmax(1)


OPEN: WeakKeyDictionary[torch.nn.Module, OpenModel] = WeakKeyDictionary()


def pass_in(module: torch.nn.Module) -> Pass | None:
    """Returns the current pass that a module is part of; None if it is part of none.

    Raises:
        UsageError: the module of a model with an open block was called by itself.
    """
    current = PASS.get()
    if current is not None and (current.model is None or module in current.model.modules):
        return current
    for opened in list(OPEN.values()) if OPEN else ():
        if module in opened.parts.modules and opened.current_block() is not None:
            raise UsageError(
                f"{type(module).__name__}, a part of a {opened.name} with an open block of "
                f"holdfast.steering, was called by itself; call the whole {opened.name} in the "
                "block, or its parts in holdfast.unsteered(model)."
            )
    return None
