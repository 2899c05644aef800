"""The entry point of requests: admits or refuses each, and salts the prefix cache.

vLLM has no extension point for this, so seven of its functions are wrapped:

    BaseRenderer.render_chat(_async)         to keep the chat beside its tokens
    OnlineRenderer.render_chat, _completion  to refuse with HTTP 400 before a stream begins
    InputProcessor.process_inputs            to admit: it alone has parameters, tokens and salt
    LLMEngine.add_request, AsyncLLM...       to ask the workers whether steering is live
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from http import HTTPStatus
from typing import Any

from vllm.exceptions import GracefulHTTPError, VLLMValidationError

from holdfast.errors import HoldfastError
from holdfast_vllm.admission import CHAT, Chat, admit, take_draw
from holdfast_vllm.status import DRAWS, STEERS
from holdfast_vllm.wire import ADMITTED, KEYS, RequestedSteering, read_steering

_MARK = "_holdfast_wraps"


def install() -> None:
    """Wraps the functions above, once."""
    from vllm.renderers.base import BaseRenderer
    from vllm.renderers.online_renderer import OnlineRenderer
    from vllm.v1.engine.async_llm import AsyncLLM
    from vllm.v1.engine.input_processor import InputProcessor
    from vllm.v1.engine.llm_engine import LLMEngine

    _wrap(BaseRenderer, "render_chat", _keep_chat)
    _wrap(BaseRenderer, "render_chat_async", _keep_chat_async)
    _wrap(OnlineRenderer, "render_chat", _refuse_early)
    _wrap(OnlineRenderer, "render_completion", _refuse_early)
    _wrap(InputProcessor, "process_inputs", _admit_requests)
    _wrap(LLMEngine, "add_request", _require_live)
    _wrap(AsyncLLM, "add_request", _require_live_async)


def is_installed() -> bool:
    """Whether requests in this process go through admission."""
    from vllm.v1.engine.input_processor import InputProcessor

    return hasattr(InputProcessor.process_inputs, _MARK)


def _wrap(owner: type, name: str, around: Callable[[Any], Any]) -> None:
    """Replaces a method by `around(method)`, unless that has already been done."""
    inner = getattr(owner, name)
    if not hasattr(inner, _MARK):
        outer = wraps(inner)(around(inner))
        setattr(outer, _MARK, inner)
        setattr(owner, name, outer)


# Keeping a chat beside its tokens


def _keep_chat(inner: Any) -> Any:
    def render_chat(self: Any, conversations: Any, chat_params: Any, *args: Any, **kwargs: Any):
        chats, prompts = inner(self, conversations, chat_params, *args, **kwargs)
        return chats, _attach_chats(self, chats, chat_params, prompts)

    return render_chat


def _keep_chat_async(inner: Any) -> Any:
    async def render_chat_async(
        self: Any, conversations: Any, chat_params: Any, *args: Any, **kwargs: Any
    ):
        chats, prompts = await inner(self, conversations, chat_params, *args, **kwargs)
        return chats, _attach_chats(self, chats, chat_params, prompts)

    return render_chat_async


def _attach_chats(renderer: Any, chats: Any, params: Any, prompts: Any) -> Any:
    def write(messages: Any) -> str:
        return str(renderer.render_messages(list(messages), params)[1]["prompt"])

    for chat, prompt in zip(chats, prompts, strict=True):
        template = params.chat_template or getattr(renderer.tokenizer, "chat_template", None)
        prompt[CHAT] = Chat(list(chat), str(template), write)
    return prompts


# Refusing before a stream begins


def _refuse_early(inner: Any) -> Any:
    async def render(self: Any, request: Any, *args: Any, **kwargs: Any):
        xargs = getattr(request, "vllm_xargs", None)
        requested = _read(xargs)
        if requested is not None and getattr(request, "use_beam_search", False):
            raise VLLMValidationError("Beam search cannot be steered; leave use_beam_search out.")
        rendered = await inner(self, request, *args, **kwargs)
        prompts = rendered[1] if isinstance(rendered, tuple) else rendered
        if requested is not None and isinstance(prompts, list):
            for prompt in prompts:
                admit(self.renderer, self.renderer.config, prompt, requested, request, "")
        return rendered

    return render


# Admitting: parameters, tokens and salt


def _admit_requests(inner: Any) -> Any:
    def process_inputs(
        self: Any, request_id: str, prompt: Any, params: Any, *args: Any, **kwargs: Any
    ):
        requested = _read(getattr(params, "extra_args", None))
        request = inner(self, request_id, prompt, params, *args, **kwargs)
        if requested is None:
            return request
        if not (isinstance(prompt, dict) and "type" in prompt):
            prompt = {"type": "token", "prompt_token_ids": request.prompt_token_ids}
        admitted = admit(self.renderer, self.vllm_config, prompt, requested, params, request_id)
        sampling = request.sampling_params
        if requested.seed is not None:
            admitted = replace(admitted, drawing=take_draw(requested.seed, sampling))
        others = {key: value for key, value in sampling.extra_args.items() if key not in KEYS}
        sampling.extra_args = {**others, ADMITTED: admitted.pack()}
        request.cache_salt = admitted.salt(request.cache_salt)
        return request

    return process_inputs


def _read(xargs: Mapping[str, Any] | None) -> RequestedSteering | None:
    try:
        return read_steering(xargs)
    except HoldfastError as error:
        raise VLLMValidationError(str(error)) from None


# Whether steering is live


def _required_work(prompt: Any, params: Any) -> str:
    """Returns what the workers must be able to do for a request: `DRAWS`, `STEERS` or "".

    Raises:
        VLLMValidationError: the request was built elsewhere, so it has bypassed admission.
    """
    built = getattr(prompt, "sampling_params", None)  # if the request is already built
    extra_args = getattr(params if built is None else built, "extra_args", None) or {}
    if built is not None and ADMITTED in extra_args:
        return STEERS
    requested = _read(extra_args)
    if requested is None:
        return ""
    if built is not None:
        raise VLLMValidationError(
            "A finished EngineCoreRequest cannot be steered; pass its prompt and parameters"
            " instead."
        )
    return STEERS if requested.needs_span else DRAWS


def _require_live(inner: Any) -> Any:
    def add_request(
        self: Any, request_id: str, prompt: Any, params: Any, *args: Any, **kwargs: Any
    ) -> Any:
        work = _required_work(prompt, params)
        if work and not _is_live(self, work):
            try:
                states = self.collective_rpc("holdfast_state")
            except Exception as error:
                states = error
            _refuse_unless_able(self, states, work)
        return inner(self, request_id, prompt, params, *args, **kwargs)

    return add_request


def _require_live_async(inner: Any) -> Any:
    async def add_request(
        self: Any, request_id: str, prompt: Any, params: Any, *args: Any, **kwargs: Any
    ):
        work = _required_work(prompt, params)
        if work and not _is_live(self, work):
            _refuse_unless_able(self, await ask(self), work)
        return await inner(self, request_id, prompt, params, *args, **kwargs)

    return add_request


async def ask(engine: Any) -> list[dict[str, Any]] | Exception:
    """Asks every worker for its steering status; returns the error if that fails."""
    try:
        states: list[dict[str, Any]] = await engine.collective_rpc("holdfast_state", timeout=60)
        return states
    except Exception as error:  # no error may let a request run unsteered
        return error


def refusal_of(states: object, work: str = STEERS) -> str:
    """Returns why one of these workers cannot do some work; "" if all can."""
    if isinstance(states, Exception):
        return f"its workers did not answer ({type(states).__name__}: {states})"
    if not isinstance(states, list) or not states:
        return "its workers did not answer"
    return next((state[work] for state in states if state[work]), "")


def _is_live(engine: Any, work: str) -> bool:
    return work in getattr(engine, "_holdfast_live", ())


def _refuse_unless_able(engine: Any, states: object, work: str) -> None:
    refusal = refusal_of(states, work)
    if refusal:
        raise GracefulHTTPError(
            f"This server cannot steer: {refusal}; leave holdfast out of the request, or see"
            " GET /holdfast.",
            HTTPStatus.SERVICE_UNAVAILABLE,
        )
    engine._holdfast_live = {*getattr(engine, "_holdfast_live", ()), work}
