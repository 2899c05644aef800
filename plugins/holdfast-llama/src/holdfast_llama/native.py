"""llama.cpp through llama-cpp-python's bindings: a model, and contexts.

A context has `max_sequences` streams, one for each sequence, of `columns` cells. Tokens are only
ever removed from the end of a stream, so a token's cell is its position; `weights.py` checks that
in every pass.
"""

from __future__ import annotations

import contextlib
import ctypes
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import llama_cpp
import numpy as np

from holdfast.errors import ModelError
from holdfast_llama.steered_rows import SteeredRow
from holdfast_llama.versions import check_version
from holdfast_llama.weights import AttentionWeights, defer_signals

FLASH_OFF = 0
FLASH_ON = 1
CHUNK = 512  # tokens per pass; a longer prompt takes several passes
_MAX_OUTPUTS = 256  # tokens with logits per pass, for which memory is reserved
CACHE_TYPES = {"f32": 0, "f16": 1, "bf16": 30}  # ggml's numbers of key and value types
_QUANTISED = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0")
# default parameters of contexts and models, as this plug-in expects them from the library
_CONTEXT_DEFAULTS = {
    "n_ctx": 512,
    "n_batch": 2048,
    "n_ubatch": 512,
    "n_seq_max": 1,
    "flash_attn_type": -1,
    "type_k": 1,
    "type_v": 1,
    "yarn_ext_factor": -1.0,
    "defrag_thold": -1.0,
    "embeddings": False,
    "offload_kqv": True,
    "no_perf": True,
    "op_offload": True,
    "swa_full": True,
    "kv_unified": False,
}
_MODEL_DEFAULTS = {
    "n_gpu_layers": -1,
    "split_mode": 1,
    "vocab_only": False,
    "use_extra_bufts": True,
    "load_mtp": False,
}


@cache
def check_library() -> None:
    """Refuses a library with another version, or with structs of another layout; checks only once.

    If the binding and the library laid out a struct differently, reading it would not fail but give
    wrong values; comparing the default parameters reveals that.

    Raises:
        ModelError: names the version, or the field.
    """
    check_version(llama_cpp.__version__)
    for expected, defaults in (
        (_CONTEXT_DEFAULTS, llama_cpp.llama_context_default_params()),
        (_MODEL_DEFAULTS, llama_cpp.llama_model_default_params()),
    ):
        for field, value in expected.items():
            if (actual := getattr(defaults, field)) != value:
                raise ModelError(
                    f"llama.cpp's default of {field} is {actual!r} and not {value!r}, so its"
                    " binding does not match the library; reinstall llama-cpp-python"
                    f" {llama_cpp.__version__}, and unset LLAMA_CPP_LIB_PATH."
                )
    llama_cpp.llama_backend_init()


def cache_type(name: str) -> int:
    """Returns ggml's number for a type of keys and values.

    Raises:
        ModelError: an unknown type, or a quantised one, which would need flash attention.
    """
    if name in CACHE_TYPES:
        return CACHE_TYPES[name]
    choices = ", ".join(CACHE_TYPES)
    if name in _QUANTISED:
        raise ModelError(
            f"A cache of {name!r} cannot be steered (its values need flash attention, whose weights"
            f" cannot be steered); use {choices}."
        )
    raise ModelError(f"There is no cache of {name!r}; use {choices}.")


def has_amx() -> bool:
    """Whether llama.cpp was built with AMX kernels, for a processor that has AMX."""
    return b"AMX_INT8 = 1" in llama_cpp.llama_print_system_info()


class NativeModel:
    """A GGUF file's weights, loaded by llama.cpp.

    Args:
        path: the path of the file.
        gpu_layers: how many layers go to the GPU, if llama.cpp was built for one; -1: all.
        amx: whether llama.cpp may use its AMX kernels, which crash the process on some processors
            (ggml-org/llama.cpp#26954). Without them an AMX build does not repack weights.

    Attributes:
        layers, heads: the number of layers, and of heads in the first layer.
        trained_context: the context length that it was trained on.
        vocabulary: the size of its vocabulary.

    Raises:
        ModelError: llama.cpp cannot read the file, or the model is not a causal attention model.
    """

    def __init__(self, path: str, gpu_layers: int = 0, amx: bool = False):
        check_library()
        parameters = llama_cpp.llama_model_default_params()
        parameters.use_extra_bufts = amx or not has_amx()
        parameters.n_gpu_layers = gpu_layers
        self.gpu_layers = gpu_layers
        self.pointer = llama_cpp.llama_model_load_from_file(path.encode(), parameters)
        if not self.pointer:
            raise ModelError(
                f"llama.cpp cannot read {path!r}; its log says why (--engine verbose=true)."
            )
        weakref.finalize(self, llama_cpp.llama_model_free, self.pointer)
        check_architecture(self.pointer, path)
        self.layers = int(llama_cpp.llama_model_n_layer(self.pointer))
        self.heads = int(llama_cpp.llama_model_n_head(self.pointer))
        self.trained_context = int(llama_cpp.llama_model_n_ctx_train(self.pointer))
        self.vocab = llama_cpp.llama_model_get_vocab(self.pointer)
        self.vocabulary = int(llama_cpp.llama_vocab_n_tokens(self.vocab))

    def tokenize(self, text: str) -> list[int]:
        """Tokenises a text that may contain special tokens; adds none."""
        encoded = text.encode()
        room = len(encoded) + 8
        tokens = (llama_cpp.llama_token * room)()
        arguments = self.vocab, encoded, len(encoded), tokens, room, False, True
        return list(tokens[: llama_cpp.llama_tokenize(*arguments)])


