"""The limits that a server sets to one request."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RequestLimits:
    """The limits of one request.

    Args:
        tokens: new tokens of a reply; also the default if a request sets no limit.
        seconds: the time from its arrival to its last token.
        body_bytes: the size of its body.
        header_seconds: the time for its headers to arrive.
        upload_seconds: the time for its body to arrive.
        messages: the messages of a chat.
        choices: its `n`, or `n` times the number of prompts for a completion.
        emphasis: its emphasised parts, including those in asterisks.
    """

    tokens: int = 4096
    seconds: float = 600.0
    body_bytes: int = 1 << 20
    header_seconds: float = 10.0
    upload_seconds: float = 30.0
    messages: int = 1000
    choices: int = 16
    emphasis: int = 64
