"""Chat models in llama.cpp, as `holdfast drift --model llama:FILE.gguf` runs them."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch

from holdfast.errors import ModelError, UsageError
from holdfast.generation.memory import memory_of_this_process
from holdfast.methods import Ability, Method, Shape, compile_methods, read_methods, spec_of
from holdfast.models.capabilities import ENDPOINT_ABILITIES, check_requirements
from holdfast.models.checkpoint import find_source
from holdfast.models.gguf_tokenizer import read_tokenizer
from holdfast.models.loading_errors import explain_errors
from holdfast.models.session import GeneratesInSessions
from holdfast.validation import ranges
from holdfast_llama.native import NativeModel, cache_type
from holdfast_llama.slots import ContextPool, LlamaRunner
from holdfast_llama.steered_rows import SteeredRow

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_MAX_DEFAULT_CONTEXT = 4096  # tokens per sequence if `context` is not given
_DEFAULT_BATCH_SIZE = 32
_PROBE = "Hello, world! 12345 naïve  café 你好\n\n\tdef f(x): return x**2  # it's"
_CAPABILITIES = ENDPOINT_ABILITIES | {
    Ability.LOG_ODDS,
    Ability.REHEARSAL,
    Ability.REPLY_SPANS,
    Ability.SECOND_STREAM,
    Ability.REPLY_SCORES,
}


@dataclass(frozen=True)
class LlamaModel(GeneratesInSessions):
    """A GGUF model in llama.cpp, with its attention steered.

    Args:
        name: the name by which it was loaded.
        fingerprint: a digest of the file, the type of the cache and the chat template.
        runner: the model as the engine uses it.
        tokenizer: the file's tokenizer, as transformers reads it.
        stop_ids: tokens that end a reply.
        batch_size: the most sequences forwarded together.
        prefix_memory: bytes of keys and values that a session keeps for its dialogs; None: a
            quarter of the memory that this process may use.
    """

    name: str
    fingerprint: str
    runner: LlamaRunner
    tokenizer: PreTrainedTokenizerFast
    stop_ids: frozenset[int]
    batch_size: int = _DEFAULT_BATCH_SIZE
    prefix_memory: int | None = None
    independent: ClassVar[bool] = False  # a batch's composition may affect rounding
    steerable: ClassVar[bool] = True
    capabilities: ClassVar[frozenset[Ability]] = _CAPABILITIES

    @property
    def context(self) -> int:
        """The most tokens of a sequence."""
        return self.runner.context

    @property
    def prefix_bytes(self) -> int:
        """Bytes of keys and values that a session keeps for its dialogs."""
        if self.prefix_memory is not None:
            return self.prefix_memory
        return memory_of_this_process() // 4

    @property
    def shape(self) -> Shape:
        """The shape that head sets chosen on this model apply to."""
        return Shape(self.runner.layers, self.runner.heads, self.name, self.fingerprint)

    @property
    def runtime(self) -> dict[str, str | int]:
        """Versions and devices that rounding depends on."""
        import llama_cpp

        pool = self.runner.pool
        return {
            "device": "gpu" if pool.model.gpu_layers else "cpu",
            "llama-cpp-python": llama_cpp.__version__,
            "batch_size": self.batch_size,
            "context": self.context,
            "cache": pool.cache,
        }

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that cannot be applied.

        Raises:
            ModelError: a method needs access that llama.cpp does not offer.
            UsageError: heads that the model does not have, or a list of methods that cannot be
                expressed by three numbers per head.
        """
        methods = read_methods(methods)
        cure = "use another method, or load the model with holdfast.load()"
        check_requirements(methods, self.capabilities, f"{self.name} in llama.cpp", cure)
        check_steering(methods, self.runner.layers, self.runner.heads)


def check_steering(methods: Sequence[Method], layers: int, heads: int) -> None:
    """Refuses methods that cannot be applied to the attention weights of llama.cpp.

    Raises:
        UsageError: heads that the model does not have, or a list of methods that cannot be
            expressed by three numbers per head.
    """
    compiled = compile_methods(methods)
    for method in (*compiled.attention, *compiled.rehearsed):
        for layer, head in sorted(getattr(method, "heads", None) or ()):
            if layer >= layers or head >= heads:
                raise UsageError(
                    f"{method.name} names head {head} in layer {layer}, but the model has {layers}"
                    f" layers of {heads} heads, counted from 0."
                )
    if compiled.table is None:
        raise UsageError(
            f"{spec_of(compiled.attention)} cannot be expressed by three numbers per head, as"
            " steering in llama.cpp requires; use only one of the methods, or put a bias before a"
            " power."
        )


