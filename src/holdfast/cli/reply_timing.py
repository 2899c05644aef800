"""Times a few replies of a model, to see how many conversations fit into a time."""

import asyncio
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.cli.progress import duration, note
from holdfast.cli.time_box import Pilot
from holdfast.drift import Settings, Suite
from holdfast.drift.pairing import Pairing, draw
from holdfast.drift.remaining import count_replies
from holdfast.drift.resolved_settings import prepare
from holdfast.drift.user_scripts import UserTurns
from holdfast.models.event_loop import run_sync, task_group
from holdfast.models.protocol import ChatModel, Engine
from holdfast.models.requests import Reply, Request
from holdfast.seeds import seed_of

# What is timed, in turn, as far as it ends in time: how many replies side by side, and the most
# tokens of each. The first reply of a model that runs here takes longer, and only warms it up. Such
# a model answers many in little more time than a few, and a run gives it many; but the prompts of
# many take a slow one long to read.
_TRIALS = ((1, 1), (4, 1), (4, 4), (16, 1), (16, 4), (16, 16), (16, 64))
_MIN_GROWTH = 2  # of the time from one trial to the next
_MAX_ENDPOINT_REPLIES = 4  # replies side by side, as requests to it cost money


def time_replies(
    model: ChatModel,
    suite: Suite,
    settings: Settings,
    user_turns: UserTurns | None,
    seconds: float,
) -> Pilot:
    """How long the replies of a run take, by the beginnings of a few of them.

    Args:
        seconds: in which to time them, once the model has given its first token.
    """
    note(f"timing the model, for at most {duration(seconds)} ...")
    users, settings = prepare(model, suite, settings, user_turns)
    most = _MAX_ENDPOINT_REPLIES if model.independent else max(count for count, _ in _TRIALS)
    trials = list(dict.fromkeys((min(count, most), length) for count, length in _TRIALS))
    numbers = range(most)
    per_round = count_replies(suite, settings, users, numbers) / (len(numbers) * settings.rounds)
    pairings = [draw(suite, settings, users, number) for number in numbers]

    async def run_trials() -> list[_Trial]:
        finished: list[_Trial] = []
        ends, left = 0.0, None
        async with model.session() as engine:
            for count, length in trials:
                requests = [_request(pairing, settings, length) for pairing in pairings[:count]]
                trial = await _run_trial(engine, requests, length, left)
                if trial is None:
                    break
                finished.append(trial)
                ends = ends or time.monotonic() + seconds
                left = ends - time.monotonic()
                if len(finished) > 1 and left < _MIN_GROWTH * trial.seconds:
                    break  # a step of a slow model, once begun, may go on beyond the limit
        return finished

    return _pilot_of(run_sync(run_trials()), per_round)


@dataclass(frozen=True)
class _Trial:
    """Replies of at most `length` tokens that ran side by side, and how long they took."""

    length: int
    replies: Sequence[Reply]
    seconds: float


async def _run_trial(
    engine: Engine, requests: Sequence[Request], length: int, limit: float | None
) -> _Trial | None:
    """Times the replies to requests; None if they have not all ended within the limit."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(limit), task_group() as group:
            tasks = [group.create_task(engine.generate(request)) for request in requests]
    except TimeoutError:
        return None
    return _Trial(length, [task.result() for task in tasks], time.monotonic() - began)


def _pilot_of(trials: Sequence[_Trial], per_round: float) -> Pilot:
    """A pilot by the last two trials of as many replies, of which the second were longer; without
    such a pair, by the last trial alone, as if its start took no time.
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
    """The first probe of a conversation, answered with at most so many tokens."""
    return Request(
        messages=[
            {"role": "system", "content": pairing.agent.system_prompt},
            {"role": "user", "content": pairing.probes[0]},
        ],
        sampling=replace(settings.sampling, max_new_tokens=length),
        seed=seed_of("pilot", settings.seed, pairing.number),
        name=f"First reply of conversation {pairing.number + 1}",
    )