def check_architecture(model: Any, name: str) -> None:
    """Refuses models that are not purely causal attention.

    Raises:
        ModelError: names the kind of model.
    """
    kinds: dict[str, Callable[[Any], bool]] = {
        "has recurrent layers": llama_cpp.llama_model_is_recurrent,
        "has recurrent layers beside attention": llama_cpp.llama_model_is_hybrid,
        "has an encoder": llama_cpp.llama_model_has_encoder,
        "is a diffusion model": llama_cpp.llama_model_is_diffusion,
    }
    for kind, holds in kinds.items():
        if holds(model):
            raise ModelError(
                f"{name!r} {kind}, which holdfast-llama cannot run; use a model whose layers all"
                " have attention, or leave llama: out to run it in Holdfast's own engine."
            )


@dataclass(frozen=True)
class PassOutput:
    """The outputs of a pass.

    Args:
        logits: of the last tokens, float32 [row, token, vocabulary].
        mass: the mass on the span at the last query, float32 [row, layer, head]; NaN unless traced.
        uniform: the mass under uniform attention, float32 [row, layer].
    """

    logits: np.ndarray
    mass: np.ndarray
    uniform: np.ndarray


class NativeContext:
    """A llama.cpp context: streams of cells, and passes over them.

    Args:
        model: the weights.
        max_sequences: the number of streams.
        columns: cells per stream.
        threads: threads per pass.
        steers: whether attention weights are materialised, so that they can be read and rewritten.
        flash: whether to use flash attention; None: only if the context does not steer.
        cache: the type of keys and values, from `CACHE_TYPES`.

    Raises:
        ModelError: there is not enough memory.
    """

    def __init__(
        self,
        model: NativeModel,
        max_sequences: int,
        columns: int,
        threads: int,
        *,
        steers: bool,
        flash: bool | None = None,
        cache: str = "f16",
    ):
        self.model = model
        self.max_sequences = max_sequences
        self.columns = columns
        self.steers = steers
        self.weights = AttentionWeights(model.layers, model.heads, on_host=model.gpu_layers == 0)
        parameters = _context_parameters(max_sequences, columns, threads, cache)
        if flash is None:
            flash = not steers
        parameters.flash_attn_type = FLASH_ON if flash else FLASH_OFF
        if steers:
            parameters.cb_eval = self.weights.callback
        self.pointer = llama_cpp.llama_init_from_model(model.pointer, parameters)
        if not self.pointer:
            raise ModelError(
                f"llama.cpp does not have enough memory for {max_sequences} sequences of {columns}"
                " tokens; use a smaller --batch-size or --engine context=TOKENS."
            )
        # the model and the callback must outlive the context
        weakref.finalize(self, _free_context, self.pointer, model, self.weights.callback)
        self._memory = llama_cpp.llama_get_memory(self.pointer)
        self._batch = llama_cpp.llama_batch_init(max(CHUNK, max_sequences), 0, 1)
        weakref.finalize(self, llama_cpp.llama_batch_free, self._batch)
        if (num_streams := llama_cpp.llama_n_seq_max(self.pointer)) != max_sequences:
            raise ModelError(
                f"llama.cpp made {num_streams} streams instead of {max_sequences}, so its binding"
                " does not match the library; reinstall llama-cpp-python."
            )

    def crop(self, stream: int, length: int) -> None:
        """Drops everything after a stream's first `length` tokens."""
        llama_cpp.llama_memory_seq_rm(self._memory, stream, length, -1)

    def save(self, stream: int) -> np.ndarray:
        """Returns the keys and values of a stream, as bytes."""
        size = llama_cpp.llama_state_seq_get_size(self.pointer, stream)
        state = np.empty(size, np.uint8)
        _check_size(
            size, llama_cpp.llama_state_seq_get_data(self.pointer, _pointer_to(state), size, stream)
        )
        return state

    def restore(self, stream: int, state: np.ndarray) -> None:
        """Replaces a stream's content with saved keys and values."""
        self.crop(stream, 0)
        size = state.nbytes
        _check_size(
            size, llama_cpp.llama_state_seq_set_data(self.pointer, _pointer_to(state), size, stream)
        )

    def decode(
        self, rows: Sequence[SteeredRow], tokens: Sequence[Sequence[int]], logits: int = 1
    ) -> PassOutput:
        """Forwards tokens of several rows.

        Args:
            rows: the rows, which are in consecutive streams.
            tokens: the new tokens of each row. Shorter ones are padded to the longest, and the
                padding is dropped afterwards; several rows must fit into one pass.
            logits: how many last tokens of each row get logits; they are 0 before its first token.

        Raises:
            Exception: any error raised while rewriting weights; the streams are left unchanged.
            ModelError: llama.cpp cannot run the pass, or computes attention in an unexpected way.
        """
        counts = [len(row_tokens) for row_tokens in tokens]
        longest = max(counts)
        if len(rows) > 1 and longest * len(rows) > max(CHUNK, self.max_sequences):
            raise ModelError(
                f"{len(rows)} rows of {longest} tokens do not fit into one pass; forward them"
                " separately."
            )
        last_logits = np.zeros((len(rows), logits, self.model.vocabulary), np.float32)
        chunk = CHUNK if logits == 1 else _MAX_OUTPUTS
        try:
            start = 0
            while start < longest:
                stop = longest if len(rows) > 1 else min(start + chunk, longest)
                self._pass(rows, tokens, start, stop, logits)
                for row_number, count in enumerate(counts):
                    for position in range(max(start, count - logits), min(stop, count)):
                        index = row_number * (stop - start) + position - start  # in the pass
                        nth = position - (count - logits)  # among the last tokens of the row
                        last_logits[row_number, nth] = self._logits_of(index)
                start = stop
            for row, count in zip(rows, counts, strict=True):
                if count < longest:
                    self.crop(row.stream, row.start + count)
        except BaseException:
            for row in rows:
                self.crop(row.stream, row.start)
            raise
        return PassOutput(last_logits, self.weights.mass, self.weights.uniform)

    def _logits_of(self, index: int) -> np.ndarray:
        """Returns the logits of a token of the latest pass, float32 [vocabulary], as a view."""
        pointer = llama_cpp.llama_get_logits_ith(self.pointer, index)
        return np.ctypeslib.as_array(pointer, (self.model.vocabulary,))

    def _pass(
        self,
        rows: Sequence[SteeredRow],
        tokens: Sequence[Sequence[int]],
        start: int,
        stop: int,
        logits: int,
    ) -> None:
        """Forwards the tokens [start, stop) of each row; rows are padded with their first token."""
        batch = self._batch
        width = stop - start
        for number, (row, row_tokens) in enumerate(zip(rows, tokens, strict=True)):
            for position in range(start, stop):
                index = number * width + position - start
                is_padding = position >= len(row_tokens)
                batch.token[index] = row_tokens[0 if is_padding else position]
                batch.pos[index] = row.start + position
                batch.n_seq_id[index] = 1
                batch.seq_id[index][0] = row.stream
                batch.logits[index] = not is_padding and position >= len(row_tokens) - logits
        batch.n_tokens = width * len(rows)
        if self.steers:
            stops = [min(stop, len(row_tokens)) for row_tokens in tokens]
            ends = [row.start + end for row, end in zip(rows, stops, strict=True)]
            self.weights.begin(rows, ends, [end - start - 1 for end in stops])
        with defer_signals() if self.steers else contextlib.nullcontext():
            code = llama_cpp.llama_decode(self.pointer, batch)
        if self.steers:
            self.weights.finish()
        if code:
            raise ModelError(
                f"llama.cpp could not forward {batch.n_tokens} tokens (it returned {code}, where 1"
                " means no free cells); use a larger --engine context=TOKENS."
            )


def _context_parameters(max_sequences: int, columns: int, threads: int, cache: str) -> Any:
    """llama.cpp's parameters of a context; see `NativeContext`."""
    parameters = llama_cpp.llama_context_default_params()
    parameters.n_ctx = columns * max_sequences
    parameters.n_seq_max = max_sequences
    parameters.kv_unified = False
    parameters.n_batch = parameters.n_ubatch = CHUNK
    num_outputs = max(_MAX_OUTPUTS, max_sequences)
    parameters.n_outputs_max = parameters.n_outputs_max_per_seq = num_outputs
    parameters.n_threads = parameters.n_threads_batch = threads
    parameters.type_k = parameters.type_v = cache_type(cache)
    parameters.swa_full = True
    return parameters


def _free_context(pointer: Any, *_: object) -> None:
    llama_cpp.llama_free(pointer)


def _pointer_to(state: np.ndarray) -> Any:
    return state.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))


def _check_size(expected: int, actual: int) -> None:
    if actual != expected:
        raise ModelError(
            f"llama.cpp saved or restored only {actual:,} of {expected:,} bytes of a stream; ask"
            " again with a larger --engine context=TOKENS."
        )
