"""Requests to a model in vLLM's engine: submitted as they come, and answered as the engine steps.

A dialog's tokens are kept as they were generated, as in a `LocalSession`; their keys and values are
in the engine's prefix cache, under the salt of their steering.
"""

from __future__ import annotations

import itertools
import uuid
import weakref
from collections.abc import AsyncGenerator, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import torch
from vllm import SamplingParams, envs
from vllm.inputs import tokens_input
from vllm.sampling_params import RequestOutputKind
from vllm.v1.engine.exceptions import EngineDeadError

from holdfast.attention import AttentionTrace
from holdfast.errors import ModelError, PromptTooLong
from holdfast.generation.request_errors import name_error, name_errors
from holdfast.generation.saved_kv import CachedPrefix
from holdfast.methods import spec_of
from holdfast.models.capabilities import require_free_reply
from holdfast.models.event_loop import run_sync
from holdfast.models.rendering import RenderedRequest, RequestInThread, render_requests
from holdfast.models.request_batches import generate_all, prepare_batch
from holdfast.models.requests import Reply, Request, Token
from holdfast.models.step_loop import ReplyUpdate, StepLoop
from holdfast_vllm.wire import METHODS, SEED, SPAN, TRACE

if TYPE_CHECKING:
    from holdfast_vllm.offline import VllmModel

_ENDINGS = {"stop": "stop", "length": "length"}


@dataclass(eq=False)
class Ongoing:
    """A reply in progress.

    Args:
        rendered: the request and its tokens.
        room: the maximum length of the reply in tokens; 0 if there is no room for one.
        streamed: whether its tokens are reported as they are drawn.
        reported_name: the name of the request in the engine's outputs.
        engine_name: the engine's internal name of the request.
        token_ids: the tokens of the reply that the engine has reported so far.
    """

    rendered: RenderedRequest
    room: int
    streamed: bool
    reported_name: str = ""
    engine_name: str = ""
    token_ids: list[int] = field(default_factory=list)

    @property
    def traced(self) -> bool:
        """Whether its mass is recorded."""
        return self.rendered.token_request.traces_span


