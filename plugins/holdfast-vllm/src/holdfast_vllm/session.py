"""Requests to a model in vLLM's engine: submitted as they come, and answered as it steps.

A dialog's tokens are kept as they were generated, as in a `LocalSession`; their keys and values are
in the engine's prefix cache, under the salt of their steering.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from vllm import SamplingParams, envs
from vllm.inputs import tokens_input
from vllm.sampling_params import RequestOutputKind
from vllm.v1.engine.exceptions import EngineDeadError

from holdfast.attention import AttentionTrace
from holdfast.engine.scheduler import name_error
from holdfast.errors import HoldfastError, ModelError, PromptTooLong
from holdfast.methods import spell
from holdfast.models.protocol import Job, answer_all, run_jobs
from holdfast.models.rendering import CachedDialog, Rendered, all_rendered, render
from holdfast.models.requests import Reply, Request
from holdfast_vllm.wire import METHODS, SEED, SPAN, TRACE

if TYPE_CHECKING:
    from holdfast_vllm.offline import VllmModel

_ENDINGS = {"stop": "stop", "length": "length"}


@dataclass(eq=False)
class _Open:
    """A request in progress.

    Args:
        job: the request, and what follows it.
        rendered: its tokens.
        room: maximum tokens of its reply.
        engine_name: the engine's name for it.
        token_ids: of the reply, as far as the engine has reported them.
    """

    job: Job
    rendered: Rendered
    room: int
    engine_name: str = ""
    token_ids: list[int] = field(default_factory=list)

    @property
    def traced(self) -> bool:
        """Whether its mass is noted."""
        return self.rendered.row.trace and any(self.rendered.row.streams[0].span)


class VllmSession:
    """Answers requests, and keeps the tokens of their threads.

    Args:
        model: the model that answers.
    """

    def __init__(self, model: VllmModel):
        self.model = model
        self._threads: dict[Hashable, tuple[CachedDialog, ...]] = {}

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers requests in the order given.

        Raises:
            PromptError: a chat cannot be rendered, its system prompt is not found, or it exceeds
                the model's context; in that case nothing is generated.
            ModelError: a method cannot be applied to this model.
        """
        return answer_all(self._run_whole, requests)

    def generate(self, request: Request, drawn: Callable[[int], None] | None = None) -> Reply:
        """Answers one request; `drawn` receives every token id of the reply as it is drawn.

        Raises:
            PromptError, ModelError: as for `generate_batch`.
        """
        return answer_all(self._run_whole, [request], drawn)[0]

    def run(self, jobs: Iterable[Job]) -> None:
        """Answers jobs and all that follow from them; requests join and leave at any step.

        Raises:
            HoldfastError: the error of the first request that failed, raised once all others are
                answered; a chat that is too long is not an error here, as its reply says so.
        """
        run_jobs(_Jobs(self), jobs)

    def forget(self, thread: Hashable) -> None:
        """Drops the tokens of a finished thread; the engine's cache evicts on its own."""
        self._threads.pop(thread, None)

    def _run_whole(self, jobs: Sequence[Job]) -> None:
        """Answers jobs after checking that each has a prompt and room for a reply."""
        run_jobs(_Jobs(self, whole=True), jobs)

    def render_jobs(self, jobs: Sequence[Job], whole: bool) -> list[Rendered | HoldfastError]:
        """The tokens of each request, after those that its thread has, or its error. If `whole`,
        the first error is raised, and a chat without room for a reply is refused.
        """
        read = render(
            [job.request for job in jobs],
            self.model.tokenizer,
            self._known,
            names=[job.name for job in jobs],
            traces=not self.model.refusal,
        )
        for job, chat in zip(jobs, all_rendered(read) if whole else (), strict=False):
            if not self.room(chat):
                raise PromptTooLong(
                    f"{job.name and f'{job.name}: '}A chat of {len(chat.prompt_ids)} tokens leaves"
                    f" no room for a reply in the {self.model.context} tokens of the engine; use a"
                    " shorter chat, or start it with a larger max_model_len."
                )
        return read

    def submit(self, asked: _Open) -> str:
        """Submits a request to the engine; returns the name under which outputs report it."""
        row, stream = asked.rendered.row, asked.rendered.row.streams[0]
        extra: dict[str, Any] = {SEED: str(row.seed)}
        if stream.attention or asked.traced:
            ranges = asked.rendered.span_ranges
            extra[METHODS] = spell(stream.attention)
            extra[SPAN] = [place for part in ranges for place in part]
            extra[TRACE] = int(asked.traced)
        streams = asked.job.drawn is not None
        sampling = SamplingParams(
            temperature=row.sampling.temperature,
            top_p=row.sampling.top_p,
            max_tokens=asked.room,
            stop_token_ids=sorted(self.model.stop_ids),
            detokenize=False,
            output_kind=RequestOutputKind.DELTA if streams else RequestOutputKind.FINAL_ONLY,
            extra_args=extra,
        )
        name = f"holdfast-{uuid.uuid4().hex}"
        prompt = tokens_input(list(stream.token_ids))
        try:
            asked.engine_name = self.model.llm.llm_engine.add_request(name, prompt, sampling)
        except ValueError as error:  # a refusal by vLLM
            raise ModelError(
                f"{asked.job.name and f'{asked.job.name}: '}vLLM refuses the request ({error});"
                " ask for what its engine can do."
            ) from error
        return name

    def reply(self, asked: _Open, reason: str, output: Any) -> Reply:
        """The finished reply to a request."""
        drawn, rendered = asked.token_ids, asked.rendered
        ids = tuple(drawn[:-1] if reason == "stop" else drawn)
        text = str(self.model.tokenizer.decode(list(ids), skip_special_tokens=True))
        if rendered.row.keep:
            thread = rendered.request.thread
            assert thread is not None
            self._threads[thread] = rendered.known((), ids, text)
        forwarded = len(rendered.prompt_ids) - (output.num_cached_tokens or 0) + len(drawn) - 1
        trace = self._trace(asked, output.request_id) if asked.traced else None
        return Reply(text, ids, _ENDINGS[reason], trace, forwarded, rendered.prompt_ids)

    def _trace(self, asked: _Open, name: str) -> AttentionTrace:
        ranks = self.model.llm.collective_rpc("holdfast_heads", args=(name,))
        mass = torch.cat([torch.tensor(rank, dtype=torch.float32) for rank in ranks], 1)
        span = asked.rendered.row.streams[0].span
        uniform = sum(span) / (len(span) + torch.arange(mass.shape[-1]))
        return AttentionTrace(mass, uniform.expand(len(mass), -1))  # no layer has a window

    def room(self, asked: Rendered) -> int:
        """Maximum tokens of a reply; 0 if the context leaves too few, as with a local model."""
        row, context = asked.row, self.model.context
        left = context - row.longest
        return min(row.sampling.max_new_tokens, left) if left >= min(row.room, context // 4) else 0

    def _known(self, request: Request) -> tuple[CachedDialog, ...]:
        self.model.check(request.methods)
        return () if request.thread is None else self._threads.get(request.thread, ())


class _Jobs:
    """An `Engine` (`holdfast.models.protocol`): the jobs of one call."""

    def __init__(self, session: VllmSession, whole: bool = False):
        self._session, self._whole = session, whole
        self._engine = session.model.llm.llm_engine
        self._open: dict[str, _Open] = {}
        self._ended: list[tuple[Job, Reply | Exception]] = []

    def submit(self, jobs: Sequence[Job]) -> None:
        for job, chat in zip(jobs, self._session.render_jobs(jobs, self._whole), strict=True):
            if isinstance(chat, HoldfastError):
                self._ended.append((job, chat))
            elif room := self._session.room(chat):
                asked = _Open(job, chat, room)
                self._open[self._session.submit(asked)] = asked
            else:
                reply = Reply("", (), "context", prompt_ids=chat.prompt_ids)
                self._ended.append((job, reply))

    def step(self) -> list[tuple[Job, Reply | Exception]] | None:
        if not (self._open or self._ended):
            return None
        ended, self._ended = self._ended, []
        for output in self._outputs() if self._open else ():
            asked, answer = self._open[output.request_id], output.outputs[0]
            drawn, reason = list(answer.token_ids), answer.finish_reason
            asked.token_ids += drawn
            if asked.job.drawn is not None:
                for token in drawn[:-1] if reason == "stop" else drawn:
                    asked.job.drawn(token)
            if output.finished:
                del self._open[output.request_id]
                ended.append((asked.job, self._outcome(asked, reason, output)))
        return ended

    def _outputs(self) -> list[Any]:
        try:
            return self._engine.step()
        except EngineDeadError as error:
            self._open.clear()  # nothing is left to stop
            raise ModelError(
                "vLLM's engine has ended, or has not answered for"
                f" {envs.VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS} seconds"
                " (VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS), see its log; what was answered is kept:"
                " repeat the command to continue from there."
            ) from error

    def _outcome(self, asked: _Open, reason: str, output: Any) -> Reply | Exception:
        if reason in _ENDINGS:
            return self._session.reply(asked, reason, output)
        error = ModelError(f"vLLM ended the request with {reason!r}; see its log, and ask again.")
        if asked.job.name:
            name_error(error, asked.job.name)
        return error

    def stop(self) -> None:
        if self._open:
            self._engine.abort_request([asked.engine_name for asked in self._open.values()], True)
