"""Times a few replies of a model, to choose how long the conversations of a run are, and how many.

pilot = time_replies(model, suite, settings, user_turns, seconds=20)
plan = pilot.plan(seconds=100, max_new_tokens=400)  # such as RunPlan(6, 400, 8)
pilot.first_group(plan, seconds=100, left=40)  # how many conversations to begin with
"""

import asyncio
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.cli.shared.notes import note
from holdfast.drift import Cast, Settings, Suite
from holdfast.drift.pairing import Pairing, draw_conversation
from holdfast.drift.progress import GROWTH
from holdfast.drift.remaining import count_replies
from holdfast.drift.resolved_settings import prepare
from holdfast.drift.user_scripts import UserTurns
from holdfast.errors import RequestFailed
from holdfast.generation.sampling import MAX_NEW_TOKENS_ALLOWED
from holdfast.models.event_loop import run_sync, task_group
from holdfast.models.protocol import ChatModel, Engine
from holdfast.models.requests import Reply, Request
from holdfast.plurals import duration
from holdfast.seeds import seed_of

# conversations that are long and many enough; a model that is too slow has shorter or fewer ones
SUFFICIENT_ROUNDS = 4
SUFFICIENT_CONVERSATIONS = 8
MIN_CONVERSATIONS = 2
# The trials in order, until time is up: how many replies run side by side, and the most tokens of
# each. The first trial only warms up a local model. A local model generates many replies in little
# more time than a few, and a run asks it for many at once; but a slow one takes long to read their
# prompts.
_TRIALS = ((1, 1), (4, 1), (4, 4), (16, 1), (16, 4), (16, 16), (16, 64))
_MIN_GROWTH = 2  # the next trial is expected to take at least this many times as long
_MAX_ENDPOINT_REPLIES = 4  # replies side by side from an endpoint, where requests may cost money


@dataclass(frozen=True)
class RunPlan:
    """The conversations of a run: their length, and how many of them should fit into the time."""

    rounds: int
    max_new_tokens: int
    conversations: int


_WHOLE = MAX_NEW_TOKENS_ALLOWED  # replies as long as the run allows
# The plans to choose from, best first; the first that fits is taken. Replies are shortened before
# there are fewer conversations, as a few conversations say little, but not much at first, as a
# reply that is cut early shows few rules.
_PLANS = (
    RunPlan(8, _WHOLE, SUFFICIENT_CONVERSATIONS),
    RunPlan(6, _WHOLE, SUFFICIENT_CONVERSATIONS),
    RunPlan(4, _WHOLE, SUFFICIENT_CONVERSATIONS),
    RunPlan(4, 200, SUFFICIENT_CONVERSATIONS),
    RunPlan(4, 200, 4),
    RunPlan(4, 200, MIN_CONVERSATIONS),
    RunPlan(3, 200, MIN_CONVERSATIONS),
    RunPlan(2, 200, MIN_CONVERSATIONS),
    RunPlan(2, 200, 1),
    RunPlan(2, 100, 1),
    RunPlan(2, 60, 1),
)


@dataclass(frozen=True)
class Pilot:
    """A few replies that were timed side by side, to estimate how long others take.

    Args:
        replies: how many replies ran side by side.
        start: the seconds until all of them had their first token.
        per_token: the seconds in which all of them got one more token.
        limit: the number of tokens at which they were cut.
        cut: the share of them that were cut.
        per_round: how many replies a round of a conversation has, counting turns and probes.
    """

    replies: int
    start: float
    per_token: float
    limit: int
    cut: float = 0.0
    per_round: float = 2

    @property
    def knows_pace(self) -> bool:
        """Whether more than the first token was timed, which takes far longer than the others."""
        return self.limit > 1

    def tokens_of(self, max_new_tokens: int) -> float:
        """About how many tokens a reply has.

        At least half of the limit, which replies reach once a conversation repeats itself.
        """
        if_ended = min(self.limit, max_new_tokens)
        if_cut = min(max(self.limit, max_new_tokens / 2), max_new_tokens)
        expected = (1 - self.cut) * if_ended + self.cut * if_cut
        return max(expected, max_new_tokens / 2)

    def seconds_of(self, rounds: int, max_new_tokens: int) -> float:
        """About how many seconds one conversation takes, if others run beside it."""
        together = self.start + self.per_token * self.tokens_of(max_new_tokens)
        seconds = max(together, 1e-3) / self.replies  # a coarse clock may have measured none
        return self.per_round * rounds * (1 + GROWTH / 2) * seconds

    def plan(self, seconds: float, max_new_tokens: int, *, may_shorten: bool = True) -> RunPlan:
        """Chooses the best plan whose conversations fit into the time; if none fits, the shortest.

        Args:
            max_new_tokens: the most tokens of a reply.
            may_shorten: whether a plan may allow fewer tokens.
        """
        plans: list[RunPlan] = []
        for plan in _PLANS:
            tokens = min(plan.max_new_tokens, max_new_tokens) if may_shorten else max_new_tokens
            plans.append(replace(plan, max_new_tokens=tokens))
        for plan in plans:
            if plan.conversations * self.seconds_of(plan.rounds, plan.max_new_tokens) <= seconds:
                return plan
        return plans[-1]

    def first_group(self, plan: RunPlan, seconds: float, left: int) -> int:
        """How many of the conversations left to begin with: as many as should fit into the time."""
        fit = int(seconds / self.seconds_of(plan.rounds, plan.max_new_tokens))
        return max(min(MIN_CONVERSATIONS, plan.conversations), min(left, fit))


# Timing a few replies


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
    settings, cast = prepare(model, suite, settings, Cast(user_turns=user_turns))
    max_count = max(count for count, _ in _TRIALS)
    if model.independent:
        max_count = _MAX_ENDPOINT_REPLIES
    numbers = range(max_count)
    pairings = [draw_conversation(suite, settings, number, cast) for number in numbers]
    trials = run_sync(_run_trials(model, pairings, settings, seconds))
    replies = count_replies(suite, settings, numbers, cast)
    return _pilot_of(trials, replies / (max_count * settings.rounds))


async def _run_trials(
    model: ChatModel, pairings: Sequence[Pairing], settings: Settings, seconds: float
) -> list[_Trial]:
    """Runs the trials, with at most one reply for each pairing, until the time is up.

    A trial none of whose requests is answered, because of the server's content filter, is left out.

    Raises:
        RequestFailed: no trial was answered.
    """
    sizes = dict.fromkeys((min(count, len(pairings)), length) for count, length in _TRIALS)
    trials: list[_Trial] = []
    end = 0.0  # set once the model has given its first token
    left = None
    withheld = None
    async with model.session() as engine:
        for count, length in sizes:
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
            trials.append(trial)
            end = end or time.monotonic() + seconds
            left = end - time.monotonic()
            if len(trials) > 1 and left < _MIN_GROWTH * trial.seconds:
                break  # a step of a slow model cannot be interrupted, and would end late
    if withheld is not None and not trials:
        raise withheld
    return trials


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
            {"role": "user", "content": pairing.stability_questions[0]},
        ],
        sampling=replace(settings.sampling, max_new_tokens=length),
        seed=seed_of("pilot", settings.seed, pairing.number),
        name=f"First reply of conversation {pairing.number + 1}",
    )
