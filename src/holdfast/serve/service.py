"""The state that all routes of one server share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.methods import Method
from holdfast.models.local import LocalModel
from holdfast.serve.metrics import Metrics
from holdfast.serve.served_engine import ServedEngine


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


@dataclass(frozen=True)
class Service:
    """One model behind one address."""

    model: LocalModel
    engine: ServedEngine  # which runs it
    name: str  # the model's name for clients
    metrics: Metrics
    limits: Limits = field(default_factory=Limits)
    default: Sequence[Method] = ()  # steering of requests that do not specify it
    version: str = ""  # of this package
    # offered by the playground in place of its own: name, system prompt, message
    prompts: Sequence[Mapping[str, str]] = ()
    fitted: Sequence[str] = ()  # the specs of the fitted files that requests may name
