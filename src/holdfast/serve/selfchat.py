"""`/v1/selfchat`: one conversation of the drift benchmark, sent while it is held.

The model talks with itself under two system prompts of a suite, and is probed at every round; what
follows what is the benchmark's own (`drift.selfchat`). Its requests run beside all others of the
server, and see the dialog as text, as over any endpoint.
"""

from __future__ import annotations

import asyncio
import copy
import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import create_model
from starlette.responses import Response
from starlette.types import Send

from holdfast.common.sampling import Sampling
from holdfast.drift.cases import Case, Persona, Suite
from holdfast.drift.dialog import Dialog
from holdfast.drift.pairing import draw_pairing
from holdfast.drift.selfchat import opening
from holdfast.drift.settings import Settings
from holdfast.drift.suites import load_suite
from holdfast.errors import Busy, PromptError
from holdfast.methods import spell
from holdfast.models.protocol import Job
from holdfast.models.requests import Reply, Request
from holdfast.serve.answers import Details, TokenMass
from holdfast.serve.bodies import SelfChatBody
from holdfast.serve.generation import LiveReply, Token, speak
from holdfast.serve.refusals import too_slow
from holdfast.serve.requests import read_spec
from holdfast.serve.service import Service
from holdfast.serve.wire import Writing, end_events, send_event, start_events

_PATIENCE = 0.25  # seconds until a turn is submitted again where the queue is full


def selfchat_body(service: Service) -> type[SelfChatBody]:
    """The body of a request to this server: it knows the suites, the operator's own first."""
    default = "starter" if service.suite is None else service.suite.name
    field = copy.copy(SelfChatBody.model_fields["suite"])
    field.default = default
    suites: Any = Literal[service.suites]
    return create_model("SelfChatBody", __base__=SelfChatBody, suite=(suites, field))


@dataclass(frozen=True)
class SelfChatRoute:
    """The conversations of a server."""

    service: Service  # that it belongs to

    async def answer(self, body: SelfChatBody, arrived: float) -> Response:
        """Begins a conversation."""
        methods = self.service.default
        if body.steering is not None:
            methods = read_spec(body.steering)
        sampling = Sampling(body.temperature, body.top_p, body.max_completion_tokens)
        settings = Settings(rounds=body.rounds, seed=body.seed, sampling=sampling)
        suite = self.service.suite
        if suite is None or body.suite != suite.name:
            suite = await asyncio.to_thread(_suite, body.suite)
        dialog = Dialog(draw_pairing(suite, settings, body.conversation))
        first = opening(dialog, methods, settings)
        start = _start(dialog, spell(methods), settings)
        return Writing(functools.partial(self._converse, dialog, first, start))

    async def _converse(
        self, dialog: Dialog, first: Job, start: dict[str, Any], send: Send
    ) -> None:
        """Runs the conversation within the time of as many requests as it has rounds."""
        seconds = self.service.limits.seconds * start["rounds"]
        updates = _Updates(dialog, functools.partial(send_event, send))
        try:
            async with asyncio.timeout(seconds):
                generation = await self.service.engine.submit(_by_itself(first.request))
                await start_events(send)
                await send_event(send, start)
                await self._follow(self._answer(first, generation), updates)
        except TimeoutError:
            raise too_slow(seconds) from None
        ended = {"ended": dialog.ended} if dialog.ended else {}
        await send_event(send, {"type": "end", **ended})
        await end_events(send)

    async def _follow(self, first: Awaitable[_Answered], updates: _Updates) -> None:
        """Waits for the first answer and for all that follow from it, each sent as it comes."""
        await updates.send_new([])
        tasks = {asyncio.ensure_future(first)}
        try:
            while tasks:
                done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    answered = task.result()
                    following = await asyncio.to_thread(answered.follow)  # scores a probe
                    await updates.send_new(answered.tokens)
                    tasks |= {asyncio.ensure_future(self._submit(job)) for job in following}
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _submit(self, job: Job) -> _Answered:
        """Submits a job once there is room for it, and waits for its answer."""
        while True:
            try:
                generation = await self.service.engine.submit(_by_itself(job.request))
            except PromptError:  # no room is left, which ends the dialog; the first had some
                return _Answered(job, Reply("", (), "context"), [])
            except Busy:
                await asyncio.sleep(_PATIENCE)
            else:
                return await self._answer(job, generation)

    async def _answer(self, job: Job, generation: LiveReply) -> _Answered:
        tokenizer, tokens = self.service.model.tokenizer, list[Token]()
        try:
            async for piece in speak(generation, tokenizer, ()):
                tokens += piece.tokens
            reply = await generation.reply()
        finally:
            generation.cancel()
        details = Details(tokenizer, None, True)
        return _Answered(job, reply, details.masses(tokens) if job.request.trace else [])


@dataclass(frozen=True)
class _Answered:
    """A job with its reply, and the details of the reply's tokens."""

    job: Job
    reply: Reply
    tokens: list[TokenMass]

    def follow(self) -> list[Job]:
        """The jobs that the reply leads to."""
        return list(self.job.then(self.reply))


@dataclass
class _Updates:
    """The turns and probes of a dialog that were not sent yet."""

    dialog: Dialog
    send: Callable[[dict[str, Any]], Awaitable[None]]
    turns: int = 0
    probes: int = 0

    async def send_new(self, tokens: list[TokenMass]) -> None:
        """Sends new turns and probes; `tokens` are those of the latest reply."""
        turns, probes = self.dialog.turns[self.turns :], self.dialog.probes[self.probes :]
        self.turns, self.probes = len(self.dialog.turns), len(self.dialog.probes)
        for turn in turns:
            masses = {"tokens": tokens} if turn["speaker"] == "agent" and tokens else {}
            await self.send({"type": "turn", **turn, **masses})
        for probe in probes:
            await self.send({"type": "probe", **probe})


@functools.cache
def _suite(name: str) -> Suite:
    return load_suite(name)


def _by_itself(request: Request) -> Request:
    """A request of a session as one of its own, with the dialog's text."""
    return replace(request, thread=None, keep=False)


def _start(dialog: Dialog, steering: str, settings: Settings) -> dict[str, Any]:
    return {
        "type": "start",
        "agent": _person(dialog.pairing.agent),
        "user": _person(dialog.pairing.user),
        "steering": steering,
        "rounds": settings.rounds,
        "seed": settings.seed,
        "conversation": dialog.pairing.number,
    }


def _person(person: Case | Persona | None) -> dict[str, str] | None:
    if person is None:
        return None
    return {"id": person.id, "system_prompt": person.system_prompt}
