"""Limits of one request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds of one request.

    Args:
        tokens: new ones of a reply; also what a request gets that asks for no number.
        seconds: from its arrival to its last token.
        body_bytes: of what is sent.
        upload_seconds: for sending it.
        messages: of a chat.
        choices: replies to one chat (`n`), or prompts of one completion.
        emphasis: emphasised parts, asterisks among them.
    """

    tokens: int = 4096
    seconds: float = 600.0
    body_bytes: int = 1 << 20
    upload_seconds: float = 30.0
    messages: int = 1000
    choices: int = 16
    emphasis: int = 64