def load(
    name: str,
    dtype: str | None = None,
    *,
    batch_size: int | None = None,
    trust_remote_code: bool = False,
    context: int | None = None,
    cache: str = "f16",
    threads: int | None = None,
    gpu_layers: int = 0,
    prefix_memory: int | None = None,
    verbose: bool = False,
    amx: bool = False,
) -> LlamaModel:
    """Loads a GGUF file into llama.cpp.

    Args:
        name: the file; or "smollm2" or "gemma-3-270m", after `make real-models`.
        dtype: must be None, as llama.cpp uses the weights as they are in the file.
        batch_size: the most sequences forwarded together; None: 32.
        trust_remote_code: ignored, as a GGUF file contains no code.
        context: the most tokens of a sequence; None: the length that the model was trained on, at
            most 4,096.
        cache: the type of keys and values: "f16", "bf16" or "f32".
        threads: threads per pass; None: as many as torch uses.
        gpu_layers: how many layers go to the GPU, if llama.cpp was built for one; -1: all.
        prefix_memory: bytes of keys and values that a session keeps for its dialogs; None: a
            quarter of the memory that this process may use.
        verbose: whether llama.cpp writes its log to stderr.
        amx: whether llama.cpp may use its AMX kernels, which crash on some processors.

    Raises:
        ModelError: the file is not GGUF, llama.cpp or transformers' tokenizer cannot read it, or
            the model's attention cannot be steered; or the version of llama.cpp is unsupported.
        UsageError: a dtype was given, or `context` exceeds the length that the model was trained
            on.
        ParameterOutOfRange: a number is outside its range.
    """
    import llama_cpp._logger

    if dtype is not None:
        raise UsageError(
            f"--dtype {dtype} is for models that run in Holdfast's own engine; llama.cpp uses the"
            " weights as they are in the file, so leave it out, or use a file of that type."
        )
    size = batch_size or _DEFAULT_BATCH_SIZE
    max_sequences = ranges.whole_number("a model", "batch_size", size, 1)
    cache_type(cache)
    source = find_source(name)
    if source.gguf is None:
        raise ModelError(
            f"llama.cpp runs GGUF files, and {name!r} is not one; give a file, such as"
            " llama:model.gguf, or leave llama: out to run the model in Holdfast's own engine."
        )
    llama_cpp._logger.set_verbose(verbose)
    native = NativeModel(source.location, gpu_layers, amx)
    default_context = min(native.trained_context, _MAX_DEFAULT_CONTEXT)
    tokens = ranges.whole_number("a model", "context", context or default_context, 1)
    if tokens > native.trained_context:
        raise UsageError(
            f"{name} was trained on {native.trained_context:,} tokens, fewer than context={tokens};"
            " choose a context of at most that length."
        )
    with explain_errors(source, "tokenizer"):
        tokenizer = read_tokenizer(source.gguf)
    _check_tokens(native, tokenizer, name)
    threads = ranges.whole_number("a model", "threads", threads or torch.get_num_threads(), 1)
    pool = ContextPool(native, max_sequences, tokens, threads, cache)
    runner = LlamaRunner(pool, f"llama:{name}")
    check_layers(pool)
    content = source.gguf.fingerprint(torch.float32, source.gguf.start_digest())
    identity = f"{content} llama.cpp {cache} {tokenizer.chat_template}"
    return LlamaModel(
        f"llama:{name}",
        hashlib.sha256(identity.encode()).hexdigest()[:32],
        runner,
        tokenizer,
        source.gguf.stop_ids | {tokenizer.eos_token_id} - {None},
        max_sequences,
        prefix_memory,
    )


load.capabilities = _CAPABILITIES  # type: ignore[attr-defined]  # `abilities_in` reads it


def _check_tokens(native: NativeModel, tokenizer: PreTrainedTokenizerFast, name: str) -> None:
    """Warns if the tokenizer splits text differently than llama.cpp's does."""
    ours = list(tokenizer(_PROBE, add_special_tokens=False).input_ids)
    theirs = native.tokenize(_PROBE)
    if ours != theirs:
        warnings.warn(
            f"For {name}, transformers splits text into different tokens than llama.cpp does"
            f" ({len(ours)} and {len(theirs)} for a test sentence), so replies may be worse than in"
            " llama-server; the model's safetensors repository has the right tokenizer.",
            stacklevel=3,
        )


def check_layers(pool: ContextPool) -> None:
    """Forwards one token to check that every layer's attention weights can be read.

    Raises:
        ModelError: a layer's weights cannot be read.
    """
    native = pool.take(steers=True, columns=1)
    row = SteeredRow(native.stream, 0, (True,), trace=True)
    native.context.decode([row], [[0]])
    pool.give_back([native])
    pool.settle()
