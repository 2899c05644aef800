"""vLLM engines in this process, and Holdfast's own log-probabilities to compare them with."""

from __future__ import annotations

import os

os.environ.update(
    {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the engine in this process
        "TORCHDYNAMO_DISABLE": "1",  # compiles nothing
        "OMP_NUM_THREADS": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "HF_HUB_OFFLINE": "1",
    }
)

from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch

import holdfast
from holdfast.attention import BatchSteering, steer_pass
from holdfast.chat.prompt import render
from holdfast.methods import compile_methods, parse

MODEL = str(Path(holdfast.__file__).parent / "assets" / "model")
STOCK = "vllm.v1.attention.backends.cpu_attn.CPUAttentionBackend"
OURS = "holdfast_vllm.cpu.Backend"
CACHE = 2**26  # bytes of keys and values: 16 thousand tokens
# Tolerances of log-probabilities. Stock vLLM differs from transformers by up to 7e-6, and steering
# itself moves them by 0.5 and more.
FLOAT32_TOLERANCE = 5e-5
# vLLM and transformers in bfloat16 differ from their own float32 by about 0.15.
BFLOAT16_TOLERANCE = 0.4
MIN_MOVED = 0.3  # by steering

Range = tuple[int, int]


def use_backend(backend: str) -> None:
    """Sets the attention backend of engines that are made from now on."""
    from vllm.plugins import load_general_plugins
    from vllm.v1.attention import selector
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    load_general_plugins()
    register_backend(AttentionBackendEnum.CPU_ATTN, backend)
    selector._cached_get_attn_backend.cache_clear()


@cache
def engine(backend: str = OURS, **options: Any) -> Any:
    """One engine for each set of options, shared by all tests."""
    from vllm import LLM

    use_backend(backend)
    standard = {
        "dtype": "float32",
        "max_model_len": 1024,
        "enable_prefix_caching": False,
        "kv_cache_memory_bytes": CACHE,
    }
    return LLM(MODEL, enforce_eager=True, disable_log_stats=False, **{**standard, **options})


def sampling(extra: dict[str, Any] | None, tokens: int = 12, **options: Any) -> Any:
    """Greedy replies of this many tokens, with the log-probabilities of prompt and reply."""
    from vllm import SamplingParams

    standard = {"temperature": 0, "ignore_eos": True, "logprobs": 1, "prompt_logprobs": 1}
    return SamplingParams(max_tokens=tokens, extra_args=extra, **{**standard, **options})


@cache
def model() -> Any:
    """The default model as Holdfast runs it."""
    return holdfast.load(MODEL, dtype="float32")


def chat(system: str, user: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


CHATS = [
    chat("Answer in uppercase letters only.", "Tell me about gardens."),
    chat("End every sentence with an exclamation mark! Speak of music.", "What is new?"),
    chat("You are a pirate, and you talk like one. Never say yes. " * 6, "Is bread good?"),
]


def span_of(
    messages: list[dict[str, str]], emphasis: Sequence[str] | None = None
) -> tuple[Range, ...]:
    """The span of the system prompt, or of the emphasised text, as Holdfast finds it."""
    mask = render(messages, model().tokenizer, emphasis=emphasis).span_mask
    positions = [position for position, in_span in enumerate(mask) if in_span]
    assert positions == list(range(positions[0], positions[-1] + 1))
    return ((positions[0], positions[-1] + 1),)


@torch.inference_mode()
def reference(
    ids: Sequence[int], prompt: int, ranges: Sequence[Range], spec: str
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Holdfast's own log-probabilities [token, vocabulary], and the mass [layer, head] of each
    query that draws a token: the prompt at once, the reply token by token.
    """
    mask = torch.zeros(1, prompt, dtype=torch.bool)
    for first, last in ranges:
        mask[0, first:last] = True
    steering = BatchSteering(mask, [compile_methods(parse(spec))], trace=True)
    cached = None
    logits = []
    masses = []
    for pass_ids in [list(ids[:prompt]), *([token] for token in ids[prompt:])]:
        with steer_pass(steering) if ranges else nullcontext() as state:
            output = model().hf_model(
                input_ids=torch.tensor([pass_ids]), past_key_values=cached, use_cache=True
            )
        cached = output.past_key_values
        logits.append(output.logits[0])
        if state is not None:
            masses.append(torch.stack([mass[0] for mass in state.masses]))
    return torch.cat(logits).log_softmax(-1), masses


def logprobs_of(output: Any) -> dict[int, float]:
    """The log-probability that vLLM gives each token, by the token's position."""
    prompt = output.prompt_logprobs or []
    logprobs = {
        position: entry[output.prompt_token_ids[position]].logprob
        for position, entry in enumerate(prompt)
        if entry
    }
    reply = output.outputs[0]
    for number, (token, entry) in enumerate(zip(reply.token_ids, reply.logprobs, strict=True)):
        logprobs[len(output.prompt_token_ids) + number] = entry[token].logprob
    return logprobs


class Differences(NamedTuple):
    """The greatest differences of some tokens' log-probabilities in vLLM."""

    from_holdfast: float  # steered alike, in Holdfast's own engine
    by_steering: float  # of Holdfast's own: with and without steering


def compare(output: Any, ranges: Sequence[Range], spec: str) -> Differences:
    """Compares vLLM's log-probabilities of a prompt and its reply with Holdfast's own."""
    ids = [*output.prompt_token_ids, *output.outputs[0].token_ids]
    prompt_len = len(output.prompt_token_ids)
    return compare_logprobs(logprobs_of(output), ids, prompt_len, ranges, spec)


def compare_logprobs(
    logprobs: dict[int, float], ids: Sequence[int], prompt: int, ranges: Sequence[Range], spec: str
) -> Differences:
    """Compares vLLM's log-probabilities, by the position of the token, with Holdfast's own."""
    steered, _ = reference(ids, prompt, ranges, spec)
    plain, _ = reference(ids, prompt, (), "none")
    expected = {position: steered[position - 1, ids[position]].item() for position in logprobs}
    unsteered = {position: plain[position - 1, ids[position]].item() for position in logprobs}
    return Differences(
        from_holdfast=max(abs(logprobs[at] - expected[at]) for at in logprobs),
        by_steering=max(abs(expected[at] - unsteered[at]) for at in logprobs),
    )


def submit(llm: Any, name: str, messages: Any, params: Any, **extras: Any) -> str:
    """Submits a chat to an engine without stepping it; returns the engine's own name for it."""
    from vllm.renderers.params import ChatParams

    core = llm.llm_engine
    params_of_chat = ChatParams(
        chat_template_kwargs={"add_generation_prompt": True, "tokenize": False}
    )
    _, (prompt,) = core.renderer.render_chat([messages], params_of_chat, prompt_extras=extras)
    return core.add_request(name, prompt, params)


def finish(llm: Any) -> dict[str, Any]:
    """Steps an engine until it is done; returns its outputs by request name."""
    outputs = {}
    while llm.llm_engine.has_unfinished_requests():
        outputs |= {out.request_id: out for out in llm.llm_engine.step() if out.finished}
    return outputs


def answer(llm: Any, chats: list[Any], parameters: list[Any]) -> list[Any]:
    """Answers chats on an engine, each with its sampling parameters."""
    return llm.chat(chats, parameters, use_tqdm=False)
