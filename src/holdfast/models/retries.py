"""Draws a reply again while it breaks a rule of the prompt."""

from __future__ import annotations

from dataclasses import dataclass, replace

from holdfast.common.seeds import seed_of
from holdfast.models.protocol import Engine
from holdfast.models.requests import Reply, Request


@dataclass(frozen=True)
class CheckedReply:
    """A reply, and those that were drawn for the same request and not used."""

    reply: Reply
    discarded: tuple[Reply, ...] = ()


async def generate_checked(engine: Engine, request: Request) -> CheckedReply:
    """The reply to a request, drawn again as often as its methods want (`check-and-retry`).

    Replies come without their reasoning, which no rule is about.
    """
    reply = (await engine.generate(request)).without_reasoning()
    retry = request.compiled.retry
    if retry is None:
        return CheckedReply(reply)
    replies = [reply]
    broken = [retry.broken(request.messages, reply.text)]
    while broken[-1] and len(replies) <= retry.n:
        again = replace(
            request,
            messages=retry.reminded(request.messages, broken[-1]),
            seed=seed_of("retry", request.seed, len(replies)),
            conversation_seed=request.editing_seed,
        )
        replies.append((await engine.generate(again)).without_reasoning())
        broken.append(retry.broken(request.messages, replies[-1].text))
    best = min(range(len(replies)), key=lambda number: len(broken[number]))
    others = (reply for number, reply in enumerate(replies) if number != best)
    return CheckedReply(replies[best], tuple(others))
