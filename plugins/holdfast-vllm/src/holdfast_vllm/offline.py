"""Chat models in vLLM's engine, for `holdfast drift --model vllm:MODEL`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

from vllm.platforms import current_platform

from holdfast.errors import HoldfastError, ModelError
from holdfast.methods import Ability, Method, compile_methods, read_methods
from holdfast.models.capabilities import ENDPOINT_ABILITIES, check_requirements
from holdfast.models.checkpoint import DEFAULT, DEFAULT_FOLDER, on_one_line
from holdfast.models.model_properties import stop_ids
from holdfast.models.protocol import Generates
from holdfast.models.requests import Reply, Request
from holdfast.models.streaming import stream_reply
from holdfast_vllm.admission import check_device, check_engine
from holdfast_vllm.frontend import refusal_of
from holdfast_vllm.session import VllmSession
from holdfast_vllm.status import DRAWS, fingerprint_of
from holdfast_vllm.wire import check_heads

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

# Defaults on CPUs. Pages have 32 tokens, since with vLLM's 128 the turns of a dialog would share
# little. By default vLLM takes most of the memory for its cache, and spends a minute zeroing it;
# room for this many rows of this many tokens is enough for a run.
_CPU_PAGE = 32
_CPU_ROWS = 48
_CPU_TOKENS = 2048


@dataclass(frozen=True)
class VllmModel(Generates):
    """A model in vLLM's engine.

    Args:
        name: the name by which it was loaded.
        fingerprint: a digest of configuration, weights and chat template, as loaded by vLLM.
        llm: a `vllm.LLM`.
        tokenizer: its fast tokenizer.
        stop_ids: tokens that end a reply.
        refusal: why its attention cannot be steered; "" if it can.
    """

    name: str
    fingerprint: str
    llm: Any
    tokenizer: PreTrainedTokenizerFast
    stop_ids: frozenset[int]
    refusal: str
    independent: ClassVar[bool] = False  # a batch's composition may affect rounding

    @property
    def capabilities(self) -> frozenset[Ability]:
        """The abilities that methods and studies can use."""
        return ENDPOINT_ABILITIES if self.refusal else ENDPOINT_ABILITIES | {Ability.LOG_ODDS}

    @property
    def context(self) -> int:
        """The context length with which the engine was started."""
        return int(self.llm.llm_engine.model_config.max_model_len)

    @property
    def runtime(self) -> dict[str, str | int]:
        """Versions and devices that rounding depends on."""
        import torch
        import vllm

        config = self.llm.llm_engine.vllm_config
        return {
            "device": current_platform.get_device_name(),
            "torch": torch.__version__,
            "vllm": vllm.__version__,
            "batch_size": config.scheduler_config.max_num_seqs,
            "context": self.context,
            "tensor_parallel_size": config.parallel_config.tensor_parallel_size,
        }

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that cannot be applied.

        Raises:
            ModelError: a method needs an ability that vLLM or this model does not offer.
            UsageError: heads that the model does not have, or a list that this device cannot apply.
        """
        methods = read_methods(methods)
        owner = f"{self.name} in vLLM"
        if self.refusal:
            owner = f"{owner}, whose attention cannot be steered ({self.refusal}),"
        cure = "use another method, or load the model with holdfast.load()"
        check_requirements(methods, self.capabilities, owner, cure)
        steering = compile_methods(methods).attention
        shape = self.llm.llm_engine.model_config.hf_text_config
        check_heads(steering, shape.num_hidden_layers, shape.num_attention_heads)
        check_device(steering, current_platform.is_cuda())

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats, in order."""
        return self.session().generate_batch(requests)

    def stream(self, request: Request, write: Callable[[str], None]) -> Reply:
        """Answers one chat; `write` receives the text of the reply in pieces, as it is drawn."""
        return stream_reply(self.session().stream, self.tokenizer, request, write)

    def session(self) -> VllmSession:
        """Opens a session; its requests share the engine's prefix cache."""
        return VllmSession(self)


