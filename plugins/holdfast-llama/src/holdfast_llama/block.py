"""`steering`: steers a llama-cpp-python model inside a block, through the model's own API."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import llama_cpp
import numpy as np
import torch
from llama_cpp._internals import LlamaContext

from holdfast.attention import AttentionTrace
from holdfast.chat.messages import Message
from holdfast.errors import ModelError, UsageError
from holdfast.methods import Method, compile_methods, read_methods, spec_of
from holdfast.methods.protocols import ShiftsAttention
from holdfast_llama.model import check_steering
from holdfast_llama.native import CACHE_TYPES, FLASH_OFF, check_architecture, check_library
from holdfast_llama.span_search import Range, read_hold
from holdfast_llama.steered_rows import SteeredRow
from holdfast_llama.weights import AttentionWeights, defer_signals

_MAX_TOKEN_BYTES = 1024
_REPLACED_METHODS = ("eval", "generate", "_create_completion")


@contextmanager
def steering(
    llama: llama_cpp.Llama,
    hold: Sequence[Message] | Sequence[Range],
    methods: Sequence[Method | str] | Method | str,
    *,
    trace: bool = False,
) -> Iterator[SteeringBlock]:
    """Steers everything that `llama` generates inside the block.

    The block uses a separate context, because llama.cpp accepts a callback only when it creates a
    context. Nothing computed before the block is reused, and afterwards the model is as fast as
    before, with flash attention if that was on. The block's keys and values are dropped at its end.

    Args:
        llama: the model, from llama-cpp-python.
        hold: the span to follow: the messages of a chat, whose system prompt is searched for in
            each prompt; or token ranges of each prompt, as (first, last (exclusive)).
        methods: attention methods, or their spec strings, such as "boost:factor=4".
        trace: whether to record the attention mass on the span.

    Yields:
        The block, which has the trace of the latest reply.

    Raises:
        UsageError: a method is not an attention method; a head does not exist in the model; the
            chat has no system prompt; the model is already steered, or drafts tokens.
        ModelError: attention cannot be steered: an unsupported version of llama-cpp-python, a
            quantised cache, recurrent layers.
        PromptError: inside the block, a prompt does not contain the system prompt's text.
    """
    block = SteeringBlock(llama, hold, methods, trace=trace)
    block.open()
    try:
        yield block
    finally:
        block.close()


class SteeringBlock:
    """An open block; see `steering`."""

    def __init__(self, llama: llama_cpp.Llama, hold: Any, methods: Any, *, trace: bool = False):
        check_library()
        self._llama = llama
        self._methods = _attention_methods(methods)
        self._trace = trace
        self._open = False
        self._search = read_hold(hold)
        self._tokens: list[int] = []  # the tokens in the context
        self._span: tuple[bool, ...] = ()
        self._masses: list[np.ndarray] = []
        self._uniform: list[np.ndarray] = []
        model = llama._model.model
        check_architecture(model, llama.model_path)
        layers = llama_cpp.llama_model_n_layer(model)
        heads = llama_cpp.llama_model_n_head(model)
        check_steering(self._methods, layers, heads)
        self._weights = AttentionWeights(
            layers, heads, on_host=llama.model_params.n_gpu_layers == 0
        )

    @property
    def span(self) -> list[int]:
        """The span's tokens in the latest prompt."""
        return [token for token, inside in enumerate(self._span) if inside]

    @property
    def trace(self) -> AttentionTrace | None:
        """The mass of the latest reply's tokens on the span; None if no trace was requested."""
        if not self._masses:
            return None
        mass = np.stack(self._masses, -1)
        uniform = np.stack(self._uniform, -1)
        return AttentionTrace(torch.from_numpy(mass), torch.from_numpy(uniform))

    def open(self) -> None:
        """Replaces the model's context with the block's.

        Raises:
            UsageError: the model is already steered, or drafts tokens.
            ModelError: attention cannot be steered: an unsupported version of llama-cpp-python, a
                quantised cache, recurrent layers.
        """
        llama = self._llama
        _refuse_unsteerable(llama)
        self._context = self._new_context()
        self._stock = llama._ctx
        self._eval = llama.eval
        llama._ctx = self._context
        llama.reset()
        for name in _REPLACED_METHODS:
            original = getattr(llama, name)
            replacement = self._forward if name == "eval" else self._only_while_open(original)
            setattr(llama, name, _Replacement(replacement))
        self._open = True

    def _new_context(self) -> LlamaContext:
        """Creates a context like the model's own, with the callback that steers."""
        llama = self._llama
        parameters = type(llama.context_params).from_buffer_copy(llama.context_params)
        parameters.flash_attn_type = FLASH_OFF
        parameters.n_ubatch = parameters.n_batch
        parameters.cb_eval = self._weights.callback
        context = LlamaContext(model=llama._model, params=parameters, verbose=llama.verbose)
        if llama._lora_adapter is not None:
            adapters: Any = (llama_cpp.llama_adapter_lora_p_ctypes * 1)()
            adapters[0] = llama._lora_adapter
            scales = (ctypes.c_float * 1)(llama.lora_scale)
            llama_cpp.llama_set_adapters_lora(context.ctx, adapters, 1, scales)
        return context

    def close(self) -> None:
        """Restores the model's own context."""
        self._open = False
        for name in _REPLACED_METHODS:
            delattr(self._llama, name)
        self._llama._ctx = self._stock
        self._context.close()
        self._llama.reset()

    def _only_while_open(
        self, original: Callable[..., Iterator[Any]]
    ) -> Callable[..., Iterator[Any]]:
        """Wraps a generator so that it fails after the block has ended, instead of continuing
        unsteered.
        """

        def steps(*arguments: Any, **options: Any) -> Iterator[Any]:
            self._require_open()
            generator: Any = original(*arguments, **options)
            sent = None
            while True:
                try:
                    item = generator.send(sent)
                except StopIteration:
                    return
                sent = yield item
                self._require_open()

        return steps

    def _require_open(self) -> None:
        if not self._open:
            raise UsageError(
                f"A reply under {spec_of(self._methods)} was still being read after its block had"
                " ended, so the rest of it would not be steered; read the whole stream inside the"
                " block."
            )

    def _forward(self, tokens: Sequence[int]) -> None:
        """Replaces `Llama.eval`: forwards tokens after those already in the context."""
        llama = self._llama
        tokens = list(tokens)
        past = llama.n_tokens
        if not tokens:  # the same prompt again; its logits are still available
            self._masses = self._masses[-1:]
            self._uniform = self._uniform[-1:]
            return
        ids = [*llama.input_ids[:past].tolist(), *tokens]
        if past != len(self._tokens) or len(tokens) > 1 or not past:
            span = self._search.find(ids, self._bytes_of)
            includes_generated = any(method.span_includes_generated for method in self._methods)
            was_under_other_span = self._span[:past] != span[:past]
            if was_under_other_span or (includes_generated and past):
                llama.n_tokens = 0  # the keys in the context cannot be used
                tokens = ids
            self._span = span
            self._masses = []
            self._uniform = []
        for start in range(0, len(tokens), llama.n_batch):
            chunk = tokens[start : start + llama.n_batch]
            num_before = llama.n_tokens
            row = SteeredRow(0, num_before, self._span, self._methods, self._trace)
            self._weights.begin([row], [num_before + len(chunk)])
            try:
                with defer_signals():
                    self._eval(chunk)
                self._weights.finish()
            except BaseException:
                self._weights.abandon()
                llama.n_tokens = num_before
                self._tokens = ids[:num_before]
                raise
        self._tokens = ids
        if self._trace:
            self._masses.append(self._weights.mass[0])
            self._uniform.append(self._weights.uniform[0])

    def _bytes_of(self, token: int) -> bytes:
        """Returns the bytes of a token's text."""
        vocab = llama_cpp.llama_model_get_vocab(self._llama._model.model)
        buffer = ctypes.create_string_buffer(_MAX_TOKEN_BYTES)
        size = llama_cpp.llama_token_to_piece(vocab, token, buffer, _MAX_TOKEN_BYTES, 0, True)
        return buffer.raw[:size]


