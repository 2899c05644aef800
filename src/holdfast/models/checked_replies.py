"""Draws replies again if they break a rule of the prompt (`check-and-retry`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.errors import RequestFailed, UsageError
from holdfast.methods import CompiledMethods
from holdfast.models.protocol import Engine
from holdfast.models.requests import Reply, Request
from holdfast.seeds import seed_of


@dataclass(frozen=True)
class _Draw:
    """A reply that was drawn, and the rules that it breaks."""

    reply: Reply
    broken: Sequence[str]  # the texts of the rules that the reply breaks

    @property
    def rank(self) -> tuple[bool, int]:
        """Sorts draws best first: those with a text, and among them the fewest broken rules."""
        return not self.reply.text.strip(), len(self.broken)


async def generate_checked(engine: Engine, request: Request) -> Reply:
    """Answers a request; draws the reply again while it breaks a rule and retries are left.

    Returns the best draw, without its reasoning, to which rules do not apply. If a retry fails, or
    has no text, the draws so far are used, and the reply says so (`retry_failed`). An endpoint's
    client waits for a busy server in a retry as in a first draw.

    Raises:
        RequestFailed: the first draw failed.
    """
    compiled = request.compiled
    check_retries(compiled)
    request = replace(request, methods=compiled.without_retries.methods)
    first = (await engine.generate(request)).without_reasoning()
    retry = compiled.retry
    if retry is None:
        return first

    def draw_of(reply: Reply) -> _Draw:
        is_cut = reply.stop_reason == "length"
        return _Draw(reply, retry.broken(request.messages, reply.text, is_cut=is_cut))

    draws = [draw_of(first)]
    retry_failed = False
    while (broken := draws[-1].broken) and len(draws) <= retry.retries:
        again = replace(
            request,
            messages=retry.remind(request.messages, broken),
            seed=seed_of("retry", request.seed, len(draws)),
            conversation_seed=request.editing_seed,
        )
        try:
            draws.append(draw_of((await engine.generate(again)).without_reasoning()))
        except RequestFailed:
            retry_failed = True
            break
    best = min(draws, key=lambda draw: draw.rank)  # the earliest one in a tie
    if len(draws) > 1 and not draws[-1].reply.text.strip():
        retry_failed = True
    discarded = tuple(draw.reply for draw in draws if draw is not best)
    return replace(best.reply, discarded=discarded, retry_failed=retry_failed)


def check_retries(methods: CompiledMethods) -> None:
    """Raises a `UsageError` if more than one method draws replies again."""
    if len(methods.retries) > 1:
        raise UsageError(
            "There is one retry for all rules, not several; leave out all but one check-and-retry.",
            option="method",
            value=methods.spec,
        )
