"""Checks requests against the engine and their prompts, and finds their spans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from vllm.exceptions import VLLMValidationError
from vllm.platforms import current_platform

from holdfast.errors import HoldfastError, PromptError, UsageError
from holdfast.methods import compile_methods, spec_of
from holdfast_vllm.moved_weights import Methods
from holdfast_vllm.spans import check_span, find_system_prompts, find_text, tokens_of
from holdfast_vllm.status import uses_full_graphs
from holdfast_vllm.wire import (
    MAX_SPAN_PARTS,
    SEED,
    SPAN,
    TRACE,
    Admitted,
    Drawing,
    Range,
    RequestedSteering,
    check_draw,
    check_heads,
)

CHAT = "holdfast_chat"  # the key of a prompt under which its chat is kept


@dataclass(frozen=True)
class Chat:
    """A rendered chat.

    Args:
        messages: as vLLM passed them to the template.
        template: the chat template.
        write: renders other messages in the same way.
    """

    messages: list[dict[str, Any]]
    template: str
    write: Callable[[Any], str]


def admit(
    renderer: Any,
    config: Any,
    prompt: Mapping[str, Any],
    requested: RequestedSteering,
    request: Any,
    name: str,
) -> Admitted:
    """Checks a request and finds its span.

    Args:
        renderer: the engine's renderer.
        config: the engine's configuration.
        prompt: the rendered prompt.
        requested: the steering that the request asks for.
        request: a request of vLLM's protocol, or its sampling parameters.
        name: the name under which the mass is kept.

    Raises:
        VLLMValidationError: the request cannot be fulfilled; vLLM answers with HTTP 400.
    """
    try:
        check_engine(config, attention=requested.needs_span)
        model = config.model_config.hf_text_config
        check_heads(requested.methods, model.num_hidden_layers, model.num_attention_heads)
        check_device(requested.methods, current_platform.is_cuda())
        _check_alone(requested, request.n or 1)
        if requested.seed is not None:
            check_draw(request)
        ids = prompt.get("prompt_token_ids")
        if prompt["type"] == "embeds" or not ids:
            raise UsageError("A prompt of embeddings cannot be steered; send text or tokens.")
        ranges = _find_span(renderer, prompt, ids, requested) if requested.needs_span else ()
        if uses_full_graphs(config) and len(ranges) > MAX_SPAN_PARTS:
            raise UsageError(
                f"The span has {len(ranges)} parts, but full CUDA graphs allow at most"
                f" {MAX_SPAN_PARTS}; send fewer parts, or start the server without"
                " holdfast_full_graphs."
            )
        return Admitted(requested.methods, ranges, len(ids), name if requested.trace else "")
    except HoldfastError as error:
        raise VLLMValidationError(str(error)) from None


def _check_alone(requested: RequestedSteering, replies: int) -> None:
    for key, is_given in ((TRACE, requested.trace), (SEED, requested.seed is not None)):
        if is_given and replies > 1:
            raise UsageError(
                f"{key} works only with n=1, not n={replies}; ask for one reply at a time."
            )


def take_draw(seed: int, sampling: Any) -> Drawing:
    """Takes the settings of the draw out of vLLM's parameters, which become greedy."""
    drawing = Drawing(seed, sampling.temperature, sampling.top_p, sampling.max_tokens)
    sampling.temperature = 0.0
    sampling.top_p = 1.0
    sampling.seed = None
    return drawing


def check_device(methods: Methods, on_cuda: bool) -> None:
    """Refuses methods that only the CPU backend supports.

    Raises:
        UsageError: a list of methods that cannot be expressed by three numbers per head.
    """
    if on_cuda and compile_methods(methods).table is None:
        raise UsageError(
            f"{spec_of(methods)} cannot be expressed by three numbers per head, as the CUDA backend"
            " requires; use only one of the methods, or put a bias before a power."
        )


def check_engine(config: Any, *, attention: bool = True) -> None:
    """Refuses engines that cannot be steered; workers report obstacles in the layers.

    Args:
        config: the engine's configuration.
        attention: whether attention is to be steered; False if only tokens are to be drawn.

    Raises:
        UsageError: names the obstacle.
    """
    parallel = config.parallel_config
    obstacles = {
        "speculative decoding": config.speculative_config is not None,
        "pipeline parallelism": parallel.pipeline_parallel_size > 1,
    }
    if attention:
        obstacles |= _attention_obstacles(config, parallel)
    for name, present in obstacles.items():
        if present:
            raise UsageError(
                f"This server cannot steer, because it runs with {name}; start it without that, or"
                " leave holdfast out of the request."
            )


def _attention_obstacles(config: Any, parallel: Any) -> dict[str, bool]:
    return {
        "context parallelism": parallel.decode_context_parallel_size > 1
        or getattr(parallel, "prefill_context_parallel_size", 1) > 1,
        "multi-head latent attention": config.model_config.use_mla,
        "an encoder": config.model_config.is_encoder_decoder,
        "keys and values from another server": config.kv_transfer_config is not None,
    }


def _find_span(
    renderer: Any, prompt: Mapping[str, Any], ids: list[int], requested: RequestedSteering
) -> tuple[Range, ...]:
    """Finds the span of a request, as token ranges.

    Raises:
        HoldfastError: the span cannot be found.
    """
    if requested.span:
        return check_span(requested.span, len(ids))
    text = prompt.get("prompt")
    chat = prompt.get(CHAT)
    if not isinstance(text, str) or prompt["type"] != "token":
        raise UsageError(f"This prompt has no text; give the span's tokens as {SPAN}.")
    if requested.text:
        spans = find_text(text, requested.text)
    elif chat is not None:
        spans = find_system_prompts(text, chat.messages, chat.template, chat.write)
    else:
        raise UsageError(
            f"This prompt is not a chat, so it has no system prompt; give holdfast_text or {SPAN}."
        )
    return tokens_of(spans, _find_offsets(renderer.tokenizer, text, ids))


def _find_offsets(tokenizer: Any, text: str, ids: list[int]) -> list[tuple[int, int]]:
    """Finds first and last character (exclusive) of every token, by tokenising the text again."""
    for special in (False, True):
        encoded = tokenizer(text, add_special_tokens=special, return_offsets_mapping=True)
        if list(encoded["input_ids"]) == list(ids):
            return [(int(start), int(end)) for start, end in encoded["offset_mapping"]]
    raise PromptError(
        f"The prompt's {len(ids)} tokens are not those of its text, perhaps because it was cut;"
        f" give the tokens to steer towards as {SPAN}."
    )
