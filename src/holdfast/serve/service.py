"""The state that all routes of one server share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.drift.cases import Suite
from holdfast.drift.suites import SHIPPED
from holdfast.methods import Method
from holdfast.models.local import LocalModel
from holdfast.serve.engine_thread import EngineThread
from holdfast.serve.metrics import Metrics


@dataclass(frozen=True)
class Limits:
    """Bounds of one request.

    Args:
        tokens: new ones of a reply; also the default of a request that gives no number.
        seconds: from its arrival to its last token.
        body_bytes: of its body.
        upload_seconds: until its body has arrived.
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


@dataclass(frozen=True)
class Service:
    """One model behind one address.

    Args:
        model: that answers.
        engine: the thread that steps it.
        name: of the model, for clients.
        metrics: of this server.
        limits: of a request.
        default: steering of requests that ask for none.
        version: of this package.
        watched: one request in so many is traced for the metrics, unless 0.
        suite: whose prompts the playground offers, beside those of the package; None: no other.
    """

    model: LocalModel
    engine: EngineThread
    name: str
    metrics: Metrics
    limits: Limits = field(default_factory=Limits)
    default: Sequence[Method] = ()
    version: str = ""
    watched: int = 8
    suite: Suite | None = None

    @property
    def suites(self) -> tuple[str, ...]:
        """The names of the suites that self-chats may draw from, the operator's own first."""
        suite_names = () if self.suite is None else (self.suite.name,)
        return tuple(dict.fromkeys((*suite_names, *SHIPPED)))
