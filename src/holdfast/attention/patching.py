"""Switches a loaded model to this package's attention, for a block or permanently, and back.

While a block is open, the model uses our attention implementation, and its `forward` and
`prepare_inputs_for_generation` are wrapped. After the block, everything is restored. GPT-J does not
use the attention interface, so its own attention method is replaced instead.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, finalize, ref

import torch
from torch import Tensor
from transformers import PreTrainedModel

from holdfast.attention.cache_origins import CacheOrigin, cache_of, claim_cache
from holdfast.attention.explicit import attend_explicitly, record_trace
from holdfast.attention.fused_kernels import LayerInputs
from holdfast.attention.layers import refuse_dropout, state_in
from holdfast.attention.open_model import LOCK, OPEN, OpenModel, pass_in
from holdfast.attention.passes import PASS, ModelParts
from holdfast.attention.plain_attention import (
    IMPLEMENTATION,
    PriorAttention,
    forget_plain,
    remember_plain,
)
from holdfast.attention.reaching import (
    REACHED,
    check_reachable,
    logits_of,
    plain_logits,
    probe,
    unsteerable_error,
)
from holdfast.attention.steered_block import Steered, enter_scope
from holdfast.errors import Unsteerable, UsageError

_WRAPPED = ("forward", "prepare_inputs_for_generation", "holdfast_block")
# cross-attention by its class or its name: BertCrossAttention, encoder_attn
_CROSS = re.compile(r"cross|encoder_?(decoder_?)?att", re.IGNORECASE)
_HOOK_KEY = -1  # the key of our hook in a module; PyTorch's keys count from 0
# per model, the origins of caches that were filled in its blocks and still exist
_ORIGINS: WeakKeyDictionary[PreTrainedModel, WeakSet[CacheOrigin]] = WeakKeyDictionary()


@contextmanager
def open_block(model: PreTrainedModel, block: Steered) -> Iterator[None]:
    """Opens a block on a model; passes in this context belong to it until it is left.

    Raises:
        Unsteerable: the model's attention cannot be reached; the model is left unchanged.
        UsageError: a block is already open on the model.
    """
    with LOCK:
        opened = OPEN.get(model)
        if opened is not None and opened.block is not None:
            raise UsageError(
                f"A block of holdfast.steering ({opened.block.spec}) is already open on this "
                f"{opened.name}, and a model can have only one at a time, so a block of "
                f"{block.spec} cannot be opened; leave the first block, or open one block with all "
                "methods, joined by + or as a list per row."
            )
        if opened is None:
            opened = _open(model)
        opened.block = block
        _watch_caches(model, block)
    try:
        with enter_scope(model, block):
            yield
    finally:
        with LOCK:
            opened.block = None
            block.close()
            opened.restore_if_unused()


def _open(model: PreTrainedModel) -> OpenModel:
    """Switches a model to our attention and wraps its methods; restores it if that fails."""
    check_reachable(model)
    plain = None if model in REACHED else plain_logits(model)
    named = list(model.named_modules())
    before = _prior_attention(model)
    parts = ModelParts(
        WeakSet(module for _, module in named),
        WeakSet(module for name, module in named if _attends_elsewhere(name, module)),
        [prior.config for prior in before],
    )
    opened = OpenModel(ref(model), type(model).__name__, parts, before)
    replaced = {name: vars(model)[name] for name in _WRAPPED if name in vars(model)}
    patched: list[torch.nn.Module] = []
    opened.restore = lambda: _restore(model, opened, patched, replaced)
    remember_plain(opened.before)
    OPEN[model] = opened
    try:
        patched += _switch(model)
        opened.implementation = model.config.get_text_config()._attn_implementation
        if plain is not None:
            probe(model, plain)
    except BaseException:
        opened.restore()
        raise
    _wrap(model, opened)
    return opened


def _attends_elsewhere(name: str, module: torch.nn.Module) -> bool:
    """Whether a module is cross-attention, according to its flag, or else its class or its name."""
    crosses = getattr(module, "is_cross_attention", None)
    if isinstance(crosses, bool):
        return crosses
    return any(_CROSS.search(text) for text in (type(module).__name__, name.rpartition(".")[2]))


class _Replacement:
    """Replaces a method of a model with an open block, and refuses copies of the model."""

    def __init__(self, function: Callable[..., Any], plain: Callable[..., Any]):
        self.function = function
        self.__wrapped__ = plain  # `generate` reads the signature of the wrapped method

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __reduce_ex__(self, protocol: Any) -> str | tuple[Any, ...]:
        raise UsageError(
            "A model cannot be copied or pickled while a block of holdfast.steering is open on it "
            "(copy.deepcopy, a spawned process, torch.save); copy it before you open the block, "
            "open the block in the other process, or leave the block first."
        )


def _wrap(model: PreTrainedModel, opened: OpenModel) -> None:
    """Routes each pass of the model through `opened`, and refuses copies of the model."""
    plain: Callable[..., Any] = model.forward
    plain_prepare: Callable[..., Any] = getattr(model, _WRAPPED[1], plain)
    names = list(inspect.signature(plain).parameters)

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(*args: Any, **kwargs: Any) -> Any:
        return opened.forward(plain, names, args, kwargs)

    def prepare(*args: Any, **kwargs: Any) -> Any:
        return opened.prepare(plain_prepare, args, kwargs)

    vars(model)["forward"] = _Replacement(forward, plain)
    vars(model)["prepare_inputs_for_generation"] = _Replacement(prepare, plain_prepare)
    vars(model.base_model)["holdfast_block"] = _Replacement(plain, plain)


def _watch_caches(model: PreTrainedModel, block: Steered) -> None:
    """Makes the model refuse caches that were filled in the block, as long as any exist."""
    assert block.origin is not None
    _ORIGINS.setdefault(model, WeakSet()).add(block.origin)
    finalize(block.origin, _unwatch_caches, ref(model))
    parts = vars(model.base_model)
    parts["_forward_pre_hooks"][_HOOK_KEY] = _refuse_steered_cache
    parts["_forward_pre_hooks_with_kwargs"][_HOOK_KEY] = True


def _unwatch_caches(model_ref: ref[PreTrainedModel]) -> None:
    model = model_ref()
    if model is not None and model not in OPEN and not list(_ORIGINS.get(model, ())):
        _unhook(model.base_model)


def _unhook(module: torch.nn.Module) -> None:
    vars(module)["_forward_pre_hooks"].pop(_HOOK_KEY, None)
    vars(module)["_forward_pre_hooks_with_kwargs"].pop(_HOOK_KEY, None)


def _refuse_steered_cache(module: torch.nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
    """Refuses an unsteered pass over steered keys; a block's passes check their cache elsewhere."""
    if torch.compiler.is_compiling() or module in OPEN:
        return  # a base model with an open block: its pass has not begun yet
    current = PASS.get()
    if current is None or (current.model is not None and module not in current.model.modules):
        claim_cache(cache_of(kwargs), None, type(module).__name__)