class VllmSession:
    """An engine that answers requests in vLLM, and keeps the tokens of their threads.

    Args:
        model: the model that answers.
    """

    def __init__(self, model: VllmModel):
        self.model = model
        self._threads: dict[Hashable, tuple[CachedPrefix, ...]] = {}
        self._engine = model.llm.llm_engine
        self._open: dict[str, Ongoing] = {}
        self._ended: dict[Ongoing, ReplyUpdate] = {}  # ended before they began
        # without a reference cycle, so that memory is freed with the last use of the session
        self._loop = StepLoop(weakref.proxy(self))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._loop.finish()

    async def generate(self, request: Request) -> Reply:
        """Answers a request; see `holdfast.models.protocol.Engine`.

        A chat without room for a reply is not an error: its reply says so.

        Raises:
            PromptError: the chat cannot be rendered, or its system prompt is not found.
            ModelError: a method cannot be applied to this model, or vLLM refuses the request.
        """
        (chat,) = self._render([request])
        return await self._loop.answer(chat)

    def stream(self, request: Request) -> AsyncGenerator[Token | Reply]:
        """Answers a request; yields every token as it is drawn, and the reply last."""
        (chat,) = self._render([request])
        return self._loop.stream(chat)

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers requests, in order, for callers without an event loop.

        Raises:
            PromptError: a chat cannot be rendered, its system prompt is not found, or it exceeds
                the model's context; in that case nothing is generated.
            ModelError: a method cannot be applied to this model.
        """
        rendered = self._render(prepare_batch(requests))
        for chat in rendered:
            if not self._room(chat):
                name = chat.token_request.name
                raise PromptTooLong(
                    f"{name and f'{name}: '}A chat of {len(chat.prompt_ids)} tokens leaves"
                    f" no room for a reply in the {self.model.context} tokens of the engine; use a"
                    " shorter chat, or start it with a larger max_model_len."
                )
        return run_sync(generate_all(self._loop.answer, rendered))

    def forget(self, thread: Hashable) -> None:
        """Drops the tokens of a finished thread; the engine's cache evicts on its own."""
        self._threads.pop(thread, None)

    def submit(self, chat: RenderedRequest, streamed: bool) -> Ongoing:
        """Submits a chat to the engine; raises a `ModelError` if vLLM refuses it."""
        ongoing = Ongoing(chat, self._room(chat), streamed)
        if ongoing.room:
            self._submit(ongoing)
        else:
            reply = Reply("", (), "context", prompt_ids=chat.prompt_ids)
            self._ended[ongoing] = ReplyUpdate(outcome=reply)
        return ongoing

    def step(self) -> dict[Ongoing, ReplyUpdate]:
        """Makes a step of the engine; returns new tokens and finished replies."""
        changed = self._ended
        self._ended = {}
        for output in self._outputs() if self._open else ():
            ongoing = self._open[output.request_id]
            answer = output.outputs[0]
            first = len(ongoing.token_ids)
            ongoing.token_ids += answer.token_ids
            last = len(ongoing.token_ids)
            outcome = None
            if output.finished:
                del self._open[output.request_id]
                outcome = self._outcome(ongoing, answer.finish_reason, output)
                if isinstance(outcome, Reply):  # a reply lacks the token that ended it
                    last = len(outcome.token_ids or ())
            ids = ongoing.token_ids[first:last] if ongoing.streamed else ()
            changed[ongoing] = ReplyUpdate([Token(token_id) for token_id in ids], outcome)
        return changed

    def cancel(self, ongoing: Ongoing) -> None:
        """Ends a request in the engine."""
        if self._open.pop(ongoing.reported_name, None) is not None:
            self._engine.abort_request([ongoing.engine_name], True)

    def _render(self, requests: Sequence[Request]) -> list[RenderedRequest]:
        """Renders requests; each continues with the tokens that its thread already has."""
        chats: list[RequestInThread] = []
        for request in requests:
            with name_errors(request.name):
                self.model.check(request.methods)
                require_free_reply(request, f"vLLM, which runs {self.model.name},")
            thread = request.thread
            prefixes = () if thread is None else self._threads.get(thread, ())
            chats.append(RequestInThread(request, prefixes))
        return render_requests(chats, self.model.tokenizer, traces=not self.model.refusal)

    def _room(self, rendered: RenderedRequest) -> int:
        """Returns the maximum length of a reply; 0 if the context leaves too little room, as with a
        local model.
        """
        request = rendered.token_request
        context = self.model.context
        remaining = context - request.max_prompt_len
        if remaining < min(request.room, context // 4):
            return 0
        return min(request.sampling.max_new_tokens, remaining)

    def _submit(self, ongoing: Ongoing) -> None:
        request = ongoing.rendered.token_request
        prompt = request.prompts[0]
        extra: dict[str, Any] = {SEED: str(request.seed)}
        if prompt.pass_methods.attention or ongoing.traced:
            ranges = ongoing.rendered.span_ranges
            extra[METHODS] = spec_of(prompt.pass_methods.attention)
            extra[SPAN] = list(itertools.chain(*ranges))
            extra[TRACE] = int(ongoing.traced)
        kind = RequestOutputKind.DELTA if ongoing.streamed else RequestOutputKind.FINAL_ONLY
        sampling = SamplingParams(
            temperature=request.sampling.temperature,
            top_p=request.sampling.top_p,
            max_tokens=ongoing.room,
            stop_token_ids=sorted(self.model.stop_ids),
            detokenize=False,
            output_kind=kind,
            extra_args=extra,
        )
        name = f"holdfast-{uuid.uuid4().hex}"
        ongoing.reported_name = name
        tokens = tokens_input(list(prompt.token_ids))
        try:
            ongoing.engine_name = self.model.llm.llm_engine.add_request(name, tokens, sampling)
        except ValueError as error:  # a refusal by vLLM
            raise ModelError(
                f"{request.name and f'{request.name}: '}vLLM refuses the request ({error}); change"
                " the request, or start the engine with other options."
            ) from error
        self._open[name] = ongoing

    def _outputs(self) -> list[Any]:
        """Makes a step of vLLM's engine; raises a `ModelError` if it has ended."""
        try:
            return self._engine.step()
        except EngineDeadError as error:
            self._open.clear()  # the engine has nothing left to stop
            raise ModelError(
                "vLLM's engine has ended, or has not answered for"
                f" {envs.VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS} seconds"
                " (VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS), as its log explains; answers so far are"
                " kept, so repeat the command to continue from there."
            ) from error

    def _outcome(self, ongoing: Ongoing, reason: str, output: Any) -> Reply | Exception:
        if reason in _ENDINGS:
            return self._reply(ongoing, reason, output)
        error = ModelError(
            f"vLLM ended the request with {reason!r}; look for the cause in its log, and ask again."
        )
        if name := ongoing.rendered.token_request.name:
            name_error(error, name)
        return error

    def _reply(self, ongoing: Ongoing, reason: str, output: Any) -> Reply:
        """Builds the finished reply to a request."""
        token_ids = ongoing.token_ids
        rendered = ongoing.rendered
        ids = tuple(token_ids[:-1] if reason == "stop" else token_ids)
        text = str(self.model.tokenizer.decode(list(ids), skip_special_tokens=True))
        if rendered.token_request.keep:
            thread = rendered.request.thread
            assert thread is not None
            self._threads[thread] = rendered.as_prefixes(token_ids=ids, reply=text)
        forwarded = len(rendered.prompt_ids) - (output.num_cached_tokens or 0) + len(token_ids) - 1
        trace = self._trace(ongoing, output.request_id) if ongoing.traced else None
        return Reply(text, ids, _ENDINGS[reason], trace, forwarded, rendered.prompt_ids)

    def _trace(self, ongoing: Ongoing, name: str) -> AttentionTrace:
        ranks = self.model.llm.collective_rpc("holdfast_heads", args=(name,))
        mass = torch.cat([torch.tensor(rank, dtype=torch.float32) for rank in ranks], 1)
        span = ongoing.rendered.token_request.prompts[0].span
        uniform = sum(span) / (len(span) + torch.arange(mass.shape[-1]))
        return AttentionTrace(mass, uniform.expand(len(mass), -1))  # no layer has a window
