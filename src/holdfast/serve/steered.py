"""Which methods a reply is held to: those its request asks for, or the server's default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from holdfast.chat.messages import Message
from holdfast.methods import Kind, Method, acts_in_front, edit_messages, kind_of, of_kind, spell
from holdfast.models.requests import Request
from holdfast.serve.refusals import refused_field
from holdfast.serve.steering_fields import Wanted, read_spelling


@dataclass(frozen=True)
class Steered:
    """What a reply is held to.

    Args:
        methods: that it asks for, or the server's.
        why: there are none; "" where there are some.
    """

    methods: tuple[Method, ...]
    why: str = ""

    def told(self, requests: Sequence[Request]) -> dict[str, Any]:
        """For the answer, whose choices these requests are.

        A method that edits messages may draw no edit; then it is told that nothing was applied.
        """
        told: dict[str, Any] = {"steering": spell(self.methods), "applied": not self.why}
        if self.why:
            return told | {"why": self.why}
        editing = of_kind(self.methods, Kind.MESSAGES)
        if not editing:
            return told
        told["edited"] = [_edited(request) for request in requests]
        if len(editing) == len(self.methods) and not any(told["edited"]):
            told["applied"] = False
            told["why"] = f"{spell(editing)} drew no edit of this chat's messages"
        return told


def _edited(request: Request) -> list[int]:
    """The messages, from 0, that the model is not shown as they were sent."""
    shown = edit_messages(request.messages, request.methods, request.editing_seed)
    pairs = zip_longest(request.messages, shown)
    return [place for place, (sent, edited) in enumerate(pairs) if sent != edited]


def choose_methods(wanted: Wanted, default: Sequence[Method], has_span: bool) -> Steered:
    """The methods of a request.

    Args:
        wanted: what it asks for.
        default: of the server.
        has_span: whether there is something to hold on to.

    Raises:
        Refusal: it asks for steering, and there is nothing to hold on to.
    """
    if wanted.steering is None:
        if not default:
            return Steered((), "neither the request nor the server asks for steering")
        if has_span or not _needs_span(default):
            return Steered(tuple(default))
        return Steered((), "there is no system prompt and no emphasis to hold on to")
    chosen = read_spelling(wanted.steering)
    if not chosen:
        return Steered((), "the request asks for none")
    if not has_span and _needs_span(chosen):
        raise refused_field(
            "steering",
            f"steering {spell(chosen)} holds on to a system prompt or to emphasis, and there is"
            " neither; add one, or ask for steering none.",
            "nothing_to_hold",
        )
    return Steered(chosen)


def _needs_span(chosen: Sequence[Method]) -> bool:
    """Whether some method has nothing to do without a system prompt or emphasis."""
    return not all(acts_in_front([method]) for method in chosen)


def has_prompt(messages: Sequence[Message]) -> bool:
    """Whether a chat has a system prompt with words."""
    return any(message["role"] == "system" and message["content"].strip() for message in messages)


def works_on_messages(chosen: Sequence[Method]) -> str:
    """The first method that works on a chat's messages; "" where none does."""
    kinds = (Kind.MESSAGES, Kind.STREAM)
    return next((method.name for method in chosen if kind_of(method) in kinds), "")