def load(
    name: str,
    dtype: str | None = None,
    *,
    batch_size: int | None = None,
    trust_remote_code: bool = False,
    **options: Any,
) -> VllmModel:
    """Starts vLLM's engine in this process.

    Args:
        name: "default" (Holdfast's own model), a folder, or a name on the hub.
        dtype: "float16", "bfloat16" or "float32"; "auto" lets vLLM choose. None takes float32 on
            the CPU, and "auto" elsewhere.
        batch_size: maximum number of requests that run together; None: vLLM's default.
        trust_remote_code: whether code that comes with the model may run.
        options: of `vllm.LLM`, such as `max_model_len` or `tensor_parallel_size`.

    Raises:
        ModelError: the engine does not start, it cannot draw tokens as Holdfast does, or the model
            has no fast tokenizer.
    """
    from vllm import LLM

    standard: dict[str, Any] = {
        "dtype": dtype or ("float32" if current_platform.is_cpu() else "auto"),
        "trust_remote_code": trust_remote_code,
        "enable_prefix_caching": True,
        **({"block_size": _CPU_PAGE} if current_platform.is_cpu() else {}),
        **({"attention_backend": "CUSTOM"} if current_platform.is_cuda() else {}),
        **({"max_num_seqs": batch_size} if batch_size else {}),
    }
    source = str(DEFAULT_FOLDER) if name == DEFAULT else name
    standard |= options
    if current_platform.is_cpu() and "VLLM_CPU_KVCACHE_SPACE" not in os.environ:
        standard.setdefault("kv_cache_memory_bytes", _cache_bytes(source, standard))
    try:
        llm = LLM(source, **standard)
    except Exception as error:  # of any kind; the engine's own log has the details
        raise ModelError(
            f"vLLM cannot start {name!r} ({on_one_line(error)}); see its log, and pass the options"
            " that its engine needs (--engine NAME=VALUE)."
        ) from error
    tokenizer: Any = llm.get_tokenizer()
    if not tokenizer.is_fast:
        raise ModelError(
            f"{name} has no fast tokenizer, without which spans cannot be found; convert its"
            " tokenizer to tokenizer.json."
        )
    ranks = llm.collective_rpc("holdfast_fingerprint", args=(str(tokenizer.chat_template),))
    config = llm.llm_engine.model_config
    settings = SimpleNamespace(**(config.try_get_generation_config() or {}))
    described: Any = SimpleNamespace(generation_config=settings, config=config.hf_config)
    return VllmModel(
        f"vllm:{name}",
        fingerprint_of(ranks),
        llm,
        tokenizer,
        stop_ids(described, tokenizer),
        _refusal(llm, name),
    )


def _cache_bytes(source: str, options: dict[str, Any]) -> int | None:
    """Computes the bytes of keys and values for a run's rows, and at least for one full context.

    Returns None, which leaves the choice to vLLM, if that is over half of the free memory, or if
    the model's shape is unknown.
    """
    import psutil
    import torch
    from transformers import AutoConfig

    try:
        trust = options["trust_remote_code"]
        shape = AutoConfig.from_pretrained(source, trust_remote_code=trust).get_text_config()
        heads = getattr(shape, "num_key_value_heads", None) or shape.num_attention_heads
        size = getattr(shape, "head_dim", None) or shape.hidden_size // shape.num_attention_heads
        context = options.get("max_model_len") or shape.max_position_embeddings
        numbers = 2 * shape.num_hidden_layers * heads * size
    except (AttributeError, OSError, ValueError):  # vLLM itself will report what is wrong
        return None
    rows = options.get("max_num_seqs") or _CPU_ROWS
    tokens = max(rows * min(context, _CPU_TOKENS), context + _CPU_PAGE)
    dtype = getattr(torch, str(options["dtype"]), None) or shape.dtype or torch.float32
    needed = int(tokens * numbers * dtype.itemsize)
    return needed if needed < psutil.virtual_memory().available / 2 else None


def _refusal(llm: Any, name: str) -> str:
    """Returns why attention cannot be steered; "" if it can.

    Raises:
        ModelError: the engine cannot even draw tokens by seed.
    """
    states = llm.collective_rpc("holdfast_state")
    config = llm.llm_engine.vllm_config
    try:
        check_engine(config, attention=False)
    except HoldfastError as error:
        raise ModelError(str(error)) from None
    if why_not := refusal_of(states, DRAWS):
        raise ModelError(
            f"vLLM cannot draw the replies of {name!r} as Holdfast does: {why_not}; add holdfast to"
            " VLLM_PLUGINS, or unset that variable."
        )
    try:
        check_engine(config)
    except HoldfastError as error:
        return str(error).rstrip(".")
    return refusal_of(states)