def _restore(
    model: PreTrainedModel,
    opened: OpenModel,
    patched: list[torch.nn.Module],
    replaced: dict[str, Any],
) -> None:
    """Undoes `_open`: gives the model its own methods and attention back."""
    OPEN.pop(model, None)
    for part in (model, model.base_model):
        for name in _WRAPPED:
            vars(part).pop(name, None)
    vars(model).update(replaced)
    _switch_back(patched, opened.before)
    forget_plain(opened.before)
    _unwatch_caches(opened.model)


def install(model: PreTrainedModel) -> bool:
    """Gives a model this package's attention permanently.

    Returns False, and leaves the model unchanged, if its attention cannot be steered.
    """
    before = _prior_attention(model)
    patched = list[torch.nn.Module]()
    try:
        check_reachable(model)
        plain = logits_of(model)
        patched = _switch(model)
        probe(model, plain)
        remember_plain(before)
    except Unsteerable:
        _switch_back(patched, before)
        return False
    return True


def _prior_attention(model: PreTrainedModel) -> list[PriorAttention]:
    """Collects the attention of all configurations that a switch would change, each once."""
    if any(is_like_gptj(module) for module in model.modules()):
        return []
    configs: list[Any] = [getattr(module, "config", None) for module in model.modules()]
    configs = [config for config in configs if hasattr(config, "_attn_implementation_internal")]
    whole = model.config
    configs += [whole, *(getattr(whole, name, None) for name in whole.sub_configs)]
    prior_attention: list[PriorAttention] = []
    for config in configs:
        if config is not None and not any(config is prior.config for prior in prior_attention):
            implementation = config._attn_implementation_internal
            prior_attention.append(PriorAttention(config, implementation))
    return prior_attention


def _switch(model: PreTrainedModel) -> list[torch.nn.Module]:
    """Gives a model our attention; returns the modules that were patched."""
    if like_gptj := [module for module in model.modules() if is_like_gptj(module)]:
        patched = [module for module in like_gptj if "_attn" not in vars(module)]
        for module in patched:
            vars(module)["_attn"] = GPTJPatch(module)
        return patched
    text = model.config.get_text_config()
    names = [name for name in model.config.sub_configs if getattr(model.config, name, None) is text]
    try:
        model.set_attn_implementation({names[0]: IMPLEMENTATION} if names else IMPLEMENTATION)
    except (ValueError, ImportError) as error:
        raise unsteerable_error(model, str(error).split("\n")[0]) from error
    if text._attn_implementation != IMPLEMENTATION:
        raise unsteerable_error(model, "its class does not use transformers' attention interface")
    return []


def _switch_back(patched: list[torch.nn.Module], before: Sequence[PriorAttention]) -> None:
    """Undoes `_switch`."""
    for module in patched:
        vars(module).pop("_attn", None)
    for prior in before:
        prior.config._attn_implementation_internal = prior.implementation


# Models like GPT-J


def is_like_gptj(module: torch.nn.Module) -> bool:
    """Whether a module computes attention in a method `_attn`, as GPT-J does."""
    return (
        hasattr(type(module), "_attn")
        and hasattr(module, "scale_attn")
        and getattr(module, "layer_idx", None) is not None
    )


class GPTJPatch:
    """Replaces `_attn` of a module like GPT-J's, which does not use the attention interface.

    `_attn` computes softmax(query @ key / scale_attn + mask) @ value. In unsteered passes, the
    module's own method is called.
    """

    def __init__(self, module: Any):
        self.module = module

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None
    ) -> Any:
        module = self.module
        layer = self.module.layer_idx
        state = state_in(pass_in(module), module)
        if state is not None:
            state.enter(layer)
        if state is None or not state.steering.acts_on(layer):
            return type(module)._attn(module, query, key, value, attention_mask)
        refuse_dropout(module, module.attn_dropout.p)
        wide = torch.promote_types(query.dtype, torch.float32)
        causal = attention_mask is None and query.shape[2] > 1
        scaling = 1 / float(module.scale_attn)
        inputs = LayerInputs(query.to(wide), key.to(wide), value, attention_mask, causal, scaling)
        output = attend_explicitly(state, layer, inputs)
        if state.steering.trace:
            record_trace(state, layer, inputs)
        return output, None
