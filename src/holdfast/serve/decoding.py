"""The pieces of a reply, decoded as its tokens are drawn."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Literal

from holdfast.models.requests import Reply, Token
from holdfast.models.streaming import TextDecoder
from holdfast.serve.tool_calls import ParsedCall

Finish = Literal["stop", "length", "tool_calls"]


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a reply; only the last piece has the fields after `cached`.

    Args:
        tokens: its decoded tokens; a stop string may cut the text of the last one.
        cached: the tokens of the chat that did not go through the model, as their
            keys and values were kept from an earlier request.
        finish_reason: why the reply ended.
        end_mass: the mass at the token that ended the reply; None if no token did, or if the reply
            is not traced.
        end_uniform: the same mass under uniform attention.
        calls: the tool calls in the whole text.
        unparsed: whether the text begins a tool call, but none could be parsed.
    """

    tokens: tuple[Token, ...] = ()
    cached: int = 0
    finish_reason: Finish | None = None
    end_mass: float | None = None
    end_uniform: float | None = None
    calls: tuple[ParsedCall, ...] = ()
    unparsed: bool = False

    @property
    def text(self) -> str:
        """The text of its tokens."""
        tokens = self.tokens
        return tokens[0].text if len(tokens) == 1 else "".join(token.text for token in tokens)


async def decode_reply(
    events: AsyncGenerator[Token | Reply], decoder: TextDecoder
) -> AsyncGenerator[Delta]:
    """Decodes the stream of a reply's tokens into pieces; closes the stream at the end.

    The last piece has the reason why the reply ended.
    """
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Reply):
                yield _last_delta(event, decoder)
                return
            tokens = decoder.add(event)
            if decoder.stopped:
                yield Delta(tokens, event.cached, "stop")
                return
            if tokens:
                yield Delta(tokens, event.cached)


async def join_deltas(deltas: AsyncGenerator[Delta]) -> Delta:
    """Joins the pieces of a reply into one."""
    tokens = list[Token]()
    last = Delta()
    async with aclosing(deltas):
        async for last in deltas:
            tokens += last.tokens
    return replace(last, tokens=tuple(tokens))


def _last_delta(reply: Reply, decoder: TextDecoder) -> Delta:
    """The last piece of a reply, once it is whole."""
    tokens = decoder.finish(reply)
    is_cut = reply.stop_reason == "length" and not decoder.stopped
    delta = Delta(tokens, reply.cached, "length" if is_cut else "stop")
    masses = reply.token_masses
    trace = reply.trace
    end = len(reply.token_ids or ())  # the token that ended the reply comes after the reply's own
    if trace is None or trace.uniform is None or len(masses) <= end:
        return delta
    uniform = float(trace.uniform[:, end].mean())
    return replace(delta, end_mass=masses[end], end_uniform=uniform)
