"""Times a few replies of a model, to estimate how many conversations fit into a given time."""

import asyncio
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.cli.progress import duration, note
from holdfast.cli.time_box import Pilot
from holdfast.drift import Settings, Suite
from holdfast.drift.pairing import Pairing, draw_conversation
from holdfast.drift.remaining import count_replies
from holdfast.drift.resolved_settings import prepare
from holdfast.drift.user_scripts import UserTurns
from holdfast.errors import RequestFailed
from holdfast.models.event_loop import run_sync, task_group
from holdfast.models.protocol import ChatModel, Engine
from holdfast.models.requests import Reply, Request
from holdfast.seeds import seed_of

# The trials in order, until time is up: how many replies run side by side, and the most tokens of
# each. The first trial only warms up a local model. A local model generates many replies in little
# more time than a few, and a run asks it for many at once; but a slow one takes long to read their
# prompts.
_TRIALS = ((1, 1), (4, 1), (4, 4), (16, 1), (16, 4), (16, 16), (16, 64))
_MIN_GROWTH = 2  # the next trial is expected to take at least this many times as long
_MAX_ENDPOINT_REPLIES = 4  # replies side by side from an endpoint, where requests may cost money


@dataclass(frozen=True)
class _Trial:
    """Replies of at most `length` tokens that ran side by side, and how long they took."""

    length: int
    replies: Sequence[Reply]
    seconds: float


def time_replies(
    model: ChatModel,
    suite: Suite,
    settings: Settings,
    user_turns: UserTurns | None,
    seconds: float,
) -> Pilot:
    """Estimates how long the replies of a run take, from the beginnings of a few of them.

    Args:
        seconds: how long the timing may take, from the model's first token on.
    """
    note(f"timing the model, for at most {duration(seconds)} ...")
    user_source, settings = prepare(model, suite, settings, user_turns)
    max_count = max(count for count, _ in _TRIALS)
    if model.independent:
        max_count = _MAX_ENDPOINT_REPLIES
    trials = list(dict.fromkeys((min(count, max_count), length) for count, length in _TRIALS))
    numbers = range(max_count)
    replies = count_replies(suite, settings, user_source, numbers)
    pairings = [draw_conversation(suite, settings, user_source, number) for number in numbers]

    async def run_trials() -> list[_Trial]:
        finished: list[_Trial] = []
        end = 0.0  # set once the model has given its first token
        left = None
        withheld = None
        async with model.session() as engine:
            for count, length in trials:
                requests = [_request(pairing, settings, length) for pairing in pairings[:count]]
                try:
                    trial = await _run_trial(engine, requests, length, left)
                except RequestFailed as error:
                    if error.why != "filter":
                        raise
                    withheld = error
                    continue
                if trial is None:
                    break
                finished.append(trial)
                end = end or time.monotonic() + seconds
                left = end - time.monotonic()
                if len(finished) > 1 and left < _MIN_GROWTH * trial.seconds:
                    break  # a step of a slow model cannot be interrupted, and would end late
        if withheld is not None and not finished:
            raise withheld
        return finished

    return _pilot_of(run_sync(run_trials()), replies / (max_count * settings.rounds))


async def _run_trial(
    engine: Engine, requests: Sequence[Request], length: int, limit: float | None
) -> _Trial | None:
    """Times the replies to requests; None if not all of them end within the limit.

    Raises:
        RequestFailed: no request was answered.
    """
    began = time.monotonic()
    try:
        async with asyncio.timeout(limit), task_group() as group:
            tasks = [group.create_task(_reply_to(engine, request)) for request in requests]
    except TimeoutError:
        return None
    results = [task.result() for task in tasks]
    replies = [result for result in results if isinstance(result, Reply)]
    errors = [result for result in results if isinstance(result, RequestFailed)]
    if not replies:
        raise errors[0]
    return _Trial(length, replies, time.monotonic() - began)


async def _reply_to(engine: Engine, request: Request) -> Reply | RequestFailed:
    """Answers a request; returns the error of one that fails alone, as runs record it, too."""
    try:
        return await engine.generate(request)
    except RequestFailed as error:
        return error


def _pilot_of(trials: Sequence[_Trial], per_round: float) -> Pilot:
    """Estimates the pace from the last two trials with the same number of replies.

    The later of the two had longer replies. Without such a pair, the last trial is taken alone, as
    if it had no start-up time.
    """
    pairs = [
        (before, after)
        for before, after in itertools.pairwise(trials)
        if len(before.replies) == len(after.replies)
    ]
    before, last = pairs[-1] if pairs else (None, trials[-1])
    per_token = last.seconds / last.length
    if before is not None:
        further = (last.seconds - before.seconds) / (last.length - before.length)
        per_token = min(per_token, max(further, 0.0))
    return Pilot(
        replies=len(last.replies),
        start=last.seconds - per_token * last.length,
        per_token=per_token,
        limit=last.length,
        cut=sum(reply.stop_reason == "length" for reply in last.replies) / len(last.replies),
        per_round=per_round,
    )


def _request(pairing: Pairing, settings: Settings, length: int) -> Request:
    """Builds the request for a reply of at most `length` tokens to a conversation's first probe."""
    return Request(
        messages=[
            {"role": "system", "content": pairing.agent.system_prompt},
            {"role": "user", "content": pairing.probes[0]},
        ],
        sampling=replace(settings.sampling, max_new_tokens=length),
        seed=seed_of("pilot", settings.seed, pairing.number),
        name=f"First reply of conversation {pairing.number + 1}",
    )