class _Replacement:
    """A replaced method of a `Llama`; its type shows that a block is open."""

    def __init__(self, function: Callable[..., Any]):
        self._function = function

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._function(*arguments, **options)


def _refuse_unsteerable(llama: llama_cpp.Llama) -> None:
    """Refuses a model that is already steered, drafts tokens, or has a quantised cache."""
    if isinstance(vars(llama).get("eval"), _Replacement):
        raise UsageError(
            f"{llama.model_path} is already steered by another block; leave that block first,"
            " or give all methods to one block."
        )
    if llama.draft_model is not None:
        raise UsageError(
            "A model with a draft_model cannot be steered, as drafted tokens are forwarded"
            " before they are drawn; create the Llama without a draft_model."
        )
    if (kind := llama.context_params.type_v) not in CACHE_TYPES.values():
        raise ModelError(
            f"Values of ggml's type {kind} are quantised, so they need flash attention, whose"
            " weights cannot be steered; create the Llama with type_v="
            f"{CACHE_TYPES['f16']} (float16)."
        )


def _attention_methods(methods: Any) -> tuple[ShiftsAttention, ...]:
    """Reads the methods of a block; refuses those that do not act on attention."""
    read = read_methods(methods)
    compiled = compile_methods(read)
    if compiled.spares_replies:
        raise UsageError(
            f"{compiled.spec} finds the earlier replies of a chat itself, which a block cannot do;"
            " load the model as llama:FILE.gguf with Holdfast."
        )
    steering_methods = compiled.attention
    if len(steering_methods) != len(read):
        other = next(method for method in read if method not in steering_methods)
        raise UsageError(
            f"{other!r} is not an attention method, and a block can apply no other kind in"
            " llama.cpp; load the model as llama:FILE.gguf with Holdfast, which offers more."
        )
    return steering_methods
