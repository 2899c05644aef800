"""`/v1/selfchat`: one conversation of the drift benchmark, told while it is held.

The model talks with itself under two system prompts of a suite, and is probed at every round; what
follows what is the benchmark's own (`drift.selfchat`). Its requests run beside all others of the
server, and see the dialog as text, as over any endpoint.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from starlette.types import Receive, Scope, Send

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
from holdfast.sampling import Sampling
from holdfast.serve.details import Details
from holdfast.serve.fields import Table, number, read_fields, table, text, whole, word
from holdfast.serve.generation import Generation
from holdfast.serve.refusals import too_slow
from holdfast.serve.service import Service
from holdfast.serve.speaking import Spoken, speak
from holdfast.serve.steering_fields import read_spelling
from holdfast.serve.wire import read_json, send_data, send_event, start_events, while_client_stays

MOST_ROUNDS = 16
_SEEDS = 2**63 - 1
_PATIENCE = 0.25  # seconds until a turn is submitted again where the queue is full
_SAMPLING = Sampling()

Tell = Callable[[dict[str, Any]], Awaitable[None]]


def selfchat_fields(service: Service) -> Table:
    """The fields of a request to `/v1/selfchat`."""
    limits = service.limits
    longest = min(_SAMPLING.max_new_tokens, limits.tokens)
    first = "starter" if service.suite is None else service.suite.name
    return table(
        word("suite", service.suites, first, "Whose prompts, probes and measures."),
        whole(
            "conversation", 0, _SEEDS, 0, "Which of a run's: names its pair, starter and probes."
        ),
        whole("seed", 0, _SEEDS, 0, "Of pairs, starters, probes and every draw."),
        whole("rounds", 1, MOST_ROUNDS, 8, "A round is a turn of each side."),
        text("steering", 20_000, "Methods of the agent alone; without, the server's default."),
        number("temperature", 0, 2, _SAMPLING.temperature, "0 takes the likeliest token."),
        number("top_p", 0, 1, _SAMPLING.top_p, "Mass of the nucleus.", above_low=True),
        whole("max_completion_tokens", 1, limits.tokens, longest, "New tokens of a reply at most."),
    )


@dataclass(frozen=True)
class SelfChat:
    """The ASGI application of the route.

    Args:
        service: that it belongs to.
    """

    service: Service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limits = self.service.limits
        fields = selfchat_fields(self.service)
        values = read_fields(await read_json(scope, receive, limits), fields)
        methods = self.service.default
        if values["steering"] is not None:
            methods = read_spelling(values["steering"])
        settings = _settings(values)
        suite = self.service.suite
        if suite is None or values["suite"] != suite.name:
            suite = await asyncio.to_thread(_suite, values["suite"])
        dialog = Dialog(draw_pairing(suite, settings, values["conversation"]))
        first = opening(dialog, methods, settings)
        start = _start(dialog, spell(methods), settings)
        await while_client_stays(receive, self._hold(dialog, first, start, send))

    async def _hold(self, dialog: Dialog, first: Job, start: dict[str, Any], send: Send) -> None:
        """Holds the conversation within the time of as many requests as it has rounds.

        Raises:
            Busy: the queue is full, before anything is told.
            Refusal: the time is over.
        """
        seconds = self.service.limits.seconds * start["rounds"]
        news = _News(dialog, functools.partial(send_event, send))
        try:
            async with asyncio.timeout(seconds):
                generation = await self.service.engine.submit(_by_itself(first.request))
                await start_events(send)
                await send_event(send, start)
                await self._follow(self._answer(first, generation), news)
        except TimeoutError:
            raise too_slow(seconds) from None
        ended = {"ended": dialog.ended} if dialog.ended else {}
        await send_event(send, {"type": "end", **ended})
        await send_data(send, b"data: [DONE]\n\n", more=False)

    async def _follow(self, first: Awaitable[_Answered], news: _News) -> None:
        """Waits for the first answer and for all that follow from it, each told as it comes."""
        await news.tell([])
        tasks = {asyncio.ensure_future(first)}
        try:
            while tasks:
                done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    answered = task.result()
                    following = await asyncio.to_thread(answered.follow)  # scores a probe
                    await news.tell(answered.tokens)
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
            except (
                PromptError
            ):  # no room is left, which ends a dialog of the benchmark; the first had some
                return _Answered(job, Reply("", (), "context"), [])
            except Busy:
                await asyncio.sleep(_PATIENCE)
            else:
                return await self._answer(job, generation)

    async def _answer(self, job: Job, generation: Generation) -> _Answered:
        tokenizer, spoken = self.service.model.tokenizer, list[Spoken]()
        try:
            async for piece in speak(generation, tokenizer, ()):
                spoken += piece.tokens
            reply = await generation.reply()
        finally:
            generation.cancel()
        details = Details(tokenizer, None, True)
        return _Answered(job, reply, details.masses(spoken) if job.request.trace else [])


@dataclass(frozen=True)
class _Answered:
    """A job with its reply, and what is told of the reply's tokens."""

    job: Job
    reply: Reply
    tokens: list[dict[str, Any]]

    def follow(self) -> list[Job]:
        """What the reply leads to."""
        return list(self.job.then(self.reply))


@dataclass
class _News:
    """What a dialog has come to since it was last told."""

    dialog: Dialog
    send: Tell
    turns: int = 0
    probes: int = 0

    async def tell(self, tokens: list[dict[str, Any]]) -> None:
        """Tells new turns and probes; `tokens` are those of the latest reply."""
        turns, probes = self.dialog.turns[self.turns :], self.dialog.probes[self.probes :]
        self.turns, self.probes = len(self.dialog.turns), len(self.dialog.probes)
        for turn in turns:
            told = {"tokens": tokens} if turn["speaker"] == "agent" and tokens else {}
            await self.send({"type": "turn", **turn, **told})
        for probe in probes:
            await self.send({"type": "probe", **probe})


def _settings(values: Mapping[str, Any]) -> Settings:
    sampling = Sampling(values["temperature"], values["top_p"], values["max_completion_tokens"])
    return Settings(rounds=values["rounds"], seed=values["seed"], sampling=sampling)


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
