"""The limits of what a server takes in one request."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of one request."""

    tokens: int = 4096  # new tokens per reply; also the default if a request sets no limit
    seconds: float = 600.0  # from its arrival to its last token
    body_bytes: int = 1 << 20  # size of its body
    header_seconds: float = 10.0  # for its headers to arrive
    upload_seconds: float = 30.0  # for its body to arrive
    messages: int = 1000  # per chat
    choices: int = 16  # `n`; for a completion, `n` times the number of prompts
    emphasis: int = 64  # emphasised parts, including those in asterisks
